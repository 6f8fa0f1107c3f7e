//! Is (quotient, remainder) in the table?
//!
//! A query reads its block and settles there, nearly always. It goes on to the next block only if the run of its
//! quotient ends beyond, and then takes the general way, [`Table::run`].
//!
//! For remainders of a byte there are versions for AVX2 and AVX-512 that compare the query's remainder with all
//! slots of the line at once. Each is a whole function behind run-time detection. Nothing in them branches on
//! the metadata but the rare way out: a misprediction would cost more than what it saves, and would keep the
//! processor from fetching the lines of the queries that follow.

use crate::bits::{Isa, low_mask, select};

use super::block::{self, Meta};
use super::geometry::{ByteLine, CODED_SLOTS, PLAIN_SLOTS, Shape};
use super::table::{Kind, Table};

/// What the query's own block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Local {
    /// The run lies in the block: these are its slots, as bits.
    Run(u64),
    /// The run ends in a later block, or starts there.
    Beyond,
}

/// The run of the block's `quotient`-th quotient, as bits of the block. No run, no bits.
///
/// `select` must be the `select` of `bits`, in whichever version.
#[inline(always)]
fn local_run(meta: Meta, quotient: u32, slots: u32, select: impl Fn(u64, u32) -> u32) -> Local {
    if meta.offset >= slots {
        return if meta.is_occupied(quotient) { Local::Beyond } else { Local::Run(0) };
    }
    let runends = meta.own_runends();
    let below = meta.runs_below(quotient);
    let occupied = meta.is_occupied(quotient);
    let last = select(runends, below);
    if occupied && last == 64 {
        return Local::Beyond;
    }
    // The slot behind the run before this one; `select` says 64 for "none" only if `below` is 0.
    let before = if below == 0 { meta.offset } else { select(runends, below - 1).wrapping_add(1) };
    let first = before.max(quotient);
    let run = low_mask(last + 1) & !low_mask(first);
    Local::Run(if occupied { run } else { 0 })
}

impl Table {
    /// Whether the item is stored. Touches one block, nearly always.
    #[inline]
    pub(crate) fn contains(&self, quotient: u64, remainder: u64) -> bool {
        #[cfg(target_arch = "x86_64")]
        match (self.isa, self.kind) {
            // SAFETY (all four): `isa` is at most what `Isa::detect` found on this processor.
            (Isa::Avx512, Kind::PlainBytes) => {
                return unsafe { avx512::contains::<PLAIN_SLOTS>(self, quotient, remainder) };
            }
            (Isa::Avx512, Kind::CodedBytes) => {
                return unsafe { avx512::contains::<CODED_SLOTS>(self, quotient, remainder) };
            }
            (Isa::Avx2, Kind::PlainBytes) => {
                return unsafe { avx2::contains::<PLAIN_SLOTS>(self, quotient, remainder) };
            }
            (Isa::Avx2, Kind::CodedBytes) => {
                return unsafe { avx2::contains::<CODED_SLOTS>(self, quotient, remainder) };
            }
            (Isa::Portable, _) | (_, Kind::General) => {}
        }
        self.contains_portable(quotient, remainder)
    }

    fn contains_portable(&self, quotient: u64, remainder: u64) -> bool {
        match self.kind {
            Kind::PlainBytes => self.contains_in(ByteLine::<PLAIN_SLOTS>, quotient, remainder),
            Kind::CodedBytes => self.contains_in(ByteLine::<CODED_SLOTS>, quotient, remainder),
            Kind::General => self.contains_in(self.shape, quotient, remainder),
        }
    }

    #[inline(always)]
    fn contains_in<S: Shape>(&self, shape: S, quotient: u64, remainder: u64) -> bool {
        let (index, in_block) = shape.split(quotient);
        let block = &self.words[index * shape.words()..][..shape.words()];
        match local_run(block::meta(shape, block), in_block, shape.slots(), select) {
            Local::Run(0) => false,
            Local::Run(run) => {
                let mut slots = run.trailing_zeros()..64 - run.leading_zeros();
                slots.any(|slot| block::remainder(shape, block, slot) == remainder)
            }
            Local::Beyond => self.contains_beyond(quotient, remainder),
        }
    }

    /// The general way, for runs that reach into later blocks.
    #[cold]
    #[inline(never)]
    fn contains_beyond(&self, quotient: u64, remainder: u64) -> bool {
        self.run(quotient).is_some_and(|run| run.slots().any(|slot| self.remainder(slot) == remainder))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{__m512i, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_set1_epi8};

    use super::{ByteLine, Local, Shape, Table, block, local_run};
    use crate::bits::select_bmi2;

    #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn contains<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> bool {
        let shape = ByteLine::<SLOTS>;
        let (index, in_block) = shape.split(quotient);
        let block = &table.words[index * 8..][..8];
        // SAFETY: `block` has 8 words, which are 64 bytes.
        let line = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
        let equal = _mm512_cmpeq_epi8_mask(line, _mm512_set1_epi8(remainder as i8));
        let matches = equal >> (shape.remainders_at() / 8);
        match local_run(block::meta(shape, block), in_block, SLOTS, |word, k| select_bmi2(word, k)) {
            Local::Run(run) => matches & run != 0,
            Local::Beyond => table.contains_beyond(quotient, remainder),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
    };

    use super::{ByteLine, Local, Shape, Table, block, local_run};
    use crate::bits::select_bmi2;

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn contains<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> bool {
        let shape = ByteLine::<SLOTS>;
        let (index, in_block) = shape.split(quotient);
        let block = &table.words[index * 8..][..8];
        let wanted = _mm256_set1_epi8(remainder as i8);
        let halves = block.as_ptr().cast::<__m256i>();
        // SAFETY: `block` has 8 words, which are two halves of 32 bytes.
        let (low, high) = unsafe { (_mm256_loadu_si256(halves), _mm256_loadu_si256(halves.add(1))) };
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)) as u32;
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)) as u32;
        let matches = (u64::from(high) << 32 | u64::from(low)) >> (shape.remainders_at() / 8);
        match local_run(block::meta(shape, block), in_block, SLOTS, |word, k| select_bmi2(word, k)) {
            Local::Run(run) => matches & run != 0,
            Local::Beyond => table.contains_beyond(quotient, remainder),
        }
    }
}
