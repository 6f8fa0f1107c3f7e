//! The operations of the table, each compiled for every machine and chosen at run time.

use crate::FullError;
use crate::bits::Isa;

use super::geometry::{ByteLine, CODED_SLOTS, PLAIN_SLOTS, Shape};
use super::machine::{Machine, Portable};
use super::table::{Kind, Run, Shift, Table};
use super::view::View;

impl Table {
    /// Whether the item is stored. Touches one block, nearly always.
    #[inline]
    pub(crate) fn contains(&self, quotient: u64, remainder: u64) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.isa > Isa::Portable {
            // SAFETY: `isa` is at most what `Isa::detect` found on this processor.
            return unsafe {
                match (self.isa, self.kind) {
                    (Isa::Avx512, Kind::PlainBytes) => {
                        x86::contains_avx512::<PLAIN_SLOTS>(self, quotient, remainder)
                    }
                    (Isa::Avx512, Kind::CodedBytes) => {
                        x86::contains_avx512::<CODED_SLOTS>(self, quotient, remainder)
                    }
                    (_, Kind::PlainBytes) => x86::contains_avx2::<PLAIN_SLOTS>(self, quotient, remainder),
                    (_, Kind::CodedBytes) => x86::contains_avx2::<CODED_SLOTS>(self, quotient, remainder),
                    (_, Kind::General) => x86::contains_bmi2(self, quotient, remainder),
                }
            };
        }
        match self.kind {
            Kind::PlainBytes => self.view(ByteLine::<PLAIN_SLOTS>, Portable).contains(quotient, remainder),
            Kind::CodedBytes => self.view(ByteLine::<CODED_SLOTS>, Portable).contains(quotient, remainder),
            Kind::General => self.view(self.shape, Portable).contains(quotient, remainder),
        }
    }

    /// The run of a quotient, if it has one. Touches one block unless runs cross into the next.
    #[inline]
    pub(crate) fn run(&self, quotient: u64) -> Option<Run> {
        #[cfg(target_arch = "x86_64")]
        if self.isa > Isa::Portable {
            // SAFETY: `isa` is at most what `Isa::detect` found on this processor.
            return unsafe { x86::run(self, quotient) };
        }
        self.view(self.shape, Portable).run(quotient)
    }

    /// Where an item of this quotient would be inserted, and which slots would be moved.
    pub(crate) fn gap(&self, quotient: u64) -> Shift {
        self.view(self.shape, Portable).gap(quotient)
    }

    /// Inserts an item at the end of its quotient's run. Fails only if memory for a longer tail is not to be
    /// had; the table is unchanged then.
    ///
    /// How full a table may be is for the filter to say: this one always finds a slot, if in the tail.
    #[inline]
    pub(crate) fn insert(&mut self, quotient: u64, remainder: u64) -> Result<Shift, FullError> {
        #[cfg(target_arch = "x86_64")]
        if self.isa > Isa::Portable {
            // SAFETY: `isa` is at most what `Isa::detect` found on this processor.
            return unsafe {
                match (self.isa, self.kind) {
                    (Isa::Avx512, Kind::PlainBytes) => {
                        x86::insert_avx512::<PLAIN_SLOTS>(self, quotient, remainder)
                    }
                    (Isa::Avx512, Kind::CodedBytes) => {
                        x86::insert_avx512::<CODED_SLOTS>(self, quotient, remainder)
                    }
                    (_, Kind::PlainBytes) => {
                        x86::insert_bmi2(self, ByteLine::<PLAIN_SLOTS>, quotient, remainder)
                    }
                    (_, Kind::CodedBytes) => {
                        x86::insert_bmi2(self, ByteLine::<CODED_SLOTS>, quotient, remainder)
                    }
                    (_, Kind::General) => x86::insert_bmi2(self, self.shape, quotient, remainder),
                }
            };
        }
        match self.kind {
            Kind::PlainBytes => self.insert_with(ByteLine::<PLAIN_SLOTS>, Portable, quotient, remainder),
            Kind::CodedBytes => self.insert_with(ByteLine::<CODED_SLOTS>, Portable, quotient, remainder),
            Kind::General => self.insert_with(self.shape, Portable, quotient, remainder),
        }
    }

    /// The table as `machine` sees it. `shape` must be the table's own, in whichever form.
    #[inline(always)]
    pub(super) fn view<S: Shape, M: Machine>(&self, shape: S, machine: M) -> View<'_, S, M> {
        View { words: &self.words, shape, machine }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::machine::x86::{Avx2, Avx512, Bmi2};
    use super::{ByteLine, FullError, Run, Shape, Shift, Table};

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn contains_avx512<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> bool {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        table.view(ByteLine::<SLOTS>, machine).contains(quotient, remainder)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn contains_avx2<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> bool {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx2::new() };
        table.view(ByteLine::<SLOTS>, machine).contains(quotient, remainder)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn contains_bmi2(table: &Table, quotient: u64, remainder: u64) -> bool {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Bmi2::new() };
        table.view(table.shape, machine).contains(quotient, remainder)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn run(table: &Table, quotient: u64) -> Option<Run> {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Bmi2::new() };
        table.view(table.shape, machine).run(quotient)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn insert_avx512<const SLOTS: u32>(
        table: &mut Table,
        quotient: u64,
        remainder: u64,
    ) -> Result<Shift, FullError> {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        table.insert_with(ByteLine::<SLOTS>, machine, quotient, remainder)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn insert_bmi2<S: Shape>(
        table: &mut Table,
        shape: S,
        quotient: u64,
        remainder: u64,
    ) -> Result<Shift, FullError> {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Bmi2::new() };
        table.insert_with(shape, machine, quotient, remainder)
    }
}
