//! 64-bit ARM with NEON, little-endian.
//!
//! Every such processor has NEON, and so has every function compiled for it; a value of this type proves no more than
//! that the program was compiled for one. There is no mask of a comparison to be had in one instruction, so it is made
//! of the few bytes that count. Bytes are moved as in plain Rust.

use std::arch::aarch64::{
    uint8x8_t, vceq_u8, vclt_u8, vdup_n_u8, vget_lane_u64, vld1_u8, vreinterpret_u64_u8,
};

use crate::bits::neon::byte_counts;

use super::super::layout::Layout;
use super::super::line::{Line, Run};
use super::portable::{self, Portable};
use super::{Machine, Search, window};

/// A processor with NEON.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Neon(());

/// The bytes that are all ones, as bits; the others must be 0.
#[inline(always)]
fn mask(bytes: uint8x8_t) -> u64 {
    // SAFETY: the processor has NEON.
    let bytes = unsafe { vget_lane_u64::<0>(vreinterpret_u64_u8(bytes)) };
    portable::gather(bytes & 0x8080_8080_8080_8080)
}

impl Search for Neon {
    // SAFETY: nothing to prove: this file is compiled for such processors only.
    #[inline(always)]
    unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn run<L: Layout>(self, last: u64, borders: u64, class: usize) -> Run {
        portable::run(last >> (64 - L::CLASSES), borders, byte_counts(borders), class)
    }

    #[inline(always)]
    fn equal(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        // SAFETY: the processor has NEON, and eight bytes are read of eight.
        window::of_run(line, first, run, |bytes| {
            mask(unsafe { vceq_u8(vld1_u8(bytes.as_ptr()), vdup_n_u8(byte)) })
        })
    }
}

impl Machine for Neon {
    #[inline(always)]
    fn less(self, line: &Line, first: u32, byte: u8, run: Run) -> u64 {
        // SAFETY: as in `equal`.
        window::of_run(line, first, run, |bytes| {
            mask(unsafe { vclt_u8(vld1_u8(bytes.as_ptr()), vdup_n_u8(byte)) })
        })
    }

    #[inline(always)]
    fn open(self, line: &mut Line, at: u32, end: u32, byte: u8) {
        Portable.open(line, at, end, byte);
    }

    #[inline(always)]
    fn close(self, line: &mut Line, at: u32, end: u32) {
        Portable.close(line, at, end);
    }
}
