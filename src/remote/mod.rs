//! The remote state of an adaptive filter: which keys are behind which part of it.

use std::ops::{ControlFlow, RangeInclusive};

mod memory;
mod page;
mod pages;
mod shared;

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
    /// Takes one key out of a list; those behind it move up. An error if another key has this rank.
    Remove {
        /// Where.
        address: u64,
        /// Which, counted from 0.
        rank: usize,
        /// The bytes of the key that has this rank.
        key: &'k [u8],
    },
    /// Puts another key in the place of one. An error if `old` is not the key that has this rank.
    Replace {
        /// Where.
        address: u64,
        /// Which, counted from 0.
        rank: usize,
        /// The bytes of the key that has this rank.
        old: &'k [u8],
        /// The bytes of the new key.
        key: &'k [u8],
    },
    /// Empties all lists.
    Clear,
}

/// An **ordered** list of keys for every address: which keys are behind which part of a filter.
///
/// **Order matters.** A list returns its keys in the order in which they were pushed, a replaced one in the place of the
/// old one: the filter knows its keys by their rank. The obvious store on a sorted multimap returns them sorted; a filter
/// notices that (every answer is checked against its slots) and reports [`AdaptiveError::Inconsistent`](crate::AdaptiveError), but it cannot
/// work with it. Store the rank with the key, for instance as a part of the map's key: `(address, sequence number) -> key`.
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
/// | quotient based | the quotient of the key, without the bits that later doublings added; generations of addresses in the upper bits | in the order of the runs: rank in the list = rank in the run, among the keys of a quotient |
/// | on cache-line bins | bin and class of the key, likewise | keys of equal fingerprints in the order of their ranks |
/// | cuckoo based | the slot number, or that plus the number of slots after every other rehash | one key |
/// | Bloom filters and other cascades | a range of home cells, one for every 128 keys | all keys at home there |
/// | [`Sharded`](crate::Sharded) | the part's number in the upper 12 bits, then 16 bits for generations, then 36 | as in the part alone |
///
/// Three methods: one reads a list, one makes a group of changes that succeeds or fails as a whole, one reads everything.
/// A store with transactions implements them in a few lines. Where a store is shared, implement the trait for `&Store`, as
/// `Read` is implemented for `&File`, or for a transaction.
///
/// An error may mean "done or not done": filters stay right either way, see [`Adaptive`](crate::Adaptive#when-things-fail).
///
/// ```
/// use besom::{Change, MemoryRemote, Remote};
///
/// let mut remote = MemoryRemote::new();
/// remote.apply(&[
///     Change::Push { address: 7, key: b"first" },
///     Change::Push { address: 7, key: b"second" },
///     Change::Remove { address: 7, rank: 0, key: b"first" },
/// ])?;
/// let mut keys = Vec::new();
/// remote.read(7, &mut |key| keys.push(key.to_vec()))?;
/// assert_eq!(keys, [b"second"]);
/// # Ok::<(), besom::MissingEntry>(())
/// ```
pub trait Remote {
    /// What a failed access returns.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Calls `visit` with each key of the list at `address`, in order. An address that was never written has an
    /// empty list.
    ///
    /// # Errors
    ///
    /// Whatever the store reports.
    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error>;

    /// Makes all changes, one after the other, or none of them. A change that names a key which is not there (removed,
    /// or at another rank) must fail, and the group with it: what the filter has read may be out of date.
    ///
    /// # Errors
    ///
    /// Whatever the store reports. After an error either all changes were made or none.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error>;

    /// Calls `visit` with the address and the bytes of every key: addresses ascending, the keys of one address in the
    /// order of its list. Stops when it breaks.
    ///
    /// # Errors
    ///
    /// Whatever the store reports.
    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Self::Error>;

    /// A [`scan`](Self::scan) of the addresses of this range alone. The default scans everything and passes over the rest,
    /// which is right; a store that can seek saves the parts of a [`Sharded`](crate::Sharded) filter that.
    ///
    /// # Errors
    ///
    /// Whatever the store reports.
    fn scan_range(
        &mut self,
        range: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        self.scan(&mut |address, key| {
            if address > *range.end() {
                ControlFlow::Break(())
            } else if address < *range.start() {
                ControlFlow::Continue(())
            } else {
                visit(address, key)
            }
        })
    }

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

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Self::Error> {
        (**self).scan(visit)
    }

    fn scan_range(
        &mut self,
        range: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        (**self).scan_range(range, visit)
    }

    fn prefetch(&self, address: u64) {
        (**self).prefetch(address);
    }
}
