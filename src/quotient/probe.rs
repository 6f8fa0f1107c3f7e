//! Queries of filters that keep a value per slot: remainders first, values only where those leave a doubt.
//!
//! A stored remainder that equals none of the chunks that the query's key has cannot be the key's, whatever the
//! slot's value. So nearly all queries are settled by comparing bytes, and where a block's code is 0 (all its
//! values are initial) they are settled by the first chunk alone.

use std::fmt;

use crate::bits::{Isa, low_mask};

use super::block;
use super::geometry::{ByteLine, CODED_SLOTS, Geometry, PLAIN_SLOTS, Shape};
use super::machine::{Machine, Portable};
use super::table::Table;
use super::view::View;

/// What a query found in its own block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// The slots of the quotient's run that may be the key's, as bits of the block; [`Found::BEYOND`] if the run
    /// reaches into later blocks.
    pub(crate) slots: u64,
    /// The block's code if it has to be looked at; 0 if the slots are the key's for certain, or there are none.
    pub(crate) code: u64,
}

impl Found {
    /// No slot of a block has this bit.
    pub(crate) const BEYOND: u64 = 1 << 63;

    const NOTHING_YET: Self = Self { slots: Self::BEYOND, code: 0 };
}

/// How many chunks of a byte a query is compared with where it matters.
///
/// No code holds a selector beyond.
pub(crate) const CHUNKS: u32 = 7;

/// The code of a block whose values have to be looked up elsewhere: its slots can hold any chunk.
#[inline(always)]
fn mark<S: Shape>(shape: S) -> u64 {
    low_mask(shape.code_bits())
}

impl<S: Shape, M: Machine> View<'_, S, M> {
    /// Slots with a remainder equal to the first byte of `chunks`, or where values are not initial, to any of its
    /// first [`CHUNKS`]. For remainders that are no bytes, `remainder` takes the first byte's place, and where
    /// values are not initial all slots of the run may be the key's.
    #[inline(always)]
    fn probe_chunks(self, quotient: u64, remainder: u64, chunks: u64) -> Found {
        let Some((index, run)) = self.local_run(quotient) else { return Found::NOTHING_YET };
        let (shape, block) = (self.shape, self.block(index));
        let code = self.code(index);
        if code == 0 {
            return Found { slots: self.machine.matches(shape, block, remainder, run), code };
        }
        if shape.remainder_bits() != 8 || code == mark(shape) {
            return Found { slots: run, code };
        }
        let matches = |chunk: u32| self.machine.matches(shape, block, chunks << (8 * chunk) >> 56, run);
        Found { slots: (0..CHUNKS).fold(0, |any, chunk| any | matches(chunk)), code }
    }

    /// Slots with this remainder.
    #[inline(always)]
    fn probe_remainder(self, quotient: u64, remainder: u64) -> Found {
        let Some((index, run)) = self.local_run(quotient) else { return Found::NOTHING_YET };
        let slots = self.machine.matches(self.shape, self.block(index), remainder, run);
        Found { slots, code: self.code(index) }
    }

    /// The code of a block. A table without codes keeps its values elsewhere, so its blocks have some code.
    #[inline(always)]
    fn code(self, index: usize) -> u64 {
        match self.shape.code_bits() {
            0 => 1,
            bits => block::read(self.block(index), self.shape.code_at(), bits),
        }
    }
}

/// The probes for one machine and one shape; unsafe to call on a processor that is not the machine.
pub(super) struct Probes {
    chunks: unsafe fn(&Table, u64, u64, u64) -> Found,
    remainder: unsafe fn(&Table, u64, u64) -> Found,
}

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probes")
    }
}

impl Probes {
    /// The best ones for `shape` among those that `isa` allows, which must be at most what the processor has.
    pub(super) fn choose(isa: Isa, shape: Geometry) -> &'static Self {
        let byte_line = shape.remainder_bits() == 8 && shape.words() == 8;
        let slots = if byte_line { shape.slots() } else { 0 };
        match (isa, slots) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, PLAIN_SLOTS) => &x86::AVX512_PLAIN,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, CODED_SLOTS) => &x86::AVX512_CODED,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, PLAIN_SLOTS) => &x86::AVX2_PLAIN,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, CODED_SLOTS) => &x86::AVX2_CODED,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2 | Isa::Avx512, _) => &x86::BMI2_GENERAL,
            _ => &PORTABLE,
        }
    }
}

impl Table {
    /// Where the key with these chunks can be, with `remainder` the first of them.
    #[inline(always)]
    pub(crate) fn probe_chunks(&self, quotient: u64, remainder: u64, chunks: u64) -> Found {
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.chunks)(self, quotient, remainder, chunks) }
    }

    /// Where a key with this remainder can be.
    #[inline(always)]
    pub(crate) fn probe_remainder(&self, quotient: u64, remainder: u64) -> Found {
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.remainder)(self, quotient, remainder) }
    }
}

/// Any shape on any processor.
static PORTABLE: Probes = Probes {
    chunks: |table, quotient, remainder, chunks| {
        table.view(table.shape, Portable).probe_chunks(quotient, remainder, chunks)
    },
    remainder: |table, quotient, remainder| {
        table.view(table.shape, Portable).probe_remainder(quotient, remainder)
    },
};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::machine::x86::{Avx2, Avx512, Bmi2};
    use super::{ByteLine, CODED_SLOTS, Found, PLAIN_SLOTS, Probes, Table};

    pub(super) static AVX512_PLAIN: Probes =
        Probes { chunks: chunks_avx512::<PLAIN_SLOTS>, remainder: remainder_avx512::<PLAIN_SLOTS> };
    pub(super) static AVX512_CODED: Probes =
        Probes { chunks: chunks_avx512::<CODED_SLOTS>, remainder: remainder_avx512::<CODED_SLOTS> };
    pub(super) static AVX2_PLAIN: Probes =
        Probes { chunks: chunks_avx2::<PLAIN_SLOTS>, remainder: remainder_avx2::<PLAIN_SLOTS> };
    pub(super) static AVX2_CODED: Probes =
        Probes { chunks: chunks_avx2::<CODED_SLOTS>, remainder: remainder_avx2::<CODED_SLOTS> };
    pub(super) static BMI2_GENERAL: Probes = Probes { chunks, remainder };

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn chunks_avx512<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64, chunks: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        table.view(ByteLine::<SLOTS>, machine).probe_chunks(quotient, remainder, chunks)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn chunks_avx2<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64, chunks: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx2::new() };
        table.view(ByteLine::<SLOTS>, machine).probe_chunks(quotient, remainder, chunks)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn chunks(table: &Table, quotient: u64, remainder: u64, chunks: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Bmi2::new() };
        table.view(table.shape, machine).probe_chunks(quotient, remainder, chunks)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn remainder_avx512<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        table.view(ByteLine::<SLOTS>, machine).probe_remainder(quotient, remainder)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn remainder_avx2<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx2::new() };
        table.view(ByteLine::<SLOTS>, machine).probe_remainder(quotient, remainder)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn remainder(table: &Table, quotient: u64, remainder: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Bmi2::new() };
        table.view(table.shape, machine).probe_remainder(quotient, remainder)
    }
}
