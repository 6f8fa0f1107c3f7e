//! Catches: answers that no order of the operations explains. Eight threads read and write one store. Every key has one writer, who
//! says which version it is about to write and which it has written; whatever a reader sees must lie between the two.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;

use crate::common::{Directory, Model, check};
use besom::cascade::AdaptiveBloomFilter;
use besom::testing::Random;
use besom::{BuildError, ExtensionFilter, Seed, TelescopingFilter};
use besom_store::{Batch, Durability, Layout, RedbStore, StoreFilter};

const KEYS: u64 = 256;
const WRITERS: u64 = 3;

/// Even versions are values, odd ones removals. The first is a removal.
struct Versions {
    begun: Vec<AtomicU64>,
    done: Vec<AtomicU64>,
}

impl Versions {
    fn new() -> Self {
        let ones = || (0..KEYS).map(|_| AtomicU64::new(1)).collect();
        Self { begun: ones(), done: ones() }
    }
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

struct Game<F: StoreFilter> {
    store: RedbStore<F>,
    versions: Versions,
    over: AtomicBool,
}

impl<F: StoreFilter> Game<F> {
    /// Looks a key up and checks the answer.
    fn read(&self, number: u64) {
        let earliest = self.versions.done[number as usize].load(Ordering::SeqCst);
        let found = self.store.get(&key(number)).unwrap();
        let latest = self.versions.begun[number as usize].load(Ordering::SeqCst);
        let fits = match found.map(|value| u64::from_le_bytes(value[..8].try_into().unwrap())) {
            Some(version) => (earliest..=latest).contains(&version),
            // Some removal must lie there.
            None => earliest % 2 == 1 || latest > earliest,
        };
        assert!(
            fits,
            "key {number}: {found:?} is not between {earliest} and {latest}",
            found = self.store.get(&key(number))
        );
    }

    /// Writes the next version of some keys.
    fn write(&self, writer: u64, random: &mut Random) {
        let count = if random.one_in(10) { 1 + random.below(8) } else { 1 };
        let mut batch = Batch::new();
        let mut written = Vec::new();
        for _ in 0..count {
            let number = random.below(KEYS / WRITERS) * WRITERS + writer;
            if written.iter().any(|&(other, _)| other == number) {
                continue;
            }
            let version = self.versions.done[number as usize].load(Ordering::SeqCst) + 1;
            self.versions.begun[number as usize].store(version, Ordering::SeqCst);
            written.push((number, version));
            if version.is_multiple_of(2) {
                batch.insert(&key(number), &version.to_le_bytes())
            } else {
                batch.remove(&key(number))
            };
        }
        match written[..] {
            [(number, version)] if version.is_multiple_of(2) => {
                assert_eq!(self.store.insert(&key(number), &version.to_le_bytes()).unwrap(), None);
            }
            [(number, version)] => {
                let old = (version - 1).to_le_bytes().to_vec();
                assert_eq!(self.store.remove(&key(number)).unwrap(), Some(old));
            }
            _ => self.store.write(&batch).unwrap(),
        }
        for (number, version) in written {
            self.versions.done[number as usize].store(version, Ordering::SeqCst);
        }
    }

    fn reader(&self, seed: u64) {
        let mut random = Random::new(seed);
        while !self.over.load(Ordering::Relaxed) {
            self.read(random.below(KEYS));
            // Strangers: some are false positives, and are repaired.
            assert_eq!(self.store.get(&(1 << 40 | random.below(1 << 11)).to_be_bytes()).unwrap(), None);
        }
    }
}

fn play<F: StoreFilter>(layout: Layout, make: fn(usize, Seed) -> Result<F, BuildError>, writes: u64) {
    let directory = Directory::new();
    let builder = RedbStore::builder().layout(layout).durability(Durability::Buffered);
    let store = builder.open(directory.file("store"), make).unwrap();
    let game = Game { store, versions: Versions::new(), over: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let game = &game;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut random = Random::new(writer);
                    for step in 0..writes {
                        game.write(writer, &mut random);
                        game.read(random.below(KEYS));
                        if step % 64 == 63 {
                            game.store.snapshot().unwrap();
                        }
                    }
                })
            })
            .collect();
        for reader in WRITERS..8 {
            scope.spawn(move || game.reader(reader));
        }
        let ends: Vec<_> = writers.into_iter().map(ScopedJoinHandle::join).collect();
        game.over.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(|end| end.unwrap());
    });
    let model: Model = game.store.iter().unwrap().map(Result::unwrap).collect();
    for number in 0..KEYS / WRITERS * WRITERS {
        let version = game.versions.done[number as usize].load(Ordering::SeqCst);
        assert_eq!(model.contains_key(&key(number)[..]), version % 2 == 0);
    }
    check(&game.store, &model);
    let metrics = game.store.metrics();
    println!("{layout:?}: {metrics:?}");
    assert!(metrics.adaptations > 0 && metrics.failed_adaptations == 0, "{metrics:?}");
}

fn writes(few: u64) -> u64 {
    if std::env::var_os("BESOM_FULL").is_some() { 30 * few } else { few }
}

#[test]
fn eight_threads_on_a_telescoping_filter() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        play(
            layout,
            |_, seed| {
                TelescopingFilter::builder()
                    .capacity(16)
                    .seed(seed)
                    .false_positive_rate(0.1)
                    .growable()
                    .build()
            },
            writes(250),
        );
    }
}

#[test]
fn eight_threads_on_an_extension_filter() {
    play(
        Layout::Hashed,
        |_, seed| {
            ExtensionFilter::builder().capacity(16).seed(seed).false_positive_rate(0.1).growable().build()
        },
        writes(140),
    );
}

#[test]
fn eight_threads_on_a_cascade() {
    play(
        Layout::Ordered,
        |_, seed| AdaptiveBloomFilter::builder().capacity(500).false_positive_rate(0.1).seed(seed).build(),
        writes(100),
    );
}
