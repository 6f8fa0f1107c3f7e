//! Queries of filters that keep a value per slot: remainders first, values only where those leave a doubt.
//!
//! A stored remainder that equals none of the chunks that the query's key has cannot be the key's, whatever the
//! slot's value. So nearly all queries are settled by comparing bytes, and where a block's code is 0 (all its
//! values are initial) they are settled by the first chunk alone.

use std::fmt;

use crate::bits::Isa;

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
    /// The block's code: what it says of the slots has to be looked at unless it is 0.
    pub(crate) code: u64,
}

impl Found {
    /// No slot of a block has this bit.
    pub(crate) const BEYOND: u64 = 1 << 63;

    /// Nothing: the run is not only in this block.
    const ELSEWHERE: Self = Self { slots: Self::BEYOND, code: 0 };
}

impl<S: Shape, M: Machine> View<'_, S, M> {
    /// Slots of the run with this remainder if the block's code is 0, else all of its slots.
    #[inline(always)]
    fn probe_unless_coded(self, quotient: u64, remainder: u64) -> Found {
        let Some((index, run)) = self.local_run(quotient) else { return Found::ELSEWHERE };
        let code = self.code(index);
        let matches = self.machine.matches(self.shape, self.block(index), remainder, run);
        Found { slots: if code == 0 { matches } else { run }, code }
    }

    /// Slots of the run with this remainder.
    #[inline(always)]
    fn probe(self, quotient: u64, remainder: u64) -> Found {
        let Some((index, run)) = self.local_run(quotient) else { return Found::ELSEWHERE };
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

    /// Which of `slots` of a block hold one of the 7 bytes that begin at the top of `chunks`.
    #[inline(always)]
    fn narrow(self, index: usize, slots: u64, chunks: u64) -> u64 {
        let byte = |chunk: u32| chunks << (8 * chunk) >> 56;
        let matches = |chunk| self.machine.matches(self.shape, self.block(index), byte(chunk), slots);
        (0..CHUNKS).fold(0, |any, chunk| any | matches(chunk))
    }
}

/// How many chunks of a byte [`Table::narrow`] looks for. No code holds a selector beyond.
pub(crate) const CHUNKS: u32 = 7;

/// The probes for one machine and one shape; unsafe to call on a processor that is not the machine.
pub(super) struct Probes {
    probe: unsafe fn(&Table, u64, u64) -> Found,
    probe_unless_coded: unsafe fn(&Table, u64, u64) -> Found,
    narrow: unsafe fn(&Table, usize, u64, u64) -> u64,
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
    /// Where a key with this remainder can be.
    #[inline(always)]
    pub(crate) fn probe(&self, quotient: u64, remainder: u64) -> Found {
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.probe)(self, quotient, remainder) }
    }

    /// Where a key can be whose slot has this remainder if its value is initial, and any other if it is not.
    #[inline(always)]
    pub(crate) fn probe_unless_coded(&self, quotient: u64, remainder: u64) -> Found {
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.probe_unless_coded)(self, quotient, remainder) }
    }

    /// Which of these slots of a block hold one of the [`CHUNKS`] bytes that begin at the top of `chunks`. Only for
    /// remainders of a byte.
    #[inline(always)]
    pub(crate) fn narrow(&self, block: usize, slots: u64, chunks: u64) -> u64 {
        debug_assert_eq!(self.remainder_bits(), 8);
        // SAFETY: the probes were chosen for this processor.
        unsafe { (self.probes.narrow)(self, block, slots, chunks) }
    }
}

/// Any shape on any processor.
static PORTABLE: Probes = Probes {
    probe: |table, quotient, remainder| table.view(table.shape, Portable).probe(quotient, remainder),
    probe_unless_coded: |table, quotient, remainder| {
        table.view(table.shape, Portable).probe_unless_coded(quotient, remainder)
    },
    narrow: |table, block, slots, chunks| table.view(table.shape, Portable).narrow(block, slots, chunks),
};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::machine::x86::{Avx2, Avx512, Bmi2};
    use super::{ByteLine, CODED_SLOTS, Found, PLAIN_SLOTS, Probes, Table};

    pub(super) static AVX512_PLAIN: Probes = Probes {
        probe: probe_avx512::<PLAIN_SLOTS>,
        probe_unless_coded: probe_unless_coded_avx512::<PLAIN_SLOTS>,
        narrow: narrow_avx512::<PLAIN_SLOTS>,
    };
    pub(super) static AVX512_CODED: Probes = Probes {
        probe: probe_avx512::<CODED_SLOTS>,
        probe_unless_coded: probe_unless_coded_avx512::<CODED_SLOTS>,
        narrow: narrow_avx512::<CODED_SLOTS>,
    };
    pub(super) static AVX2_PLAIN: Probes = Probes {
        probe: probe_avx2::<PLAIN_SLOTS>,
        probe_unless_coded: probe_unless_coded_avx2::<PLAIN_SLOTS>,
        narrow: narrow_avx2::<PLAIN_SLOTS>,
    };
    pub(super) static AVX2_CODED: Probes = Probes {
        probe: probe_avx2::<CODED_SLOTS>,
        probe_unless_coded: probe_unless_coded_avx2::<CODED_SLOTS>,
        narrow: narrow_avx2::<CODED_SLOTS>,
    };
    pub(super) static BMI2_GENERAL: Probes = Probes { probe, probe_unless_coded, narrow };

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn probe_avx512<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        table.view(ByteLine::<SLOTS>, machine).probe(quotient, remainder)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn probe_unless_coded_avx512<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        table.view(ByteLine::<SLOTS>, machine).probe_unless_coded(quotient, remainder)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn narrow_avx512<const SLOTS: u32>(table: &Table, block: usize, slots: u64, chunks: u64) -> u64 {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        table.view(ByteLine::<SLOTS>, machine).narrow(block, slots, chunks)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn probe_avx2<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx2::new() };
        table.view(ByteLine::<SLOTS>, machine).probe(quotient, remainder)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn probe_unless_coded_avx2<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx2::new() };
        table.view(ByteLine::<SLOTS>, machine).probe_unless_coded(quotient, remainder)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn narrow_avx2<const SLOTS: u32>(table: &Table, block: usize, slots: u64, chunks: u64) -> u64 {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx2::new() };
        table.view(ByteLine::<SLOTS>, machine).narrow(block, slots, chunks)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn probe(table: &Table, quotient: u64, remainder: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Bmi2::new() };
        table.view(table.shape, machine).probe(quotient, remainder)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn probe_unless_coded(table: &Table, quotient: u64, remainder: u64) -> Found {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Bmi2::new() };
        table.view(table.shape, machine).probe_unless_coded(quotient, remainder)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn narrow(table: &Table, block: usize, slots: u64, chunks: u64) -> u64 {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Bmi2::new() };
        table.view(table.shape, machine).narrow(block, slots, chunks)
    }
}
