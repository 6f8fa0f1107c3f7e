//! 64-bit ARM with NEON, little-endian: byte counts for all shapes, and lines with remainders of a byte.
//!
//! Every such processor has NEON, and so has every function compiled for it; a value of this type proves no more than
//! that the program was compiled for one.

use std::arch::aarch64::{
    vandq_u8, vceq_u8, vceqq_u8, vcreate_u8, vdup_n_u8, vdupq_n_u8, vget_lane_u64, vgetq_lane_u64, vld1q_u8,
    vorr_u8, vpaddq_u8, vreinterpret_u64_u8, vreinterpretq_u64_u8,
};

use crate::bits::neon::byte_counts;
use crate::bits::word::{find_by_counts, select_by_counts};

use super::super::block;
use super::super::geometry::Shape;
use super::{Machine, Pair, Slots, holds_behind, holds_later, matches_one_by_one};

/// A processor with NEON.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Neon(());

impl Machine for Neon {
    const SKIPS_ABSENT_RUNS: bool = true;

    // SAFETY: nothing to prove: this file is compiled for such processors only.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn select(self, word: u64, k: u32) -> u32 {
        select_by_counts(word, byte_counts(word), k)
    }

    #[inline(always)]
    fn select_pair(self, word: u64, k: u32, wanted: u64) -> Pair {
        let (position, exists) = find_by_counts(word, byte_counts(word), k);
        Pair::at(word, position, exists & (wanted == 1))
    }

    /// One vector of 8 bytes, in which the slots are the uppermost ones.
    #[inline(always)]
    fn holds<S: Shape, const N: u32>(self, shape: S, block: &[u64], fraction: u64, slots: Slots) -> bool {
        if !S::BYTE_LINE {
            return holds_behind::<S, N>(
                shape,
                block,
                fraction,
                slots.end.wrapping_sub(slots.count),
                slots.count,
            );
        }
        let Slots { end, count, .. } = slots;
        if count > 8 {
            return holds_later::<S, N>(shape, block, fraction, end, count);
        }
        let stored = block::remainders_before(shape, block, end);
        // SAFETY: the processor has NEON.
        let found = unsafe {
            let stored = vcreate_u8(stored);
            let mut found = vdup_n_u8(0);
            let mut chunk = 0;
            while chunk < N {
                let wanted = vdup_n_u8((fraction << (chunk * 8) >> 56) as u8);
                found = vorr_u8(found, vceq_u8(stored, wanted));
                chunk += 1;
            }
            vget_lane_u64::<0>(vreinterpret_u64_u8(found))
        };
        // With 8 slots and nothing found, 64 is not below 64.
        found.leading_zeros() < 8 * count
    }

    #[inline(always)]
    fn matches<S: Shape>(self, shape: S, block: &[u64], remainder: u64, slots: u64) -> u64 {
        if !S::BYTE_LINE {
            return matches_one_by_one(shape, block, remainder, slots);
        }
        self.equal_bytes(block, remainder as u8) >> (shape.remainders_at() / 8) & slots
    }
}

impl Neon {
    /// Which of the 64 bytes of a line have this value.
    #[inline(always)]
    fn equal_bytes(self, block: &[u64], byte: u8) -> u64 {
        const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        let line: &[u64; 8] = block.first_chunk().unwrap_or(&[0; 8]);
        // SAFETY: the processor has NEON, the line has four vectors of 16 bytes, and so much has `BITS`.
        unsafe {
            let (bytes, bits, wanted) =
                (line.as_ptr().cast::<u8>(), vld1q_u8(BITS.as_ptr()), vdupq_n_u8(byte));
            // A bit for each byte; added up in pairs three times, they fill a byte for each 8.
            let quarter = |number: usize| vandq_u8(vceqq_u8(vld1q_u8(bytes.add(16 * number)), wanted), bits);
            let low = vpaddq_u8(quarter(0), quarter(1));
            let high = vpaddq_u8(quarter(2), quarter(3));
            let sums = vpaddq_u8(low, high);
            vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
        }
    }
}
