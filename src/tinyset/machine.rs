//! What different processors do differently with a block of one line, behind one small interface.

use std::ops::Range;

use super::line::Line;
use crate::bits::low_mask;
use crate::bits::word::{byte_counts, select_by_counts};

/// The operations that have instructions of their own on some processors.
pub(super) trait Machine: Copy {
    /// Whether [`extract`](Self::extract) has to be told how bits move.
    const NEEDS_MOVES: bool;

    /// The `count` lowest bits of a word.
    #[inline(always)]
    fn low(self, word: u64, count: u32) -> u64 {
        word & low_mask(count)
    }

    /// What [`select`](Self::select) wants to know of a word beforehand.
    fn counts(self, word: u64) -> u64;

    /// The position of the set bit that has `k` (63 at most) set bits below it; 64 if there is none.
    fn select(self, word: u64, counts: u64, k: u32) -> u32;

    /// The position of the set bit above the one that [`select`](Self::select) found at `position` for `k` (62 at
    /// most).
    #[inline(always)]
    fn select_next(self, word: u64, k: u32, position: u32) -> u32 {
        let _ = k;
        position + 1 + (word >> (position & 63) >> 1).trailing_zeros()
    }

    /// The bits of `word` that `mask` names, closed up, without those `left` out. What is left out is all below some
    /// bit, or all from some bit on. `moves` are those of the mask.
    fn extract(self, word: u64, mask: u64, left: u64, moves: &Moves) -> u64;

    /// [`Line::contains_one_by_one`], out of line and with the machine's instructions.
    fn contains_one_by_one<const N: usize>(
        self,
        line: &Line,
        words: &[u64; N],
        logical: usize,
        items: Range<usize>,
        remainder: u64,
    ) -> bool;
}

/// How the bits of a mask move when they close up: those of the i-th word go down by 2^i, after those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moves([u64; 6]);

impl Moves {
    pub(super) const NONE: Self = Self([0; 6]);

    /// The moves of a mask.
    pub(super) fn of(mask: u64) -> Self {
        let mut moves = [0; 6];
        // Each bit has to go down by the number of gaps below it. Its i-th binary digit is the parity of those that
        // are left of every 2^i-th of them.
        let (mut mask, mut gaps) = (mask, !mask << 1);
        for (step, moves) in moves.iter_mut().enumerate() {
            let odd = prefix_parity(gaps);
            *moves = odd & mask;
            mask = mask ^ *moves | *moves >> (1 << step);
            gaps &= !odd;
        }
        Self(moves)
    }

    #[inline(always)]
    fn close_up(&self, mut bits: u64) -> u64 {
        let mut step = 0;
        while step < 6 {
            let moved = bits & self.0[step];
            bits = bits ^ moved | moved >> (1 << step);
            step += 1;
        }
        bits
    }
}

/// Bit p of the result: the parity of the bits 0..=p.
fn prefix_parity(word: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].into_iter().fold(word, |parity, shift| parity ^ parity << shift)
}

/// Any processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

impl Machine for Portable {
    const NEEDS_MOVES: bool = true;

    #[inline(always)]
    fn counts(self, word: u64) -> u64 {
        byte_counts(word)
    }

    #[inline(always)]
    fn select(self, word: u64, counts: u64, k: u32) -> u32 {
        select_by_counts(word, counts, k)
    }

    #[inline(always)]
    fn extract(self, word: u64, mask: u64, left: u64, moves: &Moves) -> u64 {
        extract(word, mask, left, moves)
    }

    #[inline(never)]
    fn contains_one_by_one<const N: usize>(
        self,
        line: &Line,
        words: &[u64; N],
        logical: usize,
        items: Range<usize>,
        remainder: u64,
    ) -> bool {
        line.contains_one_by_one(words, logical, items, remainder)
    }
}

/// [`Machine::extract`] in plain Rust.
#[inline(always)]
pub(super) fn extract(word: u64, mask: u64, left: u64, moves: &Moves) -> u64 {
    // Where a bit goes depends on the mask below it alone. If that is left out, all go down by as many more.
    let below = if left & 1 == 1 { (mask & left).count_ones() } else { 0 };
    let bits = word & mask & !left;
    // Most words lose no bit between others: the whole mask moves as one.
    let first = (mask | 1 << 63).trailing_zeros();
    let whole = mask >> first;
    let bits = if whole & whole.wrapping_add(1) == 0 { bits >> first } else { moves.close_up(bits) };
    bits.checked_shr(below).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    //! Catches: bits that are lost or end up beside their place.
    use super::*;
    use crate::testing::Random;

    #[test]
    fn extracted_bits_close_up_in_order() {
        let mut random = Random::new(31);
        for round in 0..20_000 {
            // Masks with few gaps, with many, and whole ones.
            let mask = match round % 4 {
                0 => random.next() | random.next() | random.next(),
                1 => random.next() & random.next(),
                2 => low_mask(random.below(65) as u32) & !low_mask(random.below(65) as u32),
                _ => !(1 << random.below(64)),
            };
            let word = random.next();
            let split = low_mask(random.below(65) as u32);
            for left in [0, split, !split] {
                let bits = (0..64).filter(|bit| mask & !left & 1 << bit != 0);
                let expected = bits.enumerate().fold(0, |all, (to, from)| all | (word >> from & 1) << to);
                assert_eq!(
                    extract(word, mask, left, &Moves::of(mask)),
                    expected,
                    "{mask:#x} without {left:#x}"
                );
            }
        }
    }
}
