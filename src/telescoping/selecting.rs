//! What a selector means: a slot with selector i holds the i-th chunk of r bits of its key's hash string.
//!
//! ```text
//! | quotient | chunk 0 | chunk 1 | chunk 2 | …
//!              ├─ r ─┤
//! ```
//!
//! The string has no end, so chunks never repeat.

use crate::coding::{Letters, Selector, Selectors};
use crate::hash_string::HashString;
use crate::quotient::{CHUNKS, Probe, Table};
use crate::values::{CodedValues, Core, Doubt, ExplicitValues, Parameters, Scheme};
use crate::{BuildError, KeyHasher};

/// Selectors that the blocks' codes hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selecting {
    remainder_bits: u32,
}

/// Selectors with a byte each.
#[derive(Debug, Clone, Copy)]
pub(super) struct SelectingExplicitly {
    remainder_bits: u32,
}

impl Selecting {
    /// The filter that the parameters ask for.
    pub(super) fn core<H: KeyHasher>(parameters: Parameters) -> Result<Core<Self, H>, BuildError> {
        parameters.build(true, |table| {
            let remainder_bits = table.remainder_bits();
            Some((Self { remainder_bits }, CodedValues::new(parameters.overflow, table)))
        })
    }
}

impl SelectingExplicitly {
    /// The filter that the parameters ask for.
    pub(super) fn core<H: KeyHasher>(parameters: Parameters) -> Result<Core<Self, H>, BuildError> {
        parameters.build(false, |table| {
            let remainder_bits = table.remainder_bits();
            Some((Self { remainder_bits }, ExplicitValues::new(table)?))
        })
    }
}

/// The chunk of a selector.
#[inline(always)]
fn chunk<H: KeyHasher>(remainder_bits: u32, selector: u64, key: &HashString<'_, H>) -> u64 {
    key.bits(selector * u64::from(remainder_bits), remainder_bits)
}

/// The first selector behind `selector` (of `count`, in a circle) whose chunks of the two keys differ.
fn next_selector<H: KeyHasher>(
    remainder_bits: u32,
    selector: u64,
    count: u64,
    stored: &HashString<'_, H>,
    query: &HashString<'_, H>,
) -> Option<u64> {
    // Keys whose whole digests agree have the same string forever.
    if stored.digest() == query.digest() {
        return None;
    }
    let differ =
        |&selector: &u64| chunk(remainder_bits, selector, stored) != chunk(remainder_bits, selector, query);
    (1..count).map(|step| (selector + step) % count).find(differ)
}

impl Scheme for Selecting {
    type Store = CodedValues<Selectors>;

    const MOVES_REMAINDER: bool = true;

    fn for_remainder(remainder_bits: u32) -> Self {
        Self { remainder_bits }
    }

    #[inline(always)]
    fn remainder<H: KeyHasher>(&self, value: Selector, key: &HashString<'_, H>) -> u64 {
        chunk(self.remainder_bits, value.into(), key)
    }

    #[inline(always)]
    fn accepts<H: KeyHasher>(&self, remainder: u64, value: Selector, key: &HashString<'_, H>) -> bool {
        remainder == self.remainder(value, key)
    }

    fn next<H: KeyHasher>(
        &self,
        value: Selector,
        stored: &HashString<'_, H>,
        query: &HashString<'_, H>,
    ) -> Option<Selector> {
        let count = u64::from(Selector::MAX) + 1;
        next_selector(self.remainder_bits, value.into(), count, stored, query).map(|next| next as Selector)
    }

    /// Every chunk begins a bit later then: a repaired query comes back with probability ε/2.
    fn doubled<H: KeyHasher>(&self, value: Selector, _: &HashString<'_, H>) -> Selector {
        value
    }

    fn strictness(value: Selector) -> u32 {
        value.into()
    }

    fn probe(&self, _: &Table, values: &Self::Store) -> Probe {
        match values.highest() {
            0 => Probe::Matching,
            highest if highest <= values.highest_coded() => Probe::Chunks(highest),
            _ => Probe::UnlessSpilled,
        }
    }

    fn settle<H: KeyHasher>(
        &self,
        table: &Table,
        values: &Self::Store,
        Doubt { block, slots }: Doubt,
        key: &HashString<'_, H>,
    ) -> bool {
        let first_slot = table.first_slot(block);
        values.any_in_block(table, block, slots, |slot, selector| {
            self.accepts(table.remainder(first_slot + u64::from(slot)), selector, key)
        })
    }
}

impl Scheme for SelectingExplicitly {
    type Store = ExplicitValues;

    const MOVES_REMAINDER: bool = true;

    fn for_remainder(remainder_bits: u32) -> Self {
        Self { remainder_bits }
    }

    #[inline(always)]
    fn remainder<H: KeyHasher>(&self, value: u8, key: &HashString<'_, H>) -> u64 {
        chunk(self.remainder_bits, value.into(), key)
    }

    #[inline(always)]
    fn accepts<H: KeyHasher>(&self, remainder: u64, value: u8, key: &HashString<'_, H>) -> bool {
        remainder == self.remainder(value, key)
    }

    fn next<H: KeyHasher>(
        &self,
        value: u8,
        stored: &HashString<'_, H>,
        query: &HashString<'_, H>,
    ) -> Option<u8> {
        let count = u64::from(u8::MAX) + 1;
        next_selector(self.remainder_bits, value.into(), count, stored, query).map(|next| next as u8)
    }

    fn doubled<H: KeyHasher>(&self, value: u8, _: &HashString<'_, H>) -> u8 {
        value
    }

    fn strictness(value: u8) -> u32 {
        value.into()
    }

    fn probe(&self, _: &Table, values: &ExplicitValues) -> Probe {
        match values.largest() {
            0 => Probe::Matching,
            largest if u32::from(largest) <= Selectors::highest_coded(self.remainder_bits) => {
                Probe::Chunks(largest.into())
            }
            _ => Probe::Occupied,
        }
    }

    fn settle<H: KeyHasher>(
        &self,
        table: &Table,
        values: &ExplicitValues,
        Doubt { block, mut slots }: Doubt,
        key: &HashString<'_, H>,
    ) -> bool {
        if self.remainder_bits == 8 && u32::from(values.largest()) < CHUNKS {
            slots = table.narrow(block, slots, key.first_word());
        }
        let first = table.first_slot(block);
        while slots != 0 {
            let slot = first + u64::from(slots.trailing_zeros());
            if self.accepts(table.remainder(slot), values.get(slot), key) {
                return true;
            }
            slots &= slots - 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a probe that looks for other chunks than slots hold, or for fewer than codes do.
    use super::*;
    use crate::testing::Random;
    use crate::values::{Overflow, ValueStore};
    use crate::{Digest, Seed, Xxh3};

    #[test]
    fn queries_see_the_chunks_that_slots_hold_in_tables_of_any_size() {
        let mut random = Random::new(52);
        for slots in [1, 2, 3, 1_000, 1 << 20, (1 << 20) + 1, 1 << 25, (1 << 25) + 77] {
            let mut table = Table::new(slots, 8, true).unwrap();
            table.set_probe(Probe::UnlessSpilled);
            let hasher = Xxh3::with_seed(Seed::from(1_u64));
            for _ in 0..100 {
                let digest = Digest { hi: random.next(), lo: random.next() };
                let (place, string) = (table.locate(digest.hi), table.locate_string(digest.hi, digest.lo));
                let key = HashString::new(&hasher, digest, place.fraction, table.fraction_bits());
                // As much of it as is looked at.
                assert_eq!(string.quotient, place.quotient);
                assert_eq!(string.fraction >> 24, key.first_word() >> 24, "{slots}");
            }
        }
    }

    #[test]
    fn codes_hold_no_selector_that_a_probe_does_not_see() {
        for (bits, highest) in [(2, 4), (8, 4), (12, 4), (13, 3), (16, 3), (17, 2), (22, 1), (32, 1)] {
            assert_eq!(Selectors::highest_coded(bits), highest);
            let mut table = Table::new(100, bits, true).unwrap();
            let mut values = CodedValues::<Selectors>::new(Overflow::Spill, &table);
            let mut selectors = vec![0; table.slots_per_block() as usize];
            for selector in 1..9 {
                selectors[0] = selector;
                let spilled = values.store(&mut table, 0, &selectors);
                assert!(spilled || u32::from(selector) != highest + 1, "{bits}: {selector}");
                assert_eq!(values.spills() == 1, table.code(0) >> (table.code_bits() - 1) == 1);
                assert!(values.spills() == 1 || u32::from(selector) <= highest);
            }
        }
    }
}
