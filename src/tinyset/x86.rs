//! Blocks of one line on x86-64 with BMI2.

use std::arch::x86_64::{_bzhi_u64, _pdep_u64, _pext_u64};
use std::ops::Range;

use super::block::Insertion;
use super::line::Line;
use super::machine::{Machine, Moves};

/// A processor with BMI1, BMI2, POPCNT and LZCNT: a value is the proof.
#[derive(Debug, Clone, Copy)]
struct Bmi2(());

impl Machine for Bmi2 {
    const NEEDS_MOVES: bool = false;

    #[inline(always)]
    fn low(self, word: u64, count: u32) -> u64 {
        // SAFETY: `self` proves BMI2.
        unsafe { _bzhi_u64(word, count) }
    }

    #[inline(always)]
    fn counts(self, _: u64) -> u64 {
        0
    }

    #[inline(always)]
    fn select(self, word: u64, _: u64, k: u32) -> u32 {
        // SAFETY: `self` proves BMI2.
        unsafe { _pdep_u64(1 << k, word) }.trailing_zeros()
    }

    #[inline(always)]
    fn select_next(self, word: u64, k: u32, _: u32) -> u32 {
        self.select(word, 0, k + 1)
    }

    #[inline(always)]
    fn extract(self, word: u64, mask: u64, left: u64, _: &Moves) -> u64 {
        // SAFETY: `self` proves BMI2.
        unsafe { _pext_u64(word, mask & !left) }
    }

    #[inline(always)]
    fn contains_one_by_one<const N: usize>(
        self,
        line: &Line,
        words: &[u64; N],
        logical: usize,
        items: Range<usize>,
        remainder: u64,
    ) -> bool {
        // SAFETY: `self` proves the features.
        unsafe { contains_one_by_one(line, words, logical, items, remainder) }
    }
}

#[inline(never)]
#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
fn contains_one_by_one<const N: usize>(
    line: &Line,
    words: &[u64; N],
    logical: usize,
    items: Range<usize>,
    remainder: u64,
) -> bool {
    line.contains_one_by_one(words, logical, items, remainder)
}

/// [`Line::contains`] with these instructions.
///
/// # Safety
///
/// The processor must have them.
#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn contains<const N: usize, const KIND: u8>(
    line: &Line,
    words: &[u64; N],
    chain: u32,
    remainder: u64,
) -> Option<bool> {
    line.contains::<Bmi2, N, KIND>(Bmi2(()), words, chain, remainder)
}

/// [`Line::insert`] with these instructions.
///
/// # Safety
///
/// The processor must have them.
#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn insert<const N: usize, const KIND: u8>(
    line: &Line,
    words: &mut [u64; N],
    chain: u32,
    remainder: u64,
) -> Option<Insertion> {
    line.insert::<Bmi2, N, KIND>(Bmi2(()), words, chain, remainder)
}
