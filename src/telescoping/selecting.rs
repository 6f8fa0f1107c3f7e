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
use crate::quotient::{CHUNKS, HIGHEST_CHUNK, Probe, Table};
use crate::values::{CodedValues, Core, ExplicitValues, Parameters, Scheme, contains_anywhere};
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
            let letters = Selectors::for_remainder(remainder_bits);
            Some((Self { remainder_bits }, CodedValues::new(letters, parameters.overflow, table)))
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

/// The probe for selectors of at least 1 and at most `highest`, if there is one that needs no more than the fraction.
fn probe_of_chunks(table: &Table, highest: u32) -> Option<Probe> {
    let has = highest <= HIGHEST_CHUNK && (highest + 1) * table.remainder_bits() <= table.fraction_bits();
    has.then_some(Probe::Chunks(highest))
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
    // Keys whose whole digests agree have the same string for ever.
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

    fn probe(&self, table: &Table, values: &Self::Store) -> Probe {
        match values.highest() {
            0 => Probe::Matching,
            highest => probe_of_chunks(table, highest).unwrap_or(Probe::UnlessCoded),
        }
    }

    fn settle<H: KeyHasher>(
        &self,
        table: &Table,
        values: &Self::Store,
        quotient: u64,
        key: &HashString<'_, H>,
    ) -> bool {
        let Some(mut slots) = table.local_run(quotient) else {
            return contains_anywhere(self, table, values, quotient, key);
        };
        let (block, _) = table.block_of(quotient);
        let code = table.code(block);
        if self.remainder_bits == 8 && code != values.mark() {
            slots = table.narrow(block, slots, key.first_word());
        }
        let first = table.first_slot(block);
        values.any_in_block(block, code, slots, |slot, selector| {
            self.accepts(table.remainder(first + u64::from(slot)), selector, key)
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

    fn probe(&self, table: &Table, values: &ExplicitValues) -> Probe {
        match values.largest() {
            0 => Probe::Matching,
            largest => probe_of_chunks(table, largest.into()).unwrap_or(Probe::Occupied),
        }
    }

    fn settle<H: KeyHasher>(
        &self,
        table: &Table,
        values: &ExplicitValues,
        quotient: u64,
        key: &HashString<'_, H>,
    ) -> bool {
        let Some(mut slots) = table.local_run(quotient) else {
            return contains_anywhere(self, table, values, quotient, key);
        };
        let (block, _) = table.block_of(quotient);
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
    //! Catches: a probe that looks for chunks which the fraction does not have.
    use super::*;

    #[test]
    fn chunks_are_looked_for_as_far_as_the_fraction_reaches() {
        // 39 bits of the fraction are worth using: four chunks.
        let table = Table::new(1 << 25, 8, true).unwrap();
        assert_eq!(probe_of_chunks(&table, 3), Some(Probe::Chunks(3)));
        assert_eq!(probe_of_chunks(&table, 4), None);
        let small = Table::new(1 << 10, 8, true).unwrap();
        assert_eq!(probe_of_chunks(&small, 4), Some(Probe::Chunks(4)));
        assert_eq!(probe_of_chunks(&small, 5), None);
        let other = Table::new(1 << 10, 15, true).unwrap();
        assert_eq!(probe_of_chunks(&other, 2), Some(Probe::Chunks(2)));
        assert_eq!(probe_of_chunks(&other, 3), None);
    }
}
