//! What guards on object storage count.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What a [`SlateStore`](super::SlateStore) or a [`SlateReader`](super::SlateReader) has counted since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct SlateStats {
    /// Calls of `get` that were answered.
    pub queries: u64,
    /// Queries that the filter settled alone: nothing was read.
    pub negatives: u64,
    /// Queries whose key was stored.
    pub true_positives: u64,
    /// Queries that reached the database for nothing.
    pub false_positives: u64,
    /// False positives of keys that were one before, as far as is remembered: the last few thousand are.
    pub repeated_false_positives: u64,
    /// False positives that were repaired.
    pub adaptations: u64,
    /// False positives that wait for their repair, because the filter was being written to.
    pub waiting_repairs: usize,
    /// False positives that were not repaired: the database failed, too many were waiting, or a reader would have had to
    /// write. The query was answered all the same.
    pub failed_repairs: u64,
    /// False positives of keys that the filter holds itself or cannot tell from one that it holds. Where a write failed
    /// half-way, [`restore`](super::SlateStore::restore) settles it.
    pub denied: u64,
    /// Removed keys that the filter still holds, because the database failed or disagreed. They cost a read in vain.
    pub failed_removals: u64,
    /// Lists of the reverse map that were read, scans apart.
    pub remote_reads: u64,
    /// Batches written, with data, lists or both.
    pub writes: u64,
    /// Times that filter and reverse map were brought back into step at some addresses.
    pub resyncs: u64,
    /// Times that the filter was built anew from a scan.
    pub rebuilds: u64,
    /// Slots whose keys the reverse map does not have. They answer "maybe present".
    pub slots_in_question: usize,
    /// Snapshots published by this writer, or taken over by this reader.
    pub snapshots: u64,
    /// How old the newest of them is.
    pub snapshot_age: Option<Duration>,
    /// The time that look-ups and writes waited for the database, added up.
    pub store_time: Duration,
    /// Keys in the filter.
    pub keys: usize,
    /// The memory of the filter for each of them, in bits.
    pub bits_per_key: f64,
}

impl SlateStats {
    /// The share of absent keys that reached the database. 0 before the first absent key.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        match self.negatives + self.false_positives {
            0 => 0.0,
            absent => self.false_positives as f64 / absent as f64,
        }
    }
}

/// How many false positives are remembered.
const REMEMBERED: usize = 4096;

/// The counters behind [`SlateStats`].
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) negatives: AtomicU64,
    pub(super) true_positives: AtomicU64,
    pub(super) false_positives: AtomicU64,
    pub(super) repeated: AtomicU64,
    pub(super) adaptations: AtomicU64,
    pub(super) failed_repairs: AtomicU64,
    pub(super) denied: AtomicU64,
    pub(super) failed_removals: AtomicU64,
    pub(super) remote_reads: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) resyncs: AtomicU64,
    pub(super) rebuilds: AtomicU64,
    pub(super) snapshots: AtomicU64,
    pub(super) store_nanos: AtomicU64,
    /// Hashes of false positives, each where its lowest bits say. 0 is none.
    remembered: Box<[AtomicU64]>,
}

impl Counters {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            negatives: zero(),
            true_positives: zero(),
            false_positives: zero(),
            repeated: zero(),
            adaptations: zero(),
            failed_repairs: zero(),
            denied: zero(),
            failed_removals: zero(),
            remote_reads: zero(),
            writes: zero(),
            resyncs: zero(),
            rebuilds: zero(),
            snapshots: zero(),
            store_nanos: zero(),
            remembered: (0..REMEMBERED).map(|_| zero()).collect(),
        }
    }

    /// Counts a false positive whose key has this hash.
    pub(super) fn false_positive(&self, hash: u64) {
        raise(&self.false_positives);
        let hash = hash.max(1);
        if self.remembered[hash as usize % REMEMBERED].swap(hash, Relaxed) == hash {
            raise(&self.repeated);
        }
    }

    /// The statistics, without what the caller alone knows.
    pub(super) fn stats(&self) -> SlateStats {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        let answered = [of(&self.negatives), of(&self.true_positives), of(&self.false_positives)];
        SlateStats {
            queries: answered.iter().sum(),
            negatives: answered[0],
            true_positives: answered[1],
            false_positives: answered[2],
            repeated_false_positives: of(&self.repeated),
            adaptations: of(&self.adaptations),
            failed_repairs: of(&self.failed_repairs),
            denied: of(&self.denied),
            failed_removals: of(&self.failed_removals),
            remote_reads: of(&self.remote_reads),
            writes: of(&self.writes),
            resyncs: of(&self.resyncs),
            rebuilds: of(&self.rebuilds),
            snapshots: of(&self.snapshots),
            store_time: Duration::from_nanos(of(&self.store_nanos)),
            ..SlateStats::default()
        }
    }
}

/// Counts one more.
pub(super) fn raise(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
