//! Where filter, remote and dictionary may disagree, and a remote that is watched for it.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, RangeInclusive};

use super::GuardStats;
use crate::play::OwnedChange;
use crate::{Change, Digest, Remote};

/// What is not known since an operation failed half-way.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubts {
    /// The group that is being applied. Still there after the operation: it failed, or panicked. The filter has not followed, so
    /// the way back is to take the group back.
    group: Vec<OwnedChange>,
    /// Keys that the dictionary may have taken or given up, or not, with the upper halves of their digests. The filter accepts
    /// them all.
    keys: BTreeSet<(u64, Box<[u8]>)>,
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
        self.group.is_empty() && self.keys.is_empty() && self.open.is_empty() && !self.lost
    }

    /// The changes that take a failed group back.
    pub(super) fn way_back(&self) -> Vec<OwnedChange> {
        let back = |change: &OwnedChange| OwnedChange { inserts: !change.inserts, ..change.clone() };
        self.group.iter().map(back).collect()
    }

    /// The group was taken back.
    pub(super) fn forget_group(&mut self) {
        self.group.clear();
    }

    /// The dictionary is about to change what it has of a key.
    pub(super) fn begin(&mut self, digest: Digest, key: &[u8]) {
        self.keys.insert((digest.hi, key.into()));
    }

    /// The dictionary has said what it has of a key, and the filter has followed.
    pub(super) fn end(&mut self, digest: Digest, key: &[u8]) {
        self.keys.remove(&(digest.hi, key.into()));
    }

    /// A key that the dictionary has to be asked about.
    pub(super) fn next_key(&self) -> Option<(u64, Box<[u8]>)> {
        self.keys.first().cloned()
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

    /// Keys and addresses in question.
    pub(super) fn count(&self) -> usize {
        self.group.len() + self.keys.len() + self.open.len()
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

    fn range(
        &mut self,
        addresses: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), R::Error> {
        self.stats.remote_reads += 1;
        self.remote.range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        self.stats.remote_writes += 1;
        self.doubts.group = changes.iter().map(OwnedChange::from).collect();
        self.remote.apply(changes)?;
        self.doubts.group.clear();
        Ok(())
    }
}
