//! The store of one writer.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use slatedb::bytes::Bytes;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::path::Path;
use slatedb::{Db, DbIterator, WriteHandle};

use super::bridge;
use super::metrics::raise;
use super::rows::{self, Append, Position, State};
use super::settle::out_of_memory;
use super::shared::{Shared, SlateFilter};
use super::snapshot::{self, Published};
use super::write::{Insertion, Operations};
use super::{Durability, SlateBatch, SlateError, SlateMetrics, SlateOptions};

/// A SlateDB database behind an adaptive filter, with the reverse map inside: the only writer of a bucket.
///
/// [`get`](Self::get) asks the filter first; it awaits the database only if the filter says "maybe". When the database then
/// does not have the key, the filter is repaired. Data and reverse map change in one batch. A handle is cheap to clone, and
/// can be used by many tasks at once.
///
/// ```
/// use std::sync::Arc;
/// use besom::TelescopingFilter;
/// use besom_store::slate::{SlateOptions, SlateStore};
/// use slatedb::object_store::memory::InMemory;
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let bucket = Arc::new(InMemory::new());
/// let filter: TelescopingFilter = TelescopingFilter::builder().capacity(1000).growable().build()?;
/// let store = SlateStore::open("ages", bucket, filter, SlateOptions::new()).await?;
/// store.insert(b"Ada", b"36").await?;
/// assert_eq!(store.get(b"Ada").await?.as_deref(), Some(&b"36"[..]));
/// assert_eq!(store.get(b"Charles").await?, None); // almost certainly without a look into the database
/// store.close().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Failures
///
/// An error of the database means "done or not done". Whatever fails, and whichever future is dropped at whatever moment,
/// no stored key is ever rejected; a key that is left behind in the filter costs reads in vain, no more. Filter and lists
/// that have lost step are brought back with the next write or repair; [`restore`](Self::restore) does it at once.
/// A failure on the filter's side never fails a `get` that has its answer: [`metrics`](Self::metrics) counts it,
/// [`take_fault`](Self::take_fault) tells it.
///
/// Another writer that opens the same database fences this one: from then on its operations fail, and
/// [`SlateError::is_fenced`] says why.
pub struct SlateStore<F> {
    shared: Arc<Shared<F>>,
    origin: Origin,
}

impl<F> Clone for SlateStore<F> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), origin: self.origin }
    }
}

impl<F> std::fmt::Debug for SlateStore<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, origin) = (&self.shared.path, &self.origin);
        f.debug_struct("SlateStore").field("path", path).field("origin", origin).finish_non_exhaustive()
    }
}

/// Where the filter of a store came from when it was opened.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Origin {
    /// From a snapshot of exactly this state of the database, repairs included.
    Snapshot,
    /// From a scan of the stored keys.
    Scan {
        /// How many keys there were.
        keys: u64,
        /// How long it took.
        seconds: f64,
    },
}

impl<F: SlateFilter> SlateStore<F> {
    /// Opens the database at this path of the bucket, or creates it, and becomes its writer.
    ///
    /// `filter` is an empty one (of another, only the parameters are taken). It is used if there is no snapshot of exactly the state that the database is in: then all
    /// keys are read, and the reverse map is written anew. With such a snapshot the filter is what it was, and `filter` is
    /// dropped.
    ///
    /// # Errors
    ///
    /// [`SlateError`] if the bucket or the database failed, it is not one of this crate, or its keys do not fit into the
    /// filter. A snapshot that cannot be read is no error; [`take_fault`](Self::take_fault) tells it.
    pub async fn open(
        path: impl Into<Path>,
        bucket: Arc<dyn ObjectStore>,
        filter: F,
        options: SlateOptions,
    ) -> Result<Self, SlateError> {
        let path = path.into();
        let mut builder = Db::builder(path.clone(), bucket.clone())
            .with_settings(options.settings.clone())
            .with_merge_operator(Arc::new(Append));
        if let Some((cache, number)) = &options.cache {
            builder = builder.with_db_cache(cache.clone(), *number);
        }
        let db = builder.build().await?;
        let opened = Self::guard(db.clone(), bucket, path, filter, options).await;
        if opened.is_err() {
            // The first error counts.
            let _ = db.close().await;
        }
        opened
    }

    async fn guard(
        db: Db,
        bucket: Arc<dyn ObjectStore>,
        path: Path,
        filter: F,
        options: SlateOptions,
    ) -> Result<Self, SlateError> {
        let found = match db.get(rows::STATE).await? {
            Some(row) => Some(State::decode(&row)?),
            None => None,
        };
        if found.is_none()
            && let Some(row) = db.scan::<std::ops::RangeFull>(..).await?.next().await?
        {
            return Err(SlateError::Damaged { what: "a database without a state row", len: row.key.len() });
        }
        let (loaded, fault) = match &found {
            Some(state) => snapshot::matching::<F>(&*bucket, &path, state).await,
            None => (None, None),
        };
        let state = found.unwrap_or_default();
        let filter = if filter.is_empty() { filter } else { filter.emptied().map_err(out_of_memory)? };
        // An empty filter would reject what is stored, but nobody asks it before it is filled.
        let (first, template) = match loaded {
            Some(loaded) => (loaded, None),
            None => (filter.clone(), Some(filter)),
        };
        let shared = Shared::new(db, bucket, path, options, first, state);
        fault.into_iter().for_each(|fault| shared.note(fault));
        let origin = {
            let mut writer = shared.writer.lock().await;
            match template {
                Some(template) => {
                    let (keys, seconds) = shared.rebuild_as(&mut writer, template).await?;
                    Origin::Scan { keys, seconds }
                }
                None => {
                    shared.sweep(&mut writer).await?;
                    Origin::Snapshot
                }
            }
        };
        Ok(Self { shared: Arc::new(shared), origin })
    }

    /// Where the filter came from when this store was opened.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Whether the key may be stored, by the filter's word alone. `false` is certain.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.shared.filter().contains(key)
    }

    /// The value of a key. Awaits nothing if the filter rejects the key.
    ///
    /// Sees all writes that were acknowledged, durable or not.
    ///
    /// # Errors
    ///
    /// [`SlateError::Engine`] if the database failed.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, SlateError> {
        let shared = &*self.shared;
        if !self.contains(key) {
            raise(&shared.counters.reads_avoided);
            return Ok(None);
        }
        let found = shared.look_up(key).await?;
        match found {
            Some(_) => raise(&shared.counters.true_positives),
            None => shared.repair(key).await,
        }
        Ok(found)
    }

    /// Stores a value, and returns the one that was there before. Reads only if the filter says that the key may be there.
    ///
    /// # Errors
    ///
    /// [`SlateError`]. If it is one of the database, the key has the value that it had before, or the new one; else it has
    /// the one before.
    pub async fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Bytes>, SlateError> {
        check(key, value)?;
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        let (previous, handle) = {
            let mut writer = self.shared.writer.lock().await;
            self.shared.settle(&mut writer).await;
            let previous = if self.contains(&key) { self.shared.look_up(&key).await? } else { None };
            let insertions = vec![Insertion { key, value, known: previous.is_some() }];
            let operations = Operations { insertions, removals: Vec::new() };
            (previous, self.shared.execute(&mut writer, &operations).await?)
        };
        self.acknowledge(&handle).await?;
        Ok(previous)
    }

    /// Removes a key, and returns its value if it was there. Awaits nothing if the filter rejects the key.
    ///
    /// # Errors
    ///
    /// [`SlateError::Engine`] if the database failed, and the key may be there or not.
    pub async fn remove(&self, key: &[u8]) -> Result<Option<Bytes>, SlateError> {
        if !self.contains(key) {
            return Ok(None);
        }
        let (previous, handle) = {
            let mut writer = self.shared.writer.lock().await;
            self.shared.settle(&mut writer).await;
            let Some(previous) = self.shared.look_up(key).await? else { return Ok(None) };
            let removals = vec![Bytes::copy_from_slice(key)];
            let operations = Operations { insertions: Vec::new(), removals };
            (previous, self.shared.execute(&mut writer, &operations).await?)
        };
        self.acknowledge(&handle).await?;
        Ok(Some(previous))
    }

    /// Makes all insertions and removals of a batch, or none of them. Where several operations name one key, the last counts.
    ///
    /// The lists that they need are read all at once, so this is the way to write much. Several removals in one batch take
    /// a copy of the filter while they last.
    ///
    /// # Errors
    ///
    /// [`SlateError`]. If it is one of the database, all of the batch is done or nothing; else nothing is.
    pub async fn write(&self, batch: SlateBatch) -> Result<(), SlateError> {
        let operations = batch.into_operations()?;
        if operations.insertions.is_empty() && operations.removals.is_empty() {
            return Ok(());
        }
        let handle = {
            let mut writer = self.shared.writer.lock().await;
            self.shared.settle(&mut writer).await;
            self.shared.execute(&mut writer, &operations).await?
        };
        self.acknowledge(&handle).await
    }

    async fn acknowledge(&self, handle: &WriteHandle) -> Result<(), SlateError> {
        match self.shared.options.durability {
            Durability::Awaited => Ok(handle.await_durable().await?),
            Durability::Buffered => Ok(()),
        }
    }

    /// Waits until all that was written is in the bucket.
    ///
    /// # Errors
    ///
    /// [`SlateError::Engine`] if the database failed.
    pub async fn flush(&self) -> Result<(), SlateError> {
        Ok(self.shared.db.flush().await?)
    }

    /// All keys and values, in the order of the keys, as they are now.
    ///
    /// # Errors
    ///
    /// [`SlateError::Engine`] if the database failed.
    pub async fn iter(&self) -> Result<Rows, SlateError> {
        self.range::<&[u8]>(..).await
    }

    /// The keys in a range, with their values, in their order, as they are now.
    ///
    /// # Errors
    ///
    /// [`SlateError::Engine`] if the database failed.
    pub async fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Rows, SlateError> {
        let Some(range) = data_range(&range) else { return Ok(Rows(None)) };
        Ok(Rows(Some(self.shared.db.scan(range).await?)))
    }

    /// Puts a snapshot of the filter into the bucket, with a checkpoint of the database in exactly the same state: for
    /// readers, and for the next start. Queries and writes go on in the meantime, but for some milliseconds.
    ///
    /// # Errors
    ///
    /// [`SlateError`] if the database or the bucket failed. There is no new snapshot then, and the older ones are still there.
    pub async fn publish(&self) -> Result<Published, SlateError> {
        self.shared.publish().await
    }

    /// Brings filter, lists and data into step: at the addresses where a write failed, if that is enough, else by building the
    /// filter anew from a scan. Costs nothing if nothing has failed.
    ///
    /// # Errors
    ///
    /// [`SlateError`] if the database failed or its keys do not fit. The filter still holds every key that is stored.
    pub async fn restore(&self) -> Result<(), SlateError> {
        let mut writer = self.shared.writer.lock().await;
        self.shared.settle_lists(&mut writer).await?;
        if writer.suspects == 0 && writer.doubts.are_settled() {
            return Ok(());
        }
        self.shared.rebuild(&mut writer).await
    }

    /// Checks that the filter is sound, that the lists are the filter's, and that every stored key is accepted. Reads
    /// everything, and lets nobody write in the meantime.
    ///
    /// # Errors
    ///
    /// [`SlateError`] says what is wrong, or that the database failed.
    pub async fn verify(&self) -> Result<(), SlateError> {
        let mut writer = self.shared.writer.lock().await;
        self.shared.filter().verify()?;
        self.shared.on_a_thread(&mut writer, None, |filter, bridge| filter.verify_remote(bridge)).await?;
        let (mut behind, mut rejected) = (None, (0, None));
        loop {
            let keys = bridge::key_chunk(&self.shared.db, behind).await?;
            let Some(last) = keys.last() else { break };
            behind = Some(last.clone());
            for key in keys.iter().filter(|key| !self.contains(key)) {
                rejected = (rejected.0 + 1, Some(key.clone()));
            }
        }
        match rejected {
            (keys, Some(key)) => Err(SlateError::Rejected { keys, key: key.to_vec().into() }),
            _ => Ok(()),
        }
    }

    /// What was counted since this store was opened, and how its filter is now.
    #[must_use]
    pub fn metrics(&self) -> SlateMetrics {
        let filter = self.shared.filter();
        let (keys, bits_per_key) = (filter.len(), filter.stats().bits_per_key());
        drop(filter);
        let (waiting_adaptations, snapshot_age) = (self.shared.waiting(), self.shared.snapshot_age());
        SlateMetrics {
            snapshot_age,
            waiting_adaptations,
            keys,
            bits_per_key,
            ..self.shared.counters.metrics()
        }
    }

    /// Which state the database is in. Positions that are not durable yet may be taken again after a crash.
    pub async fn position(&self) -> Position {
        self.shared.writer.lock().await.state.position
    }

    /// The last failure that did not fail an operation, for a log.
    #[must_use]
    pub fn take_fault(&self) -> Option<SlateError> {
        self.shared.take_fault()
    }

    /// Publishes a snapshot, so that the next start needs no scan, and closes the database.
    ///
    /// # Errors
    ///
    /// [`SlateError`] if one of the two failed. All that was acknowledged as durable is there.
    pub async fn close(&self) -> Result<(), SlateError> {
        let published = self.publish().await;
        self.shared.db.close().await?;
        published.map(drop)
    }
}

/// Refuses what is too long.
pub(super) fn check(key: &[u8], value: &[u8]) -> Result<(), SlateError> {
    for (what, len, max) in [("key", key.len(), rows::MAX_KEY), ("value", value.len(), rows::MAX_VALUE)] {
        if len > max {
            return Err(SlateError::TooLong { what, len, max });
        }
    }
    Ok(())
}

/// A range of keys as one of rows; `None` if it is empty.
pub(super) fn data_range<K: AsRef<[u8]>>(
    range: &impl RangeBounds<K>,
) -> Option<(Bound<Bytes>, Bound<Bytes>)> {
    let row = |key: &K| rows::data(key.as_ref());
    let all = rows::all_data();
    let start = match range.start_bound() {
        Bound::Unbounded => Bound::Included(Bytes::copy_from_slice(&all.start)),
        bound => bound.map(row),
    };
    let end = match range.end_bound() {
        Bound::Unbounded => Bound::Excluded(Bytes::copy_from_slice(&all.end)),
        bound => bound.map(row),
    };
    let is_empty = match (&start, &end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => {
            start >= end
        }
        _ => false,
    };
    (!is_empty).then_some((start, end))
}

/// Keys and values, in the order of the keys.
pub struct Rows(pub(super) Option<DbIterator>);

impl Rows {
    /// The next key and its value.
    ///
    /// # Errors
    ///
    /// [`SlateError::Engine`] if the database failed.
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, SlateError> {
        let Some(iterator) = &mut self.0 else { return Ok(None) };
        Ok(iterator.next().await?.map(|row| (rows::key_of(&row.key), row.value)))
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}
