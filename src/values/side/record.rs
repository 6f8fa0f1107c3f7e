//! The values of one block as one bit string.
//!
//! A value is a number of at least 1 (a selector, or the length of an extension), and in stores of strings as many
//! bits. Which slots have one is said by a bit for each slot: the first of them, the *flags*, are kept in the code of
//! the block, where a query reads them without looking here, and the others begin the record. Numbers less the smallest
//! of them, the *base*, are cut into `k` low bits, a plane of bits for each, and the rest, in unary:
//!
//! ```text
//! | other flags | k: 4 | base: 6 | plane 0: n bits | … | plane k−1 | n times: zeros and a one | strings |
//! ```
//!
//! Where no flags are kept elsewhere, most records have a few values only: there, a bit says whether the flags follow
//! or, for up to eight values, their number less 1 in three bits and the slots in six bits each.
//!
//! `k` is what makes the record shortest (Rice's code). The i-th number is found with one select among the ones, the
//! place of its string with one population count for each plane: nothing is decoded from the beginning. Where values
//! are spread as repairs spread them this takes half a bit a value more than their entropy.
//!
//! No record reaches 2^13 bits: 63 numbers below 2^16 take at most 17 bits each with k = 15, and 63 strings of 62 bits
//! take 62 more, with at most 7 for the number.

use crate::bits::{low_mask, rank, read_bits, select, write_bits};

const K_BITS: u32 = 4;
const BASE_BITS: u32 = 6;

/// What is the same for all records of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The slots of a block: 63 at most.
    pub(crate) slots: u32,
    /// Of how many slots, from the first on, the flags are kept elsewhere.
    pub(crate) flags: u32,
    /// Whether a value is a string: its number is the string's length then.
    pub(crate) strings: bool,
}

impl Layout {
    /// How many flags a record begins with.
    #[inline]
    fn other_flags(self) -> u32 {
        self.slots.saturating_sub(self.flags)
    }

    /// The slots that have values, and how many bits say so: those of a record that begins at `at`, and the flags that
    /// are kept elsewhere.
    #[inline]
    fn slots_at(self, words: &[u64], at: usize, flags: u64) -> (u64, u32) {
        let other = self.other_flags();
        if self.flags > 0 {
            let own = if other == 0 { 0 } else { read_bits(words, at, other) << self.flags };
            return (flags | own, other);
        }
        if read_bits(words, at, 1) == 0 {
            return (read_bits(words, at + 1, other), 1 + other);
        }
        let few = read_bits(words, at + 1, FEW_BITS) as u32 + 1;
        let list = read_bits(words, at + 1 + FEW_BITS as usize, few * SLOT_BITS);
        // All that there could be: a loop of `few` steps would be mispredicted.
        let mut slots = 0;
        for number in 0..1 << FEW_BITS {
            slots |= u64::from(number < few) << (list >> (number * SLOT_BITS) & low_mask(SLOT_BITS));
        }
        (slots, 1 + FEW_BITS + few * SLOT_BITS)
    }
}

/// The width of the number of values, less 1, where slots are listed.
const FEW_BITS: u32 = 3;

/// The width of a slot there.
const SLOT_BITS: u32 = 6;

/// The value of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) slot: u32,
    /// At least 1; below 2^16, of strings at most 62.
    pub(crate) number: u32,
    /// This many bits; 0 in stores without strings.
    pub(crate) bits: u64,
}

/// A record as it is being written.
#[derive(Debug, Default)]
pub(super) struct Draft {
    words: Vec<u64>,
    len: usize,
}

impl Draft {
    /// The record of these entries, in the order of their slots. There must be one at least.
    pub(super) fn new(layout: Layout, entries: &[Entry]) -> Self {
        let base =
            entries.iter().map(|entry| entry.number).min().unwrap_or(0).min(low_mask(BASE_BITS) as u32);
        let above = |entry: &Entry| entry.number - base;
        let size = |&k: &u32| entries.iter().map(|entry| k + (above(entry) >> k)).sum::<u32>();
        let k = (0..1 << K_BITS).min_by_key(size).unwrap_or(0);
        let mut draft = Self::default();
        draft.push_slots(layout, entries);
        draft.push(k.into(), K_BITS);
        draft.push(base.into(), BASE_BITS);
        for plane in 0..k {
            entries.iter().for_each(|entry| draft.push(u64::from(above(entry) >> plane), 1));
        }
        for entry in entries {
            for _ in 0..above(entry) >> k {
                draft.push(0, 1);
            }
            draft.push(1, 1);
        }
        if layout.strings {
            entries.iter().for_each(|entry| draft.push(entry.bits, entry.number));
        }
        draft
    }

    /// Which slots have values, as far as the record says it.
    fn push_slots(&mut self, layout: Layout, entries: &[Entry]) {
        let flags = entries.iter().fold(0_u64, |flags, entry| flags | 1 << entry.slot);
        let few = entries.len() <= 1 << FEW_BITS;
        if layout.flags == 0 {
            self.push(few.into(), 1);
        }
        if layout.flags > 0 || !few {
            self.push(flags >> layout.flags.min(63), layout.other_flags());
            return;
        }
        self.push(entries.len() as u64 - 1, FEW_BITS);
        entries.iter().for_each(|entry| self.push(entry.slot.into(), SLOT_BITS));
    }

    /// How many bits it has.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    fn push(&mut self, bits: u64, len: u32) {
        let end = self.len + len as usize;
        self.words.resize(end.div_ceil(64), 0);
        write_bits(&mut self.words, self.len, len, bits);
        self.len = end;
    }
}

/// A record, to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'g> {
    words: &'g [u64],
    /// The slots that have values.
    slots: u64,
    strings: bool,
    k: u32,
    base: u32,
    /// Where the planes begin.
    planes_at: usize,
}

impl<'g> Record<'g> {
    #[inline]
    pub(super) fn new(layout: Layout, words: &'g [u64], at: usize, flags: u64) -> Self {
        let (slots, said_in) = layout.slots_at(words, at, flags);
        let at = at + said_in as usize;
        let header = read_bits(words, at, K_BITS + BASE_BITS);
        let (k, base) = ((header & low_mask(K_BITS)) as u32, (header >> K_BITS) as u32);
        let planes_at = at + (K_BITS + BASE_BITS) as usize;
        Self { words, slots, strings: layout.strings, k, base, planes_at }
    }

    /// The slots that have values.
    #[inline]
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    fn len(&self) -> u32 {
        self.slots.count_ones()
    }

    fn ones_at(&self) -> usize {
        self.planes_at + (self.k * self.len()) as usize
    }

    /// The number and the string of a slot, if it has a value.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<(u32, u64)> {
        if self.slots >> slot & 1 == 0 {
            return None;
        }
        let (len, index, ones_at) = (self.len(), rank(self.slots, slot), self.ones_at());
        // What the low bits of this number are, and what those of the ones before it sum up to.
        let (mut low, mut low_sum) = (0, 0);
        for plane in 0..self.k {
            let bits = read_bits(self.words, self.planes_at + (plane * len) as usize, len);
            low |= (bits >> index & 1) << plane;
            low_sum += rank(bits, index) << plane;
        }
        let before = if index == 0 { 0 } else { nth_one(self.words, ones_at, index - 1) + 1 };
        // A file that was not checked may have flags that are not the record's: then this is any number, but no panic.
        let high = nth_one(self.words, ones_at, index).saturating_sub(before);
        let number = self.number(high, low);
        if !self.strings {
            return Some((number, 0));
        }
        let strings_at = ones_at + nth_one(self.words, ones_at, len - 1) as usize + 1;
        let skipped = (index * self.base + low_sum).saturating_add(before.saturating_sub(index) << self.k);
        Some((number, read_bits(self.words, strings_at + skipped as usize, number)))
    }

    #[inline]
    fn number(&self, high: u32, low: u64) -> u32 {
        self.base.saturating_add(high << self.k | low as u32).min(if self.strings {
            62
        } else {
            u16::MAX.into()
        })
    }

    /// All values in the order of their slots.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        let record = *self;
        let (len, mut rest) = (record.len(), record.slots);
        let mut one = record.ones_at();
        let last = len.saturating_sub(1);
        let mut string = if record.strings { one + nth_one(record.words, one, last) as usize + 1 } else { 0 };
        (0..len).map(move |index| {
            let slot = rest.trailing_zeros();
            rest &= rest - 1;
            let high = nth_one(record.words, one, 0);
            one += high as usize + 1;
            let plane = |plane: u32| record.planes_at + (plane * len + index) as usize;
            let low = (0..record.k).map(|bit| read_bits(record.words, plane(bit), 1) << bit).sum::<u64>();
            let number = record.number(high, low);
            let bits = if record.strings { read_bits(record.words, string, number) } else { 0 };
            string += number as usize;
            Entry { slot, number, bits }
        })
    }
}

/// The place, counted from `at`, of the one that has this many ones before it; somewhere behind all words if there is
/// none.
#[inline]
fn nth_one(words: &[u64], at: usize, mut ones: u32) -> u32 {
    let mut skipped = 0;
    while at + skipped < 64 * words.len() {
        let word = read_bits(words, at + skipped, 64);
        if ones < word.count_ones() {
            return skipped as u32 + select(word, ones);
        }
        ones -= word.count_ones();
        skipped += 64;
    }
    skipped as u32
}
