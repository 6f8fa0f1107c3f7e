//! What a store counts.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a store has counted since it was opened, and how its filter is now.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Calls of `get` and `contains_key` that were answered.
    pub queries: u64,
    /// Queries that the filter settled alone: the database was not touched.
    pub reads_avoided: u64,
    /// Queries whose key the database had.
    pub true_positives: u64,
    /// Queries that reached the database for nothing.
    pub false_positives: u64,
    /// False positives of keys that were false positives before, as far as the last 16,384 of them tell.
    pub repeated_false_positives: u64,
    /// False positives that were repaired.
    pub adaptations: u64,
    /// Repairs that failed or were given up. The queries were answered all the same.
    pub failed_adaptations: u64,
    /// Repairs that wait because a write was under way.
    pub waiting_adaptations: u64,
    /// False positives of keys that the filter stores and the data denies: what [`take_fault`](crate::Store::take_fault) tells of.
    pub denied: u64,
    /// Removed keys that were left in the filter. They cost reads in vain until their homes are settled, with the next write.
    pub failed_removals: u64,
    /// Ranges read from the index, by repairs and writes.
    pub remote_reads: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Commits that failed, so that the store had to find out whether they were made.
    pub commits_in_doubt: u64,
    /// Commits that were acknowledged without being durable, and that an error of the database took back.
    pub rolled_back: u64,
    /// Keys whose last write is not known to have been made or not. The next write finds out.
    pub keys_in_doubt: u64,
    /// Homes that were settled after a failure, or to catch up a snapshot.
    pub settled: u64,
    /// Times that the filter was built from all keys.
    pub rebuilds: u64,
    /// Times that the database was opened again after an error.
    pub reopenings: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Commits that changed the filter since the last snapshot. `None` if there is none.
    pub snapshot_behind: Option<u64>,
    /// Time since the last snapshot was written or loaded. `None` if there is none.
    pub snapshot_age: Option<Duration>,
    /// Time spent in the database, by all threads together.
    pub store_time: Duration,
    /// Keys in the filter.
    pub keys: u64,
    /// Memory of the filter for each of them, in bits. Infinite while there is none.
    pub bits_per_key: f64,
}

impl Metrics {
    /// The share of absent keys that reached the database. 0 before the first absent key.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        match self.reads_avoided + self.false_positives {
            0 => 0.0,
            absent => self.false_positives as f64 / absent as f64,
        }
    }

    /// Hands all numbers to the recorder of the `metrics` crate, as `besom_store_…` with a label `store`. Call it as often as the
    /// numbers are to be fresh, once a second say; it costs some twenty calls of the recorder.
    #[cfg(feature = "metrics")]
    pub fn record(&self, store: &str) {
        for (name, value) in self.counts() {
            metrics::counter!(name, "store" => store.to_owned()).absolute(value);
        }
        let gauges = [
            ("besom_store_waiting_adaptations", self.waiting_adaptations as f64),
            ("besom_store_keys_in_doubt", self.keys_in_doubt as f64),
            ("besom_store_snapshot_behind", self.snapshot_behind.map_or(f64::NAN, |commits| commits as f64)),
            ("besom_store_snapshot_age_seconds", self.snapshot_age.map_or(f64::NAN, |age| age.as_secs_f64())),
            ("besom_store_keys", self.keys as f64),
            ("besom_store_bits_per_key", self.bits_per_key),
        ];
        for (name, value) in gauges {
            metrics::gauge!(name, "store" => store.to_owned()).set(value);
        }
    }

    /// The numbers that only grow, with their names.
    #[cfg(feature = "metrics")]
    fn counts(&self) -> [(&'static str, u64); 18] {
        [
            ("besom_store_queries", self.queries),
            ("besom_store_reads_avoided", self.reads_avoided),
            ("besom_store_true_positives", self.true_positives),
            ("besom_store_false_positives", self.false_positives),
            ("besom_store_repeated_false_positives", self.repeated_false_positives),
            ("besom_store_adaptations", self.adaptations),
            ("besom_store_failed_adaptations", self.failed_adaptations),
            ("besom_store_remote_reads", self.remote_reads),
            ("besom_store_denied", self.denied),
            ("besom_store_failed_removals", self.failed_removals),
            ("besom_store_rolled_back", self.rolled_back),
            ("besom_store_settled", self.settled),
            ("besom_store_commits", self.commits),
            ("besom_store_commits_in_doubt", self.commits_in_doubt),
            ("besom_store_rebuilds", self.rebuilds),
            ("besom_store_reopenings", self.reopenings),
            ("besom_store_snapshots", self.snapshots),
            ("besom_store_store_microseconds", self.store_time.as_micros() as u64),
        ]
    }
}

/// A number that threads add to.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// What is counted while operations run.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) reads_avoided: Count,
    pub(crate) true_positives: Count,
    pub(crate) false_positives: Count,
    pub(crate) repeated_false_positives: Count,
    pub(crate) adaptations: Count,
    pub(crate) failed_adaptations: Count,
    pub(crate) remote_reads: Count,
    pub(crate) denied: Count,
    pub(crate) failed_removals: Count,
    pub(crate) rolled_back: Count,
    pub(crate) settled: Count,
    /// The number of the last commit.
    pub(crate) position: Count,
    pub(crate) commits: Count,
    pub(crate) commits_in_doubt: Count,
    pub(crate) rebuilds: Count,
    pub(crate) reopenings: Count,
    pub(crate) snapshots: Count,
    store_nanos: Count,
    recent: Recent,
}

impl Counters {
    /// Measures the time that something takes.
    pub(crate) async fn timed<T>(&self, act: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let result = act.await;
        self.store_nanos.add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        result
    }

    /// Counts a false positive.
    pub(crate) fn false_positive(&self, key: &[u8]) {
        self.false_positives.add(1);
        self.repeated_false_positives.add(u64::from(self.recent.has_seen(key)));
    }

    /// What was counted so far. The caller knows the rest.
    pub(crate) fn metrics(&self) -> Metrics {
        Metrics {
            queries: self.reads_avoided.get() + self.true_positives.get() + self.false_positives.get(),
            reads_avoided: self.reads_avoided.get(),
            true_positives: self.true_positives.get(),
            false_positives: self.false_positives.get(),
            repeated_false_positives: self.repeated_false_positives.get(),
            adaptations: self.adaptations.get(),
            failed_adaptations: self.failed_adaptations.get(),
            remote_reads: self.remote_reads.get(),
            denied: self.denied.get(),
            failed_removals: self.failed_removals.get(),
            rolled_back: self.rolled_back.get(),
            settled: self.settled.get(),
            commits: self.commits.get(),
            commits_in_doubt: self.commits_in_doubt.get(),
            rebuilds: self.rebuilds.get(),
            reopenings: self.reopenings.get(),
            snapshots: self.snapshots.get(),
            store_time: Duration::from_nanos(self.store_nanos.get()),
            ..Metrics::default()
        }
    }
}

/// The hashes of the false positives seen last, each in the place that its lower bits give.
#[derive(Debug)]
struct Recent {
    hashes: Box<[AtomicU64]>,
    state: RandomState,
}

const RECENT: usize = 1 << 14;

impl Default for Recent {
    fn default() -> Self {
        Self { hashes: (0..RECENT).map(|_| AtomicU64::new(0)).collect(), state: RandomState::new() }
    }
}

impl Recent {
    fn has_seen(&self, key: &[u8]) -> bool {
        // 0 stands for none.
        let hash = self.state.hash_one(key) | 1 << 63;
        self.hashes[hash as usize % RECENT].swap(hash, Ordering::Relaxed) == hash
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a number that is counted under another name, or not handed on.
    use super::*;

    #[test]
    fn false_positives_that_come_again_are_noticed() {
        let counters = Counters::default();
        counters.false_positive(b"one");
        counters.false_positive(b"two");
        counters.false_positive(b"one");
        let metrics = Metrics { reads_avoided: 9, ..counters.metrics() };
        assert_eq!((metrics.false_positives, metrics.repeated_false_positives), (3, 1));
        assert!((metrics.false_positive_rate() - 0.25).abs() < 1e-9);
        assert_eq!(Metrics::default().false_positive_rate(), 0.0);
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn numbers_reach_the_recorder() {
        let recorder = recorder::Names::default();
        let numbers = Metrics { queries: 7, keys: 3, ..Metrics::default() };
        metrics::with_local_recorder(&recorder, || numbers.record("sessions"));
        let names = recorder.0.lock().unwrap();
        assert_eq!(names.len(), 24);
        assert!(
            names.iter().all(|name| name.starts_with("besom_store_") && name.ends_with("{store=sessions}")),
            "{names:?}"
        );
    }

    #[cfg(feature = "metrics")]
    mod recorder {
        use std::sync::Mutex;

        use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

        /// Notes what is handed to it.
        #[derive(Default)]
        pub(super) struct Names(pub(super) Mutex<Vec<String>>);

        impl Names {
            fn note(&self, key: &Key) {
                let labels: String =
                    key.labels().map(|label| format!("{{{}={}}}", label.key(), label.value())).collect();
                self.0.lock().unwrap().push(format!("{}{labels}", key.name()));
            }
        }

        impl Recorder for Names {
            fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
            fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
            fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

            fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
                self.note(key);
                Counter::noop()
            }

            fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
                self.note(key);
                Gauge::noop()
            }

            fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
                self.note(key);
                Histogram::noop()
            }
        }
    }
}
