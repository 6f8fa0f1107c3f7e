//! Blocks of one line on 64-bit ARM with NEON.

use std::ops::Range;

use super::line::Line;
use super::machine::{self, Machine, Moves};
use crate::bits::neon::byte_counts;
use crate::bits::word::select_by_counts;

/// A processor with NEON: this file is compiled for such processors only.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neon;

impl Machine for Neon {
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
        machine::extract(word, mask, left, moves)
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
