//! The fingerprints of a crowded quotient in the order of a dictionary.
//!
//! No fingerprint is a prefix of another, so the one that is a prefix of a key is the last that does not come behind
//! the key: any between the two would begin with it.

use crate::bins;
use crate::bits::BitString;

/// The fingerprints of a quotient; see the [module](self).
#[derive(Debug)]
pub(super) struct Roll(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    item: bins::Entry,
    string: BitString,
    rank: usize,
    claimed: bool,
}

impl Roll {
    /// Of these items, with their adaptivity bits and ranks.
    pub(super) fn new(entries: impl Iterator<Item = (bins::Entry, BitString, usize)>) -> Self {
        let entry = |(item, string, rank)| Entry { item, string, rank, claimed: false };
        let mut entries: Vec<Entry> = entries.map(entry).collect();
        entries.sort_unstable_by_key(Entry::order);
        Self(entries)
    }

    /// Items with their adaptivity bits and ranks.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (bins::Entry, BitString, usize)> {
        self.0.into_iter().map(|entry| (entry.item, entry.string, entry.rank))
    }

    /// The rank of the fingerprint that is a prefix of a key with this item and these adaptivity bits, unless it was
    /// claimed before. Keys of one digest have as many fingerprints, all alike.
    pub(super) fn claim(&mut self, item: bins::Entry, tail: BitString) -> Option<usize> {
        let end = self.0.partition_point(|entry| entry.order() <= (item, in_order(tail)));
        let is_its = |entry: &&mut Entry| entry.item == item && entry.string.is_prefix_of(tail);
        let its = self.0[..end].iter_mut().rev();
        let entry = its.take_while(is_its).find(|entry| !entry.claimed)?;
        entry.claimed = true;
        Some(entry.rank)
    }
}

impl Entry {
    fn order(&self) -> (bins::Entry, u128) {
        (self.item, in_order(self.string))
    }
}

/// Numbers in the order of bit strings, of which the first bit is the lowest.
fn in_order(string: BitString) -> u128 {
    string.bits().reverse_bits()
}
