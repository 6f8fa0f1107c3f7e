//! What a guard asks of the database behind it: views, and transactions that change data and lists at once.

use std::error::Error;
use std::ops::ControlFlow;

use besom::Change;

/// Called with a key and its value.
pub(crate) type VisitEntry<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

/// Called with an address and a key of its list.
pub(crate) type VisitList<'v> = dyn FnMut(u64, &[u8]) -> ControlFlow<()> + 'v;

/// Addresses, keys for their lists, and the values of these.
pub(crate) type Pushes<'p> = dyn Iterator<Item = (u64, &'p [u8], &'p [u8])> + 'p;

/// A database that holds data and the filter's lists.
pub(crate) trait Engine: Send + Sync {
    /// What a failed access returns.
    type Error: Error + Send + Sync + 'static;
    /// The database as it was at one moment.
    type View: View<Error = Self::Error>;
    /// Changes that become visible together, or not at all.
    type Transaction: Transaction<Error = Self::Error>;

    /// The database as it is now. It may be older than what a commit that is under way makes it, never older than
    /// one that has returned.
    fn view(&self) -> Result<Self::View, Self::Error>;

    /// Begins a transaction. The guard has one at a time.
    fn begin(&self) -> Result<Self::Transaction, Self::Error>;

    /// Whether an error has left the database unusable until it is opened again.
    fn is_broken(&self) -> bool;

    /// Opens the database again if it [is broken](Self::is_broken). What was not durable may be gone then.
    fn reopen(&self) -> Result<(), Self::Error>;

    /// Whether data is found by the address of its key's list.
    fn is_merged(&self) -> bool;
}

/// What can be read. `address` is that of the key's list; only merged layouts look at it.
pub(crate) trait View {
    type Error;

    /// The number of the last commit that changed lists.
    fn sequence(&self) -> Result<u64, Self::Error>;

    /// The value of a key.
    fn get(&self, key: &[u8], address: Option<u64>) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The keys of a list, in order.
    fn list(&self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error>;

    /// The keys of all lists: addresses ascending, each list in order.
    fn scan_lists(&self, visit: &mut VisitList<'_>) -> Result<(), Self::Error>;

    /// All keys with their values, in the order of the layout.
    fn scan(&self, visit: &mut VisitEntry<'_>) -> Result<(), Self::Error>;

    /// How many keys there are.
    fn len(&self) -> Result<u64, Self::Error>;

    /// What was written down of the commits behind `after`, in order, with their numbers.
    fn log(&self, after: u64, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Self::Error>;
}

/// Changes that become visible together. Dropped, it has done nothing; after an error of any of its methods it cannot be
/// committed any more, whatever whoever called it makes of the error.
pub(crate) trait Transaction {
    type Error;

    /// Stores a value, and returns the one that was there. In a merged layout a new key is stored by the push that follows.
    fn put(&mut self, key: &[u8], value: &[u8], address: Option<u64>)
    -> Result<Option<Vec<u8>>, Self::Error>;

    /// Removes a value, and returns it. In a merged layout it is the change of the list that follows which removes it.
    fn delete(&mut self, key: &[u8], address: Option<u64>) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The keys of a list as the transaction has made it.
    fn list(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error>;

    /// All lists as the transaction has made them.
    fn scan_lists(&mut self, visit: &mut VisitList<'_>) -> Result<(), Self::Error>;

    /// Changes lists.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error>;

    /// Pushes keys with their values to lists, all of which come with ascending addresses.
    fn push_all(&mut self, entries: &mut Pushes<'_>) -> Result<(), Self::Error>;

    /// From here on lists are those of a new set, which is empty; a commit puts it in the place of the old one.
    fn renew_lists(&mut self) -> Result<(), Self::Error>;

    /// Gives a key, which is about to be pushed, its value. Nothing to do where data is not in the lists.
    fn carry(&mut self, key: &[u8], value: &[u8]);

    /// Writes down the number of this commit, and what it does.
    fn set_sequence(&mut self, sequence: u64, log: Option<&[u8]>) -> Result<(), Self::Error>;

    /// Forgets what was written down of all commits up to this one.
    fn trim_log(&mut self, until: u64) -> Result<(), Self::Error>;

    /// Makes the changes visible, and lasting if `durable`. An error means done or not done.
    fn commit(self, durable: bool) -> Result<(), Self::Error>;
}
