//! One list of the remote, as it was read.

use super::ledger::{Ledger, ListSum};
use super::level::LevelFilter;
use super::levels::Levels;
use crate::{AdaptiveError, Change, Digest, KeyHasher};

/// The keys of one list, in order.
pub(super) struct List {
    pub(super) address: u64,
    entries: Vec<Entry>,
    /// All keys, one behind the other.
    bytes: Vec<u8>,
}

struct Entry {
    digest: Digest,
    /// Where its bytes end; they begin where those before it end.
    end: usize,
}

impl List {
    /// The list at an address, still without keys.
    pub(super) fn new(address: u64) -> Self {
        Self { address, entries: Vec::new(), bytes: Vec::new() }
    }

    pub(super) fn push<H: KeyHasher>(&mut self, key: &[u8], hasher: &H) {
        self.bytes.extend_from_slice(key);
        self.entries.push(Entry { digest: hasher.digest(key), end: self.bytes.len() });
    }

    /// The digest and the bytes of every key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Digest, &[u8])> {
        (0..self.entries.len()).map(|rank| (self.entries[rank].digest, self.key(rank)))
    }

    pub(super) fn key(&self, rank: usize) -> &[u8] {
        let start = if rank == 0 { 0 } else { self.entries[rank - 1].end };
        &self.bytes[start..self.entries[rank].end]
    }

    /// Where a key is, if it is there.
    pub(super) fn rank(&self, key: &[u8]) -> Option<usize> {
        self.iter().position(|(_, stored)| stored == key)
    }

    /// Whether there is a key of this rank that belongs here: it is at home, and there is none like it before it.
    pub(super) fn belongs(&self, rank: usize, ledger: &Ledger) -> bool {
        let Some(&Entry { digest, .. }) = self.entries.get(rank) else { return false };
        let like_it =
            |before: usize| self.entries[before].digest == digest && self.key(before) == self.key(rank);
        ledger.address(digest) == self.address && !(0..rank).any(like_it)
    }

    /// The digests of the keys that belong here.
    pub(super) fn belonging<'a>(&'a self, ledger: &'a Ledger) -> impl Iterator<Item = Digest> + 'a {
        let ranks = (0..self.entries.len()).filter(|&rank| self.belongs(rank, ledger));
        ranks.map(|rank| self.entries[rank].digest)
    }

    /// Takes out the keys that do not; from the end, so that ranks stay what they are.
    pub(super) fn drops<'a>(&'a self, ledger: &'a Ledger) -> impl Iterator<Item = Change<'a>> + 'a {
        let ranks = (0..self.entries.len()).rev().filter(|&rank| !self.belongs(rank, ledger));
        ranks.map(|rank| Change::Remove { address: self.address, rank, key: self.key(rank) })
    }

    /// The digests of all keys but the one of this rank.
    pub(super) fn neighbours(&self, except: Option<usize>) -> Vec<Digest> {
        let others = self.entries.iter().enumerate().filter(|&(rank, _)| Some(rank) != except);
        others.map(|(_, entry)| entry.digest).collect()
    }

    /// Refuses a list that is not what the filter has written: a key in it that does not belong there or that the levels do
    /// not hold as deep as its homes are dead, or keys that do not make the sum of the ledger.
    pub(super) fn check<F: LevelFilter, E>(
        &self,
        ledger: &Ledger,
        levels: &Levels<F>,
    ) -> Result<(), AdaptiveError<E>> {
        let (address, found) = (self.address, self.entries.len());
        let mut sum = ListSum::default();
        let mut good = 0;
        for (rank, entry) in self.entries.iter().enumerate() {
            sum.add(entry.digest);
            good += usize::from(levels.contains(entry.digest) && self.belongs(rank, ledger));
        }
        if good < found {
            return Err(AdaptiveError::Inconsistent { address, expected: good, found });
        }
        if sum != ledger.sum(address) {
            // Each of them may be right. Then at least one is lacking.
            return Err(AdaptiveError::Inconsistent { address, expected: found + 1, found });
        }
        Ok(())
    }
}
