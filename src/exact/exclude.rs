//! An adaptive filter that is told of a list of keys until it rejects them all.

use thiserror::Error;

use crate::{Adaptive, AdaptiveError, Key, Remote};

/// What [`exclude`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Exclusion {
    /// How many keys were excluded, repetitions among them.
    pub negatives: u64,
    /// How many false positives were repaired.
    pub adaptations: u64,
    /// How often the list was gone through; the last time, no key of it was accepted.
    pub passes: u32,
}

/// The keys could not all be excluded.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ExcludeError<E> {
    /// A key that is stored was to be excluded.
    #[error("the key {} is stored, so it cannot be excluded; it is in both lists", shown(.key))]
    Stored {
        /// The bytes of the key.
        key: Vec<u8>,
    },
    /// A key cannot be told from a stored one.
    #[error("the key {} cannot be told from a stored one; build the filter with another seed", shown(.key))]
    Unfixable {
        /// The bytes of the key.
        key: Vec<u8>,
    },
    /// Repairs undid one another for too long.
    #[error(
        "after {passes} passes the filter still accepts some keys, because it forgets repairs; use an extension filter, \
         or a smaller false-positive rate"
    )]
    NoEnd {
        /// How often the list was gone through.
        passes: u32,
    },
    /// The filter or its remote failed.
    #[error(transparent)]
    Filter(#[from] AdaptiveError<E>),
}

/// A key as it is read by people.
pub(super) fn shown(key: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(key).chars().take(80).collect();
    format!("{text:?}")
}

/// Repairs of a telescoping filter can bring back an older false positive, once in 1/ε times. So passes dwindle
/// geometrically, and a list that takes this many will not come to an end.
const MOST_PASSES: u32 = 64;

/// Keys that are asked at once.
const BATCH: usize = 512;

/// Repairs false positives until no key of a list is accepted.
///
/// The list is gone through at least twice, or once if nothing of it is accepted; each pass costs a batched query per
/// key. [`ExtensionFilter`](crate::ExtensionFilter) never takes back a repair, so two passes are enough for it;
/// [`TelescopingFilter`](crate::TelescopingFilter) may need a few more. Insert all keys **before**: what is inserted
/// later may make a false positive again of what was excluded.
///
/// # Errors
///
/// [`ExcludeError`]. The filter still accepts all its keys; some of the list may be excluded already.
///
/// ```
/// use besom::{Adaptive, ExtensionFilter, Filter, MemoryRemote, exact};
///
/// let (mut filter, mut remote) = (ExtensionFilter::builder().capacity(1000).seed(7_u64).build()?, MemoryRemote::new());
/// for revoked in 0..1000_u64 {
///     filter.insert(&revoked, &mut remote)?;
/// }
/// let valid = 1000..100_000_u64;
/// let done = exact::exclude(&mut filter, valid.clone(), &mut remote)?;
/// assert!(done.adaptations > 100 && valid.clone().all(|key| !filter.contains(&key)));
/// assert!((0..1000_u64).all(|key| filter.contains(&key)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[expect(
    clippy::needless_pass_by_value,
    reason = "so that ranges, slices and other small iterators are handed in as they are"
)]
pub fn exclude<F, K, R>(
    filter: &mut F,
    negatives: impl IntoIterator<Item = K> + Clone,
    remote: &mut R,
) -> Result<Exclusion, ExcludeError<R::Error>>
where
    F: Adaptive,
    K: Key,
    R: Remote,
{
    let mut done = Exclusion::default();
    while done.passes < MOST_PASSES {
        let before = done.adaptations;
        done.negatives = pass(filter, negatives.clone(), remote, &mut done.adaptations)?;
        done.passes += 1;
        if done.adaptations == before {
            return Ok(done);
        }
    }
    Err(ExcludeError::NoEnd { passes: done.passes })
}

/// Goes through the list once, and repairs what is accepted. Returns how long the list is.
fn pass<F: Adaptive, K: Key, R: Remote>(
    filter: &mut F,
    negatives: impl IntoIterator<Item = K>,
    remote: &mut R,
    adaptations: &mut u64,
) -> Result<u64, ExcludeError<R::Error>> {
    let (mut count, mut answers) = (0, Vec::with_capacity(BATCH));
    let (mut negatives, mut batch) = (negatives.into_iter(), Vec::with_capacity(BATCH));
    loop {
        batch.clear();
        batch.extend(negatives.by_ref().take(BATCH));
        if batch.is_empty() {
            return Ok(count);
        }
        filter.contains_many(&batch, &mut answers);
        for (key, _) in batch.iter().zip(&answers).filter(|(_, accepted)| **accepted) {
            *adaptations += u64::from(repair(filter, key, remote)?);
        }
        count += batch.len() as u64;
    }
}

/// Repairs one false positive. `false` if an earlier repair of the same batch has done it.
fn repair<F: Adaptive, K: Key, R: Remote>(
    filter: &mut F,
    key: &K,
    remote: &mut R,
) -> Result<bool, ExcludeError<R::Error>> {
    let adaptation = filter.adapt(key, remote)?;
    if !filter.contains(key) {
        return Ok(adaptation.is_fixed());
    }
    let bytes = key.with_bytes(<[u8]>::to_vec);
    // An adaptation that found nothing to repair where the filter accepts the key has found the key itself.
    Err(if adaptation == crate::Adaptation::NotFalsePositive {
        ExcludeError::Stored { key: bytes }
    } else {
        ExcludeError::Unfixable { key: bytes }
    })
}
