//! Shapes of one cache line that are known when the program is compiled: those for the rates 1/100 and 1/1000. On
//! x86-64 only.

use super::geometry::{Geometry, Shape};

/// A shape that is known when the program is compiled, with remainders of R bits in one cache line, and slots and code
/// as [`Geometry`] chooses them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FixedLine<const R: u32, const SLOTS: u32, const CODE_BITS: u32>;

/// Remainders for a rate of 1/100.
pub(crate) type PlainCenti = FixedLine<7, 56, 0>;
pub(crate) type CodedCenti = FixedLine<7, 51, 47>;
/// Remainders for a rate of 1/1000.
pub(crate) type PlainMilli = FixedLine<10, 42, 0>;
pub(crate) type CodedMilli = FixedLine<10, 39, 38>;

impl<const R: u32, const SLOTS: u32, const CODE_BITS: u32> FixedLine<R, SLOTS, CODE_BITS> {
    /// Whether it is this shape. With more slots the runends would not end where the remainders begin.
    pub(crate) fn is(shape: Geometry) -> bool {
        const { assert!(SLOTS <= 56) };
        (shape.remainder_bits(), shape.slots(), shape.code_bits(), shape.words()) == (R, SLOTS, CODE_BITS, 8)
    }
}

impl<const R: u32, const SLOTS: u32, const CODE_BITS: u32> Shape for FixedLine<R, SLOTS, CODE_BITS> {
    #[inline(always)]
    fn remainder_bits(self) -> u32 {
        R
    }

    #[inline(always)]
    fn slots(self) -> u32 {
        SLOTS
    }

    #[inline(always)]
    fn code_bits(self) -> u32 {
        CODE_BITS
    }

    #[inline(always)]
    fn words(self) -> usize {
        8
    }

    #[inline(always)]
    fn split(self, slot: u64) -> (usize, u32) {
        ((slot / u64::from(SLOTS)) as usize, (slot % u64::from(SLOTS)) as u32)
    }

    #[inline(always)]
    fn block(self, words: &[u64], index: usize) -> &[u64] {
        &words.as_chunks::<8>().0[index]
    }

    #[inline(always)]
    fn block_mut(self, words: &mut [u64], index: usize) -> &mut [u64] {
        &mut words.as_chunks_mut::<8>().0[index]
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a constant shape that is not the one that tables are built with.
    use super::*;

    #[test]
    fn fixed_lines_are_what_the_choice_makes() {
        fn is<S: Shape>(fixed: S, shape: Geometry) {
            assert_eq!(fixed.remainders_at(), shape.remainders_at());
            assert_eq!((fixed.runends_end(), fixed.code_at()), (shape.runends_end(), shape.code_at()));
            assert_eq!((fixed.runends_load(), fixed.window()), (shape.runends_load(), shape.window()));
        }
        let (centi, milli) = (Geometry::plain(7), Geometry::plain(10));
        assert!(PlainCenti::is(centi) && PlainMilli::is(milli) && !PlainMilli::is(centi));
        is(FixedLine::<7, 56, 0>, centi);
        is(FixedLine::<10, 42, 0>, milli);
        let (centi, milli) = (Geometry::coded(7), Geometry::coded(10));
        assert!(CodedCenti::is(centi) && CodedMilli::is(milli) && !CodedCenti::is(milli));
        is(FixedLine::<7, 51, 47>, centi);
        is(FixedLine::<10, 39, 38>, milli);
    }
}
