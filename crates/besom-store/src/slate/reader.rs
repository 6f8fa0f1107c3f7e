//! Readers beside the writer, in other processes or on other machines.
//!
//! A reader has *views*. A view is a pair: the database at a checkpoint, which never changes and is never collected while its
//! snapshot is kept, and the filter that the writer had at exactly that state. The two are changed for newer ones together.
//! So the filter accepts every key of its view, whatever the writer does in the meantime.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use besom::Adaptation;
use slatedb::bytes::Bytes;
use slatedb::object_store::path::Path;
use slatedb::object_store::{self, ObjectStore};
use slatedb::{DbReader, DbReaderMode};

use super::metrics::{Counters, raise};
use super::replay::{Replay, Step};
use super::rows::{self, Append, Position, State};
use super::shared::SlateFilter;
use super::snapshot::{self, Name};
use super::store::{Rows, data_range};
use super::{SlateError, SlateMetrics, SlateOptions};

/// How often a reader looks again if a snapshot was cleared out while it was being opened.
const ATTEMPTS: usize = 4;

/// A SlateDB database behind an adaptive filter, read-only: any number of them beside one
/// [writer](super::SlateStore).
///
/// It sees the database as it was when the writer [published](super::SlateStore::publish) a snapshot, and moves on to newer
/// snapshots with [`refresh`](Self::refresh). It never rejects a key that its view of the database holds. It writes nothing:
/// it repairs its own filter from the lists of its view, for as long as it stays on this view. Filters whose repairs
/// have to be written (all but telescoping, extension and whitelist ones) stay as they are.
///
/// ```
/// use std::sync::Arc;
/// use besom::TelescopingFilter;
/// use besom_store::slate::{SlateOptions, SlateReader, SlateStore};
/// use slatedb::object_store::memory::InMemory;
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let bucket = Arc::new(InMemory::new());
/// let filter: TelescopingFilter = TelescopingFilter::builder().capacity(1000).growable().build()?;
/// let store = SlateStore::open("ages", bucket.clone(), filter, SlateOptions::new()).await?;
/// store.insert(b"Ada", b"36").await?;
/// store.publish().await?;
///
/// let reader = SlateReader::<TelescopingFilter>::open("ages", bucket, SlateOptions::new()).await?;
/// assert_eq!(reader.get(b"Ada").await?.as_deref(), Some(&b"36"[..]));
/// # store.close().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SlateReader<F> {
    bucket: Arc<dyn ObjectStore>,
    path: Path,
    options: SlateOptions,
    view: RwLock<Arc<View<F>>>,
    /// Held by whoever looks for a newer snapshot.
    following: tokio::sync::Mutex<()>,
    counters: Counters,
}

/// A state of the database, and the filter that belongs to it.
struct View<F> {
    db: DbReader,
    filter: RwLock<F>,
    name: Name,
    since: Instant,
}

impl<F> std::fmt::Debug for SlateReader<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlateReader").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<F: SlateFilter> SlateReader<F> {
    /// Opens the newest snapshot of the database at this path of the bucket.
    ///
    /// # Errors
    ///
    /// [`SlateError::NoSnapshot`] if there is none yet; [`SlateError`] if the bucket or the database failed, or the snapshot
    /// cannot be used.
    pub async fn open(
        path: impl Into<Path>,
        bucket: Arc<dyn ObjectStore>,
        options: SlateOptions,
    ) -> Result<Self, SlateError> {
        let path = path.into();
        let Some(view) = newest_view(&bucket, &path, &options, None).await? else {
            return Err(SlateError::NoSnapshot { path: path.to_string() });
        };
        let (view, following) = (RwLock::new(Arc::new(view)), tokio::sync::Mutex::default());
        Ok(Self { bucket, path, options, view, following, counters: Counters::new() })
    }

    fn view(&self) -> Arc<View<F>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Which state of the database this reader sees.
    pub fn position(&self) -> Position {
        self.view().name.position
    }

    /// Whether the key may be stored, by the filter's word alone. `false` is certain, for the view of this moment.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.view().contains(key)
    }

    /// The value of a key. Awaits nothing if the filter rejects the key.
    ///
    /// # Errors
    ///
    /// [`SlateError::Engine`] if the database failed, or the snapshot of this view was cleared out:
    /// [`refresh`](Self::refresh) then.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, SlateError> {
        let view = self.view();
        if !view.contains(key) {
            raise(&self.counters.reads_avoided);
            return Ok(None);
        }
        let start = Instant::now();
        let found = view.db.get(rows::data(key)).await;
        self.counters
            .store_nanos
            .fetch_add(start.elapsed().as_nanos() as u64, std::sync::atomic::Ordering::Relaxed);
        let found = found?;
        match found {
            Some(_) => raise(&self.counters.true_positives),
            None => self.repair(&view, key).await,
        }
        Ok(found)
    }

    /// Repairs a false positive in memory.
    async fn repair(&self, view: &View<F>, key: &[u8]) {
        self.counters.false_positive(view.filter_read(|filter| filter.digest(key).hi));
        // What would have to be written is planned, and left at that.
        let mut replay = Replay::planning();
        let adapt = |replay: &mut Replay| view.filter_write(|filter| filter.adapt(key, replay));
        let step = replay.drive(&view.db, view.name.generation, adapt).await;
        self.counters.remote_reads.fetch_add(replay.fetched(), std::sync::atomic::Ordering::Relaxed);
        match step {
            Ok(Step::Done(Adaptation::NotFalsePositive)) if !view.contains(key) => {}
            Ok(Step::Done(Adaptation::NotFalsePositive | Adaptation::Unfixable)) => {
                raise(&self.counters.denied);
            }
            Ok(Step::Done(_)) => raise(&self.counters.adaptations),
            Ok(Step::Planned | Step::Scan) | Err(_) => raise(&self.counters.failed_adaptations),
        }
    }

    /// Moves on to the newest snapshot. Whether there was a newer one. Queries go on in the meantime, on the old view.
    ///
    /// # Errors
    ///
    /// [`SlateError`] if the bucket or the database failed, or the newest snapshot cannot be used; the view is the old one
    /// then.
    pub async fn refresh(&self) -> Result<bool, SlateError> {
        let _following = self.following.lock().await;
        let current = self.view().name;
        let Some(view) = newest_view(&self.bucket, &self.path, &self.options, Some(current)).await? else {
            return Ok(false);
        };
        // Queries that are under way keep the old view until they are done.
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
        raise(&self.counters.snapshots);
        Ok(true)
    }

    /// [Refreshes](Self::refresh) again and again, each time after this long. Never comes to an end: run it beside the
    /// queries, and drop it to stop. What fails is told to `failed`, and tried again.
    pub async fn follow(&self, every: Duration, mut failed: impl FnMut(SlateError)) {
        loop {
            tokio::time::sleep(every).await;
            if let Err(error) = self.refresh().await {
                failed(error);
            }
        }
    }

    /// All keys and values of this view, in the order of the keys.
    ///
    /// # Errors
    ///
    /// [`SlateError::Engine`] if the database failed.
    pub async fn iter(&self) -> Result<Rows, SlateError> {
        self.range::<&[u8]>(..).await
    }

    /// The keys of this view in a range, with their values, in their order.
    ///
    /// # Errors
    ///
    /// [`SlateError::Engine`] if the database failed.
    pub async fn range<K: AsRef<[u8]>>(
        &self,
        range: impl std::ops::RangeBounds<K>,
    ) -> Result<Rows, SlateError> {
        let Some(range) = data_range(&range) else { return Ok(Rows(None)) };
        Ok(Rows(Some(self.view().db.scan(range).await?)))
    }

    /// What was counted since this reader was opened, and how its filter is now.
    pub fn metrics(&self) -> SlateMetrics {
        let view = self.view();
        let (keys, bits_per_key) = view.filter_read(|filter| (filter.len(), filter.stats().bits_per_key()));
        SlateMetrics {
            keys,
            bits_per_key,
            snapshot_age: Some(view.since.elapsed()),
            ..self.counters.metrics()
        }
    }
}

impl<F: SlateFilter> View<F> {
    fn contains(&self, key: &[u8]) -> bool {
        self.filter_read(|filter| filter.contains(key))
    }

    fn filter_read<T>(&self, ask: impl FnOnce(&F) -> T) -> T {
        ask(&self.filter.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn filter_write<T>(&self, change: impl FnOnce(&mut F) -> T) -> T {
        change(&mut self.filter.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The newest snapshot as a view, if there is one newer than `current`.
async fn newest_view<F: SlateFilter>(
    bucket: &Arc<dyn ObjectStore>,
    path: &Path,
    options: &SlateOptions,
    current: Option<Name>,
) -> Result<Option<View<F>>, SlateError> {
    let mut attempt = 1;
    loop {
        let newest = snapshot::list(&**bucket, path).await?.pop();
        let Some(name) = newest.filter(|&name| Some(name) > current) else { return Ok(None) };
        match open_view(bucket, path, options, name).await {
            Ok(view) => return Ok(Some(view)),
            // Cleared out since it was listed: then there is a newer one.
            Err(error) if attempt < ATTEMPTS && is_gone(&error) => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

fn is_gone(error: &SlateError) -> bool {
    match error {
        SlateError::Objects(error) => matches!(error, object_store::Error::NotFound { .. }),
        SlateError::Engine(_) => true,
        _ => false,
    }
}

async fn open_view<F: SlateFilter>(
    bucket: &Arc<dyn ObjectStore>,
    path: &Path,
    options: &SlateOptions,
    name: Name,
) -> Result<View<F>, SlateError> {
    let filter = snapshot::load(&**bucket, path, &name).await?;
    let mut builder = DbReader::builder(path.clone(), bucket.clone())
        .with_options(options.reader.clone())
        .with_reader_mode(DbReaderMode::Checkpoint(name.checkpoint))
        .with_merge_operator(Arc::new(Append));
    if let Some((cache, number)) = &options.cache {
        builder = builder.with_db_cache(cache.clone(), *number);
    }
    let db = builder.build().await?;
    // The name is somebody's word. What the checkpoint holds is not.
    let row = db.get(rows::STATE).await?.unwrap_or_default();
    if !name.belongs_to(&State::decode(&row)?) {
        return Err(SlateError::Foreign { name: name.to_string() });
    }
    Ok(View { db, filter: RwLock::new(filter), name, since: Instant::now() })
}
