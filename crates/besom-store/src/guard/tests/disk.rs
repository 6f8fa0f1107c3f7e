//! Catches: what a full or failing disk can do to a store. redb refuses everything after an error of its file; the store opens it
//! again, finds out what became of the write, and notices when writes that were not durable are gone. And what a loss of power can
//! do, when what was not synced is there in part.

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
    /// One write in this many fails; none if 0.
    one_in: u64,
    /// Beyond this the disk is full.
    size: usize,
    /// What was done, if it is written down.
    log: Option<Vec<Done>>,
}

#[derive(Debug, Clone)]
enum Done {
    Write(usize, Vec<u8>),
    Resize(usize),
    Sync,
}

impl Done {
    fn again(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(offset, data) => {
                bytes.resize(bytes.len().max(offset + data.len()), 0);
                bytes[*offset..offset + data.len()].copy_from_slice(data);
            }
            Self::Resize(len) => bytes.resize(*len, 0),
            Self::Sync => {}
        }
    }
}

impl Disk {
    fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            bytes: Vec::new(),
            random: Random::new(seed),
            one_in: 0,
            size: usize::MAX,
            log: None,
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    /// Does something, or fails before or after it.
    fn change(&self, done: Done) -> Result<(), Error> {
        self.with(|inner| {
            let fails = inner.one_in > 0 && inner.random.one_in(inner.one_in);
            if fails && inner.random.one_in(2) {
                return Err(Error::other("made to fail"));
            }
            if matches!(done, Done::Resize(len) if len > inner.size) {
                return Err(ErrorKind::StorageFull.into());
            }
            done.again(&mut inner.bytes);
            if let Some(log) = &mut inner.log {
                log.push(done);
            }
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
        self.change(Done::Resize(len as usize))
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.change(Done::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.change(Done::Write(offset as usize, data.to_vec()))
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
        self.told += u64::from(matches!(done, Err(StoreError::RolledBack { .. })));
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

/// How often acknowledged writes were lost, and how often that was told.
fn play(layout: Layout, seed: u64, one_in: u64, room: Option<usize>) -> [u64; 2] {
    let disk = Disk::new(seed);
    let mut losses = [0; 2];
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
        losses = [losses[0] + play.losses, losses[1] + play.told];
    }
    losses
}

#[test]
fn a_failing_disk_loses_nothing_that_was_durable() {
    let games = if std::env::var_os("BESOM_FULL").is_some() { 100 } else { 6 };
    let games = (0..games).flat_map(|seed| [(seed, Layout::Ordered), (seed, Layout::Hashed)]);
    let losses: Vec<_> = games.map(|(seed, layout)| play(layout, seed, 40, None)).collect();
    let [lost, told] = [0, 1].map(|at| losses.iter().map(|losses| losses[at]).sum::<u64>());
    assert!(lost > 0, "no write that was not durable was ever lost: the test shows nothing");
    assert!(told > 0 && told <= lost, "{lost} losses, told {told} times");
}

/// A write: what was done before it began and when it was acknowledged, whether it was to last, and what the store has then.
struct Written {
    begun: usize,
    acknowledged: usize,
    durable: bool,
    model: Model,
}

/// One history, written down.
fn history(layout: Layout, writes: u64) -> (Vec<Done>, Vec<Written>) {
    let disk = Disk::new(1);
    disk.with(|inner| inner.log = Some(Vec::new()));
    let store = open(&disk, layout, 7);
    let done = || disk.with(|inner| inner.log.as_ref().map_or(0, Vec::len));
    let (mut random, mut model) = (Random::new(2), Model::new());
    let mut history = vec![Written { begun: 0, acknowledged: done(), durable: true, model: model.clone() }];
    for _ in 0..writes {
        let (key, durable) = (random.below(60).to_string().into_bytes(), random.one_in(3));
        let durability = if durable { Durability::Durable } else { Durability::Buffered };
        let begun = done();
        if random.one_in(3) {
            model.remove(&key);
            store.remove_with(&key, durability).unwrap();
        } else {
            let value = vec![random.next() as u8; random.below(600) as usize];
            store.insert_with(&key, &value, durability).unwrap();
            model.insert(key, value);
        }
        history.push(Written { begun, acknowledged: done(), durable, model: model.clone() });
    }
    let log = disk.with(|inner| inner.log.take().unwrap());
    (log, history)
}

/// The power fails, and of what was not synced any part is there: what is found is a state that was, and no older than the last
/// durable one.
fn cut_power(layout: Layout, writes: u64, cuts: usize) {
    let (log, history) = history(layout, writes);
    let (mut random, mut synced, mut since) = (Random::new(3), Vec::new(), Vec::new());
    let stride = (log.len() / cuts).max(1);
    let (mut found_older, mut cut) = (0, 0);
    for (at, done) in log.iter().enumerate() {
        since.push(done);
        if let Done::Sync = done {
            since.drain(..).for_each(|done| done.again(&mut synced));
        }
        if at < history[0].acknowledged || at % stride > 0 {
            continue;
        }
        cut += 1;
        let disk = Disk::new(0);
        disk.with(|inner| {
            inner.bytes.clone_from(&synced);
            since.iter().filter(|_| random.one_in(2)).for_each(|done| done.again(&mut inner.bytes));
        });
        let store = open(&disk, layout, 7);
        store.verify().unwrap();
        let found: Model = store.iter().unwrap().map(Result::unwrap).collect();
        let oldest = history.iter().rposition(|written| written.durable && written.acknowledged <= at + 1);
        // A write that had nothing to do began and ended here.
        let (certain, later) = history[oldest.unwrap()..].split_first().unwrap();
        let possible = later.iter().take_while(|written| written.begun <= at);
        let which: Vec<&Model> =
            std::iter::once(certain).chain(possible).map(|written| &written.model).collect();
        assert!(
            which.contains(&&found),
            "{layout:?}, {at}: {} keys, in none of {}",
            found.len(),
            which.len()
        );
        found_older += u64::from(which.last() != Some(&&found));
    }
    println!("{layout:?}: {cut} cuts, {found_older} of them lost commits that were not durable");
    assert!(found_older > 0, "nothing was ever lost: the test shows nothing");
}

#[test]
fn a_loss_of_power_leaves_a_state_that_was_and_no_older_than_the_last_durable_one() {
    let (writes, cuts) = if std::env::var_os("BESOM_FULL").is_some() { (4_000, 5_000) } else { (150, 40) };
    cut_power(Layout::Hashed, writes, cuts);
    cut_power(Layout::Ordered, writes, cuts);
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
