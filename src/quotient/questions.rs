//! Queries: remainders first, values only where those leave a doubt.
//!
//! A stored remainder that equals none of the chunks that the query's key has cannot be the key's, whatever the
//! slot's value. So nearly all queries are settled by comparing remainders; and a block's code says at a glance which
//! slots are not repaired, for which the first chunk alone settles it.

use crate::coding::{HIGHEST_CHUNK, field::Field};

use super::block;
use super::geometry::Shape;
use super::machine::{Machine, Slots};
use super::runs::View;

/// What remainders say of a key, from certain to doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Answer(u64);

impl Answer {
    /// It is not there.
    pub(crate) const NO: Self = Self(0);
    /// It is there, as far as the filter can tell.
    pub(crate) const YES: Self = Self(1);
    /// It is not there, but may be in another table: the quotient's flag is set.
    pub(crate) const ELSEWHERE: Self = Self(2);
    /// The values have to be looked at, wherever the run lies. Every answer beyond [`YES`](Self::YES) asks.
    pub(crate) const ASK: Self = Self(1 << 63);

    /// The values of these slots of the quotient's block have to be looked at: those of its run that are in doubt.
    #[inline(always)]
    fn ask(slots: u64) -> Self {
        Self(Self::ASK.0 | slots)
    }

    /// Whether values have to be looked at.
    #[inline(always)]
    pub(crate) fn asks(self) -> bool {
        self > Self::YES
    }

    /// The slots of the quotient's block whose values have to be looked at; `None` if the run may lie anywhere, and if
    /// nothing has to be looked at.
    #[inline(always)]
    pub(crate) fn slots(self) -> Option<u64> {
        (self > Self::ASK).then_some(self.0 & !Self::ASK.0)
    }
}

/// What a query has to look for, which follows from the values that the slots have.
///
/// The simpler ones are right for fewer values, and faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// The remainder of a slot does not depend on its value, or all values are initial: asks where it is found in slots
    /// that may be repaired.
    Matching,
    /// A slot holds one of the first remainders that its key's fraction is cut into, up to this one (the first has the
    /// number 0, the highest is [`HIGHEST_CHUNK`]): asks where one is found in a run that may be repaired, and the
    /// first one not in a slot that is not.
    Chunks(u32),
    /// The same, up to the last one, unless the last bit of the code is set: asks there wherever a run may be repaired.
    UnlessSpilled,
    /// Asks wherever there is a run.
    Occupied,
    /// Codes are flags of quotients and marks of slots: asks where the remainder is found in a slot that is marked, and
    /// says where it is not found but the quotient's flag is set.
    Flagged,
}

impl Probe {
    /// How many of a key's chunks a query may have to look for.
    pub(super) fn chunks(self) -> u32 {
        match self {
            Self::Matching | Self::Flagged => 1,
            Self::Chunks(highest) => highest + 1,
            Self::UnlessSpilled | Self::Occupied => ALL_CHUNKS,
        }
    }
}

/// How many chunks [`Probe::Chunks`] can look for: all that codes hold.
const ALL_CHUNKS: u32 = HIGHEST_CHUNK + 1;

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
        let mut answer = Answer::NO;
        view.any_part(quotient, |block, slots| {
            answer = Self::part(view, block, slots, fraction);
            answer != Answer::NO
        });
        // The slots are not those of the quotient's block.
        answer.min(Answer::ASK)
    }
}

pub(super) struct Plain;
pub(super) struct Matching;
/// The first `N` chunks, from the top of the fraction.
pub(super) struct Chunks<const N: u32>;
pub(super) struct UnlessSpilled;
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
        if view.holds::<1>(block, slots, fraction) { Answer::YES } else { Answer::NO }
    }
}

/// Branches on what was found first: for a key that is not there nothing is, nearly always, and whatever waits for
/// the answer goes on without the cache line. Codes are looked at after that, and not branched on but where the very
/// slot that was found is repaired: one block in three has a code after some repairs, and a branch on it would be
/// mispredicted as often.
impl Question for Matching {
    #[inline(always)]
    fn part<S: Shape, M: Machine>(
        view: View<'_, S, M>,
        block: &[u64],
        slots: Slots,
        fraction: u64,
    ) -> Answer {
        let found = view.machine.found(view.shape, block, fraction, slots);
        if found == 0 {
            return Answer::NO;
        }
        if view.shape.code_bits() == 0 || view.is_initial(block, found) {
            return Answer::YES;
        }
        let found = view.matches(block, slots, fraction);
        if found & !view.adapted(block) != 0 { Answer::YES } else { Answer::ask(found) }
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
            return Answer::NO;
        }
        // A table without codes keeps its values elsewhere.
        if view.shape.code_bits() == 0 {
            return Answer::ask(slots.mask);
        }
        view.sift(block, slots, fraction)
    }
}

/// In the same order too. Chunks that a word does not have are others again, which is one comparison too many and no
/// harm.
impl Question for UnlessSpilled {
    #[inline(always)]
    fn part<S: Shape, M: Machine>(
        view: View<'_, S, M>,
        block: &[u64],
        slots: Slots,
        fraction: u64,
    ) -> Answer {
        let spilled = view.code(block) >> (view.shape.code_bits() - 1) != 0;
        if !(view.holds::<ALL_CHUNKS>(block, slots, fraction) | (spilled & (slots.count != 0))) {
            return Answer::NO;
        }
        view.sift(block, slots, fraction)
    }
}

impl Question for Occupied {
    #[inline(always)]
    fn part<S: Shape, M: Machine>(_: View<'_, S, M>, _: &[u64], slots: Slots, _: u64) -> Answer {
        if slots.count == 0 { Answer::NO } else { Answer::ask(slots.mask) }
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
            return Answer::NO;
        }
        view.machine.apart();
        let found = view.matches(block, slots, fraction);
        // Of several slots one that is not marked is enough, and nearly always there is one alone.
        if block::mark(view.shape, view.machine.afresh(block), found.trailing_zeros()) {
            Answer::ask(found)
        } else {
            Answer::YES
        }
    }

    #[inline(always)]
    fn local<S: Shape, M: Machine>(view: View<'_, S, M>, quotient: u64, fraction: u64) -> Option<Answer> {
        let (block, in_block) = view.home(quotient)?;
        let answer = Self::part(view, block, view.run_in(block, in_block)?, fraction);
        // Not branched on: one quotient in fifty has a flag.
        let flagged = u64::from(block::flag(view.shape, block, in_block));
        Some(if answer == Answer::NO { Answer(flagged * Answer::ELSEWHERE.0) } else { answer })
    }

    #[inline(always)]
    fn anywhere<S: Shape, M: Machine>(view: View<'_, S, M>, quotient: u64, fraction: u64) -> Answer {
        let mut answer = Answer::NO;
        view.any_part(quotient, |block, slots| {
            answer = Self::part(view, block, slots, fraction);
            answer != Answer::NO
        });
        // The slots are not those of the quotient's block.
        let answer = answer.min(Answer::ASK);
        if answer == Answer::NO && view.flag(quotient) { Answer::ELSEWHERE } else { answer }
    }
}

impl<S: Shape, M: Machine> View<'_, S, M> {
    /// Whether one of `slots` holds one of the first `N` remainders that the fraction is cut into.
    #[inline(always)]
    fn holds<const N: u32>(self, block: &[u64], slots: Slots, fraction: u64) -> bool {
        self.machine.holds::<S, N>(self.shape, block, fraction, slots)
    }

    /// Which of `slots` hold the first remainder that the fraction is cut into.
    #[inline(always)]
    fn matches(self, block: &[u64], slots: Slots, fraction: u64) -> u64 {
        self.machine.matches(self.shape, block, self.shape.remainder_of(fraction), slots.mask)
    }

    /// Slots that were never repaired answer with the first remainder; of the others values have to be asked.
    #[inline(always)]
    fn sift(self, block: &[u64], slots: Slots, fraction: u64) -> Answer {
        let found = self.matches(block, slots, fraction);
        if found != 0 && self.is_initial(block, found) {
            return Answer::YES;
        }
        let adapted = self.adapted(block);
        if found & !adapted != 0 {
            Answer::YES
        } else if slots.mask & adapted != 0 {
            Answer::ask(slots.mask & adapted)
        } else {
            Answer::NO
        }
    }

    /// Whether the last of these slots is not repaired; `false` is no answer.
    #[inline(always)]
    fn is_initial(self, block: &[u64], slots: u64) -> bool {
        let (field, block) = (self.field(), self.machine.afresh(block));
        let from_gap = block::word_at(block, self.shape.code_at() + field.gap(), field.bits - field.gap());
        field.is_initial(from_gap, slots)
    }

    /// The slots of a block that may be repaired.
    #[inline(always)]
    fn adapted(self, block: &[u64]) -> u64 {
        self.field().adapted(self.code(block))
    }

    #[inline(always)]
    fn field(self) -> Field {
        Field::new(self.shape.code_at(), self.shape.code_bits())
    }

    /// The code of a block.
    #[inline(always)]
    fn code(self, block: &[u64]) -> u64 {
        block::read(block, self.shape.code_at(), self.shape.code_bits())
    }
}
