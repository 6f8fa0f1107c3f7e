//! A filter again from a scan of the stored keys, in bounded memory.

use std::ops::{ControlFlow, RangeInclusive};

use thiserror::Error;

use crate::{Adaptive, AdaptiveError, BuildError, Change, Remote, RemoteResult, Visit};

/// A filter could not be [rebuilt](Adaptive::rebuild). It is unchanged; the remote may hold any part of the keys.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum RebuildError<E, R> {
    /// The stored keys could not be read.
    #[error("cannot read the stored keys: {0}")]
    Keys(#[source] E),
    /// The remote failed, or the keys do not fit.
    #[error(transparent)]
    Filter(#[from] AdaptiveError<R>),
}

/// Keys that go to the remote in one group.
const GROUP: usize = 256;

pub(super) fn rebuilt<F: Adaptive, R: Remote, E>(
    filter: &F,
    keys: impl FnOnce(&mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), E>,
    remote: &mut R,
) -> Result<F, RebuildError<E, R::Error>> {
    let mut fresh = filter.emptied().map_err(out_of_memory)?;
    clear_remote(remote)?;
    let mut grouped = Grouped::new(remote);
    let mut failed = None;
    let mut visit = |key: &[u8]| match fresh.insert(key, &mut grouped) {
        Ok(_) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    };
    keys(&mut visit).map_err(RebuildError::Keys)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    grouped.flush().map_err(AdaptiveError::Remote)?;
    Ok(fresh)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
pub(crate) fn out_of_memory<E>(error: BuildError) -> AdaptiveError<E> {
    match error {
        BuildError::OutOfMemory { bytes } => AdaptiveError::OutOfMemory { bytes },
        // The same parameters were accepted when the filter was built.
        _ => AdaptiveError::OutOfMemory { bytes: 0 },
    }
}

/// Removes everything from a remote, in groups.
pub(crate) fn clear_remote<R: Remote>(remote: &mut R) -> RemoteResult<(), R> {
    clear_range(0..=u64::MAX, remote)
}

/// Removes the pairs of a range, in groups. One pass: what a store keeps itself stays, and is left alone.
pub(crate) fn clear_range<R: Remote>(addresses: RangeInclusive<u64>, remote: &mut R) -> RemoteResult<(), R> {
    let mut start = Some(*addresses.start());
    while let Some(from) = start.take() {
        let mut pairs: Vec<(u64, Box<[u8]>)> = Vec::with_capacity(GROUP);
        // A group ends where the address changes, so that the next one begins behind it.
        let visit = &mut |address: u64, key: &[u8]| {
            if pairs.len() >= GROUP && pairs.last().is_some_and(|last| last.0 != address) {
                start = Some(address);
                return ControlFlow::Break(());
            }
            pairs.push((address, key.into()));
            ControlFlow::Continue(())
        };
        remote.range(from..=*addresses.end(), visit).map_err(AdaptiveError::Remote)?;
        let changes: Vec<Change<'_>> =
            pairs.iter().map(|&(address, ref key)| Change::Remove { address, key }).collect();
        if !changes.is_empty() {
            remote.apply(&changes).map_err(AdaptiveError::Remote)?;
        }
    }
    Ok(())
}

/// A remote that gathers single insertions, which nearly all are, into groups.
pub(crate) struct Grouped<'r, R> {
    remote: &'r mut R,
    gathered: Vec<(u64, Box<[u8]>)>,
}

impl<'r, R: Remote> Grouped<'r, R> {
    pub(crate) fn new(remote: &'r mut R) -> Self {
        Self { remote, gathered: Vec::with_capacity(GROUP) }
    }

    /// Writes what was gathered. Must be called at the end.
    pub(crate) fn flush(&mut self) -> Result<(), R::Error> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let changes: Vec<Change<'_>> =
            self.gathered.iter().map(|&(address, ref key)| Change::Insert { address, key }).collect();
        self.remote.apply(&changes)?;
        self.gathered.clear();
        Ok(())
    }
}

impl<R: Remote> Remote for Grouped<'_, R> {
    type Error = R::Error;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), R::Error> {
        if self.gathered.iter().any(|(address, _)| addresses.contains(address)) {
            self.flush()?;
        }
        self.remote.range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        match *changes {
            // A group names each pair once.
            [Change::Insert { address, key }]
                if !self.gathered.iter().any(|(other, own)| *other == address && **own == *key) =>
            {
                self.gathered.push((address, key.into()));
                if self.gathered.len() < GROUP { Ok(()) } else { self.flush() }
            }
            _ => {
                self.flush()?;
                self.remote.apply(changes)
            }
        }
    }
}
