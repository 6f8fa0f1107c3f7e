//! Taking an item out: what stands away from home behind it moves back.

use crate::bits::low_mask;

use super::block::{self, OFFSET_SATURATED};
use super::geometry::Shape;
use super::machine::Portable;
use super::table::{Shift, Table};

impl Table {
    /// Which slots the removal of this item would move.
    pub(crate) fn removal(&self, quotient: u64, rank: usize) -> Shift {
        self.run(quotient).map_or(Shift { at: quotient, end: quotient }, |run| Shift {
            at: run.first + rank as u64,
            end: self.end_of_displaced(quotient, run.last),
        })
    }

    /// Removes the item of this rank from the run of this quotient, which must have so many.
    pub(crate) fn remove(&mut self, quotient: u64, rank: usize) -> Shift {
        let Some(run) = self.run(quotient) else {
            debug_assert!(false, "quotient {quotient} has no run to remove from");
            return Shift { at: quotient, end: quotient };
        };
        let at = run.first + rank as u64;
        debug_assert!(at <= run.last, "rank {rank} is beyond the run of quotient {quotient}");
        let end = self.end_of_displaced(quotient, run.last);
        let (home, in_block) = self.shape.split(quotient);
        if run.first == run.last {
            let mut meta = self.meta(home);
            meta.occupieds &= !(1 << in_block);
            self.set_meta(home, meta);
        } else if at == run.last {
            self.set_runend(at - 1, true);
        }
        self.shift_down(at, end);
        // What stood in `at + 1..=end` moved down: every block that starts there is reached by one slot less.
        let reached = self.shape.split(end).0;
        for block in home + 1..=reached {
            let mut meta = self.meta(block);
            meta.offset = if meta.offset == OFFSET_SATURATED {
                let begin = self.end_of_runs(block - 1);
                begin.saturating_sub(self.first_slot(block)).min(OFFSET_SATURATED.into()) as u32
            } else {
                meta.offset - 1
            };
            self.set_meta(block, meta);
        }
        self.len -= 1;
        Shift { at, end }
    }

    /// The last slot of the runs behind `last` that stand away from home, and so move when a gap opens there.
    fn end_of_displaced(&self, quotient: u64, mut last: u64) -> u64 {
        let (view, mut home) = (self.view(self.shape, Portable), quotient);
        while let Some(next) = self.next_occupied(home + 1, last) {
            last = view.select_runend(last + 1, 0);
            home = next;
        }
        last
    }

    /// The first occupied quotient in `from..=to`.
    fn next_occupied(&self, from: u64, to: u64) -> Option<u64> {
        let (mut block, in_block) = self.shape.split(from);
        let mut mask = !low_mask(in_block);
        while block < self.blocks && self.first_slot(block) <= to {
            let occupieds = self.meta(block).occupieds & mask;
            if occupieds != 0 {
                let quotient = self.first_slot(block) + u64::from(occupieds.trailing_zeros());
                return Some(quotient).filter(|&quotient| quotient <= to);
            }
            mask = u64::MAX;
            block += 1;
        }
        None
    }

    /// Moves remainders and runends of `at + 1..=end` one slot down and empties `end`.
    fn shift_down(&mut self, at: u64, end: u64) {
        let (shape, last) = (self.shape, self.shape.slots() - 1);
        let (first_block, first_slot) = shape.split(at);
        let (last_block, last_slot) = shape.split(end);
        for index in first_block..=last_block {
            let from = if index == first_block { first_slot } else { 0 };
            let to = if index == last_block { last_slot } else { last };
            if index > first_block {
                let carried = self.first_slot(index);
                self.set_runend(carried - 1, self.is_runend(carried));
                self.set_remainder(carried - 1, self.remainder(carried));
            }
            let block = self.block_mut(index);
            let mut meta = block::meta(shape, block);
            let moved = meta.runends & low_mask(to + 1) & !low_mask(from + 1);
            meta.runends = meta.runends & !(low_mask(to + 1) & !low_mask(from)) | moved >> 1;
            block::set_meta(shape, block, meta);
            block::shift_down(shape, block, from, to);
        }
        self.set_remainder(end, 0);
    }

    /// Behind the last run of the quotients of a block and of all before it.
    pub(super) fn end_of_runs(&self, block: usize) -> u64 {
        let view = self.view(self.shape, Portable);
        view.end_of_runs(block, view.begin(block))
    }
}
