//! A line in one vector of AVX-512, or in two of AVX2.
//!
//! Functions with a `target_feature` are not inlined into functions without, and a call costs more than the query itself.
//! Instructions that are written down need no feature. So [`InlinedAvx512`] has the two operations on eight probes, the
//! common number, in that form.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{AlignedWords, HALVES, LANES, Place, Probes, SHIFTS, second};

/// A processor with AVX-512 F and DQ.
///
/// A value of this type proves that: it can only be made in an unsafe block that vouches for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct InlinedAvx512(());

/// The shifts on a cache line of their own, so that one aligned load fetches them.
#[repr(align(64))]
struct Shifts([u64; LANES]);

static LANE_SHIFTS: Shifts = Shifts(SHIFTS);
static ONE: u64 = 1;

#[expect(clippy::unused_self, reason = "it is the proof that the processor has the instructions")]
impl InlinedAvx512 {
    /// # Safety
    ///
    /// The processor must have AVX-512 F and DQ.
    pub(super) unsafe fn new() -> Self {
        Self(())
    }

    /// [`contains`](super::contains) for eight probes.
    ///
    /// Turns every lane until the bit that was asked for is its lowest. Only the upper vector registers are used: they leave no
    /// state behind that would slow down code without AVX.
    #[inline(always)]
    pub(super) fn contains(self, words: &AlignedWords, at: Place) -> bool {
        let line = &words[at.first..at.first + LANES];
        let missing: u32;
        // SAFETY: `self` proves AVX-512 F and DQ. The 64 bytes of `line`, of the shifts and the one are read, and registers
        // changed that are named.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {source}",
                "vpsrlvq zmm16, zmm16, zmmword ptr [{shifts}]",
                "vmovdqu64 zmm17, zmmword ptr [{line}]",
                "vprorvq zmm16, zmm17, zmm16",
                "vptestnmq k1, zmm16, qword ptr [{one}]{{1to8}}",
                "kmovb {missing:e}, k1",
                source = in(reg) at.source,
                shifts = in(reg) LANE_SHIFTS.0.as_ptr(),
                line = in(reg) line.as_ptr(),
                one = in(reg) &raw const ONE,
                missing = lateout(reg) missing,
                out("xmm16") _,
                out("xmm17") _,
                out("k1") _,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        missing == 0
    }

    /// [`insert`](super::insert) for eight probes.
    #[inline(always)]
    pub(super) fn insert(self, words: &mut AlignedWords, at: Place) -> bool {
        let line = &mut words[at.first..at.first + LANES];
        let missing: u32;
        // SAFETY: as in `contains`; and the 64 bytes of `line`, which is borrowed exclusively, are written.
        unsafe {
            asm!(
                "vpbroadcastq zmm16, {source}",
                "vpsrlvq zmm16, zmm16, zmmword ptr [{shifts}]",
                "vpbroadcastq zmm17, qword ptr [{one}]",
                "vprolvq zmm16, zmm17, zmm16",
                "vmovdqu64 zmm17, zmmword ptr [{line}]",
                "vptestnmq k1, zmm16, zmm17",
                "vporq zmm17, zmm16, zmm17",
                "vmovdqu64 zmmword ptr [{line}], zmm17",
                "kmovb {missing:e}, k1",
                source = in(reg) at.source,
                shifts = in(reg) LANE_SHIFTS.0.as_ptr(),
                line = in(reg) line.as_mut_ptr(),
                one = in(reg) &raw const ONE,
                missing = lateout(reg) missing,
                out("xmm16") _,
                out("xmm17") _,
                out("k1") _,
                options(nostack, preserves_flags)
            );
        }
        missing != 0
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn contains_avx512(words: &AlignedWords, probes: Probes, at: Place) -> bool {
    let line = &words[at.first..at.first + LANES];
    // SAFETY: `line` has eight words.
    let line = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    let unset = _mm512_andnot_si512(line, bits_avx512(probes, at.source));
    _mm512_test_epi64_mask(unset, unset) == 0
}

#[target_feature(enable = "avx512f")]
pub(super) fn insert_avx512(words: &mut AlignedWords, probes: Probes, at: Place) -> bool {
    let line = &mut words[at.first..at.first + LANES];
    let bits = bits_avx512(probes, at.source);
    // SAFETY: `line` has eight words.
    let old = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
    // SAFETY: as before, and the borrow is exclusive.
    unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), _mm512_or_si512(old, bits)) };
    let unset = _mm512_andnot_si512(old, bits);
    _mm512_test_epi64_mask(unset, unset) != 0
}

/// The bits of a key in all lanes.
#[target_feature(enable = "avx512f")]
#[inline]
fn bits_avx512(probes: Probes, source: u64) -> __m512i {
    // SAFETY: the constant has eight words.
    let shifts = unsafe { _mm512_loadu_si512(SHIFTS.as_ptr().cast()) };
    // Rotations count modulo 64, so the six bits need not be cut out.
    let bits = |source: u64, ones| {
        _mm512_rolv_epi64(ones, _mm512_srlv_epi64(_mm512_set1_epi64(source as i64), shifts))
    };
    let one = _mm512_set1_epi64(1);
    match probes {
        Probes::Four => {
            let half = &HALVES[(source >> 63) as usize];
            // SAFETY: a half has eight words.
            bits(source, unsafe { _mm512_loadu_si512(half.as_ptr().cast()) })
        }
        Probes::Eight => bits(source, one),
        Probes::Sixteen => _mm512_or_si512(bits(source, one), bits(second(source), one)),
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn contains_avx2(words: &AlignedWords, probes: Probes, at: Place) -> bool {
    let line = &words[at.first..at.first + LANES];
    let half = |lane: usize| {
        // 1 iff no bit of the key is missing in the line.
        _mm256_testc_si256(load_avx2(&line[lane..lane + 4]), bits_avx2(probes, at.source, lane)) == 1
    };
    half(0) && half(4)
}

#[target_feature(enable = "avx2")]
pub(super) fn insert_avx2(words: &mut AlignedWords, probes: Probes, at: Place) -> bool {
    let line = &mut words[at.first..at.first + LANES];
    let mut new = false;
    for lane in [0, 4] {
        let half = &mut line[lane..lane + 4];
        let (old, bits) = (load_avx2(half), bits_avx2(probes, at.source, lane));
        // SAFETY: four words are 32 bytes, and the borrow is exclusive.
        unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), _mm256_or_si256(old, bits)) };
        new |= _mm256_testc_si256(old, bits) == 0;
    }
    new
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_avx2(words: &[u64]) -> __m256i {
    let words: &[u64; 4] = words.try_into().unwrap_or(&[0; 4]);
    // SAFETY: four words are 32 bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// The bits of a key in four lanes from `lane` on.
#[target_feature(enable = "avx2")]
#[inline]
fn bits_avx2(probes: Probes, source: u64, lane: usize) -> __m256i {
    let shifts = load_avx2(&SHIFTS[lane..lane + 4]);
    let bits = |source: u64, ones| {
        let shifted = _mm256_srlv_epi64(_mm256_set1_epi64x(source as i64), shifts);
        _mm256_sllv_epi64(ones, _mm256_and_si256(shifted, _mm256_set1_epi64x(63)))
    };
    let one = _mm256_set1_epi64x(1);
    match probes {
        Probes::Four => bits(source, load_avx2(&HALVES[(source >> 63) as usize][lane..lane + 4])),
        Probes::Eight => bits(source, one),
        Probes::Sixteen => _mm256_or_si256(bits(source, one), bits(second(source), one)),
    }
}
