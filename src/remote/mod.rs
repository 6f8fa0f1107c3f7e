//! The remote state of an adaptive filter: which keys are behind which part of it.

use std::ops::{ControlFlow, RangeInclusive};

mod index;
mod memory;
mod shared;

pub use index::{StoreIndex, Visit};
pub use memory::MemoryRemote;

/// One step of a group of changes to a [`Remote`]. Both are idempotent: to insert a pair that is there, or to remove
/// one that is not, changes nothing and is no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'k> {
    /// Inserts a pair.
    Insert {
        /// The address.
        address: u64,
        /// The bytes of the key.
        key: &'k [u8],
    },
    /// Removes a pair.
    Remove {
        /// The address.
        address: u64,
        /// The bytes of the key.
        key: &'k [u8],
    },
}

/// A sorted set of (address, key): which keys are behind which part of a filter.
///
/// A filter keeps a few bits per key. To repair a false positive it must know *whose* bits collided, and that is what
/// the remote says: all keys of a **range of addresses**. It lies beside the slow dictionary, is written when the
/// dictionary is written, and is read only when a false positive has caused a read there anyway. A negative query never
/// touches it.
///
/// Every ordered store is one: a `BTreeSet`, an SQL column with an index, a table of redb keyed by `(u64, &[u8])`, any
/// LSM tree. What an address means depends on the filter:
///
/// | filters | address |
/// |---|---|
/// | telescoping, extension, cascades ([`HashAddressed`](crate::HashAddressed)) | the upper half of the key's [digest](crate::Digest), forever |
/// | broom filters | the key's number under its present hash function, which one bit tells |
/// | cuckoo based | the slot, in one of two halves, which a rehash swaps |
///
/// For the first kind the store can keep the addresses itself, as a column beside its data: then nothing is stored
/// twice, and [`StoreIndex`] makes a remote of whatever reads that column.
///
/// # What a store owes
///
/// 1. A change that was acknowledged is seen by every later read.
/// 2. An attempt that failed may have been made or not, and may still take effect, but never after a later change to
///    the same pair was acknowledged.
/// 3. For filters that move keys (broom, cuckoo): a group takes effect as a whole or not at all.
///
/// If it also returns keys that are not stored, no key is lost: see [`Adaptive`](crate::Adaptive#when-things-fail).
///
/// Where a store is shared, implement the trait for `&Store`, as `Read` is implemented for `&File`, or for a
/// transaction.
///
/// ```
/// use std::ops::ControlFlow;
/// use besom::{Change, MemoryRemote, Remote};
///
/// let mut remote = MemoryRemote::new();
/// remote.apply(&[Change::Insert { address: 7, key: b"b" }, Change::Insert { address: 7, key: b"a" }])?;
/// remote.apply(&[Change::Insert { address: 9, key: b"c" }, Change::Remove { address: 7, key: b"b" }])?;
/// let mut keys = Vec::new();
/// remote.range(0..=9, &mut |address, key| {
///     keys.push((address, key.to_vec()));
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(keys, [(7, b"a".to_vec()), (9, b"c".to_vec())]);
/// # Ok::<(), std::convert::Infallible>(())
/// ```
pub trait Remote {
    /// What a failed access returns.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Calls `visit` with the pairs whose address is in the range, ascending by address and then by key, until it
    /// breaks.
    ///
    /// # Errors
    ///
    /// Whatever the store reports.
    fn range(
        &mut self,
        addresses: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Self::Error>;

    /// Makes all changes, or none of them. A group names each pair at most once.
    ///
    /// # Errors
    ///
    /// Whatever the store reports. After an error either all changes were made or none.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error>;

    /// Called before an operation that makes more than one group of changes, such as a rehash or a growth. Nothing has
    /// changed yet. Returns `Ok`, except in a remote for a single group, such as that of a [`Play`](crate::play::Play).
    ///
    /// # Errors
    ///
    /// To refuse; nothing changes then.
    fn begin_groups(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl<R: Remote + ?Sized> Remote for &mut R {
    type Error = R::Error;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Self::Error> {
        (**self).range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        (**self).apply(changes)
    }

    fn begin_groups(&mut self) -> Result<(), Self::Error> {
        (**self).begin_groups()
    }
}
