//! A store on one disk: redb behind a filter.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ::redb::{Durability, Error};
use besom::Adaptive;
use besom::format::{Persist, WriteOptions};

use crate::builder::RedbStoreBuilder;
use crate::guard::Guarded;
use crate::metrics::Metrics;
use crate::redb::{Entries, Layout, Redb};
use crate::snapshot::SnapshotRefused;
use crate::verify::VerifyError;
use crate::{Batch, StoreError};

/// What a [`RedbStore`] needs of its filter: all adaptive filters of besom that can be saved have it.
pub trait StoreFilter: Adaptive + Persist + Clone + Send + Sync + 'static {}

impl<F: Adaptive + Persist + Clone + Send + Sync + 'static> StoreFilter for F {}

type Outcome<T> = Result<T, StoreError<Error>>;

/// A key-value store in a file, with an adaptive filter in front of it, for many threads.
///
/// A key that is not there is nearly always rejected by the filter, without a look into the file. When one is not, the
/// filter is repaired, so that the same question does not get through again. The keys that repairs need (the filter's
/// *lists*) are in the same database and change in the same transaction as the data.
///
/// ```
/// use besom::TelescopingFilter;
/// use besom_store::RedbStore;
///
/// # let directory = std::env::temp_dir().join(format!("besom-store-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let path = directory.join("users.redb");
/// // Called with the number of keys that there are, when a filter has to be made.
/// let make = |keys: usize| TelescopingFilter::builder().capacity(keys.max(1000)).growable().build();
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
/// All operations take `&self`. Reading threads wait for a writing one only while it changes the filter in memory, never while
/// it waits for the disk. Writes wait for each other. A batch works on a copy of the filter, which takes the filter's memory
/// once more for the time of the batch; so do growth and snapshots.
///
/// # When things fail
///
/// An error of the database reaches the caller as it is. A commit that fails was made or not: the store finds out with the next
/// operation that needs the database, after opening it again if redb asks for that, and in the meantime no key is rejected that
/// may be there. A repair that fails never fails the `get` that asked for it: [`metrics`](Self::metrics) counts it and
/// [`take_fault`](Self::take_fault) tells it.
///
/// After a crash the filter is loaded from its snapshot and caught up with what was written since; where that is not possible
/// it is built anew from the keys. [`opening`](Self::opening) says what was done.
pub struct RedbStore<F> {
    pub(crate) guarded: Guarded<F, Redb>,
    pub(crate) durability: Durability,
    pub(crate) snapshot_path: PathBuf,
    /// Held by whoever writes a snapshot.
    pub(crate) snapshots: Mutex<()>,
    /// The last snapshot that was written or loaded.
    pub(crate) last_snapshot: Mutex<Option<SnapshotTime>>,
    pub(crate) opening: Opening,
}

/// When a snapshot was written or loaded, and the commit that it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SnapshotTime {
    pub(crate) at: Instant,
    pub(crate) sequence: u64,
}

/// How a store came by its filter when it was opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Opening {
    /// The store had no keys.
    Empty,
    /// From a snapshot that matched.
    Snapshot,
    /// From a snapshot that was caught up with the writes since.
    CaughtUp {
        /// How many commits it was behind.
        commits: u64,
    },
    /// From all keys of the store.
    Built {
        /// How many.
        keys: u64,
        /// How long it took, in seconds.
        seconds: f64,
        /// What was wrong with the snapshot; `None` if there was none.
        refused: Option<SnapshotRefused>,
    },
}

/// How far the building of a filter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Keys done.
    pub keys: u64,
    /// Keys in all.
    pub total: u64,
}

impl<F: StoreFilter> RedbStore<F> {
    /// Opens a store, or makes one if there is no file; see [`builder`](Self::builder) for what else can be chosen.
    ///
    /// `make` makes a filter for at least so many keys. It is called when the store has no filter that could be loaded.
    ///
    /// # Errors
    ///
    /// [`StoreError::Open`] if the file cannot be opened, and what the filter says.
    pub fn open(
        path: impl AsRef<Path>,
        make: impl Fn(usize) -> Result<F, besom::BuildError> + Send + Sync + 'static,
    ) -> Outcome<Self> {
        RedbStore::builder().open(path, make)
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    pub fn get(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.guarded.get(key)
    }

    /// Whether the store has a key. Costs as much as [`get`](Self::get).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn contains_key(&self, key: &[u8]) -> Outcome<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Whether the store may have a key, by the filter's word alone: no disk, no error. `false` is certain.
    pub fn may_contain_key(&self, key: &[u8]) -> bool {
        self.guarded.may_have(key)
    }

    /// Stores a value, with the store's durability, and returns the one that was there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed: the key has the old value or the new one. [`StoreError::Full`] without room
    /// in the filter; nothing has changed.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.insert_with(key, value, self.durability)
    }

    /// [`insert`](Self::insert) with another durability.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_with(&self, key: &[u8], value: &[u8], durability: Durability) -> Outcome<Option<Vec<u8>>> {
        self.guarded.insert(key, value, is_durable(durability))
    }

    /// Removes a key, with the store's durability, and returns its value.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed: the key is there or not.
    pub fn remove(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.remove_with(key, self.durability)
    }

    /// [`remove`](Self::remove) with another durability.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    pub fn remove_with(&self, key: &[u8], durability: Durability) -> Outcome<Option<Vec<u8>>> {
        self.guarded.remove(key, is_durable(durability))
    }

    /// Makes all changes of a batch in one transaction, one after the other, with the store's durability.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed: all changes were made or none. [`StoreError::Full`] if the filter has no room
    /// for all of them; nothing has changed.
    pub fn write(&self, batch: &Batch) -> Outcome<()> {
        self.write_with(batch, self.durability)
    }

    /// [`write`](Self::write) with another durability.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn write_with(&self, batch: &Batch, durability: Durability) -> Outcome<()> {
        self.guarded.write(batch.steps(), is_durable(durability))
    }

    /// How many keys the store has.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    pub fn len(&self) -> Outcome<u64> {
        self.guarded.len()
    }

    /// Whether the store has no keys.
    ///
    /// # Errors
    ///
    /// As [`len`](Self::len).
    pub fn is_empty(&self) -> Outcome<bool> {
        Ok(self.len()? == 0)
    }

    /// All keys and values as they are now: in the order of keys in the split layout, in that of addresses in the merged one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    pub fn iter(&self) -> Outcome<Entries> {
        self.guarded.view()?.entries().map_err(StoreError::Engine)
    }

    /// The keys of a range and their values, in order, as they are now.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOrdered`] in the merged layout, [`StoreError::Engine`] if the database failed.
    pub fn range<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> Outcome<Entries> {
        if self.layout() == Layout::Merged {
            return Err(StoreError::NotOrdered);
        }
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (range.start_bound().cloned(), range.end_bound().cloned());
        self.guarded.view()?.range(bounds).map_err(StoreError::Engine)
    }

    /// Gives unused parts of the file back. Whether there were any.
    ///
    /// Everybody else waits as long as it takes, and it is refused while an iteration is under way.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed or is being iterated over.
    pub fn compact(&self) -> Outcome<bool> {
        let mut writer = self.guarded.lock_writer();
        self.guarded.settle(&mut writer)?;
        self.guarded.engine.compact().map_err(StoreError::Engine)
    }

    /// Writes the filter to its file, so that the next opening finds it.
    ///
    /// Makes durable what was written before. Writes wait for that, not for the file; reads do not wait. Keeps a copy of the
    /// filter in memory until it is written.
    ///
    /// # Errors
    ///
    /// [`StoreError::Snapshot`] if the file cannot be written, [`StoreError::Engine`] if the database failed; the snapshot
    /// before it is still there then.
    pub fn snapshot(&self) -> Outcome<()> {
        let _alone = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let (copy, sequence) = self.guarded.copy_durably()?;
        copy.save(&self.snapshot_path, &WriteOptions::new().generation(sequence))
            .map_err(|source| StoreError::Snapshot { path: self.snapshot_path.clone(), source })?;
        let written = SnapshotTime { at: Instant::now(), sequence };
        *self.last_snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
        self.guarded.counters.snapshots.add(1);
        self.guarded.note_snapshot(sequence)
    }

    /// Builds the filter and its lists anew from all keys, with what the function given on opening makes. Repairs are forgotten.
    /// The old filter answers in the meantime.
    ///
    /// Helps a filter whose size does not fit any more. After errors the store does it by itself.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database failed or the keys do not fit. The store is as it was.
    pub fn rebuild(&self) -> Outcome<()> {
        let mut writer = self.guarded.lock_writer();
        let rebuilds = self.guarded.counters.rebuilds.get();
        self.guarded.settle(&mut writer)?;
        if self.guarded.counters.rebuilds.get() > rebuilds {
            Ok(())
        } else {
            self.guarded.rebuild(&mut writer)
        }
    }

    /// Brings everything into step that errors have left behind, as the next write would do. Costs nothing if there were none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database still fails.
    pub fn restore(&self) -> Outcome<()> {
        self.guarded.restore()
    }

    /// Checks everything: the filter, its lists, and the data. Reads the whole database, and writers wait as long as it takes.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] says what does not agree. [`rebuild`](Self::rebuild) makes it agree.
    pub fn verify(&self) -> Result<(), VerifyError> {
        crate::verify::verify(self)
    }

    /// What was counted since the store was opened, and how its filter is now.
    pub fn metrics(&self) -> Metrics {
        let last = *self.last_snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.guarded.sequence();
        Metrics {
            snapshot_age: last.map(|last| last.at.elapsed()),
            snapshot_behind: last.map(|last| now.wrapping_sub(last.sequence)),
            ..self.guarded.metrics()
        }
    }

    /// The last failure that failed no operation, for a log.
    pub fn take_fault(&self) -> Option<StoreError<Error>> {
        self.guarded.take_fault()
    }

    /// How the store came by its filter.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Where the data lies.
    pub fn layout(&self) -> Layout {
        self.guarded.engine.layout()
    }

    /// Lets somebody look at the filter. Writers wait in the meantime.
    pub fn with_filter<T>(&self, look: impl FnOnce(&F) -> T) -> T {
        self.guarded.with_filter(look)
    }
}

impl RedbStore<()> {
    /// Chooses more than a path and a filter.
    pub fn builder() -> RedbStoreBuilder {
        RedbStoreBuilder::default()
    }
}

fn is_durable(durability: Durability) -> bool {
    !matches!(durability, Durability::None)
}

impl<F> fmt::Debug for RedbStore<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore")
            .field("snapshot", &self.snapshot_path)
            .field("opening", &self.opening)
            .finish_non_exhaustive()
    }
}
