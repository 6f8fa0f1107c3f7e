//! A filter as the set of its fingerprints, for deltas between two states of it.

use crate::KeyHasher;

use super::filter::BinFilter;
use super::line::Entry;

impl<H: KeyHasher> BinFilter<H> {
    /// All fingerprints as numbers, ascending: bin, class and tag.
    pub(crate) fn fingerprints(&self) -> Vec<u64> {
        let bits = self.table.shape().entry_bits();
        let mut numbers: Vec<u64> =
            self.table.items().map(|(bin, Entry(entry))| bin << bits | u64::from(entry)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// One more than the largest number that a fingerprint can be.
    pub(crate) fn fingerprint_bound(&self) -> u64 {
        self.table.bins() << self.table.shape().entry_bits()
    }

    /// Removes and adds fingerprints, all below the bound. `false` if one is missing or there is no room for one; the filter is of no
    /// use then.
    pub(crate) fn change_fingerprints(&mut self, removed: &[u64], added: &[u64]) -> bool {
        let bits = self.table.shape().entry_bits();
        let parts = |number: u64| (number >> bits, Entry((number & ((1 << bits) - 1)) as u32));
        let room =
            self.table.len.saturating_sub(removed.len()) + added.len() <= crate::Filter::capacity(self);
        let gone = removed
            .iter()
            .map(|&number| parts(number))
            .all(|(bin, entry)| self.table.contains_entry(bin, entry) && self.table.remove_entry(bin, entry));
        let mut added = added.iter().map(|&number| parts(number));
        room && gone && added.all(|(bin, entry)| self.table.insert_entry(bin, entry).is_ok())
    }
}
