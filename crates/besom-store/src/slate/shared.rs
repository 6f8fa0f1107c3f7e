//! What the handles of one store share, and how it is written to.
//!
//! **The filter holds every key that the database may have.** A key enters the filter before the database and leaves it after
//! the database has confirmed that it is gone, so a failure or a dropped future at any moment leaves keys in the filter
//! that are not stored, never the other way round. The addresses that a write touches are in question before the filter
//! changes, and are taken off the list when the write has gone well.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use besom::Adaptive;
use besom::format::Persist;
use slatedb::bytes::Bytes;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::path::Path;
use slatedb::{Db, WriteBatch, WriteHandle};

use super::doubts::Doubts;
use super::metrics::{Counters, raise};
use super::replay::Replay;
use super::rows::State;
use super::snapshot::Publisher;
use super::{SlateError, SlateOptions, rows};

/// Filters that a store on object storage can be guarded by: adaptive ones that last.
///
/// Implemented by itself for all that fit.
pub trait SlateFilter: Adaptive + Persist + Clone + Send + Sync + 'static {}

impl<F: Adaptive + Persist + Clone + Send + Sync + 'static> SlateFilter for F {}

/// What the handles of one store share.
pub(super) struct Shared<F> {
    pub(super) db: Db,
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) path: Path,
    pub(super) options: SlateOptions,
    filter: RwLock<F>,
    /// Held by whoever changes the filter or the database, also while he awaits the database. Queries do not need it.
    pub(super) writer: tokio::sync::Mutex<Writer>,
    /// False positives that were met while the writer was busy.
    pub(super) waiting: Mutex<Vec<Bytes>>,
    pub(super) counters: Counters,
    pub(super) publisher: tokio::sync::Mutex<Publisher>,
    /// When the last snapshot was published.
    published: Mutex<Option<Instant>>,
    fault: Mutex<Option<SlateError>>,
}

/// What belongs to whoever writes.
#[derive(Debug)]
pub(super) struct Writer {
    /// The state row as it was written last.
    pub(super) state: State,
    /// SlateDB's number of this writer.
    pub(super) epoch: u64,
    pub(super) doubts: Doubts,
    /// Keys in the filter that may not be stored, because a write failed or the database denied them.
    pub(super) suspects: usize,
}

impl<F: SlateFilter> Shared<F> {
    pub(super) fn new(
        db: Db,
        objects: Arc<dyn ObjectStore>,
        path: Path,
        options: SlateOptions,
        filter: F,
        state: State,
    ) -> Self {
        let epoch = db.manifest().writer_epoch();
        let writer = Writer { state, epoch, doubts: Doubts::default(), suspects: 0 };
        Self {
            db,
            objects,
            path,
            options,
            filter: RwLock::new(filter),
            writer: tokio::sync::Mutex::new(writer),
            waiting: Mutex::default(),
            counters: Counters::new(),
            publisher: tokio::sync::Mutex::default(),
            published: Mutex::default(),
            fault: Mutex::default(),
        }
    }

    // A filter that panics is as it was before, so a poisoned lock is as good as any.
    pub(super) fn filter(&self) -> RwLockReadGuard<'_, F> {
        self.filter.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn filter_mut(&self) -> RwLockWriteGuard<'_, F> {
        self.filter.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_full(&self) -> bool {
        let filter = self.filter();
        filter.len() >= filter.capacity()
    }

    /// The number of false positives that wait for their repair.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn snapshot_age(&self) -> Option<Duration> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
    }

    pub(super) fn has_published(&self) {
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        raise(&self.counters.snapshots);
    }

    /// Remembers a failure that fails no operation.
    pub(super) fn note(&self, error: SlateError) {
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "besom_store", %error, "a failure that fails no operation");
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(super) fn take_fault(&self) -> Option<SlateError> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The value of a key, from the database.
    pub(super) async fn look_up(&self, key: &[u8]) -> Result<Option<Bytes>, SlateError> {
        let start = Instant::now();
        let found = self.db.get(rows::data(key)).await;
        self.spent(start);
        Ok(found?)
    }

    pub(super) fn count_reads(&self, replay: &Replay) {
        self.counters.remote_reads.fetch_add(replay.fetched(), Relaxed);
    }

    fn spent(&self, since: Instant) {
        self.counters.store_nanos.fetch_add(since.elapsed().as_nanos() as u64, Relaxed);
    }

    /// Writes a batch. Its addresses are in question until that has gone well.
    pub(super) async fn commit(
        &self,
        writer: &mut Writer,
        mut batch: WriteBatch,
        addresses: &[u64],
    ) -> Result<WriteHandle, SlateError> {
        let before = writer.doubts.open().clone();
        writer.doubts.ask(addresses.iter().copied());
        self.commit_asked(writer, &mut batch, addresses, &before).await
    }

    /// [`commit`](Self::commit) of a batch whose addresses are in question already, those `before` it apart.
    pub(super) async fn commit_asked(
        &self,
        writer: &mut Writer,
        batch: &mut WriteBatch,
        addresses: &[u64],
        before: &std::collections::BTreeSet<u64>,
    ) -> Result<WriteHandle, SlateError> {
        // Never the same count twice, whatever becomes of this write.
        writer.state.position.count += 1;
        writer.state.position.epoch = writer.epoch;
        batch.put_bytes(Bytes::from_static(rows::STATE), writer.state.encode());
        let start = Instant::now();
        let written = self.db.write(std::mem::take(batch)).await;
        self.spent(start);
        let handle = written?;
        raise(&self.counters.commits);
        writer.doubts.forget(addresses, before);
        Ok(handle)
    }
}
