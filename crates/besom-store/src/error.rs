//! What can go wrong with a store.

use std::path::PathBuf;

use besom::format::FormatError;
use besom::{AdaptiveError, BuildError, FullError};
use thiserror::Error;

use crate::Layout;

/// An operation of a store failed. `E` is the error of the database.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError<E> {
    /// The database failed; its error is inside. A write that fails so was done or was not: the store finds out with the next
    /// operation, and no key is rejected in the meantime.
    #[error("the database failed: {0}")]
    Engine(#[source] E),
    /// There was no room in the filter for the key. Nothing has changed.
    #[error(transparent)]
    Full(FullError),
    /// The filter and its lists in the database disagree. The store builds the filter anew with the next write.
    #[error(
        "the filter and its list at address {address} disagree; the next write builds the filter anew, as does rebuild()"
    )]
    Inconsistent {
        /// Where it was noticed.
        address: u64,
    },
    /// The memory for a larger filter is not to be had. Nothing has changed.
    #[error("{bytes} bytes of memory could not be allocated for the filter")]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
    /// The function that makes filters made none.
    #[error("no filter could be made: {0}")]
    Build(#[from] BuildError),
    /// A snapshot of the filter could not be written. The store is not affected; the snapshot before it is still there.
    #[error("the snapshot {path} could not be written: {source}", path = path.display())]
    Snapshot {
        /// Its file.
        path: PathBuf,
        /// What went wrong.
        source: FormatError,
    },
    /// The database could not be opened.
    #[error("{path} could not be opened: {source}; {remedy}", path = path.display())]
    Open {
        /// Its file.
        path: PathBuf,
        /// What the database says.
        source: Box<E>,
        /// What can be done.
        remedy: &'static str,
    },
    /// The file holds a database of somebody else.
    #[error("{path} is a database, but no store of this crate; give another path", path = path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The store was made by a later version of this crate.
    #[error("{path} has format {found}, and the newest one known here is {known}; update besom-store", path = path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format that this version reads.
        known: u64,
    },
    /// The store has another layout than the one that was asked for.
    #[error("{path} was made with the layout {found:?}, not {asked:?}; ask for that, or for none", path = path.display())]
    OtherLayout {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: Layout,
        /// What was asked for.
        asked: Layout,
    },
    /// Something that only the split layout can do was asked of a merged one.
    #[error("a merged store has no order of keys; make it with Layout::Split for ranges")]
    NotOrdered,
    /// A merged layout was asked for with a filter whose keys have no single address.
    #[error(
        "keys of this filter have no single address, which Layout::Merged needs; choose Layout::Split, or a quotient based filter"
    )]
    NoAddress,
}

/// What remains of an error of a filter once its remote is out of the question.
pub(crate) fn of_filter<R, E>(
    error: AdaptiveError<R>,
    remote: impl FnOnce(R) -> StoreError<E>,
) -> StoreError<E> {
    match error {
        AdaptiveError::Full(full) => StoreError::Full(full),
        AdaptiveError::Remote(error) => remote(error),
        AdaptiveError::Inconsistent { address, .. } => StoreError::Inconsistent { address },
        AdaptiveError::OutOfMemory { bytes } => StoreError::OutOfMemory { bytes },
        // The other ways in which a filter fails are about memory.
        _ => StoreError::OutOfMemory { bytes: 0 },
    }
}
