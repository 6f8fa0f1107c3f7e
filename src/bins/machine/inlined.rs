//! x86-64 with AVX-512 or BMI2, for operations that are compiled into their callers.
//!
//! Functions with a `target_feature` are not inlined into functions without, and a call costs a query a sixth of its
//! speed. Instructions that are written down as such need no feature. So the most frequent operations, those on one key
//! in a line of the layouts for the default rate, for 1/100 and for 1/1000, exist in this form too.
//!
//! Of the vector registers, only the upper sixteen are used in this way: they leave no state behind that would slow
//! down code without AVX. Where there are none, the comparison is that of SSE2, which every x86-64 processor has.

use std::arch::asm;
use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_load_si128, _mm_movemask_epi8, _mm_set1_epi8};

use crate::bits::{Isa, low_mask};

use super::super::layout::{CentiCut, DefaultCut, FlaggedCentiCut, FlaggedCut, Layout, MilliCut, Shape};
use super::super::line::{Line, Run};
use super::x86::{self, numbered};
use super::{Machine, Search};

/// A processor with AVX-512 F, BW and VBMI, BMI2 and POPCNT.
///
/// A value of this type is a proof of that: it can only be made in an unsafe block that vouches for it.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct InlinedAvx512(InlinedBmi2);

/// A processor with BMI2 and POPCNT. A value of this type is a proof of that too.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct InlinedBmi2(());

#[expect(clippy::unused_self, reason = "it is the proof that the processor has the instructions")]
impl InlinedBmi2 {
    /// Puts bit i of `bits` to the place of the i-th set bit of `places`.
    #[inline(always)]
    fn deposit(self, bits: u64, places: u64) -> u64 {
        let deposited: u64;
        // SAFETY: `self` proves BMI2, and `pdep` changes one register.
        unsafe {
            asm!(
                "pdep {}, {}, {}",
                lateout(reg) deposited,
                in(reg) bits,
                in(reg) places,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        deposited
    }
}

impl Search for InlinedBmi2 {
    // SAFETY: the caller vouches for the instructions, as the trait demands.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn count(self, bits: u64) -> u32 {
        let count: u64;
        // SAFETY: `self` proves POPCNT, which changes one register and flags. A word has 64 bits.
        unsafe {
            asm!("popcnt {}, {}", lateout(reg) count, in(reg) bits, options(pure, nomem, nostack));
            std::hint::assert_unchecked(count <= 64);
        }
        count as u32
    }

    #[inline(always)]
    fn run<L: Layout>(self, last: u64, borders: u64, class: usize) -> Run {
        x86::run::<L>(last, class, |bits| self.count(bits), |bit| self.deposit(bit, borders))
    }

    #[inline(always)]
    fn equal(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        // The whole line, which need not wait for the run: a tenth faster than the bytes of the run alone.
        // SAFETY: every x86-64 processor has SSE2, and a line is four times 16 aligned bytes.
        let quarter = |quarter: usize| unsafe {
            let bytes = _mm_load_si128(line.0.as_ptr().cast::<__m128i>().add(quarter));
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed())))
        };
        let mask = |number: usize| u64::from(quarter(number).cast_unsigned()) << (16 * number);
        (mask(0) | mask(1) | mask(2) | mask(3)) >> first & run.slots()
    }
}

impl Search for InlinedAvx512 {
    // SAFETY: the caller vouches for the instructions, as the trait demands.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(InlinedBmi2(()))
    }

    #[inline(always)]
    fn count(self, bits: u64) -> u32 {
        self.0.count(bits)
    }

    #[inline(always)]
    fn run<L: Layout>(self, last: u64, borders: u64, class: usize) -> Run {
        self.0.run::<L>(last, borders, class)
    }

    #[inline(always)]
    fn equal(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        let equal: u64;
        // SAFETY: `self` proves AVX-512 BW. The 64 aligned bytes of a line are read, and registers changed that are
        // named.
        unsafe {
            asm!(
                "vpbroadcastb zmm16, {byte:e}",
                "vpcmpeqb k1, zmm16, zmmword ptr [{line}]",
                "kmovq {equal}, k1",
                byte = in(reg) u32::from(byte),
                line = in(reg) line.0.as_ptr(),
                equal = lateout(reg) equal,
                out("xmm16") _,
                out("k1") _,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        equal >> first & run.slots()
    }
}

/// The bytes of a line, each with the number of the one before it, and of the one behind it.
static BEFORE: Line = Line(numbered(-1));
static BEHIND: Line = Line(numbered(1));

/// Puts the bytes of a line with these numbers into the places that `changed` has.
#[inline(always)]
fn permute(_: InlinedAvx512, line: &mut Line, numbers: &'static Line, changed: u64) {
    // SAFETY: the first argument proves AVX-512 BW and VBMI. The 64 aligned bytes of two lines are read and those of
    // one written, and registers changed that are named.
    unsafe {
        asm!(
            "kmovq k1, {changed}",
            "vmovdqa64 zmm16, zmmword ptr [{line}]",
            "vmovdqa64 zmm17, zmmword ptr [{numbers}]",
            "vpermb zmm16 {{k1}}, zmm17, zmm16",
            "vmovdqa64 zmmword ptr [{line}], zmm16",
            changed = in(reg) changed,
            line = in(reg) line.0.as_mut_ptr(),
            numbers = in(reg) numbers.0.as_ptr(),
            out("xmm16") _,
            out("xmm17") _,
            out("k1") _,
            options(nostack, preserves_flags)
        );
    }
}

impl Machine for InlinedAvx512 {
    #[inline(always)]
    fn less(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        let less: u64;
        // SAFETY: as in `equal`.
        unsafe {
            asm!(
                "vpbroadcastb zmm16, {byte:e}",
                "vpcmpnleub k1, zmm16, zmmword ptr [{line}]",
                "kmovq {less}, k1",
                byte = in(reg) u32::from(byte),
                line = in(reg) line.0.as_ptr(),
                less = lateout(reg) less,
                out("xmm16") _,
                out("k1") _,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        less >> first & run.slots()
    }

    #[inline(always)]
    fn open(self, line: &mut Line, at: u32, end: u32, byte: u8) {
        permute(self, line, &BEFORE, low_mask(end) & u64::MAX << at);
        line.0[at as usize % 64] = byte;
    }

    #[inline(always)]
    fn close(self, line: &mut Line, at: u32, end: u32) {
        permute(self, line, &BEHIND, low_mask(end) & u64::MAX << at);
        line.0[end as usize - 1] = 0;
    }
}

/// The machine that the operations on one key are compiled into their callers for, and the layout.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Inlined {
    /// Queries and insertions of the default layout.
    Default(InlinedAvx512),
    /// Those of the default layout with flags.
    Flagged(InlinedAvx512),
    /// Those of the layout for a rate of 1/100.
    Centi(InlinedAvx512),
    /// Those of the layout for that rate with flags.
    FlaggedCenti(InlinedAvx512),
    /// Those of the layout for a rate of 1/1000.
    Milli(InlinedAvx512),
    /// Queries of the default layout.
    DefaultBmi2(InlinedBmi2),
    /// Queries of the default layout with flags.
    FlaggedBmi2(InlinedBmi2),
}

impl Inlined {
    /// The one for a layout and an instruction set, which must be at most what the processor has.
    pub(in super::super) fn choose(isa: Isa, shape: Shape) -> Option<Self> {
        let avx512 = [
            (Shape::of::<DefaultCut>(), Self::Default as fn(_) -> _),
            (Shape::of::<FlaggedCut>(), Self::Flagged),
            (Shape::of::<CentiCut>(), Self::Centi),
            (Shape::of::<FlaggedCentiCut>(), Self::FlaggedCenti),
            (Shape::of::<MilliCut>(), Self::Milli),
        ];
        let bmi2 = [
            (Shape::of::<DefaultCut>(), Self::DefaultBmi2 as fn(_) -> _),
            (Shape::of::<FlaggedCut>(), Self::FlaggedBmi2),
        ];
        match isa {
            Isa::Avx512 => {
                let found = avx512.into_iter().find(|(cut, _)| *cut == shape);
                // SAFETY: the processor has AVX-512, and what it includes.
                found.map(|(_, inlined)| inlined(unsafe { InlinedAvx512::new() }))
            }
            Isa::Avx2 => {
                let found = bmi2.into_iter().find(|(cut, _)| *cut == shape);
                // SAFETY: the processor has AVX2 and, with it, BMI2.
                found.map(|(_, inlined)| inlined(unsafe { InlinedBmi2::new() }))
            }
            _ => None,
        }
    }
}
