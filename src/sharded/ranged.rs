//! The part of a shared remote that belongs to one shard, as if it were its own.

use std::ops::{ControlFlow, RangeInclusive};

use thiserror::Error;

use crate::play::OwnedChange;
use crate::{Change, KeyHasher, Remote, Visit};

use super::address;
use super::shard::Doubts;

/// Why a shard's part of the shared remote failed.
#[derive(Debug, Error)]
pub(super) enum RangeError<E: std::error::Error + 'static> {
    #[error(transparent)]
    Remote(E),
    /// The shard is larger than its range of addresses.
    #[error("the shard has no address for this place")]
    OutOfRange,
}

/// See the [module](self).
pub(super) struct Ranged<'r, R, H> {
    pub(super) remote: &'r mut R,
    pub(super) shard: usize,
    /// For filters whose addresses are hashes: the shared remote lacks some of their bits.
    pub(super) hasher: Option<&'r H>,
    /// The changes of groups that the remote has made or not.
    pub(super) doubts: &'r mut Doubts,
    /// Whether the remote is at work, or panicked.
    pub(super) busy: bool,
}

impl<R: Remote, H: KeyHasher> Ranged<'_, R, H> {
    fn busy<T>(
        &mut self,
        work: impl FnOnce(&mut R) -> Result<T, R::Error>,
    ) -> Result<T, RangeError<R::Error>> {
        self.busy = true;
        let result = work(self.remote);
        self.busy = false;
        result.map_err(RangeError::Remote)
    }
}

/// A change with the address of the shared remote; `None` if there is none.
pub(super) fn translated<'k>(shard: usize, change: &Change<'k>, by_hash: bool) -> Option<Change<'k>> {
    Some(match *change {
        Change::Insert { address, key } => {
            Change::Insert { address: address::shared(shard, address, by_hash)?, key }
        }
        Change::Remove { address, key } => {
            Change::Remove { address: address::shared(shard, address, by_hash)?, key }
        }
    })
}

/// Keys that share an address in the shared remote, where they lie in the order of keys and not of their own addresses.
#[derive(Default)]
struct Run {
    shared: u64,
    pairs: Vec<(u64, Box<[u8]>)>,
}

impl Run {
    fn visit(&mut self, own: &RangeInclusive<u64>, visit: &mut Visit<'_>) -> ControlFlow<()> {
        self.pairs.sort_unstable();
        let mut pairs = self.pairs.drain(..).filter(|(address, _)| own.contains(address));
        pairs.try_for_each(|(address, key)| visit(address, &key))
    }
}

impl<R: Remote, H: KeyHasher> Remote for Ranged<'_, R, H> {
    type Error = RangeError<R::Error>;

    fn range(&mut self, own: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Self::Error> {
        let hasher = self.hasher;
        let range = address::shared_range(self.shard, &own, hasher.is_some());
        if range.is_empty() {
            return Ok(());
        }
        let (mut run, mut over) = (Run::default(), false);
        self.busy(|remote| {
            remote.range(range, &mut |shared, key| {
                let Some(hasher) = hasher else { return visit(address::parts(shared).1, key) };
                if run.shared != shared && run.visit(&own, visit).is_break() {
                    over = true;
                    return ControlFlow::Break(());
                }
                run.shared = shared;
                run.pairs.push((hasher.digest(key).hi, key.into()));
                ControlFlow::Continue(())
            })
        })?;
        if !over {
            // The visitor's break ends the walk, and is no failure.
            let _ = run.visit(&own, visit);
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        let by_hash = self.hasher.is_some();
        let translated: Option<Vec<_>> =
            changes.iter().map(|change| translated(self.shard, change, by_hash)).collect();
        let (translated, before) = (translated.ok_or(RangeError::OutOfRange)?, self.doubts.len());
        self.doubts.extend(changes.iter().map(OwnedChange::from));
        self.busy(|remote| remote.apply(&translated))?;
        self.doubts.truncate(before);
        Ok(())
    }
}
