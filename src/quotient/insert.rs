//! Putting an item in, and taking one out.
//!
//! An insertion that finds a free slot in its own block works on the block's metadata in registers and writes
//! them back once; one that does not shifts block by block. A removal closes the gap again.

use crate::bits::{Isa, low_mask, select};
use crate::{BuildError, FullError};

use super::block::{self, Meta, OFFSET_SATURATED};
use super::geometry::{ByteLine, CODED_SLOTS, PLAIN_SLOTS, Shape};
use super::table::{Kind, Shift, Table};

/// The slots of a block that an insertion shifts.
#[derive(Debug, Clone, Copy)]
struct LocalShift {
    at: u32,
    end: u32,
}

/// Where the block's `quotient`-th quotient gets a new item, and the first free slot from there on; `None` if
/// either is not in this block.
#[inline(always)]
fn local_gap(meta: Meta, quotient: u32, slots: u32, select: impl Fn(u64, u32) -> u32) -> Option<LocalShift> {
    if meta.offset >= slots {
        return None;
    }
    let runends = meta.own_runends();
    // Behind the quotient's own run if it has one, else behind the run before it.
    let runs = meta.runs_below(quotient + 1);
    let behind = if runs == 0 { meta.offset } else { select(runends, runs - 1).wrapping_add(1) };
    let at = behind.max(quotient);
    let mut end = at;
    loop {
        if end >= slots {
            return None;
        }
        // A slot is free iff all runs that begin at or before it have ended before it.
        let begun = meta.runs_below(end + 1);
        if (runends & low_mask(end)).count_ones() >= begun {
            return Some(LocalShift { at, end });
        }
        end = select(runends, begun - 1).wrapping_add(1);
    }
}

/// Inserts within one block, if that is possible.
#[inline(always)]
fn insert_local<S: Shape>(
    shape: S,
    block: &mut [u64],
    quotient: u32,
    remainder: u64,
    select: impl Fn(u64, u32) -> u32,
) -> Option<LocalShift> {
    let mut meta = block::meta(shape, block);
    let LocalShift { at, end } = local_gap(meta, quotient, shape.slots(), select)?;
    let moved = meta.runends & low_mask(end) & !low_mask(at);
    meta.runends = (meta.runends ^ moved) | moved << 1 | 1 << at;
    if meta.is_occupied(quotient) {
        // The run has a new last item. It was not empty, so `at` is not 0 unless it began in the block before,
        // in which case this block's offset is not 0 either.
        meta.runends &= !(1 << (at - 1));
    }
    meta.occupieds |= 1 << quotient;
    block::set_meta(shape, block, meta);
    block::shift_up(shape, block, at, end);
    block::set_remainder(shape, block, at, remainder);
    Some(LocalShift { at, end })
}

impl Table {
    /// Inserts an item at the end of its quotient's run. Fails only if memory for a longer tail is not to be
    /// had; the table is unchanged then.
    ///
    /// How full a table may be is for the filter to say: this one always finds a slot, if in the tail.
    #[inline]
    pub(crate) fn insert(&mut self, quotient: u64, remainder: u64) -> Result<Shift, FullError> {
        let (index, in_block) = self.shape.split(quotient);
        match self.insert_in_block(index, in_block, remainder) {
            Some(LocalShift { at, end }) => {
                self.len += 1;
                let first = self.first_slot(index);
                Ok(Shift { at: first + u64::from(at), end: first + u64::from(end) })
            }
            None => self.insert_beyond(quotient, remainder),
        }
    }

    /// Where an item of this quotient would be inserted, and which slots would be moved.
    pub(crate) fn gap(&self, quotient: u64) -> Shift {
        let (index, in_block) = self.shape.split(quotient);
        let begin = self.begin(index);
        let at = match self.meta(index).runs_below(in_block + 1) {
            0 => begin,
            runs => self.select_runend(begin, runs - 1) + 1,
        };
        let at = at.max(quotient);
        Shift { at, end: self.first_free(at) }
    }

    #[inline(always)]
    fn insert_in_block(&mut self, index: usize, quotient: u32, remainder: u64) -> Option<LocalShift> {
        let (kind, isa, shape) = (self.kind, self.isa, self.shape);
        let block = self.block_mut(index);
        #[cfg(target_arch = "x86_64")]
        if isa >= Isa::Avx2 {
            // SAFETY: `isa` is at most what `Isa::detect` found on this processor.
            return unsafe {
                match kind {
                    Kind::PlainBytes => bmi2::insert(ByteLine::<PLAIN_SLOTS>, block, quotient, remainder),
                    Kind::CodedBytes => bmi2::insert(ByteLine::<CODED_SLOTS>, block, quotient, remainder),
                    Kind::General => bmi2::insert(shape, block, quotient, remainder),
                }
            };
        }
        match kind {
            Kind::PlainBytes => insert_local(ByteLine::<PLAIN_SLOTS>, block, quotient, remainder, select),
            Kind::CodedBytes => insert_local(ByteLine::<CODED_SLOTS>, block, quotient, remainder, select),
            Kind::General => insert_local(shape, block, quotient, remainder, select),
        }
    }

    /// The general way, for shifts that cross into later blocks.
    #[inline(never)]
    fn insert_beyond(&mut self, quotient: u64, remainder: u64) -> Result<Shift, FullError> {
        let shift @ Shift { at, end } = self.gap(quotient);
        if end >= self.physical_slots() {
            self.extend_tail(end)?;
        }
        let (home, in_block) = self.shape.split(quotient);
        self.shift_up(at, end);
        self.set_runend(at, true);
        self.set_remainder(at, remainder);
        let mut meta = self.meta(home);
        if meta.is_occupied(in_block) {
            self.set_runend(at - 1, false);
            meta = self.meta(home);
        }
        meta.occupieds |= 1 << in_block;
        self.set_meta(home, meta);
        // All that stood in `at..end` moved up: every block that starts there is reached by one slot more.
        for block in home + 1..=self.shape.split(end).0 {
            let mut meta = self.meta(block);
            meta.offset = (meta.offset + 1).min(OFFSET_SATURATED);
            self.set_meta(block, meta);
        }
        self.len += 1;
        Ok(shift)
    }

    /// Makes the tail long enough for `slot`; the offsets of its new blocks are those of an empty table.
    pub(super) fn reserve_slot(&mut self, slot: u64) -> Result<(), BuildError> {
        if slot < self.physical_slots() {
            return Ok(());
        }
        // A tail grows by one run that is pushed out; double its length, so that this stays rare.
        let homes = self.shape.split(self.slots - 1).0 + 1;
        let blocks = (self.shape.split(slot).0 + 1).max(2 * self.blocks - homes);
        let words = blocks * self.shape.words();
        let Some(resized) = self.words.resized(words) else {
            return Err(BuildError::OutOfMemory { bytes: words * 8 });
        };
        self.words = resized;
        self.blocks = blocks;
        Ok(())
    }

    /// Makes the tail long enough for `slot`.
    fn extend_tail(&mut self, slot: u64) -> Result<(), FullError> {
        let first_new = self.blocks;
        self.reserve_slot(slot).map_err(|_| FullError { len: self.len, capacity: self.len })?;
        // A run may have ended right before the first new block, or reach over it from far back; in either case
        // its offset follows from the blocks before it.
        for block in first_new..self.blocks {
            let begin = self.end_of_runs(block - 1, self.begin(block - 1)).max(self.first_slot(block));
            let offset = (begin - self.first_slot(block)).min(OFFSET_SATURATED.into()) as u32;
            self.set_meta(block, Meta { offset, occupieds: 0, runends: 0 });
        }
        Ok(())
    }

    /// The first free slot at or behind `from`, which may lie behind all blocks.
    fn first_free(&self, from: u64) -> u64 {
        let mut slot = from;
        loop {
            let (block, in_block) = self.shape.split(slot);
            if block >= self.blocks {
                return slot;
            }
            let begin = self.begin(block);
            let behind = match self.meta(block).runs_below(in_block + 1) {
                0 => begin,
                runs => self.select_runend(begin, runs - 1) + 1,
            };
            if behind <= slot {
                return slot;
            }
            slot = behind;
        }
    }

    /// Moves remainders and runends of `at..end` one slot up.
    fn shift_up(&mut self, at: u64, end: u64) {
        let (shape, last) = (self.shape, self.shape.slots() - 1);
        let (first_block, first_slot) = shape.split(at);
        let (last_block, last_slot) = shape.split(end);
        for index in (first_block..=last_block).rev() {
            let from = if index == first_block { first_slot } else { 0 };
            let to = if index == last_block { last_slot } else { last };
            let block = self.block_mut(index);
            let mut meta = block::meta(shape, block);
            let moved = meta.runends & low_mask(to) & !low_mask(from);
            meta.runends = meta.runends & !(low_mask(to + 1) & !low_mask(from)) | moved << 1;
            block::set_meta(shape, block, meta);
            block::shift_up(shape, block, from, to);
            if index > first_block {
                let carried = self.first_slot(index) - 1;
                self.set_runend(carried + 1, self.is_runend(carried));
                self.set_remainder(carried + 1, self.remainder(carried));
            }
        }
    }

    /// Removes the item of this rank from the run of this quotient, which must have so many.
    pub(crate) fn remove(&mut self, quotient: u64, rank: usize) -> Shift {
        let Some(run) = self.run(quotient) else {
            debug_assert!(false, "quotient {quotient} has no run to remove from");
            return Shift { at: quotient, end: quotient };
        };
        let at = run.first + rank as u64;
        debug_assert!(at <= run.last, "rank {rank} is beyond the run of quotient {quotient}");
        let end = self.end_of_displaced(quotient, run.last);
        let (home, in_block) = self.shape.split(quotient);
        if run.first == run.last {
            let mut meta = self.meta(home);
            meta.occupieds &= !(1 << in_block);
            self.set_meta(home, meta);
        } else if at == run.last {
            self.set_runend(at - 1, true);
        }
        self.shift_down(at, end);
        // What stood in `at + 1..=end` moved down: every block that starts there is reached by one slot less.
        let reached = self.shape.split(end).0;
        for block in home + 1..=reached {
            let mut meta = self.meta(block);
            meta.offset = if meta.offset == OFFSET_SATURATED {
                let begin = self.end_of_runs(block - 1, self.begin(block - 1));
                begin.saturating_sub(self.first_slot(block)).min(OFFSET_SATURATED.into()) as u32
            } else {
                meta.offset - 1
            };
            self.set_meta(block, meta);
        }
        self.len -= 1;
        Shift { at, end }
    }

    /// The last slot of the runs behind `last` that stand away from home, and so move when a gap opens there.
    fn end_of_displaced(&self, quotient: u64, mut last: u64) -> u64 {
        let mut home = quotient;
        while let Some(next) = self.next_occupied(home + 1, last) {
            last = self.select_runend(last + 1, 0);
            home = next;
        }
        last
    }

    /// The first occupied quotient in `from..=to`.
    fn next_occupied(&self, from: u64, to: u64) -> Option<u64> {
        let (mut block, in_block) = self.shape.split(from);
        let mut mask = !low_mask(in_block);
        while block < self.blocks && self.first_slot(block) <= to {
            let occupieds = self.meta(block).occupieds & mask;
            if occupieds != 0 {
                let quotient = self.first_slot(block) + u64::from(occupieds.trailing_zeros());
                return Some(quotient).filter(|&quotient| quotient <= to);
            }
            mask = u64::MAX;
            block += 1;
        }
        None
    }

    /// Moves remainders and runends of `at + 1..=end` one slot down and empties `end`.
    fn shift_down(&mut self, at: u64, end: u64) {
        let (shape, last) = (self.shape, self.shape.slots() - 1);
        let (first_block, first_slot) = shape.split(at);
        let (last_block, last_slot) = shape.split(end);
        for index in first_block..=last_block {
            let from = if index == first_block { first_slot } else { 0 };
            let to = if index == last_block { last_slot } else { last };
            if index > first_block {
                let carried = self.first_slot(index);
                self.set_runend(carried - 1, self.is_runend(carried));
                self.set_remainder(carried - 1, self.remainder(carried));
            }
            let block = self.block_mut(index);
            let mut meta = block::meta(shape, block);
            let moved = meta.runends & low_mask(to + 1) & !low_mask(from + 1);
            meta.runends = meta.runends & !(low_mask(to + 1) & !low_mask(from)) | moved >> 1;
            block::set_meta(shape, block, meta);
            block::shift_down(shape, block, from, to);
        }
        self.set_remainder(end, 0);
    }

    fn is_runend(&self, slot: u64) -> bool {
        let (block, slot) = self.shape.split(slot);
        self.meta(block).runends >> slot & 1 == 1
    }

    fn set_runend(&mut self, slot: u64, value: bool) {
        let (block, slot) = self.shape.split(slot);
        let mut meta = self.meta(block);
        meta.runends = meta.runends & !(1 << slot) | u64::from(value) << slot;
        self.set_meta(block, meta);
    }
}

#[cfg(target_arch = "x86_64")]
mod bmi2 {
    use super::{LocalShift, Shape, insert_local};
    use crate::bits::select_bmi2;

    #[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
    pub(super) fn insert<S: Shape>(
        shape: S,
        block: &mut [u64],
        quotient: u32,
        remainder: u64,
    ) -> Option<LocalShift> {
        insert_local(shape, block, quotient, remainder, |word, k| select_bmi2(word, k))
    }
}
