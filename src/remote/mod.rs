//! The remote state of an adaptive filter: which keys are behind which part of it.

mod memory;
mod page;
mod pages;

pub use memory::{MemoryRemote, MissingEntry};

/// One step of a group of changes to a [`Remote`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'k> {
    /// Appends a key to the list at an address.
    Push {
        /// Where.
        address: u64,
        /// The bytes of the key.
        key: &'k [u8],
    },
    /// Takes one key out of a list; those behind it move up.
    Remove {
        /// Where.
        address: u64,
        /// Which, counted from 0.
        rank: usize,
    },
    /// Puts another key in the place of one.
    Replace {
        /// Where.
        address: u64,
        /// Which, counted from 0.
        rank: usize,
        /// The bytes of the new key.
        key: &'k [u8],
    },
    /// Empties all lists.
    Clear,
}

/// An ordered list of keys for every address: which keys are behind which part of a filter.
///
/// A filter keeps a few bits per key. To repair a false positive it must know *whose* bits collided, and that
/// is written down in the remote: an ordered list of keys for every `u64` address. It lies beside the slow
/// dictionary, is written when the dictionary is written, and is read only when a false positive has caused a
/// read there anyway. A negative query never touches it.
///
/// What an address means is the filter's affair:
///
/// | filters | address | list |
/// |---|---|---|
/// | quotient based | the quotient of the key | in the order of the run: rank in the list = rank in the run |
/// | cuckoo based | the slot number | one key |
/// | Bloom filters and other cascades | home cell of the key, divided by 16 | all keys at home there |
///
/// Two methods: one reads a list, the other makes a group of changes that succeeds or fails as a whole. A store
/// with transactions implements both in a few lines.
///
/// ```
/// use besom::{Change, MemoryRemote, Remote};
///
/// let mut remote = MemoryRemote::new();
/// remote.apply(&[
///     Change::Push { address: 7, key: b"first" },
///     Change::Push { address: 7, key: b"second" },
///     Change::Remove { address: 7, rank: 0 },
/// ])?;
/// let mut keys = Vec::new();
/// remote.read(7, &mut |key| keys.push(key.to_vec()))?;
/// assert_eq!(keys, [b"second"]);
/// # Ok::<(), besom::MissingEntry>(())
/// ```
pub trait Remote {
    /// What a failed access returns.
    type Error: std::error::Error + 'static;

    /// Calls `visit` with each key of the list at `address`, in order. An address that was never written has an
    /// empty list.
    ///
    /// # Errors
    ///
    /// Whatever the store reports.
    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error>;

    /// Makes all changes, one after the other, or none of them.
    ///
    /// # Errors
    ///
    /// Whatever the store reports. After an error every list is as it was before the call.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error>;

    /// Says that the list at `address` is likely to be read next. A store may begin to fetch it, so that several
    /// lists are under way at once; to do nothing, the default, is always right.
    fn prefetch(&self, address: u64) {
        let _ = address;
    }
}

impl<R: Remote + ?Sized> Remote for &mut R {
    type Error = R::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        (**self).read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        (**self).apply(changes)
    }

    fn prefetch(&self, address: u64) {
        (**self).prefetch(address);
    }
}
