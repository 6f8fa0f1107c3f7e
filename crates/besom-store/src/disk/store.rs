//! A store on one disk, with calls that block.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use ::redb::Error;
use besom::{BuildError, Seed};

use super::builder::RedbStoreBuilder;
use super::engine::Redb;
use super::entries::Entries;
use crate::guard::{Outcome, Store, lock};
use crate::{Batch, Durability, Layout, Metrics, Opening, StoreError, StoreFilter, VerifyError, wait};

/// A key-value store in a file, with an adaptive filter in front of it, for many threads.
///
/// A key that is not there is nearly always rejected by the filter, without a look into the file. When one is not, the
/// filter is repaired, so that the same question does not get through again.
///
/// ```
/// use besom::TelescopingFilter;
/// use besom_store::RedbStore;
///
/// # let directory = std::env::temp_dir().join(format!("besom-store-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let path = directory.join("users.redb");
/// // Called with the number of keys that there are and the store's seed, when a filter has to be made.
/// let make = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).growable().build();
/// let store = RedbStore::open(&path, make)?;
/// store.insert(b"Ada", b"36")?;
/// assert_eq!(store.get(b"Ada")?, Some(b"36".to_vec()));
/// assert_eq!(store.get(b"Charles")?, None); // almost certainly without a look into the file
///
/// store.snapshot()?; // the filter, for the next opening
/// # drop(store);
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Threads
///
/// All operations take `&self`, and a handle is cheap to clone; the store is closed with the last one. Each clone is told once of
/// commits that were [lost](StoreError::RolledBack), so give every thread its own. Reading threads wait for a writing one only while it changes the filter in memory, never while
/// it waits for the disk. Writes wait for each other. Growth and snapshots take the filter's memory once more while they last.
///
/// # When things fail
///
/// As [`Store`] says. After a crash the filter is loaded from its snapshot and caught up with what was written since; where that
/// is not possible it is built from the keys. [`opening`](Self::opening) says what was done.
pub struct RedbStore<F: StoreFilter> {
    pub(crate) store: Store<F, Redb>,
    closing: Arc<Closing<F>>,
}

impl<F: StoreFilter> Clone for RedbStore<F> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), closing: self.closing.clone() }
    }
}

/// Dropped with the last handle.
struct Closing<F: StoreFilter> {
    store: Store<F, Redb>,
    /// The thread that writes a snapshot without being asked.
    background: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl<F: StoreFilter> Drop for Closing<F> {
    fn drop(&mut self) {
        // It would keep the database open. What it has to say of a failure it has said.
        let _ = lock(&self.background).take().map(JoinHandle::join);
        if self.store.is_closing_snapshot_due() {
            self.store.snapshot_ended(wait(self.store.save_snapshot()));
        }
    }
}

impl RedbStore<NoFilter> {
    /// Chooses more than a path and a filter.
    pub fn builder() -> RedbStoreBuilder {
        RedbStoreBuilder::default()
    }
}

/// Stands for any filter where none is chosen yet.
type NoFilter = besom::TelescopingFilter;

impl<F: StoreFilter> RedbStore<F> {
    pub(super) fn new(store: Store<F, Redb>) -> Self {
        let (weak, background) = (store.downgrade(), Arc::new(Mutex::new(None::<JoinHandle<()>>)));
        let thread = background.clone();
        store.take_snapshots_with(move || {
            let Some(store) = weak.upgrade() else { return };
            let work = move || store.snapshot_ended(wait(store.save_snapshot()));
            *lock(&thread) = Some(std::thread::spawn(work));
        });
        Self { store: store.clone(), closing: Arc::new(Closing { store, background }) }
    }

    /// The store on any engine that this is, for those who awaits, or writes for all engines.
    pub fn as_store(&self) -> &Store<F, Redb> {
        &self.store
    }

    /// Opens a store, or makes one if there is no file; see [`builder`](RedbStore::builder) for what else can be chosen.
    ///
    /// `make` makes a filter for at least this many keys with the seed that it is given. It is called when the store has no filter
    /// that could be loaded.
    ///
    /// # Errors
    ///
    /// [`StoreError::Open`] if the file cannot be opened, and what the filter says.
    pub fn open(
        path: impl AsRef<Path>,
        make: impl Fn(usize, Seed) -> Result<F, BuildError> + Send + Sync + 'static,
    ) -> Outcome<Self, Redb> {
        RedbStoreBuilder::default().open(path, make)
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>, Redb> {
        match self.store.ask(key)? {
            Some(digest) => wait(self.store.get_accepted(key, digest)),
            None => Ok(None),
        }
    }

    /// [`Store::get_with`]: calls `look` with the value of a key, in redb's own memory. What `look` returns.
    ///
    /// ```
    /// # use besom::TelescopingFilter;
    /// # use besom_store::RedbStore;
    /// # let directory = std::env::temp_dir().join(format!("besom-get-with-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// # let make = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).build();
    /// let store = RedbStore::open(directory.join("photos.redb"), make)?;
    /// store.insert(b"photo", b"\x89PNG and 10 MB more")?;
    /// let is_png = store.get_with(b"photo", |photo| photo.starts_with(b"\x89PNG"))?;
    /// assert_eq!(is_png, Some(true));
    /// # drop(store);
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_with<T: Send>(
        &self,
        key: &[u8],
        look: impl FnMut(&[u8]) -> T + Send,
    ) -> Outcome<Option<T>, Redb> {
        wait(self.store.get_with(key, look))
    }

    /// Whether the store has a key. Reads no value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn contains_key(&self, key: &[u8]) -> Outcome<bool, Redb> {
        wait(self.store.contains_key(key))
    }

    /// Whether the store may have a key, by the filter's word alone: no disk, no error. `false` is certain.
    pub fn may_contain_key(&self, key: &[u8]) -> bool {
        self.store.may_contain_key(key)
    }

    /// [`Store::insert`]: stores a value, and returns the one that was there.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Outcome<Option<Vec<u8>>, Redb> {
        wait(self.store.insert(key, value))
    }

    /// [`insert`](Self::insert) with another durability.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_with(
        &self,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Outcome<Option<Vec<u8>>, Redb> {
        wait(self.store.insert_with(key, value, durability))
    }

    /// [`Store::remove`]: removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn remove(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>, Redb> {
        wait(self.store.remove(key))
    }

    /// [`remove`](Self::remove) with another durability.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    pub fn remove_with(&self, key: &[u8], durability: Durability) -> Outcome<Option<Vec<u8>>, Redb> {
        wait(self.store.remove_with(key, durability))
    }

    /// [`Store::put`]: stores a value, and does not ask which one was there.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Outcome<(), Redb> {
        wait(self.store.put(key, value))
    }

    /// [`Store::delete`]: removes a key, and does not ask whether it is there.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn delete(&self, key: &[u8]) -> Outcome<(), Redb> {
        wait(self.store.delete(key))
    }

    /// [`Store::write`]: makes all changes of a batch in one transaction.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn write(&self, batch: &Batch) -> Outcome<(), Redb> {
        wait(self.store.write(batch))
    }

    /// [`write`](Self::write) with another durability.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn write_with(&self, batch: &Batch, durability: Durability) -> Outcome<(), Redb> {
        wait(self.store.write_with(batch, durability))
    }

    /// [`Store::flush`]: makes sure that all writes that were acknowledged last.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn flush(&self) -> Outcome<(), Redb> {
        wait(self.store.flush())
    }

    /// How many keys the store has.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database has failed, and fails still.
    pub fn len(&self) -> Outcome<u64, Redb> {
        wait(self.store.len())
    }

    /// Whether the store has no keys.
    ///
    /// # Errors
    ///
    /// As [`len`](Self::len).
    pub fn is_empty(&self) -> Outcome<bool, Redb> {
        wait(self.store.is_empty())
    }

    /// All keys and values as they are now: in the order of keys in the ordered layout, in that of hashes in the hashed one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    pub fn iter(&self) -> Outcome<Entries, Redb> {
        let view = wait(self.store.view())?;
        Entries::all(&view, self.layout()).map_err(StoreError::Engine)
    }

    /// The keys of a range and their values, in order, as they are now.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOrdered`] in the hashed layout, [`StoreError::Engine`] if the database failed.
    pub fn range<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> Outcome<Entries, Redb> {
        if self.layout() != Layout::Ordered {
            return Err(StoreError::NotOrdered);
        }
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (range.start_bound().cloned(), range.end_bound().cloned());
        let view = wait(self.store.view())?;
        Entries::range(&view, Layout::Ordered, bounds).map_err(StoreError::Engine)
    }

    /// Gives unused parts of the file back. Whether there were any.
    ///
    /// Everybody else waits as long as it takes, and it is refused while an iteration is under way.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed or is being iterated over.
    pub fn compact(&self) -> Outcome<bool, Redb> {
        let mut writer = wait(self.store.writer.lock());
        wait(self.store.settle(&mut writer))?;
        self.store.engine.compact().map_err(StoreError::Engine)
    }

    /// Writes the filter to its file, so that the next opening finds it.
    ///
    /// Makes durable what was written before. Writes wait for that, not for the file; reads do not wait. Keeps a copy of the
    /// filter in memory until it is written.
    ///
    /// # Errors
    ///
    /// [`StoreError::Snapshot`] if the file cannot be written, [`StoreError::NotASnapshot`] if something else has its name,
    /// [`StoreError::Engine`] if the database failed; the snapshot before it is still there then.
    pub fn snapshot(&self) -> Outcome<(), Redb> {
        wait(self.store.snapshot())
    }

    /// [`Store::backup`]: copies the store as it is now into a new file, while it is in use.
    ///
    /// # Errors
    ///
    /// As there. A file that is there must be an empty database.
    pub fn backup(&self, path: impl AsRef<Path>) -> Outcome<(), Redb> {
        let target = Redb::at(path).map_err(StoreError::Engine)?;
        wait(self.store.backup(&target))
    }

    /// [`Store::rebuild`]: builds the filter again from all keys.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn rebuild(&self) -> Outcome<(), Redb> {
        wait(self.store.rebuild())
    }

    /// [`Store::restore`]: brings everything into step that errors have left behind.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn restore(&self) -> Outcome<(), Redb> {
        wait(self.store.restore())
    }

    /// [`Store::verify`]: checks everything, redb's own check first. It is refused while an iteration is under way.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] says what is wrong.
    pub fn verify(&self) -> Result<(), VerifyError<Error>> {
        wait(self.store.verify())
    }

    /// What was counted since the store was opened, and how its filter is now.
    pub fn metrics(&self) -> Metrics {
        self.store.metrics()
    }

    /// The last failure that failed no operation, for a log.
    pub fn take_fault(&self) -> Option<StoreError<Error>> {
        self.store.take_fault()
    }

    /// How the store came by its filter.
    pub fn opening(&self) -> &Opening {
        self.store.opening()
    }

    /// Where the data lies.
    pub fn layout(&self) -> Layout {
        self.store.layout()
    }

    /// Lets somebody look at the filter. Writers wait in the meantime.
    pub fn with_filter<T>(&self, look: impl FnOnce(&F) -> T) -> T {
        self.store.with_filter(look)
    }
}

impl<F: StoreFilter> fmt::Debug for RedbStore<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").field("store", &self.store).finish_non_exhaustive()
    }
}
