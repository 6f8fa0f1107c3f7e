//! What can go wrong, one type per operation: the values that led to it, and what to do about it.

use thiserror::Error;

/// No filter can have these parameters, or its memory could not be allocated.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Capacity 0 was asked for, or none at all.
    #[error("a filter of capacity 0 holds no key; ask for at least 1")]
    ZeroCapacity,
    /// More keys than the hash bits can tell apart.
    #[error("capacity {capacity} is too large; this filter can hold at most {max} keys at this rate")]
    CapacityTooLarge {
        /// What was asked for.
        capacity: usize,
        /// The most that can be met with the other parameters as they are.
        max: usize,
    },
    /// The rate is no probability, or one that this filter cannot meet.
    #[error("this filter cannot meet a false-positive rate of {rate}; choose one from {min:e} to {}", upper_end(*max))]
    RateOutOfRange {
        /// The rate that was asked for.
        rate: f64,
        /// The smallest rate that can be met.
        min: f64,
        /// The largest rate that makes sense; if that is 1, all below it do.
        max: f64,
    },
    /// Some other parameter is out of its range.
    #[error("{name} = {value} is out of range; choose from {min} to {max}")]
    OutOfRange {
        /// The builder's method.
        name: &'static str,
        /// What was asked for.
        value: f64,
        /// The smallest value allowed.
        min: f64,
        /// The largest value allowed.
        max: f64,
    },
    /// Two parameters contradict each other.
    #[error("{first} and {second} exclude each other; leave one out")]
    Conflict {
        /// One of the builder's methods.
        first: &'static str,
        /// The other one.
        second: &'static str,
    },
    /// Filters of this kind do not have this option.
    #[error("a filter of kind {filter} has no option {option}; leave it out, or choose another kind")]
    Unsupported {
        /// The name of the kind.
        filter: &'static str,
        /// The builder's method.
        option: &'static str,
    },
    /// The parts of a filter must hash alike.
    #[error("the shards of a filter must share one seed; build all of them with the same one")]
    SeedsDiffer,
    /// Allocation failed.
    #[error("cannot allocate {bytes} bytes of memory; ask for a smaller capacity or a larger rate")]
    OutOfMemory {
        /// How many bytes the filter would take.
        bytes: usize,
    },
}

/// The end of a range of rates: a filter that accepts everything is none.
fn upper_end(max: f64) -> String {
    if max < 1.0 { max.to_string() } else { "below 1".into() }
}

/// A filter had no room for another key. It is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the filter is full: it holds {len} keys and was built for {capacity}; build a larger one")]
pub struct FullError {
    /// How many keys it holds.
    pub len: usize,
    /// How many it was built for.
    pub capacity: usize,
}

/// Two filters could not be merged. Both are unchanged.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Their hash functions differ, so that their fingerprints mean different keys.
    #[error("filters with different seeds or hash functions cannot be merged; build both with the same ones")]
    HashMismatch,
    /// Their fingerprints are cut differently.
    #[error("the filters differ in {what}: {left} and {right}; build both with the same parameters")]
    ShapeMismatch {
        /// Which parameter differs.
        what: &'static str,
        /// Its value in the filter that is merged into.
        left: u64,
        /// Its value in the other filter.
        right: u64,
    },
    /// Filters of this kind cannot be merged without their keys, or the two are of different kinds.
    #[error("these filters cannot be merged without their keys; build one filter from all keys")]
    Unsupported,
    /// The union does not fit.
    #[error(
        "the union has {needed} keys, but the filter holds at most {capacity}; build both filters for {needed} keys"
    )]
    Full {
        /// How many keys the union has.
        needed: usize,
        /// How many fit, after all growth that the filter was built for.
        capacity: usize,
    },
    /// The memory for the union is not available.
    #[error("cannot allocate {bytes} bytes of memory for the union")]
    OutOfMemory {
        /// How many bytes it would take.
        bytes: usize,
    },
}

/// An operation of an adaptive filter failed. The filter is as it was before; only after a failed
/// [`settle`](crate::Adaptive::settle) it may hold more than before, never less. The remote may have made the change or
/// not, as [`Adaptive`](crate::Adaptive#when-things-fail) explains.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AdaptiveError<E> {
    /// There was no room for the key.
    #[error(transparent)]
    Full(#[from] FullError),
    /// The remote failed; its error is inside.
    #[error("the remote failed: {0}")]
    Remote(#[source] E),
    /// The remote does not hold the keys that the filter stored there.
    #[error(
        "the remote disagrees with the filter at address {address}: it has {found} keys where the filter has \
         {expected}, or other keys; a write was interrupted, or the remote belongs to another filter; settle these \
         addresses, or rebuild the filter from the stored keys"
    )]
    Inconsistent {
        /// The remote address that was read.
        address: u64,
        /// How many keys the filter stored there.
        expected: usize,
        /// How many the remote returned.
        found: usize,
    },
    /// The filter cannot do this at all.
    #[error("this filter cannot {what}; choose another kind")]
    Unsupported {
        /// What it cannot do.
        what: &'static str,
    },
    /// The memory for a larger table is not available.
    #[error("cannot allocate {bytes} bytes of memory")]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
}

impl<E> AdaptiveError<E> {
    /// Stands for the error of a remote where that error cannot be passed on.
    pub(crate) const UNTOLD: Self = Self::Inconsistent { address: 0, expected: 0, found: 0 };

    /// The same error, with whatever `remote` makes of an error of the remote.
    pub(crate) fn map_remote<G>(self, remote: impl FnOnce(E) -> AdaptiveError<G>) -> AdaptiveError<G> {
        match self {
            Self::Full(full) => AdaptiveError::Full(full),
            Self::Remote(error) => remote(error),
            Self::Inconsistent { address, expected, found } => {
                AdaptiveError::Inconsistent { address, expected, found }
            }
            Self::Unsupported { what } => AdaptiveError::Unsupported { what },
            Self::OutOfMemory { bytes } => AdaptiveError::OutOfMemory { bytes },
        }
    }
}

/// A filter could not be built from many keys at once.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum BulkError<E> {
    /// There is no such filter.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The remote failed, or has keys at addresses that are not theirs.
    #[error(transparent)]
    Filter(#[from] AdaptiveError<E>),
}

/// An invariant of a filter does not hold: memory was corrupted, or there is a bug in this crate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("broken invariant: {0}")]
pub struct InvariantError(pub(crate) String);

impl InvariantError {
    /// Describes a violation that was found: for filters outside of this crate too.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// Returns an [`InvariantError`] unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::error::InvariantError::new(format!($($message)+)));
        }
    };
}
pub(crate) use ensure;

/// What an operation of an adaptive filter with a remote of type `R` returns.
pub type RemoteResult<T, R> = Result<T, AdaptiveError<<R as crate::Remote>::Error>>;

#[cfg(test)]
mod tests {
    //! Catches: advice that the filter which gives it refuses.
    use super::*;
    use crate::{BlockedBloomFilter, BroomFilter, QuotientFilter, RemoteCuckooFilter, TinySet};

    #[test]
    fn rates_at_the_ends_of_the_range_that_is_told_are_met() {
        let told = |error: BuildError| match error {
            BuildError::RateOutOfRange { min, max, .. } => (min, max, error.to_string()),
            error => panic!("{error}"),
        };
        let quotient = |rate| QuotientFilter::builder().capacity(10).false_positive_rate(rate).build();
        let (min, max, text) = told(quotient(1.0).unwrap_err());
        assert!(text.ends_with("to 0.5"), "{text}");
        assert!(quotient(min).is_ok() && quotient(max).is_ok());
        let cuckoo = |rate| RemoteCuckooFilter::builder().capacity(10).false_positive_rate(rate).build();
        let (min, max, _) = told(cuckoo(1.0).unwrap_err());
        assert!(cuckoo(min).is_ok() && cuckoo(max).is_ok());
        let broom = |rate| BroomFilter::builder().capacity(10).false_positive_rate(rate).build();
        let (min, max, text) = told(broom(1.0).unwrap_err());
        assert!(max < 1.0 || text.ends_with("to below 1"), "{text}");
        assert!(broom(min).is_ok() && broom(max.min(0.999)).is_ok());
        let blocked = |rate| BlockedBloomFilter::builder().capacity(10).false_positive_rate(rate).build();
        let (min, max, text) = told(blocked(1.0).unwrap_err());
        assert!(text.ends_with("to 0.5"), "{text}");
        assert!(blocked(min).is_ok() && blocked(max).is_ok());
        let tiny = |rate| TinySet::builder().capacity(10).false_positive_rate(rate).build();
        let (_, max, text) = told(tiny(1.0).unwrap_err());
        assert!(text.ends_with("to 0.5") && tiny(max).is_ok(), "{text}");
        let (min, ..) = told(tiny(1e-16).unwrap_err());
        assert!(tiny(min).is_ok(), "{min} was told");
    }

    #[test]
    fn a_full_filter_advises_what_every_filter_offers() {
        let text = FullError { len: 7, capacity: 5 }.to_string();
        assert!(text.contains('7') && text.contains('5') && text.ends_with("build a larger one"), "{text}");
    }
}
