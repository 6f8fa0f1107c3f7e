//! An exact set of digests: what a filter falls back on when it must tell keys apart for certain.

use crate::Digest;
use crate::format::{FormatError, unsound};

/// A set of digests in one open-addressed array: 20 to 30 bytes each.
///
/// A digest belongs at place `lo`·slots / 2⁶⁴ or, if that is taken, in the next free one.
#[derive(Debug, Clone, Default)]
pub(crate) struct DigestSet {
    /// The all-zero digest marks a free slot; at least one slot is free, unless there are none at all.
    slots: Vec<Digest>,
    len: usize,
    /// Whether the all-zero digest is in the set.
    zero: bool,
}

const FREE: Digest = Digest { hi: 0, lo: 0 };

impl DigestSet {
    /// How many digests are stored.
    pub(crate) fn len(&self) -> usize {
        self.len + usize::from(self.zero)
    }

    /// The memory in use, in bits.
    pub(crate) fn memory_bits(&self) -> usize {
        self.slots.capacity() * size_of::<Digest>() * 8
    }

    #[inline]
    pub(crate) fn contains(&self, digest: Digest) -> bool {
        if digest == FREE { self.zero } else { self.find(digest).is_ok() }
    }

    /// Makes room for this many more digests. If there is no memory for them: how many bytes were asked for.
    pub(crate) fn reserve(&mut self, digests: usize) -> Result<(), usize> {
        // At most four fifths full.
        let needed = (self.len + digests) * 5 / 4 + 1;
        if needed <= self.slots.len() {
            return Ok(());
        }
        let slots = needed.max(self.slots.len() * 3 / 2).max(16);
        let mut larger = Self { slots: Vec::new(), len: 0, zero: self.zero };
        larger.slots.try_reserve_exact(slots).map_err(|_| slots * size_of::<Digest>())?;
        larger.slots.resize(slots, FREE);
        self.slots.iter().filter(|&&digest| digest != FREE).for_each(|&digest| larger.place(digest));
        *self = larger;
        Ok(())
    }

    /// Inserts a digest, for which [`reserve`](Self::reserve) has made room. `false` if it was there already.
    pub(crate) fn insert(&mut self, digest: Digest) -> bool {
        if digest == FREE {
            return !std::mem::replace(&mut self.zero, true);
        }
        let before = self.len;
        self.place(digest);
        self.len > before
    }

    /// Removes a digest. `false` if it was not there.
    pub(crate) fn remove(&mut self, digest: Digest) -> bool {
        if digest == FREE {
            return std::mem::replace(&mut self.zero, false);
        }
        let Ok(mut hole) = self.find(digest) else { return false };
        let mut next = hole;
        // Those behind the hole move up, unless they would come to lie before the place where they belong.
        loop {
            next = self.after(next);
            let candidate = self.slots[next];
            if candidate == FREE {
                break;
            }
            let (home, slots) = (self.home(candidate), self.slots.len());
            let distance = |from: usize, to: usize| (to + slots - from) % slots;
            if distance(home, next) >= distance(hole, next) {
                self.slots[hole] = candidate;
                hole = next;
            }
        }
        self.slots[hole] = FREE;
        self.len -= 1;
        true
    }

    /// All digests, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Digest> {
        self.slots.iter().copied().filter(|&digest| digest != FREE).chain(self.zero.then_some(FREE))
    }

    /// All digests as words, in ascending order: equal sets give equal words.
    pub(crate) fn to_words(&self) -> Vec<u64> {
        let mut digests: Vec<u128> = self.iter().map(Digest::to_u128).collect();
        digests.sort_unstable();
        digests.into_iter().map(Digest::from_u128).flat_map(|Digest { hi, lo }| [hi, lo]).collect()
    }

    /// The set that these words are.
    pub(crate) fn from_words(words: &[u64]) -> Result<Self, FormatError> {
        let mut set = Self::default();
        let digests = words.as_chunks::<2>().0;
        set.reserve(digests.len()).map_err(|bytes| FormatError::OutOfMemory { bytes })?;
        let mut last = None;
        for digest in digests.iter().map(|&[hi, lo]| Digest { hi, lo }) {
            if last.replace(digest.to_u128()).is_some_and(|last| last >= digest.to_u128()) {
                return Err(unsound("digests that are not in order"));
            }
            if digest != FREE && set.is_far(digest) {
                return Err(unsound("digests that no hash function makes"));
            }
            set.insert(digest);
        }
        Ok(set)
    }

    /// Whether a digest would come to lie so far from its home as never happens unless somebody chooses digests to
    /// make queries slow. At four fifths full, a place k behind home is reached with probability e^(−0.023·k).
    fn is_far(&self, digest: Digest) -> bool {
        const FAR: usize = 2048;
        let home = self.home(digest);
        let taken = |&slot: &usize| self.slots[slot] != FREE && self.slots[slot] != digest;
        let run = std::iter::successors(Some(home), |&slot| Some(self.after(slot)));
        run.take(FAR).take_while(taken).count() == FAR
    }

    /// Forgets all digests and gives the memory back.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn place(&mut self, digest: Digest) {
        if let Err(free) = self.find(digest) {
            self.slots[free] = digest;
            self.len += 1;
        }
    }

    /// The slot of a digest, or the free one where it would go.
    fn find(&self, digest: Digest) -> Result<usize, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        let mut slot = self.home(digest);
        loop {
            match self.slots[slot] {
                found if found == digest => return Ok(slot),
                FREE => return Err(slot),
                _ => slot = self.after(slot),
            }
        }
    }

    fn home(&self, digest: Digest) -> usize {
        ((u128::from(digest.lo) * self.slots.len() as u128) >> 64) as usize
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }
}

/// The same digests, wherever they lie.
impl PartialEq for DigestSet {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|digest| other.contains(digest))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::testing::Random;

    #[test]
    fn words_that_are_no_set_are_refused() {
        let words = [0, 0, 0, 7, 1, 2, 1, 9];
        let set = DigestSet::from_words(&words).unwrap();
        assert_eq!((set.len(), set.to_words().as_slice()), (4, &words[..]));
        for wrong in [[0, 0, 0, 0], [1, 2, 1, 2], [1, 9, 1, 2], [5, 5, 4, 9]] {
            assert!(DigestSet::from_words(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_set_agrees_with_the_standard_one_even_when_digests_crowd() {
        let mut random = Random::new(17);
        // Few different values of `lo`, close to either end, make long chains that wrap around.
        let mut digest = || {
            let lo = if random.one_in(2) { random.below(3) } else { u64::MAX - random.below(3) };
            (Digest { hi: random.below(6), lo }, random.below(3))
        };
        let (mut set, mut model) = (DigestSet::default(), HashSet::new());
        for step in 0..20_000 {
            let (digest, choice) = digest();
            assert_eq!(set.contains(digest), model.contains(&digest));
            if choice > 0 {
                set.reserve(1).unwrap();
                assert_eq!(set.insert(digest), model.insert(digest));
            } else {
                assert_eq!(set.remove(digest), model.remove(&digest));
            }
            assert_eq!(set.len(), model.len());
            if step % 100 == 0 {
                assert_eq!(set.iter().collect::<HashSet<_>>(), model);
                let mut other = DigestSet::default();
                other.reserve(3 * model.len()).unwrap();
                model.iter().for_each(|&digest| assert!(other.insert(digest)));
                assert_eq!(set, other);
                let empty = DigestSet::default();
                assert_eq!((set == empty, empty == set), (model.is_empty(), model.is_empty()));
            }
        }
        set.clear();
        assert_eq!((set.len(), set.iter().count(), set.memory_bits()), (0, 0, 0));
    }
}
