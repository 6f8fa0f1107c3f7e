//! Remainders that are cut shorter to make room for another item, a word at a time.

use super::geometry::{Geometry, Layout};
use super::machine::{Machine, Moves};
use crate::bits::{low_mask, string};

/// Which bits of the remainders are left when a block takes another item, as masks over the block.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cut {
    /// Of the items before the newcomer, which keep their numbers.
    pub(super) before: [u64; 8],
    /// Of those after it, whose numbers grow by one.
    pub(super) after: [u64; 8],
}

/// How the bits that a [`Cut`] leaves close up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CutMoves {
    pub(super) before: [Moves; 8],
    pub(super) after: [Moves; 8],
}

impl Cut {
    /// The masks for a block of `items` items.
    pub(super) fn new(geometry: &Geometry, items: usize) -> Self {
        let (old, new) = (Layout::new(geometry, items), Layout::new(geometry, items + 1));
        let mut cut = Self::default();
        for item in 0..items {
            let at = old.offset(item) + geometry.array_start() as usize;
            for (mask, target) in [(&mut cut.before, item), (&mut cut.after, item + 1)] {
                for bit in at..at + new.size(target) {
                    string::write(mask, bit, 1, 1);
                }
            }
        }
        cut
    }
}

impl CutMoves {
    pub(super) fn of(cut: &Cut) -> Self {
        Self { before: cut.before.map(Moves::of), after: cut.after.map(Moves::of) }
    }
}

/// For machines that need not be told.
pub(super) static NO_MOVES: CutMoves = CutMoves { before: [Moves::NONE; 8], after: [Moves::NONE; 8] };

/// A block that is written from some bit on, a few bits at a time.
pub(super) struct Stream<'a> {
    words: &'a mut [u64],
    /// The word under way, and how many of its bits are there.
    word: usize,
    bits: u64,
    filled: u32,
}

impl<'a> Stream<'a> {
    #[inline(always)]
    pub(super) fn new(words: &'a mut [u64], start: usize) -> Self {
        let (word, filled) = (start / 64, start as u32 % 64);
        let bits = words[word] & low_mask(filled);
        Self { words, word, bits, filled }
    }

    /// Appends `count` bits, at most 64; those of `bits` above them are 0.
    #[inline(always)]
    pub(super) fn append(&mut self, bits: u64, count: u32) {
        let whole = self.bits | bits << self.filled;
        let rest = bits >> 1 >> (63 - self.filled);
        // When the block is complete, nothing is left to be appended but 0 bits.
        if let Some(word) = self.words.get_mut(self.word) {
            *word = whole;
        }
        let filled = self.filled + count;
        self.bits = if filled >= 64 { rest } else { whole };
        self.word += filled as usize / 64;
        self.filled = filled % 64;
    }

    /// Appends the bits of `word` that the mask names, without those that are `left` out.
    #[inline(always)]
    pub(super) fn extract<M: Machine>(
        &mut self,
        machine: M,
        word: u64,
        (mask, left): (u64, u64),
        moves: &Moves,
    ) {
        let bits = machine.extract(word, mask, left, moves);
        self.append(bits, (mask & !left).count_ones());
    }
}
