//! A filter in front of a database, for many threads or tasks.
//!
//! ```text
//! get      [filter] "maybe" ── data ── absent ── range of the key's home ── [filter] repair
//! insert   [filter] "maybe" ── data ┐
//!                    writer ────────┴─ [filter] new keys enter ── commit ── [filter] removed keys leave ── writer
//! ```
//!
//! Two locks. The **state** (the filter and what belongs to it, in brackets above) is locked for changes of memory, never while
//! the database is waited for. The **writer** is locked by one write at a time, from the entering to the leaving; what a write has
//! to know is read before that.
//!
//! What keeps it right:
//!
//! - **No stored key is rejected.** A key enters the filter before its commit begins, and leaves it after the commit of its
//!   removal has been made. So whatever fails, and whichever future is dropped, the filter holds every key that may be stored.
//! - **What is read is what the filter stands for.** A write is active from before its first key enters until its last key has
//!   left. What was read of a home is used only if no write has touched that home since, or was active.
//! - **A commit that failed was made or not.** Its keys are in doubt. Once the database has taken another commit, what it has is
//!   what will stay: their homes are settled then, with what is read.

mod backup;
mod build;
mod live;
mod open;
mod repair;
mod settle;
mod snapshots;
mod state;
#[cfg(test)]
mod tests;
mod write;

use std::borrow::Cow;
use std::fmt;
use std::ops::{ControlFlow, Deref, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use besom::format::Persist;
use besom::play::Play;
use besom::{Adaptive, BuildError, Digest, KeyHasher, Seed};

pub(crate) use build::key_of;
pub(crate) use live::Live;
pub(crate) use open::Snapshots;
use snapshots::{Automatic, SnapshotTime};
use state::State;
pub(crate) use write::MAX_KEY;

use crate::engine::{Durability, Engine, Health, KeyRange, Table, View, VisitRow};
use crate::metrics::{Counters, Metrics};
use crate::record::{Header, Index, Position};
use crate::{Layout, Opening, Progress, StoreError, rows};

/// What a store needs of its filter: all adaptive filters of besom that can be saved have it.
pub trait StoreFilter: Adaptive + Persist + Clone + Send + Sync + 'static {}

impl<F: Adaptive + Persist + Clone + Send + Sync + 'static> StoreFilter for F {}

/// A future that can go to another thread: the compiler sees that here, and need not look into it elsewhere.
pub(crate) type Boxed<'s, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 's>>;

pub(crate) type Outcome<T, E> = Result<T, StoreError<<E as Engine>::Error>>;

/// Makes a filter for at least this many keys, with this seed.
pub(crate) type Maker<F> = Arc<dyn Fn(usize, Seed) -> Result<F, BuildError> + Send + Sync>;

/// Hears how far a building is.
pub(crate) type Listener = Arc<dyn Fn(Progress) + Send + Sync>;

/// Pairs that one range may have before an operation is made on a copy of the filter instead, which reads as it goes.
const MAX_PAIRS: usize = 4096;

/// A key-value store on any [`Engine`], with an adaptive filter in front of it, for many threads or tasks.
///
/// A key that is not there is nearly always rejected by the filter, in memory. When one is not, the filter is repaired, so that the
/// same question does not get through again. [`RedbStore`](crate::RedbStore) is this on redb, with calls that block;
/// `SlateStore` is this on object storage.
///
/// ```
/// use besom::TelescopingFilter;
/// use besom_store::{MemoryEngine, Options, Store, wait};
///
/// let make = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).growable().build();
/// let store = wait(Store::open(MemoryEngine::new(), make, Options::new()))?;
/// wait(store.insert(b"Ada", b"36"))?;
/// assert_eq!(wait(store.get(b"Ada"))?.as_deref(), Some(&b"36"[..]));
/// assert_eq!(wait(store.get(b"Charles"))?, None); // almost certainly without a look into the database
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # When things fail
///
/// An error of the database reaches the caller as it is. A write that fails was made or not: the store finds out with the next
/// write, and in the meantime no key is rejected that may be there. A repair that fails never fails the `get` that asked for
/// it: [`metrics`](Self::metrics) counts it and [`take_fault`](Self::take_fault) tells it.
///
/// # Handles
///
/// A store is a handle, and its clones are handles of the same store; each costs a pointer and a number. After an error that
/// took back commits which were acknowledged but not durable, the next operation of **every** handle fails once with
/// [`StoreError::RolledBack`], having done nothing: whoever holds it may have seen what is gone. So give every thread and task
/// that has to hear of it a clone, rather than a reference that it shares with others. Queries that are under way when the
/// database is opened again may see the older state before they hear of it.
pub struct Store<F, E: Engine> {
    shared: Arc<Shared<F, E>>,
    /// Of the commits that were lost, those that the holder of this handle was told of.
    told: AtomicU64,
}

/// What all handles of a store share. Nobody outside can do anything with it.
#[doc(hidden)]
pub struct Shared<F, E: Engine> {
    pub(crate) engine: E,
    pub(crate) header: Header,
    state: RwLock<State<F>>,
    pub(crate) writer: tokio::sync::Mutex<Writer>,
    pub(crate) counters: Counters,
    make: Maker<F>,
    listener: Option<Listener>,
    durability: Durability,
    durable_every: u64,
    durable_within: std::time::Duration,
    pub(crate) opening: OnceLock<Opening>,
    /// How many keys there are; no more than that if they were not counted.
    keys: AtomicU64,
    uncounted: AtomicBool,
    /// Keys that were counted and were not there when the filter was built, or the other way round: rows have come or gone that the
    /// store did not write.
    miscounted: AtomicI64,
    /// Commits were made, since the last durable one, that a crash would take back.
    volatile: AtomicBool,
    /// The last failure that failed no operation.
    fault: Mutex<Option<StoreError<E::Error>>>,
    snapshots: Automatic,
}

impl<F, E: Engine> Deref for Store<F, E> {
    type Target = Shared<F, E>;

    fn deref(&self) -> &Shared<F, E> {
        &self.shared
    }
}

impl<F, E: Engine> Clone for Store<F, E> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), told: AtomicU64::new(self.told.load(Ordering::Acquire)) }
    }
}

/// A store, as long as somebody else has it. What works in the background is told nothing of lost commits.
pub(crate) struct WeakStore<F, E: Engine>(Weak<Shared<F, E>>);

impl<F, E: Engine> WeakStore<F, E> {
    pub(crate) fn upgrade(&self) -> Option<Store<F, E>> {
        Some(Store { shared: self.0.upgrade()?, told: AtomicU64::new(u64::MAX) })
    }
}

/// What belongs to anyone who writes.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The last commit that is known to have been made.
    pub(crate) position: Position,
    /// The branch of the commits that follow.
    branch: u64,
    pub(crate) keys: u64,
    /// Keys were written unread since they were counted.
    uncounted: bool,
    /// The snapshot whose way to the present is being written down.
    logged_from: Option<u64>,
    /// The first commit whose row may be there still.
    first_row: u64,
    /// A commit was begun, and is not known to have been made or not.
    unsure: bool,
    /// Commits since the last durable one, and when that was.
    buffered: u64,
    durable_at: std::time::Instant,
}

impl<F: StoreFilter, E: Engine> Store<F, E> {
    /// The value of a key. Waits for nothing if the filter rejects the key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed, [`StoreError::Closed`].
    pub async fn get(&self, key: &[u8]) -> Outcome<Option<E::Value>, E> {
        match self.ask(key)? {
            Some(digest) => self.get_accepted(key, digest).await,
            None => Ok(None),
        }
    }

    /// Calls `look` with the value of a key, where it lies if the engine lends it: a large value is not copied. What `look`
    /// returns; `None` if the store does not have the key.
    ///
    /// `look` is called twice if the database fails behind it and is opened again. It should be short: some engines keep old data
    /// until it returns.
    ///
    /// ```
    /// # use besom::TelescopingFilter;
    /// # use besom_store::{MemoryEngine, Options, Store, wait};
    /// # let make = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).build();
    /// # let store = wait(Store::open(MemoryEngine::new(), make, Options::new()))?;
    /// wait(store.insert(b"photo", &[7; 100_000]))?;
    /// let sum = wait(store.get_with(b"photo", |photo| photo.iter().map(|&byte| u64::from(byte)).sum::<u64>()))?;
    /// assert_eq!(sum, Some(700_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn get_with<T: Send>(
        &self,
        key: &[u8],
        mut look: impl FnMut(&[u8]) -> T + Send,
    ) -> Outcome<Option<T>, E> {
        let Some(digest) = self.ask(key)? else { return Ok(None) };
        let found = match self.look_at(key, digest, &mut look).await {
            Err(_) if self.engine.health() == Health::Broken => {
                self.restore().await?;
                self.look_at(key, digest, &mut look).await?
            }
            found => found?,
        };
        self.met(key, digest, found.is_some()).await;
        Ok(found)
    }

    /// Asks the filter. The digest of a key that it accepts.
    #[inline]
    pub(crate) fn ask(&self, key: &[u8]) -> Outcome<Option<Digest>, E> {
        let blind = self.is_blind()?;
        let state = self.read_state();
        let digest = state.filter.hasher().digest(key);
        if blind || state.accepts(digest) {
            return Ok(Some(digest));
        }
        self.counters.reads_avoided.add(1);
        Ok(None)
    }

    /// Whether the filter is not to be believed, because the database is in an unknown state. Every operation asks this first, so
    /// it is here that its caller hears of lost commits.
    #[inline]
    fn is_blind(&self) -> Outcome<bool, E> {
        let blind = match self.engine.health() {
            Health::Sound => false,
            Health::Broken => true,
            Health::Closed { fenced } => return Err(StoreError::Closed { fenced }),
        };
        self.tell_of_losses()?;
        Ok(blind)
    }

    /// Fails if commits were lost that the holder of this handle was not told of.
    #[inline]
    pub(crate) fn tell_of_losses(&self) -> Outcome<(), E> {
        let lost = self.counters.rolled_back.get();
        if self.told.load(Ordering::Acquire) >= lost {
            return Ok(());
        }
        // One of those who share a handle hears of it.
        match lost.saturating_sub(self.told.fetch_max(lost, Ordering::AcqRel)) {
            0 => Ok(()),
            commits => Err(StoreError::RolledBack { commits }),
        }
    }

    pub(crate) fn downgrade(&self) -> WeakStore<F, E> {
        WeakStore(Arc::downgrade(&self.shared))
    }

    /// The value of a key that the filter accepts.
    pub(crate) async fn get_accepted(&self, key: &[u8], digest: Digest) -> Outcome<Option<E::Value>, E> {
        let found = match self.look_up(key, digest).await {
            Err(_) if self.engine.health() == Health::Broken => {
                self.restore().await?;
                self.look_up(key, digest).await?
            }
            found => found?,
        };
        self.met(key, digest, found.is_some()).await;
        Ok(found)
    }

    /// Counts a key that the filter has accepted, and repairs the filter if it was wrong.
    async fn met(&self, key: &[u8], digest: Digest, found: bool) {
        if found {
            self.counters.true_positives.add(1);
            return;
        }
        self.counters.false_positive(key);
        self.repair(key, digest).await;
        self.repair_waiting(1).await;
    }

    /// The value of a key, for those who holds the writer.
    pub(crate) async fn get_as_writer(&self, key: &[u8]) -> Outcome<Option<E::Value>, E> {
        let Some(digest) = self.ask(key)? else { return Ok(None) };
        let found = self.look_up(key, digest).await?;
        self.met(key, digest, found.is_some()).await;
        Ok(found)
    }

    /// Asks the database.
    async fn look_up(&self, key: &[u8], digest: Digest) -> Outcome<Option<E::Value>, E> {
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let row = self.row_of(key, digest);
        self.counters.timed(view.get(Table::Data, &row)).await.map_err(|error| self.failed(error))
    }

    /// Asks the database, and lets somebody look at the value.
    async fn look_at<T: Send>(
        &self,
        key: &[u8],
        digest: Digest,
        look: &mut (impl FnMut(&[u8]) -> T + Send),
    ) -> Outcome<Option<T>, E> {
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let row = self.row_of(key, digest);
        let looked = view.get_with(Table::Data, &row, look);
        self.counters.timed(looked).await.map_err(|error| self.failed(error))
    }

    /// Where a key's data lies.
    fn row_of<'k>(&self, key: &'k [u8], digest: Digest) -> Cow<'k, [u8]> {
        match self.header.layout {
            Layout::Hashed => rows::row(digest.hi, key).into(),
            Layout::Ordered => key.into(),
        }
    }

    /// The error of an access. A database that was closed says so, whatever the error.
    fn failed(&self, error: E::Error) -> StoreError<E::Error> {
        match self.engine.health() {
            Health::Closed { fenced } => StoreError::Closed { fenced },
            Health::Sound | Health::Broken => StoreError::Engine(error),
        }
    }

    /// Whether the store has a key. Reads no value, where the engine can do without.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn contains_key(&self, key: &[u8]) -> Outcome<bool, E> {
        match self.ask(key)? {
            Some(digest) => {
                let found = match self.is_there(key, digest).await {
                    Err(_) if self.engine.health() == Health::Broken => {
                        self.restore().await?;
                        self.is_there(key, digest).await?
                    }
                    found => found?,
                };
                self.met(key, digest, found).await;
                Ok(found)
            }
            None => Ok(false),
        }
    }

    async fn is_there(&self, key: &[u8], digest: Digest) -> Outcome<bool, E> {
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let row = self.row_of(key, digest);
        self.counters.timed(view.has(Table::Data, &row)).await.map_err(|error| self.failed(error))
    }

    /// Whether the store may have a key, by the filter's word alone: nothing is waited for. `false` is certain, unless the store
    /// was closed.
    pub fn may_contain_key(&self, key: &[u8]) -> bool {
        let state = self.read_state();
        self.engine.health() != Health::Sound || state.accepts(state.filter.hasher().digest(key))
    }

    /// Calls `visit` with all keys and values as they are now: in the order of keys in the ordered layout, in that of hashes in the
    /// hashed one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    pub async fn for_each(&self, visit: &mut VisitRow<'_>) -> Outcome<(), E> {
        let (view, layout) = (self.view().await?, self.header.layout);
        let visit = &mut |row: &[u8], value: &[u8]| match key_of(layout, row) {
            Some(key) => visit(key, value),
            None => ControlFlow::Continue(()),
        };
        view.scan(Table::Data, KeyRange::default(), true, visit).await.map_err(StoreError::Engine)
    }

    /// How many keys the store has.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database has failed, and fails still.
    pub async fn len(&self) -> Outcome<u64, E> {
        if self.is_blind()? || self.read_state().blind || self.uncounted.load(Ordering::Acquire) {
            self.restore().await?;
        }
        Ok(self.keys.load(Ordering::Acquire))
    }

    /// Whether the store has no keys.
    ///
    /// # Errors
    ///
    /// As [`len`](Self::len).
    pub async fn is_empty(&self) -> Outcome<bool, E> {
        Ok(self.len().await? == 0)
    }

    /// Brings everything into step that errors have left behind, as the next write would do. Costs nothing if there were none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database still fails; [`StoreError::RolledBack`] if it has lost commits, and all is well otherwise.
    pub async fn restore(&self) -> Outcome<(), E> {
        let mut writer = self.writer.lock().await;
        self.settle(&mut writer).await
    }

    /// What was counted since the store was opened, and how its filter is now.
    pub fn metrics(&self) -> Metrics {
        let last = self.snapshots.last();
        let state = self.read_state();
        let stats = state.filter.stats();
        let behind = |last: SnapshotTime| self.counters.position.get().saturating_sub(last.number);
        Metrics {
            keys: stats.items as u64,
            bits_per_key: stats.bits_per_key(),
            waiting_adaptations: state.waiting.len() as u64,
            keys_in_doubt: state.doubts.len() as u64,
            snapshot_age: last.map(|last| last.at.elapsed()),
            snapshot_behind: last.map(behind),
            ..self.counters.metrics()
        }
    }

    /// The last failure that failed no operation, for a log.
    pub fn take_fault(&self) -> Option<StoreError<E::Error>> {
        lock(&self.fault).take()
    }

    /// How the store came by its filter.
    pub fn opening(&self) -> &Opening {
        self.opening.get_or_init(|| Opening::Empty)
    }

    /// Where the data lies.
    pub fn layout(&self) -> Layout {
        self.header.layout
    }

    /// Which state the store is in. It may be lost in a crash unless it is durable.
    pub async fn position(&self) -> Position {
        self.writer.lock().await.position
    }

    /// Lets somebody look at the filter. Writers wait in the meantime.
    pub fn with_filter<T>(&self, look: impl FnOnce(&F) -> T) -> T {
        look(&self.read_state().filter)
    }

    /// A view of the database as it is now, opened again if need be.
    pub(crate) async fn view(&self) -> Outcome<E::View, E> {
        if self.is_blind()? {
            self.restore().await?;
        }
        self.engine.view().map_err(StoreError::Engine)
    }

    /// The table that has the keys by address, and whether the store keeps it for a filter that moves keys.
    fn index(&self) -> Table {
        if self.header.index == Index::None { Table::Data } else { Table::Index }
    }

    /// Reads the pairs of a range into the evidence of a play. `false` if there are too many.
    async fn fetch(&self, view: &E::View, range: RangeInclusive<u64>, play: &mut Play) -> Outcome<bool, E> {
        self.counters.remote_reads.add(1);
        let mut pairs: Vec<(u64, Box<[u8]>)> = Vec::new();
        let visit = &mut |row: &[u8], _: &[u8]| {
            pairs.extend(rows::parts(row).map(|(address, key)| (address, key.into())));
            if pairs.len() > MAX_PAIRS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let scanned = view.scan(self.index(), rows::rows(&range), false, visit);
        self.counters.timed(scanned).await.map_err(StoreError::Engine)?;
        if pairs.len() > MAX_PAIRS {
            return Ok(false);
        }
        let evidence = play.evidence();
        pairs.iter().for_each(|(address, key)| evidence.add(*address, key));
        evidence.know(range);
        Ok(true)
    }

    /// Remembers a failure that fails no operation.
    pub(crate) fn note(&self, what: &str, error: StoreError<E::Error>) {
        crate::events::failure(what, &error);
        *lock(&self.fault) = Some(error);
    }

    // A panic (of the database's) while one of these is locked leaves nothing half-done: the state is changed by steps that do
    // not panic, and what a writer left behind is settled by the next one.

    fn read_state(&self) -> RwLockReadGuard<'_, State<F>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State<F>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F, E: Engine> fmt::Debug for Store<F, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("layout", &self.header.layout)
            .field("opening", &self.opening.get())
            .finish_non_exhaustive()
    }
}
