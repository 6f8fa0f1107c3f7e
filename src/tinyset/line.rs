//! Blocks of one cache line, in whole words.
//!
//! These serve blocks of 256 and 512 bits, of every eighth number of chains up to [`MAX_CHAINS`], and of at most
//! [`MAX_ITEMS`] items: nearly all blocks that are not loaded far beyond their plan. They say so when they meet another
//! one, and [`block`](super::block) does its work. Both write the same bits and give the same answers.
//!
//! The operations are written once, over a [`Machine`], and are inlined into functions that have its instructions.

use std::ops::Range;
use std::sync::OnceLock;

use super::block::Insertion;
use super::cut::{Cut, CutMoves, NO_MOVES, Stream};
use super::geometry::{Geometry, Layout, REMAINDER_BITS};
use super::machine::Machine;
use crate::bits::{low_mask, string};

/// The index lies in the first two words.
const MAX_CHAINS: u32 = 128;

/// Indexes are of whole bytes, so that the array starts with a byte where there is no counter.
const CHAIN_STEP: u32 = 8;

/// Items of a block whose isLast bits fit into a word together with one bit more.
const MAX_ITEMS: usize = 63;

/// What depends on the number of items only, looked up instead of computed.
#[derive(Debug, PartialEq)]
pub(crate) struct Line {
    geometry: Geometry,
    /// Which version of the operations serves it.
    kind: LineKind,
    /// Where the array starts.
    array: usize,
    /// The same in bytes; at most [`MAX_CHAINS`] bits, and right if it starts with a byte.
    array_byte: usize,
    /// At r: where the remainders of r items lie.
    layouts: [LineLayout; MAX_ITEMS + 1],
    /// At r and i: where the i-th of r items lies.
    spots: [[Spot; MAX_ITEMS + 1]; MAX_ITEMS + 1],
    /// At z: bits at all multiples of z.
    every: [u64; 64],
    /// At r: what becomes of the remainders when a block of r items takes another one.
    cuts: [Cut; MAX_ITEMS],
    /// The same for machines that need to be told how bits move; made when the first of them asks.
    moves: OnceLock<Box<[CutMoves]>>,
}

/// What is not plain of a [`Layout`], small.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct LineLayout {
    short: u16,
    extended: u16,
}

/// Where an item lies in its block.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Spot {
    /// Where the eight bytes start that hold it, all of them in the block.
    byte: u8,
    /// Where in them it starts.
    shift: u8,
    /// Its bits, as far as hash bits reach.
    size: u8,
    /// How many items from this one on are of its size and lie in these bytes, itself included.
    together: u8,
}

impl Spot {
    fn new(geometry: &Geometry, layout: &Layout, item: usize) -> Self {
        let offset = geometry.array_start() as usize + layout.offset(item);
        let byte = (offset / 8).min(geometry.bits as usize / 8 - 8);
        let size = layout.size(item);
        let fitting = (REMAINDER_BITS as usize).checked_div(size).unwrap_or(1).max(1);
        Self {
            byte: byte as u8,
            shift: (offset - 8 * byte) as u8,
            size: size.min(REMAINDER_BITS as usize) as u8,
            together: layout.alike(item).min(fitting) as u8,
        }
    }
}

/// Bits at all multiples of a distance; none for 0.
fn every(distance: usize) -> u64 {
    (0..64_usize).filter(|bit| bit.checked_rem(distance) == Some(0)).fold(0, |bits, bit| bits | 1 << bit)
}

/// What the index and the isLast bits say about one chain.
struct Decoded {
    /// How many items the remainders are cut for.
    logical: usize,
    /// How many items are there.
    actual: usize,
    /// The chain's first item, or the one that it goes before.
    start: usize,
    /// The item after the chain's last one; `start` if there is none.
    end: usize,
    /// The isLast bits.
    lasts: u64,
    occupied: bool,
}

/// Which version of a query serves a geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// 64 bytes, [`NARROW`].
    Narrow,
    /// 64 bytes, [`WIDE`].
    Wide,
    /// 64 bytes, [`GENERAL`].
    General,
    /// 32 bytes, [`NARROW`].
    HalfNarrow,
    /// 32 bytes, [`GENERAL`].
    Half,
}

/// The index is one word at most, there is no counter, and the array starts with a byte.
pub(crate) const NARROW: u8 = 0;
/// The same with an index of more than a word.
pub(crate) const WIDE: u8 = 1;
/// Anything.
pub(crate) const GENERAL: u8 = 2;

/// All tables made so far. They take 27 KiB and depend on nothing but the geometry, so filters share them.
static LINES: [OnceLock<Box<Line>>; 4 * CHAINS] = [const { OnceLock::new() }; 4 * CHAINS];

/// How many numbers of chains there are.
const CHAINS: usize = (MAX_CHAINS / CHAIN_STEP) as usize;

impl Line {
    /// The tables for blocks of this geometry; `None` if it or the order of the processor's bytes is not fit for this
    /// file.
    pub(crate) fn get(geometry: &Geometry) -> Option<&'static Self> {
        let fits = geometry.is_line() && geometry.chains.is_multiple_of(CHAIN_STEP);
        if !fits || cfg!(target_endian = "big") {
            return None;
        }
        let kind = usize::from(geometry.bits == 512) + 2 * usize::from(geometry.removal());
        let chains = (geometry.chains / CHAIN_STEP) as usize;
        // None is for more chains than MAX_CHAINS.
        let line = LINES[kind * CHAINS..(kind + 1) * CHAINS].get(chains.checked_sub(1)?)?;
        Some(line.get_or_init(|| Box::new(Self::new(geometry))))
    }

    fn new(geometry: &Geometry) -> Self {
        let layouts = std::array::from_fn(|items| {
            let Layout { short, extended, .. } = Layout::new(geometry, items);
            LineLayout { short: short as u16, extended: extended as u16 }
        });
        let cuts = std::array::from_fn(|items| Cut::new(geometry, items));
        let spots = |items: usize| {
            let layout = Layout::new(geometry, items);
            std::array::from_fn(|item| {
                if item < items { Spot::new(geometry, &layout, item) } else { Spot::default() }
            })
        };
        let kind = match (geometry.bits, geometry.removal(), geometry.chains) {
            (512, false, ..=64) => LineKind::Narrow,
            (512, false, _) => LineKind::Wide,
            (512, ..) => LineKind::General,
            (_, false, ..=64) => LineKind::HalfNarrow,
            _ => LineKind::Half,
        };
        let array = geometry.array_start() as usize;
        let array_byte = (geometry.chains / 8) as usize;
        Self {
            geometry: *geometry,
            kind,
            array,
            array_byte,
            layouts,
            spots: std::array::from_fn(spots),
            every: std::array::from_fn(every),
            cuts,
            moves: OnceLock::new(),
        }
    }

    /// How bits move, for machines that need to be told.
    fn moves(&self) -> &[CutMoves] {
        self.moves.get_or_init(|| self.cuts.iter().map(CutMoves::of).collect())
    }

    /// Which version of [`contains`](Self::contains) serves these blocks.
    #[inline(always)]
    pub(crate) fn kind(&self) -> LineKind {
        self.kind
    }

    /// Reads what all operations need; `None` for more than [`MAX_ITEMS`].
    #[inline(always)]
    fn decode<M: Machine, const N: usize, const KIND: u8>(
        &self,
        machine: M,
        words: &[u64; N],
        chain: u32,
    ) -> Option<Decoded> {
        let geometry = &self.geometry;
        let mut index = words[0];
        if KIND == NARROW || KIND == GENERAL {
            index = machine.low(index, geometry.chains);
        }
        let mut chains = index.count_ones();
        let mut before = machine.low(index, chain).count_ones();
        if KIND == WIDE || KIND == GENERAL && geometry.chains > 64 {
            let second = machine.low(words[1], geometry.chains - 64);
            chains += second.count_ones();
            before += machine.low(second, chain.saturating_sub(64)).count_ones();
            index = if chain < 64 { index } else { second };
        }
        let occupied = index >> (chain % 64) & 1 == 1;
        let lasts = if KIND == GENERAL {
            string::read(words, self.array)
        } else {
            // SAFETY: `array_byte` is at most 16, and the smallest block has 32 bytes.
            unsafe { read_bytes(words, self.array_byte) }
        };
        // A 1 in front ends a chain before the first: now a set bit says that an item starts a chain, and the k-th
        // is where the k-th chain in use starts. The one after the last is the number of items.
        let starts = lasts << 1 | 1;
        let counts = machine.counts(starts);
        let actual = machine.select(starts, counts, chains & 63) as usize;
        let logical =
            if KIND == GENERAL && geometry.removal() { geometry.read_counter(words, 0) } else { actual };
        // With 64 chains in use `actual` is wrong, and there are too many items anyway.
        if chains >= 64 || actual > MAX_ITEMS || logical > MAX_ITEMS {
            return None;
        }
        let start = machine.select(starts, counts, before);
        // An occupied chain is followed by another or by the end of the items, and 62 at most are before it.
        let end = if occupied { machine.select_next(starts, before & 63, start) } else { start };
        let (start, end) = (start as usize, end as usize);
        Some(Decoded { logical, actual, start, end, lasts, occupied })
    }

    /// Whether an item of `chain` has this remainder as far as its bits go; `None` where
    /// [`Block::contains`](super::block::Block::contains) has to answer. `KIND` must be that of this value.
    #[inline(always)]
    pub(super) fn contains<M: Machine, const N: usize, const KIND: u8>(
        &self,
        machine: M,
        words: &[u64; N],
        chain: u32,
        remainder: u64,
    ) -> Option<bool> {
        let word = if KIND == NARROW { 0 } else { (chain as usize / 64) & 1 };
        // Half of the chains are empty in a filter that holds what it was planned for, and more before that.
        if words[word] >> (chain % 64) & 1 == 0 {
            return Some(false);
        }
        let decoded = self.decode::<M, N, KIND>(machine, words, chain)?;
        Some(self.matches::<M, N, KIND>(machine, words, &decoded, remainder))
    }

    /// Whether an item of the chain has this remainder as far as its bits go.
    #[inline(always)]
    fn matches<M: Machine, const N: usize, const KIND: u8>(
        &self,
        machine: M,
        words: &[u64; N],
        &Decoded { logical, start, end, .. }: &Decoded,
        remainder: u64,
    ) -> bool {
        let Spot { byte, shift, size, together } = self.spots[logical & MAX_ITEMS][start & MAX_ITEMS];
        let items = end - start;
        if items > usize::from(together) || KIND == GENERAL && self.geometry.removal() {
            return machine.contains_one_by_one(self, words, logical, start..end, remainder);
        }
        // SAFETY: a spot's eight bytes lie in the block.
        let stored = unsafe { read_bytes(words, usize::from(byte)) } >> (shift & 63);
        let ones = machine.low(self.every[usize::from(size & 63)], items as u32 * u32::from(size));
        let wanted = machine.low(remainder, u32::from(size)).wrapping_mul(ones);
        let differ = stored ^ wanted;
        // Subtracting 1 from every item borrows from the top bit of the lowest one that is 0, and of no other one
        // unless there is such a one. No item is without a bit: so few share no fewer than 128 bits.
        let tops = ones << (size.wrapping_sub(1) & 63);
        differ.wrapping_sub(ones) & !differ & tops != 0
    }

    /// The general case: items of different sizes, long ones, those whose extra bits may be lost.
    #[inline(always)]
    pub(super) fn contains_one_by_one<const N: usize>(
        &self,
        words: &[u64; N],
        logical: usize,
        items: Range<usize>,
        remainder: u64,
    ) -> bool {
        let LineLayout { short, extended } = self.layouts[logical & MAX_ITEMS];
        let (short, extended) = (usize::from(short), usize::from(extended));
        let mut offset = self.array + logical + items.start * short + items.start.min(extended);
        for item in items {
            let extra = usize::from(item < extended);
            let stored = read_item(words, offset);
            let mut differ = stored ^ remainder;
            if self.geometry.removal() {
                // An extra bit of 0 may stand for one that was lost when the item moved: it says nothing.
                differ &= low_mask(short as u32) | stored;
            }
            if differ & low_mask((short + extra).min(REMAINDER_BITS as usize) as u32) == 0 {
                return true;
            }
            offset += short + extra;
        }
        false
    }

    /// Inserts an item and says what that changed; `None`, and nothing is changed, where
    /// [`BlockMut::insert`](super::block::BlockMut::insert) has to do it.
    ///
    /// The remainders are cut a word at a time: one extraction takes what is left of all items in it.
    #[inline(always)]
    pub(super) fn insert<M: Machine, const N: usize, const KIND: u8>(
        &self,
        machine: M,
        words: &mut [u64; N],
        chain: u32,
        remainder: u64,
    ) -> Option<Insertion> {
        let decoded = self.decode::<M, N, KIND>(machine, words, chain)?;
        let Decoded { logical: items, actual, start: at, lasts, occupied, .. } = decoded;
        if items != actual || items == MAX_ITEMS {
            return None;
        }
        // An empty chain is searched too, in vain: whether it is empty is hard to predict.
        let fresh = !self.matches::<M, N, KIND>(machine, words, &decoded, remainder);
        let (old, new, cut) = (&self.layouts[items], &self.layouts[items + 1], &self.cuts[items]);
        let array = self.array;
        let offset = array + items + at * usize::from(old.short) + at.min(usize::from(old.extended));
        let (split, split_mask) = (offset / 64, low_mask(offset as u32 % 64));
        let size = usize::from(new.short) + usize::from(at < usize::from(new.extended));

        let before = *words;
        let mut stream = Stream::new(words, array);
        let lasts = machine.low(lasts, items as u32);
        let low = machine.low(lasts, at as u32);
        stream.append(low | u64::from(!occupied) << at | (lasts ^ low) << 1, items as u32 + 1);
        let moves = if M::NEEDS_MOVES { self.moves().get(items) } else { None };
        let moves = moves.unwrap_or(&NO_MOVES);
        let (moves_before, moves_after) = (&moves.before, &moves.after);
        for word in array / 64..split {
            stream.extract(
                machine,
                before[word & (N - 1)],
                (cut.before[word & 7], 0),
                &moves_before[word & 7],
            );
        }
        let (word, mask) = (before[split & (N - 1)], cut.before[split & 7]);
        stream.extract(machine, word, (mask, !split_mask), &moves_before[split & 7]);
        stream.append(remainder & low_mask(size as u32), size.min(64) as u32);
        for done in (64..size).step_by(64) {
            stream.append(0, (size - done).min(64) as u32);
        }
        stream.extract(machine, word, (cut.after[split & 7], split_mask), &moves_after[split & 7]);
        for word in split + 1..N {
            stream.extract(machine, before[word & (N - 1)], (cut.after[word & 7], 0), &moves_after[word & 7]);
        }
        words[(chain as usize / 64) & 1] |= 1 << (chain % 64);
        if self.geometry.removal() {
            self.geometry.write_counter(words, 0, items + 1);
        }
        Some(Insertion { grown: 1, fresh })
    }
}

/// The eight bytes from `at` on.
///
/// # Safety
///
/// They must lie in the block.
#[inline(always)]
unsafe fn read_bytes<const N: usize>(words: &[u64; N], at: usize) -> u64 {
    debug_assert!(at + 8 <= 8 * N);
    // SAFETY: the bytes `at .. at + 8` lie in the array, as the caller promises; they need no alignment.
    unsafe { words.as_ptr().cast::<u8>().add(at).cast::<u64>().read_unaligned() }
}

/// The bits from `at` on, 57 of them at least unless the block ends before.
#[inline(always)]
fn read_item<const N: usize>(words: &[u64; N], at: usize) -> u64 {
    let byte = (at / 8).min(8 * N - 8);
    // SAFETY: by the line above, eight bytes follow.
    unsafe { read_bytes(words, byte) >> ((at - 8 * byte) & 63) }
}
