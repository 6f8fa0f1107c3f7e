//! Catches: a guard that forgets a key, counts wrongly, or is out of step with its dictionary after an operation
//! that failed half-way.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::testing::Random;
use crate::{
    Adaptation, Digest, Filter, FilterStats, FullError, InvariantError, KeyHasher, MissingEntry, Xxh3,
};

/// A bad but adaptive filter: 8 cells with counters, and a set of known false positives.
struct Toy {
    hasher: Xxh3,
    cells: [usize; 8],
    fixed: HashSet<u128>,
}

impl Toy {
    fn new() -> Self {
        Self { hasher: Xxh3::with_seed(5_u64.into()), cells: [0; 8], fixed: HashSet::new() }
    }

    fn rank<R: Remote>(&self, key: &[u8], remote: &mut R) -> Result<Option<usize>, AdaptiveError<R::Error>> {
        let (mut rank, mut at) = (None, 0);
        let visit = &mut |stored: &[u8]| {
            rank = if stored == key { Some(at) } else { rank };
            at += 1;
        };
        remote.read(self.digest(key).hi % 8, visit).map_err(AdaptiveError::Remote)?;
        Ok(rank)
    }
}

impl Filter for Toy {
    type Hasher = Xxh3;
    type Place = Digest;

    fn hasher(&self) -> &Xxh3 {
        &self.hasher
    }

    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.cells[(digest.hi % 8) as usize] > 0 && !self.fixed.contains(&digest.to_u128())
    }

    fn len(&self) -> usize {
        self.cells.iter().sum()
    }

    fn capacity(&self) -> usize {
        20
    }

    fn stats(&self) -> FilterStats {
        FilterStats::default()
    }

    fn verify(&self) -> Result<(), InvariantError> {
        Ok(())
    }
}

impl Adaptive for Toy {
    fn insert<K: Key + ?Sized, R: Remote>(
        &mut self,
        key: &K,
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let (len, capacity) = (self.len(), self.capacity());
        key.with_bytes(|key| {
            let digest = self.digest(key);
            if self.rank(key, remote)?.is_some() {
                return Ok(false);
            } else if len == capacity {
                return Err(FullError { len, capacity }.into());
            }
            remote.apply(&[Change::Push { address: digest.hi % 8, key }]).map_err(AdaptiveError::Remote)?;
            self.cells[(digest.hi % 8) as usize] += 1;
            self.fixed.remove(&digest.to_u128());
            Ok(true)
        })
    }

    fn remove<K: Key + ?Sized, R: Remote>(
        &mut self,
        key: &K,
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        key.with_bytes(|key| {
            let address = self.digest(key).hi % 8;
            let Some(rank) = self.rank(key, remote)? else { return Ok(false) };
            remote.apply(&[Change::Remove { address, rank, key }]).map_err(AdaptiveError::Remote)?;
            self.cells[address as usize] -= 1;
            Ok(true)
        })
    }

    fn adapt<K: Key + ?Sized, R: Remote>(
        &mut self,
        key: &K,
        remote: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>> {
        key.with_bytes(|key| {
            let digest = self.digest(key);
            if !self.contains_digest(digest) || self.rank(key, remote)?.is_some() {
                return Ok(Adaptation::NotFalsePositive);
            }
            self.fixed.insert(digest.to_u128());
            Ok(Adaptation::Fixed { slots: 1 })
        })
    }

    fn clear<R: Remote>(&mut self, _: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        unreachable!("nobody clears a toy")
    }

    fn verify_remote<R: Remote>(&self, _: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        Ok(())
    }

    fn resync<R: Remote>(&mut self, _: &[u64], _: &mut R) -> Result<crate::Resync, AdaptiveError<R::Error>> {
        Ok(crate::Resync::InQuestion { slots: 1 })
    }

    fn emptied(&self) -> Result<Self, crate::BuildError> {
        Ok(Self::new())
    }
}

#[derive(Debug, Error, PartialEq)]
#[error("out of order")]
struct OutOfOrder;

/// A remote or dictionary that fails while its fuse is blown.
struct Faulty<T> {
    inner: T,
    broken: bool,
}

impl<T> Faulty<T> {
    fn new(inner: T) -> Self {
        Self { inner, broken: false }
    }

    fn check(&self) -> Result<(), OutOfOrder> {
        if self.broken { Err(OutOfOrder) } else { Ok(()) }
    }
}

impl Remote for Faulty<MemoryRemote> {
    type Error = OutOfOrder;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), OutOfOrder> {
        self.check()?;
        self.inner.read(address, visit).map_err(|MissingEntry { .. }| OutOfOrder)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), OutOfOrder> {
        self.check()?;
        self.inner.apply(changes).map_err(|MissingEntry { .. }| OutOfOrder)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), OutOfOrder> {
        self.check()?;
        self.inner.scan(visit).map_err(|MissingEntry { .. }| OutOfOrder)
    }
}

impl Dictionary for Faulty<MemoryDictionary<u64>> {
    type Value = u64;
    type Error = OutOfOrder;

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>, OutOfOrder> {
        self.check()?;
        let Ok(value) = self.inner.get(key);
        Ok(value)
    }

    fn insert(&mut self, key: &[u8], value: u64) -> Result<Option<u64>, OutOfOrder> {
        self.check()?;
        let Ok(value) = self.inner.insert(key, value);
        Ok(value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<u64>, OutOfOrder> {
        self.check()?;
        let Ok(value) = self.inner.remove(key);
        Ok(value)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), OutOfOrder> {
        self.check()?;
        let Ok(()) = self.inner.scan(visit);
        Ok(())
    }
}

#[test]
fn a_guard_answers_like_a_map_even_while_its_parts_fail() {
    let mut random = Random::new(21);
    let dictionary = Faulty::new(MemoryDictionary::new());
    let mut guard = Guard::with_remote(Toy::new(), dictionary, Faulty::new(MemoryRemote::new()));
    let mut model: HashMap<u64, u64> = HashMap::new();
    for step in 0..40_000 {
        guard.dictionary.broken = random.one_in(20);
        guard.remote.broken = random.one_in(20);
        let broken = guard.dictionary.broken || guard.remote.broken;
        let key = random.below(60);
        match random.below(6) {
            0 => match guard.insert(&key, step) {
                Ok(old) => assert_eq!(old, model.insert(key, step)),
                // Keys that a failure left behind in the filter take up room, so it may be full early.
                Err(GuardError::Filter(AdaptiveError::Full(_))) => assert_eq!(guard.filter.len(), 20),
                Err(_) => assert!(broken),
            },
            1 => match guard.remove(&key) {
                Ok(old) => assert_eq!(old, model.remove(&key)),
                Err(GuardError::Filter(_)) => assert!(broken && model.remove(&key).is_some()),
                Err(_) => assert!(broken),
            },
            _ => match guard.get(&key) {
                Ok(value) => assert_eq!(value, model.get(&key).copied()),
                Err(_) => assert!(broken),
            },
        }
        assert!(model.keys().all(|key| guard.contains(key)));
    }
    // Once everything works again, asking takes out what failures left behind.
    (guard.dictionary.broken, guard.remote.broken) = (false, false);
    for key in 0..60_u64 {
        assert_eq!(guard.get(&key).unwrap(), model.get(&key).copied());
    }
    assert_eq!(guard.filter.len(), model.len());
    let stats = guard.stats();
    assert_eq!(stats.queries, stats.negatives + stats.true_positives + stats.false_positives);
    assert!(stats.false_positives > 100 && stats.remote_reads > 0 && stats.remote_writes > 0);
}

#[test]
fn a_false_positive_gets_through_once() {
    let mut guard = Guard::new(Toy::new(), MemoryDictionary::new());
    for key in 0..10_u64 {
        assert_eq!(guard.insert(&key, key).unwrap(), None);
    }
    let absent = (100..200_u64).filter(|key| guard.contains(key)).count() as u64;
    for _ in 0..3 {
        assert!((100..200_u64).all(|key| guard.get(&key).unwrap().is_none()));
    }
    let stats = guard.stats();
    assert_eq!((stats.queries, stats.false_positives, stats.true_positives), (300, absent, 0));
    assert!((stats.false_positive_rate() - absent as f64 / 300.0).abs() < 1e-9);
    let (filter, dictionary, remote) = guard.into_parts();
    assert_eq!((filter.len(), dictionary.len(), remote.len()), (10, 10, 10));
}
