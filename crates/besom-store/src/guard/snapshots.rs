//! Snapshots of the filter: the last one, and those that are taken without being asked for.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use super::{Outcome, Store, StoreFilter, lock};
use crate::StoreError;
use crate::engine::{Engine, Health};
use crate::record::Position;
use crate::snapshot::SnapshotFile;

/// When a snapshot was written or loaded, and the commit that it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SnapshotTime {
    pub(super) at: Instant,
    pub(super) number: u64,
}

/// What a store knows of its snapshots.
pub(super) struct Automatic {
    /// Commits between two of them; none are taken without being asked for if this is the greatest number.
    every: u64,
    /// Locked by whoever writes one.
    file: Option<tokio::sync::Mutex<SnapshotFile>>,
    last: Mutex<Option<SnapshotTime>>,
    /// Begins one in the background.
    begin: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// One is being taken.
    busy: AtomicBool,
    /// The commit behind which the last one was begun.
    begun: AtomicU64,
    /// The filter has grown since.
    grown: AtomicBool,
}

impl Automatic {
    pub(super) fn new(every: u64, number: u64, path: Option<PathBuf>) -> Self {
        Self {
            every,
            file: path.map(|path| tokio::sync::Mutex::new(SnapshotFile(path))),
            last: Mutex::new(None),
            begin: OnceLock::new(),
            busy: AtomicBool::new(false),
            begun: AtomicU64::new(number),
            grown: AtomicBool::new(false),
        }
    }

    pub(super) fn last(&self) -> Option<SnapshotTime> {
        *lock(&self.last)
    }

    /// There is a snapshot of this commit.
    pub(super) fn has(&self, number: u64) {
        *lock(&self.last) = Some(SnapshotTime { at: Instant::now(), number });
    }

    pub(super) fn has_grown(&self) {
        self.grown.store(true, Ordering::Release);
    }

    /// Begins one if it is time for it. `true` if there is nobody to do it in the background.
    pub(super) fn is_due(&self, number: u64) -> bool {
        if self.every == u64::MAX {
            return false;
        }
        let many = number.saturating_sub(self.begun.load(Ordering::Acquire)) >= self.every;
        if !(many || self.grown.load(Ordering::Acquire)) || self.busy.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.grown.store(false, Ordering::Release);
        self.begun.store(number, Ordering::Release);
        self.begin.get().map(|begin| begin()).is_none()
    }
}

impl<F: StoreFilter, E: Engine> Store<F, E> {
    /// Writes the filter to the file of its [snapshots](crate::Options::snapshot_path), so that the next opening finds it.
    ///
    /// Makes durable what was written before. Writes wait for that, not for the file; reads do not wait. Keeps a copy of the
    /// filter in memory until it is written.
    ///
    /// # Errors
    ///
    /// [`StoreError::Snapshot`] if the file cannot be written, [`StoreError::NotASnapshot`] if something else has its name,
    /// [`StoreError::NoSnapshotPath`] if the store was given none, [`StoreError::Engine`] if the database failed; the snapshot
    /// before it is still there then.
    pub async fn snapshot(&self) -> Outcome<(), E> {
        self.restore().await?;
        self.save_snapshot().await
    }

    /// The same, and nobody hears of lost commits.
    pub(crate) async fn save_snapshot(&self) -> Outcome<(), E> {
        let file = self.snapshots.file.as_ref().ok_or(StoreError::NoSnapshotPath)?.lock().await;
        let (copy, position, receipt) = {
            let mut writer = self.writer.lock().await;
            self.copy_durably(&mut writer).await?
        };
        self.acknowledge(receipt).await?;
        let path = file.clone();
        let written = self.engine.run(move || path.save(&copy, position.name())).await;
        written.ok_or(StoreError::BrokenOff)??;
        self.note_snapshot(position).await;
        Ok(())
    }

    /// Says how a snapshot is begun in the background. It must end in [`snapshot_ended`](Self::snapshot_ended).
    pub(crate) fn take_snapshots_with(&self, begin: impl Fn() + Send + Sync + 'static) {
        // The first word counts, and there is one.
        let _ = self.snapshots.begin.set(Box::new(begin));
    }

    /// A snapshot that nobody waits for was taken or not.
    pub(crate) fn snapshot_ended(&self, taken: Outcome<(), E>) {
        self.snapshots.busy.store(false, Ordering::Release);
        if let Err(error) = taken {
            self.note("a snapshot could not be taken", error);
        }
    }

    /// Whether a store that is being closed is to take one.
    pub(crate) fn is_closing_snapshot_due(&self) -> bool {
        let last = self.snapshots.last().map_or(0, |last| last.number);
        let changed = last != self.counters.position.get();
        self.snapshots.every != u64::MAX && changed && self.engine.health() == Health::Sound
    }

    /// Says that a snapshot of this commit is there: the way to it need not be known any longer.
    pub(crate) async fn note_snapshot(&self, position: Position) {
        self.snapshots.has(position.number);
        self.counters.snapshots.add(1);
        let mut writer = self.writer.lock().await;
        if F::HASH_ADDRESSED && writer.logged_from.is_some() {
            writer.logged_from = Some(position.number);
        }
    }
}
