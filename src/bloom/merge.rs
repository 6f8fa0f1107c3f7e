//! The union of two Bloom filters: the bits of both.

use super::{BlockedBloomFilter, BloomFilter};
use crate::{KeyHasher, Merge, MergeError};

/// A parameter that must be the same in both filters, with its two values.
type Measure = (&'static str, u64, u64);

fn check_shapes(measures: &[Measure]) -> Result<(), MergeError> {
    match measures.iter().find(|(_, left, right)| left != right) {
        Some(&(what, left, right)) => Err(MergeError::ShapeMismatch { what, left, right }),
        None => Ok(()),
    }
}

/// Implements [`Merge`] for a filter, given the parameters beside its size that two filters must share.
macro_rules! merge_by_bits {
    ($filter:ident, $($what:literal => $measure:expr),*) => {
        impl<H: KeyHasher> Merge for $filter<H> {
            /// Sets the bits of `other` too. `other` must have been built with the same seed, capacity and rate.
            fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
                if self.hasher != other.hasher {
                    return Err(MergeError::HashMismatch);
                }
                let bits = |filter: &Self| filter.words.len() as u64 * 64;
                check_shapes(&[
                    ("bits", bits(self), bits(other)),
                    $(($what, $measure(self), $measure(other)),)*
                ])?;
                let needed = self.len.saturating_add(other.len);
                if needed > self.capacity {
                    return Err(MergeError::Full { needed, capacity: self.capacity });
                }
                self.words.iter_mut().zip(&*other.words).for_each(|(word, other)| *word |= other);
                self.len = needed;
                Ok(())
            }
        }
    };
}

merge_by_bits!(BloomFilter, "probes" => |filter: &Self| u64::from(filter.probes()));
merge_by_bits!(
    BlockedBloomFilter,
    "probes" => |filter: &Self| u64::from(filter.probes()),
    "bits of a lane" => Self::lane_bits
);
