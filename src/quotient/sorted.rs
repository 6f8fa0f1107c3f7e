//! Whole tables in one pass, in the order of their quotients: iteration, doubling, merging.

use crate::BuildError;

use super::block::{Meta, OFFSET_SATURATED};
use super::geometry::Shape;
use super::machine::Portable;
use super::table::{Run, Table};

/// One stored item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) quotient: u64,
    pub(crate) remainder: u64,
    pub(crate) slot: u64,
}

/// The runs of a table in the order of their quotients.
#[derive(Debug, Clone)]
pub(crate) struct Runs<'t> {
    table: &'t Table,
    block: usize,
    /// The quotients of `block` that are still to come.
    occupieds: u64,
    /// Behind the runs so far.
    free: u64,
}

impl Iterator for Runs<'_> {
    type Item = (u64, Run);

    fn next(&mut self) -> Option<(u64, Run)> {
        while self.occupieds == 0 {
            self.block += 1;
            if self.block >= self.table.blocks() {
                return None;
            }
            self.occupieds = self.table.meta(self.block).occupieds;
        }
        let quotient = self.table.first_slot(self.block) + u64::from(self.occupieds.trailing_zeros());
        self.occupieds &= self.occupieds - 1;
        let first = self.free.max(quotient);
        let last = self.table.view(self.table.shape, Portable).select_runend(first, 0);
        self.free = last + 1;
        Some((quotient, Run { first, last }))
    }
}

impl Table {
    /// All runs with their quotients, in order.
    pub(crate) fn runs(&self) -> Runs<'_> {
        Runs { table: self, block: 0, occupieds: self.meta(0).occupieds, free: 0 }
    }

    /// The runs that reach into a block or begin behind it, in order.
    pub(crate) fn runs_from(&self, block: usize) -> impl Iterator<Item = (u64, Run)> {
        // Runs of earlier quotients fill the block's first slots. Go back to where those of none do.
        let (view, first) = (self.view(self.shape, Portable), self.first_slot(block));
        let mut start = block;
        while start > 0 && view.begin(start) > first {
            start -= 1;
        }
        let (occupieds, free) = (self.meta(start).occupieds, view.begin(start));
        let runs = Runs { table: self, block: start, occupieds, free };
        runs.skip_while(move |(_, run)| run.last < first)
    }

    /// All items, by quotient and rank.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Item> {
        self.runs().flat_map(move |(quotient, run)| {
            run.slots().map(move |slot| Item { quotient, remainder: self.remainder(slot), slot })
        })
    }

    /// The same items in twice as many slots: the leading bit of each remainder becomes the last one of its
    /// quotient. Order within a run is kept. Remainders must have more than the minimum of 2 bits.
    pub(crate) fn doubled(&self) -> Result<Self, BuildError> {
        let bits = self.remainder_bits() - 1;
        let coded = self.code_bits() > 0;
        let mut table = Appender::new(Self::new(self.slots() * 2, bits, coded)?);
        for (quotient, run) in self.runs() {
            // Two passes over the run, not a sort: first those that go to the lower quotient.
            for half in 0..2 {
                for slot in run.slots() {
                    let remainder = self.remainder(slot);
                    if remainder >> bits == half {
                        table.append(quotient * 2 + half, remainder & ((1 << bits) - 1))?;
                    }
                }
            }
        }
        Ok(table.finish())
    }

    /// The items of both tables, which have the same number of slots and width of remainders. In a run, those of
    /// `self` stand before those of `other`.
    pub(crate) fn merged(&self, other: &Self) -> Result<Self, BuildError> {
        debug_assert_eq!((self.slots(), self.remainder_bits()), (other.slots(), other.remainder_bits()));
        let coded = self.code_bits() > 0;
        let mut table = Appender::new(Self::new(self.slots(), self.remainder_bits(), coded)?);
        let (mut left, mut right) = (self.runs().peekable(), other.runs().peekable());
        loop {
            let (from, runs) = match (left.peek(), right.peek()) {
                (Some((a, _)), Some((b, _))) if a <= b => (self, &mut left),
                (Some(_), None) => (self, &mut left),
                (_, Some(_)) => (other, &mut right),
                (None, None) => return Ok(table.finish()),
            };
            if let Some((quotient, run)) = runs.next() {
                for slot in run.slots() {
                    table.append(quotient, from.remainder(slot))?;
                }
            }
        }
    }
}

/// Fills an empty table with items in ascending order of their quotients.
#[derive(Debug)]
pub(crate) struct Appender {
    table: Table,
    /// The quotient of the run that is open.
    open: Option<u64>,
    /// Behind the last item.
    free: u64,
}

impl Appender {
    /// `table` must be empty.
    pub(crate) fn new(table: Table) -> Self {
        debug_assert_eq!(table.len(), 0);
        Self { table, open: None, free: 0 }
    }

    /// Appends an item, whose quotient is not below that of the one before, and returns its slot.
    pub(crate) fn append(&mut self, quotient: u64, remainder: u64) -> Result<u64, BuildError> {
        debug_assert!(self.open.is_none_or(|open| open <= quotient));
        let slot = if self.open == Some(quotient) {
            self.mark(self.free - 1, |meta, bit| meta.runends ^= bit);
            self.free
        } else {
            self.mark(quotient, |meta, bit| meta.occupieds |= bit);
            self.free.max(quotient)
        };
        self.table.reserve_slot(slot)?;
        self.mark(slot, |meta, bit| meta.runends |= bit);
        self.table.set_remainder(slot, remainder);
        self.table.len += 1;
        (self.open, self.free) = (Some(quotient), slot + 1);
        Ok(slot)
    }

    /// The table so far, whose codes may be set for slots that have been appended.
    pub(crate) fn table_mut(&mut self) -> &mut Table {
        &mut self.table
    }

    fn mark(&mut self, slot: u64, change: impl FnOnce(&mut Meta, u64)) {
        let (block, slot) = self.table.shape.split(slot);
        let mut meta = self.table.meta(block);
        change(&mut meta, 1 << slot);
        self.table.set_meta(block, meta);
    }

    /// The table, with the offsets that the items make.
    pub(crate) fn finish(mut self) -> Table {
        let mut free = 0;
        for block in 0..self.table.blocks() {
            let first = self.table.first_slot(block);
            let mut meta = self.table.meta(block);
            free = free.max(first);
            meta.offset = (free - first).min(OFFSET_SATURATED.into()) as u32;
            self.table.set_meta(block, meta);
            free = self.table.view(self.table.shape, Portable).end_of_runs(block, free);
        }
        self.table
    }
}
