//! The extensions of all items, by the bin and the rank of the item: see `flagged` for what a rank is. The broom filter
//! keeps its adaptivity bits in them too.
//!
//! A bin with extensions has a record in the side store, in the bits that they need. A record has 63 ranks at most.
//! That is enough for all but one bin in five hundred at load 0.90; what the others have beyond lies in a map.

use std::collections::BTreeMap;

use crate::bits::low_mask;
use crate::coding::{Extension, Extensions, Letters};
use crate::format::{Decoder, Encoder, FormatError, in_range, unsound};
use crate::values::{Entry, Layout, SideStore};
use crate::{InvariantError, error::ensure};

/// How many ranks a record has at most.
const MAX_RANKS: u32 = 63;

/// The extensions of all items. See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct Values {
    /// Ranks below this are in records.
    ranks: u32,
    side: SideStore,
    /// By bin and rank, from rank `ranks` on, those that are not empty.
    deep: BTreeMap<(u64, usize), Extension>,
    /// How many are not empty.
    adapted: usize,
}

impl Values {
    /// No extensions, for bins of so many slots.
    pub(crate) fn new(slots: u32) -> Self {
        // Three standard deviations beyond a bin that is full on average.
        let ranks = (slots + 3 * slots.isqrt()).min(MAX_RANKS);
        let layout = Layout { slots: ranks, flags: 0, strings: true };
        Self { ranks, side: SideStore::new(layout), deep: BTreeMap::new(), adapted: 0 }
    }

    /// How many items have an extension.
    pub(crate) fn adapted(&self) -> usize {
        self.adapted
    }

    /// How many bins have items with extensions.
    pub(crate) fn bins(&self) -> usize {
        let mut alone: Vec<u64> = self.deep.keys().map(|&(bin, _)| bin).collect();
        alone.dedup();
        self.side.len() + alone.into_iter().filter(|&bin| !self.side.has(bin as usize)).count()
    }

    /// The memory in use, in bits.
    pub(crate) fn memory_bits(&self) -> usize {
        self.side.memory_bits() + 8 * self.deep.len() * size_of::<(u64, usize, Extension)>()
    }

    /// Those of a bin that are in the map, from this rank on.
    fn deep_from(&self, bin: u64, rank: usize) -> impl Iterator<Item = (usize, Extension)> {
        self.deep.range((bin, rank)..=(bin, usize::MAX)).map(|(&(_, rank), &value)| (rank, value))
    }

    /// The ranks of a bin that have extensions in its record, as bits.
    #[inline]
    fn near(&self, bin: u64) -> u64 {
        if self.side.has(bin as usize) { self.side.get(bin as usize, 0).slots() } else { 0 }
    }

    /// Whether one of these ranks, which are bits, has no extension.
    #[inline]
    pub(crate) fn any_empty(&self, bin: u64, ranks: u64) -> bool {
        ranks & !self.near(bin) & low_mask(self.ranks) != 0
    }

    /// The extension of an item.
    #[inline]
    pub(crate) fn get(&self, bin: u64, rank: usize) -> Extension {
        if rank >= self.ranks as usize {
            return self.deep.get(&(bin, rank)).copied().unwrap_or_default();
        }
        if !self.side.has(bin as usize) {
            return Extension::default();
        }
        let value = self.side.get(bin as usize, 0).get(rank as u32);
        value.map_or(Extension::default(), |(len, bits)| extension(len, bits))
    }

    /// The first rank from this one on that has an extension.
    pub(crate) fn first_from(&self, bin: u64, rank: usize) -> Option<usize> {
        let near = self.near(bin) & u64::MAX.checked_shl(rank as u32).unwrap_or(0);
        if near != 0 {
            return Some(near.trailing_zeros() as usize);
        }
        self.deep_from(bin, rank).next().map(|(rank, _)| rank)
    }

    /// The extensions of a bin that has so many items.
    pub(crate) fn load(&self, bin: u64, items: usize) -> Vec<Extension> {
        let mut values = vec![Extension::default(); items];
        if self.side.has(bin as usize) {
            for Entry { slot, number, bits } in self.side.get(bin as usize, 0).entries() {
                if let Some(value) = values.get_mut(slot as usize) {
                    *value = extension(number, bits);
                }
            }
        }
        for (rank, stored) in self.deep_from(bin, 0) {
            if let Some(value) = values.get_mut(rank) {
                *value = stored;
            }
        }
        values
    }

    /// The extensions of a bin that are not empty, by rank.
    pub(crate) fn of_bin(&self, bin: u64) -> Vec<(usize, Extension)> {
        let mut values = Vec::new();
        if self.side.has(bin as usize) {
            let record = self.side.get(bin as usize, 0);
            values.extend(
                record.entries().map(|entry| (entry.slot as usize, extension(entry.number, entry.bits))),
            );
        }
        values.extend(self.deep_from(bin, 0));
        values
    }

    /// Changes the extensions of a bin, one of so many.
    pub(crate) fn store(&mut self, bin: u64, bins: u64, values: &[Extension]) {
        let adapted = values.iter().copied().enumerate().filter(|(_, value)| value.len() > 0);
        self.set(bin, bins, &adapted.collect::<Vec<_>>());
    }

    /// Gives these ranks of a bin, which ascend, these extensions, which are not empty, and the others none.
    pub(crate) fn set(&mut self, bin: u64, bins: u64, values: &[(usize, Extension)]) {
        self.adapted = self.adapted + values.len() - self.near(bin).count_ones() as usize;
        let split = values.partition_point(|&(rank, _)| rank < self.ranks as usize);
        let entry = |&(rank, value): &(usize, Extension)| Entry {
            slot: rank as u32,
            number: value.len(),
            bits: value.bits(),
        };
        let near: Vec<Entry> = values[..split].iter().map(entry).collect();
        self.side.set(bin as usize, bins as usize, (!near.is_empty()).then_some(&near));
        let old: Vec<usize> = self.deep_from(bin, 0).map(|(rank, _)| rank).collect();
        self.adapted -= old.len();
        for rank in old {
            self.deep.remove(&(bin, rank));
        }
        self.deep.extend(values[split..].iter().map(|&(rank, value)| ((bin, rank), value)));
    }

    /// Writes the records as the side store has them, and three words for each of those beyond: bin, rank, number (in
    /// the order '', 0, 1, 00, …).
    pub(crate) fn encode(&self, bins: u64, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        self.side.encode(bins as usize, encoder)?;
        let numbers = |(&(bin, rank), &value): (&(u64, usize), &Extension)| {
            [bin, rank as u64, Extensions::number(value)]
        };
        let deep: Vec<u64> = self.deep.iter().flat_map(numbers).collect();
        encoder.words(&[self.deep.len() as u64])?;
        Ok(encoder.words(&deep)?)
    }

    /// Reads the extensions of bins of this many slots.
    pub(crate) fn decode(decoder: &mut Decoder<'_>, bins: u64, slots: u32) -> Result<Self, FormatError> {
        let mut values = Self::new(slots);
        values.side = SideStore::decode(decoder, *values.side.layout(), bins as usize, |_| 0)?;
        let [deep] = decoder.counts(["extensions beyond the records"])?;
        let words = decoder.words(3 * deep)?;
        values.deep = deep_of(&words, bins, values.ranks)?;
        let near: usize = values.side.blocks().map(|bin| values.near(bin as u64).count_ones() as usize).sum();
        values.adapted = near + values.deep.len();
        Ok(values)
    }

    /// All extensions that are not empty, as bin, rank and extension, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, usize, Extension)> {
        let mut bins: Vec<u64> = self.side.blocks().map(|bin| bin as u64).collect();
        bins.extend(self.deep.keys().map(|&(bin, _)| bin));
        bins.sort_unstable();
        bins.dedup();
        bins.into_iter()
            .flat_map(|bin| self.of_bin(bin).into_iter().map(move |(rank, value)| (bin, rank, value)))
    }

    /// Checks the extensions of a bin that has so many items.
    pub(crate) fn verify(&self, bin: u64, items: usize) -> Result<(), InvariantError> {
        let deepest =
            self.deep.range(..=(bin, usize::MAX)).next_back().filter(|((other, _), _)| *other == bin);
        let last = deepest.map_or(64 - self.near(bin).leading_zeros() as usize, |((_, rank), _)| rank + 1);
        ensure!(last <= items, "bin {bin} has an extension for item {last} of {items}");
        Ok(())
    }
}

/// The extensions beyond the records, from what a file has of them: each item at most once.
fn deep_of(words: &[u64], bins: u64, ranks: u32) -> Result<BTreeMap<(u64, usize), Extension>, FormatError> {
    let (deep, _) = words.as_chunks::<3>();
    if !deep.is_sorted_by(|one, other| one[..2] < other[..2]) {
        return Err(unsound("the extensions are not in order"));
    }
    let entries = deep.iter().map(|&[bin, rank, number]| {
        let bin = in_range("the bin of an extension", bin, 0..=bins - 1)?;
        let rank = in_range("a rank", rank, ranks.into()..=u32::MAX.into())?;
        let value = Extensions::letter(number).filter(|&value| value != Extension::default());
        let value = value.ok_or(FormatError::BadNumber { name: "an extension", value: number })?;
        Ok(((bin, rank), value))
    });
    entries.collect()
}

/// The same extensions for the same items, wherever they lie.
impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.adapted == other.adapted && self.iter().eq(other.iter())
    }
}

/// An extension from the side store.
#[inline]
fn extension(len: u32, bits: u64) -> Extension {
    Extension::new(bits, len.min(Extension::MAX_LEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_that_are_no_set_are_refused() {
        let good = [3, 60, 1, 3, 61, 2, 4, 60, 1];
        assert_eq!(deep_of(&good, 5, 60).unwrap().len(), 3);
        let twice = [3, 60, 1, 3, 60, 2];
        let (unordered, no_bin, shallow, empty) = ([4, 60, 1, 3, 60, 1], [5, 60, 1], [3, 59, 1], [3, 60, 0]);
        for wrong in [&twice[..], &unordered, &no_bin, &shallow, &empty] {
            assert!(deep_of(wrong, 5, 60).is_err(), "{wrong:?}");
        }
    }
}
