//! What a block has beside its slots: the strings of adaptivity bits that are not empty, and the ghosts of its
//! quotients.
//!
//! Nearly all blocks have none, and most of the others very few: one or two strings when a filter was filled, about ten
//! strings and ghosts after a long time under churn. So they are a list, written bit by bit, of what there is:
//!
//! ```text
//! | strings: 6 bits | string | string | … | ghost | ghost | … | 0 to 7 zeros |
//!
//! string:  slots since the last one | bits            ghost:  numbers since the last one | bits
//! ```
//!
//! A distance d is written as d / 2^k zeros, a one, and the k lower bits (Rice); and so is the length of a string, less
//! one, before its bits. The number of a ghost tells its quotient in the block, its stratum and
//! the parity of its function.
//!
//! The paper packs the strings of all slots, the empty ones too, and compares a query with all of them at once
//! (Lemma 29). That takes three bits of memory for every key as soon as each block has a string, and a query seldom
//! needs more than one string: that of the one slot whose remainder matched.

use crate::bits::{BitString, low_mask};

use super::fingerprint::TAIL_BITS;

/// Lower bits of distances.
const SLOT_BITS: u32 = 2;
const GHOST_BITS: u32 = 5;

/// Lower bits of lengths.
const LENGTH_BITS: u32 = 2;

/// Bits of the number of strings: blocks have at most 63 slots.
const COUNT_BITS: u32 = 6;

/// A block's strings and ghosts, to be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Entries {
    /// By slot, in ascending order. None is empty.
    pub(super) strings: Vec<(u32, BitString)>,
    /// By number, in ascending order. None is empty.
    pub(super) ghosts: Vec<(u32, BitString)>,
}

impl Entries {
    pub(super) fn decode(code: &[u8]) -> Self {
        let mut reader = Reader::new(code);
        let strings = reader.strings().map(|entry| (entry.number, entry.string)).collect();
        Self { strings, ghosts: reader.ghosts().collect() }
    }

    /// Empty if there is nothing to write.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        if self.strings.is_empty() && self.ghosts.is_empty() {
            return writer.bytes;
        }
        writer.push(self.strings.len() as u64, COUNT_BITS);
        for (entries, low_bits) in [(&self.strings, SLOT_BITS), (&self.ghosts, GHOST_BITS)] {
            let mut last = 0;
            for &(number, string) in entries {
                writer.distance(number - last, low_bits);
                writer.string(string);
                last = number;
            }
        }
        writer.finish()
    }

    /// Strings, their bits, ghosts, and theirs.
    pub(super) fn counts(&self) -> [usize; 4] {
        let bits = |entries: &[(u32, BitString)]| entries.iter().map(|entry| entry.1.len() as usize).sum();
        [self.strings.len(), bits(&self.strings), self.ghosts.len(), bits(&self.ghosts)]
    }

    /// The string of a slot is taken out.
    pub(super) fn take(&mut self, slot: u32) -> BitString {
        match self.strings.binary_search_by_key(&slot, |entry| entry.0) {
            Ok(rank) => self.strings.remove(rank).1,
            Err(_) => BitString::EMPTY,
        }
    }

    /// A slot that has no string gets one, unless that is empty.
    pub(super) fn put(&mut self, slot: u32, string: BitString) {
        let rank = self.strings.partition_point(|entry| entry.0 < slot);
        if !string.is_empty() {
            self.strings.insert(rank, (slot, string));
        }
    }
}

/// The string of a slot; empty if the code has none.
pub(super) fn string_of(code: &[u8], slot: u32) -> BitString {
    let mut reader = Reader::new(code);
    let entry = reader.strings().find(|entry| entry.number >= slot);
    entry.filter(|entry| entry.number == slot).map_or(BitString::EMPTY, |entry| entry.string)
}

/// All ghosts, in ascending order of their numbers.
pub(super) fn ghosts(code: &[u8]) -> impl Iterator<Item = (u32, BitString)> {
    let mut reader = Reader::new(code);
    reader.strings().for_each(drop);
    reader.into_ghosts()
}

/// A string and the number of its slot.
struct Entry {
    number: u32,
    string: BitString,
}

/// Reads a code from the beginning. Behind its end there are zeros.
struct Reader<'c> {
    code: &'c [u8],
    at: usize,
    /// Strings that were not read yet.
    left: u64,
    last: u32,
}

impl<'c> Reader<'c> {
    fn new(code: &'c [u8]) -> Self {
        let mut reader = Self { code, at: 0, left: 0, last: 0 };
        reader.left = reader.bits(COUNT_BITS);
        reader
    }

    /// The next bits, 57 of them at least.
    #[inline]
    fn peek(&self) -> u64 {
        let rest = self.code.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(&bytes) => u64::from_le_bytes(bytes),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        word >> (self.at % 8)
    }

    #[inline]
    fn bits(&mut self, count: u32) -> u64 {
        let bits = self.peek() & low_mask(count);
        self.at += count as usize;
        bits
    }

    /// How many zeros there are before the next one; `None` if there is no one.
    #[inline]
    fn zeros(&mut self) -> Option<u32> {
        let mut zeros = 0;
        loop {
            let word = self.peek();
            if word != 0 {
                self.at += word.trailing_zeros() as usize + 1;
                return Some(zeros + word.trailing_zeros());
            }
            let end = self.code.len() * 8;
            if self.at + 57 > end {
                return None;
            }
            // Fewer than all bits of the word were looked at, but these in any case.
            self.at += 57;
            zeros += 57;
        }
    }

    fn entry(&mut self, low_bits: u32) -> Option<Entry> {
        let high = self.zeros()?;
        self.last += high << low_bits | self.bits(low_bits) as u32;
        // Only what was not written here is longer.
        let high = self.zeros().filter(|&high| high < TAIL_BITS >> LENGTH_BITS)?;
        let len = (high << LENGTH_BITS | self.bits(LENGTH_BITS) as u32) + 1;
        let low = self.bits(len.min(48));
        let high = if len > 48 { self.bits(len - 48) } else { 0 };
        let string = BitString::new(u128::from(low) | u128::from(high) << 48, len);
        Some(Entry { number: self.last, string })
    }

    /// The strings, to be read before the ghosts.
    fn strings(&mut self) -> impl Iterator<Item = Entry> {
        std::iter::from_fn(|| {
            self.left = self.left.checked_sub(1)?;
            self.entry(SLOT_BITS)
        })
    }

    fn ghosts(&mut self) -> impl Iterator<Item = (u32, BitString)> {
        self.last = 0;
        std::iter::from_fn(|| self.entry(GHOST_BITS).map(|entry| (entry.number, entry.string)))
    }

    fn into_ghosts(mut self) -> impl Iterator<Item = (u32, BitString)> {
        self.last = 0;
        std::iter::from_fn(move || self.entry(GHOST_BITS).map(|entry| (entry.number, entry.string)))
    }
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    /// The last bits, fewer than 8.
    word: u64,
    len: u32,
}

impl Writer {
    /// Up to 56 bits, the lowest first.
    fn push(&mut self, bits: u64, count: u32) {
        self.word |= bits << self.len;
        self.len += count;
        while self.len >= 8 {
            self.bytes.push(self.word as u8);
            self.word >>= 8;
            self.len -= 8;
        }
    }

    fn zeros(&mut self, mut count: u32) {
        while count > 48 {
            self.push(0, 48);
            count -= 48;
        }
        self.push(1 << count, count + 1);
    }

    fn distance(&mut self, distance: u32, low_bits: u32) {
        self.zeros(distance >> low_bits);
        self.push(u64::from(distance) & low_mask(low_bits), low_bits);
    }

    fn string(&mut self, string: BitString) {
        let (len, bits) = (string.len(), string.bits());
        self.distance(len - 1, LENGTH_BITS);
        self.push(bits as u64 & low_mask(len.min(48)), len.min(48));
        if len > 48 {
            self.push((bits >> 48) as u64, len - 48);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.len > 0 {
            self.bytes.push(self.word as u8);
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    //! Catches: entries that run into each other, a window that cuts one off, an end that is not noticed.
    use super::*;
    use crate::testing::Random;

    fn random_string(random: &mut Random, longest: u32) -> BitString {
        let bits = u128::from(random.next()) << 64 | u128::from(random.next());
        // Zeros too, which the end is told by.
        let bits = if random.one_in(4) { 0 } else { bits };
        BitString::new(bits, 1 + random.below(longest.into()) as u32)
    }

    #[test]
    fn what_is_written_is_read() {
        let mut random = Random::new(29);
        for round in 0..20_000 {
            let longest = [2, 8, TAIL_BITS][round % 3];
            let mut entries = Entries::default();
            for slot in 0..63 {
                if random.one_in([2, 8, 60][round / 3 % 3]) {
                    entries.put(slot, random_string(&mut random, longest));
                }
            }
            for number in 0..126 {
                while random.one_in([3, 20, 200][round / 9 % 3]) {
                    entries.ghosts.push((number, random_string(&mut random, longest)));
                }
            }
            let code = entries.encode();
            assert_eq!(Entries::decode(&code), entries);
            assert!(ghosts(&code).eq(entries.ghosts.iter().copied()));
            for slot in 0..63 {
                let expected = entries.strings.iter().find(|entry| entry.0 == slot).map(|entry| entry.1);
                assert_eq!(string_of(&code, slot), expected.unwrap_or_default());
            }
        }
    }

    #[test]
    fn nothing_takes_nothing_and_a_little_takes_little() {
        let mut entries = Entries::default();
        assert!(entries.encode().is_empty());
        assert_eq!(string_of(&[], 5), BitString::EMPTY);
        entries.put(3, BitString::EMPTY);
        assert!(entries.encode().is_empty());
        entries.put(20, BitString::new(2, 2));
        assert_eq!(entries.encode().len(), 3);
        assert_eq!((entries.take(20), entries.take(20)), (BitString::new(2, 2), BitString::EMPTY));
        assert!(entries.encode().is_empty());
    }
}
