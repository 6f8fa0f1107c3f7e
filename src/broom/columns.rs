//! How a hash is cut into quotients on each of the grounds.
//!
//! ```text
//! quotient = column · classes + class
//! ```
//!
//! The class is the last bits of the digest's upper half, whatever the function; column and fraction are a fixed-point product of
//! that half under the function. On a quotient table the quotients are slots; on bins a column is a bin, and what stands there of
//! a key is its class and, as its *tag*, the beginning of the fraction.

use crate::bins;
use crate::quotient::{self, Place};

/// How a hash is cut into quotient and fraction: by columns, each of which has a quotient for every class.
pub(super) trait Columns: Copy + std::fmt::Debug {
    /// Where a key belongs.
    type Place: Copy;

    /// How many there are.
    fn count(self) -> u64;

    /// The bits of a quotient that are its class: those of the digest's upper half.
    fn class_mask(self) -> u64;

    /// The bits of the fraction that are worth using: those of the class are used up.
    fn fraction_bits(self) -> u32;

    /// Where a key belongs whose digest has this upper half, and this one under its function.
    fn place(self, own: u64, high: u64) -> Self::Place;

    /// The quotient of a place.
    fn quotient(self, place: Self::Place) -> u64;

    /// The fraction of a key whose digest has this upper half under its function.
    fn fraction(self, high: u64) -> u64;

    /// How many quotients there are.
    fn quotients(self) -> u64 {
        self.count() * (self.class_mask() + 1)
    }
}

/// The columns of a quotient table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slots {
    /// In whole columns.
    slots: u64,
    class_mask: u64,
}

impl Slots {
    /// Of a table with so many slots, in [whole columns](whole_columns).
    pub(super) fn new(slots: u64) -> Self {
        debug_assert!(whole_columns(slots) == slots, "{slots} slots are no whole columns");
        Self { slots, class_mask: classes(slots) - 1 }
    }

    pub(super) fn slots(self) -> u64 {
        self.slots
    }
}

impl Columns for Slots {
    type Place = Place;

    fn count(self) -> u64 {
        self.slots / (self.class_mask + 1)
    }

    #[inline(always)]
    fn class_mask(self) -> u64 {
        self.class_mask
    }

    fn fraction_bits(self) -> u32 {
        fraction_bits(self.slots)
    }

    #[inline(always)]
    fn place(self, own: u64, high: u64) -> Place {
        // The column, then as many bits as the class has: they make room for it.
        let product = u128::from(high) * u128::from(self.slots);
        let quotient = (product >> 64) as u64 & !self.class_mask | own & self.class_mask;
        Place { quotient, fraction: product as u64 }
    }

    #[inline(always)]
    fn quotient(self, place: Place) -> u64 {
        place.quotient
    }

    fn fraction(self, high: u64) -> u64 {
        high.wrapping_mul(self.slots)
    }
}

/// The columns of bins: each bin is one.
///
/// Class and column are as on a quotient table. The tag is the beginning of the fraction, so it is another one under every
/// function: were it cut from the digest itself, whoever has gathered keys of one tag would have them for all phases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bins {
    bins: u64,
    class_bits: u32,
    /// The bits of the fraction that are the tag's: all that a line wants but in tests, which want many equal ones.
    #[cfg(test)]
    tag_mask: u64,
}

impl Bins {
    /// So many bins with 2^`class_bits` classes and tags of `tag_bits`.
    #[cfg_attr(
        not(test),
        expect(unused_variables, reason = "lines take no more of the fraction than their tags")
    )]
    pub(super) fn new(bins: u64, class_bits: u32, tag_bits: u32) -> Self {
        Self {
            bins,
            class_bits,
            #[cfg(test)]
            tag_mask: !(u64::MAX >> tag_bits),
        }
    }

    /// The bin and the class of a quotient.
    pub(super) fn split(self, quotient: u64) -> (u64, u32) {
        (quotient >> self.class_bits, (quotient & self.class_mask()) as u32)
    }

    /// The quotient of a class of a bin.
    pub(super) fn join(self, bin: u64, class: u64) -> u64 {
        bin << self.class_bits | class
    }

    /// The place of a quotient's key whose fraction begins so.
    #[inline(always)]
    pub(super) fn place_of(self, bin: u64, class: u64, fraction: u64) -> bins::Place {
        #[cfg(test)]
        let fraction = fraction & self.tag_mask;
        bins::Place::new(bin, class << (64 - self.class_bits) | fraction >> self.class_bits)
    }
}

impl Columns for Bins {
    type Place = bins::Place;

    fn count(self) -> u64 {
        self.bins
    }

    #[inline(always)]
    fn class_mask(self) -> u64 {
        (1 << self.class_bits) - 1
    }

    fn fraction_bits(self) -> u32 {
        quotient::fraction_bits(self.bins).saturating_sub(self.class_bits)
    }

    #[inline(always)]
    fn place(self, own: u64, high: u64) -> bins::Place {
        let product = u128::from(high) * u128::from(self.bins);
        // What is above the class in the digest is shifted out.
        self.place_of((product >> 64) as u64, own, product as u64)
    }

    #[inline(always)]
    fn quotient(self, place: bins::Place) -> u64 {
        self.join(place.bin, place.class(self.class_bits))
    }

    fn fraction(self, high: u64) -> u64 {
        high.wrapping_mul(self.bins)
    }
}

/// The most classes that there are.
pub(super) const MAX_CLASSES: u64 = 64;

/// The fewest columns that a table with more than one class has, so that rounding to whole columns costs little.
pub(super) const MIN_COLUMNS: u64 = 16;

/// How many classes a table of so many slots has: a power of two, [`MAX_CLASSES`] unless the table is tiny.
pub(super) fn classes(slots: u64) -> u64 {
    1 << (slots / MIN_COLUMNS).clamp(1, MAX_CLASSES).ilog2()
}

/// The bits of the fraction of a [`Place`] that are worth using in a table of so many slots. Those of the class are used up,
/// and as many are lost where a column makes room for it.
pub(super) fn fraction_bits(slots: u64) -> u32 {
    quotient::fraction_bits(slots).saturating_sub(classes(slots).ilog2())
}

/// At least so many slots, in whole columns.
pub(super) fn whole_columns(slots: u64) -> u64 {
    slots.next_multiple_of(classes(slots))
}
