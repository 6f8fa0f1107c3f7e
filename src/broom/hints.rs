//! Which queries have to look beyond the primary table.
//!
//! About one key in a hundred is not in the primary table, and no query should pay for that but those that might
//! find one there. The quotients are taken in groups; a bit says whether keys of a group are elsewhere, a
//! counter how many. Queries read the bits, which are few enough to stay in the cache; only what moves keys
//! touches the counters.

use crate::bits::PackedSlots;
use crate::{BuildError, InvariantError, error::ensure};

/// log2 of the quotients of a group.
///
/// Measured at 2^20 slots and load 0.90: see the module documentation of [`broom`](super).
const GROUP_SHIFT: u32 = 3;

/// The width of a counter. One that is full stays full: its group costs a look for ever, which is correct.
const COUNTER_BITS: u32 = 4;
const FULL: u64 = (1 << COUNTER_BITS) - 1;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Hints {
    bits: Vec<u64>,
    counters: PackedSlots,
}

impl Hints {
    pub(super) fn new(slots: u64) -> Result<Self, BuildError> {
        let groups = (slots >> GROUP_SHIFT) as usize + 1;
        let out_of_memory = BuildError::OutOfMemory { bytes: groups };
        let counters = PackedSlots::new(groups, COUNTER_BITS).ok_or(out_of_memory)?;
        Ok(Self { bits: vec![0; groups / 64 + 1], counters })
    }

    /// The memory in use, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        self.bits.len() * 64 + self.counters.memory() * 8
    }

    /// Whether a key of this quotient may be elsewhere.
    #[inline(always)]
    pub(super) fn get(&self, quotient: u64) -> bool {
        let group = quotient >> GROUP_SHIFT;
        self.bits[(group / 64) as usize] >> (group % 64) & 1 == 1
    }

    /// The share of the quotients for which [`get`](Self::get) says yes.
    pub(super) fn density(&self) -> f64 {
        let ones: u32 = self.bits.iter().map(|word| word.count_ones()).sum();
        f64::from(ones) / self.counters.len() as f64
    }

    /// A key of this quotient went elsewhere.
    pub(super) fn add(&mut self, quotient: u64) {
        let group = (quotient >> GROUP_SHIFT) as usize;
        self.counters.set(group, (self.counters.get(group) + 1).min(FULL));
        self.bits[group / 64] |= 1 << (group % 64);
    }

    /// A key of this quotient is no longer elsewhere.
    pub(super) fn remove(&mut self, quotient: u64) {
        let group = (quotient >> GROUP_SHIFT) as usize;
        let count = self.counters.get(group);
        debug_assert!(count > 0, "more keys of quotient {quotient} came back than went");
        if count < FULL {
            self.counters.set(group, count.saturating_sub(1));
            self.bits[group / 64] &= !(u64::from(count <= 1) << (group % 64));
        }
    }

    /// Checks against the quotients of all keys that are elsewhere.
    pub(super) fn verify(&self, elsewhere: impl Iterator<Item = u64>) -> Result<(), InvariantError> {
        let mut counts = vec![0_u64; self.counters.len()];
        elsewhere.for_each(|quotient| counts[(quotient >> GROUP_SHIFT) as usize] += 1);
        for (group, &count) in counts.iter().enumerate() {
            let counter = self.counters.get(group);
            ensure!(counter == FULL || counter == count, "hint {group} counts {counter} keys of {count}");
            let bit = self.bits[group / 64] >> (group % 64) & 1 == 1;
            ensure!(bit == (counter > 0), "hint {group} is {bit} with a count of {counter}");
        }
        Ok(())
    }
}
