//! What is measured: one filter behind a few methods that each work through a whole slice of keys.
//!
//! The calls through `dyn Subject` are made once per slice; the loops over keys are inside, compiled for each
//! filter, so that no operation pays for a virtual call.

use std::error::Error;
use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use besom::FilterStats;

/// Why a filter could not be measured.
pub(crate) type Failure = Box<dyn Error>;

/// What every filter of one row group is built for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    /// How many keys it must hold.
    pub(crate) items: usize,
    /// The share of its slots that these keys fill, for filters that have slots.
    pub(crate) load: f64,
    /// How often it may answer "maybe present" for an absent key.
    pub(crate) rate: f64,
    /// Makes the run repeatable.
    pub(crate) seed: u64,
}

impl Shape {
    /// The slots of a filter that these keys fill to the load.
    pub(crate) fn slots(&self) -> usize {
        // One slot more or less does not matter, so neither does the rounding of large numbers.
        (self.items as f64 / self.load).round() as usize
    }
}

/// A filter under measurement.
pub(crate) trait Subject {
    /// Inserts all keys. The harness times this call.
    fn insert_all(&mut self, keys: &[u64]) -> Result<(), Failure>;

    /// Asks for the keys one by one: how many may be present. The harness times this call.
    fn count(&self, keys: &[u64]) -> usize;

    /// Asks for the keys in batches of [`BATCH`]: how many may be present, or `None` if the filter has no batched
    /// query. The harness times this call.
    fn count_batched(&self, _keys: &[u64]) -> Option<usize> {
        None
    }

    /// Asks for non-members one by one, and repairs each false positive if the filter is adaptive.
    fn adapt_all(&mut self, strangers: &[u64]) -> Result<Adapting, Failure> {
        Ok(Adapting { hits: self.count(strangers), ..Adapting::default() })
    }

    /// Memory that the subject holds but the filter does not: that of the remote.
    fn foreign_bytes(&self) -> isize {
        0
    }

    /// No insertion and no adaptation follows: the remote may go.
    fn settle(&mut self) {}

    /// What the filter says of itself, if it is one of this project.
    fn stats(&self) -> Option<FilterStats> {
        None
    }

    /// Whether a false-positive rate means something.
    fn is_filter(&self) -> bool {
        true
    }
}

/// What came of queries for non-members.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Adapting {
    /// How many of them were false positives.
    pub(crate) hits: usize,
    /// How many of these were repaired.
    pub(crate) repairs: usize,
    /// How long the repairs took, without the queries.
    pub(crate) time: Duration,
}

impl AddAssign for Adapting {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.repairs += other.repairs;
        self.time += other.time;
    }
}

/// How many keys a batched query has: enough to overlap cache misses, few enough for a caller to have at hand.
pub(crate) const BATCH: usize = 1024;

/// Makes a fresh, empty subject.
pub(crate) type Build = Box<dyn Fn(&Shape) -> Result<Box<dyn Subject>, Failure>>;

/// Something that can be measured.
pub(crate) struct Entry {
    /// The name on the command line and in reports.
    pub(crate) name: &'static str,
    /// How it is configured and what to know when comparing it, for the footnotes.
    pub(crate) note: String,
    /// The subject that queries are measured on.
    pub(crate) build: Build,
    /// Whether that subject keeps its keys in a remote in memory.
    pub(crate) remote: bool,
    /// The same filter with a remote that stores nothing, to see what insertion costs the filter itself; `None` if it
    /// cannot insert without the stored keys.
    pub(crate) bare: Option<Build>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}
