//! What can go wrong with one shard among many.

use thiserror::Error;

/// An operation of a [`Sharded`](crate::Sharded) filter failed. The shard is unchanged, and so are the others.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ShardedError<E> {
    /// The filter of the shard refused it.
    #[error(transparent)]
    Filter(#[from] E),
    /// A thread panicked while it changed this shard in memory. It answers "maybe present" to everything since.
    #[error(
        "shard {shard} is in doubt: a thread panicked while it changed it, and it answers \"maybe present\" since; clear or \
         rebuild the filter, or replace the shard"
    )]
    InDoubt {
        /// The number of the shard.
        shard: usize,
    },
}
