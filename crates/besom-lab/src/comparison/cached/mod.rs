//! The simplest way to adapt: remember false positives, and answer "absent" for these.

mod clock;
mod lru;

use std::ops::RangeInclusive;

use besom::any::{AnyRemoteError, DynFilter, DynFilterError};
use besom::{Adaptation, Authority, FilterStats, InvariantError, Remote, Seed, Settled};

pub use clock::Clock;
pub use lru::Lru;

/// Keys that turned out to be absent, as many as there is room for.
pub trait Memory: Send + Sync {
    /// Whether this key is remembered; it counts as used then.
    fn knows(&self, key: &[u8]) -> bool;
    /// Remembers a key, in the place of another one if need be. `false` if there is no room at all.
    fn remember(&mut self, key: &[u8]) -> bool;
    /// Forgets a key that is stored now.
    fn forget(&mut self, key: &[u8]);
    /// Forgets all keys.
    fn clear(&mut self);
    /// How many keys are remembered.
    fn len(&self) -> usize;
    /// Whether no key is remembered.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The memory that it may take, in bits.
    fn bits(&self) -> usize;
    /// Checks the invariants.
    ///
    /// # Errors
    ///
    /// [`InvariantError`] with the first violation found.
    fn verify(&self) -> Result<(), InvariantError>;
}

/// A filter that does not adapt, and a memory of its latest false positives.
///
/// ```
/// use besom::any::dyn_removable;
/// use besom_lab::comparison::{Cached, Clock, VacuumFilter};
/// use besom_lab::subject::Subject;
///
/// let cached = Cached::new(dyn_removable(VacuumFilter::new(10, 4, 0.95, 1)), Clock::new(2, 64));
/// let mut filter: Subject = Subject::new(Box::new(cached));
/// (0..10_u64).try_for_each(|key| filter.insert(&key.to_le_bytes()).map(drop))?;
/// let absent = (10..1000_u64).find(|key| filter.contains(&key.to_le_bytes())).unwrap();
/// filter.adapt(&absent.to_le_bytes())?;
/// assert!(!filter.contains(&absent.to_le_bytes()));
/// # Ok::<(), besom::any::DynFilterError>(())
/// ```
pub struct Cached<M> {
    filter: Box<dyn DynFilter>,
    memory: M,
    adaptations: u64,
}

impl<M: Memory> Cached<M> {
    /// A filter with a memory beside it.
    #[must_use]
    pub fn new(filter: Box<dyn DynFilter>, memory: M) -> Self {
        Self { filter, memory, adaptations: 0 }
    }
}

type DynRemote<'r> = &'r mut dyn Remote<Error = AnyRemoteError>;

impl<M: Memory> DynFilter for Cached<M> {
    fn contains(&self, key: &[u8]) -> bool {
        self.filter.contains(key) && !self.memory.knows(key)
    }

    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
        answers.clear();
        answers.extend(keys.iter().map(|key| self.contains(key)));
    }

    fn insert(&mut self, key: &[u8], remote: DynRemote<'_>) -> Result<bool, DynFilterError> {
        let new = !self.contains(key);
        self.filter.insert(key, remote)?;
        self.memory.forget(key);
        Ok(new)
    }

    fn remove(&mut self, key: &[u8], remote: DynRemote<'_>) -> Result<bool, DynFilterError> {
        self.filter.remove(key, remote)
    }

    fn adapt(&mut self, key: &[u8], _: DynRemote<'_>) -> Result<Adaptation, DynFilterError> {
        if !self.contains(key) {
            return Ok(Adaptation::NotFalsePositive);
        }
        if !self.memory.remember(key) {
            return Ok(Adaptation::Unfixable);
        }
        self.adaptations += 1;
        Ok(Adaptation::Fixed { slots: 1 })
    }

    fn clear(&mut self, remote: DynRemote<'_>) -> Result<(), DynFilterError> {
        self.filter.clear(remote)?;
        self.memory.clear();
        Ok(())
    }

    fn verify_remote(&self, remote: DynRemote<'_>) -> Result<(), DynFilterError> {
        self.filter.verify_remote(remote)
    }

    fn settle(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: DynRemote<'_>,
    ) -> Result<Settled, DynFilterError> {
        self.filter.settle(addresses, authority, remote)
    }

    fn is_adaptive(&self) -> bool {
        self.filter.is_adaptive()
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.memory.verify()?;
        self.filter.verify()
    }

    fn false_positive_rate(&self) -> f64 {
        self.filter.false_positive_rate()
    }

    fn stats(&self) -> FilterStats {
        let mut stats = self.filter.stats();
        stats.adaptivity_bits = self.memory.bits();
        stats.bits += stats.adaptivity_bits;
        stats.adaptations = self.adaptations;
        stats.adapted_slots = self.memory.len();
        stats
    }

    fn len(&self) -> usize {
        self.filter.len()
    }

    fn capacity(&self) -> usize {
        self.filter.capacity()
    }

    fn seed(&self) -> Seed {
        self.filter.seed()
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a cache that grows beyond its bound, loses its index, or hides a stored key.
    use besom::any::{AnyRemote, dyn_removable};
    use besom::testing::NullRemote;

    use super::super::VacuumFilter;
    use super::*;
    use crate::random::Random;

    fn cached<M: Memory>(keys: usize, memory: M) -> Cached<M> {
        Cached::new(dyn_removable(VacuumFilter::new(keys, 4, 0.95, 1)), memory)
    }

    fn in_use<M: Memory>(memory: M) -> Cached<M> {
        let (mut random, mut remote) = (Random::new(1), AnyRemote(NullRemote));
        let mut filter = cached(200, memory);
        let mut stored = Vec::new();
        for _ in 0..20_000 {
            let key = random.below(400);
            let bytes = key.to_le_bytes();
            if stored.len() < 150 && random.below(40) == 0 && !stored.contains(&key) {
                filter.insert(&bytes, &mut remote).unwrap();
                stored.push(key);
            } else if filter.contains(&bytes) && !stored.contains(&key) {
                filter.adapt(&bytes, &mut remote).unwrap();
                assert!(!filter.contains(&bytes));
            }
            filter.verify().unwrap();
            assert!(stored.iter().all(|key| filter.contains(&key.to_le_bytes())));
        }
        filter
    }

    #[test]
    fn remembers_so_many_false_positives_and_no_stored_key() {
        let mut filter = in_use(Clock::new(8, 64));
        assert_eq!(filter.memory.len(), 8);
        filter.clear(&mut AnyRemote(NullRemote)).unwrap();
        assert!(filter.is_empty() && filter.verify().is_ok() && filter.stats().adapted_slots == 0);
        let filter = in_use(Lru::new(Lru::bytes(4), 1));
        assert!((7..=14).contains(&filter.memory.len()), "{}", filter.memory.len());
    }

    #[test]
    fn a_cache_of_nothing_adapts_nothing() {
        let (mut filter, mut remote) = (cached(10, Clock::new(0, 64)), AnyRemote(NullRemote));
        filter.insert(b"key", &mut remote).unwrap();
        assert_eq!(filter.adapt(b"key", &mut remote).unwrap(), Adaptation::Unfixable);
        assert_eq!(filter.adapt(b"other", &mut remote).unwrap(), Adaptation::NotFalsePositive);
    }
}
