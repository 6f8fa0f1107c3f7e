//! Putting an item in.
//!
//! An insertion that finds a free slot in its own block works on the block's metadata in registers and writes
//! them back once; one that does not shifts block by block.

use crate::bits::{AlignedWords, low_mask};
use crate::{BuildError, FullError};

use super::block::{self, Meta, OFFSET_SATURATED};
use super::geometry::Shape;
use super::machine::{Machine, Pair, Slots};
use super::table::{Shift, Table};

/// The slots of a block that an insertion shifts.
#[derive(Debug, Clone, Copy)]
struct LocalShift {
    at: u32,
    end: u32,
}

/// What became of an insertion that only had to be agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// It was not.
    No,
    /// It was, and these slots have moved.
    Inserted(Shift),
}

/// The memory of a table with a longer tail.
#[derive(Debug)]
pub(crate) struct LongerTail {
    words: AlignedWords,
}

/// What a block has for an insertion, if it can be made there.
#[derive(Debug, Clone, Copy)]
struct Room {
    gap: LocalShift,
    /// The slots of the quotient's run.
    run: Slots,
}

/// Where the block's `quotient`-th quotient gets a new item, and the first free slot from there on; `None` if
/// either is not in this block.
#[inline(always)]
fn room<S: Shape, M: Machine>(
    shape: S,
    machine: M,
    block: &[u64],
    meta: Meta,
    quotient: u32,
) -> Option<Room> {
    // The border where the quotient's run begins or would begin, and the one behind it.
    let Pair { first, next, span, position } =
        machine.select_pair(meta.borders(), meta.runs_below(quotient), 1);
    let occupied = meta.is_occupied(quotient);
    // Behind all runs up to this quotient's; 64 if that is not in this block.
    let behind = if occupied { next } else { first }.trailing_zeros();
    let at = behind.max(quotient);
    let end = machine.first_free(shape, block, meta, at)?;
    let run = Slots {
        mask: if occupied { span & u64::MAX << quotient } else { 0 },
        end: behind,
        count: if occupied { behind.saturating_sub(position.max(quotient)) } else { 0 },
    };
    Some(Room { gap: LocalShift { at, end }, run })
}

/// Whether one of these slots has this remainder.
#[inline(always)]
fn holds<S: Shape, M: Machine>(shape: S, machine: M, block: &[u64], run: Slots, remainder: u64) -> bool {
    machine.holds::<S, 1>(shape, block, remainder << (64 - shape.remainder_bits()), run)
}

/// Inserts within one block where there is a gap for it.
#[inline(always)]
fn open_gap<S: Shape, M: Machine>(
    shape: S,
    machine: M,
    block: &mut [u64],
    (mut meta, quotient): (Meta, u32),
    LocalShift { at, end }: LocalShift,
    remainder: u64,
) {
    let moved = meta.runends & low_mask(end) & !low_mask(at);
    // A run that was there already has a new last item: the old one, right before `at`, is its end no more.
    let old_end = (meta.occupieds >> quotient & 1) << at >> 1;
    meta.runends = (meta.runends ^ moved ^ old_end) | moved << 1 | 1 << at;
    meta.occupieds |= 1 << quotient;
    machine.open(shape, block, meta, at, end, remainder);
}

impl Table {
    /// [`insert`](Table::insert) on this machine, if there is room in the quotient's own block; else nothing changes.
    /// With `ASK`, says as well whether the quotient had this remainder already. `shape` must be the table's own.
    #[inline(always)]
    pub(super) fn insert_in_block<S: Shape, M: Machine, const ASK: bool>(
        &mut self,
        shape: S,
        machine: M,
        quotient: u64,
        remainder: u64,
    ) -> Option<(Shift, bool)> {
        let (index, in_block) = shape.split(quotient);
        let block = shape.block_mut(&mut self.words, index);
        let meta = block::meta(shape, block);
        let Room { gap, run } = room(shape, machine, block, meta, in_block)?;
        let known = ASK && holds(shape, machine, block, run, remainder);
        open_gap(shape, machine, block, (meta, in_block), gap, remainder);
        self.len += 1;
        let first = index as u64 * u64::from(shape.slots());
        Some((Shift { at: first + u64::from(gap.at), end: first + u64::from(gap.end) }, known))
    }

    /// [`insert_fresh`](Table::insert_fresh) on this machine, or with `FLAGS`
    /// [`insert_unflagged`](Table::insert_unflagged). `shape` must be the table's own.
    #[inline(always)]
    pub(super) fn insert_fresh_in_block<S: Shape, M: Machine, const FLAGS: bool>(
        &mut self,
        shape: S,
        machine: M,
        quotient: u64,
        remainder: u64,
        agree: &mut dyn FnMut() -> bool,
    ) -> Option<Agreed> {
        let (index, in_block) = shape.split(quotient);
        let block = shape.block_mut(&mut self.words, index);
        let meta = block::meta(shape, block);
        let Room { gap, run } = room(shape, machine, block, meta, in_block)?;
        let known = holds(shape, machine, block, run, remainder);
        let coded = if FLAGS {
            block::flag(shape, block, in_block) | (block::marks(shape, block) != 0)
        } else {
            block::read(block, shape.code_at(), shape.code_bits()) != 0
        };
        if known | coded {
            return None;
        }
        if !agree() {
            return Some(Agreed::No);
        }
        open_gap(shape, machine, block, (meta, in_block), gap, remainder);
        self.len += 1;
        let first = index as u64 * u64::from(shape.slots());
        Some(Agreed::Inserted(Shift { at: first + u64::from(gap.at), end: first + u64::from(gap.end) }))
    }

    /// [`insert`](Table::insert) on this machine, whichever blocks have to be shifted.
    #[inline(always)]
    pub(super) fn insert_beyond<S: Shape, M: Machine>(
        &mut self,
        shape: S,
        machine: M,
        quotient: u64,
        remainder: u64,
    ) -> Result<Shift, FullError> {
        let gap = self.view(shape, machine).gap(quotient);
        if gap.end >= self.physical_slots() {
            self.extend_tail(gap.end)?;
        }
        self.open_beyond(shape, machine, quotient, remainder, gap);
        Ok(gap)
    }

    /// [`insert_at`](Table::insert_at) on this machine. `shape` must be the table's own.
    #[inline(always)]
    pub(super) fn open_beyond<S: Shape, M: Machine>(
        &mut self,
        shape: S,
        machine: M,
        quotient: u64,
        remainder: u64,
        Shift { at, end }: Shift,
    ) {
        let (home, in_home) = shape.split(quotient);
        let (first, in_first) = shape.split(at);
        let (last, in_last) = shape.split(end);
        if self.occupy(home, in_home) {
            self.set_runend(at - 1, false);
        }
        // Blocks between home and the new item are only reached by one slot more.
        for index in home + 1..first {
            let block = shape.block_mut(&mut self.words, index);
            let offset = block::offset(block);
            block::set_offset(block, offset + 1);
        }
        // From there on each block hands its last item to the next.
        let (mut incoming, mut incoming_end) = (remainder, 1);
        let mut from = in_first;
        for index in first..=last {
            let block = shape.block_mut(&mut self.words, index);
            let to = if index == last { in_last } else { shape.slots() - 1 };
            let mut meta = block::meta(shape, block);
            let outgoing = block::remainder(shape, block, to);
            let outgoing_end = meta.runends >> to & 1;
            let moved = meta.runends & low_mask(to) & !low_mask(from);
            meta.runends =
                meta.runends & !(low_mask(to + 1) & !low_mask(from)) | moved << 1 | incoming_end << from;
            meta.offset = (meta.offset + u32::from(index > home)).min(OFFSET_SATURATED);
            machine.open(shape, block, meta, from, to, incoming);
            (incoming, incoming_end, from) = (outgoing, outgoing_end, 0);
        }
        self.len += 1;
    }

    /// Marks a block's `quotient`-th quotient as occupied, and says whether it was.
    #[inline(always)]
    fn occupy(&mut self, block: usize, quotient: u32) -> bool {
        let mut meta = self.meta(block);
        let occupied = meta.is_occupied(quotient);
        meta.occupieds |= 1 << quotient;
        self.set_meta(block, meta);
        occupied
    }

    /// The memory of a tail that is long enough for `slot`; `None` if it is so already.
    pub(crate) fn longer_tail(&self, slot: u64) -> Result<Option<LongerTail>, BuildError> {
        if slot < self.physical_slots() {
            return Ok(None);
        }
        // A tail grows by one run that is pushed out; double its length, so that this stays rare.
        let homes = self.shape.split(self.slots - 1).0 + 1;
        let blocks = (self.shape.split(slot).0 + 1).max(2 * self.blocks - homes);
        let words = blocks * self.shape.words();
        match self.words.resized(words) {
            Some(words) => Ok(Some(LongerTail { words })),
            None => Err(BuildError::OutOfMemory { bytes: words * 8 }),
        }
    }

    /// Goes on in the memory that [`longer_tail`](Self::longer_tail) made; the table must not have changed since.
    pub(crate) fn set_tail(&mut self, tail: LongerTail) {
        let first_new = self.blocks;
        self.adopt(tail);
        // A run may have ended right before the first new block, or reach over it from far back; in either case
        // its offset follows from the blocks before it.
        for block in first_new..self.blocks {
            let begin = self.end_of_runs(block - 1).max(self.first_slot(block));
            let offset = (begin - self.first_slot(block)).min(OFFSET_SATURATED.into()) as u32;
            self.set_meta(block, Meta { offset, occupieds: 0, runends: 0 });
        }
    }

    fn adopt(&mut self, tail: LongerTail) {
        self.blocks = tail.words.len() / self.shape.words();
        self.words = tail.words;
    }

    /// Makes the tail long enough for `slot`; the offsets of its new blocks are those of an empty table.
    pub(super) fn reserve_slot(&mut self, slot: u64) -> Result<(), BuildError> {
        if let Some(tail) = self.longer_tail(slot)? {
            self.adopt(tail);
        }
        Ok(())
    }

    /// Makes the tail long enough for `slot`. Where no item is inserted after that, nothing has changed but memory.
    pub(crate) fn extend_tail(&mut self, slot: u64) -> Result<(), FullError> {
        let tail = self.longer_tail(slot).map_err(|_| FullError { len: self.len, capacity: self.len })?;
        tail.into_iter().for_each(|tail| self.set_tail(tail));
        Ok(())
    }

    pub(super) fn is_runend(&self, slot: u64) -> bool {
        let (block, slot) = self.shape.split(slot);
        self.meta(block).runends >> slot & 1 == 1
    }

    pub(super) fn set_runend(&mut self, slot: u64, value: bool) {
        let (block, slot) = self.shape.split(slot);
        let mut meta = self.meta(block);
        meta.runends = meta.runends & !(1 << slot) | u64::from(value) << slot;
        self.set_meta(block, meta);
    }
}
