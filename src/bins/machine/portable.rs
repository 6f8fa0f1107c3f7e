//! Plain Rust, for every processor.

use crate::bits::low_mask;
use crate::bits::word::{byte_counts, find_by_counts};

use super::super::layout::Layout;
use super::super::line::{Line, Run};
use super::{Machine, Search, window};

/// Any processor.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Portable;

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Gathers the top bits of eight bytes.
#[inline(always)]
pub(super) fn gather(tops: u64) -> u64 {
    (tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The run of a class, by the byte counts of the borders: one rank and one search.
#[inline(always)]
pub(super) fn run(occupied: u64, borders: u64, counts: u64, class: usize) -> Run {
    let class = class as u32 & 63;
    let (first, exists) = find_by_counts(borders, counts, (occupied & low_mask(class)).count_ones());
    let first = u64::from(exists) << first;
    // The next border, if the class is occupied: the lowest one above the first.
    let above = borders & !(first | first.wrapping_sub(1));
    let next = above & above.wrapping_neg();
    let occupied = (occupied >> class & 1).wrapping_neg();
    Run { first, last: next & occupied | first & !occupied }
}

impl Search for Portable {
    // SAFETY: it needs no instructions that not all processors have.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn run<L: Layout>(self, last: u64, borders: u64, class: usize) -> Run {
        run(last >> (64 - L::CLASSES), borders, byte_counts(borders), class)
    }

    #[inline(always)]
    fn equal(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        let wanted = u64::from(byte) * ONES;
        window::of_run(line, first, run, |bytes| {
            let difference = u64::from_le_bytes(*bytes) ^ wanted;
            // A byte is 0 iff neither its top bit is set nor a carry from the others reaches it.
            gather(!(((difference & !TOPS) + !TOPS) | difference) & TOPS)
        })
    }
}

impl Machine for Portable {
    #[inline(always)]
    fn less(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        let bound = u64::from(byte) * ONES;
        window::of_run(line, first, run, |bytes| {
            let word = u64::from_le_bytes(*bytes);
            // Top bits apart, no borrow leaves a byte: its top bit stays iff its lower bits reach the bound's.
            let reaches = (word | TOPS) - (bound & !TOPS);
            gather((!word & bound | !(word ^ bound) & !reaches) & TOPS)
        })
    }

    #[inline(always)]
    fn open(self, line: &mut Line, at: u32, end: u32, byte: u8) {
        let (at, end) = (at as usize, end as usize);
        line.0.copy_within(at..end - 1, at + 1);
        line.0[at] = byte;
    }

    #[inline(always)]
    fn close(self, line: &mut Line, at: u32, end: u32) {
        let (at, end) = (at as usize, end as usize);
        line.0.copy_within(at + 1..end, at);
        line.0[end - 1] = 0;
    }
}
