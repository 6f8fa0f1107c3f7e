//! What guards on object storage count.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What a [`SlateStore`](super::SlateStore) or a [`SlateReader`](super::SlateReader) has counted since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct SlateMetrics {
    /// Calls of `get` that were answered.
    pub queries: u64,
    /// Queries that the filter settled alone: nothing was read.
    pub reads_avoided: u64,
    /// Queries whose key was stored.
    pub true_positives: u64,
    /// Queries that reached the database for nothing.
    pub false_positives: u64,
    /// False positives of keys that were one before, as far as is remembered: the last few thousand are.
    pub repeated_false_positives: u64,
    /// False positives that were repaired.
    pub adaptations: u64,
    /// False positives that wait for their repair, because the filter was being written to.
    pub waiting_adaptations: usize,
    /// False positives that were not repaired: the database failed, too many were waiting, or a reader would have had to
    /// write. The query was answered all the same.
    pub failed_adaptations: u64,
    /// False positives of keys that the filter holds itself or cannot tell from one that it holds. Where a write failed
    /// half-way, [`restore`](super::SlateStore::restore) settles it.
    pub denied: u64,
    /// Removed keys that the filter still holds, because the database failed or disagreed. They cost a read in vain.
    pub failed_removals: u64,
    /// Lists of the reverse map that were read, scans apart.
    pub remote_reads: u64,
    /// Batches written, with data, lists or both.
    pub commits: u64,
    /// Times that filter and reverse map were brought back into step at some addresses.
    pub resyncs: u64,
    /// Times that the filter was built anew from a scan.
    pub rebuilds: u64,
    /// Slots whose keys the reverse map does not have. They answer "maybe present".
    pub slots_in_question: u64,
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

impl SlateMetrics {
    /// The share of absent keys that reached the database. 0 before the first absent key.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        match self.reads_avoided + self.false_positives {
            0 => 0.0,
            absent => self.false_positives as f64 / absent as f64,
        }
    }

    /// Hands all numbers to the recorder of the `metrics` crate, as `besom_store_…` with a label `store`. Call it as often as the
    /// numbers are to be fresh, once a second say.
    #[cfg(feature = "metrics")]
    pub fn record(&self, store: &str) {
        let counts = [
            ("besom_store_queries", self.queries),
            ("besom_store_reads_avoided", self.reads_avoided),
            ("besom_store_true_positives", self.true_positives),
            ("besom_store_false_positives", self.false_positives),
            ("besom_store_repeated_false_positives", self.repeated_false_positives),
            ("besom_store_adaptations", self.adaptations),
            ("besom_store_failed_adaptations", self.failed_adaptations),
            ("besom_store_denied", self.denied),
            ("besom_store_failed_removals", self.failed_removals),
            ("besom_store_remote_reads", self.remote_reads),
            ("besom_store_commits", self.commits),
            ("besom_store_resyncs", self.resyncs),
            ("besom_store_rebuilds", self.rebuilds),
            ("besom_store_snapshots", self.snapshots),
            ("besom_store_store_microseconds", self.store_time.as_micros() as u64),
        ];
        for (name, value) in counts {
            metrics::counter!(name, "store" => store.to_owned()).absolute(value);
        }
        let gauges = [
            ("besom_store_waiting_adaptations", self.waiting_adaptations as f64),
            ("besom_store_slots_in_question", self.slots_in_question as f64),
            ("besom_store_snapshot_age_seconds", self.snapshot_age.map_or(f64::NAN, |age| age.as_secs_f64())),
            ("besom_store_keys", self.keys as f64),
            ("besom_store_bits_per_key", self.bits_per_key),
        ];
        for (name, value) in gauges {
            metrics::gauge!(name, "store" => store.to_owned()).set(value);
        }
    }
}

/// How many false positives are remembered.
const REMEMBERED: usize = 4096;

/// The counters behind [`SlateMetrics`].
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) reads_avoided: AtomicU64,
    pub(super) true_positives: AtomicU64,
    pub(super) false_positives: AtomicU64,
    pub(super) repeated: AtomicU64,
    pub(super) adaptations: AtomicU64,
    pub(super) failed_adaptations: AtomicU64,
    pub(super) denied: AtomicU64,
    pub(super) failed_removals: AtomicU64,
    pub(super) remote_reads: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) resyncs: AtomicU64,
    pub(super) rebuilds: AtomicU64,
    pub(super) snapshots: AtomicU64,
    pub(super) store_nanos: AtomicU64,
    /// No count, but how many there are.
    pub(super) slots_in_question: AtomicU64,
    /// Hashes of false positives, each where its lowest bits say. 0 is none.
    remembered: Box<[AtomicU64]>,
}

impl Counters {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            reads_avoided: zero(),
            true_positives: zero(),
            false_positives: zero(),
            repeated: zero(),
            adaptations: zero(),
            failed_adaptations: zero(),
            denied: zero(),
            failed_removals: zero(),
            remote_reads: zero(),
            commits: zero(),
            resyncs: zero(),
            rebuilds: zero(),
            snapshots: zero(),
            store_nanos: zero(),
            slots_in_question: zero(),
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

    /// The numbers, without what the caller alone knows.
    pub(super) fn metrics(&self) -> SlateMetrics {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        let answered = [of(&self.reads_avoided), of(&self.true_positives), of(&self.false_positives)];
        SlateMetrics {
            queries: answered.iter().sum(),
            reads_avoided: answered[0],
            true_positives: answered[1],
            false_positives: answered[2],
            repeated_false_positives: of(&self.repeated),
            adaptations: of(&self.adaptations),
            failed_adaptations: of(&self.failed_adaptations),
            denied: of(&self.denied),
            failed_removals: of(&self.failed_removals),
            remote_reads: of(&self.remote_reads),
            commits: of(&self.commits),
            resyncs: of(&self.resyncs),
            rebuilds: of(&self.rebuilds),
            snapshots: of(&self.snapshots),
            slots_in_question: of(&self.slots_in_question),
            store_time: Duration::from_nanos(of(&self.store_nanos)),
            ..SlateMetrics::default()
        }
    }
}

/// Counts one more.
pub(super) fn raise(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
