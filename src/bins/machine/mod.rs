//! What different processors do differently with a line, behind one small interface.
//!
//! The algorithms are written once, over a [`Machine`] and a [`Layout`](super::layout::Layout). Whole operations are
//! compiled for each machine, behind run-time detection, so that everything below them is inlined with the right
//! instructions.

#[cfg(target_arch = "x86_64")]
pub(super) mod inlined;
mod portable;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

pub(super) use portable::Portable;

use super::line::Line;

/// What a query needs that has instructions of its own on some processors.
///
/// Bytes are numbered from 0 to 63, and bit i of a mask is the byte i.
pub(super) trait Search: Copy {
    /// The proof that the processor has this machine's instructions.
    ///
    /// # Safety
    ///
    /// It must have them.
    unsafe fn new() -> Self;

    /// How many bits are set.
    #[inline(always)]
    fn count(self, bits: u64) -> u32 {
        bits.count_ones()
    }

    /// The parallel deposit of bits: bit i of `bits` goes to the place of the i-th set bit of `places`. `bits` has one set
    /// bit at most.
    fn deposit(self, bits: u64, places: u64) -> u64;

    /// Which bytes are equal to this one.
    fn equal(self, line: &Line, byte: u8) -> u64;
}

/// What changes of a line need beyond that.
pub(super) trait Machine: Search {
    /// Which bytes are less than this one.
    fn less(self, line: &Line, byte: u8) -> u64;

    /// Moves the bytes from `at` on up by one, puts `byte` at `at`, and drops what was before `end`.
    fn open(self, line: &mut Line, at: u32, end: u32, byte: u8);

    /// Moves the bytes behind `at` down by one, over what was at `at`, and puts 0 before `end`.
    fn close(self, line: &mut Line, at: u32, end: u32);
}
