//! x86-64 with AVX-512, for queries that are compiled into their callers.
//!
//! Functions with a `target_feature` are not inlined into functions without, and a call costs a query a sixth of its speed.
//! Instructions that are written down as such need no feature. So the most frequent query of all, for one key in a
//! line of the default layout, exists in this form too.

use std::arch::asm;

use super::super::line::Line;
use super::Search;

/// A processor with AVX-512 F and BW, BMI2 and POPCNT.
///
/// A value of this type is a proof of that: it can only be made in an unsafe block that vouches for it.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Inlined(());

impl Search for Inlined {
    // SAFETY: the caller vouches for the instructions, as the trait demands.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn count(self, bits: u64) -> u32 {
        let count: u64;
        // SAFETY: `self` proves POPCNT, which changes one register and flags.
        unsafe { asm!("popcnt {}, {}", lateout(reg) count, in(reg) bits, options(pure, nomem, nostack)) };
        count as u32
    }

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

    #[inline(always)]
    fn equal(self, line: &Line, byte: u8) -> u64 {
        let equal: u64;
        // SAFETY: `self` proves AVX-512 BW. The 64 bytes of a line are read, and registers changed that are named. The
        // upper sixteen vector registers leave no state behind that would slow down code without AVX.
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
        equal
    }
}
