//! The adaptivity bits of fingerprints on bins, by the bin and the rank of the fingerprint.
//!
//! They lie where the extensions of extension filters lie, which are as short as they are. Only what nearly equal
//! digests need is longer than an extension can be: such a string lies in a map, and its beginning in its place.

use std::collections::BTreeMap;

use crate::bins::Values;
use crate::bits::BitString;
use crate::coding::Extension;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Strings {
    bins: u64,
    /// The strings, or as much of them as an extension holds.
    short: Values,
    /// By bin and rank, those that have more.
    long: BTreeMap<(u64, usize), BitString>,
    /// The length of all strings together.
    bits: usize,
}

/// The memory of a string in the map.
const LONG_BITS: usize = 8 * size_of::<(u64, usize, BitString)>();

impl Strings {
    /// No strings, for so many bins of so many slots.
    pub(super) fn new(bins: u64, slots: u32) -> Self {
        Self { bins, short: Values::new(slots), long: BTreeMap::new(), bits: 0 }
    }

    /// How many strings are not empty.
    pub(super) fn len(&self) -> usize {
        self.short.adapted()
    }

    /// The length of all strings together.
    pub(super) fn bits(&self) -> usize {
        self.bits
    }

    /// The memory in use, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        self.short.memory_bits() + LONG_BITS * self.long.len()
    }

    /// The string of a rank.
    #[inline]
    pub(super) fn get(&self, bin: u64, rank: usize) -> BitString {
        self.whole(bin, rank, self.short.get(bin, rank))
    }

    /// The string whose beginning this is.
    #[inline]
    fn whole(&self, bin: u64, rank: usize, short: Extension) -> BitString {
        let string = BitString::new(short.bits().into(), short.len());
        if short.len() < Extension::MAX_LEN {
            return string;
        }
        self.long.get(&(bin, rank)).copied().unwrap_or(string)
    }

    /// Whether one of these ranks, which are bits, has no string.
    #[inline]
    pub(super) fn any_empty(&self, bin: u64, ranks: u64) -> bool {
        self.short.any_empty(bin, ranks)
    }

    /// Whether no rank of a bin from this one on has a string.
    pub(super) fn are_empty_from(&self, bin: u64, rank: usize) -> bool {
        self.short.first_from(bin, rank).is_none()
    }

    /// The strings of a bin that are not empty, by rank.
    pub(super) fn of_bin(&self, bin: u64) -> Vec<(usize, BitString)> {
        let short = self.short.of_bin(bin).into_iter();
        short.map(|(rank, short)| (rank, self.whole(bin, rank, short))).collect()
    }

    /// All strings that are not empty, as bin, rank and string, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, usize, BitString)> {
        self.short.iter().map(|(bin, rank, short)| (bin, rank, self.whole(bin, rank, short)))
    }

    /// Gives these ranks of a bin, which ascend, these strings, which are not empty, and the others none.
    pub(super) fn set(&mut self, bin: u64, strings: &[(usize, BitString)]) {
        let sum =
            |strings: &[(usize, BitString)]| strings.iter().map(|(_, string)| string.len() as usize).sum();
        let before: usize = sum(&self.of_bin(bin));
        self.bits = self.bits - before + sum(strings);
        let old: Vec<usize> =
            self.long.range((bin, 0)..=(bin, usize::MAX)).map(|(&(_, rank), _)| rank).collect();
        for rank in old {
            self.long.remove(&(bin, rank));
        }
        let is_long = |string: &BitString| string.len() > Extension::MAX_LEN;
        let long = strings.iter().filter(|(_, string)| is_long(string));
        self.long.extend(long.map(|&(rank, string)| ((bin, rank), string)));
        let short = |string: BitString| {
            let string = string.prefix(Extension::MAX_LEN);
            Extension::new(string.bits() as u64, string.len())
        };
        let short: Vec<_> = strings.iter().map(|&(rank, string)| (rank, short(string))).collect();
        self.short.set(bin, self.bins, &short);
    }

    /// Gives a rank another string; returns the one that it had.
    pub(super) fn replace(&mut self, bin: u64, rank: usize, string: BitString) -> BitString {
        let mut strings = self.of_bin(bin);
        let at = strings.partition_point(|entry| entry.0 < rank);
        let has = strings.get(at).is_some_and(|entry| entry.0 == rank);
        let old = if has { strings.remove(at).1 } else { BitString::EMPTY };
        if !string.is_empty() {
            strings.insert(at, (rank, string));
        }
        self.set(bin, &strings);
        old
    }

    /// Follows an insertion at this rank, with this string.
    pub(super) fn insert(&mut self, bin: u64, rank: usize, string: BitString) {
        let mut strings = self.of_bin(bin);
        let at = strings.partition_point(|entry| entry.0 < rank);
        strings[at..].iter_mut().for_each(|(rank, _)| *rank += 1);
        if !string.is_empty() {
            strings.insert(at, (rank, string));
        }
        self.set(bin, &strings);
    }

    /// Follows the removal of a rank; returns the string that it had.
    pub(super) fn remove(&mut self, bin: u64, rank: usize) -> BitString {
        let mut strings = self.of_bin(bin);
        let at = strings.partition_point(|entry| entry.0 < rank);
        let has = strings.get(at).is_some_and(|entry| entry.0 == rank);
        let old = if has { strings.remove(at).1 } else { BitString::EMPTY };
        strings[at..].iter_mut().for_each(|(rank, _)| *rank -= 1);
        self.set(bin, &strings);
        old
    }
}
