//! Operations of a filter in two runs, with the store between them.
//!
//! An operation that fails leaves its filter as it was. So it can be run on a remote that knows only the lists that were
//! fetched so far: it fails with what it lacks, that is fetched without any lock, and it runs again. When it comes to its group of
//! changes it fails once more; the group is committed, without a lock; and then it runs for good, on a remote that takes
//! the same group for made.

use std::collections::HashMap;
use std::ops::ControlFlow;

use besom::{Adaptive, AdaptiveError, Change, Remote};
use thiserror::Error;

/// What an operation lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Lacking {
    /// A list.
    #[error("the list at address {0} was not fetched")]
    List(u64),
    /// All lists. That is too much to be kept.
    #[error("all lists are needed")]
    Everything,
    /// Its group of changes was not made so far.
    #[error("the changes have not been made")]
    Group,
}

/// What is done with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Insert,
    Remove,
    Adapt,
}

impl Op {
    /// Whether it changed anything.
    pub(super) fn run<F: Adaptive, R: Remote>(
        self,
        filter: &mut F,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        match self {
            Self::Insert => filter.insert(key, remote),
            Self::Remove => filter.remove(key, remote),
            Self::Adapt => filter.adapt(key, remote).map(besom::Adaptation::is_fixed),
        }
    }
}

/// A [`Change`] that owns its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OwnedChange {
    Push { address: u64, key: Box<[u8]> },
    Remove { address: u64, rank: usize, key: Box<[u8]> },
    Replace { address: u64, rank: usize, old: Box<[u8]>, key: Box<[u8]> },
    Clear,
}

impl From<&Change<'_>> for OwnedChange {
    fn from(change: &Change<'_>) -> Self {
        match *change {
            Change::Push { address, key } => Self::Push { address, key: key.into() },
            Change::Remove { address, rank, key } => Self::Remove { address, rank, key: key.into() },
            Change::Replace { address, rank, old, key } => {
                Self::Replace { address, rank, old: old.into(), key: key.into() }
            }
            Change::Clear => Self::Clear,
        }
    }
}

impl OwnedChange {
    pub(super) fn borrowed(&self) -> Change<'_> {
        match self {
            Self::Push { address, key } => Change::Push { address: *address, key },
            Self::Remove { address, rank, key } => Change::Remove { address: *address, rank: *rank, key },
            Self::Replace { address, rank, old, key } => {
                Change::Replace { address: *address, rank: *rank, old, key }
            }
            Self::Clear => Change::Clear,
        }
    }
}

/// The lists that were fetched.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    lists: HashMap<u64, Vec<Box<[u8]>>>,
}

impl Evidence {
    /// Fetches a list.
    pub(super) fn fetch<E>(
        &mut self,
        address: u64,
        read: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut list = Vec::new();
        read(&mut |key| list.push(key.into()))?;
        self.lists.insert(address, list);
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.lists.clear();
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Rehearsal<'e> {
    evidence: &'e Evidence,
    /// The group that was committed.
    made: Option<&'e [OwnedChange]>,
    /// The group that was asked for.
    pub(super) group: Vec<OwnedChange>,
}

impl<'e> Rehearsal<'e> {
    /// A run that fails when it comes to its changes.
    pub(super) fn of(evidence: &'e Evidence) -> Self {
        Self { evidence, made: None, group: Vec::new() }
    }

    /// The run for good, after these changes were committed.
    pub(super) fn after(evidence: &'e Evidence, made: &'e [OwnedChange]) -> Self {
        Self { evidence, made: Some(made), group: Vec::new() }
    }
}

impl Remote for Rehearsal<'_> {
    type Error = Lacking;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Lacking> {
        let list = self.evidence.lists.get(&address).ok_or(Lacking::List(address))?;
        list.iter().for_each(|key| visit(key));
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Lacking> {
        // Two groups are more than one commit can be asked about.
        if !self.group.is_empty() {
            return Err(Lacking::Everything);
        }
        self.group.extend(changes.iter().map(OwnedChange::from));
        match self.made {
            Some(made) if made == self.group => Ok(()),
            _ => Err(Lacking::Group),
        }
    }

    fn scan(&mut self, _: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Lacking> {
        Err(Lacking::Everything)
    }
}
