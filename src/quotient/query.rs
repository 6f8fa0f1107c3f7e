//! Is (quotient, remainder) in the table?
//!
//! A query reads its block and settles there, nearly always; it goes on to the next block only if the run of its
//! quotient reaches there. Nothing branches on the metadata but that rare way: a misprediction would cost more
//! than what it saves, and would keep the processor from fetching the lines of the queries that follow.

use super::block::{self, Meta};
use super::geometry::Shape;
use super::machine::Machine;
use super::view::View;

/// The run of the block's `quotient`-th quotient, as far as it lies in the block.
#[derive(Debug, Clone, Copy)]
struct LocalRun {
    /// The run's slots as bits; none if there is no run. Meaningless if it goes `beyond`.
    slots: u64,
    /// Whether the run reaches into a later block, or begins there.
    beyond: bool,
}

#[inline(always)]
fn local_run<M: Machine>(machine: M, meta: Meta, quotient: u32) -> LocalRun {
    // All ones if there is a run: to be used as a mask, for half of the queries find none.
    let occupied = (meta.occupieds >> quotient & 1).wrapping_neg();
    // The borders before and behind the run; 0 for those beyond this block.
    let borders = machine.deposit(3 << meta.runs_below(quotient), meta.borders());
    let first = borders & borders.wrapping_neg();
    let behind = borders ^ first;
    let run = behind.wrapping_sub(first) & u64::MAX << quotient;
    let beyond = (behind | !occupied) == 0;
    LocalRun { slots: run & occupied, beyond }
}

impl<S: Shape, M: Machine> View<'_, S, M> {
    /// The flag of a quotient.
    #[inline(always)]
    pub(super) fn flag(self, quotient: u64) -> bool {
        let (index, in_block) = self.shape.split(quotient);
        debug_assert!(self.shape.flags() > 0, "a table without codes has no flags");
        let flags = self.shape.flags();
        block::bit(self.block(index), self.shape.code_at(), flags, in_block.min(flags - 1))
    }

    /// Whether the item is stored; `None` if the run reaches into later blocks, and
    /// [`contains_beyond`](Self::contains_beyond) must be asked.
    #[inline(always)]
    pub(super) fn contains_locally(self, quotient: u64, remainder: u64) -> Option<bool> {
        let (index, slots) = self.local_run(quotient)?;
        Some(self.machine.matches(self.shape, self.block(index), remainder, slots) != 0)
    }

    /// The block of a quotient, and the slots of the quotient's run in it; `None` if it reaches into later blocks.
    #[inline(always)]
    pub(super) fn local_run(self, quotient: u64) -> Option<(usize, u64)> {
        let (index, in_block) = self.shape.split(quotient);
        let run = local_run(self.machine, self.meta(index), in_block);
        if run.beyond { None } else { Some((index, run.slots)) }
    }

    /// Whether the item is stored, wherever its run lies.
    #[inline(always)]
    pub(super) fn contains_beyond(self, quotient: u64, remainder: u64) -> bool {
        self.any_part(quotient, |index, slots| {
            self.machine.matches(self.shape, self.block(index), remainder, slots) != 0
        })
    }

    /// Calls `visit` with each block that the run of a quotient lies in, and the run's slots there, until it says
    /// `true`; whether it did.
    #[inline(always)]
    pub(super) fn any_part(self, quotient: u64, mut visit: impl FnMut(usize, u64) -> bool) -> bool {
        let (index, in_block) = self.shape.split(quotient);
        let meta = self.meta(index);
        if !meta.is_occupied(in_block) {
            return false;
        }
        let (mut index, mut borders, mut runs) = (index, meta.borders(), meta.runs_below(in_block));
        let mut slots = u64::MAX << in_block;
        if meta.offset >= self.shape.slots() {
            // No slot of this block belongs to its own runs. The border behind the foreign ones is counted too.
            let begin = self.begin(index);
            let (first, in_first) = self.shape.split(begin);
            (index, borders) = (first, self.meta(first).runends << 1 & u64::MAX << in_first | 1 << in_first);
            slots = u64::MAX;
        }
        // To the block that has the border where the run begins.
        while runs >= borders.count_ones() {
            runs -= borders.count_ones();
            index += 1;
            borders = self.meta(index).runends << 1;
            slots = u64::MAX;
        }
        slots &= self.machine.deposit(1 << runs, borders).wrapping_neg();
        // From there on to the block that has its runend.
        loop {
            let runends = self.meta(index).runends & slots;
            let last = runends & runends.wrapping_neg();
            let run = slots & (last << 1).wrapping_sub(1);
            if visit(index, run & low(self.shape)) {
                return true;
            }
            if last != 0 {
                return false;
            }
            index += 1;
            slots = u64::MAX;
        }
    }
}

/// The bits of a block that are slots.
#[inline(always)]
fn low<S: Shape>(shape: S) -> u64 {
    (1 << shape.slots()) - 1
}
