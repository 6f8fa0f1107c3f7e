//! Queries: remainders first, values only where those leave a doubt.
//!
//! A stored remainder that equals none of the chunks that the query's key has cannot be the key's, whatever the
//! slot's value. So nearly all queries are settled by comparing remainders, and where a block's code is 0 (all its
//! values are initial) they are settled by the first chunk alone.

use super::block;
use super::geometry::Shape;
use super::machine::{Machine, Slots};
use super::runs::View;

/// What remainders say of a key, from certain to doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Answer {
    /// It is not there.
    No,
    /// It is there, as far as the filter can tell.
    Yes,
    /// The values have to be looked at.
    Ask,
}

/// What a query has to look for, which follows from the values that the slots have.
///
/// The simpler ones are right for fewer values, and faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// The remainder of a slot does not depend on its value, or all values are initial: asks where it is found and a
    /// code is not 0.
    Matching,
    /// A slot holds one of the first remainders that its key's fraction is cut into, up to this one (the first has the
    /// number 0, the highest is [`HIGHEST_CHUNK`]): asks where one is found and a code is not 0.
    Chunks(u32),
    /// The remainder of a slot is its key's first if the code is 0: asks where it is not.
    UnlessCoded,
    /// Asks wherever there is a run.
    Occupied,
    /// Codes are flags of quotients and a mark: asks where the quotient's is set, and where the remainder is found in a
    /// block that is marked.
    Flagged,
}

/// The last chunk that [`Probe::Chunks`] can look for.
pub(crate) const HIGHEST_CHUNK: u32 = 4;

/// How many chunks of a byte [`Table::narrow`](super::Table::narrow) looks for. No code for remainders of a byte holds
/// a selector beyond.
pub(crate) const CHUNKS: u32 = 7;

/// A [`Probe`] as a type (or the plain question for a remainder), to be compiled with everything that it is made of.
pub(super) trait Question {
    /// What some slots of a quotient's run in one block say.
    fn part<S: Shape, M: Machine>(view: View<'_, S, M>, block: &[u64], slots: Slots, fraction: u64)
    -> Answer;

    /// The answer; `None` if the run reaches into later blocks, and [`anywhere`](Self::anywhere) must be asked.
    #[inline(always)]
    fn local<S: Shape, M: Machine>(view: View<'_, S, M>, quotient: u64, fraction: u64) -> Option<Answer> {
        let (block, slots) = view.local_run(quotient)?;
        Some(Self::part(view, block, slots, fraction))
    }

    /// The answer, wherever the run lies.
    #[inline(always)]
    fn anywhere<S: Shape, M: Machine>(view: View<'_, S, M>, quotient: u64, fraction: u64) -> Answer {
        let mut answer = Answer::No;
        view.any_part(quotient, |block, slots| {
            answer = Self::part(view, block, slots, fraction);
            answer != Answer::No
        });
        answer
    }
}

pub(super) struct Plain;
pub(super) struct Matching;
/// The first `N` chunks, from the top of the fraction.
pub(super) struct Chunks<const N: u32>;
pub(super) struct UnlessCoded;
pub(super) struct Occupied;
pub(super) struct Flagged;

impl Question for Plain {
    #[inline(always)]
    fn part<S: Shape, M: Machine>(
        view: View<'_, S, M>,
        block: &[u64],
        slots: Slots,
        fraction: u64,
    ) -> Answer {
        if view.holds::<1>(block, slots, fraction) { Answer::Yes } else { Answer::No }
    }
}

/// Branches on what was found first: for a key that is not there nothing is, nearly always, and whatever waits for
/// the answer goes on without the cache line. Codes are looked at after that: one block in twenty has one after not
/// too many repairs, and a branch on it would be mispredicted as often.
impl Question for Matching {
    #[inline(always)]
    fn part<S: Shape, M: Machine>(
        view: View<'_, S, M>,
        block: &[u64],
        slots: Slots,
        fraction: u64,
    ) -> Answer {
        if !view.holds::<1>(block, slots, fraction) {
            Answer::No
        } else if view.code(block) != 0 {
            Answer::Ask
        } else {
            Answer::Yes
        }
    }
}

/// In the same order as [`Matching`], and for the same reason.
impl<const N: u32> Question for Chunks<N> {
    #[inline(always)]
    fn part<S: Shape, M: Machine>(
        view: View<'_, S, M>,
        block: &[u64],
        slots: Slots,
        fraction: u64,
    ) -> Answer {
        if !view.holds::<N>(block, slots, fraction) {
            return Answer::No;
        }
        // A table without codes keeps its values elsewhere.
        if view.shape.code_bits() == 0 || view.code(block) != 0 {
            return Answer::Ask;
        }
        Plain::part(view, block, slots, fraction)
    }
}

impl Question for UnlessCoded {
    #[inline(always)]
    fn part<S: Shape, M: Machine>(
        view: View<'_, S, M>,
        block: &[u64],
        slots: Slots,
        fraction: u64,
    ) -> Answer {
        if view.code(block) == 0 {
            Plain::part(view, block, slots, fraction)
        } else if slots.count == 0 {
            Answer::No
        } else {
            Answer::Ask
        }
    }
}

impl Question for Occupied {
    #[inline(always)]
    fn part<S: Shape, M: Machine>(_: View<'_, S, M>, _: &[u64], slots: Slots, _: u64) -> Answer {
        if slots.count == 0 { Answer::No } else { Answer::Ask }
    }
}

impl Question for Flagged {
    #[inline(always)]
    fn part<S: Shape, M: Machine>(
        view: View<'_, S, M>,
        block: &[u64],
        slots: Slots,
        fraction: u64,
    ) -> Answer {
        if !view.holds::<1>(block, slots, fraction) {
            Answer::No
        } else if block::mark(view.shape, block) {
            Answer::Ask
        } else {
            Answer::Yes
        }
    }

    #[inline(always)]
    fn local<S: Shape, M: Machine>(view: View<'_, S, M>, quotient: u64, fraction: u64) -> Option<Answer> {
        let (block, in_block) = view.home(quotient)?;
        if block::flag(view.shape, block, in_block) {
            return Some(Answer::Ask);
        }
        Some(Self::part(view, block, view.run_in(block, in_block)?, fraction))
    }

    #[inline(always)]
    fn anywhere<S: Shape, M: Machine>(view: View<'_, S, M>, quotient: u64, fraction: u64) -> Answer {
        if view.flag(quotient) {
            return Answer::Ask;
        }
        let mut answer = Answer::No;
        view.any_part(quotient, |block, slots| {
            answer = Self::part(view, block, slots, fraction);
            answer != Answer::No
        });
        answer
    }
}

impl<S: Shape, M: Machine> View<'_, S, M> {
    /// Whether one of `slots` holds one of the first `N` remainders that the fraction is cut into.
    #[inline(always)]
    fn holds<const N: u32>(self, block: &[u64], slots: Slots, fraction: u64) -> bool {
        self.machine.holds::<S, N>(self.shape, block, fraction, slots)
    }

    /// The code of a block.
    #[inline(always)]
    fn code(self, block: &[u64]) -> u64 {
        block::read(block, self.shape.code_at(), self.shape.code_bits())
    }
}
