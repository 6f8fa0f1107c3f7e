//! Finding runs: the table as one machine sees it in one shape.

use crate::bits::low_mask;

use super::block::{self, Meta, OFFSET_SATURATED};
use super::geometry::Shape;
use super::machine::Machine;
use super::table::{Run, Shift};

/// The blocks of a table, to be read with the instructions of `machine`.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'t, S, M> {
    pub(super) words: &'t [u64],
    pub(super) shape: S,
    pub(super) machine: M,
}

impl<'t, S: Shape, M: Machine> View<'t, S, M> {
    #[inline(always)]
    pub(super) fn block(self, block: usize) -> &'t [u64] {
        self.shape.block(self.words, block)
    }

    #[inline(always)]
    pub(super) fn meta(self, block: usize) -> Meta {
        block::meta(self.shape, self.block(block))
    }

    /// How many blocks there are.
    #[inline(always)]
    pub(super) fn blocks(self) -> usize {
        self.words.len() / self.shape.words()
    }

    /// The first slot of a block.
    #[inline(always)]
    pub(super) fn first_slot(self, block: usize) -> u64 {
        block as u64 * u64::from(self.shape.slots())
    }

    /// The first slot that a block's own runs may take: behind the runs of all quotients before the block.
    #[inline(always)]
    pub(super) fn begin(self, block: usize) -> u64 {
        let offset = block::offset(self.block(block));
        if offset == OFFSET_SATURATED {
            return self.begin_saturated(block);
        }
        self.first_slot(block) + u64::from(offset)
    }

    /// An offset too large for its field is counted up from the last block that has a true one.
    #[cold]
    fn begin_saturated(self, block: usize) -> u64 {
        let mut known = block;
        while block::offset(self.block(known)) == OFFSET_SATURATED {
            known -= 1;
        }
        let mut begin = self.first_slot(known) + u64::from(block::offset(self.block(known)));
        for index in known..block {
            begin = self.end_of_runs(index, begin).max(self.first_slot(index + 1));
        }
        begin
    }

    /// Behind the last run of a block's quotients, where `begin` is what [`begin`](Self::begin) says of it.
    #[inline(always)]
    pub(super) fn end_of_runs(self, block: usize, begin: u64) -> u64 {
        self.behind(begin, self.meta(block).occupieds.count_ones())
    }

    /// Behind so many runs from `begin` on.
    #[inline(always)]
    fn behind(self, begin: u64, runs: u32) -> u64 {
        if runs == 0 { begin } else { self.select_runend(begin, runs - 1) + 1 }
    }

    /// The slot of the `k`-th runend (from 0) at or behind `from`. There must be so many.
    #[inline(always)]
    pub(super) fn select_runend(self, from: u64, mut k: u32) -> u64 {
        let (mut block, slot) = self.shape.split(from);
        let mut runends = self.meta(block).runends & !low_mask(slot);
        loop {
            let count = runends.count_ones();
            if k < count {
                let runend = self.machine.select(runends, k);
                return self.first_slot(block) + u64::from(runend);
            }
            k -= count;
            block += 1;
            runends = self.meta(block).runends;
        }
    }

    /// The run of a quotient, if it has one.
    #[inline(always)]
    pub(super) fn run(self, quotient: u64) -> Option<Run> {
        let (index, in_block) = self.shape.split(quotient);
        let meta = self.meta(index);
        if !meta.is_occupied(in_block) {
            return None;
        }
        let first = self.behind(self.begin(index), meta.runs_below(in_block)).max(quotient);
        Some(Run { first, last: self.select_runend(first, 0) })
    }

    /// Where an item of this quotient would be inserted, and which slots would be moved.
    #[inline(always)]
    pub(super) fn gap(self, quotient: u64) -> Shift {
        let (index, in_block) = self.shape.split(quotient);
        let at = self.behind(self.begin(index), self.meta(index).runs_below(in_block + 1)).max(quotient);
        Shift { at, end: self.first_free(at) }
    }

    /// The first free slot at or behind `from`, which may lie behind all blocks.
    #[inline(always)]
    fn first_free(self, from: u64) -> u64 {
        let (first, in_first) = self.shape.split(from);
        let mut from = in_first;
        for index in first..self.blocks() {
            let block = self.block(index);
            let meta = block::meta(self.shape, block);
            if let Some(slot) = self.machine.first_free(self.shape, block, meta, from) {
                return self.first_slot(index) + u64::from(slot);
            }
            from = 0;
        }
        self.first_slot(self.blocks().max(first)) + u64::from(from)
    }
}
