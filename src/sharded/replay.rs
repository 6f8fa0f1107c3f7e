//! Operations that wait for a remote, without keeping those waiting who only ask.
//!
//! An operation of an adaptive filter reads lists, makes one group of changes to the remote, and then changes memory. If the
//! remote fails, memory is as it was. So the operation can be **played** as often as it takes, each time under the lock of
//! the filter and against a remote that answers at once, from what is known so far:
//!
//! 1. A list that is not known yet: the operation fails. The list is read, with no lock on the filter, and the operation is
//!    played again.
//! 2. The group of changes: it is written down, and the operation fails. The remote makes the changes, again without a lock;
//!    if that fails, so does the operation, and memory is as it was.
//! 3. The operation is played for the last time. It asks for the same lists, makes the same group, is told that it was made,
//!    and changes memory.
//!
//! Only one operation of a shard is under way at a time, so nothing that it was planned on can change in between. What needs a
//! scan or many groups (growth, a rehash) is not played: see [`Ranged`].

use std::ops::{ControlFlow, RangeInclusive};

use thiserror::Error;

use crate::{Change, Remote};

use super::address;
use super::shard::Doubts;

/// Why an operation could not be played to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Pause {
    #[error("the list at address {0} has not been read yet")]
    Read(u64),
    #[error("the changes have not been made yet")]
    Apply,
    #[error("this takes more than lists and one group of changes")]
    Beyond,
}

/// What is known of the remote so far. Addresses are those that the filter knows.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// Keys, one behind the other.
    bytes: Vec<u8>,
    /// Where the keys of all lists end in `bytes`.
    ends: Vec<usize>,
    /// Addresses that were read, and where their lists are in `ends`.
    lists: Vec<(u64, std::ops::Range<usize>)>,
    /// The group of changes, if it is known.
    group: Vec<Step>,
    group_bytes: Vec<u8>,
    /// Whether the remote has made it.
    pub(super) applied: bool,
}

/// One change of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    address: u64,
    what: What,
    /// The key that is pushed or removed, or the new one, as a part of `group_bytes`.
    key: (usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Push,
    Remove { rank: usize },
    Replace { rank: usize, old: (usize, usize) },
}

impl Replay {
    /// Forgets everything, for the next operation.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.lists.clear();
        self.forget_group();
        self.applied = false;
    }

    fn forget_group(&mut self) {
        self.group.clear();
        self.group_bytes.clear();
    }

    /// Reads a list from the remote.
    pub(super) fn fetch<R: Remote>(&mut self, own: u64, shared: u64, remote: &mut R) -> Result<(), R::Error> {
        let first = self.ends.len();
        let (bytes, ends) = (&mut self.bytes, &mut self.ends);
        remote.read(shared, &mut |key| {
            bytes.extend_from_slice(key);
            ends.push(bytes.len());
        })?;
        self.lists.push((own, first..self.ends.len()));
        Ok(())
    }

    /// The addresses of the group.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.group.iter().map(|step| step.address)
    }

    /// Has the remote make the group, at the addresses that `shared` says.
    pub(super) fn apply<R: Remote>(
        &mut self,
        shared: impl Fn(u64) -> u64,
        remote: &mut R,
    ) -> Result<(), R::Error> {
        let change = |step: &Step| self.change(step, shared(step.address));
        match &self.group[..] {
            [step] => remote.apply(&[change(step)])?,
            steps => remote.apply(&steps.iter().map(change).collect::<Vec<_>>())?,
        }
        self.applied = true;
        Ok(())
    }

    fn change(&self, step: &Step, address: u64) -> Change<'_> {
        let bytes = |(from, to): (usize, usize)| &self.group_bytes[from..to];
        let key = bytes(step.key);
        match step.what {
            What::Push => Change::Push { address, key },
            What::Remove { rank } => Change::Remove { address, rank, key },
            What::Replace { rank, old } => Change::Replace { address, rank, old: bytes(old), key },
        }
    }

    fn note(&mut self, change: &Change<'_>) -> Result<(), Pause> {
        let mut keep = |key: &[u8]| {
            let from = self.group_bytes.len();
            self.group_bytes.extend_from_slice(key);
            (from, self.group_bytes.len())
        };
        let step = match *change {
            Change::Push { address, key } => Step { address, what: What::Push, key: keep(key) },
            Change::Remove { address, rank, key } => {
                Step { address, what: What::Remove { rank }, key: keep(key) }
            }
            Change::Replace { address, rank, old, key } => {
                let key = keep(key);
                Step { address, what: What::Replace { rank, old: keep(old) }, key }
            }
            Change::Clear => return Err(Pause::Beyond),
        };
        self.group.push(step);
        Ok(())
    }

    /// Whether these are the changes that the remote has made.
    fn is_group(&self, changes: &[Change<'_>]) -> bool {
        let made = self.group.iter().map(|step| self.change(step, step.address));
        made.eq(changes.iter().copied())
    }
}

impl Remote for Replay {
    type Error = Pause;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Pause> {
        let known = self.lists.iter().find(|list| list.0 == address);
        let (_, list) = known.ok_or(Pause::Read(address))?;
        let mut from = list.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        for &end in &self.ends[list.clone()] {
            visit(&self.bytes[from..end]);
            from = end;
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Pause> {
        if self.applied {
            return if self.is_group(changes) { Ok(()) } else { Err(Pause::Beyond) };
        }
        self.forget_group();
        changes.iter().try_for_each(|change| self.note(change))?;
        Err(Pause::Apply)
    }

    fn scan(&mut self, _: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Pause> {
        Err(Pause::Beyond)
    }
}

/// Why a shard's part of the shared remote failed.
#[derive(Debug, Error)]
pub(super) enum RangeError<E: std::error::Error + 'static> {
    #[error(transparent)]
    Remote(E),
    /// The shard is larger than its range of addresses.
    #[error("the shard has no address for this place")]
    OutOfRange,
}

/// The part of the shared remote that belongs to one shard, as if it were its own.
///
/// What cannot be played is done with it, on a copy of the shard that takes its place afterwards. While it lasts, the
/// shard is asked as it was.
pub(super) struct Ranged<'r, R> {
    pub(super) remote: &'r mut R,
    pub(super) shard: usize,
    /// Addresses of groups that the remote has made or not.
    pub(super) doubts: &'r mut Doubts,
    /// Whether the remote is at work, or panicked.
    pub(super) busy: bool,
    /// Whether the whole remote was cleared already, for all shards.
    pub(super) cleared: bool,
}

impl<R: Remote> Ranged<'_, R> {
    fn shared(&self, own: u64) -> Result<u64, RangeError<R::Error>> {
        address::shared(self.shard, own).ok_or(RangeError::OutOfRange)
    }

    fn busy<T>(
        &mut self,
        work: impl FnOnce(&mut R) -> Result<T, R::Error>,
    ) -> Result<T, RangeError<R::Error>> {
        self.busy = true;
        let result = work(self.remote);
        self.busy = false;
        result.map_err(RangeError::Remote)
    }

    fn translated<'k>(&self, change: &Change<'k>) -> Result<Option<Change<'k>>, RangeError<R::Error>> {
        Ok(Some(match *change {
            Change::Push { address, key } => Change::Push { address: self.shared(address)?, key },
            Change::Remove { address, rank, key } => {
                Change::Remove { address: self.shared(address)?, rank, key }
            }
            Change::Replace { address, rank, old, key } => {
                Change::Replace { address: self.shared(address)?, rank, old, key }
            }
            // Nobody clears a shard alone.
            Change::Clear if self.cleared => return Ok(None),
            Change::Clear => return Err(RangeError::OutOfRange),
        }))
    }
}

impl<R: Remote> Remote for Ranged<'_, R> {
    type Error = RangeError<R::Error>;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        let address = self.shared(address)?;
        self.busy(|remote| remote.read(address, visit))
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        let translated: Result<Vec<_>, _> =
            changes.iter().filter_map(|change| self.translated(change).transpose()).collect();
        let translated = translated?;
        if translated.is_empty() {
            return Ok(());
        }
        let before = self.doubts.len();
        self.doubts.extend(changes.iter().filter_map(address_of));
        self.busy(|remote| remote.apply(&translated))?;
        self.doubts.truncate(before);
        Ok(())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Self::Error> {
        self.scan_range(0..=u64::MAX, visit)
    }

    /// Of its own addresses, all that this has a use for is all of them.
    fn scan_range(
        &mut self,
        own: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        let range = address::range(self.shard);
        self.busy(|remote| {
            remote.scan_range(range, &mut |shared, key| {
                let (_, address) = address::own(shared);
                if own.contains(&address) { visit(address, key) } else { ControlFlow::Continue(()) }
            })
        })
    }

    fn prefetch(&self, address: u64) {
        if let Some(address) = address::shared(self.shard, address) {
            self.remote.prefetch(address);
        }
    }
}

fn address_of(change: &Change<'_>) -> Option<u64> {
    match *change {
        Change::Push { address, .. } | Change::Remove { address, .. } | Change::Replace { address, .. } => {
            Some(address)
        }
        Change::Clear => None,
    }
}
