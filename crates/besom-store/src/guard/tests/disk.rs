//! Catches: what a full or failing disk can do to a store. redb refuses everything after an error of its file; the store opens it
//! again, finds out what became of the write, and notices when writes that were not durable are gone.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use ::redb::{Builder, StorageBackend};
use besom::TelescopingFilter;
use besom::testing::Random;

use crate::engine::{Engine, Health};
use crate::{Durability, Layout, RedbStore, StoreError};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A disk in memory.
#[derive(Debug, Clone)]
struct Disk(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    bytes: Vec<u8>,
    random: Random,
    /// One write in so many fails; none if 0.
    one_in: u64,
    /// Beyond this the disk is full.
    size: usize,
}

impl Disk {
    fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            bytes: Vec::new(),
            random: Random::new(seed),
            one_in: 0,
            size: usize::MAX,
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    /// Does something, or fails before or after it.
    fn change(&self, act: impl FnOnce(&mut Inner) -> Result<(), Error>) -> Result<(), Error> {
        self.with(|inner| {
            let fails = inner.one_in > 0 && inner.random.one_in(inner.one_in);
            if fails && inner.random.one_in(2) {
                return Err(Error::other("made to fail"));
            }
            act(inner)?;
            if fails { Err(Error::other("made to fail")) } else { Ok(()) }
        })
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.with(|inner| inner.bytes.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let offset = offset as usize;
        self.with(|inner| match inner.bytes.get(offset..offset + out.len()) {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(ErrorKind::UnexpectedEof.into()),
        })
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        self.change(|inner| {
            if len as usize > inner.size {
                return Err(ErrorKind::StorageFull.into());
            }
            inner.bytes.resize(len as usize, 0);
            Ok(())
        })
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.change(|_| Ok(()))
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.change(|inner| {
            let offset = offset as usize;
            inner.bytes[offset..offset + data.len()].copy_from_slice(data);
            Ok(())
        })
    }
}

fn open(disk: &Disk, layout: Layout, seed: u64) -> RedbStore<TelescopingFilter> {
    let disk = disk.clone();
    let opener = Box::new(move || Builder::new().create_with_backend(disk.clone()));
    let make = move |keys: usize, _| {
        TelescopingFilter::builder().capacity(keys.max(4)).seed(seed).growable().build()
    };
    let builder = RedbStore::builder().layout(layout).snapshot_path("no/such/directory/snapshot");
    builder.open_with(Path::new("disk"), opener, Arc::new(make)).unwrap()
}

struct Play {
    disk: Disk,
    store: RedbStore<TelescopingFilter>,
    random: Random,
    /// What the store has now.
    now: Model,
    /// What it may have after it was opened again: the last durable state, and all since.
    since: Vec<Model>,
    losses: u64,
    /// How often the store said that commits were lost.
    told: u64,
}

impl Play {
    fn key(&mut self) -> Vec<u8> {
        self.random.below(40).to_string().into_bytes()
    }

    fn write(&mut self) {
        let (key, durable) = (self.key(), self.random.one_in(3));
        let durability = if durable { Durability::Durable } else { Durability::Buffered };
        let value =
            self.random.one_in(2).then(|| vec![self.random.next() as u8; self.random.below(3000) as usize]);
        let mut next = self.now.clone();
        let done = match &value {
            Some(value) => {
                next.insert(key.clone(), value.clone());
                self.store.insert_with(&key, value, durability)
            }
            None => {
                next.remove(&key);
                self.store.remove_with(&key, durability)
            }
        };
        if done.is_err() || self.store.metrics().reopenings > 0 {
            self.since.push(next);
            return;
        }
        if durable {
            self.since.clear();
        }
        self.since.push(next.clone());
        self.now = next;
    }

    /// Lets the disk work again and looks at what is there.
    fn inquest(&mut self) {
        self.disk.with(|inner| (inner.one_in, inner.size) = (0, usize::MAX));
        // Told once, if anything was lost that was acknowledged.
        match self.store.restore() {
            Ok(()) => {}
            Err(StoreError::RolledBack { commits }) => {
                assert!(commits > 0);
                self.told += 1;
            }
            Err(error) => panic!("{error}"),
        }
        self.store.restore().unwrap();
        self.store.verify().unwrap();
        let found: Model = self.store.iter().unwrap().map(Result::unwrap).collect();
        assert!(self.since.contains(&found), "{} keys, in none of {} states", found.len(), self.since.len());
        self.losses += u64::from(found != self.now);
        for number in 0..40 {
            let key = number.to_string().into_bytes();
            assert_eq!(self.store.get(&key).unwrap().as_ref(), found.get(&key), "{number}");
        }
        self.store.insert(b"durable", b"").unwrap();
        self.store.remove(b"durable").unwrap();
    }
}

fn play(layout: Layout, seed: u64, one_in: u64, room: Option<usize>) -> u64 {
    let disk = Disk::new(seed);
    let mut losses = 0;
    for round in 0..6 {
        let store = open(&disk, layout, seed);
        let now: Model = store.iter().unwrap().map(Result::unwrap).collect();
        let since = vec![now.clone()];
        let random = Random::new(seed << 8 | round);
        let mut play = Play { disk: disk.clone(), store, random, now, since, losses: 0, told: 0 };
        (0..10).for_each(|_| play.write());
        disk.with(|inner| {
            (inner.one_in, inner.size) = (one_in, room.map_or(usize::MAX, |room| inner.bytes.len() + room));
        });
        for _ in 0..200 {
            play.write();
            let key = play.key();
            // Whatever happens, what is there is not rejected.
            let certain =
                play.since.iter().all(|model| model.contains_key(&key)) && play.now.contains_key(&key);
            assert!(!certain || play.store.may_contain_key(&key));
            if play.store.metrics().reopenings > 0 || play.store.store.engine.health() == Health::Broken {
                break;
            }
        }
        play.inquest();
        losses += play.losses;
    }
    losses
}

#[test]
fn a_failing_disk_loses_nothing_that_was_durable() {
    let games = if std::env::var_os("BESOM_FULL").is_some() { 100 } else { 6 };
    let losses: u64 = (0..games)
        .map(|seed| play(Layout::Ordered, seed, 40, None) + play(Layout::Hashed, seed, 40, None))
        .sum();
    assert!(losses > 0, "no write that was not durable was ever lost: the test shows nothing");
}

#[test]
fn a_full_disk_loses_nothing_that_was_durable() {
    play(Layout::Ordered, 1, 0, Some(0));
    play(Layout::Hashed, 2, 0, Some(0));
}

#[test]
fn a_full_disk_is_reported_as_what_it_is() {
    // In many places, among them the growth of the filter, which gets over errors of tidying up.
    let mut reported = 0;
    for seed in 0..20 {
        let disk = Disk::new(seed);
        let store = open(&disk, Layout::Ordered, seed);
        disk.with(|inner| inner.size = inner.bytes.len());
        let insert = |number: u64| store.insert(&number.to_le_bytes(), &vec![0; 300 + 50 * seed as usize]);
        let error = (0..100_000).find_map(|number| insert(number).err()).unwrap();
        match &error {
            StoreError::Engine(::redb::Error::Io(inside)) => {
                assert_eq!(inside.kind(), ErrorKind::StorageFull);
                reported += 1;
            }
            // redb keeps the reason to itself where it meets it outside of a transaction.
            StoreError::Engine(::redb::Error::PreviousIo) => {}
            other => panic!("{other}"),
        }
        let keys = store.len().unwrap();
        disk.with(|inner| inner.size = usize::MAX);
        store.verify().unwrap();
        store.insert(b"there is room again", b"").unwrap();
        assert_eq!(store.len().unwrap(), keys + 1);
        assert!(matches!(store.snapshot(), Err(StoreError::Snapshot { .. })));
        assert!(store.get(b"there is room again").unwrap().is_some());
    }
    assert!(reported > 10, "{reported} of 20");
}
