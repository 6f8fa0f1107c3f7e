//! What a filter whose keys are addressed by their hash does, whichever table it stands on.
//!
//! A table knows fingerprints and values; the keys are in the remote, sorted by the upper half of their digests.
//! Insertion, removal, repair, growth and the way back after a failure are the same for all tables that can say of
//! their items what [`Homed`] asks for, and written once here. Queries, and the insertions that one look at a block or
//! a line suffices for, are the tables' own.
//!
//! **Acceptance, not order.** The items of a home are paired with the keys that the remote has for it, so that every
//! key has an item of its own that accepts it. Any such pairing will do: an item does not change by being paired, so no
//! key loses its item and no repair comes back. `docs/design.md` has the proof.
//!
//! | | |
//! |---|---|
//! | which table a filter gets | `choice` |
//! | which addresses a home has | `ranges` |
//! | keys as they come from a remote | `keys` |
//! | which item is whose | `matching` |
//! | insertion, removal, repair | `update` |
//! | bringing table and remote together | `settle` |
//! | many keys at once | `gather` |
//! | table and remote side by side: growth, verification, a filter from a scan | `merge` |

mod choice;
mod gather;
mod keys;
mod matching;
mod merge;
mod ranges;
mod settle;
mod update;

use crate::{Adaptation, AdaptiveError, Change, Digest, KeyHasher, Remote, RemoteResult};

pub use choice::Table;
pub(crate) use choice::{Wishes, choose};
pub(crate) use gather::{Copies, Failed, GROUP, Gather, Gathered};
pub(crate) use keys::{Seen, visit as visit_keys};
pub(crate) use merge::{from_sorted, grow, verify_remote};
pub(crate) use ranges::Homes;
pub(crate) use settle::settle;
pub(crate) use update::{adapt, insert_anywhere, insert_new, paired_in, remove, remove_stored};

/// A table of items with values, whose keys are in a remote.
///
/// Every item has a *home*, which is all that its place in the table says of its key.
pub(crate) trait Homed: Clone {
    /// The hash function of the keys.
    type Hasher: KeyHasher;
    /// What an item is beside its home, and accepts keys by.
    type Item: Copy;
    /// A larger table while it is being filled.
    type Filling: Filling<Self>;

    fn hasher(&self) -> &Self::Hasher;

    fn len(&self) -> usize;

    fn capacity(&self) -> usize;

    /// Whether a full filter is to grow.
    fn is_growable(&self) -> bool;

    /// How addresses are cut into homes.
    fn homes(&self) -> Homes;

    /// Whether some item accepts a key.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// Whether an item of its home takes a key for the one that it holds.
    fn accepts(&self, item: Self::Item, digest: Digest) -> bool;

    /// The items of a home, in order.
    fn items(&self, home: u64) -> Vec<Self::Item>;

    /// Appends the items of a unit with their homes, by home, and those of one home in order.
    fn items_of_unit(&self, unit: u64, items: &mut Vec<(u64, Self::Item)>);

    /// Which of these items, which all accept one key, can go when that key is removed, whichever of them is its own:
    /// what the others accept includes all that this one does. `None` if that depends on the keys.
    fn dispensable(items: &[Self::Item]) -> Option<usize>;

    /// Puts an initial item for a key into its home, where there is room for one, when the remote has made these
    /// changes. On an error or a panic the table is as it was.
    fn insert_item<R: Remote>(
        &mut self,
        digest: Digest,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> RemoteResult<(), R>;

    /// Removes an item of a home, when the remote has made these changes. On an error or a panic the table is as it
    /// was.
    fn remove_item<R: Remote>(
        &mut self,
        home: u64,
        index: usize,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> RemoteResult<(), R>;

    /// Gives the items of a home values with which none of them accepts a query. `stored` are the keys of these items.
    fn repair<R: Remote>(
        &mut self,
        home: u64,
        stored: &[Digest],
        query: Digest,
        remote: &mut R,
    ) -> RemoteResult<Adaptation, R>;

    /// Whether the digits of the hash suffice for a table that has doubled that often.
    fn can_double(&self, times: u32) -> bool;

    /// An empty table that has doubled that often, for `capacity` keys.
    fn filling<E>(&self, times: u32, capacity: usize) -> Result<Self::Filling, AdaptiveError<E>>;

    /// Changes over to a table that is complete.
    fn become_filled(&mut self, filled: Self::Filling, capacity: usize);
}

/// A larger table while it is being filled. `G` is the table that it is going to replace.
pub(crate) trait Filling<G: Homed> {
    /// Takes a key, with the item that it had so far in a table of half the size. Keys come in the order of their
    /// addresses.
    fn take<E>(&mut self, digest: Digest, item: Option<G::Item>, table: &G) -> Result<(), AdaptiveError<E>>;

    /// All keys have been taken.
    fn complete<E>(&mut self) -> Result<(), AdaptiveError<E>>;
}

/// The addresses that an operation on the key with this digest reads.
pub(crate) fn home<G: Homed>(table: &G, digest: Digest) -> std::ops::RangeInclusive<u64> {
    table.homes().addresses(table.homes().of(digest.hi))
}

/// Tells the remote, if there is anything to tell.
#[inline]
pub(crate) fn tell<R: Remote>(changes: &[Change<'_>], remote: &mut R) -> RemoteResult<(), R> {
    if changes.is_empty() { Ok(()) } else { remote.apply(changes).map_err(AdaptiveError::Remote) }
}
