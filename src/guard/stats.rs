//! What a guard counts.

/// What a [`Guard`](crate::Guard) has counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GuardStats {
    /// Calls of [`Guard::get`](crate::Guard::get) that were answered.
    pub queries: u64,
    /// Queries that the filter settled alone: the dictionary was not touched.
    pub negatives: u64,
    /// Queries whose key the dictionary had.
    pub true_positives: u64,
    /// Queries that reached the dictionary for nothing. The filter was told of each.
    pub false_positives: u64,
    /// False positives that could not be repaired because the remote failed or disagreed. The query was answered all
    /// the same.
    pub failed_repairs: u64,
    /// Removed keys that the filter still holds, because the remote failed or disagreed. They cost a look-up in vain.
    pub failed_removals: u64,
    /// False positives of keys that filter and remote hold and the dictionary denies: a stale read, or a key whose
    /// insertion failed half-way. [`Guard::restore`](crate::Guard::restore) or a removal of the key settles it.
    pub denied: u64,
    /// Ranges read from the remote, by any operation.
    pub remote_reads: u64,
    /// Groups of changes made to the remote, by any operation.
    pub remote_writes: u64,
    /// Times that something in question was settled: a group taken back, a home looked at.
    pub resyncs: u64,
    /// Times that the filter was built from a scan of the dictionary.
    pub rebuilds: u64,
    /// Changes and addresses that are in question at present.
    pub in_question: usize,
    /// Items of the filter whose keys the remote does not have. They answer "maybe present".
    pub slots_in_question: usize,
}

impl GuardStats {
    /// The share of absent keys that reached the dictionary. 0 before the first absent key.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        match self.negatives + self.false_positives {
            0 => 0.0,
            absent => self.false_positives as f64 / absent as f64,
        }
    }
}
