//! A filter in front of a database, for many threads.
//!
//! Two locks. The **state** (the filter and what belongs to it) is locked for changes of memory, never while
//! the database is waited for. The **writer** is locked by one writer at a time, for the whole of a write.
//!
//! ```text
//! insert:  writer ─┬─ rehearse ── fetch lists ── rehearse ── commit ──────────── run for good ─┬─
//!                  └─ [state]                    [state]     data, lists, number  [state]      ┘
//! get:     [state] contains? ── view: get ── absent ── view: list ── [state] repair
//! ```
//!
//! What keeps it right:
//!
//! - **No stored key is rejected.** A key is among the doubts before its commit begins, until it is in the filter; it leaves the
//!   filter after the commit of its removal.
//! - **A repair is made on the lists that the filter stands for.** Every commit that changes lists has a number. Lists that
//!   were read in a view are used only if the view's number is the filter's, and no write is under way.
//! - **A commit that failed was made or not.** Its number tells which, once the database can be read again. Until then the
//!   filter is frozen, and the keys stay among the doubts.

mod bulk;
mod catch_up;
mod live;
mod log;
mod rebuild;
mod rehearsal;
mod repair;
mod settle;
mod state;
#[cfg(test)]
mod tests;
mod write;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use besom::{Adaptive, BuildError};

pub(crate) use catch_up::catch_up;
pub(crate) use rebuild::first_number;
use rehearsal::{Evidence, Op, OwnedChange};
use state::State;
pub(crate) use write::Step;

use crate::engine::{Engine, View};
use crate::metrics::{Counters, Metrics};
use crate::{Progress, StoreError};

pub(crate) type Outcome<T, E> = Result<T, StoreError<<E as Engine>::Error>>;

/// Makes a filter for at least so many keys.
pub(crate) type Maker<F> = Box<dyn Fn(usize) -> Result<F, BuildError> + Send + Sync>;

/// Hears how far a rebuilding is.
pub(crate) type Listener = Box<dyn Fn(Progress) + Send + Sync>;

/// Views that are looked at before a look-up in a merged layout waits for the writer.
const PATIENCE: u32 = 64;

/// See the [module](self).
pub(crate) struct Guarded<F, E: Engine> {
    pub(crate) engine: E,
    state: RwLock<State<F>>,
    writer: Mutex<Writer<F>>,
    pub(crate) counters: Counters,
    make: Maker<F>,
    listener: Option<Listener>,
    /// Commits were made, since the last durable one, that a crash would take back.
    volatile: AtomicBool,
    /// The last failure that failed no operation.
    fault: Mutex<Option<StoreError<E::Error>>>,
}

/// What the one writer knows.
pub(crate) struct Writer<F> {
    /// A commit that was begun and is not known to have been made.
    doubt: Option<Doubt<F>>,
    /// Commits since the last snapshot that were written down. `None` if there is no snapshot that they could serve.
    logged: Option<u64>,
}

/// A commit, and what is to be done in memory once it has been made.
struct Doubt<F> {
    sequence: u64,
    finish: Finish<F>,
}

enum Finish<F> {
    /// The operation that was rehearsed.
    Replay { op: Op, key: Box<[u8]>, evidence: Evidence, made: Vec<OwnedChange> },
    /// A filter that was changed apart.
    Swap(F),
    /// A filter that was built anew.
    Rebuilt(F),
}

impl<F: Adaptive + Clone, E: Engine> Guarded<F, E> {
    /// A guard whose filter stands for the lists of this commit.
    pub(crate) fn new(
        engine: E,
        filter: F,
        sequence: u64,
        make: Maker<F>,
        listener: Option<Listener>,
    ) -> Self {
        Self {
            engine,
            state: RwLock::new(State::new(filter, sequence)),
            writer: Mutex::new(Writer { doubt: None, logged: None }),
            counters: Counters::default(),
            make,
            listener,
            volatile: AtomicBool::new(false),
            fault: Mutex::new(None),
        }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>, E> {
        if !self.read_state().may_have(key) {
            self.counters.reads_avoided.add(1);
            return Ok(None);
        }
        let found = match self.counters.timed(|| self.look_up(key)) {
            Err(_) if self.engine.is_broken() => {
                self.restore()?;
                self.counters.timed(|| self.look_up(key))?
            }
            found => found?,
        };
        if found.is_some() {
            self.counters.true_positives.add(1);
            return Ok(found);
        }
        self.counters.false_positive(key);
        self.repair(key);
        self.repair_waiting(1);
        Ok(None)
    }

    /// Asks the database.
    fn look_up(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>, E> {
        for attempt in 0_u32.. {
            let (address, sequence) = {
                let state = self.read_state();
                (self.engine.is_merged().then(|| state.address_of(key)).flatten(), state.sequence)
            };
            let view = self.engine.view().map_err(StoreError::Engine)?;
            let found = view.get(key, address).map_err(StoreError::Engine)?;
            // In a view that is not the filter's the key may have another address.
            if found.is_some()
                || !self.engine.is_merged()
                || view.sequence().map_err(StoreError::Engine)? == sequence
            {
                return Ok(found);
            }
            // A writer is between its commit and the change of the filter, or its commit is in doubt.
            if attempt < PATIENCE {
                std::thread::yield_now();
            } else {
                self.restore()?;
            }
        }
        Ok(None)
    }

    /// Whether the store may have a key, by the filter's word alone. `false` is certain.
    pub(crate) fn may_have(&self, key: &[u8]) -> bool {
        self.read_state().may_have(key)
    }

    /// Brings everything into step that errors have left behind.
    pub(crate) fn restore(&self) -> Outcome<(), E> {
        self.settle(&mut self.lock_writer())
    }

    /// How many keys the store has.
    pub(crate) fn len(&self) -> Outcome<u64, E> {
        self.view()?.len().map_err(StoreError::Engine)
    }

    /// The database as it is now, opened again if need be.
    pub(crate) fn view(&self) -> Outcome<E::View, E> {
        match self.engine.view() {
            Err(_) if self.engine.is_broken() => {
                self.restore()?;
                self.engine.view().map_err(StoreError::Engine)
            }
            view => view.map_err(StoreError::Engine),
        }
    }

    /// What was counted so far, and the filter's numbers.
    pub(crate) fn metrics(&self) -> Metrics {
        let state = self.read_state();
        let stats = state.filter.stats();
        let waiting_adaptations = state.waiting.len() as u64;
        Metrics {
            keys: stats.items as u64,
            bits_per_key: stats.bits_per_key(),
            waiting_adaptations,
            ..self.counters.metrics()
        }
    }

    /// A copy of the filter, with the number of the commit that it stands for. Everything up to there is durable.
    pub(crate) fn copy_durably(&self) -> Outcome<(F, u64), E> {
        let mut writer = self.lock_writer();
        self.settle(&mut writer)?;
        self.make_durable()?;
        let sequence = self.read_state().sequence;
        // What comes behind it is written down from here on.
        writer.logged.get_or_insert(0);
        Ok((self.read_state().filter.clone(), sequence))
    }

    /// Says that a snapshot of this commit is there.
    pub(crate) fn note_snapshot(&self, sequence: u64) -> Outcome<(), E> {
        let mut writer = self.lock_writer();
        self.settle(&mut writer)?;
        self.trim_log(sequence)?;
        writer.logged = Some(self.read_state().sequence.saturating_sub(sequence));
        Ok(())
    }

    /// Says how many commits were written down since the snapshot that the filter came from.
    pub(crate) fn note_logged(&self, logged: Option<u64>) {
        self.lock_writer().logged = logged;
    }

    /// Lets somebody look at the filter.
    pub(crate) fn with_filter<T>(&self, look: impl FnOnce(&F) -> T) -> T {
        look(&self.read_state().filter)
    }

    /// The number of the commit that the filter stands for.
    pub(crate) fn sequence(&self) -> u64 {
        self.read_state().sequence
    }

    /// Whether a crash would take back what was acknowledged.
    fn is_volatile(&self) -> bool {
        self.volatile.load(Ordering::Acquire)
    }

    /// The last failure that failed no operation.
    pub(crate) fn take_fault(&self) -> Option<StoreError<E::Error>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Remembers a failure that fails no operation.
    fn note(&self, what: &str, error: StoreError<E::Error>) {
        crate::events::failure(what, &error);
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    // A panic (of the database's) while one of these is locked leaves nothing half-done: the state is changed by steps that do
    // not panic, and what a writer left behind is settled by the next one.

    fn read_state(&self) -> RwLockReadGuard<'_, State<F>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State<F>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_writer(&self) -> MutexGuard<'_, Writer<F>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
