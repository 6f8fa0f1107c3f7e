//! How an interval is divided among extensions (paper, C.4): by length first, then by value.

use std::fmt;

use crate::bits::low_mask;

use super::{Letters, Share};

/// A string of up to 62 bits that continues a fingerprint.
///
/// Kept as its number in the order `'', 0, 1, 00, 01, 10, 11, 000, …`, so the empty one is 0.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Extension(u64);

impl Extension {
    /// The most bits that an extension has.
    pub(crate) const MAX_LEN: u32 = 62;

    /// The `len` lowest bits of `bits`.
    #[inline]
    pub(crate) fn new(bits: u64, len: u32) -> Self {
        debug_assert!(len <= Self::MAX_LEN && bits >> len == 0);
        Self((1 << len | bits) - 1)
    }

    /// How many bits.
    #[inline]
    pub(crate) fn len(self) -> u32 {
        (self.0 + 1).ilog2()
    }

    /// The bits, the first of them the most significant.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        (self.0 + 1) ^ 1 << self.len()
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len() {
            0 => f.write_str("''"),
            len => write!(f, "{:0len$b}", self.bits(), len = len as usize),
        }
    }
}

/// The probabilities that the code assumes: 1 − 2^-x for the empty extension, otherwise each length half as
/// likely as the one before and all values of a length alike, so 2^-x · 2^-2ℓ for each extension of ℓ bits.
/// (The paper prints the exponent as −2^ℓ; only −2ℓ makes the probabilities sum to 1.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extensions {
    x: u32,
}

#[cfg(test)]
impl Default for Extensions {
    fn default() -> Self {
        Self::for_code(8, 46, 46)
    }
}

/// `value / 2^shift`, for any shift.
#[inline]
fn shr(value: u64, shift: u32) -> u64 {
    value.checked_shr(shift).unwrap_or(0)
}

impl Letters for Extensions {
    type Letter = Extension;

    const STRINGS: bool = true;

    /// As was measured for shapes of 2 to 14 eighths of a bit a slot, until one block in a hundred overflows. Next to
    /// the best, x hardly matters.
    fn for_code(_: u32, bits: u32, slots: u32) -> Self {
        match 8 * bits / slots {
            0..5 => Self { x: 4 },
            5..12 => Self { x: 3 },
            _ => Self { x: 2 },
        }
    }

    /// Any.
    fn highest_coded(_: u32) -> u32 {
        Extension::MAX_LEN
    }

    fn number(letter: Extension) -> u64 {
        letter.0
    }

    fn letter(number: u64) -> Option<Extension> {
        // The last extension of the longest ones.
        (number < (1 << (Extension::MAX_LEN + 1)) - 1).then_some(Extension(number))
    }
    #[inline]
    fn rank(letter: Extension) -> u32 {
        letter.len()
    }

    #[inline]
    fn bits(letter: Extension) -> u64 {
        letter.bits()
    }

    #[inline]
    fn from_rank(rank: u32, bits: u64) -> Extension {
        let len = rank.min(Extension::MAX_LEN);
        Extension::new(bits & low_mask(len), len)
    }

    #[inline]
    fn initial(self, range: u64) -> u64 {
        range - (range >> self.x)
    }

    #[inline]
    fn share(self, range: u64, letter: Extension) -> Option<Share> {
        let (tail, len) = (range >> self.x, letter.len());
        let size = shr(tail, 2 * len);
        if size == 0 {
            return None;
        }
        // Lengths len, len + 1, … together have tail / 2^(len − 1).
        let start = range - shr(tail, len - 1) + letter.bits() * size;
        Some(Share { start, size })
    }

    #[inline]
    fn letter_at(self, range: u64, offset: u64) -> (Extension, Share) {
        let (tail, rest) = (range >> self.x, range - offset);
        // The lengths beyond the one looked for have at most what is behind `offset`.
        let mut len = 1;
        while len < Extension::MAX_LEN && shr(tail, len) >= rest {
            len += 1;
        }
        let start = range - shr(tail, len - 1);
        let size = shr(tail, 2 * len).max(1);
        let bits = ((offset - start) / size).min((1 << len) - 1);
        (Extension::new(bits, len), Share { start: start + bits * size, size })
    }
}
