//! What can go wrong with a store.

use std::path::PathBuf;

use besom::format::FormatError;
use besom::{AdaptiveError, BuildError, FullError, Seed};
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
    /// The store was closed, or another process has taken over. Nothing was asked or changed.
    #[error("{}; open the store again if it should be used here",
        if *fenced { "another process has opened the store and taken over" } else { "the store was closed" })]
    Closed {
        /// Another process has taken over.
        fenced: bool,
    },
    /// An error of the database has taken back commits that were acknowledged as [buffered](crate::Durability::Buffered). The
    /// operation did nothing. Every [handle](crate::Store#handles) of the store is told once; the store goes on from what is left.
    #[error(
        "an error of the database took back the last {commits} commits, which were acknowledged without being durable; write \
         them again, or use durable commits"
    )]
    RolledBack {
        /// How many.
        commits: u64,
    },
    /// There was no room in the filter for the key. Nothing has changed.
    #[error(transparent)]
    Full(FullError),
    /// The filter and the index disagree. The next write builds the filter again.
    #[error(
        "the filter and the index at address {address} disagree; the next write builds the filter again, as does rebuild()"
    )]
    Inconsistent {
        /// Where it was noticed.
        address: u64,
    },
    /// The memory for a larger filter could not be allocated. Nothing has changed.
    #[error("{bytes} bytes of memory could not be allocated for the filter")]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
    /// The function that makes filters made none.
    #[error("no filter could be made: {0}")]
    Build(#[from] BuildError),
    /// Work on the filter was broken off, because the runtime is shutting down or the work panicked.
    #[error("work on the filter was broken off; call restore(), or open the store again")]
    BrokenOff,
    /// A snapshot of the filter could not be written. The store is not affected; the snapshot before it is still there.
    #[error("the snapshot {name} could not be written: {source}")]
    Snapshot {
        /// Its file or object.
        name: String,
        /// What went wrong.
        source: FormatError,
    },
    /// The store was given no file for its snapshots.
    #[error("the store has no file for snapshots; open it with Options::snapshot_path")]
    NoSnapshotPath,
    /// The file where snapshots belong is not a snapshot. It is left alone.
    #[error(
        "{path} is no snapshot of a filter, and is left as it is; remove it, or give another snapshot path",
        path = path.display()
    )]
    NotASnapshot {
        /// The file.
        path: PathBuf,
    },
    /// The file for snapshots is the store itself.
    #[error("{path} is the store itself; give another snapshot path", path = path.display())]
    SnapshotIsStore {
        /// The file.
        path: PathBuf,
    },
    /// The database could not be opened.
    #[error("{name} could not be opened: {source}; {remedy}")]
    Open {
        /// Its file or path.
        name: String,
        /// What the database says.
        source: Box<E>,
        /// What can be done.
        remedy: &'static str,
    },
    /// The database belongs to another program, or its header is damaged.
    #[error("{name} is a database, but no store of this crate ({what}); give another path")]
    NotAStore {
        /// Its file or path.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The rows of a table were being moved into the store, and some are in the table still.
    #[error("{name} has taken over a part of the table {table:?}; call adopt with that table to go on")]
    HalfAdopted {
        /// Its file or path.
        name: String,
        /// The table.
        table: String,
    },
    /// A table that is to be adopted has the name of one that the store needs. Nothing has changed.
    #[error("the store has a table {table:?} of its own; rename yours before it is adopted")]
    OwnTable {
        /// The table.
        table: String,
    },
    /// The store was made by another version of this crate.
    #[error("{name} has format {found}, and this version reads {known}; use the version that wrote it")]
    OtherFormat {
        /// Its file or path.
        name: String,
        /// Its format.
        found: u16,
        /// The format that this version reads.
        known: u16,
    },
    /// The store has another layout than the one that was asked for.
    #[error("{name} was made with the layout {found:?}, not {asked:?}; ask for that, or for none")]
    OtherLayout {
        /// Its file or path.
        name: String,
        /// What it has.
        found: Layout,
        /// What was asked for.
        asked: Layout,
    },
    /// The filter hashes keys with another function or seed than the rows of the store are ordered by.
    #[error(
        "the rows of {name} are ordered by the hash function with the seed {stored:?}, and the filter has {made:?} or another \
         function; make filters with the seed that the function is called with"
    )]
    OtherHash {
        /// Its file or path.
        name: String,
        /// The seed of the store.
        stored: Seed,
        /// The seed of the filter.
        made: Seed,
    },
    /// A row is not where the hash of its key says.
    #[error(
        "the row of the key {key:?} is at {found:#x} and its hash is {expected:#x}: the store is damaged, or was written by \
         another program"
    )]
    WrongRow {
        /// The bytes of the key.
        key: Box<[u8]>,
        /// Where it is.
        found: u64,
        /// Where it should be.
        expected: u64,
    },
    /// The filter accepts a key that the index has and the data has not.
    #[error("the index has the key {key:?}, and the data has not: the store is damaged; call verify()")]
    NoData {
        /// The bytes of the key.
        key: Box<[u8]>,
    },
    /// Something that only the ordered layout can do was asked of another one.
    #[error("the keys of this store are not in order; make it with Layout::Ordered for ranges")]
    NotOrdered,
    /// A key is too long for the database.
    #[error("a key of {len} bytes is too long; at most {max} bytes are stored")]
    KeyTooLong {
        /// Its length.
        len: usize,
        /// The longest that is taken.
        max: usize,
    },
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
