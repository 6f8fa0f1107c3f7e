//! The hot operations of the table: chosen once for each table, for its shape and the processor.

use std::fmt;

use crate::FullError;
use crate::bits::Isa;
use crate::coding::HIGHEST_CHUNK;

use super::compiled;
#[cfg(target_arch = "x86_64")]
use super::fixed_line::{CodedCenti, CodedMilli, PlainCenti, PlainMilli};
use super::geometry::{CODED_SLOTS, Geometry, PLAIN_SLOTS, Shape};
use super::insert::Agreed;
use super::machine::Machine;
use super::questions::{Answer, Probe};
use super::runs::View;
use super::table::{Place, Run, Shift, Table};

/// The hot operations for one machine and one shape.
///
/// They are unsafe to call on a processor that is not the machine, which [`choose`](Self::choose) sees to, and
/// on a table of another shape they would do nonsense.
pub(super) struct Operations {
    // SAFETY: of these and all that follow: to be called on this machine only.
    pub(super) contains: unsafe fn(&Table, u64, u64) -> bool,
    pub(super) matching: Query,
    pub(super) chunks: [Query; HIGHEST_CHUNK as usize],
    pub(super) unless_spilled: Query,
    pub(super) occupied: Query,
    pub(super) flagged: Query,
    // SAFETY: as above.
    pub(super) narrow: unsafe fn(&Table, usize, u64, u64) -> u64,
    pub(super) run: unsafe fn(&Table, u64) -> Option<Run>,
    pub(super) insert: unsafe fn(&mut Table, u64, u64) -> Result<Shift, FullError>,
    pub(super) insert_here: unsafe fn(&mut Table, u64, u64) -> Option<bool>,
    pub(super) gap: unsafe fn(&Table, u64) -> Shift,
    pub(super) insert_at: unsafe fn(&mut Table, u64, u64, Shift),
    pub(super) insert_fresh: unsafe fn(&mut Table, u64, u64, &mut dyn FnMut() -> bool) -> bool,
    // SAFETY: as above.
    pub(super) insert_unflagged: unsafe fn(&mut Table, u64, u64, &mut dyn FnMut() -> bool) -> Option<Agreed>,
}

/// A question to a table, about a quotient and a fraction.
pub(super) type Query = unsafe fn(&Table, u64, u64) -> Answer;

impl Operations {
    /// The query that a probe stands for.
    pub(super) fn query(&self, probe: Probe) -> Query {
        match probe {
            Probe::Matching => self.matching,
            Probe::Chunks(highest) => self.chunks[highest as usize - 1],
            Probe::UnlessSpilled => self.unless_spilled,
            Probe::Occupied => self.occupied,
            Probe::Flagged => self.flagged,
        }
    }

    /// The best ones for `shape` among those that `isa` allows, which must be at most what the processor has.
    pub(super) fn choose(isa: Isa, shape: Geometry) -> &'static Self {
        let byte_line = shape.remainder_bits() == 8 && shape.words() == 8;
        let slots = if byte_line { shape.slots() } else { 0 };
        match (isa, slots) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, PLAIN_SLOTS) => &compiled::x86::AVX512_PLAIN,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, CODED_SLOTS) => &compiled::x86::AVX512_CODED,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, PLAIN_SLOTS) => &compiled::x86::AVX2_PLAIN,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, CODED_SLOTS) => &compiled::x86::AVX2_CODED,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, _) if PlainCenti::is(shape) => &compiled::x86::AVX512_PLAIN_CENTI,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, _) if CodedCenti::is(shape) => &compiled::x86::AVX512_CODED_CENTI,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, _) if PlainMilli::is(shape) => &compiled::x86::AVX512_PLAIN_MILLI,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, _) if CodedMilli::is(shape) => &compiled::x86::AVX512_CODED_MILLI,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, _) if PlainCenti::is(shape) => &compiled::x86::BMI2_PLAIN_CENTI,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, _) if CodedCenti::is(shape) => &compiled::x86::BMI2_CODED_CENTI,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, _) if PlainMilli::is(shape) => &compiled::x86::BMI2_PLAIN_MILLI,
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, _) if CodedMilli::is(shape) => &compiled::x86::BMI2_CODED_MILLI,
            #[cfg(target_arch = "x86_64")]
            (isa @ (Isa::Avx2 | Isa::Avx512), _) => match (isa, shape.words()) {
                (Isa::Avx512, 4) => &compiled::x86::AVX512_OF_4,
                (Isa::Avx512, 8) => &compiled::x86::AVX512_OF_8,
                (Isa::Avx512, 16) => &compiled::x86::AVX512_OF_16,
                (_, 4) => &compiled::x86::BMI2_OF_4,
                (_, 8) => &compiled::x86::BMI2_OF_8,
                (_, 16) => &compiled::x86::BMI2_OF_16,
                _ => &compiled::x86::BMI2,
            },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            (Isa::Neon, PLAIN_SLOTS) => &compiled::arm::NEON_PLAIN,
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            (Isa::Neon, CODED_SLOTS) => &compiled::arm::NEON_CODED,
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            (Isa::Neon, _) => match shape.words() {
                4 => &compiled::arm::NEON_OF_4,
                8 => &compiled::arm::NEON_OF_8,
                16 => &compiled::arm::NEON_OF_16,
                _ => &compiled::arm::NEON,
            },
            (_, PLAIN_SLOTS) => &compiled::PORTABLE_PLAIN,
            (_, CODED_SLOTS) => &compiled::PORTABLE_CODED,
            _ => match shape.words() {
                4 => &compiled::PORTABLE_OF_4,
                8 => &compiled::PORTABLE_OF_8,
                16 => &compiled::PORTABLE_OF_16,
                _ => &compiled::PORTABLE,
            },
        }
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operations")
    }
}

impl Table {
    /// What the table says of a place, to its [`Probe`]. Touches one block, nearly always.
    #[inline(always)]
    pub(crate) fn answer(&self, place: Place) -> Answer {
        // SAFETY: the query was chosen for this processor.
        unsafe { (self.query)(self, place.quotient, place.fraction) }
    }

    /// Whether the item at a place is stored. Touches one block, nearly always.
    #[inline(always)]
    pub(crate) fn contains_place(&self, place: Place) -> bool {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.contains)(self, place.quotient, place.fraction) }
    }

    /// Whether the item is stored. Touches one block, nearly always.
    #[inline]
    pub(crate) fn contains(&self, quotient: u64, remainder: u64) -> bool {
        let fraction = remainder << (64 - self.shape.remainder_bits());
        self.contains_place(Place { quotient, fraction })
    }

    /// What queries look for; [`Probe::Matching`] at first.
    pub(crate) fn probe(&self) -> Probe {
        self.probe
    }

    /// Changes what queries look for. Every change of values that asks for it must be followed by this.
    pub(crate) fn set_probe(&mut self, probe: Probe) {
        self.probe = probe;
        self.query = self.operations.query(probe);
        self.chunk_bits = (probe.chunks() * self.shape.remainder_bits()).min(u64::BITS);
    }

    /// Which of these slots of a block hold one of the [`CHUNKS`](super::questions::CHUNKS) bytes that begin at the top
    /// of `chunks`. Only for remainders of a byte.
    #[inline(always)]
    pub(crate) fn narrow(&self, block: usize, slots: u64, chunks: u64) -> u64 {
        debug_assert_eq!(self.remainder_bits(), 8);
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.narrow)(self, block, slots, chunks) }
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

    /// Inserts an item if its block has room for it, which is nearly always the case, and says whether it was stored
    /// already; else `None`, and nothing changes.
    #[inline(always)]
    pub(crate) fn insert_here(&mut self, quotient: u64, remainder: u64) -> Option<bool> {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert_here)(self, quotient, remainder) }
    }

    /// Inserts an item if its block alone can tell that this is all there is to do (the block has room for it and the
    /// code 0, and no item of the quotient has this remainder) and `agree`, which is asked then, says so. Nothing
    /// changes before it has. Whether it was asked.
    #[inline(always)]
    pub(crate) fn insert_fresh(
        &mut self,
        quotient: u64,
        remainder: u64,
        agree: &mut dyn FnMut() -> bool,
    ) -> bool {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert_fresh)(self, quotient, remainder, agree) }
    }

    /// The same for a table whose codes are flags of quotients and marks: asks if the quotient's flag and all marks are
    /// not set. `None` if it was not asked.
    #[inline(always)]
    pub(crate) fn insert_unflagged(
        &mut self,
        quotient: u64,
        remainder: u64,
        agree: &mut dyn FnMut() -> bool,
    ) -> Option<Agreed> {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert_unflagged)(self, quotient, remainder, agree) }
    }

    /// Where an item of this quotient would be inserted, and which slots would be moved. The last of them may lie
    /// behind the tail.
    #[inline(always)]
    pub(crate) fn gap(&self, quotient: u64) -> Shift {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.gap)(self, quotient) }
    }

    /// Inserts an item where [`gap`](Self::gap) said, which must lie in the table; nothing may have changed since.
    #[inline(always)]
    pub(crate) fn insert_at(&mut self, quotient: u64, remainder: u64, gap: Shift) {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert_at)(self, quotient, remainder, gap) }
    }

    /// The table as `machine` sees it. `shape` must be the table's own, in whichever form.
    #[inline(always)]
    pub(super) fn view<S: Shape, M: Machine>(&self, shape: S, machine: M) -> View<'_, S, M> {
        View { words: &self.words, shape, machine }
    }
}
