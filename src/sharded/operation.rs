//! What can be done with an adaptive filter and any remote, as a value: to be played more than once.

use crate::{Adaptation, Adaptive, AdaptiveError, Growable, Remote, Resync};

/// One operation. Must do the same each time, and nothing to the filter if the remote fails.
pub(super) trait Operation<F> {
    type Output;

    /// Whether it may make the filter grow, which is not to be played.
    const GROWS: bool = false;

    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R)
    -> Result<Self::Output, AdaptiveError<R::Error>>;
}

pub(super) struct Inserting<'k>(pub(super) &'k [u8]);

impl<F: Adaptive> Operation<F> for Inserting<'_> {
    type Output = bool;
    const GROWS: bool = true;

    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>> {
        filter.insert(self.0, remote)
    }
}

pub(super) struct Removing<'k>(pub(super) &'k [u8]);

impl<F: Adaptive> Operation<F> for Removing<'_> {
    type Output = bool;

    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>> {
        filter.remove(self.0, remote)
    }
}

pub(super) struct Adapting<'k>(pub(super) &'k [u8]);

impl<F: Adaptive> Operation<F> for Adapting<'_> {
    type Output = Adaptation;

    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> Result<Adaptation, AdaptiveError<R::Error>> {
        filter.adapt(self.0, remote)
    }
}

/// At these addresses, as the filter knows them.
pub(super) struct Resyncing<'a>(pub(super) &'a [u64]);

impl<F: Adaptive> Operation<F> for Resyncing<'_> {
    type Output = Resync;

    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> Result<Resync, AdaptiveError<R::Error>> {
        filter.resync(self.0, remote)
    }
}

pub(super) struct Clearing;

impl<F: Adaptive> Operation<F> for Clearing {
    type Output = ();

    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        filter.clear(remote)
    }
}

pub(super) struct Growing;

impl<F: Growable> Operation<F> for Growing {
    type Output = ();

    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        filter.grow(remote)
    }
}

pub(super) struct Verifying;

impl<F: Adaptive> Operation<F> for Verifying {
    type Output = ();

    fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        filter.verify_remote(remote)
    }
}
