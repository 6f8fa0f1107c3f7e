//! A line in four vectors, on 64-bit ARM.

use std::arch::aarch64::{
    uint64x2_t, vandq_u64, vbicq_u64, vdupq_n_u64, vgetq_lane_u64, vld1q_s64, vld1q_u64, vorrq_u64,
    vreinterpretq_s64_u64, vshlq_u64, vst1q_u64,
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
    let (mut unset, mut lane) = (NONE, 0);
    while lane < LANES {
        let (old, bits) = (load(&line[lane..]), two_lanes(probes, digest.lo, lane));
        // SAFETY: this file is compiled for processors with NEON only.
        unset = unsafe { vorrq_u64(unset, vbicq_u64(bits, old)) };
        lane += 2;
    }
    is_none(unset)
}

/// Sets the bits of a key, and returns whether one of them was not set before.
#[inline]
pub(super) fn insert(words: &mut AlignedWords, probes: Probes, digest: Digest) -> bool {
    let first = first_word(words, digest);
    let line = &mut words[first..first + LANES];
    let (mut unset, mut lane) = (NONE, 0);
    while lane < LANES {
        let two: &mut [u64] = &mut line[lane..lane + 2];
        let (old, bits) = (load(two), two_lanes(probes, digest.lo, lane));
        // SAFETY: this file is compiled for processors with NEON only; two words are a vector, and the borrow is
        // exclusive.
        unsafe {
            vst1q_u64(two.as_mut_ptr(), vorrq_u64(old, bits));
            unset = vorrq_u64(unset, vbicq_u64(bits, old));
        }
        lane += 2;
    }
    !is_none(unset)
}

/// No bits.
// SAFETY: any 16 bytes are a vector.
const NONE: uint64x2_t = unsafe { std::mem::transmute::<[u64; 2], uint64x2_t>([0; 2]) };

#[inline(always)]
fn is_none(bits: uint64x2_t) -> bool {
    // SAFETY: this file is compiled for processors with NEON only.
    unsafe { vgetq_lane_u64::<0>(bits) | vgetq_lane_u64::<1>(bits) == 0 }
}

/// The first two of these words.
#[inline(always)]
fn load(words: &[u64]) -> uint64x2_t {
    let words: &[u64; 2] = words.first_chunk().unwrap_or(&[0; 2]);
    // SAFETY: this file is compiled for processors with NEON only, and two words are a vector.
    unsafe { vld1q_u64(words.as_ptr()) }
}

/// The bits of a key in the two lanes from `lane` on.
#[inline(always)]
fn two_lanes(probes: Probes, lo: u64, lane: usize) -> uint64x2_t {
    let half = &HALVES[(lo >> 63) as usize][lane..];
    match probes {
        Probes::Four => bits(lo, lane, load(half)),
        Probes::Eight | Probes::Half => bits(lo, lane, load(&[1; 2])),
        // SAFETY: this file is compiled for processors with NEON only.
        Probes::Sixteen => unsafe {
            let one = load(&[1; 2]);
            vorrq_u64(bits(lo, lane, one), bits(second(lo), lane, one))
        },
    }
}

/// In each of the two lanes from `lane` on `ones` shifted by the lane's six bits of `source`.
#[inline(always)]
fn bits(source: u64, lane: usize, ones: uint64x2_t) -> uint64x2_t {
    let shifts: &[i64; 2] = SHIFTS_LEFT[lane..].first_chunk().unwrap_or(&[0; 2]);
    // SAFETY: this file is compiled for processors with NEON only, and two words are a vector.
    unsafe {
        let shifts = vld1q_s64(shifts.as_ptr());
        let places = vandq_u64(vshlq_u64(vdupq_n_u64(source), shifts), vdupq_n_u64(63));
        vshlq_u64(ones, vreinterpretq_s64_u64(places))
    }
}
