//! Transactions: tables of one's own and the store in one commit; and tables that become stores.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use ::redb::{
    Database, Error, Key, ReadableDatabase, ReadableTable, TableDefinition, TableError, TableHandle, Value,
    WriteTransaction,
};
use besom::{BuildError, Seed};

use super::builder::RedbStoreBuilder;
use super::engine::{Broken, Redb};
use super::store::RedbStore;
use super::{ADOPTION, definition};
use crate::engine::Table;
use crate::guard::{Listener, MAX_KEY, Outcome, Store};
use crate::{Progress, StoreError, StoreFilter, wait};

/// Rows, and bytes, that one transaction moves out of a table that is adopted.
const ROWS: usize = 4096;
const BYTES: usize = 1 << 22;

/// One transaction of a [`RedbStore`], in [`transact`](RedbStore::transact): it sees its own changes, and nobody else's.
pub struct Transaction<'s, F: StoreFilter> {
    store: &'s Store<F, Redb>,
    redb: WriteTransaction,
    changes: BTreeMap<Vec<u8>, Change>,
}

/// What a key had before the transaction, and what it is to have.
struct Change {
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl<F: StoreFilter> Transaction<'_, F> {
    /// redb's own transaction, for tables of one's own. Those of the store (`besom`, `besom index`, `data`, and `besom adoption` for a while) are not to be touched.
    pub fn redb(&self) -> &WriteTransaction {
        &self.redb
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// As [`RedbStore::get`].
    pub fn get(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>, Redb> {
        match self.changes.get(key) {
            Some(change) => Ok(change.after.clone()),
            None => wait(self.store.get_as_writer(key)),
        }
    }

    /// Stores a value, and returns the one that was there.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Outcome<Option<Vec<u8>>, Redb> {
        self.change(key, Some(value.to_vec()))
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn remove(&mut self, key: &[u8]) -> Outcome<Option<Vec<u8>>, Redb> {
        self.change(key, None)
    }

    fn change(&mut self, key: &[u8], after: Option<Vec<u8>>) -> Outcome<Option<Vec<u8>>, Redb> {
        if let Some(change) = self.changes.get_mut(key) {
            return Ok(std::mem::replace(&mut change.after, after));
        }
        let before = self.get(key)?;
        self.changes.insert(key.to_vec(), Change { before: before.clone(), after });
        Ok(before)
    }
}

impl<F: StoreFilter> fmt::Debug for Transaction<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("changes", &self.changes.len()).finish_non_exhaustive()
    }
}

impl<F: StoreFilter> RedbStore<F> {
    /// Runs `act` in one transaction: what it does to the store and to other tables of the same file is committed together when it
    /// returns `Ok`, and nothing of it otherwise.
    ///
    /// Other writes wait until it is over; so `act` must not write to the store but through the transaction. Reads do not wait.
    ///
    /// ```
    /// # use besom::TelescopingFilter;
    /// # use besom_store::{RedbStore, redb::TableDefinition};
    /// # let directory = std::env::temp_dir().join(format!("besom-transact-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// # let make = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).growable().build();
    /// const LOG: TableDefinition<'_, u64, &str> = TableDefinition::new("my log");
    /// let store = RedbStore::open(directory.join("users.redb"), make)?;
    /// store.transact(|txn| {
    ///     if txn.get(b"Ada")?.is_none() {
    ///         txn.insert(b"Ada", b"36")?;
    ///         txn.redb().open_table(LOG)?.insert(1, "Ada is new")?;
    ///     }
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// assert_eq!(store.get(b"Ada")?, Some(b"36".to_vec()));
    /// # drop(store);
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What `act` returns; nothing has changed then. What [`write`](Self::write) returns.
    pub fn transact<T, X: From<StoreError<Error>>>(
        &self,
        act: impl FnOnce(&mut Transaction<'_, F>) -> Result<T, X>,
    ) -> Result<T, X> {
        let mut writer = wait(self.store.writer.lock());
        wait(self.store.settle(&mut writer))?;
        let redb = self.store.engine.begin().map_err(StoreError::Engine)?;
        let mut transaction = Transaction { store: &self.store, redb, changes: BTreeMap::new() };
        let done = act(&mut transaction)?;
        let Transaction { redb, mut changes, .. } = transaction;
        let _lent = self.store.engine.lend(redb);
        let (steps, before) = changes
            .iter_mut()
            .map(|(key, Change { before, after })| ((&key[..], after.as_deref()), before.take()))
            .unzip();
        wait(self.store.write_known(&mut writer, steps, before))?;
        Ok(done)
    }

    /// Moves all rows of a table into the store.
    fn move_rows<K: Key + 'static, V: Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
        listener: Option<&Listener>,
    ) -> Outcome<(), Redb> {
        let mut keys = 0;
        loop {
            let (moved, left) = self.transact(|transaction| {
                let (rows, left) = take_rows(&transaction.redb, table).map_err(StoreError::Engine)?;
                for (key, value) in &rows {
                    transaction.insert(key, value)?;
                }
                Ok::<_, StoreError<Error>>((rows.len() as u64, left))
            })?;
            keys += moved;
            if let Some(listener) = listener {
                listener(Progress { keys, total: keys + left });
            }
            if left == 0 {
                return Ok(());
            }
        }
    }
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Takes some rows out of a table, and says in the store that this was begun, or that it is done and the table gone. The rows, and
/// how many are left.
fn take_rows<K: Key + 'static, V: Value + 'static>(
    redb: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(Rows, u64), Error> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    if !redb.list_tables()?.any(|other| other.name() == table.name()) {
        return Ok((rows, 0));
    }
    let mut own = redb.open_table(table)?;
    while rows.len() < ROWS && bytes < BYTES {
        let Some((key, value)) = own.pop_first()? else { break };
        let (key, value) = (key.value(), value.value());
        let row = (K::as_bytes(&key).as_ref().to_vec(), V::as_bytes(&value).as_ref().to_vec());
        bytes += row.0.len() + row.1.len();
        rows.push(row);
    }
    let left = ::redb::ReadableTableMetadata::len(&own)?;
    drop(own);
    if left == 0 {
        redb.delete_table(table)?;
        redb.delete_table(ADOPTION)?;
    } else {
        redb.open_table(ADOPTION)?.insert((), table.name())?;
    }
    Ok((rows, left))
}

/// Finds what would stop the adoption of a table half-way: other types, and keys that are too long.
fn check_table<K: Key + 'static, V: Value + 'static>(
    path: &Path,
    table: TableDefinition<'_, K, V>,
) -> Outcome<(), Redb> {
    let own = Table::ALL.map(|table| definition(table).name().to_owned());
    if own.iter().any(|own| own == table.name()) || table.name() == ADOPTION.name() {
        return Err(StoreError::OwnTable { table: table.name().to_owned() });
    }
    let longest = || -> Result<usize, Error> {
        // Whoever opens the store says better why it cannot be opened.
        let Ok(database) = Database::open(path) else { return Ok(0) };
        let own = match database.begin_read()?.open_table(table) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(0),
            own => own?,
        };
        let mut longest = K::fixed_width().unwrap_or(0);
        if K::fixed_width().is_none() {
            for row in own.iter()? {
                longest = longest.max(K::as_bytes(&row?.0.value()).as_ref().len());
            }
        }
        Ok(longest)
    };
    // redb panics when it meets damage.
    let longest = Broken::default().checked(longest).map_err(StoreError::Engine)?;
    if longest > MAX_KEY {
        return Err(StoreError::KeyTooLong { len: longest, max: MAX_KEY });
    }
    Ok(())
}

impl RedbStoreBuilder {
    /// Opens a store that takes over a table of the same file: makes the store if there is none, moves all rows of the table into
    /// it, and deletes the table. Keys and values are redb's bytes of the table's types.
    ///
    /// Rows are moved by a few thousand in a transaction. If it is broken off, every row is in one of the two places, and calling
    /// this again goes on; [`open`](Self::open) refuses the store until then. Once it is done, this is the same as `open`. It
    /// reports [progress](Self::on_progress). A key that the store has already gets the table's value. Keys that may be too long
    /// are all read before anything is changed.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); there must be a file. [`StoreError::HalfAdopted`] if another table is being adopted. With
    /// [`StoreError::OwnTable`], [`StoreError::KeyTooLong`] and for a table of other types nothing has changed.
    pub fn adopt<F: StoreFilter, K: Key + 'static, V: Value + 'static>(
        self,
        path: impl AsRef<Path>,
        table: TableDefinition<'_, K, V>,
        make: impl Fn(usize, Seed) -> Result<F, BuildError> + Send + Sync + 'static,
    ) -> Outcome<RedbStore<F>, Redb> {
        check_table(path.as_ref(), table)?;
        let listener = self.options.listener.clone();
        let store = self.create(false).adopting(table.name()).open(path, make)?;
        store.move_rows(table, listener.as_ref())?;
        Ok(store)
    }
}
