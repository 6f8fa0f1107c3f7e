//! Where filter, remote and dictionary may disagree, and a remote that is watched for it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::GuardStats;
use crate::play::OwnedChange;
use crate::{Change, Remote, Visit};

/// What is not known since an operation failed half-way.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubts {
    /// Pairs of groups that are being applied, and whether the filter takes them to be there. Still here after the
    /// operation: it failed, or panicked. The filter has not followed, so the way back is to make them what it takes
    /// them for.
    pairs: BTreeMap<(u64, Box<[u8]>), bool>,
    /// Addresses at which the filter has met keys of others.
    open: Vec<u64>,
    /// Items there that no key explains. Only a scan helps.
    pub(super) unexplained: usize,
    /// The remote may hold any part of the keys: a rebuilding failed half-way.
    pub(super) lost: bool,
}

impl Doubts {
    /// Whether there is none that something can be done about now.
    pub(super) fn are_settled(&self) -> bool {
        self.pairs.is_empty() && self.open.is_empty() && !self.lost
    }

    /// The changes that take failed groups back.
    pub(super) fn way_back(&self) -> Vec<OwnedChange> {
        let back = |(pair, &inserts): (&(u64, Box<[u8]>), &bool)| {
            let (address, key) = pair.clone();
            OwnedChange { address, key, inserts }
        };
        self.pairs.iter().map(back).collect()
    }

    /// They were taken back.
    pub(super) fn forget_pairs(&mut self) {
        self.pairs.clear();
    }

    /// A group is about to be applied. Of a pair that was in doubt before the filter still thinks what it thought then.
    fn begin(&mut self, changes: &[Change<'_>]) {
        for OwnedChange { address, key, inserts } in changes.iter().map(OwnedChange::from) {
            self.pairs.entry((address, key)).or_insert(!inserts);
        }
    }

    /// The group was applied, and the filter follows.
    fn end(&mut self, changes: &[Change<'_>]) {
        for OwnedChange { address, key, .. } in changes.iter().map(OwnedChange::from) {
            self.pairs.remove(&(address, key));
        }
    }

    /// The filter has met keys of others at an address.
    pub(super) fn ask(&mut self, address: u64) {
        if !self.open.contains(&address) {
            self.open.push(address);
        }
    }

    /// An address to be looked at.
    pub(super) fn next_address(&self) -> Option<u64> {
        self.open.last().copied()
    }

    /// It was looked at.
    pub(super) fn forget_address(&mut self, address: u64) {
        self.open.retain(|other| *other != address);
    }

    /// Pairs and addresses in question.
    pub(super) fn count(&self) -> usize {
        self.pairs.len() + self.open.len()
    }
}

/// A remote that counts its accesses and remembers a group until it has succeeded.
pub(super) struct Watched<'a, R> {
    pub(super) remote: &'a mut R,
    pub(super) stats: &'a mut GuardStats,
    pub(super) doubts: &'a mut Doubts,
}

impl<R: Remote> Remote for Watched<'_, R> {
    type Error = R::Error;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), R::Error> {
        self.stats.remote_reads += 1;
        self.remote.range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        self.stats.remote_writes += 1;
        self.doubts.begin(changes);
        self.remote.apply(changes)?;
        self.doubts.end(changes);
        Ok(())
    }
}
