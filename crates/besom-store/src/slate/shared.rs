//! What the handles of one store share, and how it is written to.
//!
//! **The filter holds every key that the database may have.** A key enters the filter before the database and leaves it after
//! the database has confirmed that it is gone, so a failure or a dropped future at any moment leaves keys in the filter
//! that are not stored, never the other way round. The addresses that a write touches are in question before the filter
//! changes, and are taken off the list when the write has gone well.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use besom::format::Persist;
use besom::{Adaptation, Adaptive, AdaptiveError};
use slatedb::bytes::Bytes;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::path::Path;
use slatedb::{Db, WriteBatch, WriteHandle};

use super::doubts::Doubts;
use super::replay::{Paused, Replay, Step};
use super::rows::State;
use super::snapshot::Publisher;
use super::stats::{Counters, raise};
use super::{SlateError, SlateOptions, rows};

/// Filters that a store on object storage can be guarded by: adaptive ones that last.
///
/// Implemented by itself for all that fit.
pub trait SlateFilter: Adaptive + Persist + Clone + Send + Sync + 'static {}

impl<F: Adaptive + Persist + Clone + Send + Sync + 'static> SlateFilter for F {}

/// False positives that wait for their repair, at most.
const MAX_WAITING: usize = 256;

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
    waiting: Mutex<Vec<Bytes>>,
    pub(super) counters: Counters,
    pub(super) publisher: tokio::sync::Mutex<Publisher>,
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

/// What a batch does.
#[derive(Debug, Default)]
pub(super) struct Operations {
    pub(super) insertions: Vec<Insertion>,
    pub(super) removals: Vec<Bytes>,
}

#[derive(Debug)]
pub(super) struct Insertion {
    pub(super) key: Bytes,
    pub(super) value: Bytes,
    /// It is stored already, so the filter holds it.
    pub(super) known: bool,
}

/// What happens to the filter when removals are written.
enum Removal<F> {
    Nothing,
    /// This removal, which was planned, comes to its end.
    Confirm(Bytes),
    /// This filter, from which several keys were removed, takes the place of the other one.
    Swap(Box<F>),
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

    fn is_full(&self) -> bool {
        let filter = self.filter();
        filter.len() >= filter.capacity()
    }

    /// The number of false positives that wait for their repair.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Remembers a failure that fails no operation.
    pub(super) fn note(&self, error: SlateError) {
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
    async fn commit_asked(
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
        raise(&self.counters.writes);
        writer.doubts.forget(addresses, before);
        Ok(handle)
    }

    /// Makes insertions and removals of different keys in one batch, or none of them.
    ///
    /// On an error of the database the batch may be written or not, and the filter holds the keys of both.
    pub(super) async fn execute(
        &self,
        writer: &mut Writer,
        operations: &Operations,
    ) -> Result<WriteHandle, SlateError> {
        self.settle(writer).await;
        let before = writer.doubts.open().clone();
        let mut replay = Replay::taking();
        self.learn(writer, operations, &mut replay).await?;
        self.enter_all(writer, operations, &mut replay).await?;
        let removal = self.plan_removals(writer, &operations.removals, &mut replay).await;
        let removal = match removal {
            Ok(removal) => removal,
            Err(error) => return Err(self.back_out(writer, &mut replay, error).await),
        };
        let addresses = replay.changed();
        writer.doubts.ask(addresses.iter().copied());
        writer.suspects += operations.insertions.len() + operations.removals.len();
        let mut batch = WriteBatch::new();
        for insertion in &operations.insertions {
            batch.put_bytes(rows::data(&insertion.key), insertion.value.clone());
        }
        operations.removals.iter().for_each(|key| batch.delete(rows::data(key)));
        replay.put(writer.state.generation, &mut batch);
        let handle = self.commit_asked(writer, &mut batch, &addresses, &before).await?;
        writer.suspects -= operations.insertions.len() + operations.removals.len();
        self.finish_removals(writer, removal, &mut replay);
        self.count_reads(&replay);
        Ok(handle)
    }

    fn count_reads(&self, replay: &Replay) {
        self.counters.remote_reads.fetch_add(replay.fetched(), Relaxed);
    }

    /// Fetches the lists that the operations of a batch are going to ask for, all at once.
    async fn learn(
        &self,
        writer: &Writer,
        operations: &Operations,
        replay: &mut Replay,
    ) -> Result<(), SlateError> {
        if operations.insertions.len() + operations.removals.len() < 2 {
            return Ok(());
        }
        replay.plan();
        {
            let mut filter = self.filter_mut();
            for insertion in operations.insertions.iter().filter(|insertion| !insertion.known) {
                if filter.contains(&insertion.key[..]) {
                    // Fails in any case, and says what it needs.
                    let _ = filter.insert(&insertion.key[..], replay);
                }
            }
            for key in &operations.removals {
                let _ = filter.remove(&key[..], replay);
            }
        }
        replay.fetch(&self.db, writer.state.generation).await?;
        replay.take();
        Ok(())
    }

    /// Puts the keys of all insertions into the filter; if one cannot enter, takes the others out again.
    async fn enter_all(
        &self,
        writer: &mut Writer,
        operations: &Operations,
        replay: &mut Replay,
    ) -> Result<(), SlateError> {
        let all = operations.insertions.iter().filter(|insertion| !insertion.known);
        let mut keys = all.clone();
        let mut generation = writer.state.generation;
        while let Some(insertion) = keys.next() {
            if let Err(error) = self.enter(writer, &insertion.key, replay).await {
                return Err(self.back_out(writer, replay, error).await);
            }
            if writer.state.generation != generation {
                // The filter was built anew from the stored keys, without those that had entered before.
                generation = writer.state.generation;
                keys = all.clone();
            }
        }
        Ok(())
    }

    /// Makes sure that the filter holds a key.
    async fn enter(&self, writer: &mut Writer, key: &Bytes, replay: &mut Replay) -> Result<(), SlateError> {
        for attempt in 0..3 {
            let insert = |replay: &mut Replay| self.filter_mut().insert(&key[..], replay);
            let step = match attempt {
                // It is going to grow; that takes a thread.
                0 if self.is_full() => Ok(Step::Scan),
                _ => replay.drive(&self.db, writer.state.generation, insert).await,
            };
            let error = match step {
                Ok(Step::Done(new)) => {
                    // No await since the filter has changed.
                    writer.doubts.ask(replay.changed());
                    replay.entered(key, new);
                    return Ok(());
                }
                Ok(_) if attempt < 2 => {
                    // All lists must be there then.
                    self.write_lists(writer, replay).await?;
                    let done = match attempt {
                        0 => self.make_room(writer, key).await,
                        _ => self.rebuild(writer).await,
                    };
                    match done {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Ok(_) => SlateError::BrokenOff,
                Err(error) => error,
            };
            match error {
                // Keys that failures left behind may be what the filter is full of.
                SlateError::Full(_) if attempt == 0 && (writer.suspects > 0 || writer.doubts.slots() > 0) => {
                    self.write_lists(writer, replay).await?;
                    self.rebuild(writer).await?;
                }
                SlateError::Inconsistent { address, .. } if attempt == 0 => {
                    self.write_lists(writer, replay).await?;
                    writer.doubts.ask([address]);
                    self.settle(writer).await;
                }
                error => return Err(error),
            }
        }
        Err(SlateError::BrokenOff)
    }

    /// Writes the lists that have changed so far ahead of the data, so that filter and lists agree. The keys in them are
    /// suspects until the data is there.
    async fn write_lists(&self, writer: &mut Writer, replay: &mut Replay) -> Result<(), SlateError> {
        let addresses = replay.changed();
        if !addresses.is_empty() {
            let mut batch = WriteBatch::new();
            replay.put(writer.state.generation, &mut batch);
            // The addresses are in question since the filter changed, and no longer after this.
            let before = writer.doubts.open() - &addresses.iter().copied().collect();
            self.commit_asked(writer, &mut batch, &addresses, &before).await?;
        }
        replay.written();
        Ok(())
    }

    /// Takes the keys that have entered the filter out of it again, since they are not going to be stored. Gives back why.
    async fn back_out(&self, writer: &mut Writer, replay: &mut Replay, why: SlateError) -> SlateError {
        let generation = writer.state.generation;
        replay.take();
        let mut failed = 0;
        for key in replay.take_entered() {
            // The filter said that its list did not have it: so it is not stored, and nobody else can store it now.
            let remove = |replay: &mut Replay| self.filter_mut().remove(&key[..], replay);
            let outcome = replay.drive(&self.db, generation, remove).await;
            failed += usize::from(!matches!(outcome, Ok(Step::Done(true))));
        }
        writer.suspects += failed;
        // Lists that were written ahead of the data are written once more.
        let addresses = replay.changed();
        let written = if replay.is_as_stored() { Ok(()) } else { self.write_lists(writer, replay).await };
        if failed == 0 && written.is_ok() {
            let before = writer.doubts.open() - &addresses.iter().copied().collect();
            writer.doubts.forget(&addresses, &before);
        }
        why
    }

    /// Plans what removals change in the lists. The filter keeps the keys.
    async fn plan_removals(
        &self,
        writer: &mut Writer,
        keys: &[Bytes],
        replay: &mut Replay,
    ) -> Result<Removal<F>, SlateError> {
        let generation = writer.state.generation;
        match keys {
            [] => Ok(Removal::Nothing),
            [key] => {
                replay.plan();
                let remove = |replay: &mut Replay| self.filter_mut().remove(&key[..], replay);
                match replay.drive(&self.db, generation, remove).await {
                    Ok(Step::Planned) => Ok(Removal::Confirm(key.clone())),
                    Ok(Step::Done(_)) => Ok(Removal::Nothing),
                    Ok(Step::Scan) => Ok(self.left_behind(writer, SlateError::BrokenOff)),
                    Err(error @ SlateError::Inconsistent { .. }) => Ok(self.left_behind(writer, error)),
                    Err(error) => Err(error),
                }
            }
            keys => {
                // Each removal depends on the ones before it, and the filter must keep all until they are written.
                let mut copy = self.filter().clone();
                for key in keys {
                    let remove = |replay: &mut Replay| copy.remove(&key[..], replay);
                    match replay.drive(&self.db, generation, remove).await {
                        Ok(Step::Done(_)) => {}
                        Ok(_) => drop(self.left_behind(writer, SlateError::BrokenOff)),
                        Err(error @ SlateError::Inconsistent { .. }) => drop(self.left_behind(writer, error)),
                        Err(error) => return Err(error),
                    }
                }
                Ok(Removal::Swap(Box::new(copy)))
            }
        }
    }

    /// A removed key stays in the filter, where it costs reads in vain.
    fn left_behind(&self, writer: &mut Writer, error: SlateError) -> Removal<F> {
        if let SlateError::Inconsistent { address, .. } = error {
            writer.doubts.ask([address]);
        }
        raise(&self.counters.failed_removals);
        writer.suspects += 1;
        self.note(error);
        Removal::Nothing
    }

    /// The keys are gone from the database, and leave the filter.
    fn finish_removals(&self, writer: &mut Writer, removal: Removal<F>, replay: &mut Replay) {
        match removal {
            Removal::Nothing => {}
            Removal::Swap(filter) => *self.filter_mut() = *filter,
            Removal::Confirm(key) => {
                replay.confirm();
                let removed = self.filter_mut().remove(&key[..], replay);
                if !matches!(removed, Ok(true)) {
                    writer.doubts.ask(replay.changed());
                    self.left_behind(writer, SlateError::BrokenOff);
                }
            }
        }
    }

    /// A look-up came back empty although the filter had let it pass: repairs it, at once or when the writer has time.
    pub(super) async fn repair(&self, key: &[u8]) {
        let hash = self.filter().digest(key).hi;
        self.counters.false_positive(hash);
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.len() < MAX_WAITING {
                waiting.push(Bytes::copy_from_slice(key));
            } else {
                raise(&self.counters.failed_repairs);
            }
        }
        if let Ok(mut writer) = self.writer.try_lock() {
            self.repair_waiting(&mut writer).await;
        }
    }

    /// Repairs all that wait.
    pub(super) async fn repair_waiting(&self, writer: &mut Writer) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        if !waiting.is_empty() {
            self.settle(writer).await;
        }
        for key in waiting {
            match self.adapt(writer, &key).await {
                Ok(Adaptation::NotFalsePositive) if !self.filter().contains(&key[..]) => {}
                Ok(Adaptation::NotFalsePositive | Adaptation::Unfixable) => {
                    // One answer is no reason to take a key out of the filter. It may also have been stored since.
                    raise(&self.counters.denied);
                    writer.suspects += 1;
                }
                Ok(_) => raise(&self.counters.adaptations),
                Err(error) => {
                    if let SlateError::Inconsistent { address, .. } = error {
                        writer.doubts.ask([address]);
                    }
                    raise(&self.counters.failed_repairs);
                    self.note(error);
                }
            }
        }
    }

    async fn adapt(&self, writer: &mut Writer, key: &Bytes) -> Result<Adaptation, SlateError> {
        let work = |filter: &mut F, replay: &mut Replay| filter.adapt(&key[..], replay);
        let (step, replay) = self.write_first(writer, work).await?;
        self.count_reads(&replay);
        match step {
            Some(adaptation) => Ok(adaptation),
            None => {
                let key = key.clone();
                self.on_a_thread(writer, None, move |filter, bridge| filter.adapt(&key[..], bridge)).await
            }
        }
    }

    /// Runs an operation that neither adds nor removes keys: its changes are written, then it comes to its end. `None` if it
    /// needs a scan.
    pub(super) async fn write_first<T>(
        &self,
        writer: &mut Writer,
        work: impl Fn(&mut F, &mut Replay) -> Result<T, AdaptiveError<Paused>>,
    ) -> Result<(Option<T>, Replay), SlateError> {
        let mut replay = Replay::planning();
        let mut run = |replay: &mut Replay| work(&mut self.filter_mut(), replay);
        match replay.drive(&self.db, writer.state.generation, &mut run).await? {
            Step::Done(outcome) => return Ok((Some(outcome), replay)),
            Step::Scan => return Ok((None, replay)),
            Step::Planned => {}
        }
        let mut batch = WriteBatch::new();
        replay.put(writer.state.generation, &mut batch);
        let addresses = replay.changed();
        self.commit(writer, batch, &addresses).await?;
        replay.confirm();
        match run(&mut replay) {
            Ok(outcome) => Ok((Some(outcome), replay)),
            Err(error) => {
                writer.doubts.ask(addresses);
                Err(error.into())
            }
        }
    }
}
