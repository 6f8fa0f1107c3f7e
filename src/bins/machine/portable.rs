//! Plain Rust, for every processor.

use crate::bits::{low_mask, select};

use super::super::line::Line;
use super::{Machine, Search};

/// Any processor.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Portable;

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Gathers the top bits of eight bytes.
#[inline(always)]
fn gather(tops: u64) -> u64 {
    (tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// What `test` finds in each word of the line, in the top bits of the bytes, as one mask.
#[inline(always)]
fn by_words(line: &Line, test: impl Fn(u64) -> u64) -> u64 {
    let (words, _) = line.0.as_chunks::<8>();
    let bits = words.iter().map(|&word| gather(test(u64::from_le_bytes(word))));
    bits.rev().fold(0, |mask, byte| mask << 8 | byte)
}

impl Search for Portable {
    // SAFETY: it needs no instructions that not all processors have.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self
    }

    #[inline(always)]
    fn deposit(self, bits: u64, places: u64) -> u64 {
        // One or two bits at a time, each to the place of its number; those without a place go nowhere.
        let (mut rest, mut deposited) = (bits & low_mask(places.count_ones()), 0);
        while rest != 0 {
            deposited |= 1 << select(places, rest.trailing_zeros());
            rest &= rest - 1;
        }
        deposited
    }

    #[inline(always)]
    fn equal(self, line: &Line, byte: u8) -> u64 {
        let wanted = u64::from(byte) * ONES;
        by_words(line, |word| {
            let difference = word ^ wanted;
            // A byte is 0 iff neither its top bit is set nor a carry from the others reaches it.
            !(((difference & !TOPS) + !TOPS) | difference) & TOPS
        })
    }
}

impl Machine for Portable {
    #[inline(always)]
    fn less(self, line: &Line, byte: u8) -> u64 {
        let bound = u64::from(byte) * ONES;
        by_words(line, |word| {
            // Top bits apart, no borrow leaves a byte: its top bit stays iff its lower bits reach the bound's.
            let reaches = (word | TOPS) - (bound & !TOPS);
            (!word & bound | !(word ^ bound) & !reaches) & TOPS
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
