//! SlateDB as an engine.
//!
//! ```text
//! s ...   -> what the store says of itself, one row for each of its last commits
//! d ...   -> the data
//! i ...   -> the index, where there is one
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use slatedb::bytes::Bytes;
use slatedb::config::{DurabilityLevel, PutOptions, ScanOptions, Ttl};
use slatedb::object_store::path::Path;
use slatedb::object_store::{self, ObjectStore};
use slatedb::{CloseReason, Db, DbReadOps, DbSnapshot, DbStatus, WriteBatch, WriteHandle};
use thiserror::Error;
use tokio::sync::watch;

use super::SlateOptions;
use super::prefixes::policies;
use crate::engine::{Durability, Engine, Health, KeyRange, Table, View, VisitRow, Write};

/// Why SlateDB or the bucket failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SlateFailure {
    /// The database failed. A write that fails so may be done or not; [`slatedb::Error::kind`] says what to do.
    #[error("SlateDB: {0}")]
    Database(#[from] slatedb::Error),
    /// The bucket failed while a snapshot was listed, read, written or deleted.
    #[error("the bucket: {0}")]
    Bucket(#[from] object_store::Error),
    /// A reader found no snapshot.
    #[error("there is no snapshot at {path}; a reader needs one: have the writer publish it")]
    NoSnapshot {
        /// Where it looked.
        path: String,
    },
    /// A snapshot does not belong to the state of the database that it names.
    #[error("the snapshot {name} does not belong to its checkpoint; have the writer publish another one")]
    Foreign {
        /// Its name in the bucket.
        name: String,
    },
}

/// A SlateDB database as an [`Engine`], for its one writer. Clones share it.
#[derive(Clone)]
pub struct Slate(Arc<Shared>);

struct Shared {
    open: RwLock<Open>,
    pub(super) bucket: Arc<dyn ObjectStore>,
    pub(super) path: Path,
    pub(super) options: SlateOptions,
    /// A write was not known to last when its writer asked: what is in memory is not to be believed.
    failed: AtomicBool,
    /// It was closed on purpose.
    closed: AtomicBool,
}

struct Open {
    db: Db,
    status: watch::Receiver<DbStatus>,
}

impl std::fmt::Debug for Slate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slate").field("path", &self.0.path).finish_non_exhaustive()
    }
}

impl Slate {
    /// Opens the database at this path of the bucket, or creates it, and becomes its writer.
    pub(super) async fn open(
        path: Path,
        bucket: Arc<dyn ObjectStore>,
        options: SlateOptions,
    ) -> Result<Self, SlateFailure> {
        let open = RwLock::new(open_database(path.clone(), bucket.clone(), options.clone()).await?);
        let (failed, closed) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self(Arc::new(Shared { open, bucket, path, options, failed, closed })))
    }

    pub(super) fn db(&self) -> Db {
        self.0.open.read().unwrap_or_else(PoisonError::into_inner).db.clone()
    }

    pub(super) fn bucket(&self) -> &Arc<dyn ObjectStore> {
        &self.0.bucket
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.path
    }

    pub(super) fn options(&self) -> &SlateOptions {
        &self.0.options
    }

    pub(super) async fn close(&self) -> Result<(), SlateFailure> {
        self.0.closed.store(true, Ordering::Release);
        Ok(self.db().close().await?)
    }

    fn close_reason(&self) -> Option<CloseReason> {
        let open = self.0.open.read().unwrap_or_else(PoisonError::into_inner);
        let status = open.status.borrow();
        status.close_reason
    }
}

async fn open_database(
    path: Path,
    bucket: Arc<dyn ObjectStore>,
    options: SlateOptions,
) -> Result<Open, SlateFailure> {
    let builder = Db::builder(path, bucket).with_settings(options.settings);
    let mut builder = builder.with_filter_policies(policies());
    if let Some((cache, number)) = options.cache {
        builder = builder.with_db_cache(cache, number);
    }
    let db = builder.build().await?;
    let status = db.subscribe();
    Ok(Open { db, status })
}

/// The first byte of the keys of a table's rows.
fn prefix(table: Table) -> u8 {
    match table {
        Table::State => b's',
        Table::Data => b'd',
        Table::Index => b'i',
    }
}

/// A row as the database has it.
pub(super) fn row(table: Table, key: &[u8]) -> Bytes {
    let mut row = Vec::with_capacity(1 + key.len());
    row.push(prefix(table));
    row.extend_from_slice(key);
    row.into()
}

/// A range of rows as the database has it.
pub(super) fn row_range(table: Table, range: &KeyRange) -> std::ops::Range<Bytes> {
    let end = match &range.to {
        Some(to) => row(table, to),
        None => Bytes::copy_from_slice(&[prefix(table) + 1]),
    };
    row(table, &range.from)..end
}

impl Engine for Slate {
    type Error = SlateFailure;
    type Value = Bytes;
    type View = SlateView<Arc<DbSnapshot>>;
    type Receipt = Option<WriteHandle>;

    fn view(&self) -> Result<Self::View, SlateFailure> {
        Ok(SlateView(self.db().snapshot()?))
    }

    // The futures hold no reference to the engine: those of whole operations are to be sent to other threads.

    fn write(
        &self,
        writes: Vec<Write>,
        durability: Durability,
    ) -> impl Future<Output = Result<Option<WriteHandle>, SlateFailure>> + Send {
        let db = self.db();
        async move {
            // What the store says of itself must not expire, nor the data without its item in the filter.
            let lasting = PutOptions { ttl: Ttl::NoExpiry };
            let mut batch = WriteBatch::new();
            for Write { table, mut key, value } in writes {
                key.insert(0, prefix(table));
                match value {
                    Some(value) => batch.put_bytes_with_options(key.into(), value.into(), &lasting),
                    None => batch.delete(key),
                }
            }
            let handle = db.write(batch).await?;
            Ok((durability == Durability::Durable).then_some(handle))
        }
    }

    fn acknowledge(
        &self,
        receipt: Option<WriteHandle>,
    ) -> impl Future<Output = Result<(), SlateFailure>> + Send {
        let shared = self.0.clone();
        async move {
            let Some(handle) = receipt else { return Ok(()) };
            let durable = handle.await_durable().await;
            if durable.is_err() {
                shared.failed.store(true, Ordering::Release);
            }
            Ok(durable?)
        }
    }

    fn health(&self) -> Health {
        match self.close_reason() {
            _ if self.0.closed.load(Ordering::Acquire) => Health::Closed { fenced: false },
            Some(CloseReason::Fenced) => Health::Closed { fenced: true },
            Some(CloseReason::Clean) => Health::Closed { fenced: false },
            Some(_) => Health::Broken,
            None if self.0.failed.load(Ordering::Acquire) => Health::Broken,
            None => Health::Sound,
        }
    }

    /// Becomes the database's writer once more. What was in memory alone is gone then.
    fn reopen(&self) -> impl Future<Output = Result<(), SlateFailure>> + Send {
        let this = self.clone();
        async move {
            if this.health() != Health::Broken {
                return Ok(());
            }
            // The old one may be closed already, and has nothing more to say.
            let _ = this.db().close().await;
            let shared = &this.0;
            let open =
                open_database(shared.path.clone(), shared.bucket.clone(), shared.options.clone()).await?;
            *shared.open.write().unwrap_or_else(PoisonError::into_inner) = open;
            shared.failed.store(false, Ordering::Release);
            Ok(())
        }
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send {
        let running = tokio::task::spawn_blocking(work);
        async move { running.await.ok() }
    }
}

/// A SlateDB database as it was at one moment.
pub struct SlateView<D>(pub(super) D);

impl<D> std::fmt::Debug for SlateView<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlateView").finish_non_exhaustive()
    }
}

/// What can be read from: a snapshot of the writer's, or a reader.
pub(super) trait Source: Send + Sync + 'static {
    type Ops: DbReadOps + Sync;

    fn ops(&self) -> &Self::Ops;
}

impl Source for Arc<DbSnapshot> {
    type Ops = DbSnapshot;

    fn ops(&self) -> &DbSnapshot {
        self
    }
}

impl Source for slatedb::DbReader {
    type Ops = Self;

    fn ops(&self) -> &Self {
        self
    }
}

/// How rows are read: those of a home stay in the cache, those of a scan do not.
fn options(bulk: bool) -> ScanOptions {
    ScanOptions {
        durability_filter: DurabilityLevel::Memory,
        read_ahead_bytes: if bulk { 256 << 10 } else { 1 },
        cache_blocks: !bulk,
        ..ScanOptions::default()
    }
}

impl<D: Source> View for SlateView<D> {
    type Error = SlateFailure;
    type Value = Bytes;

    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, SlateFailure> {
        Ok(self.0.ops().get(row(table, key)).await?)
    }

    async fn scan(
        &self,
        table: Table,
        range: KeyRange,
        bulk: bool,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), SlateFailure> {
        let range = row_range(table, &range);
        if range.is_empty() {
            return Ok(());
        }
        let mut found = self.0.ops().scan_with_options(range, &options(bulk)).await?;
        while let Some(row) = found.next().await? {
            if visit(&row.key[1..], &row.value).is_break() {
                break;
            }
        }
        Ok(())
    }
}
