//! Finding the run of a quotient in its block, or wherever it lies.
//!
//! A query reads its block and settles there, nearly always; it goes on to the next block only if the run of its
//! quotient reaches there. Nothing branches on the metadata but that rare way: a misprediction would cost more
//! than what it saves, and would keep the processor from fetching the lines of the queries that follow.

use crate::bits::rank;

use super::block;
use super::geometry::Shape;
use super::machine::{Machine, Pair, Slots};
use super::runs::View;

/// The run of the block's `quotient`-th quotient, as far as it lies in the block.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalRun {
    /// The run's slots; none if there is no run. Meaningless if it goes `beyond`.
    pub(super) slots: Slots,
    /// Whether the run reaches into a later block, or begins there.
    beyond: bool,
}

#[inline(always)]
pub(super) fn local_run<S: Shape, M: Machine>(
    shape: S,
    machine: M,
    block: &[u64],
    quotient: u32,
) -> LocalRun {
    // Nothing looks at occupieds above the quotient, so they need not be cut off.
    let occupieds = block::occupieds_and_above(shape, block);
    let occupied = occupieds >> quotient & 1;
    if M::SKIPS_ABSENT_RUNS && occupied == 0 {
        return LocalRun { slots: Slots::of(0), beyond: false };
    }
    // What `Meta::borders` says, with the bit below the runends in the place of the first border.
    let borders = block::runends_and_below(shape, block) | 1;
    let borders = borders & u64::MAX << block::offset(block);
    // The borders before and behind the run; 0 for those beyond this block, and if there is no run.
    let Pair { span, next, position, .. } = machine.select_pair(borders, rank(occupieds, quotient), occupied);
    let mask = span & u64::MAX << quotient;
    let end = next.trailing_zeros();
    let count = end.wrapping_sub(position.max(quotient)) & (occupied as u32).wrapping_neg();
    // There is a run, but no border behind it.
    LocalRun { slots: Slots { mask, end, count }, beyond: next < occupied }
}

impl<'t, S: Shape, M: Machine> View<'t, S, M> {
    /// The block of a quotient, and the quotient's number in it.
    ///
    /// `None` for a quotient that the table does not have: it is left to the cold functions, which panic, so that the
    /// hot ones have no reason to touch the stack.
    #[inline(always)]
    pub(super) fn home(self, quotient: u64) -> Option<(&'t [u64], u32)> {
        let (index, in_block) = self.shape.split(quotient);
        Some((self.shape.get_block(self.words, index)?, in_block))
    }

    /// The slots of the run of a block's `quotient`-th quotient; `None` if it reaches into later blocks.
    #[inline(always)]
    pub(super) fn run_in(self, block: &[u64], quotient: u32) -> Option<Slots> {
        let run = local_run(self.shape, self.machine, block, quotient);
        if run.beyond { None } else { Some(run.slots) }
    }

    /// The block of a quotient, and the slots of the quotient's run in it; `None` if it reaches into later blocks.
    #[inline(always)]
    pub(super) fn local_run(self, quotient: u64) -> Option<(&'t [u64], Slots)> {
        let (block, in_block) = self.home(quotient)?;
        Some((block, self.run_in(block, in_block)?))
    }

    /// The flag of a quotient.
    #[inline(always)]
    pub(super) fn flag(self, quotient: u64) -> bool {
        let (index, in_block) = self.shape.split(quotient);
        block::flag(self.shape, self.block(index), in_block)
    }

    /// Calls `visit` with each block that the run of a quotient lies in, and the run's slots there, until it says
    /// `true`; whether it did.
    #[inline(always)]
    pub(super) fn any_part(self, quotient: u64, mut visit: impl FnMut(&'t [u64], Slots) -> bool) -> bool {
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
        slots &= u64::MAX << self.machine.select(borders, runs);
        // From there on to the block that has its runend.
        loop {
            let runends = self.meta(index).runends & slots;
            let last = runends & runends.wrapping_neg();
            let run = slots & (last << 1).wrapping_sub(1);
            if visit(self.block(index), Slots::of(run & low(self.shape))) {
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
