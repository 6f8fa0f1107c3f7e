//! Values in an array of bytes, uncompressed.

use std::ops::RangeInclusive;

use crate::InvariantError;
use crate::bits::AlignedWords;
use crate::error::ensure;
use crate::format::{Decoder, Encoder, FormatError};
use crate::quotient::{Run, Table};

use super::{Overflow, ValueStore};

/// A byte for every slot.
#[derive(Debug, Clone)]
pub(crate) struct ExplicitValues {
    /// Bytes, by slot. Slots behind the end (the table's tail may grow) have value 0, and so have bytes that are no
    /// slot's.
    pub(super) values: AlignedWords,
    pub(super) adapted: usize,
    /// No value is or was larger.
    pub(super) largest: u8,
}

impl ExplicitValues {
    /// Zeros for all slots of `table`; `None` if the memory is not available.
    pub(crate) fn new(table: &Table) -> Option<Self> {
        Some(Self { values: AlignedWords::zeroed(words_for(table)?)?, adapted: 0, largest: 0 })
    }

    /// The value of a slot.
    #[inline(always)]
    pub(crate) fn get(&self, slot: u64) -> u8 {
        self.values.as_bytes().get(slot as usize).copied().unwrap_or(0)
    }

    /// No value is or was larger.
    #[inline(always)]
    pub(crate) fn largest(&self) -> u8 {
        self.largest
    }
}

impl ValueStore for ExplicitValues {
    type Value = u8;

    const CODED: bool = false;

    fn number(value: u8) -> u64 {
        value.into()
    }

    fn value(number: u64) -> Option<u8> {
        number.try_into().ok()
    }

    fn highest_ever(&self) -> u64 {
        self.largest.into()
    }

    fn raise(&mut self, highest: u64) -> bool {
        let highest = u8::try_from(highest);
        self.largest = self.largest.max(highest.unwrap_or(0));
        highest == Ok(self.largest)
    }

    #[inline]
    fn all_initial(&self, table: &Table, blocks: RangeInclusive<usize>) -> bool {
        let per_block = table.slots_per_block() as usize;
        let span = blocks.start() * per_block..(blocks.end() + 1) * per_block;
        self.adapted == 0
            || self.values.as_bytes().iter().take(span.end).skip(span.start).all(|&value| value == 0)
    }

    /// Such a table has no codes, so all of them are 0.
    #[inline(always)]
    fn are_initial_where_code_is_0(&self) -> bool {
        self.adapted == 0
    }

    #[inline]
    fn any(&self, _: &Table, run: Run, mut visit: impl FnMut(u64, u8) -> bool) -> bool {
        run.slots().any(|slot| visit(slot, self.get(slot)))
    }

    fn load(&self, table: &Table, block: usize, values: &mut Vec<u8>) {
        let per_block = u64::from(table.slots_per_block());
        let first = block as u64 * per_block;
        values.extend((first..first + per_block).map(|slot| self.get(slot)));
    }

    fn fits(&self, _: &[u8]) -> bool {
        true
    }

    fn store(&mut self, table: &mut Table, block: usize, values: &[u8]) -> bool {
        if let Some(words) = words_for(table).filter(|&words| words > self.values.len()) {
            self.values.grow(words);
        }
        let old = &mut self.values.as_bytes_mut()[block * values.len()..][..values.len()];
        let adapted = |values: &[u8]| values.iter().filter(|&&value| value != 0).count();
        self.adapted = self.adapted + adapted(values) - adapted(old);
        self.largest = values.iter().copied().fold(self.largest, u8::max);
        old.copy_from_slice(values);
        false
    }

    fn emptied(&self, table: &Table) -> Option<Self> {
        Self::new(table)
    }

    /// Everything fits, so nothing is ever forgotten.
    fn overflow(&self) -> Overflow {
        Overflow::Spill
    }

    fn adapted(&self) -> usize {
        self.adapted
    }

    fn spills(&self) -> usize {
        0
    }

    fn memory_bits(&self) -> usize {
        64 * self.values.len()
    }

    fn verify(&self, table: &Table) -> Result<(), InvariantError> {
        let values = self.values.as_bytes();
        let adapted = values.iter().filter(|&&value| value != 0).count();
        ensure!(adapted == self.adapted, "{adapted} adapted slots, {} counted", self.adapted);
        let largest = values.iter().max().copied().unwrap_or(0);
        ensure!(largest <= self.largest, "value {largest} is larger than {}", self.largest);
        let slots = table.physical_slots();
        let fits = words_for(table).is_some_and(|words| self.values.len() <= words);
        ensure!(fits, "{} values for {slots} slots", values.len());
        Ok(())
    }

    fn encode(&self, _: &Table, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        self.encode_values(encoder)
    }

    fn decode(table: &Table, _: Overflow, decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        Self::decode_values(table, decoder)
    }
}

/// The words that have a byte for every slot of a table.
fn words_for(table: &Table) -> Option<usize> {
    Some(usize::try_from(table.physical_slots()).ok()?.div_ceil(size_of::<u64>()))
}
