//! What different processors do differently with a line, behind one small interface.
//!
//! The algorithms are written once, over a [`Machine`] and a [`Layout`](super::layout::Layout). Whole operations are
//! compiled for each machine, behind run-time detection, so that everything below them is inlined with the right
//! instructions.

#[cfg(target_arch = "x86_64")]
pub(super) mod inlined;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
pub(super) mod neon;
mod portable;
mod window;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

pub(super) use portable::Portable;

use super::layout::Layout;
use super::line::{Line, Run};

/// What a query needs that has instructions of its own on some processors.
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

    /// The run of a class, by the last word of a line, whose upper bits say which classes are occupied: it begins at
    /// the border that as many are below as there are occupied classes before it, and ends there too if it is not
    /// occupied, else at the next one. What lies above the borders or below the classes does not matter.
    fn run<L: Layout>(self, last: u64, borders: u64, class: usize) -> Run;

    /// Which slots of a run have this byte, if those of all slots begin with this one of the line.
    fn equal(self, line: &Line, first: u32, byte: u8, run: Run) -> u64;
}

/// What changes of a line need beyond that.
pub(super) trait Machine: Search {
    /// Which slots of a run have a byte that is less than this one.
    fn less(self, line: &Line, first: u32, byte: u8, run: Run) -> u64;

    /// Moves the bytes from `at` on up by one, puts `byte` at `at`, and drops what was before `end`.
    fn open(self, line: &mut Line, at: u32, end: u32, byte: u8);

    /// Moves the bytes behind `at` down by one, over what was at `at`, and puts 0 before `end`.
    fn close(self, line: &mut Line, at: u32, end: u32);
}
