//! x86-64: BMI2 and AVX-512 for all shapes, AVX2 and AVX-512 for those with remainders of a byte in one cache line.
//!
//! A value of one of these types is a proof that the processor has the instructions: it can only be made in an
//! unsafe block that vouches for them. The methods have no `target_feature` of their own; they are inlined into
//! functions that do.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_alignr_epi8, _mm256_andnot_si256, _mm256_blendv_epi8, _mm256_cmpeq_epi8,
    _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_permute2x128_si256, _mm256_set1_epi8,
    _mm256_storeu_si256, _mm512_add_epi8, _mm512_alignr_epi64, _mm512_and_si512, _mm512_andnot_si512,
    _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_mask_set1_epi8, _mm512_mask_storeu_epi8,
    _mm512_mask_storeu_epi64, _mm512_mask_sub_epi8, _mm512_maskz_loadu_epi64, _mm512_maskz_mov_epi8,
    _mm512_maskz_permutexvar_epi8, _mm512_max_epi64, _mm512_or_si512, _mm512_permutexvar_epi8,
    _mm512_set1_epi8, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_sllv_epi64,
    _mm512_srlv_epi64, _mm512_sub_epi64, _pdep_u64,
};

use crate::bits::low_mask;

use super::super::block::{self, Meta};
use super::super::geometry::{OCCUPIEDS_AT, Shape};
use super::{Machine, Pair, Slots, open_by_words};

/// A processor with BMI1, BMI2, POPCNT and LZCNT.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Bmi2(());

/// A processor with AVX2 too, on blocks of one line with remainders of a byte.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Avx2(());

/// A processor with AVX-512 F, BW, VL and VBMI too, on blocks of one line with remainders of a byte.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Avx512(());

/// The processor of [`Avx512`], on blocks of any shape.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Avx512Any(Avx512);

impl Machine for Avx512Any {
    // SAFETY: the caller vouches for the instructions, as the trait demands.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(Avx512(()))
    }

    #[inline(always)]
    fn select(self, word: u64, k: u32) -> u32 {
        self.0.select(word, k)
    }

    #[inline(always)]
    fn select_pair(self, word: u64, k: u32, wanted: u64) -> Pair {
        self.0.select_pair(word, k, wanted)
    }

    #[inline(always)]
    fn first_free<S: Shape>(self, shape: S, block: &[u64], meta: Meta, from: u32) -> Option<u32> {
        self.0.first_free(shape, block, meta, from)
    }

    #[inline(always)]
    fn bounds(self, slots: Slots) -> (u32, u32) {
        by_mask(slots)
    }

    /// A whole line, or half of one, at once: no loop whose length would be mispredicted.
    #[inline(always)]
    fn open<S: Shape>(self, shape: S, block: &mut [u64], meta: Meta, at: u32, end: u32, remainder: u64) {
        let words = shape.words();
        if words > 8 || block.len() != words {
            return open_by_words(shape, block, meta, at, end, remainder);
        }
        let in_block = low_mask(words as u32) as u8;
        let (width, first) = (i64::from(shape.remainder_bits()), i64::from(shape.remainders_at()));
        let (from, to) = (first + i64::from(at) * width, first + i64::from(end + 1) * width);
        let mut head = [0; 8];
        head[..words].copy_from_slice(block);
        block::set_meta(shape, &mut head, meta);
        // SAFETY: `self` proves AVX-512 F. Only the words of the block are read and written, and all 8 of `head`.
        unsafe {
            let old = _mm512_maskz_loadu_epi64(in_block, block.as_ptr().cast());
            let (stay, shifted, lower) =
                (bits_from(self, to), bits_from(self, from + width), bits_from(self, from));
            let remainders = bits_from(self, first);
            let below = _mm512_alignr_epi64::<7>(old, _mm512_setzero_si512());
            let up = _mm512_or_si512(
                _mm512_sllv_epi64(old, _mm512_set1_epi64(width)),
                _mm512_srlv_epi64(below, _mm512_set1_epi64(64 - width)),
            );
            let place = _mm512_sub_epi64(_mm512_set1_epi64(from), first_bits());
            let place_before = _mm512_sub_epi64(_mm512_setzero_si512(), place);
            let new = _mm512_set1_epi64(remainder.cast_signed());
            let new = _mm512_or_si512(_mm512_sllv_epi64(new, place), _mm512_srlv_epi64(new, place_before));
            // From the top: what stays, what moves up, what is new, what stays, and the metadata.
            let upper = _mm512_or_si512(
                _mm512_and_si512(old, stay),
                _mm512_andnot_si512(stay, _mm512_and_si512(up, shifted)),
            );
            let lower = _mm512_or_si512(new, _mm512_andnot_si512(lower, _mm512_and_si512(old, remainders)));
            let head = _mm512_loadu_si512(head.as_ptr().cast());
            let lower = _mm512_or_si512(lower, _mm512_andnot_si512(remainders, head));
            _mm512_mask_storeu_epi64(block.as_mut_ptr().cast(), in_block, _mm512_or_si512(upper, lower));
        }
    }
}

/// The bits of a line from this one on, as a mask.
#[inline(always)]
fn bits_from(_: Avx512Any, bit: i64) -> __m512i {
    // SAFETY: the first argument proves AVX-512 F.
    unsafe {
        // A shift by 64 or more leaves nothing.
        let shift = _mm512_sub_epi64(_mm512_set1_epi64(bit), first_bits());
        _mm512_sllv_epi64(_mm512_set1_epi64(-1), _mm512_max_epi64(shift, _mm512_setzero_si512()))
    }
}

/// The number of each word's first bit in a line.
#[inline(always)]
fn first_bits() -> __m512i {
    const FIRST: [u64; 8] = [0, 64, 128, 192, 256, 320, 384, 448];
    // SAFETY: the array has the 64 bytes of a vector, and any 64 bytes are one.
    unsafe { std::mem::transmute::<[u64; 8], __m512i>(FIRST) }
}

/// [`Machine::bounds`] on processors that count the bits of a mask at once.
#[inline(always)]
fn by_mask(Slots { mask, .. }: Slots) -> (u32, u32) {
    (mask.trailing_zeros(), mask.count_ones())
}

impl Machine for Bmi2 {
    // SAFETY: the caller vouches for the instructions, as the trait demands.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn select(self, word: u64, k: u32) -> u32 {
        // SAFETY: `self` proves BMI2.
        unsafe { _pdep_u64(1 << k, word) }.trailing_zeros()
    }

    #[inline(always)]
    fn select_pair(self, word: u64, k: u32, wanted: u64) -> Pair {
        // SAFETY: `self` proves BMI2.
        let both = unsafe { _pdep_u64(3 * (wanted << k), word) };
        let first = both & both.wrapping_neg();
        let next = both ^ first;
        Pair { first, next, span: next.wrapping_sub(first), position: first.trailing_zeros() }
    }

    #[inline(always)]
    fn bounds(self, slots: Slots) -> (u32, u32) {
        by_mask(slots)
    }
}

impl Machine for Avx2 {
    #[inline(always)]
    fn apart(self) {
        // SAFETY: no instruction at all, but one with effects as far as the compiler knows.
        unsafe { std::arch::asm!("", options(nomem, nostack, preserves_flags)) };
    }

    #[inline(always)]
    fn afresh(self, block: &[u64]) -> &[u64] {
        unknown(block)
    }

    // SAFETY: the caller vouches for the instructions, as the trait demands.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn select(self, word: u64, k: u32) -> u32 {
        // SAFETY: `self` proves AVX2 and, with it, BMI2.
        unsafe { _pdep_u64(1 << k, word) }.trailing_zeros()
    }

    #[inline(always)]
    fn select_pair(self, word: u64, k: u32, wanted: u64) -> Pair {
        // SAFETY: `self` proves AVX2 and, with it, BMI2.
        let both = unsafe { _pdep_u64(3 * (wanted << k), word) };
        let first = both & both.wrapping_neg();
        let next = both ^ first;
        Pair { first, next, span: next.wrapping_sub(first), position: first.trailing_zeros() }
    }

    #[inline(always)]
    fn matches<S: Shape>(self, shape: S, block: &[u64], remainder: u64, slots: u64) -> u64 {
        let line: &[u64; 8] = as_line(block);
        // SAFETY: `self` proves AVX2, and the line has two halves of 32 bytes.
        let equal = unsafe {
            let halves = line.as_ptr().cast::<__m256i>();
            let wanted = _mm256_set1_epi8(remainder as i8);
            let low = _mm256_cmpeq_epi8(_mm256_loadu_si256(halves), wanted);
            let high = _mm256_cmpeq_epi8(_mm256_loadu_si256(halves.add(1)), wanted);
            u64::from(_mm256_movemask_epi8(high) as u32) << 32 | u64::from(_mm256_movemask_epi8(low) as u32)
        };
        equal >> (shape.remainders_at() / 8) & slots
    }

    #[inline(always)]
    fn holds<S: Shape, const N: u32>(self, shape: S, block: &[u64], fraction: u64, slots: Slots) -> bool {
        self.matches_any::<S, N>(shape, block, fraction, slots.mask) != 0
    }

    #[inline(always)]
    fn first_zero<S: Shape>(self, shape: S, block: &[u64], meta: Meta, from: u32) -> u32 {
        (self.matches(shape, block, 0, !low_mask(from)) & !meta.runends).trailing_zeros()
    }

    /// Both halves of the line at once: no loop whose length would be mispredicted.
    #[inline(always)]
    fn open<S: Shape>(self, shape: S, block: &mut [u64], meta: Meta, at: u32, end: u32, remainder: u64) {
        block::set_meta(shape, block, meta);
        let first = shape.remainders_at() / 8;
        let halves = as_line_mut(block).as_mut_ptr().cast::<__m256i>();
        // SAFETY: `self` proves AVX2. The line has two halves of 32 bytes, and the byte before the second is in the
        // first. Everything is read before anything is written.
        unsafe {
            let (low, high) = (_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1)));
            let high_up = _mm256_loadu_si256(halves.cast::<u8>().add(31).cast());
            let low_up = _mm256_alignr_epi8::<15>(low, _mm256_permute2x128_si256::<0x08>(low, low));
            let spot = Spot {
                at: _mm256_set1_epi8((first + at) as i8),
                end: _mm256_set1_epi8((first + end) as i8),
                remainder: _mm256_set1_epi8(remainder as i8),
            };
            let low = spot.open(self, byte_numbers(0), low, low_up);
            let high = spot.open(self, byte_numbers(32), high, high_up);
            _mm256_storeu_si256(halves, low);
            _mm256_storeu_si256(halves.add(1), high);
        }
    }
}

/// What an insertion does to a line: numbers of bytes and the new one, in all bytes of a vector.
struct Spot {
    at: __m256i,
    end: __m256i,
    remainder: __m256i,
}

impl Spot {
    /// The bytes with these numbers (63 at most), and `up` where they move.
    #[inline(always)]
    fn open(&self, _: Avx2, numbers: __m256i, old: __m256i, up: __m256i) -> __m256i {
        // SAFETY: the first argument proves AVX2.
        unsafe {
            let behind_at = _mm256_cmpgt_epi8(numbers, self.at);
            let moved = _mm256_andnot_si256(_mm256_cmpgt_epi8(numbers, self.end), behind_at);
            let new = _mm256_blendv_epi8(old, up, moved);
            _mm256_blendv_epi8(new, self.remainder, _mm256_cmpeq_epi8(numbers, self.at))
        }
    }
}

/// 32 bytes with the numbers from `first` on.
#[inline(always)]
fn byte_numbers(first: usize) -> __m256i {
    const NUMBERS: [u8; 64] = {
        let mut numbers = [0; 64];
        let mut byte = 0;
        while byte < 64 {
            numbers[byte] = byte as u8;
            byte += 1;
        }
        numbers
    };
    let mut half = [0; 32];
    half.copy_from_slice(&NUMBERS[first..first + 32]);
    // SAFETY: the array has the 32 bytes of a vector, and any 32 bytes are one.
    unsafe { std::mem::transmute::<[u8; 32], __m256i>(half) }
}

impl Machine for Avx512 {
    #[inline(always)]
    fn apart(self) {
        // SAFETY: no instruction at all, but one with effects as far as the compiler knows.
        unsafe { std::arch::asm!("", options(nomem, nostack, preserves_flags)) };
    }

    #[inline(always)]
    fn afresh(self, block: &[u64]) -> &[u64] {
        unknown(block)
    }

    // SAFETY: the caller vouches for the instructions, as the trait demands.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn select(self, word: u64, k: u32) -> u32 {
        // SAFETY: `self` proves AVX-512 and, with it, BMI2.
        unsafe { _pdep_u64(1 << k, word) }.trailing_zeros()
    }

    #[inline(always)]
    fn select_pair(self, word: u64, k: u32, wanted: u64) -> Pair {
        // SAFETY: `self` proves AVX-512 and, with it, BMI2.
        let both = unsafe { _pdep_u64(3 * (wanted << k), word) };
        let first = both & both.wrapping_neg();
        let next = both ^ first;
        Pair { first, next, span: next.wrapping_sub(first), position: first.trailing_zeros() }
    }

    #[inline(always)]
    fn matches<S: Shape>(self, shape: S, block: &[u64], remainder: u64, slots: u64) -> u64 {
        let line: &[u64; 8] = as_line(block);
        // SAFETY: `self` proves AVX-512 BW, and the line has 64 bytes.
        let equal = unsafe {
            let line = _mm512_loadu_si512(line.as_ptr().cast());
            _mm512_cmpeq_epi8_mask(line, _mm512_set1_epi8(remainder as i8))
        };
        equal >> (shape.remainders_at() / 8) & slots
    }

    #[inline(always)]
    fn holds<S: Shape, const N: u32>(self, shape: S, block: &[u64], fraction: u64, slots: Slots) -> bool {
        self.matches_any::<S, N>(shape, block, fraction, slots.mask) != 0
    }

    /// All free slots at once, without a loop whose length would be mispredicted: slot i is free iff one more
    /// border than occupied quotients stands at or before it, and a prefix sum over the bytes counts both.
    #[inline(always)]
    fn first_free<S: Shape>(self, shape: S, _: &[u64], meta: Meta, from: u32) -> Option<u32> {
        // SAFETY: `self` proves AVX-512 BW and VBMI.
        let free = unsafe {
            let one = _mm512_set1_epi8(1);
            let excess = _mm512_maskz_mov_epi8(meta.borders(), one);
            let excess = _mm512_mask_sub_epi8(excess, meta.occupieds, excess, one);
            let excess = _mm512_add_epi8(excess, _mm512_slli_epi64::<8>(excess));
            let excess = _mm512_add_epi8(excess, _mm512_slli_epi64::<16>(excess));
            let excess = _mm512_add_epi8(excess, _mm512_slli_epi64::<32>(excess));
            // In every byte the sum of the 8 bytes before, then of the 16, 32 and 64 before.
            let zero = _mm512_setzero_si512();
            let before = _mm512_maskz_permutexvar_epi8(!0xff, top_of_word_before(), excess);
            let before = _mm512_add_epi8(before, _mm512_alignr_epi64::<7>(before, zero));
            let before = _mm512_add_epi8(before, _mm512_alignr_epi64::<6>(before, zero));
            let before = _mm512_add_epi8(before, _mm512_alignr_epi64::<4>(before, zero));
            _mm512_cmpeq_epi8_mask(_mm512_add_epi8(excess, before), one)
        };
        let slot = (free & !low_mask(from)).trailing_zeros();
        (slot < shape.slots()).then_some(slot)
    }

    /// One load, one permutation, one store: no loop over words whose length would be mispredicted. The metadata are
    /// two words more: the first one, and the 8 bytes that end where the remainders begin.
    #[inline(always)]
    fn open<S: Shape>(self, shape: S, block: &mut [u64], meta: Meta, at: u32, end: u32, remainder: u64) {
        let (first, slots) = (shape.remainders_at() / 8, shape.slots());
        let changed = (low_mask(end + 1) & !low_mask(at)) << first;
        let line: &mut [u64; 8] = as_line_mut(block);
        let head = line[0] & !low_mask(OCCUPIEDS_AT + slots)
            | meta.occupieds << OCCUPIEDS_AT
            | u64::from(meta.offset);
        // SAFETY: `self` proves AVX-512 BW and VBMI. The line has 64 bytes, and its remainders begin at byte 14 or 18.
        // The 8 bytes before them are read before anything is written: part of them is in `head`.
        unsafe {
            let bytes = line.as_mut_ptr().cast::<u8>();
            let tail = bytes.add(first as usize - 8).cast::<u64>();
            let below = low_mask(64 - slots);
            let old_tail = if first < 16 { head >> (8 * (first - 8)) } else { tail.read_unaligned() };
            let old = _mm512_loadu_si512(bytes.cast());
            let up = _mm512_permutexvar_epi8(one_down(), old);
            let new = _mm512_mask_set1_epi8(up, 1 << (first + at), remainder as i8);
            _mm512_mask_storeu_epi8(bytes.cast(), changed, new);
            bytes.cast::<u64>().write_unaligned(head);
            tail.write_unaligned(old_tail & below | meta.runends << (64 - slots));
        }
    }
}

/// For each byte of a line the number of the one below it.
#[inline(always)]
fn one_down() -> __m512i {
    const BELOW: [u8; 64] = {
        let mut below = [0; 64];
        let mut byte = 1;
        while byte < 64 {
            below[byte] = byte as u8 - 1;
            byte += 1;
        }
        below
    };
    // SAFETY: the array has the 64 bytes of a vector, and any 64 bytes are one.
    unsafe { std::mem::transmute::<[u8; 64], __m512i>(BELOW) }
}

/// For each byte of a line the number of the last byte of the word before its own; 0 in the first word.
#[inline(always)]
fn top_of_word_before() -> __m512i {
    const TOPS: [u8; 64] = {
        let mut tops = [0; 64];
        let mut byte = 8;
        while byte < 64 {
            tops[byte] = byte as u8 / 8 * 8 - 1;
            byte += 1;
        }
        tops
    };
    // SAFETY: the array has the 64 bytes of a vector, and any 64 bytes are one.
    unsafe { std::mem::transmute::<[u8; 64], __m512i>(TOPS) }
}

/// The same slice, of which the compiler knows nothing.
#[inline(always)]
#[expect(clippy::pointers_in_nomem_asm_block, reason = "no instruction follows the pointer")]
fn unknown(block: &[u64]) -> &[u64] {
    let mut words = block.as_ptr();
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) words, options(pure, nomem, nostack, preserves_flags));
    }
    // SAFETY: the pointer has not changed.
    unsafe { std::slice::from_raw_parts(words, block.len()) }
}

/// A block of one line as such.
#[inline(always)]
fn as_line(block: &[u64]) -> &[u64; 8] {
    block.first_chunk().unwrap_or(&[0; 8])
}

/// A block of one line as such.
#[inline(always)]
fn as_line_mut(block: &mut [u64]) -> &mut [u64; 8] {
    let Some(line) = block.first_chunk_mut() else { unreachable!("a byte line has 8 words") };
    line
}
