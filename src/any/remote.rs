//! Remotes of any type behind one type of error.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;

use crate::{AdaptiveError, Change, Remote, Visit};

/// The error of some remote.
#[derive(Debug)]
pub struct AnyRemoteError(Box<dyn Error + Send + Sync>);

impl fmt::Display for AnyRemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for AnyRemoteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl AnyRemoteError {
    /// Returns the error itself, to be downcast.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }
}

/// A remote whose error is [`AnyRemoteError`], so that a [`DynFilter`](super::DynFilter) can use it.
///
/// ```
/// use besom::any::{AnyRemote, dyn_adaptive};
/// use besom::{ExtensionFilter, MemoryRemote};
///
/// let mut filter = dyn_adaptive(ExtensionFilter::with_capacity(100)?);
/// let mut remote = AnyRemote(MemoryRemote::new());
/// filter.insert(b"key", &mut remote)?;
/// assert!(filter.contains(b"key"));
/// assert_eq!(remote.0.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyRemote<R>(pub R);

fn erase<E: Error + Send + Sync + 'static>(error: E) -> AnyRemoteError {
    AnyRemoteError(Box::new(error))
}

impl<R: Remote> Remote for AnyRemote<R> {
    type Error = AnyRemoteError;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), AnyRemoteError> {
        self.0.range(addresses, visit).map_err(erase)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), AnyRemoteError> {
        self.0.apply(changes).map_err(erase)
    }

    fn begin_groups(&mut self) -> Result<(), AnyRemoteError> {
        self.0.begin_groups().map_err(erase)
    }
}

/// What stands for an error that is kept elsewhere.
#[derive(Debug, thiserror::Error)]
#[error("the remote failed")]
struct Kept;

/// A remote behind a pointer, and the error that it returned.
pub(super) struct Lent<'r, R: Remote> {
    remote: &'r mut R,
    error: Option<R::Error>,
}

impl<'r, R: Remote> Lent<'r, R> {
    /// Lends the remote to `operation`, and gives its own error back.
    pub(super) fn to<T>(
        remote: &'r mut R,
        operation: impl FnOnce(&mut Self) -> Result<T, AdaptiveError<AnyRemoteError>>,
    ) -> Result<T, AdaptiveError<R::Error>> {
        let mut lent = Self { remote, error: None };
        let result = operation(&mut lent);
        result.map_err(|error| {
            error.map_remote(|_| lent.error.take().map_or(AdaptiveError::UNTOLD, AdaptiveError::Remote))
        })
    }

    fn keep(&mut self, error: R::Error) -> AnyRemoteError {
        self.error = Some(error);
        erase(Kept)
    }
}

impl<R: Remote> Remote for Lent<'_, R> {
    type Error = AnyRemoteError;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), AnyRemoteError> {
        self.remote.range(addresses, visit).map_err(|error| self.keep(error))
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), AnyRemoteError> {
        self.remote.apply(changes).map_err(|error| self.keep(error))
    }

    fn begin_groups(&mut self) -> Result<(), AnyRemoteError> {
        self.remote.begin_groups().map_err(|error| self.keep(error))
    }
}
