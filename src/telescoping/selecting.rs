//! What a selector means: a slot with selector i holds the i-th chunk of r bits of its key's hash string.
//!
//! ```text
//! | quotient | chunk 0 | chunk 1 | chunk 2 | …
//!              ├─ r ─┤
//! ```
//!
//! The string has no end, so chunks never repeat.

use crate::bits::low_mask;
use crate::coding::{Selector, Selectors};
use crate::hash_string::HashString;
use crate::quotient::{Answer, CHUNK_LEVELS, CHUNKS, Place, Table};
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

/// The answer while all selectors are 0: the plain filter's.
#[inline(always)]
fn plain_answer(table: &Table, place: Place) -> Answer {
    if table.contains(place.quotient, table.remainder_of(place.fraction)) { Answer::Yes } else { Answer::No }
}

/// The answer for remainders of a byte while no selector is beyond `highest`, which is from 1 to 6.
#[inline(always)]
fn answer_chunks(table: &Table, highest: u32, place: Place, lo: u64) -> Answer {
    let bits = table.fraction_bits();
    let chunks = if 8 * (highest + 1) <= bits {
        place.fraction
    } else {
        // What `HashString::first_word` says, without the string.
        place.fraction & !low_mask(64 - bits) | lo.checked_shr(bits).unwrap_or(0)
    };
    // One chunk more than the highest selector, rounded up to what there is.
    let level = (highest as usize).min(CHUNK_LEVELS.len()) - 1;
    table.answer_chunks(level, place.quotient, chunks)
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

    /// A doubled table starts with selector 0 everywhere.
    fn doubled<H: KeyHasher>(&self, _: Selector, _: &HashString<'_, H>) -> Selector {
        0
    }

    #[inline(always)]
    fn answer(&self, table: &Table, values: &Self::Store, place: Place, _: u64) -> Answer {
        if values.highest() == 0 {
            return plain_answer(table, place);
        }
        // While the code of a block is 0, the plain filter's answer is the answer.
        table.answer_unless_coded(place.quotient, table.remainder_of(place.fraction))
    }

    fn settle<H: KeyHasher>(
        &self,
        table: &Table,
        values: &Self::Store,
        quotient: u64,
        key: &HashString<'_, H>,
    ) -> bool {
        let Some((block, mut slots)) = table.local_run(quotient) else {
            return contains_anywhere(self, table, values, quotient, key);
        };
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

    fn doubled<H: KeyHasher>(&self, _: u8, _: &HashString<'_, H>) -> u8 {
        0
    }

    #[inline(always)]
    fn answer(&self, table: &Table, values: &ExplicitValues, place: Place, lo: u64) -> Answer {
        match values.largest().into() {
            0 => plain_answer(table, place),
            largest if self.remainder_bits == 8 && largest < CHUNKS => {
                answer_chunks(table, largest, place, lo)
            }
            _ => Answer::Ask,
        }
    }

    fn settle<H: KeyHasher>(
        &self,
        table: &Table,
        values: &ExplicitValues,
        quotient: u64,
        key: &HashString<'_, H>,
    ) -> bool {
        let Some((block, mut slots)) = table.local_run(quotient) else {
            return contains_anywhere(self, table, values, quotient, key);
        };
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
