//! Work on all cores where the feature `rayon` is on, on one where it is not: the same code for both.

/// Calls `work` for all items, and returns what it returns in their order.
#[cfg(feature = "rayon")]
pub(crate) fn map<T: Send, U: Send>(items: Vec<T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    use rayon::iter::{IntoParallelIterator, ParallelIterator};
    // One item needs nobody else, and waking others takes longer than much of the work here.
    if items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    items.into_par_iter().map(&work).collect()
}

/// Calls `work` for all items, and returns what it returns in their order.
#[cfg(not(feature = "rayon"))]
pub(crate) fn map<T: Send, U: Send>(items: Vec<T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    items.into_iter().map(work).collect()
}

/// So much work, in keys, is worth waking other threads for.
const PAYS_FROM: usize = 1 << 16;

/// How many threads so many keys are worth.
pub(crate) fn threads_for(keys: usize) -> usize {
    if keys < PAYS_FROM { 1 } else { threads() }
}

/// How many threads [`map`] has.
fn threads() -> usize {
    #[cfg(feature = "rayon")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "rayon"))]
    1
}
