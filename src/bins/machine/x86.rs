//! x86-64 with AVX2 or AVX-512.
//!
//! A value of one of these types is a proof that the processor has the instructions: it can only be made in an
//! unsafe block that vouches for them. The methods have no `target_feature` of their own; they are inlined into
//! functions that do.

use std::arch::x86_64::{
    __m256i, _mm256_alignr_epi8, _mm256_blendv_epi8, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_load_si256,
    _mm256_loadu_si256, _mm256_max_epu8, _mm256_movemask_epi8, _mm256_permute2x128_si256, _mm256_set1_epi8,
    _mm256_store_si256, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_load_si512, _mm512_set1_epi8,
    _pdep_u64,
};

use super::super::layout::Layout;
use super::super::line::{Line, Run};
use super::inlined::InlinedAvx512;
use super::{Machine, Search};

/// At [k] the bit k, for the same reason as [`BELOW`](Layout::BELOW). There are at most 64 runs, but the rank that finds nothing must have a place too.
static POWER: [u64; 65] = {
    let mut power = [0; 65];
    let mut bit = 0;
    while bit < 64 {
        power[bit] = 1 << bit;
        bit += 1;
    }
    power
};

/// The run of a class, with a machine's way to count bits and to deposit a bit at the border that its number says: two
/// ranks and two deposits, no branch.
#[inline(always)]
pub(super) fn run<L: Layout>(
    last: u64,
    class: usize,
    count: impl Fn(u64) -> u32,
    deposit: impl Fn(u64) -> u64,
) -> Run {
    let class = class & 63;
    let before = count(last & L::BELOW[class]);
    let with = count(last & L::BELOW[class + 1]);
    Run { first: deposit(POWER[before as usize]), last: deposit(POWER[with as usize]) }
}

/// A processor with AVX2, BMI1, BMI2, POPCNT and LZCNT.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Avx2(());

/// A processor with AVX-512 F, BW, VL and VBMI too.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Avx512(());

impl Search for Avx512 {
    // SAFETY: the caller vouches for the instructions, as the trait demands.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn run<L: Layout>(self, last: u64, borders: u64, class: usize) -> Run {
        // SAFETY: `self` proves AVX-512 and, with it, BMI2.
        run::<L>(last, class, u64::count_ones, |bit| unsafe { _pdep_u64(bit, borders) })
    }

    #[inline(always)]
    fn equal(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        // SAFETY: `self` proves AVX-512 BW; a line is 64 aligned bytes.
        let equal = unsafe {
            let line = _mm512_load_si512(line.0.as_ptr().cast());
            _mm512_cmpeq_epi8_mask(line, _mm512_set1_epi8(byte.cast_signed()))
        };
        equal >> first & run.slots()
    }
}

impl Machine for Avx512 {
    #[inline(always)]
    fn less(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        // SAFETY: as in `equal`.
        let less = unsafe {
            let line = _mm512_load_si512(line.0.as_ptr().cast());
            _mm512_cmplt_epu8_mask(line, _mm512_set1_epi8(byte.cast_signed()))
        };
        less >> first & run.slots()
    }

    // As they are written down there: the compiler would make masked stores of intrinsics, which take much longer.

    #[inline(always)]
    fn open(self, line: &mut Line, at: u32, end: u32, byte: u8) {
        // SAFETY: `self` proves AVX-512 with all that is needed.
        unsafe { InlinedAvx512::new() }.open(line, at, end, byte);
    }

    #[inline(always)]
    fn close(self, line: &mut Line, at: u32, end: u32) {
        // SAFETY: as in `open`.
        unsafe { InlinedAvx512::new() }.close(line, at, end);
    }
}

/// For each byte of a line the number of the one so many places further on, wrapping around.
pub(super) const fn numbered(by: isize) -> [u8; 64] {
    let mut numbers = [0; 64];
    let mut byte = 0;
    while byte < 64 {
        numbers[byte] = byte.wrapping_add_signed(by) as u8 % 64;
        byte += 1;
    }
    numbers
}

/// The two halves of a line.
#[derive(Clone, Copy)]
struct Halves {
    low: __m256i,
    high: __m256i,
}

#[expect(clippy::unused_self, reason = "it is the proof that the processor has the instructions")]
impl Avx2 {
    #[inline(always)]
    fn load(self, line: &Line) -> Halves {
        // SAFETY: `self` proves AVX2; a line is 64 aligned bytes.
        unsafe {
            let halves = line.0.as_ptr().cast::<__m256i>();
            Halves { low: _mm256_load_si256(halves), high: _mm256_load_si256(halves.add(1)) }
        }
    }

    /// The bytes whose top bits are set, as a mask.
    #[inline(always)]
    fn mask(self, bytes: Halves) -> u64 {
        // SAFETY: `self` proves AVX2.
        let (low, high) = unsafe { (_mm256_movemask_epi8(bytes.low), _mm256_movemask_epi8(bytes.high)) };
        u64::from(high.cast_unsigned()) << 32 | u64::from(low.cast_unsigned())
    }

    /// Writes the bytes `at..end` of `new`, and at `place` this byte; the others stay.
    #[inline(always)]
    fn store(self, line: &mut Line, new: Halves, at: u32, end: u32, place: u32, byte: u8) {
        let old = self.load(line);
        // SAFETY: `self` proves AVX2; a line is 64 aligned bytes, and so is the table of their numbers.
        unsafe {
            let numbers = self.load(&NUMBERS);
            let range = (_mm256_set1_epi8(at as i8), _mm256_set1_epi8(end as i8));
            let item = (_mm256_set1_epi8(place as i8), _mm256_set1_epi8(byte.cast_signed()));
            let halves = line.0.as_mut_ptr().cast::<__m256i>();
            _mm256_store_si256(halves, self.blend(numbers.low, old.low, new.low, range, item));
            _mm256_store_si256(halves.add(1), self.blend(numbers.high, old.high, new.high, range, item));
        }
    }

    /// In one half of a line, by the numbers of its bytes: `old`, in the range `new`, and in the item's place the item.
    #[inline(always)]
    fn blend(
        self,
        numbers: __m256i,
        old: __m256i,
        new: __m256i,
        (at, end): (__m256i, __m256i),
        (place, byte): (__m256i, __m256i),
    ) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let new = _mm256_blendv_epi8(new, byte, _mm256_cmpeq_epi8(numbers, place));
            let new = _mm256_blendv_epi8(old, new, _mm256_cmpgt_epi8(end, numbers));
            _mm256_blendv_epi8(new, old, _mm256_cmpgt_epi8(at, numbers))
        }
    }
}

/// The bytes of a line, each with its number.
static NUMBERS: Line = Line(numbered(0));

impl Search for Avx2 {
    // SAFETY: the caller vouches for the instructions, as the trait demands.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn run<L: Layout>(self, last: u64, borders: u64, class: usize) -> Run {
        // SAFETY: `self` proves AVX2 and, with it, BMI2.
        run::<L>(last, class, u64::count_ones, |bit| unsafe { _pdep_u64(bit, borders) })
    }

    #[inline(always)]
    fn equal(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        let Halves { low, high } = self.load(line);
        // SAFETY: `self` proves AVX2.
        let equal = self.mask(unsafe {
            let wanted = _mm256_set1_epi8(byte.cast_signed());
            Halves { low: _mm256_cmpeq_epi8(low, wanted), high: _mm256_cmpeq_epi8(high, wanted) }
        });
        equal >> first & run.slots()
    }
}

impl Machine for Avx2 {
    #[inline(always)]
    fn less(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        let Halves { low, high } = self.load(line);
        // There is no comparison of unsigned bytes: one is not less iff it is the larger of the two.
        // SAFETY: `self` proves AVX2.
        let not_less = self.mask(unsafe {
            let bound = _mm256_set1_epi8(byte.cast_signed());
            Halves {
                low: _mm256_cmpeq_epi8(_mm256_max_epu8(low, bound), low),
                high: _mm256_cmpeq_epi8(_mm256_max_epu8(high, bound), high),
            }
        });
        !not_less >> first & run.slots()
    }

    #[inline(always)]
    fn open(self, line: &mut Line, at: u32, end: u32, byte: u8) {
        let Halves { low, .. } = self.load(line);
        // SAFETY: `self` proves AVX2; the second half of the bytes before their places begins with byte 31 of the line.
        let up = unsafe {
            let before = _mm256_permute2x128_si256::<0x08>(low, low);
            Halves {
                low: _mm256_alignr_epi8::<15>(low, before),
                high: _mm256_loadu_si256(line.0.as_ptr().add(31).cast()),
            }
        };
        self.store(line, up, at, end, at, byte);
    }

    #[inline(always)]
    fn close(self, line: &mut Line, at: u32, end: u32) {
        let Halves { high, .. } = self.load(line);
        // SAFETY: `self` proves AVX2; the first half of the bytes behind their places ends with byte 32 of the line.
        let down = unsafe {
            let behind = _mm256_permute2x128_si256::<0x81>(high, high);
            Halves {
                low: _mm256_loadu_si256(line.0.as_ptr().add(1).cast()),
                high: _mm256_alignr_epi8::<1>(behind, high),
            }
        };
        self.store(line, down, at, end, end - 1, 0);
    }
}
