//! Growth of adaptive filters.

#[cfg(doc)]
use crate::AdaptiveError;
use crate::{Adaptive, Remote, RemoteResult};

/// An adaptive filter that can be given more room.
///
/// Filters that were built [`growable`](crate::ExtensionFilterBuilder::growable) do it by themselves when they are
/// full. Plain filters do not implement this: they grow by themselves, up to the size that they were
/// [built for](crate::BinFilterBuilder::growable_to).
pub trait Growable: Adaptive {
    /// Doubles the capacity now. Repairs survive: a repaired false positive is back with probability ε at most.
    ///
    /// The memory of both sizes is needed while it lasts, and no memory in proportion to the keys beyond that.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] if the remote failed, memory is lacking, or the hash has no bits left for more slots; the
    /// filter is as it was, and still agrees with its remote.
    fn grow<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R>;
}
