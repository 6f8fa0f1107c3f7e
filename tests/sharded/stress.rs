//! Catches: an operation that takes effect in pieces, or not at all, when others run beside it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use besom::quotient::QuotientFilter;
use besom::sharded::ShardedError;
use besom::testing::{Fault, Faults, Faulty, Random};
use besom::{Adaptive, AdaptiveError, BuildError, Filter, MemoryRemote, Seed, Sharded};

use super::times;
use crate::for_every_family;

const KEYS: u64 = 600;
const THREADS: u64 = 4;

/// An exact set that many threads change and ask. A key is changed by one of them at a time, who keeps its lock while the
/// filter changes; those who ask see by its version whether it was changed meanwhile.
struct Exact {
    locks: Vec<Mutex<()>>,
    /// Grows by 8 with each change; the lowest two bits are the state.
    versions: Vec<AtomicU64>,
}

/// What is known of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Present,
    /// A change is under way, or has failed half-way.
    Unknown,
}

impl Exact {
    fn new() -> Self {
        Self {
            locks: (0..KEYS).map(|_| Mutex::new(())).collect(),
            versions: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The version of a key, and its state.
    fn ask(&self, key: u64) -> (u64, State) {
        let version = self.versions[key as usize].load(Ordering::SeqCst);
        (version, [State::Absent, State::Present, State::Unknown][(version % 4).min(2) as usize])
    }

    /// Changes a key with nobody else. `change` says what it has become.
    fn change(&self, key: u64, change: impl FnOnce(State) -> State) {
        let _lock = self.locks[key as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let version = &self.versions[key as usize];
        let (before, old) = self.ask(key);
        let base = before / 4 * 4;
        version.store(base + 4 + 2, Ordering::SeqCst);
        let state = match change(old) {
            State::Absent => 0,
            State::Present => 1,
            State::Unknown => 2,
        };
        version.store(base + 8 + state, Ordering::SeqCst);
    }

    /// A key that is there before and after the query must be found by it.
    fn check(&self, key: u64, contains: impl FnOnce() -> bool) {
        let before = self.ask(key);
        let found = contains();
        if before.1 == State::Present && self.ask(key) == before {
            assert!(found, "key {key} was lost");
        }
    }
}

/// Threads that insert, remove, repair and ask at once, over one remote that may fail.
fn endure<F>(name: &str, faults: &[Fault], build: impl Fn(usize, Seed) -> Result<F, BuildError>)
where
    F: Adaptive + Clone + Send + Sync,
{
    let filter = Sharded::build(5, 400, |capacity, _| build(capacity, Seed::from(3_u64))).unwrap();
    let one_in = if faults.is_empty() { 0 } else { 50 };
    let remote = Mutex::new(Faulty::new(MemoryRemote::new(), Faults::random(3, one_in, faults)));
    let exact = Exact::new();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (filter, remote, exact) = (&filter, &remote, &exact);
            scope.spawn(move || {
                let (mut shared, mut random) = (filter.with_remote(remote), Random::new(thread));
                for _ in 0..times(40_000) {
                    let key = random.below(KEYS);
                    match random.below(10) {
                        0 | 1 => exact.change(key, |old| match shared.insert(&key) {
                            Ok(_) => State::Present,
                            Err(ShardedError::Filter(AdaptiveError::Full(_))) => old,
                            Err(_) => State::Unknown,
                        }),
                        2 => exact.change(key, |_| match shared.remove(&key) {
                            Ok(_) => State::Absent,
                            Err(_) => State::Unknown,
                        }),
                        3 => drop(shared.adapt(&key)),
                        4 if random.one_in(50) => drop(shared.settle()),
                        _ => exact.check(key, || filter.contains(&key)),
                    }
                    if random.one_in(200) {
                        ask_many(filter, exact);
                    }
                }
            });
        }
    });
    remote.lock().unwrap().faults.set_one_in(0);
    let mut shared = filter.with_remote(&remote);
    filter.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
    shared.settle().unwrap();
    (0..KEYS).for_each(|key| exact.check(key, || filter.contains(&key)));
    if faults.is_empty() {
        shared.verify_remote().unwrap_or_else(|error| panic!("{name}: {error}"));
        let present = (0..KEYS).filter(|&key| exact.ask(key).1 == State::Present).count();
        let unknown = (0..KEYS).filter(|&key| exact.ask(key).1 == State::Unknown).count();
        assert!((present..=present + unknown).contains(&filter.len()), "{name}");
    }
}

fn ask_many<F: Filter>(filter: &Sharded<F>, exact: &Exact) {
    let keys: Vec<u64> = (0..KEYS).collect();
    let before: Vec<_> = keys.iter().map(|&key| exact.ask(key)).collect();
    let mut answers = Vec::new();
    filter.contains_many(&keys, &mut answers);
    for ((&key, before), answer) in keys.iter().zip(before).zip(answers) {
        exact.check(key, || exact.ask(key) != before || before.1 != State::Present || answer);
    }
}

fn without_faults<F>(name: &str, build: impl Fn(usize, Seed) -> Result<F, BuildError>)
where
    F: Adaptive + Clone + Send + Sync,
{
    endure(name, &[], build);
}

fn with_faults<F>(name: &str, build: impl Fn(usize, Seed) -> Result<F, BuildError>)
where
    F: Adaptive + Clone + Send + Sync,
{
    endure(name, &[Fault::FailBefore, Fault::FailAfter], build);
}

#[test]
fn threads_insert_remove_repair_and_ask_at_once() {
    for_every_family!(without_faults);
}

#[test]
fn threads_share_a_remote_that_fails() {
    for_every_family!(with_faults);
}

#[test]
fn threads_share_a_plain_filter() {
    let filter = Sharded::build(5, 700, |capacity, _| {
        QuotientFilter::builder().capacity(capacity).seed(1_u64).build()
    });
    let (filter, exact) = (filter.unwrap(), Exact::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (filter, exact) = (&filter, &exact);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for _ in 0..times(400_000) {
                    let (key, action) = (random.below(KEYS), random.below(6));
                    match action {
                        // Multiset semantics: each key once.
                        0 => exact.change(key, |old| {
                            assert!(old == State::Present || filter.insert(&key).is_ok());
                            State::Present
                        }),
                        1 => exact.change(key, |old| {
                            assert!(old == State::Absent || filter.remove(&key).unwrap());
                            State::Absent
                        }),
                        _ => exact.check(key, || filter.contains(&key)),
                    }
                    if random.one_in(1_000) {
                        ask_many(filter, exact);
                    }
                }
            });
        }
    });
    filter.verify().unwrap();
    assert_eq!(filter.len(), (0..KEYS).filter(|&key| exact.ask(key).1 == State::Present).count());
}
