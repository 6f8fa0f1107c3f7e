//! The hot operations of the table, compiled for every machine, and chosen once for each table.
//!
//! Each is a pair: a function that settles the matter in one block, and a cold one that goes on to others. They
//! are kept apart so that the hot one needs few registers and no stack.

use std::fmt;

use crate::FullError;
use crate::bits::Isa;

use super::geometry::{ByteLine, CODED_SLOTS, Geometry, PLAIN_SLOTS, Shape};
use super::machine::{Machine, Portable};
use super::table::{Run, Shift, Table};
use super::view::View;

/// The hot operations for one machine and one shape.
///
/// They are unsafe to call on a processor that is not the machine, which [`choose`](Self::choose) sees to, and
/// on a table of another shape they would do nonsense.
pub(super) struct Operations {
    contains: unsafe fn(&Table, u64, u64) -> bool,
    contains_or_flag: unsafe fn(&Table, u64, u64) -> bool,
    run: unsafe fn(&Table, u64) -> Option<Run>,
    insert: unsafe fn(&mut Table, u64, u64) -> Result<Shift, FullError>,
}

impl Operations {
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

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operations")
    }
}

impl Table {
    /// Whether the item is stored. Touches one block, nearly always.
    #[inline(always)]
    pub(crate) fn contains(&self, quotient: u64, remainder: u64) -> bool {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.contains)(self, quotient, remainder) }
    }

    /// Whether the item is stored, or the quotient's flag is set. Touches one block, nearly always.
    #[inline(always)]
    pub(crate) fn contains_or_flag(&self, quotient: u64, remainder: u64) -> bool {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.contains_or_flag)(self, quotient, remainder) }
    }

    /// The run of a quotient, if it has one. Touches one block unless runs cross into the next.
    #[inline(always)]
    pub(crate) fn run(&self, quotient: u64) -> Option<Run> {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.run)(self, quotient) }
    }

    /// Inserts an item at the end of its quotient's run. Fails only if memory for a longer tail is not to be
    /// had; the table is unchanged then.
    ///
    /// How full a table may be is for the filter to say: this one always finds a slot, if in the tail.
    #[inline(always)]
    pub(crate) fn insert(&mut self, quotient: u64, remainder: u64) -> Result<Shift, FullError> {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert)(self, quotient, remainder) }
    }

    /// Where an item of this quotient would be inserted, and which slots would be moved.
    pub(crate) fn gap(&self, quotient: u64) -> Shift {
        self.view(self.shape, Portable).gap(quotient)
    }

    /// Inserts an item if no slot at or behind `end` is needed for it; else `None`, and nothing changes.
    pub(crate) fn insert_before(&mut self, quotient: u64, remainder: u64, end: u64) -> Option<Shift> {
        if self.gap(quotient).end >= end {
            return None;
        }
        self.insert(quotient, remainder).ok()
    }

    /// The table as `machine` sees it. `shape` must be the table's own, in whichever form.
    #[inline(always)]
    pub(super) fn view<S: Shape, M: Machine>(&self, shape: S, machine: M) -> View<'_, S, M> {
        View { words: &self.words, shape, machine }
    }
}

/// Any shape on any processor.
static PORTABLE: Operations = Operations {
    contains: |table, quotient, remainder| {
        let view = table.view(table.shape, Portable);
        view.contains_locally(quotient, remainder)
            .unwrap_or_else(|| view.contains_beyond(quotient, remainder))
    },
    contains_or_flag: |table, quotient, remainder| {
        table.view(table.shape, Portable).flag(quotient) || table.contains(quotient, remainder)
    },
    run: |table, quotient| table.view(table.shape, Portable).run(quotient),
    insert: |table, quotient, remainder| {
        let shape = table.shape;
        match table.insert_locally(shape, Portable, quotient, remainder) {
            Some(shift) => Ok(shift),
            None => table.insert_beyond(shape, Portable, quotient, remainder),
        }
    },
};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::machine::x86::{Avx2, Avx512, Bmi2};
    use super::{ByteLine, CODED_SLOTS, FullError, Operations, PLAIN_SLOTS, Run, Shape, Shift, Table};

    pub(super) static AVX512_PLAIN: Operations = Operations {
        contains: contains_avx512::<PLAIN_SLOTS>,
        contains_or_flag: contains_or_flag_avx512::<PLAIN_SLOTS>,
        run: run_in_line::<PLAIN_SLOTS>,
        insert: insert_avx512::<PLAIN_SLOTS>,
    };
    pub(super) static AVX512_CODED: Operations = Operations {
        contains: contains_avx512::<CODED_SLOTS>,
        contains_or_flag: contains_or_flag_avx512::<CODED_SLOTS>,
        run: run_in_line::<CODED_SLOTS>,
        insert: insert_avx512::<CODED_SLOTS>,
    };
    pub(super) static AVX2_PLAIN: Operations = Operations {
        contains: contains_avx2::<PLAIN_SLOTS>,
        contains_or_flag: contains_or_flag_avx2::<PLAIN_SLOTS>,
        run: run_in_line::<PLAIN_SLOTS>,
        insert: insert_in_line::<PLAIN_SLOTS>,
    };
    pub(super) static AVX2_CODED: Operations = Operations {
        contains: contains_avx2::<CODED_SLOTS>,
        contains_or_flag: contains_or_flag_avx2::<CODED_SLOTS>,
        run: run_in_line::<CODED_SLOTS>,
        insert: insert_in_line::<CODED_SLOTS>,
    };
    pub(super) static BMI2_GENERAL: Operations = Operations { contains, contains_or_flag, run, insert };

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn contains_avx512<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> bool {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        match table.view(ByteLine::<SLOTS>, machine).contains_locally(quotient, remainder) {
            Some(answer) => answer,
            None => contains_beyond(table, ByteLine::<SLOTS>, quotient, remainder),
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn contains_avx2<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> bool {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx2::new() };
        match table.view(ByteLine::<SLOTS>, machine).contains_locally(quotient, remainder) {
            Some(answer) => answer,
            None => contains_beyond(table, ByteLine::<SLOTS>, quotient, remainder),
        }
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn contains(table: &Table, quotient: u64, remainder: u64) -> bool {
        match table.view(table.shape, bmi2()).contains_locally(quotient, remainder) {
            Some(answer) => answer,
            None => contains_beyond(table, table.shape, quotient, remainder),
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn contains_or_flag_avx512<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> bool {
        // SAFETY: this function's features are the machine's.
        let view = table.view(ByteLine::<SLOTS>, unsafe { Avx512::new() });
        if view.flag(quotient) {
            return true;
        }
        match view.contains_locally(quotient, remainder) {
            Some(answer) => answer,
            None => contains_beyond(table, ByteLine::<SLOTS>, quotient, remainder),
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn contains_or_flag_avx2<const SLOTS: u32>(table: &Table, quotient: u64, remainder: u64) -> bool {
        // SAFETY: this function's features are the machine's.
        let view = table.view(ByteLine::<SLOTS>, unsafe { Avx2::new() });
        if view.flag(quotient) {
            return true;
        }
        match view.contains_locally(quotient, remainder) {
            Some(answer) => answer,
            None => contains_beyond(table, ByteLine::<SLOTS>, quotient, remainder),
        }
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn contains_or_flag(table: &Table, quotient: u64, remainder: u64) -> bool {
        let view = table.view(table.shape, bmi2());
        if view.flag(quotient) {
            return true;
        }
        match view.contains_locally(quotient, remainder) {
            Some(answer) => answer,
            None => contains_beyond(table, table.shape, quotient, remainder),
        }
    }

    #[cold]
    #[inline(never)]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn contains_beyond<S: Shape>(table: &Table, shape: S, quotient: u64, remainder: u64) -> bool {
        table.view(shape, bmi2()).contains_beyond(quotient, remainder)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn run(table: &Table, quotient: u64) -> Option<Run> {
        table.view(table.shape, bmi2()).run(quotient)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn run_in_line<const SLOTS: u32>(table: &Table, quotient: u64) -> Option<Run> {
        table.view(ByteLine::<SLOTS>, bmi2()).run(quotient)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn insert_avx512<const SLOTS: u32>(
        table: &mut Table,
        quotient: u64,
        remainder: u64,
    ) -> Result<Shift, FullError> {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        match table.insert_locally(ByteLine::<SLOTS>, machine, quotient, remainder) {
            Some(shift) => Ok(shift),
            None => insert_beyond_avx512::<SLOTS>(table, quotient, remainder),
        }
    }

    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
    fn insert_beyond_avx512<const SLOTS: u32>(
        table: &mut Table,
        quotient: u64,
        remainder: u64,
    ) -> Result<Shift, FullError> {
        // SAFETY: this function's features are the machine's.
        let machine = unsafe { Avx512::new() };
        table.insert_beyond(ByteLine::<SLOTS>, machine, quotient, remainder)
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn insert_in_line<const SLOTS: u32>(
        table: &mut Table,
        quotient: u64,
        remainder: u64,
    ) -> Result<Shift, FullError> {
        match table.insert_locally(ByteLine::<SLOTS>, bmi2(), quotient, remainder) {
            Some(shift) => Ok(shift),
            None => insert_beyond(table, ByteLine::<SLOTS>, quotient, remainder),
        }
    }

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn insert(table: &mut Table, quotient: u64, remainder: u64) -> Result<Shift, FullError> {
        let shape = table.shape;
        match table.insert_locally(shape, bmi2(), quotient, remainder) {
            Some(shift) => Ok(shift),
            None => insert_beyond(table, shape, quotient, remainder),
        }
    }

    #[cold]
    #[inline(never)]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn insert_beyond<S: Shape>(
        table: &mut Table,
        shape: S,
        quotient: u64,
        remainder: u64,
    ) -> Result<Shift, FullError> {
        table.insert_beyond(shape, bmi2(), quotient, remainder)
    }

    #[inline]
    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    fn bmi2() -> Bmi2 {
        // SAFETY: this function's features are the machine's.
        unsafe { Bmi2::new() }
    }
}
