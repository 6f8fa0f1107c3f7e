//! What adaptive filters add: operations that keep a remote in step, repair, and the way back after a failure.

use std::ops::ControlFlow;

use crate::{Adaptation, AdaptiveError, BuildError, Digest, Filter, Key, RebuildError, Remote};

use super::rebuild;

/// A filter that repairs its false positives with the help of a [`Remote`].
///
/// The remote is what the filter was built up with. Inserting a key twice keeps set semantics: the remote knows what is
/// stored.
///
/// # When things fail
///
/// Every operation reads what it needs, makes one group of changes to the remote, and changes the filter only after
/// that has succeeded. So an error (or a panic, or a future that is dropped) leaves the filter as it was. It does not
/// always leave the *remote* as it was: an error of a store means "done or not done", and a commit that timed out may
/// have happened. Then the two disagree at the addresses of that group, and operations there answer
/// [`AdaptiveError::Inconsistent`], until one of the two ways back is taken:
///
/// - [`resync`](Self::resync), for a few addresses, by reading their lists;
/// - [`rebuild`](Self::rebuild), for the whole filter, from a scan of the stored keys.
///
/// In the meantime nothing is lost: the filter goes on answering "maybe present" for every key that it held.
/// [`Guard`](crate::Guard) takes both ways by itself.
///
/// What the remote says is checked: a key of a list must have the place that its address stands for and the bits that
/// its slot holds. If it has not, the answer is `Inconsistent`, and nothing changes.
pub trait Adaptive: Filter {
    /// Inserts a key. `false` if it was there already.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Full`] without room for it, [`AdaptiveError::Remote`] if the remote failed,
    /// [`AdaptiveError::Inconsistent`] if it holds other keys than the filter; the filter is unchanged.
    fn insert<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote;

    /// Removes a key. `false`, and nothing changes, if it was not there.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Remote`] if the remote failed, [`AdaptiveError::Inconsistent`] if it holds other keys than the
    /// filter; the filter is unchanged.
    fn remove<K, R>(&mut self, key: &K, remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote;

    /// Repairs the false positive `key`, so that the filter no longer answers "maybe present" for it.
    ///
    /// Harmless for a stored key and for one that the filter rejects already: the answer is then
    /// [`Adaptation::NotFalsePositive`].
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Remote`] if the remote failed, [`AdaptiveError::Inconsistent`] if it holds other keys than the
    /// filter; the filter is unchanged.
    fn adapt<K, R>(&mut self, key: &K, remote: &mut R) -> Result<Adaptation, AdaptiveError<R::Error>>
    where
        K: Key + ?Sized,
        R: Remote;

    /// Removes all keys and repairs, from the remote as well; capacity and seed stay.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] if the remote failed or memory is lacking; the filter is unchanged.
    fn clear<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>>;

    /// Checks that filter and remote hold the same keys: every key of the remote, and every slot of the filter. Scans the
    /// whole remote.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Inconsistent`] for the first address where they do not, or what the remote reports.
    fn verify_remote<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>>;

    /// Brings filter and remote back into step at these addresses, after an operation that changed them failed half-way or
    /// was answered with [`AdaptiveError::Inconsistent`].
    ///
    /// Reads the lists. If their keys explain every slot that the filter has there, the filter takes in keys that it did not
    /// know, keeps the repairs of those that it did, and puts the lists into its own order where they are not. A slot that
    /// no key explains is no proof that its key is gone: then nothing changes, the slot goes on answering "maybe
    /// present", and the answer is [`Resync::InQuestion`]. Addresses of one failed group belong in one call.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] if the remote failed or a key that it has finds no room; the filter still holds every key that it
    /// held.
    fn resync<R: Remote>(
        &mut self,
        addresses: &[u64],
        remote: &mut R,
    ) -> Result<Resync, AdaptiveError<R::Error>>;

    /// The address whose list has the key with this digest, if it is stored; `None` where there is no single one, as in
    /// cuckoo based filters.
    ///
    /// What a store needs that keeps data in the lists themselves, or that fetches a list along with the data. It changes
    /// with the filter: after a growth or a repair a key may have another one.
    fn address_of(&self, digest: Digest) -> Option<u64> {
        let _ = digest;
        None
    }

    /// An empty filter with the same parameters, and hash functions that were not used so far where repairs depend on
    /// that.
    ///
    /// # Errors
    ///
    /// [`BuildError::OutOfMemory`] if the memory is not to be had.
    fn emptied(&self) -> Result<Self, BuildError>
    where
        Self: Sized;

    /// Becomes a filter of exactly the keys that `keys` hands to its visitor, and makes the remote hold exactly these: the
    /// way back that always leads home. Repairs are forgotten.
    ///
    /// Needs the memory of a second filter while it lasts, and no memory in proportion to the keys beyond that. The remote
    /// is emptied and written in groups of a few hundred keys.
    ///
    /// # Errors
    ///
    /// [`RebuildError`] if the keys could not be read, the remote failed, or the keys do not fit. The filter is unchanged
    /// then, but the remote may hold any part of the keys: rebuild again before anything else is done with it.
    ///
    /// ```
    /// use besom::{Adaptive, Filter, MemoryRemote, TelescopingFilter};
    ///
    /// let stored = ["a", "b", "c"]; // the dictionary
    /// let (mut filter, mut remote) = (TelescopingFilter::with_capacity(10)?, MemoryRemote::new());
    /// filter.rebuild(
    ///     |visit| stored.iter().try_for_each(|key| Ok::<_, std::io::Error>(drop(visit(key.as_bytes())))),
    ///     &mut remote,
    /// )?;
    /// assert_eq!((filter.len(), remote.len()), (3, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn rebuild<R, E>(
        &mut self,
        keys: impl FnOnce(&mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), E>,
        remote: &mut R,
    ) -> Result<(), RebuildError<E, R::Error>>
    where
        Self: Sized,
        R: Remote,
        E: std::error::Error + 'static,
    {
        *self = rebuild::rebuilt(self, keys, remote)?;
        Ok(())
    }
}

/// What [`Adaptive::resync`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[must_use = "slots in question need a rebuild"]
pub enum Resync {
    /// Filter and remote agree at these addresses now.
    Agreed,
    /// Nothing has changed, because some slots belong to keys that the lists do not have. They answer "maybe present"
    /// until a [rebuild](Adaptive::rebuild) from the stored keys settles it.
    InQuestion {
        /// How many slots, as far as the filter can tell.
        slots: usize,
    },
}
