//! The rank-and-select quotient table: a compact multiset of (quotient, remainder).
//!
//! A table of m slots stores for every item a remainder of r bits; where the remainder stands tells its
//! quotient. The items of one quotient form a **run**, runs stand in the order of their quotients, and a run
//! starts at the slot with the number of its quotient (its *home*) or, if that is taken, right behind the run
//! before it. Two bits a slot are enough to find a run: *occupied* (at the quotient: it has a run) and *runend*
//! (at the slot: a run ends here); the i-th occupied quotient owns the i-th runend. An **offset** per block says
//! where the block's own runs begin, so that counting starts there.
//!
//! Runs grow at their end.
//!
//! Nothing wraps around. Behind the m slots that are homes lies a *tail* for the runs that are pushed beyond the
//! end; it takes more blocks when it needs them.
//!
//! This file has the table's fields; its operations are in `dispatch` (which chooses the machine), `runs` and
//! `local_run` (finding), `questions` (asking), `insert`, `remove` and `sorted` (whole tables in one pass).

use crate::bits::{AlignedWords, Isa};
use crate::{BuildError, InvariantError, error::ensure};

use super::block::{self, Meta, OFFSET_SATURATED};
use super::dispatch::{Operations, Query};
use super::geometry::{CodeShare, Geometry, Shape};
use super::machine::Portable;
use super::questions::Probe;
use crate::coding::field::Field;

/// A compact multiset of (quotient, remainder). See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// `blocks` blocks of `shape.words()` words.
    pub(super) words: AlignedWords,
    pub(super) shape: Geometry,
    /// The operations for this shape on this processor.
    pub(super) operations: &'static Operations,
    /// The operation for what is asked: `operations.query(probe)`.
    pub(super) query: Query,
    pub(super) probe: Probe,
    /// m: how many quotients there are. Slots from here on are the tail.
    pub(super) slots: u64,
    /// How many bits of a fraction are worth using, which follows from `slots`.
    fraction_bits: u32,
    /// The bits of all chunks that the [`Probe`] looks for.
    pub(super) chunk_bits: u32,
    /// Blocks in memory: those of the homes, and the tail's.
    pub(super) blocks: usize,
    pub(super) len: usize,
}

/// Where a key belongs: the fixed-point product of its hash and the number of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The integer part: the home slot.
    pub(crate) quotient: u64,
    /// The fraction: its leading bits are the remainder. See [`Table::fraction_bits`].
    pub(crate) fraction: u64,
}

/// The slots of one run, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Run {
    /// How many items the run has.
    pub(crate) fn len(&self) -> usize {
        (self.last - self.first + 1) as usize
    }

    /// The run's slots in order of rank.
    pub(crate) fn slots(&self) -> std::ops::RangeInclusive<u64> {
        self.first..=self.last
    }
}

/// Which slots an insertion or a removal moved.
///
/// After an insertion the new item is in `at`, and what was in `at..end` is in `at + 1..=end` (`end` was free).
/// After a removal the item of `at` is gone, and what was in `at + 1..=end` is in `at..end` (`end` is free).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift {
    pub(crate) at: u64,
    pub(crate) end: u64,
}

/// How large an empty table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableSize {
    pub(crate) blocks: usize,
    pub(crate) slots_per_block: usize,
    /// All memory.
    pub(crate) bits: usize,
}

impl Table {
    /// An empty table of `slots` quotients and remainders of `remainder_bits` bits (2 to 32), with a code per
    /// block or without.
    pub(crate) fn new(
        slots: u64,
        remainder_bits: u32,
        code: impl Into<CodeShare>,
    ) -> Result<Self, BuildError> {
        debug_assert!(Geometry::REMAINDER_BITS.contains(&remainder_bits));
        Self::of_shape(slots, Geometry::new(remainder_bits, code.into()))
    }

    /// An empty table of the same shape, with another number of slots.
    pub(crate) fn like(&self, slots: u64) -> Result<Self, BuildError> {
        Self::of_shape(slots, self.shape)
    }

    fn of_shape(slots: u64, shape: Geometry) -> Result<Self, BuildError> {
        debug_assert!((1..=Geometry::MAX_SLOTS).contains(&slots));
        let words = blocks_for(slots, shape) * shape.words();
        let Some(words) = AlignedWords::zeroed(words) else {
            return Err(BuildError::OutOfMemory { bytes: words * 8 });
        };
        Ok(Self::from_words(words, shape, slots, 0))
    }

    /// The table of `slots` quotients and `len` items that these blocks hold: at least as
    /// many as an empty one has.
    pub(super) fn from_words(words: AlignedWords, shape: Geometry, slots: u64, len: usize) -> Self {
        let operations = Operations::choose(Isa::active(), shape);
        let (probe, fraction_bits) = (Probe::Matching, fraction_bits(slots));
        let chunk_bits = probe.chunks() * shape.remainder_bits();
        let (query, blocks) = (operations.query(probe), words.len() / shape.words());
        Self { words, shape, operations, query, probe, slots, fraction_bits, chunk_bits, blocks, len }
    }

    /// How large [`new`](Self::new) makes a table.
    pub(crate) fn size(slots: u64, remainder_bits: u32, code: impl Into<CodeShare>) -> TableSize {
        let shape = Geometry::new(remainder_bits, code.into());
        let blocks = blocks_for(slots, shape);
        let bits = blocks.saturating_mul(shape.words() * 64);
        TableSize { blocks, slots_per_block: shape.slots() as usize, bits }
    }

    /// The slots of a block of a table with codes.
    pub(crate) fn coded_slots_per_block(remainder_bits: u32) -> u32 {
        Geometry::coded(remainder_bits).slots()
    }

    /// The same table worked on with another instruction set, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn with_isa(mut self, isa: Isa) -> Self {
        self.operations = Operations::choose(isa, self.shape);
        self.set_probe(self.probe);
        self
    }

    /// m, the number of quotients.
    #[inline]
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    /// All slots in memory, the tail's included: the numbers that a slot can have are below this.
    #[inline]
    pub(crate) fn physical_slots(&self) -> u64 {
        self.blocks as u64 * u64::from(self.shape.slots())
    }

    /// How many items are stored.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// r, the width of a remainder.
    #[inline]
    pub(crate) fn remainder_bits(&self) -> u32 {
        self.shape.remainder_bits()
    }

    /// The memory of the table, in bits.
    pub(crate) fn memory_bits(&self) -> usize {
        self.words.len() * 64
    }

    /// How many bits of a [`Place`]'s fraction are worth using: those below were zero in the hash already.
    #[inline]
    pub(crate) fn fraction_bits(&self) -> u32 {
        self.fraction_bits
    }

    /// Where a key with these hash bits belongs.
    #[inline(always)]
    pub(crate) fn locate(&self, hash: u64) -> Place {
        let product = u128::from(hash) * u128::from(self.slots);
        Place { quotient: (product >> 64) as u64, fraction: product as u64 }
    }

    /// The same for tables whose slots hold chunks of the key's [string](crate::hash_string): where the fraction has
    /// fewer bits than queries look at, it goes on with the other half of the hash.
    #[inline(always)]
    pub(crate) fn locate_string(&self, hash: u64, more: u64) -> Place {
        let Place { quotient, fraction } = self.locate(hash);
        // The same for all queries of a table, and nearly always so: the other half need not be computed then.
        if self.fraction_bits >= self.chunk_bits {
            return Place { quotient, fraction };
        }
        // In two steps, because there may be nothing to add.
        let more = more >> 1 >> (self.fraction_bits - 1);
        Place { quotient, fraction: fraction & !(u64::MAX >> 1 >> (self.fraction_bits - 1)) | more }
    }

    /// The remainder of a fraction: its leading r bits.
    #[inline(always)]
    pub(crate) fn remainder_of(&self, fraction: u64) -> u64 {
        self.shape.remainder_of(fraction)
    }

    /// Asks the processor to fetch the block of a quotient.
    #[inline(always)]
    pub(crate) fn prefetch(&self, quotient: u64) {
        let (block, _) = self.shape.split(quotient);
        crate::bits::prefetch(self.words.as_ptr().wrapping_add(block * self.shape.words()));
    }

    /// The slots of a block.
    #[inline]
    pub(crate) fn slots_per_block(&self) -> u32 {
        self.shape.slots()
    }

    /// How many blocks there are, the tail's included.
    #[inline]
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// The block of a slot, and the slot's number in it.
    #[inline]
    pub(crate) fn block_of(&self, slot: u64) -> (usize, u32) {
        self.shape.split(slot)
    }

    /// The width of a block's code; 0 for a table without codes.
    #[inline]
    pub(crate) fn code_bits(&self) -> u32 {
        self.shape.code_bits()
    }

    /// How much code it was built with.
    pub(crate) fn code_share(&self) -> CodeShare {
        self.shape.code_share()
    }

    /// How the codes of filters with values are cut.
    pub(crate) fn field(&self) -> Field {
        Field::new(self.shape.code_at(), self.shape.code_bits())
    }

    /// The code of a block: 0 until it is set. The table never moves or changes it.
    #[inline]
    pub(crate) fn code(&self, block: usize) -> u64 {
        block::read(self.block(block), self.shape.code_at(), self.shape.code_bits())
    }

    /// Sets the code of a block.
    #[inline]
    pub(crate) fn set_code(&mut self, block: usize, code: u64) {
        let (at, bits) = (self.shape.code_at(), self.shape.code_bits());
        block::write(self.block_mut(block), at, bits, code);
    }

    /// The flag of a quotient: a bit of its block's code, in tables whose codes are used so.
    #[inline]
    pub(crate) fn flag(&self, quotient: u64) -> bool {
        self.view(self.shape, Portable).flag(quotient)
    }

    /// Sets the flag of a quotient, and of those that [share](Self::sharing) it.
    pub(crate) fn set_flag(&mut self, quotient: u64, value: bool) {
        let ((block, in_block), shape) = (self.shape.split(quotient), self.shape);
        let at = shape.code_at() + in_block.min(shape.flags() - 1);
        block::write(self.block_mut(block), at, 1, value.into());
    }

    /// The marks of a block: a bit for every [so many](super::geometry::MARKED) slots behind the flags, in tables whose
    /// codes are used so.
    #[inline]
    pub(crate) fn marks(&self, block: usize) -> u64 {
        block::marks(self.shape, self.block(block))
    }

    /// Sets the marks of a block: queries that match there are to be asked about.
    pub(crate) fn set_marks(&mut self, block: usize, marks: u64) {
        let (at, len) = (self.shape.code_at() + self.shape.flags(), self.shape.marks());
        block::write(self.block_mut(block), at, len, marks);
    }

    /// The quotients that share the flag of this one, itself included: a block may have fewer flags than
    /// quotients, and the last of them then stands for several.
    pub(crate) fn sharing(&self, quotient: u64) -> std::ops::Range<u64> {
        let (block, in_block) = self.shape.split(quotient);
        let (first, last) = (self.first_slot(block), self.shape.flags() - 1);
        let sharing = if in_block < last { in_block..in_block + 1 } else { last..self.shape.slots() };
        first + u64::from(sharing.start)..(first + u64::from(sharing.end)).min(self.slots)
    }

    /// The remainder in a slot.
    #[inline]
    pub(crate) fn remainder(&self, slot: u64) -> u64 {
        let (block, slot) = self.shape.split(slot);
        block::remainder(self.shape, self.block(block), slot)
    }

    /// Changes the remainder in a slot that is in use.
    #[inline]
    pub(crate) fn set_remainder(&mut self, slot: u64, remainder: u64) {
        let ((block, slot), shape) = (self.shape.split(slot), self.shape);
        block::set_remainder(shape, self.block_mut(block), slot, remainder);
    }

    /// Removes all items and sets all codes to 0.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }

    #[inline(always)]
    pub(super) fn block(&self, block: usize) -> &[u64] {
        let words = self.shape.words();
        &self.words[block * words..][..words]
    }

    #[inline(always)]
    pub(super) fn block_mut(&mut self, block: usize) -> &mut [u64] {
        let words = self.shape.words();
        &mut self.words[block * words..][..words]
    }

    #[inline(always)]
    pub(super) fn meta(&self, block: usize) -> Meta {
        block::meta(self.shape, self.block(block))
    }

    #[inline(always)]
    pub(super) fn set_meta(&mut self, block: usize, meta: Meta) {
        let shape = self.shape;
        block::set_meta(shape, self.block_mut(block), meta);
    }

    /// The first slot of a block.
    #[inline(always)]
    pub(crate) fn first_slot(&self, block: usize) -> u64 {
        block as u64 * u64::from(self.shape.slots())
    }

    /// Checks everything that the other functions rely on. Walks the whole table.
    pub(crate) fn verify(&self) -> Result<(), InvariantError> {
        let mut free = 0; // behind all runs so far
        let mut items = 0;
        for block in 0..self.blocks {
            let meta = self.meta(block);
            let first_slot = self.first_slot(block);
            let offset = free.max(first_slot) - first_slot;
            ensure!(
                u64::from(meta.offset) == offset.min(OFFSET_SATURATED.into()),
                "block {block} has offset {} instead of {offset}",
                meta.offset
            );
            ensure!(
                block::gaps_are_empty(self.shape, self.block(block)),
                "block {block} has bits in its gaps"
            );
            for quotient in (0..self.shape.slots()).filter(|&quotient| meta.is_occupied(quotient)) {
                let home = first_slot + u64::from(quotient);
                ensure!(home < self.slots, "quotient {home} of {} is occupied", self.slots);
                let first = free.max(home);
                self.verify_free(free, first)?;
                free = self.verify_run_end(first)? + 1;
                items += free - first;
            }
        }
        self.verify_free(free, self.physical_slots())?;
        ensure!(items == self.len as u64, "{items} items in the runs, {} counted", self.len);
        Ok(())
    }

    /// The end of the run that starts at `first`, if there is one.
    fn verify_run_end(&self, first: u64) -> Result<u64, InvariantError> {
        let is_end = |&slot: &u64| {
            let (block, slot) = self.shape.split(slot);
            self.meta(block).runends >> slot & 1 == 1
        };
        let end = (first..self.physical_slots()).find(is_end);
        end.ok_or_else(|| InvariantError::new(format!("the run that starts at slot {first} has no end")))
    }

    /// Unused slots have neither runend nor remainder.
    fn verify_free(&self, from: u64, to: u64) -> Result<(), InvariantError> {
        for slot in from..to {
            let (block, in_block) = self.shape.split(slot);
            let clean = self.meta(block).runends >> in_block & 1 == 0 && self.remainder(slot) == 0;
            ensure!(clean, "slot {slot} is in no run but not empty");
        }
        Ok(())
    }
}

/// The blocks of so many homes, and one for the tail.
pub(super) fn blocks_for(slots: u64, shape: Geometry) -> usize {
    shape.split(slots - 1).0 + 2
}

/// The bits of a fraction of a 64-bit hash times `slots` that are worth using.
pub(crate) fn fraction_bits(slots: u64) -> u32 {
    64 - (64 - (slots - 1).leading_zeros())
}
