//! How a hash is cut on each of the tables, and in which order the frontier walks.
//!
//! A number of 64 bits, the upper half of a digest under one of the functions, times the columns of a table is a
//! fixed-point number. Its digits from the left are
//!
//! ```text
//! on bins       | column: the bin | class | tag       | stratum: 2 bits | adaptivity bits, as many as they are
//! on quotients  | column | class          | remainder | stratum: 2 bits | the rest of a large remainder, adaptivity bits
//!               '------ quotient --------'
//! ```
//!
//! All of them come from the function's own product, so nothing of where a key lies, and of whom it meets there,
//! outlives the function. None of them is cut from the lowest digits, since those of a product depend on the lowest
//! digits of the digest under every function.
//!
//! The frontier walks all strata, in each of them all classes, and in each of those all columns. So it takes a quarter
//! of the old keys out of each quotient, then the next quarter: whatever part of a phase is done, old and new keys
//! together are spread evenly. With the share f of a stratum passed, of R, a query finds 1 + (f − f²)/R² times the keys
//! that it should on average: 1.016 at most. A query that is known to be of a quotient ahead of the frontier finds 1 +
//! f/R.

use crate::bins;
use crate::quotient::{self, Place};

/// R: how many times the frontier comes to a quotient in a phase.
pub(super) const STRATA: u64 = 4;

/// The bits of a stratum.
pub(super) const STRATUM_BITS: u32 = STRATA.ilog2();

/// By how much queries that were false positives once are more frequently so again at most, wherever the frontier is:
/// the mean square of the densities above over their mean. Rates are planned with it.
pub(super) const CROWDING: f64 = 1.0 + 1.0 / 32.0;

/// The lowest digits of a product that nothing is cut from.
const UNUSED_BITS: u32 = 8;

/// Where a column's number begins in a [turn](Columns::turn), and its class above the columns. The stratum is on top.
const CLASS_AT: u32 = 48;
const STRATUM_AT: u32 = CLASS_AT + MAX_CLASSES.ilog2();

/// A fixed-point number: a hash times the columns or slots of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    whole: u64,
    fraction: u64,
}

impl Cut {
    #[inline(always)]
    fn of(high: u64, count: u64) -> Self {
        let product = u128::from(high) * u128::from(count);
        Self { whole: (product >> 64) as u64, fraction: product as u64 }
    }

    /// The other one, if that is wanted: without a branch, which could not be predicted.
    #[inline(always)]
    pub(super) fn or(self, other: Self, wanted: bool) -> Self {
        let mask = u64::from(wanted).wrapping_neg();
        let either = |one: u64, two: u64| one ^ (one ^ two) & mask;
        Self { whole: either(self.whole, other.whole), fraction: either(self.fraction, other.fraction) }
    }
}

/// How a hash is cut into quotient, remainder and stratum: by columns, each of which has a quotient for every class.
pub(super) trait Columns: Copy + std::fmt::Debug {
    /// Where a key belongs.
    type Place: Copy;

    /// How many there are.
    fn count(self) -> u64;

    /// How many classes a column has.
    fn classes(self) -> u64;

    /// The digits of a key's product.
    fn cut(self, high: u64) -> Cut;

    /// When it is a key's turn: the frontier passes keys in the order of this number.
    fn turn(self, cut: Cut) -> u64;

    /// Where a key belongs.
    fn place(self, cut: Cut) -> Self::Place;

    /// The column and the class of a place.
    fn column_and_class(self, place: Self::Place) -> (u64, u32);

    /// The quotient of a place.
    #[inline(always)]
    fn quotient(self, place: Self::Place) -> u64 {
        let (column, class) = self.column_and_class(place);
        self.join(column, class)
    }

    /// The digits behind the quotient and how many of them are worth using.
    fn fraction(self, cut: Cut) -> (u64, u32);

    /// How many quotients there are.
    fn quotients(self) -> u64 {
        self.count() * self.classes()
    }

    /// The column and the class of a quotient.
    fn split(self, quotient: u64) -> (u64, u32) {
        (quotient / self.classes(), (quotient % self.classes()) as u32)
    }

    /// The quotient of a class of a column.
    fn join(self, column: u64, class: u32) -> u64 {
        column * self.classes() + u64::from(class)
    }

    /// The turn of the keys of a quotient and a stratum.
    fn turn_of(self, stratum: u64, quotient: u64) -> u64 {
        let (column, class) = self.split(quotient);
        turn(stratum, class.into(), column)
    }
}

#[inline(always)]
fn turn(stratum: u64, class: u64, column: u64) -> u64 {
    stratum << STRATUM_AT | class << CLASS_AT | column
}

/// The columns of a quotient table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slots {
    /// In whole columns.
    slots: u64,
    class_bits: u32,
    /// The bits of a remainder that stand in the table.
    table_bits: u32,
}

impl Slots {
    /// Of a table with so many slots, in [whole columns](whole_columns), and so many bits of remainders.
    pub(super) fn new(slots: u64, table_bits: u32) -> Self {
        debug_assert!(whole_columns(slots) == slots, "{slots} slots are no whole columns");
        Self { slots, class_bits: classes(slots).ilog2(), table_bits }
    }

    pub(super) fn slots(self) -> u64 {
        self.slots
    }

    /// The most slots of a table with so many bits of remainders.
    pub(super) fn most(table_bits: u32) -> u64 {
        1 << (64 - UNUSED_BITS - STRATUM_BITS - table_bits).min(CLASS_AT)
    }
}

impl Columns for Slots {
    type Place = Place;

    fn count(self) -> u64 {
        self.slots >> self.class_bits
    }

    fn classes(self) -> u64 {
        1 << self.class_bits
    }

    #[inline(always)]
    fn split(self, quotient: u64) -> (u64, u32) {
        (quotient >> self.class_bits, (quotient & ((1 << self.class_bits) - 1)) as u32)
    }

    #[inline(always)]
    fn cut(self, high: u64) -> Cut {
        Cut::of(high, self.slots)
    }

    #[inline(always)]
    fn turn(self, Cut { whole, fraction }: Cut) -> u64 {
        let stratum = fraction << self.table_bits >> (64 - STRATUM_BITS);
        turn(stratum, whole & ((1 << self.class_bits) - 1), whole >> self.class_bits)
    }

    #[inline(always)]
    fn place(self, Cut { whole, fraction }: Cut) -> Place {
        Place { quotient: whole, fraction }
    }

    fn join(self, column: u64, class: u32) -> u64 {
        column << self.class_bits | u64::from(class)
    }

    #[inline(always)]
    fn column_and_class(self, place: Place) -> (u64, u32) {
        self.split(place.quotient)
    }

    #[inline(always)]
    fn quotient(self, place: Place) -> u64 {
        place.quotient
    }

    fn fraction(self, Cut { fraction, .. }: Cut) -> (u64, u32) {
        (fraction, fraction_bits(self.slots))
    }
}

/// The columns of bins: each bin is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bins {
    bins: u64,
    classes: u32,
    tag_bits: u32,
}

impl Bins {
    /// So many bins with so many classes and tags of `tag_bits`: all that a line wants but in tests, which want many
    /// equal ones.
    pub(super) fn new(bins: u64, classes: u32, tag_bits: u32) -> Self {
        Self { bins, classes, tag_bits }
    }

    /// The most bins with so many classes and tags of so many bits.
    pub(super) fn most(classes: u32, tag_bits: u32) -> u64 {
        let class_bits = class_bits(classes);
        1 << (64 - UNUSED_BITS - STRATUM_BITS - class_bits - tag_bits).min(CLASS_AT - class_bits)
    }

    /// The bits of a tag.
    pub(super) fn tag_bits(self) -> u32 {
        self.tag_bits
    }

    /// The place of a key of this class of a bin with this tag, and as little as there can be behind it.
    pub(super) fn place_of(self, bin: u64, class: u32, tag: u64) -> bins::Place {
        let digits = u128::from(class) << 64 | u128::from(tag << (64 - self.tag_bits));
        bins::Place::new(bin, digits.div_ceil(self.classes.into()) as u64)
    }

    /// The class, and the digits behind it.
    #[inline(always)]
    fn class_and_rest(self, fraction: u64) -> (u64, u64) {
        let product = u128::from(fraction) * u128::from(self.classes);
        ((product >> 64) as u64, product as u64)
    }
}

/// The digits of one of so many classes.
fn class_bits(classes: u32) -> u32 {
    classes.next_power_of_two().trailing_zeros()
}

impl Columns for Bins {
    type Place = bins::Place;

    fn count(self) -> u64 {
        self.bins
    }

    #[inline(always)]
    fn classes(self) -> u64 {
        self.classes.into()
    }

    #[inline(always)]
    fn cut(self, high: u64) -> Cut {
        Cut::of(high, self.bins)
    }

    #[inline(always)]
    fn turn(self, Cut { whole, fraction }: Cut) -> u64 {
        let (class, rest) = self.class_and_rest(fraction);
        turn(rest << self.tag_bits >> (64 - STRATUM_BITS), class, whole)
    }

    #[inline(always)]
    fn place(self, Cut { whole, fraction }: Cut) -> bins::Place {
        // Tests have tags of fewer bits than lines do: nothing else of a key may be stored.
        #[cfg(test)]
        let fraction = {
            let (class, rest) = self.class_and_rest(fraction);
            self.place_of(whole, class as u32, rest >> (64 - self.tag_bits)).to_words()[1]
        };
        bins::Place::new(whole, fraction)
    }

    #[inline(always)]
    fn column_and_class(self, place: bins::Place) -> (u64, u32) {
        (place.bin, place.class(self.classes.into()) as u32)
    }

    fn fraction(self, Cut { fraction, .. }: Cut) -> (u64, u32) {
        let bits = fraction_bits(self.bins).saturating_sub(class_bits(self.classes));
        (self.class_and_rest(fraction).1, bits)
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

/// The digits behind the whole number that are worth using.
pub(super) fn fraction_bits(count: u64) -> u32 {
    quotient::fraction_bits(count).saturating_sub(UNUSED_BITS)
}

/// At least so many slots, in whole columns.
pub(super) fn whole_columns(slots: u64) -> u64 {
    slots.next_multiple_of(classes(slots))
}
