//! Whole tables from keys in any order: sorted by place first, then written block by block.
//!
//! 1. Keys are **scattered** into buckets by the block of their quotient. A bucket's part of the table fits into a
//!    core's cache.
//! 2. A bucket is **sorted** by quotient, by counting. Keys of one quotient keep their order.
//! 3. Its blocks are **filled** from the first to the last. All that a bucket has to know of those before it is where
//!    their items end; what it pushes over its own end is written down and put there when all are filled.
//!
//! Where a bucket's items end is max(`start` + items, `own`), for items that would have to begin at `start` and end at
//! `own` if nothing stood before them. So buckets can be sorted and filled on several cores.

use crate::bits::AlignedWords;
use crate::scatter::{self, Hashed, Partition, Scattered};
use crate::{BuildError, parallel};

use super::block::{self, Meta, OFFSET_SATURATED};
use super::geometry::{ByteLine, CODED_SLOTS, Geometry, PLAIN_SLOTS, Shape};
use super::table::Table;

/// The fewest blocks of a bucket: what is made of its keys stays in the first caches, and in memory that the allocator
/// has at hand.
const FEWEST_BLOCKS: usize = 32;

/// The most buckets: so many streams can be written at once.
const MOST_BUCKETS: usize = 1024;

/// How the blocks of a table are cut into buckets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    shape: Geometry,
    slots: u64,
    /// Blocks of a bucket: a power of two, whose logarithm this is.
    log2_blocks: u32,
    buckets: usize,
}

impl Cut {
    fn of(table: &Table) -> Self {
        let blocks = table.blocks().div_ceil(MOST_BUCKETS).next_power_of_two().max(FEWEST_BLOCKS);
        let log2_blocks = blocks.trailing_zeros();
        let buckets = table.blocks().div_ceil(blocks);
        Self { shape: table.shape, slots: table.slots, log2_blocks, buckets }
    }

    #[inline(always)]
    fn product(self, hash: u64) -> u128 {
        u128::from(hash) * u128::from(self.slots)
    }

    #[inline(always)]
    fn quotient(self, hash: u64) -> u64 {
        (self.product(hash) >> 64) as u64
    }

    /// The slots of a bucket's blocks.
    #[inline(always)]
    fn slots_per_bucket(self) -> u64 {
        u64::from(self.shape.slots()) << self.log2_blocks
    }
}

impl Partition for Cut {
    fn buckets(self) -> usize {
        self.buckets
    }

    #[inline(always)]
    fn bucket(self, hash: u64) -> usize {
        self.shape.split(self.quotient(hash)).0 >> self.log2_blocks
    }

    fn places(self, bucket: usize) -> usize {
        let first = bucket as u64 * self.slots_per_bucket();
        self.slots.saturating_sub(first).min(self.slots_per_bucket()) as usize
    }

    #[inline(always)]
    fn place(self, hash: u64, bucket: usize) -> usize {
        (self.quotient(hash) - bucket as u64 * self.slots_per_bucket()) as usize
    }
}

/// So many keys at once are worth scattering.
pub(super) const PAYS_FROM: usize = 1 << 12;

/// How many keys ahead memory is fetched.
pub(super) const AHEAD: usize = 16;

/// The hashes of all numbers below `count` in the order of their buckets.
pub(super) fn by_bucket(
    table: &Table,
    count: usize,
    hash: impl Fn(usize) -> u64 + Sync,
) -> Result<AlignedWords, BuildError> {
    scatter::by_bucket(Cut::of(table), count, hash)
}

/// What a bucket has pushed over its end.
struct Spilled {
    slot: u64,
    remainder: u64,
    is_end: bool,
}

/// The blocks of one bucket, being filled.
struct Blocks<'w, S> {
    shape: S,
    words: &'w mut [u64],
    first: usize,
    metas: Vec<Meta>,
    /// The first block whose offset is not known yet.
    open: usize,
    spilled: Vec<Spilled>,
}

impl<'w, S: Shape> Blocks<'w, S> {
    fn new(shape: S, words: &'w mut [u64], first: usize) -> Self {
        let empty = Meta { offset: 0, occupieds: 0, runends: 0 };
        let metas = vec![empty; words.len() / shape.words()];
        Self { shape, words, first, metas, open: 0, spilled: Vec::new() }
    }

    /// No quotient below this block is to come: where the items stand so far says the offsets up to it.
    fn open(&mut self, block: usize, free: u64) {
        let slots = u64::from(self.shape.slots());
        while self.open <= block && self.open < self.metas.len() {
            let first_slot = (self.first + self.open) as u64 * slots;
            let offset = free.saturating_sub(first_slot).min(OFFSET_SATURATED.into());
            self.metas[self.open].offset = offset as u32;
            self.open += 1;
        }
    }

    /// Puts an item into a free slot.
    #[inline(always)]
    fn put(&mut self, slot: u64, remainder: u64, is_end: bool) {
        let (block, in_block) = self.shape.split(slot);
        match self.metas.get_mut(block - self.first) {
            Some(meta) => {
                meta.runends |= u64::from(is_end) << in_block;
                let block = self.shape.block_mut(self.words, block - self.first);
                block::set_remainder(self.shape, block, in_block, remainder);
            }
            None => self.spilled.push(Spilled { slot, remainder, is_end }),
        }
    }

    /// Fills the blocks, from slot `free` on where that is behind a home.
    fn fill<T: Hashed>(mut self, cut: Cut, items: &[T], mut free: u64) -> Vec<Spilled> {
        let mut left = items.iter().map(|item| cut.product(item.hash())).peekable();
        while let Some(product) = left.next() {
            let quotient = (product >> 64) as u64;
            let is_end = left.peek().is_none_or(|next| (next >> 64) as u64 != quotient);
            let (block, in_block) = self.shape.split(quotient);
            self.open(block - self.first, free);
            self.metas[block - self.first].occupieds |= 1 << in_block;
            let slot = free.max(quotient);
            self.put(slot, self.shape.remainder_of(product as u64), is_end);
            free = slot + 1;
        }
        self.open(self.metas.len(), free);
        for (block, &meta) in self.metas.iter().enumerate() {
            block::set_meta(self.shape, self.shape.block_mut(self.words, block), meta);
        }
        self.spilled
    }
}

/// Fills the blocks of a bucket from slot `free` on: with the shape as a constant where that is usual.
fn fill_blocks<T: Hashed>(
    cut: Cut,
    words: &mut [u64],
    bucket: usize,
    items: &[T],
    free: u64,
) -> Vec<Spilled> {
    let first = bucket << cut.log2_blocks;
    match (cut.shape.remainder_bits(), cut.shape.slots(), cut.shape.words()) {
        (8, PLAIN_SLOTS, 8) => Blocks::new(ByteLine::<PLAIN_SLOTS>, words, first).fill(cut, items, free),
        (8, CODED_SLOTS, 8) => Blocks::new(ByteLine::<CODED_SLOTS>, words, first).fill(cut, items, free),
        _ => Blocks::new(cut.shape, words, first).fill(cut, items, free),
    }
}

/// Where the items of a bucket end if nothing stands before them.
fn own_end<T: Hashed>(cut: Cut, items: &[T]) -> u64 {
    items.iter().fold(0, |free: u64, item| free.max(cut.quotient(item.hash())) + 1)
}

/// A bucket that was sorted.
struct Sorted<T, P> {
    items: Vec<T>,
    own_end: u64,
    prepared: P,
}

/// Fills an empty table with the items of all numbers below `count`.
///
/// `prepare` gets the items of every bucket in order, may take some out, and makes something of them, on any core.
/// `visit` gets what it made, and the items, in order, one after the other.
pub(crate) fn fill<T: Hashed, P: Send, E: From<BuildError>>(
    mut table: Table,
    count: usize,
    item: impl Fn(usize) -> T + Sync,
    prepare: impl Fn(&mut Vec<T>) -> P + Sync,
    mut visit: impl FnMut(P, &[T]) -> Result<(), E>,
) -> Result<Table, E> {
    debug_assert_eq!(table.len(), 0);
    let (cut, shape, threads) = (Cut::of(&table), table.shape, parallel::threads_for(count));
    let scattered = Scattered::new(cut, count, item)?;
    let (mut free, mut len, mut spilled) = (0, 0, Vec::new());
    let chunk = shape.words() << cut.log2_blocks;
    let mut blocks: Vec<(usize, &mut [u64])> = table.words.chunks_mut(chunk).enumerate().collect();
    // A few buckets for every thread at a time, so that no more memory is in use than these take; one by one without
    // others to share with.
    let at_once = if threads == 1 { 1 } else { 16 * threads };
    blocks.reverse();
    while !blocks.is_empty() {
        let wave: Vec<_> = blocks.drain(blocks.len().saturating_sub(at_once)..).rev().collect();
        let buckets = wave.iter().map(|&(bucket, _)| bucket).collect();
        let ready = parallel::map(buckets, |bucket| {
            let mut items = scattered.sorted(cut, bucket);
            let prepared = prepare(&mut items);
            Sorted { own_end: own_end(cut, &items), items, prepared }
        });
        let mut work = Vec::with_capacity(wave.len());
        for ((bucket, words), Sorted { items, own_end, prepared }) in wave.into_iter().zip(ready) {
            visit(prepared, &items)?;
            let start = free;
            (free, len) = ((free + items.len() as u64).max(own_end), len + items.len());
            work.push((bucket, words, items, start));
        }
        let filled = parallel::map(work, |(bucket, words, items, start)| {
            fill_blocks(cut, words, bucket, &items, start)
        });
        spilled.extend(filled.into_iter().flatten());
    }
    table.take_spilled(&spilled, free)?;
    table.len = len;
    Ok(table)
}

impl Table {
    /// Puts what buckets have pushed over their ends where it belongs. `free` is behind the last item.
    fn take_spilled(&mut self, spilled: &[Spilled], free: u64) -> Result<(), BuildError> {
        let (old, last) = (self.blocks(), free.saturating_sub(1));
        self.reserve_slot(last)?;
        for block in old..self.blocks() {
            let offset = free.saturating_sub(self.first_slot(block)).min(OFFSET_SATURATED.into());
            self.set_meta(block, Meta { offset: offset as u32, occupieds: 0, runends: 0 });
        }
        for item in spilled {
            self.set_remainder(item.slot, item.remainder);
            self.set_runend(item.slot, item.is_end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a table that differs from the one that insertion makes.
    use super::*;
    use crate::testing::Random;

    /// What insertion in order makes of the same hashes.
    fn inserted(slots: u64, bits: u32, coded: bool, hashes: &[u64]) -> Table {
        let mut table = Table::new(slots, bits, coded).unwrap();
        for &hash in hashes {
            let place = table.locate(hash);
            table.insert(place.quotient, table.remainder_of(place.fraction)).unwrap();
        }
        table
    }

    fn agrees(slots: u64, bits: u32, coded: bool, hashes: &[u64]) {
        let table = Table::new(slots, bits, coded).unwrap();
        let none = |_: &mut Vec<u64>| ();
        let filled =
            fill(table, hashes.len(), |number| hashes[number], none, |(), _| Ok::<_, BuildError>(()));
        let (filled, expected) = (filled.unwrap(), inserted(slots, bits, coded, hashes));
        filled.verify().unwrap();
        assert!(filled.iter().eq(expected.iter()), "{} hashes in {slots} slots of {bits} bits", hashes.len());
    }

    #[test]
    fn tables_are_those_that_insertion_makes() {
        let mut random = Random::new(1);
        for round in 0..300_u64 {
            let slots = 1 + random.below([3, 60, 1_000, 70_000][round as usize % 4]);
            let bits = 2 + random.below(31).min(62 - u64::from(slots.ilog2())) as u32;
            let load = 1 + random.below(110);
            let hashes: Vec<u64> = (0..slots * load / 100).map(|_| random.next()).collect();
            agrees(slots, bits, round % 2 == 0, &hashes);
        }
    }

    #[test]
    fn crowds_are_pushed_over_the_ends_of_buckets_and_of_the_table() {
        let mut random = Random::new(2);
        for (slots, crowd) in [(30_000, 10_000), (60_000, 45_000), (100, 3_000), (26_000, 1)] {
            for place in [0, 1 << 63, 0x6fff_ffff_ffff_ffff, u64::MAX] {
                let near = |_| place ^ random.below(1 << 42);
                let hashes: Vec<u64> = (0..crowd).map(near).collect();
                agrees(slots, 8, false, &hashes);
                agrees(slots, 8, true, &hashes);
            }
        }
    }
}
