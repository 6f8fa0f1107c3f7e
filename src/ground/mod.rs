//! What a filter over the lists of a remote does, whichever table it stands on.
//!
//! A table knows fingerprints and values; the keys are in the lists. Insertion, removal, repair, growth and the way back after
//! a failure are the same for all tables that can say of their items what [`Listed`] asks for, and written once here. Queries,
//! and the insertions that one look at a block or a line suffices for, are the tables' own.
//!
//! | | |
//! |---|---|
//! | which ground a filter gets | `choice` |
//! | lists as they come from a remote | `keys` |
//! | addresses, and whether a list holds the keys of its items | `list` |
//! | insertion, removal, repair | `update` |
//! | growth, lists that are written anew | `grow`, `renew` |
//! | filters from the lists that a remote has of them | `restore` |
//! | the way back after a failure | `resync`, `matching` |

mod choice;
mod grow;
mod keys;
mod list;
mod matching;
mod renew;
mod restore;
mod resync;
mod update;

use std::collections::BTreeMap;

use crate::{Adaptation, AdaptiveError, Change, Digest, KeyHasher, Remote};

pub use choice::Ground;
pub(crate) use choice::{Wishes, choose};
#[cfg(test)]
pub(crate) use grow::MAX_KEPT;
pub(crate) use grow::grow;
pub(crate) use keys::Keys;
pub(crate) use list::{Addresses, address_of, members_of, read, verify_remote};
pub(crate) use restore::restore;
pub(crate) use resync::resync;
pub(crate) use update::{adapt, insert_anywhere, remove};

/// A table of items with values, whose keys are in the lists of a remote.
///
/// Every item has a *home*, which is all that its place in the table says of its key. The keys of one home are in one list, and
/// the items of a home stand in the order that their keys have there: so the n-th item has the n-th key. A list has the
/// keys of several homes.
pub(crate) trait Listed: Clone {
    /// The hash function of the keys.
    type Hasher: KeyHasher;
    /// On quotient tables the quotient; on bins the bin with class and tag.
    type Home: Copy + Ord;
    /// What an item has beside its home, and accepts keys by. The default has the initial value.
    type Item: Copy + Default;
    /// A larger table while it is being filled.
    type Filling: Filling<Self>;

    fn hasher(&self) -> &Self::Hasher;

    fn len(&self) -> usize;

    fn capacity(&self) -> usize;

    /// Whether a full filter is to grow.
    fn is_growable(&self) -> bool;

    fn addresses(&self) -> Addresses;

    /// How many quotients or bins there are, and how many bits of an address say which part of one.
    fn units(&self) -> (u64, u32);

    /// Whether some item accepts a key.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// The home of a key.
    fn home(&self, digest: Digest) -> Self::Home;

    /// The address of the list that has the keys of a home.
    fn address(&self, home: Self::Home) -> u64;

    /// Whether an item of its home takes a key for the one that it holds.
    fn accepts(&self, item: Self::Item, digest: Digest) -> bool;

    /// Calls `visit` with the items whose keys are in the list at this address, by home, and those of one home in order, until it
    /// says `false`; whether it never did. There are none at addresses that no home has.
    fn all_items(&self, address: u64, visit: impl FnMut(Self::Home, Self::Item) -> bool) -> bool;

    /// The addresses that must have a list, ascending, each at least once.
    fn expected_addresses(&self) -> impl Iterator<Item = u64>;

    /// Inserts a key that is not stored where there is room for one, and pushes it to its list. On an error or a panic the
    /// table is as it was.
    fn insert_new<R: Remote>(
        &mut self,
        digest: Digest,
        key: &[u8],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>>;

    /// Removes the item of a home that so many come before, when the remote has made this change. On an error or a panic
    /// the table is as it was.
    fn remove_item<R: Remote>(
        &mut self,
        home: Self::Home,
        before: usize,
        change: Change<'_>,
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>>;

    /// Gives the items of a home values with which none of them accepts a query. `stored` are the keys of these items.
    fn repair<R: Remote>(
        &mut self,
        home: Self::Home,
        stored: &[Digest],
        query: Digest,
        remote: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>>;

    /// A copy of the table in which these homes have an item for each of these keys and no others. The remote is only read.
    fn with_items<R: Remote>(
        &self,
        agreed: &Agreed<Self>,
        remote: &mut R,
    ) -> Result<Self, AdaptiveError<R::Error>>;

    /// Whether hash bits and addresses suffice for a table that has doubled so often.
    fn can_double(&self, times: u32) -> bool;

    /// An empty table that has doubled so often, for so many keys. They come in lists for 2^`kept` of its units each.
    fn filling<E>(&self, times: u32, kept: u32, capacity: usize) -> Result<Self::Filling, AdaptiveError<E>>;

    /// Changes over to a table that is complete.
    fn become_filled(&mut self, filled: Self::Filling, addresses: Addresses, capacity: usize);
}

/// A larger table while it is being filled from the lists of a remote. `G` is the table that it is going to replace.
pub(crate) trait Filling<G: Listed> {
    /// The home that a key is going to have.
    fn home(&self, digest: Digest) -> G::Home;

    /// The address that a home is going to have.
    fn address(&self, home: G::Home, addresses: Addresses) -> u64;

    /// Takes the keys of a list, by their new homes, and those of one home in order. Lists come in the order of their addresses.
    fn take<E>(&mut self, moved: &[Moved<G>], ground: &G) -> Result<(), AdaptiveError<E>>;

    /// All keys have been taken.
    fn complete<E>(&mut self, ground: &G) -> Result<(), AdaptiveError<E>>;
}

/// A key on its way to a larger table.
pub(crate) struct Moved<G: Listed> {
    pub(crate) home: G::Home,
    pub(crate) digest: Digest,
    /// What it was in a table of half the size; or the initial item.
    pub(crate) item: G::Item,
}

/// A key that a table and its list agree on.
pub(crate) struct Settled<I> {
    pub(crate) digest: Digest,
    /// The item that it has had so far.
    pub(crate) item: Option<I>,
}

/// The keys of some homes that table and lists are to agree on, in order.
pub(crate) type Agreed<G> = BTreeMap<<G as Listed>::Home, Vec<Settled<<G as Listed>::Item>>>;
