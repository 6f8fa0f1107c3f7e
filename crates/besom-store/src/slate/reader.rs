//! Readers beside the writer, in other processes or on other machines.
//!
//! A reader has *views*. A view is a pair: the database at a checkpoint, which never changes and is never collected while its
//! snapshot is kept, and the filter that the writer had at exactly that state. The two are changed for newer ones together.
//! So the filter accepts every key of its view, whatever the writer does in the meantime.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use besom::play::{Adapt, Play, Step};
use besom::{Adaptation, Digest, KeyHasher};
use slatedb::bytes::Bytes;
use slatedb::object_store::path::Path;
use slatedb::object_store::{self, ObjectStore};
use slatedb::{DbReader, DbReaderMode};

use super::engine::{SlateView, row_range};
use super::prefixes::policies;
use super::snapshot::{self, Name};
use super::store::{Rows, data_range, failed};
use super::{SlateError, SlateFailure, SlateOptions};
use crate::engine::{KeyRange, Table, View as _};
use crate::metrics::Counters;
use crate::record::{self, Entry, Header, Index};
use crate::{Layout, Metrics, Position, StoreError, StoreFilter, rows};

/// How often a reader looks again if a snapshot was cleared out while it was being opened.
const ATTEMPTS: usize = 4;

/// A SlateDB database behind an adaptive filter, read-only: any number of them beside one
/// [writer](super::SlateStore).
///
/// It sees the database as it was when the writer [published](super::SlateStore::publish) a snapshot, and moves on to newer
/// snapshots with [`refresh`](Self::refresh). It never rejects a key that its view of the database holds. It writes nothing:
/// it repairs its own filter from the rows of its view, for as long as it stays on this view. Filters whose repairs
/// have to be written (broom and cuckoo filters) stay as they are.
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
/// let make = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).growable().build();
/// let store = SlateStore::open("ages", bucket.clone(), make, SlateOptions::new()).await?;
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
    db: SlateView<DbReader>,
    header: Header,
    filter: RwLock<F>,
    name: Name,
    since: Instant,
}

impl<F> std::fmt::Debug for SlateReader<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlateReader").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<F: StoreFilter> SlateReader<F> {
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
            return Err(StoreError::Engine(SlateFailure::NoSnapshot { path: path.to_string() }));
        };
        let (view, following) = (RwLock::new(Arc::new(view)), tokio::sync::Mutex::default());
        Ok(Self { bucket, path, options, view, following, counters: Counters::default() })
    }

    fn view(&self) -> Arc<View<F>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Which state of the database this reader sees.
    pub fn position(&self) -> Position {
        self.view().name.position
    }

    /// Whether the key may be stored, by the filter's word alone. `false` is certain, for the view of this moment.
    pub fn may_contain_key(&self, key: &[u8]) -> bool {
        self.view().accepted(key).is_some()
    }

    /// The value of a key. Awaits nothing if the filter rejects the key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed, or the snapshot of this view was cleared out:
    /// [`refresh`](Self::refresh) then.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, SlateError> {
        let view = self.view();
        let Some(digest) = view.accepted(key) else {
            self.counters.reads_avoided.add(1);
            return Ok(None);
        };
        let found = match view.header.layout {
            Layout::Hashed => self.counters.timed(view.db.get(Table::Data, &rows::row(digest.hi, key))).await,
            Layout::Ordered => self.counters.timed(view.db.get(Table::Data, key)).await,
        };
        let found = found.map_err(StoreError::Engine)?;
        match found {
            Some(_) => self.counters.true_positives.add(1),
            None => {
                self.counters.false_positive(key);
                match self.repair(&view, key, digest).await {
                    Ok(Some(true)) => self.counters.adaptations.add(1),
                    Ok(Some(false)) if view.accepted(key).is_some() => self.counters.denied.add(1),
                    Ok(Some(false)) => {}
                    Ok(None) | Err(_) => self.counters.failed_adaptations.add(1),
                }
            }
        }
        Ok(found)
    }

    /// Repairs a false positive in memory. Whether there was one; `None` if the repair would have to be written.
    async fn repair(&self, view: &View<F>, key: &[u8], digest: Digest) -> Result<Option<bool>, SlateFailure> {
        let mut play = Play::new();
        let mut needed = view.filter_read(|filter| filter.home(digest));
        loop {
            if let Some(range) = needed.take() {
                self.counters.remote_reads.add(1);
                let evidence = play.evidence();
                let visit = &mut |row: &[u8], _: &[u8]| {
                    if let Some((address, key)) = rows::parts(row) {
                        evidence.add(address, key);
                    }
                    std::ops::ControlFlow::Continue(())
                };
                let table = if view.header.index == Index::None { Table::Data } else { Table::Index };
                self.counters.timed(view.db.scan(table, rows::rows(&range), false, visit)).await?;
                play.evidence().know(range);
            }
            match view.filter_write(|filter| play.step(filter, &Adapt(key))) {
                Ok(Step::Needs(range)) => needed = Some(range),
                Ok(Step::Done(Adaptation::NotFalsePositive | Adaptation::Unfixable)) => {
                    return Ok(Some(false));
                }
                Ok(Step::Done(_)) => return Ok(Some(true)),
                Ok(Step::Commit | Step::Beyond) | Err(_) => return Ok(None),
            }
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
        self.counters.snapshots.add(1);
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

    /// All keys and values of this view, in the order of their rows.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    pub async fn iter(&self) -> Result<Rows, SlateError> {
        self.rows(row_range(Table::Data, &KeyRange::default())).await
    }

    /// The keys of this view in a range, with their values, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOrdered`] in the hashed layout, [`StoreError::Engine`] if the database failed.
    pub async fn range<K: AsRef<[u8]>>(
        &self,
        range: impl std::ops::RangeBounds<K>,
    ) -> Result<Rows, SlateError> {
        if self.view().header.layout != Layout::Ordered {
            return Err(StoreError::NotOrdered);
        }
        self.rows(data_range(&range)).await
    }

    async fn rows(&self, range: std::ops::Range<Bytes>) -> Result<Rows, SlateError> {
        let view = self.view();
        let found = match range.is_empty() {
            true => None,
            false => Some(view.db.0.scan(range).await.map_err(failed)?),
        };
        Ok(Rows { found, layout: view.header.layout })
    }

    /// What was counted since this reader was opened, and how its filter is now.
    pub fn metrics(&self) -> Metrics {
        let view = self.view();
        let stats = view.filter_read(besom::Filter::stats);
        Metrics {
            keys: stats.items as u64,
            bits_per_key: stats.bits_per_key(),
            snapshot_age: Some(view.since.elapsed()),
            ..self.counters.metrics()
        }
    }
}

impl<F: StoreFilter> View<F> {
    /// The digest of a key that the filter accepts.
    fn accepted(&self, key: &[u8]) -> Option<Digest> {
        self.filter_read(|filter| {
            let digest = filter.hasher().digest(key);
            filter.contains_digest(digest).then_some(digest)
        })
    }

    fn filter_read<T>(&self, ask: impl FnOnce(&F) -> T) -> T {
        ask(&self.filter.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn filter_write<T>(&self, change: impl FnOnce(&mut F) -> T) -> T {
        change(&mut self.filter.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The newest snapshot as a view, if there is one newer than `current`.
async fn newest_view<F: StoreFilter>(
    bucket: &Arc<dyn ObjectStore>,
    path: &Path,
    options: &SlateOptions,
    current: Option<Name>,
) -> Result<Option<View<F>>, SlateError> {
    let mut attempt = 1;
    loop {
        let newest = snapshot::list(&**bucket, path).await.map_err(StoreError::Engine)?.pop();
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
        StoreError::Engine(SlateFailure::Bucket(error)) => {
            matches!(error, object_store::Error::NotFound { .. })
        }
        StoreError::Engine(SlateFailure::Database(_)) => true,
        _ => false,
    }
}

async fn open_view<F: StoreFilter>(
    bucket: &Arc<dyn ObjectStore>,
    path: &Path,
    options: &SlateOptions,
    name: Name,
) -> Result<View<F>, SlateError> {
    let filter: F = snapshot::load(&**bucket, path, &name).await?;
    let mut builder = DbReader::builder(path.clone(), bucket.clone())
        .with_options(options.reader.clone())
        .with_filter_policies(policies())
        .with_reader_mode(DbReaderMode::Checkpoint(name.checkpoint));
    if let Some((cache, number)) = &options.cache {
        builder = builder.with_db_cache(cache.clone(), *number);
    }
    let db = SlateView(builder.build().await.map_err(failed)?);
    let foreign = || StoreError::Engine(SlateFailure::Foreign { name: name.to_string() });
    // The name is somebody's word. What the checkpoint holds is not.
    let row = async |number| db.get(Table::State, &record::key_of(number)).await;
    let header = db.get(Table::State, &[]).await.map_err(StoreError::Engine)?;
    let header = header.and_then(|row| Header::decode(&row).ok()).ok_or_else(foreign)?;
    let last = row(name.position.number).await.map_err(StoreError::Engine)?;
    let last = last.and_then(|row| Entry::decode(&row)).ok_or_else(foreign)?;
    let next = row(name.position.number + 1).await.map_err(StoreError::Engine)?;
    if last.branch != name.position.branch || next.is_some() || !header.has_hash(F::hasher(&filter)) {
        return Err(foreign());
    }
    Ok(View { db, header, filter: RwLock::new(filter), name, since: Instant::now() })
}
