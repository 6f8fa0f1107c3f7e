//! What must hold of fingerprints on bins, and when two tables of bins are equal.

use crate::bins::Entry;
use crate::bits::BitString;
use crate::{InvariantError, error::ensure};

use super::fingerprint::TAIL_BITS;
use super::on_bins::BroomBins;

impl BroomBins {
    /// Every fingerprint that has a string, by its bin, class and tag, in an order of its own.
    fn sorted_strings(&self) -> Vec<(u64, Entry, u128, u32)> {
        let mut bin_and_items = (u64::MAX, None);
        let mut strings = Vec::with_capacity(self.strings.len());
        for (bin, rank, string) in self.strings.iter() {
            if bin_and_items.0 != bin {
                bin_and_items = (bin, Some(self.table.items_of(bin)));
            }
            let items = bin_and_items.1.as_ref().filter(|items| rank < items.len());
            strings.extend(items.map(|items| (bin, items.get(rank), string.bits(), string.len())));
        }
        strings.sort_unstable();
        strings
    }

    /// Fingerprints of a bin are free of prefixes, its strings belong to some of them, and its flags are right. Returns
    /// the length of its strings.
    pub(super) fn verify_bin(&self, bin: u64) -> Result<usize, InvariantError> {
        let (items, strings) = (self.table.items_of(bin), self.strings.of_bin(bin));
        let last = strings.last().map_or(0, |&(rank, _)| rank + 1);
        ensure!(last <= items.len(), "bin {bin} has a string for item {last} of {}", items.len());
        let (flags, expected) = (self.table.flags(bin), self.table.flags_of(self.adapted_classes(bin)));
        ensure!(flags == expected, "bin {bin} has the flags {flags:#x} instead of {expected:#x}");
        let string = |rank: usize| {
            strings.iter().find(|entry| entry.0 == rank).map_or(BitString::EMPTY, |entry| entry.1)
        };
        let mut prints: Vec<(Entry, BitString)> = items.iter().zip((0..).map(string)).collect();
        // In the order of a dictionary, whatever has a prefix among the others has one right before it.
        prints.sort_unstable_by_key(|&(entry, string)| (entry, string.bits().reverse_bits(), string.len()));
        for pair in prints.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            // Only keys of one digest, which nothing can tell apart, may have the same fingerprint.
            let twins = a.1.len() == TAIL_BITS;
            ensure!(
                a.0 != b.0 || twins || !a.1.is_prefix_of(b.1),
                "fingerprint {a:?} of bin {bin} is a prefix of {b:?}"
            );
        }
        Ok(strings.iter().map(|(_, string)| string.len() as usize).sum())
    }
}

/// The same fingerprints and ghosts. The order of equal tags means nothing.
impl PartialEq for BroomBins {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table
            && self.sorted_strings() == other.sorted_strings()
            && self.ghosts.same_ghosts(&other.ghosts)
    }
}
