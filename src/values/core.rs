//! The filter under every scheme: its fields, queries, and what concerns it as a whole.

use crate::hash_string::HashString;
use crate::quotient::{Answer, Place, Run, Table};
use crate::{
    AdaptiveError, BuildError, Digest, FilterStats, InvariantError, KeyHasher, Remote, RemoteResult,
    error::ensure,
    filter::{clear_remote, collision_rate},
};

use super::{Doubt, Scheme, ValueOf, ValueStore};

/// A quotient table whose slots have values.
#[derive(Debug, Clone)]
pub(crate) struct Core<S: Scheme, H> {
    pub(super) table: Table,
    pub(super) values: S::Store,
    pub(super) scheme: S,
    pub(super) hasher: H,
    pub(super) capacity: usize,
    pub(super) growable: bool,
    pub(super) adaptations: u64,
    pub(super) resets: u64,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    pub(super) fn new(table: Table, values: S::Store, scheme: S, hasher: H, capacity: usize) -> Self {
        Self { table, values, scheme, hasher, capacity, growable: false, adaptations: 0, resets: 0 }
    }

    /// Where a key belongs, and its further hash bits.
    #[inline(always)]
    pub(super) fn locate(&self, digest: Digest) -> (u64, HashString<'_, H>) {
        let Place { quotient, fraction } = self.table.locate(digest.hi);
        (quotient, HashString::new(&self.hasher, digest, fraction, self.table.fraction_bits()))
    }

    #[inline(always)]
    pub(crate) fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_at(self.place(digest), || digest)
    }

    #[inline(always)]
    pub(crate) fn place(&self, digest: Digest) -> Place {
        if S::MOVES_REMAINDER {
            self.table.locate_string(digest.hi, digest.lo)
        } else {
            self.table.locate(digest.hi)
        }
    }

    #[inline]
    pub(crate) fn prefetch(&self, place: Place) {
        self.table.prefetch(place.quotient);
    }

    #[inline(always)]
    pub(crate) fn contains_at(&self, place: Place, digest: impl FnOnce() -> Digest) -> bool {
        // One branch, nearly never taken: yes or no is the value of the answer.
        let answer = self.table.answer(place);
        if answer.asks() {
            return self.settle(answer, digest());
        }
        answer == Answer::YES
    }

    /// Apart from its caller, which shall need few registers.
    #[cold]
    #[inline(never)]
    fn settle(&self, answer: Answer, digest: Digest) -> bool {
        let (quotient, key) = self.locate(digest);
        let Some(slots) = answer.slots() else { return self.contains_anywhere(quotient, &key) };
        let (block, _) = self.table.block_of(quotient);
        self.scheme.settle(&self.table, &self.values, Doubt { block, slots }, &key)
    }

    /// Whether some slot of the quotient accepts the key, wherever its run lies.
    pub(super) fn contains_anywhere(&self, quotient: u64, key: &HashString<'_, H>) -> bool {
        let Some(run) = self.table.run(quotient) else { return false };
        let accepts = |slot, value| self.scheme.accepts(self.table.remainder(slot), value, key);
        self.values.any(&self.table, run, accepts)
    }

    pub(crate) fn hasher(&self) -> &H {
        &self.hasher
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn false_positive_rate(&self) -> f64 {
        collision_rate(self.capacity, self.table.slots(), self.table.remainder_bits())
    }

    pub(crate) fn stats(&self) -> FilterStats {
        let (items, slots) = (self.table.len(), self.table.slots() as usize);
        let code_bits = self.table.blocks() * self.table.code_bits() as usize;
        FilterStats {
            items,
            slots,
            load: items as f64 / slots as f64,
            bits: self.table.memory_bits() + self.values.memory_bits(),
            adaptations: self.adaptations,
            resets: self.resets,
            spills: self.values.spills(),
            adapted_slots: self.values.adapted(),
            adaptivity_bits: code_bits + self.values.memory_bits(),
            ..FilterStats::default()
        }
    }

    /// How many slots in use have a value of each number. Walks the whole filter.
    pub(crate) fn histogram(&self, number: impl Fn(ValueOf<S>) -> usize) -> Vec<usize> {
        let mut counts = Vec::new();
        for (_, run) in self.table.runs() {
            self.values.any(&self.table, run, |_, value| {
                let number = number(value);
                if counts.len() <= number {
                    counts.resize(number + 1, 0);
                }
                counts[number] += 1;
                false
            });
        }
        counts
    }

    /// Values have changed: lets queries look for what the slots now hold.
    pub(super) fn choose_probe(&mut self) {
        self.table.set_probe(self.scheme.probe(&self.table, &self.values));
    }

    /// Removes all keys and repairs from filter and remote.
    pub(crate) fn clear<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        let bytes = self.table.physical_slots() as usize;
        let values = self.values.emptied(&self.table).ok_or(AdaptiveError::OutOfMemory { bytes })?;
        clear_remote(remote)?;
        self.table.clear();
        self.values = values;
        self.choose_probe();
        Ok(())
    }

    pub(crate) fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()?;
        self.values.verify(&self.table)?;
        let (probe, needed) = (self.table.probe(), self.scheme.probe(&self.table, &self.values));
        ensure!(probe == needed, "queries look for {probe:?}, but values ask for {needed:?}");
        // Only slots in use have values.
        let mut in_use = 0;
        for (_, run) in self.table.runs() {
            self.values.any(&self.table, run, |_, value| {
                in_use += usize::from(value != ValueOf::<S>::default());
                false
            });
        }
        let adapted = self.values.adapted();
        ensure!(in_use == adapted, "{adapted} adapted slots, but {in_use} of them in use");
        Ok(())
    }

    /// An empty filter of the same parameters.
    pub(crate) fn emptied(&self) -> Result<Self, BuildError> {
        let table = self.table.like(self.table.slots())?;
        let bytes = table.physical_slots() as usize;
        let values = self.values.emptied(&table).ok_or(BuildError::OutOfMemory { bytes })?;
        let core = Self::new(table, values, self.scheme, self.hasher.clone(), self.capacity);
        let Self { growable, adaptations, resets, .. } = *self;
        Ok(Self { growable, adaptations, resets, ..core })
    }
}

/// Two filters are equal if they have the same parameters and hash function, and the same remainders and values in the
/// same slots. What was counted so far is not compared.
impl<S: Scheme, H: KeyHasher> PartialEq for Core<S, H> {
    fn eq(&self, other: &Self) -> bool {
        let bits = |core: &Self| (core.table.remainder_bits(), core.table.code_bits());
        let shape = |core: &Self| (core.table.slots(), bits(core), core.values.overflow());
        let parameters = |core: &Self| (core.capacity, core.growable, core.table.len());
        let value = |core: &Self, slot: u64| {
            let mut value = None;
            core.values.any(&core.table, Run { first: slot, last: slot }, |_, found| {
                value = Some(found);
                true
            });
            (core.table.remainder(slot), value)
        };
        shape(self) == shape(other)
            && parameters(self) == parameters(other)
            && self.hasher == other.hasher
            && self.table.runs().eq(other.table.runs())
            && self.table.iter().all(|item| value(self, item.slot) == value(other, item.slot))
    }
}
