//! What adaptive filters add: operations that keep a remote in step, repair, and the way back after a failure.

use std::ops::{ControlFlow, RangeInclusive};

#[cfg(doc)]
use crate::AdaptiveError;
use crate::{Adaptation, BuildError, Digest, Filter, Key, RebuildError, Remote, RemoteResult};

use super::rebuild;

/// A filter that repairs its false positives with the help of a [`Remote`].
///
/// Pass the same remote to every call. Inserting a key twice stores it once, because the remote knows what is stored.
///
/// # When things fail
///
/// Every operation reads what it needs, makes one group of changes to the remote, and changes the filter only after
/// that has succeeded. So an error (or a panic, or a future that is dropped) leaves the filter as it was. It does not
/// always leave the *remote* as it was: an error of a store means "done or not done", and a commit that timed out may
/// have happened. What follows from that is small:
///
/// - **A key without an item**: its row was written, and the filter never heard of it. The next insertion of that key,
///   repair near it, or [`settle`](Self::settle) gives it an item. Until then answer "maybe" for it from outside, as
///   [`Guard`](crate::Guard) does.
/// - **An item without a key**: the row is gone, and the filter still accepts the key. It goes on answering "maybe
///   present", and repairs next to it answer [`AdaptiveError::Inconsistent`], until [`settle`](Self::settle) with a
///   read that is [authoritative](Authority::Authoritative), or [`rebuild`](Self::rebuild), has settled it.
///
/// [`Remote`] says what a store must guarantee. If it does, no stored key is ever lost, even if the store returns keys
/// that are not stored. The filter checks that every key has the address at which the store returns it; if not, it
/// answers `Inconsistent`, and nothing changes.
pub trait Adaptive: Filter {
    /// Whether the address of a key is the upper half of its digest, forever, as [`HashAddressed`] says: for those who
    /// ask at run time, such as a store that keeps an index only for filters that need one.
    const HASH_ADDRESSED: bool = false;

    /// Returns whether the address of a key in this filter is the upper half of its digest.
    /// [`HASH_ADDRESSED`](Self::HASH_ADDRESSED), unless the type has filters of several kinds.
    fn is_hash_addressed(&self) -> bool {
        Self::HASH_ADDRESSED
    }

    /// Inserts a key. `false` if it was there already.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Full`] without room for it, [`AdaptiveError::Remote`] if the remote failed,
    /// [`AdaptiveError::Inconsistent`] if it holds other keys than the filter; the filter is unchanged.
    #[inline]
    fn insert<K: Key + ?Sized, R: Remote>(&mut self, key: &K, remote: &mut R) -> RemoteResult<bool, R> {
        key.with_bytes(|key| self.insert_bytes(key, remote))
    }

    /// Inserts a key by its bytes, as [`insert`](Self::insert) does.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    fn insert_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R>;

    /// Inserts a key that the caller knows is not stored. Reads nothing, unless the filter has to grow or to move keys.
    ///
    /// If it is stored after all, the filter holds it twice, which costs memory and loses nothing.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    ///
    /// ```
    /// use besom::testing::CountingRemote;
    /// use besom::{Adaptive, MemoryRemote, TelescopingFilter};
    ///
    /// let mut filter = TelescopingFilter::builder().capacity(1_000).seed(1_u64).build()?;
    /// let mut remote = CountingRemote::new(MemoryRemote::new());
    /// (0..1_000_u32).try_for_each(|key| filter.insert_new(&key, &mut remote))?;
    /// assert_eq!(remote.accesses().reads, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    fn insert_new<K: Key + ?Sized, R: Remote>(&mut self, key: &K, remote: &mut R) -> RemoteResult<(), R> {
        key.with_bytes(|key| self.insert_new_bytes(key, remote))
    }

    /// Inserts a key that is not stored by its bytes, as [`insert_new`](Self::insert_new) does.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    fn insert_new_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<(), R> {
        self.insert_bytes(key, remote).map(drop)
    }

    /// Removes a key that the caller knows is stored, whether its row is still there or not. `false`, and nothing
    /// changes, if no item accepts it. Reads only where which item goes depends on the other keys.
    ///
    /// If the key is not stored after all, another one may be lost.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    fn remove_stored<K: Key + ?Sized, R: Remote>(
        &mut self,
        key: &K,
        remote: &mut R,
    ) -> RemoteResult<bool, R> {
        key.with_bytes(|key| self.remove_stored_bytes(key, remote))
    }

    /// Removes a stored key by its bytes, as [`remove_stored`](Self::remove_stored) does.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    fn remove_stored_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        self.remove_bytes(key, remote)
    }

    /// Removes a key. `false`, and nothing changes in the filter, if it was not there.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Remote`] if the remote failed, [`AdaptiveError::Inconsistent`] if it holds other keys than the
    /// filter; the filter is unchanged.
    fn remove<K: Key + ?Sized, R: Remote>(&mut self, key: &K, remote: &mut R) -> RemoteResult<bool, R> {
        key.with_bytes(|key| self.remove_bytes(key, remote))
    }

    /// Removes a key by its bytes, as [`remove`](Self::remove) does.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    fn remove_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R>;

    /// Repairs the false positive `key`, so that the filter no longer answers "maybe present" for it.
    ///
    /// Harmless for a stored key and for one that the filter rejects already: the answer is then
    /// [`Adaptation::NotFalsePositive`].
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Remote`] if the remote failed, [`AdaptiveError::Inconsistent`] if it holds other keys than the
    /// filter; the filter is unchanged.
    fn adapt<K: Key + ?Sized, R: Remote>(&mut self, key: &K, remote: &mut R) -> RemoteResult<Adaptation, R> {
        key.with_bytes(|key| self.adapt_bytes(key, remote))
    }

    /// Repairs a false positive by its bytes, as [`adapt`](Self::adapt) does.
    ///
    /// # Errors
    ///
    /// As [`adapt`](Self::adapt).
    fn adapt_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R>;

    /// Removes all keys and repairs, from the remote as well; capacity and seed stay.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] if the remote failed or memory is lacking; the filter is unchanged.
    fn clear<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R>;

    /// Checks that filter and remote hold the same keys: every key of the remote, and every slot of the filter. Scans
    /// the whole remote.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Inconsistent`] for the first address where they do not, or what the remote reports.
    fn verify_remote<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R>;

    /// Brings filter and remote together in a range of addresses, after an operation there failed, when some key there
    /// was in doubt, or to catch up with a store.
    ///
    /// Reads the whole homes that the range touches and pairs their keys with the filter's items, so that as many keys
    /// as possible have an item of their own that accepts them. Keys without one get one. Items without a key go only
    /// if the read is [authoritative](Authority); otherwise they stay as they are, answer "maybe present", and are
    /// counted in [`Settled::InQuestion`]. Writes nothing, except in filters that move keys, which clear what is not
    /// theirs out of the way.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] if the remote failed or a key that it has finds no room; the filter still holds every key that
    /// it held.
    fn settle<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R>;

    /// The range of addresses that an operation on the key with this digest reads, if it reads anything; `None` where
    /// there is no single one, as in cuckoo based filters.
    ///
    /// A store that knows it before fetches that range along with the data. It becomes narrower as the filter grows.
    fn home(&self, digest: Digest) -> Option<RangeInclusive<u64>> {
        let _ = digest;
        None
    }

    /// Becomes a filter of exactly the keys that the remote has, from one sequential pass over it; repairs are
    /// forgotten. `false`, and nothing happens, if the filter moves keys: what the remote has of it then is not where
    /// an empty filter would put it.
    ///
    /// Nothing is written. A filter that can grow becomes as large as it has to be.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] if the remote failed, has more keys than the filter is for, or has keys at addresses that are
    /// not theirs; the filter is unchanged.
    fn rebuild_sorted<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<bool, R>
    where
        Self: Sized,
    {
        let _ = remote;
        Ok(false)
    }

    /// An empty filter with the same parameters, and hash functions that were not used so far where repairs depend on
    /// that.
    ///
    /// # Errors
    ///
    /// [`BuildError::OutOfMemory`] if the memory is not available.
    fn emptied(&self) -> Result<Self, BuildError>
    where
        Self: Sized;

    /// Becomes a filter of exactly the keys that `keys` hands to its visitor, and makes the remote hold exactly these:
    /// the way back that always leads home. Repairs are forgotten.
    ///
    /// Needs the memory of a second filter while it lasts, and no memory in proportion to the keys beyond that. The
    /// remote is emptied and written in groups of a few hundred keys.
    ///
    /// # Errors
    ///
    /// [`RebuildError`] if the keys could not be read, the remote failed, or the keys do not fit. The filter is
    /// unchanged then, but the remote may hold any part of the keys: rebuild again before anything else is done with
    /// it.
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

/// A filter for which the address of a key is the upper half of its [`Digest`](crate::Digest), forever: growth, repair,
/// rebuilding and restarts change none.
///
/// For such a filter an index that the *store* keeps, on a column with that number, is remote enough: see
/// [`StoreIndex`](crate::StoreIndex).
pub trait HashAddressed: Adaptive {}

/// How much a read is worth to [`Adaptive::settle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Authority {
    /// What is not there is not stored: the view has every write that was acknowledged, no change to that part of the
    /// store began since, and no key in the range is in doubt.
    Authoritative,
    /// The view may be an old one, or lack keys. That as many keys are there as the filter has items proves nothing:
    /// they may be others.
    Partial,
}

/// What [`Adaptive::settle`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[must_use = "items in question need an authoritative read"]
pub enum Settled {
    /// Every key has an item, and every item a key.
    Agreed,
    /// Every key has an item. Some items have no key; they answer "maybe present" until an authoritative read, or a
    /// [rebuild](Adaptive::rebuild), settles it.
    InQuestion {
        /// How many items, as far as the filter can tell.
        slots: usize,
    },
}
