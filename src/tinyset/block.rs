//! One block: queries, insertions and removals in plain Rust, for blocks of any size anywhere in the words.
//!
//! Every operation reads and writes the bits of its own block and no others.

use std::ops::Range;

use super::geometry::{Geometry, Layout, MAX_BLOCK_WORDS, REMAINDER_BITS};
use crate::bits::{low_mask, string};
use crate::error::{InvariantError, ensure};

/// A block to read. `select` finds the k-th set bit of a word: [`crate::bits::select`] or a faster one.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a, S> {
    geometry: Geometry,
    /// The words that the block lies in.
    words: &'a [u64],
    /// Where the block starts in them.
    base: usize,
    select: S,
}

/// How many items a block holds, and for how many its remainders are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    /// Items that are there.
    pub(crate) actual: usize,
    /// The paper's logical capacity: the most items there ever were since the block was last empty.
    pub(crate) logical: usize,
}

/// The items `start..end` of a chain; both where it would be if it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chain {
    start: usize,
    end: usize,
}

impl<'a, S: Fn(u64, u32) -> u32 + Copy> Block<'a, S> {
    #[inline(always)]
    pub(crate) fn new(geometry: Geometry, words: &'a [u64], base: usize, select: S) -> Self {
        Self { geometry, words, base, select }
    }

    /// Where the array starts in the words.
    #[inline(always)]
    fn array(&self) -> usize {
        self.base + self.geometry.array_start() as usize
    }

    /// Whether `chain` holds an item.
    #[inline(always)]
    fn is_occupied(&self, chain: u32) -> bool {
        let at = self.base + chain as usize;
        self.words[at / 64] >> (at % 64) & 1 == 1
    }

    /// The isLast bit that has `k` isLast bits set before it is the last item of the k-th chain in use. Section
    /// 3.7's two ranks and a scan, with the scan done by one select.
    #[inline(always)]
    fn last_of(&self, k: usize) -> usize {
        // There is one for every set bit of the index; a corrupted block may lack it, and must do no harm.
        string::select_from(self.words, self.array(), k, self.select).unwrap_or(0)
    }

    /// How many items there are: the implicit size counter of section 3.6, and the logical count beside it.
    #[inline(always)]
    pub(crate) fn count(&self) -> Count {
        let chains = string::count_ones(self.words, self.base, self.geometry.chains as usize);
        let actual = if chains == 0 { 0 } else { self.last_of(chains - 1) + 1 };
        if self.geometry.removal() {
            Count { actual, logical: self.geometry.read_counter(self.words, self.base) }
        } else {
            Count { actual, logical: actual }
        }
    }

    #[inline(always)]
    fn chain(&self, chain: u32) -> Chain {
        let before = string::count_ones(self.words, self.base, chain as usize);
        let start = if before == 0 { 0 } else { self.last_of(before - 1) + 1 };
        let end = if self.is_occupied(chain) { self.last_of(before) + 1 } else { start };
        Chain { start, end }
    }

    /// Whether an item of `chain` has this remainder as far as its bits go.
    #[inline(always)]
    pub(crate) fn contains(&self, chain: u32, remainder: u64) -> bool {
        if !self.is_occupied(chain) {
            return false;
        }
        let layout = Layout::new(&self.geometry, self.count().logical);
        let Chain { start, end } = self.chain(chain);
        (start..end).any(|item| self.compare(&layout, item, remainder).is_some())
    }

    /// Whether `item` has this remainder; if so, whether an extra bit of 1 is part of what agrees.
    #[inline(always)]
    fn compare(&self, layout: &Layout, item: usize, remainder: u64) -> Option<bool> {
        let stored = string::read(self.words, self.array() + layout.offset(item));
        let mut counts = low_mask(layout.size(item) as u32);
        let extra = stored & counts & !low_mask(layout.short as u32);
        if self.geometry.removal() {
            // An extra bit of 0 may stand for one that was lost when the item moved: it says nothing.
            counts = low_mask(layout.short as u32) | extra;
        }
        ((stored ^ remainder) & counts == 0).then_some(extra != 0)
    }

    /// The item to remove for this remainder, and its chain.
    ///
    /// Of several that match, one with an extra bit of 1 must go first: it matches this key but may not match
    /// the key of another item whose own extra bit was lost.
    fn find(&self, chain: u32, remainder: u64) -> Option<(usize, Chain)> {
        if !self.is_occupied(chain) {
            return None;
        }
        let layout = Layout::new(&self.geometry, self.count().logical);
        let chain = self.chain(chain);
        let mut matching = None;
        for item in chain.start..chain.end {
            match self.compare(&layout, item, remainder) {
                Some(true) => return Some((item, chain)),
                Some(false) => matching = matching.or(Some((item, chain))),
                None => {}
            }
        }
        matching
    }

    /// The start of an array for `logical` items.
    fn rebuild(&self, count: Count, logical: usize) -> Rebuild<'a> {
        Rebuild {
            old: self.words,
            old_array: self.array(),
            from: Layout::new(&self.geometry, count.logical),
            new: [0; MAX_BLOCK_WORDS],
            to: Layout::new(&self.geometry, logical),
        }
    }

    /// Checks everything that a block promises; returns its count.
    pub(crate) fn verify(&self) -> Result<Count, InvariantError> {
        let (array, array_bits) = (self.array(), self.geometry.array_bits() as usize);
        let chains = string::count_ones(self.words, self.base, self.geometry.chains as usize);
        let count = self.count();
        if chains > 0 {
            let last = string::select_from(self.words, array, chains - 1, self.select);
            ensure!(last.is_some_and(|last| last < count.logical), "{chains} chains, last item {last:?}");
        }
        let Count { actual, logical } = count;
        ensure!(logical <= array_bits, "{logical} items in {array_bits} bits");
        ensure!((actual == 0) == (logical == 0), "{actual} items, cut for {logical}");
        let stray = string::count_ones(self.words, array + actual, logical - actual);
        ensure!(stray == 0, "{stray} isLast bits set behind the last item");
        let layout = Layout::new(&self.geometry, logical);
        for item in 0..logical {
            let hashed = if item < actual { REMAINDER_BITS as usize } else { 0 };
            let (at, size) = (array + layout.offset(item), layout.size(item));
            let stray = string::count_ones(self.words, at + hashed, size.saturating_sub(hashed));
            ensure!(stray == 0, "{stray} bits set in item {item} of {actual} beyond its hash bits");
        }
        let used = if logical == 0 { 0 } else { array_bits };
        let stray = string::count_ones(self.words, array + used, array_bits - used);
        ensure!(stray == 0, "{stray} bits set in an empty block");
        Ok(count)
    }
}

/// What an insertion into a block did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Insertion {
    /// By how much the logical count grew.
    pub(crate) grown: usize,
    /// Whether no item matched before.
    pub(crate) fresh: bool,
}

/// A block to change.
pub(crate) struct BlockMut<'a> {
    geometry: Geometry,
    words: &'a mut [u64],
    base: usize,
}

impl<'a> BlockMut<'a> {
    pub(crate) fn new(geometry: Geometry, words: &'a mut [u64], base: usize) -> Self {
        Self { geometry, words, base }
    }

    pub(crate) fn block(&self) -> Block<'_, impl Fn(u64, u32) -> u32 + Copy> {
        Block::new(self.geometry, self.words, self.base, crate::bits::select)
    }

    /// Inserts an item; `None`, and nothing changes, without a bit for it.
    pub(crate) fn insert(&mut self, chain: u32, remainder: u64) -> Option<Insertion> {
        let block = self.block();
        let count = block.count();
        let at = block.chain(chain).start;
        let grown = usize::from(count.actual == count.logical);
        let logical = count.logical + grown;
        if logical > self.geometry.array_bits() as usize {
            return None;
        }
        let fresh = !block.contains(chain, remainder);
        // The newcomer is the first of its chain, so it is the last only if the chain was empty.
        let last = u64::from(!block.is_occupied(chain));
        let mut new = block.rebuild(count, logical);
        new.copy_lasts(0..at, 0);
        new.copy_remainders(0..at, 0);
        new.put(at, last, remainder);
        new.copy_lasts(at..logical - 1, at + 1);
        new.copy_remainders(at..count.actual, at + 1);
        let array = new.finish();
        self.replace_array(&array, logical);
        string::write(self.words, self.base + chain as usize, 1, 1);
        Some(Insertion { grown, fresh })
    }

    /// Removes an item that matches; `None` if there is none. Says by how much the logical count fell.
    pub(crate) fn remove(&mut self, chain: u32, remainder: u64) -> Option<usize> {
        let block = self.block();
        let (item, Chain { start, end }) = block.find(chain, remainder)?;
        let count = block.count();
        let mut new = block.rebuild(count, count.logical);
        // The isLast bits of a chain are 0…01: whichever item goes, the first of them goes with it.
        new.copy_lasts(0..start, 0);
        new.copy_lasts(start + 1..count.logical, start);
        new.copy_remainders(0..item, 0);
        new.copy_remainders(item + 1..count.actual, item);
        let array = new.finish();
        // In an empty block nobody's remainder is cut short any more.
        let logical = if count.actual > 1 { count.logical } else { 0 };
        self.replace_array(&array, logical);
        if end - start == 1 {
            string::write(self.words, self.base + chain as usize, 1, 0);
        }
        Some(count.logical - logical)
    }

    fn replace_array(&mut self, array: &[u64], logical: usize) {
        let start = self.base + self.geometry.array_start() as usize;
        string::copy(array, 0, self.words, start, self.geometry.array_bits() as usize);
        if self.geometry.removal() {
            self.geometry.write_counter(self.words, self.base, logical);
        }
    }
}

/// The array of a block, built again from the old one for another number of items.
struct Rebuild<'a> {
    /// The old block's words, where its array starts in them, and its layout.
    old: &'a [u64],
    old_array: usize,
    from: Layout,
    /// The new array from bit 0 on, and its layout.
    new: [u64; MAX_BLOCK_WORDS],
    to: Layout,
}

impl Rebuild<'_> {
    /// Copies the isLast bits of the given old items to the new places from `at` on.
    fn copy_lasts(&mut self, items: Range<usize>, at: usize) {
        string::copy(self.old, self.old_array + items.start, &mut self.new, at, items.len());
    }

    /// Copies the remainders of the given old items to the new places from `at` on: those that keep their size in
    /// one go, the others one by one and as far as their bits reach.
    fn copy_remainders(&mut self, items: Range<usize>, at: usize) {
        let mut item = items.start;
        while item < items.end {
            let target = item - items.start + at;
            let run = self.from.alike(item).min(self.to.alike(target)).min(items.end - item);
            let (size, new_size) = (self.from.size(item), self.to.size(target));
            let (old, new) = (self.old_array + self.from.offset(item), self.to.offset(target));
            if size == new_size {
                string::copy(self.old, old, &mut self.new, new, run * size);
            } else {
                let kept = size.min(new_size).min(REMAINDER_BITS as usize);
                for number in 0..run {
                    let (old, new) = (old + number * size, new + number * new_size);
                    string::copy(self.old, old, &mut self.new, new, kept);
                }
            }
            item += run;
        }
    }

    /// Puts a new item into a place.
    fn put(&mut self, at: usize, last: u64, remainder: u64) {
        string::copy(&[last], 0, &mut self.new, at, 1);
        let size = self.to.size(at).min(REMAINDER_BITS as usize);
        string::copy(&[remainder], 0, &mut self.new, self.to.offset(at), size);
    }

    fn finish(self) -> [u64; MAX_BLOCK_WORDS] {
        self.new
    }
}
