//! A filter anew from a scan of the stored keys, in bounded memory.

use std::ops::ControlFlow;

use thiserror::Error;

use crate::{Adaptive, AdaptiveError, BuildError, Change, Remote};

/// A filter could not be [rebuilt](Adaptive::rebuild). It is unchanged; the remote may hold any part of the keys.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum RebuildError<E, R> {
    /// The stored keys could not be read.
    #[error("the stored keys could not be read: {0}")]
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
    remote.apply(&[Change::Clear]).map_err(AdaptiveError::Remote)?;
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

/// A remote that gathers single pushes, which nearly all insertions are, into groups.
pub(crate) struct Grouped<'r, R> {
    remote: &'r mut R,
    pushes: Vec<(u64, Box<[u8]>)>,
}

impl<'r, R: Remote> Grouped<'r, R> {
    pub(crate) fn new(remote: &'r mut R) -> Self {
        Self { remote, pushes: Vec::with_capacity(GROUP) }
    }

    /// Writes what was gathered. Must be called at the end.
    pub(crate) fn flush(&mut self) -> Result<(), R::Error> {
        if self.pushes.is_empty() {
            return Ok(());
        }
        let changes: Vec<Change<'_>> =
            self.pushes.iter().map(|&(address, ref key)| Change::Push { address, key }).collect();
        self.remote.apply(&changes)?;
        self.pushes.clear();
        Ok(())
    }
}

impl<R: Remote> Remote for Grouped<'_, R> {
    type Error = R::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), R::Error> {
        if self.pushes.iter().any(|push| push.0 == address) {
            self.flush()?;
        }
        self.remote.read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        if let &[Change::Push { address, key }] = changes {
            self.pushes.push((address, key.into()));
            return if self.pushes.len() < GROUP { Ok(()) } else { self.flush() };
        }
        self.flush()?;
        self.remote.apply(changes)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), R::Error> {
        self.flush()?;
        self.remote.scan(visit)
    }

    fn prefetch(&self, address: u64) {
        self.remote.prefetch(address);
    }
}
