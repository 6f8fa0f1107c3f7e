//! One remote for many threads.

use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Change, Remote, Visit};

/// A remote that threads take turns with: for tests, and for stores that know no better.
///
/// A thread that panicked inside of the remote leaves it as it was at that moment, and the others go on: that is one of
/// the failures after which a group of changes was made or not, and [every filter](crate::Adaptive#when-things-fail)
/// finds its way back from it.
///
/// ```
/// use std::sync::Mutex;
/// use besom::{Adaptive, MemoryRemote, TelescopingFilter};
///
/// let remote = Mutex::new(MemoryRemote::new());
/// TelescopingFilter::with_capacity(10)?.insert("key", &mut &remote)?;
/// assert_eq!(remote.into_inner()?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<R: Remote> Remote for &Mutex<R> {
    type Error = R::Error;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), R::Error> {
        lock(self).range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        lock(self).apply(changes)
    }
}

fn lock<R>(remote: &Mutex<R>) -> MutexGuard<'_, R> {
    remote.lock().unwrap_or_else(PoisonError::into_inner)
}
