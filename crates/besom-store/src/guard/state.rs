//! What a store keeps in memory, behind one lock that is held for the time of a change to memory and never longer.

use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use besom::{Adaptive, Digest};

/// Repairs that wait for a write to end. Beyond these they are given up: the query will come again, or it does not matter.
const MAX_WAITING: usize = 4096;

/// Changes that are remembered. What was read before the oldest of them has to be read again.
const MAX_RECENT: usize = 4096;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct State<F> {
    pub(super) filter: F,
    /// A copy of the filter is being worked on, and will take its place: nothing else may change the filter until then.
    pub(super) frozen: bool,
    /// The database may have gone back to an earlier state: keys that the filter does not have may be there. Every key
    /// is a "maybe" until the filter was built again.
    pub(super) blind: bool,
    /// Filter and index disagree. No stored key is rejected, but only building the filter again helps.
    pub(super) lost: bool,
    /// A repair is changing filter and index, one after the other. Nobody else repairs until both have it.
    pub(super) apart: bool,
    /// The keys, with the upper halves of their digests, that a failed write may have inserted or removed, or that were written
    /// without asking whether they were there. The filter accepts all that are stored, with an item of their own.
    pub(super) doubts: BTreeSet<(u64, Box<[u8]>)>,
    /// Some of them are of a failed write: the next write settles them.
    pub(super) urgent: bool,
    pub(super) changes: Changes,
    /// False positives that wait for their repair, each once however often it is asked for.
    pub(super) waiting: BTreeSet<Box<[u8]>>,
}

impl<F: Adaptive> State<F> {
    pub(super) fn new(filter: F) -> Self {
        Self {
            filter,
            frozen: false,
            blind: false,
            lost: false,
            apart: false,
            doubts: BTreeSet::new(),
            urgent: false,
            changes: Changes::default(),
            waiting: BTreeSet::new(),
        }
    }

    /// Whether the store may have the key with this digest. `false` is certain.
    #[inline]
    pub(super) fn accepts(&self, digest: Digest) -> bool {
        self.filter.contains_digest(digest) || self.blind
    }

    /// Whether the filter may be repaired now.
    pub(super) fn is_settled(&self) -> bool {
        !(self.frozen || self.blind || self.lost || self.apart)
    }

    /// Whether what was read of these addresses, after the stamp was taken, is what the filter stands for.
    pub(super) fn is_current(&self, stamp: u64, addresses: &RangeInclusive<u64>) -> bool {
        if !F::HASH_ADDRESSED {
            // A change of one key may move any other.
            return self.doubts.is_empty() && self.changes.is_still(stamp);
        }
        let doubt = self.doubts.range((*addresses.start(), Box::default())..).next();
        doubt.is_none_or(|(hi, _)| hi > addresses.end()) && self.changes.is_untouched(stamp, addresses)
    }

    /// Lets a repair wait. Whether there was room.
    pub(super) fn postpone(&mut self, key: &[u8]) -> bool {
        let room = self.waiting.len() < MAX_WAITING;
        if room {
            self.waiting.insert(key.into());
        }
        room || self.waiting.contains(key)
    }
}

/// When which part of the store was changed.
///
/// What is read without a lock is good if nothing that it covers has changed since. A write is *active* from before it begins
/// until database and filter both have it. Anyone who reads takes a stamp first: every write that ended before is in what is
/// read then.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// How many writes have ended.
    count: u64,
    /// The hashes that the write under way changes, sorted.
    active: Vec<u64>,
    /// Those of the writes that ended last, with their counts.
    recent: VecDeque<(u64, u64)>,
    /// All changes behind this count are among the recent ones.
    forgotten: u64,
}

impl Changes {
    pub(super) fn stamp(&self) -> u64 {
        self.count
    }

    /// A write of these hashes begins. There is one at a time.
    pub(super) fn begin(&mut self, mut hashes: Vec<u64>) {
        hashes.sort_unstable();
        self.active = hashes;
    }

    /// The write has ended.
    pub(super) fn end(&mut self) {
        self.count += 1;
        let active = std::mem::take(&mut self.active);
        if active.len() > MAX_RECENT {
            self.forget();
            return;
        }
        self.recent.extend(active.into_iter().map(|hash| (self.count, hash)));
        while self.recent.len() > MAX_RECENT {
            self.forgotten = self.recent.pop_front().map_or(self.count, |(count, _)| count);
        }
    }

    /// Something was found out about these hashes, or keys have moved: what was read before is not to be trusted any more.
    pub(super) fn touch(&mut self, hashes: Vec<u64>) {
        self.begin(hashes);
        self.end();
    }

    /// Nothing that was read before is to be trusted any more.
    pub(super) fn forget(&mut self) {
        self.count += 1;
        self.recent.clear();
        self.forgotten = self.count;
    }

    /// Whether no write has begun since the stamp was taken, nor was under way then.
    fn is_still(&self, stamp: u64) -> bool {
        self.count == stamp && self.active.is_empty()
    }

    /// The same, of writes that changed any of these hashes.
    pub(super) fn is_untouched(&self, stamp: u64, hashes: &RangeInclusive<u64>) -> bool {
        let active = self.active.partition_point(|hash| hash < hashes.start());
        stamp >= self.forgotten
            && self.active.get(active).is_none_or(|hash| hash > hashes.end())
            && !self
                .recent
                .iter()
                .rev()
                .take_while(|(count, _)| *count > stamp)
                .any(|(_, hash)| hashes.contains(hash))
    }
}

#[cfg(test)]
mod tests {
    //! Catches: what was read being taken for current although a write has changed it, or is about to.
    use super::*;

    #[test]
    fn a_write_is_noticed_from_its_beginning_on() {
        let mut changes = Changes::default();
        let before = changes.stamp();
        changes.begin(vec![9, 5]);
        assert!(changes.is_untouched(before, &(6..=8)) && !changes.is_still(before));
        assert!(!changes.is_untouched(before, &(0..=5)) && !changes.is_untouched(before, &(9..=9)));
        let during = changes.stamp();
        changes.end();
        assert!(!changes.is_untouched(during, &(5..=5)), "it was read before the write had ended");
        let after = changes.stamp();
        assert!(changes.is_untouched(after, &(0..=u64::MAX)) && changes.is_still(after));
        assert!(changes.is_untouched(before, &(10..=20)) && !changes.is_still(before));
    }

    #[test]
    fn what_is_forgotten_is_not_trusted() {
        let mut changes = Changes::default();
        let before = changes.stamp();
        changes.begin(vec![7; MAX_RECENT + 1]);
        changes.end();
        assert!(!changes.is_untouched(before, &(1..=1)) && changes.is_untouched(changes.stamp(), &(1..=1)));
        let before = changes.stamp();
        for hash in 0..MAX_RECENT as u64 + 1 {
            changes.begin(vec![hash]);
            changes.end();
        }
        assert!(!changes.is_untouched(before, &(1 << 40..=1 << 41)));
        assert!(changes.is_untouched(before + 1, &(1 << 40..=1 << 41)));
        assert!(!changes.is_untouched(before + 1, &(1..=1)));
        let before = changes.stamp();
        changes.touch(vec![7]);
        assert!(!changes.is_untouched(before, &(7..=7)) && changes.is_untouched(before, &(8..=8)));
        assert!(!changes.is_still(before));
        changes.forget();
        assert!(!changes.is_untouched(before, &(8..=8)) && changes.is_untouched(changes.stamp(), &(7..=7)));
    }
}
