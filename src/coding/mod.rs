//! Arithmetic codes for the small values of one block of slots.
//!
//! Every slot of a block has a *letter*: a selector, or an extension. Nearly all of them are the initial letter
//! (selector 0, the empty extension), so all letters of a block share one integer, the **code**, of fewer bits
//! than there are slots. An interval of integers, at first `0 .. 2^bits − 1`, is narrowed letter by letter to
//! the share that the letter has of it (telescoping paper, appendix C):
//!
//! ```text
//! 0                                             2^bits − 1
//! ├───────────────── 0 ──────────────┼───── 1 ─────┼─2─┼┤     first letter
//! ├────────── 0 ────────────┼── 1 ──┼2┤                       second letter, if the first was 0
//! ```
//!
//! The code is the *lower end* of the interval that is left. The initial letter's share always comes first, so
//! - a block in which nothing was ever adapted has code 0, which is recognised without decoding;
//! - behind the last letter that is not initial, nothing is left of the code, so decoding stops there, and the
//!   initial letters behind it cost no space;
//! - the upper end is never a code.
//!
//! Decoding goes from the first slot on and stops at the slot that was asked for.

mod extensions;
pub(crate) mod field;
mod selectors;

use std::fmt;

use crate::bits::low_mask;

pub(crate) use extensions::{Extension, Extensions};
pub(crate) use selectors::{HIGHEST_CHUNK, Selector, Selectors};

/// The part of an interval that belongs to one letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    /// Where it begins, counted from the beginning of the interval.
    start: u64,
    /// How many integers it has.
    size: u64,
}

/// An alphabet, and how an interval is divided among its letters. The default letter is the initial one.
///
/// The shares of different letters never overlap, and the initial letter's begins at 0.
pub(crate) trait Letters: Copy + fmt::Debug {
    /// One letter.
    type Letter: Copy + Default + PartialEq + fmt::Debug;

    /// The alphabet for remainders of `r` bits, with the shares that let codes of this many bits for this many slots
    /// hold the most repairs.
    fn for_code(r: u32, bits: u32, slots: u32) -> Self;

    /// The highest rank of a letter that codes shall hold, for remainders of `r` bits.
    fn highest_coded(r: u32) -> u32;

    /// A letter as a number. It never changes, since files have it.
    fn number(letter: Self::Letter) -> u64;

    /// The letter of a number; `None` for numbers that are no letter's.
    fn letter(number: u64) -> Option<Self::Letter>;

    /// Whether a letter is a string of bits: its rank is the string's length then.
    const STRINGS: bool;

    /// The place of a letter in the order of the alphabet, as far as it matters: 0 for the initial one only, and below
    /// 2^16.
    fn rank(letter: Self::Letter) -> u32;

    /// The string of a letter; 0 if letters are none.
    fn bits(letter: Self::Letter) -> u64;

    /// The letter of a rank and a string; any letter if there is none such.
    fn from_rank(rank: u32, bits: u64) -> Self::Letter;

    /// The size of the initial letter's share of an interval of `range` integers.
    fn initial(self, range: u64) -> u64;

    /// The share of any other letter; `None` if the interval is too small for it to have one.
    fn share(self, range: u64, letter: Self::Letter) -> Option<Share>;

    /// The letter to whose share `offset` belongs, which is below `range` and not in the initial letter's share.
    fn letter_at(self, range: u64, offset: u64) -> (Self::Letter, Share);
}

/// A code of at most `bits` bits for the letters of one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockCode<L> {
    letters: L,
    /// The size of the first interval: `2^bits − 1`.
    range: u64,
    /// The highest rank of a letter that is given a code.
    highest: u32,
    /// What is left of the first interval after this many initial letters. It never grows.
    ranges: [u64; SLOTS + 1],
    /// By the length of an offset in bits: this many initial letters come first at least.
    at_least: [u8; 65],
}

/// No block has more slots.
const SLOTS: usize = 64;

impl<L: Letters> BlockCode<L> {
    /// A code of 1 to 64 bits, for letters up to the rank `highest`.
    pub(crate) fn new(letters: L, bits: u32, highest: u32) -> Self {
        debug_assert!((1..=64).contains(&bits));
        let range = low_mask(bits);
        let mut ranges = [range; SLOTS + 1];
        for slot in 0..SLOTS {
            ranges[slot + 1] = letters.initial(ranges[slot]);
        }
        let at_least = std::array::from_fn(|len| leading(&ranges, low_mask(len as u32), 0) as u8);
        Self { letters, range, highest, ranges, at_least }
    }

    /// The highest rank of a letter that is given a code.
    pub(crate) fn highest(&self) -> u32 {
        self.highest
    }

    /// The code of these letters; `None` if they do not fit.
    pub(crate) fn encode(&self, letters: &[L::Letter]) -> Option<u64> {
        let (mut low, mut range) = (0, self.range);
        let initial = L::Letter::default();
        let used = letters.iter().rposition(|&letter| letter != initial).map_or(0, |last| last + 1);
        for &letter in &letters[..used] {
            if letter == initial {
                range = self.letters.initial(range);
            } else {
                let share = self.letters.share(range, letter).filter(|_| L::rank(letter) <= self.highest)?;
                low += share.start;
                range = share.size;
            }
        }
        Some(low)
    }

    /// The letters of a code, slot by slot without end: behind the last slot they are initial.
    ///
    /// The first letter that is not initial is found without the ones before it.
    #[inline]
    pub(crate) fn decode(&self, code: u64) -> Decode<L> {
        let offset = code.min(self.range - 1);
        let at_least = self.at_least[(u64::BITS - offset.leading_zeros()) as usize];
        let initial = leading(&self.ranges, offset, at_least.into());
        Decode { letters: self.letters, range: self.ranges[initial], offset, initial }
    }
}

/// How many initial letters come first in a code, if it is known that there are `at_least` this many.
#[inline]
fn leading(ranges: &[u64; SLOTS + 1], code: u64, at_least: usize) -> usize {
    (at_least..SLOTS).find(|&slot| code >= ranges[slot + 1]).unwrap_or(SLOTS)
}

/// An interval that is being narrowed, and where the code lies in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decode<L> {
    letters: L,
    range: u64,
    /// Below `range`. At 0 all further letters are initial.
    offset: u64,
    /// This many initial letters come first, for which the interval has been narrowed already.
    initial: usize,
}

impl<L: Letters> Iterator for Decode<L> {
    type Item = L::Letter;

    #[inline]
    fn next(&mut self) -> Option<L::Letter> {
        self.nth(0)
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<L::Letter> {
        let initial = L::Letter::default();
        if self.offset == 0 {
            return Some(initial);
        }
        if n < self.initial {
            self.initial -= n + 1;
            return Some(initial);
        }
        let skipped = n - std::mem::take(&mut self.initial);
        for _ in 0..skipped {
            self.step();
            // Most often the first letter that is not initial is the last.
            if self.offset == 0 {
                return Some(initial);
            }
        }
        Some(self.step())
    }
}

impl<L: Letters> Decode<L> {
    /// The next letter.
    #[inline]
    fn step(&mut self) -> L::Letter {
        if self.offset == 0 {
            return L::Letter::default();
        }
        let initial = self.letters.initial(self.range);
        if self.offset < initial {
            self.range = initial;
            return L::Letter::default();
        }
        let (letter, share) = self.letters.letter_at(self.range, self.offset);
        self.range = share.size;
        // The lower end of a share is what `encode` uses; in a gap between shares (no code of ours, but bytes
        // from a file can be anything) the offset is cut down so that it stays below the range.
        self.offset = (self.offset - share.start).min(share.size - 1);
        letter
    }
}

#[cfg(test)]
mod tests;
