//! Values in an array of bytes, uncompressed.

use std::ops::RangeInclusive;

use crate::InvariantError;
use crate::error::ensure;
use crate::quotient::{Run, Table};

use super::{Overflow, ValueStore};

/// A byte for every slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExplicitValues {
    /// By slot. Slots behind the end (the table's tail may grow) have value 0.
    values: Vec<u8>,
    adapted: usize,
    /// No value is or was larger.
    largest: u8,
}

impl ExplicitValues {
    /// Zeros for all slots of `table`; `None` if the memory is not to be had.
    pub(crate) fn new(table: &Table) -> Option<Self> {
        let len = usize::try_from(table.physical_slots()).ok()?;
        let mut values: Vec<u8> = Vec::new();
        values.try_reserve_exact(len).ok()?;
        values.resize(len, 0);
        Some(Self { values, adapted: 0, largest: 0 })
    }

    /// The value of a slot.
    #[inline(always)]
    pub(crate) fn get(&self, slot: u64) -> u8 {
        self.values.get(slot as usize).copied().unwrap_or(0)
    }

    /// No value is or was larger.
    #[inline(always)]
    pub(crate) fn largest(&self) -> u8 {
        self.largest
    }
}

impl ValueStore for ExplicitValues {
    type Value = u8;

    #[inline]
    fn all_initial(&self, table: &Table, blocks: RangeInclusive<usize>) -> bool {
        let per_block = table.slots_per_block() as usize;
        let span = blocks.start() * per_block..(blocks.end() + 1) * per_block;
        self.adapted == 0 || self.values.iter().take(span.end).skip(span.start).all(|&value| value == 0)
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
        if self.values.len() < table.physical_slots() as usize {
            self.values.resize(table.physical_slots() as usize, 0);
        }
        let old = &mut self.values[block * values.len()..][..values.len()];
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
        8 * self.values.capacity()
    }

    fn verify(&self, table: &Table) -> Result<(), InvariantError> {
        let adapted = self.values.iter().filter(|&&value| value != 0).count();
        ensure!(adapted == self.adapted, "{adapted} adapted slots, {} counted", self.adapted);
        let largest = self.values.iter().max().copied().unwrap_or(0);
        ensure!(largest <= self.largest, "value {largest} is larger than {}", self.largest);
        let (values, slots) = (self.values.len() as u64, table.physical_slots());
        ensure!(values <= slots, "{values} values for {slots} slots");
        Ok(())
    }
}
