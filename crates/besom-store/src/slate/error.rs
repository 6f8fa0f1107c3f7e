//! What can go wrong with a guarded database on object storage.

use besom::format::FormatError;
use besom::{AdaptiveError, FullError, InvariantError};
use slatedb::object_store;
use thiserror::Error;

use super::replay::Paused;

/// An operation on a [`SlateStore`](super::SlateStore) or a [`SlateReader`](super::SlateReader) failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SlateError {
    /// The database failed. A write that fails so may be done or not; [`slatedb::Error::kind`] says what to do. A writer that
    /// was replaced by another finds `Closed(Fenced)` here.
    #[error("the database failed: {0}")]
    Engine(#[from] slatedb::Error),
    /// The bucket failed while a snapshot was listed, read, written or deleted.
    #[error("the bucket failed: {0}")]
    Objects(#[from] object_store::Error),
    /// The filter has no room for the key, and cannot grow.
    #[error(transparent)]
    Full(#[from] FullError),
    /// The memory for a larger filter is not to be had.
    #[error("{bytes} bytes of memory could not be allocated")]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
    /// A list of the reverse map is not what the filter knows of it.
    #[error(
        "the list at address {address} has {found} keys where the filter knows of {expected}, or others; call restore() to \
         build the filter anew"
    )]
    Inconsistent {
        /// The address of the list.
        address: u64,
        /// How many keys the filter knows of.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A row of the database is not what this crate writes.
    #[error("{what} is damaged or was written by another program ({len} bytes); is this path a besom store?")]
    Damaged {
        /// Which row.
        what: &'static str,
        /// How long it is.
        len: usize,
    },
    /// The database has another layout.
    #[error(
        "the database has layout {found}, and this version knows {supported}; use the version that wrote it"
    )]
    OtherVersion {
        /// The layout that was found.
        found: u16,
        /// The one that is known.
        supported: u16,
    },
    /// A key or a value is too long.
    #[error("a {what} of {len} bytes is too long; at most {max} bytes are stored")]
    TooLong {
        /// `key` or `value`.
        what: &'static str,
        /// Its length.
        len: usize,
        /// The longest that is taken.
        max: usize,
    },
    /// A reader found no snapshot.
    #[error("there is no snapshot at {path}; a reader needs one: have the writer publish it")]
    NoSnapshot {
        /// Where it looked.
        path: String,
    },
    /// A snapshot cannot be read. The writer builds its filter from the database then; a reader needs another snapshot.
    #[error("the snapshot {name} cannot be used: {source}; have the writer publish another one")]
    Snapshot {
        /// Its name in the bucket.
        name: String,
        /// What is wrong with it.
        source: FormatError,
    },
    /// A snapshot does not belong to the state of the database that it names.
    #[error("the snapshot {name} does not belong to its checkpoint; have the writer publish another one")]
    Foreign {
        /// Its name in the bucket.
        name: String,
    },
    /// The filter is broken: memory was corrupted, or there is a bug in this crate.
    #[error(transparent)]
    Invariant(#[from] InvariantError),
    /// The filter rejects keys that are stored: the database was written to past the guard.
    #[error(
        "the filter rejects {keys} stored keys, {key:?} among them; the database was written to past the guard: call restore()"
    )]
    Rejected {
        /// How many.
        keys: usize,
        /// The bytes of one of them.
        key: Box<[u8]>,
    },
    /// Work on the filter was broken off, because the runtime is shutting down or it panicked.
    #[error("work on the filter was broken off; call restore(), or open the store again")]
    BrokenOff,
}

impl SlateError {
    /// Whether the database says that this writer is closed: another one has taken over, or it has failed for good. Open the
    /// store again, if another writer is not meant to have it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Engine(error) if matches!(error.kind(), slatedb::ErrorKind::Closed(_)))
    }

    /// Whether another writer has taken over.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        let fenced = slatedb::ErrorKind::Closed(slatedb::CloseReason::Fenced);
        matches!(self, Self::Engine(error) if error.kind() == fenced)
    }
}

impl From<AdaptiveError<Paused>> for SlateError {
    fn from(error: AdaptiveError<Paused>) -> Self {
        match error {
            AdaptiveError::Full(full) => Self::Full(full),
            AdaptiveError::OutOfMemory { bytes } => Self::OutOfMemory { bytes },
            AdaptiveError::Inconsistent { address, expected, found } => {
                Self::Inconsistent { address, expected, found }
            }
            AdaptiveError::Remote(Paused::Mismatch { address, found }) => {
                Self::Inconsistent { address, expected: found, found }
            }
            // Whoever runs an operation answers these pauses; one that is left was broken off.
            _ => Self::BrokenOff,
        }
    }
}
