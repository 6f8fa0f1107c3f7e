//! Merging: two filters of one kind become one.

use crate::{Filter, MergeError};

/// A filter that can take in all keys of another one without seeing the keys.
///
/// Both must have been built with the same seed and parameters, since they store a few bits of each key's hash and
/// these must mean the same keys. Filters that can [grow](crate::quotient::QuotientFilterBuilder::growable_to) may have
/// grown differently since. [`BroomFilter`](crate::BroomFilter::merge) merges too, but reads the keys from two remotes
/// to do so.
///
/// ```
/// use besom::{BinFilter, Filter, Insert, Merge};
///
/// /// One filter for the keys of many workers. Works for every filter that merges.
/// fn union<F: Merge>(filters: impl IntoIterator<Item = F>) -> Result<Option<F>, besom::MergeError> {
///     let mut filters = filters.into_iter();
///     let Some(mut union) = filters.next() else { return Ok(None) };
///     for filter in filters {
///         union.merge(&filter)?;
///     }
///     Ok(Some(union))
/// }
///
/// let builder = BinFilter::builder().capacity(1000).seed(7_u64);
/// let (mut left, mut right) = (builder.clone().build()?, builder.build()?);
/// left.insert("broom")?;
/// right.insert("besom")?;
/// let both = union([left, right])?.expect("two filters were given");
/// assert!(both.contains("broom") && both.contains("besom"));
/// assert_eq!(both.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Merge: Filter {
    /// Adds all keys of `other`, in one pass over both. A key that both hold counts twice.
    ///
    /// # Errors
    ///
    /// [`MergeError`] if the hash functions or the shapes differ, if the filters cannot be merged at all, or if there
    /// is no room or no memory for the union.
    ///
    /// A merge that fails changes nothing: the filter stores the same keys, gives the same answers, and has the same
    /// capacity and promised rate as before. `other` never changes.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError>;
}
