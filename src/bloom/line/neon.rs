//! A line in four vectors, on 64-bit ARM.

use std::arch::aarch64::{
    int64x2_t, uint64x2_t, vandq_u64, vbicq_u64, vdupq_n_u64, vgetq_lane_u64, vld1q_s64, vld1q_u64,
    vorrq_u64, vreinterpretq_s64_u64, vshlq_u64,
};

use super::{AlignedWords, Digest, HALVES, LANES, Probes, SHIFTS, first_word, second};

/// Shifts to the right are shifts to the left by less than nothing.
const SHIFTS_LEFT: [i64; LANES] = {
    let mut shifts = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        shifts[lane] = -SHIFTS[lane].cast_signed();
        lane += 1;
    }
    shifts
};

/// Whether all bits of a key are set.
#[inline]
pub(super) fn contains(words: &AlignedWords, probes: Probes, digest: Digest) -> bool {
    let first = first_word(words, digest);
    let line = &words[first..first + LANES];
    let half = &HALVES[(digest.lo >> 63) as usize];
    let again = second(digest.lo);
    // SAFETY: this file is compiled for processors with NEON only; all four vectors lie in the eight words of each.
    unsafe {
        let mut unset = vdupq_n_u64(0);
        let mut pair = 0;
        while pair < LANES {
            let shifts = vld1q_s64(SHIFTS_LEFT.as_ptr().add(pair));
            let one = vdupq_n_u64(1);
            let mask = match probes {
                Probes::Four => bits(digest.lo, shifts, vld1q_u64(half.as_ptr().add(pair))),
                Probes::Eight => bits(digest.lo, shifts, one),
                Probes::Sixteen => vorrq_u64(bits(digest.lo, shifts, one), bits(again, shifts, one)),
            };
            unset = vorrq_u64(unset, vbicq_u64(mask, vld1q_u64(line.as_ptr().add(pair))));
            pair += 2;
        }
        vgetq_lane_u64::<0>(unset) | vgetq_lane_u64::<1>(unset) == 0
    }
}

/// In each lane `ones` shifted by its six bits of `source`.
#[inline(always)]
fn bits(source: u64, shifts: int64x2_t, ones: uint64x2_t) -> uint64x2_t {
    // SAFETY: this file is compiled for processors with NEON only.
    unsafe {
        let places = vandq_u64(vshlq_u64(vdupq_n_u64(source), shifts), vdupq_n_u64(63));
        vshlq_u64(ones, vreinterpretq_s64_u64(places))
    }
}
