//! One block: queries, insertions and removals in plain Rust, for blocks of any size anywhere in the words.
//!
//! Every operation reads and writes the bits of its own block and no others.

use super::geometry::{Geometry, MAX_BLOCK_WORDS, REMAINDER_BITS};
use crate::bits::{low_mask, string};
use crate::error::{InvariantError, ensure};

/// The planes that hash bits reach: the isLast bits and one for each bit of a remainder. Later ones are all 0.
const PLANES: usize = REMAINDER_BITS as usize + 1;

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
        let logical = self.count().logical;
        self.matches(self.chain(chain), logical, remainder).next().is_some()
    }

    /// The items of a chain that match: for each 64 of them, the number of the first and a bit per item that
    /// says which match; those without any are left out. In the second word, matches that are certain to be
    /// longer than they must be: those by an extra bit that is 1.
    #[inline(always)]
    fn matches(
        self,
        chain: Chain,
        logical: usize,
        remainder: u64,
    ) -> impl Iterator<Item = (usize, u64, u64)> + 'a
    where
        S: 'a,
    {
        (chain.start..chain.end).step_by(64).filter_map(move |first| {
            let items = low_mask((chain.end - first) as u32);
            let (matching, extra) = self.compare(first, items, logical, remainder);
            (matching != 0).then_some((first, matching, extra))
        })
    }

    /// Compares plane after plane until nothing matches any more or the bits are at an end.
    #[inline(always)]
    fn compare(&self, first: usize, items: u64, logical: usize, remainder: u64) -> (u64, u64) {
        let array_bits = self.geometry.array_bits() as usize;
        let mut matching = items;
        let mut bits = remainder;
        for plane in 1..PLANES {
            let start = plane * logical;
            if matching == 0 || start >= array_bits {
                break;
            }
            let wanted = (bits & 1).wrapping_neg();
            let stored = string::read(self.words, self.array() + start + first);
            let exists = low_mask((array_bits - start).saturating_sub(first).min(64) as u32);
            if start + logical > array_bits && self.geometry.removal() {
                // An extra bit of 0 may stand for one that was lost when the item moved: it says nothing.
                matching &= !(stored & !wanted & exists);
                return (matching, matching & stored & exists);
            }
            matching &= !((stored ^ wanted) & exists);
            bits >>= 1;
        }
        (matching, 0)
    }

    /// The item to remove for this remainder, and its chain's first item.
    ///
    /// Of several that match, one with an extra bit of 1 must go first: it matches this key but may not match
    /// the key of another item whose own extra bit was lost.
    fn find(&self, chain: u32, remainder: u64) -> Option<(usize, Chain)> {
        if !self.is_occupied(chain) {
            return None;
        }
        let (chain, logical) = (self.chain(chain), self.count().logical);
        let candidates = || self.matches(chain, logical, remainder);
        let specific = candidates().find(|&(.., extra)| extra != 0);
        let (first, bits) = match specific {
            Some((first, _, extra)) => (first, extra),
            None => candidates().next().map(|(first, matching, _)| (first, matching))?,
        };
        Some((first + bits.trailing_zeros() as usize, chain))
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
        let used = if logical == 0 { 0 } else { PLANES };
        for start in (0..used * logical).step_by(logical.max(1)).filter(|&start| start < array_bits) {
            let len = (logical - actual).min(array_bits.saturating_sub(start + actual));
            let stray = string::count_ones(self.words, array + start + actual, len);
            ensure!(stray == 0, "{stray} bits set in free places of the plane at {start}");
        }
        let rest = (used * logical).min(array_bits);
        let stray = string::count_ones(self.words, array + rest, array_bits - rest);
        ensure!(stray == 0, "{stray} bits set beyond the hash bits of {logical} items");
        Ok(count)
    }
}

/// A block to change.
pub(crate) struct BlockMut<'a> {
    geometry: Geometry,
    words: &'a mut [u64],
    base: usize,
}

/// How the planes of the new array follow from those of the old one.
struct Shift {
    /// Items in a plane before and after.
    from: usize,
    to: usize,
    /// The first item that moves, in a plane after plane 0.
    at: usize,
    /// The same in plane 0.
    last_at: usize,
}

impl<'a> BlockMut<'a> {
    pub(crate) fn new(geometry: Geometry, words: &'a mut [u64], base: usize) -> Self {
        Self { geometry, words, base }
    }

    pub(crate) fn block(&self) -> Block<'_, impl Fn(u64, u32) -> u32 + Copy> {
        Block::new(self.geometry, self.words, self.base, crate::bits::select)
    }

    /// Inserts an item; `None`, and nothing changes, without a bit for it. Says how the logical count grew.
    pub(crate) fn insert(&mut self, chain: u32, remainder: u64) -> Option<usize> {
        let block = self.block();
        let count = block.count();
        let at = block.chain(chain).start;
        let grown = usize::from(count.actual == count.logical);
        let logical = count.logical + grown;
        if logical > self.geometry.array_bits() as usize {
            return None;
        }
        // The newcomer is the first of its chain, so it is the last only if the chain was empty.
        let tail = remainder << 1 | u64::from(!block.is_occupied(chain));
        self.open(&Shift { from: count.logical, to: logical, at, last_at: at }, tail);
        string::write(self.words, self.base + chain as usize, 1, 1);
        if self.geometry.removal() {
            self.geometry.write_counter(self.words, self.base, logical);
        }
        Some(grown)
    }

    /// Removes an item that matches; `None` if there is none. Says by how much the logical count fell.
    pub(crate) fn remove(&mut self, chain: u32, remainder: u64) -> Option<usize> {
        let block = self.block();
        let (item, Chain { start, end }) = block.find(chain, remainder)?;
        let Count { actual, logical } = block.count();
        // The isLast bits of a chain are 0…01: whichever item goes, the first of them goes with it.
        self.close(&Shift { from: logical, to: logical, at: item, last_at: start });
        if end - start == 1 {
            string::write(self.words, self.base + chain as usize, 1, 0);
        }
        if actual > 1 {
            return Some(0);
        }
        // Nobody's remainder is cut short any more.
        self.geometry.write_counter(self.words, self.base, 0);
        Some(logical)
    }

    /// Makes room for one item in every plane and puts the bits of `tail` there, one a plane.
    fn open(&mut self, shift: &Shift, mut tail: u64) {
        self.rebuild(shift, |old, old_start, new, start, at, len| {
            string::copy(old, old_start, new, start, at.min(len));
            if at < len {
                string::write(new, start + at, 1, tail);
                string::copy(old, old_start + at, new, start + at + 1, len - at - 1);
            }
            tail >>= 1;
        });
    }

    /// Takes one item out of every plane; the last place becomes 0.
    fn close(&mut self, shift: &Shift) {
        self.rebuild(shift, |old, old_start, new, start, at, len| {
            string::copy(old, old_start, new, start, at.min(len));
            if at + 1 < len {
                string::copy(old, old_start + at + 1, new, start + at, len - at - 1);
            }
        });
    }

    /// Builds the array anew: `plane(old, old_start, new, start, at, len)` fills one plane of `len` items.
    fn rebuild(
        &mut self,
        shift: &Shift,
        mut plane: impl FnMut(&[u64], usize, &mut [u64], usize, usize, usize),
    ) {
        let array = self.base + self.geometry.array_start() as usize;
        let array_bits = self.geometry.array_bits() as usize;
        let mut buffer = [0; MAX_BLOCK_WORDS];
        let new = &mut buffer[..self.words.len()];
        for number in 0..PLANES {
            let start = number * shift.to;
            if start >= array_bits {
                break;
            }
            let len = shift.to.min(array_bits - start);
            let at = if number == 0 { shift.last_at } else { shift.at };
            plane(self.words, array + number * shift.from, new, start, at, len);
        }
        string::copy(new, 0, self.words, array, array_bits);
    }
}
