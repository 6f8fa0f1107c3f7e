//! Snapshots of a filter in a file beside its store: when they are good, and why they are not.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use besom::format::{self, FormatError, Persist, ReadOptions, Region};
use thiserror::Error;

/// Why a snapshot was not used. The filter was built anew from the store instead, and nothing was lost but time.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotRefused {
    /// It cannot be read, or is damaged; what is inside says where.
    #[error("the snapshot {path} cannot be used: {source}", path = path.display())]
    Unreadable {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        source: FormatError,
    },
    /// It belongs to an earlier state of the store, and the way from there is not known.
    #[error("the snapshot is {commits} commits behind the store, and could not be caught up: {why}")]
    Older {
        /// How many.
        commits: u64,
        /// Why it could not be caught up.
        why: String,
    },
    /// It belongs to a later state than the store has: the store was put back from a backup, or it is another store's.
    #[error(
        "the snapshot is of commit {snapshot:#x}, and the store is at {store:#x}: it belongs to another store, or the store was put back to an earlier state"
    )]
    Newer {
        /// The snapshot's commit.
        snapshot: u64,
        /// The store's commit.
        store: u64,
    },
    /// It belongs to another store, or to this one before its filter was built anew.
    #[error(
        "the snapshot is of commit {snapshot:#x}, and the store begins at {first:#x}: it belongs to another store, or to a filter before this one"
    )]
    Foreign {
        /// The snapshot's commit.
        snapshot: u64,
        /// The first commit of the store's lists.
        first: u64,
    },
    /// It has another number of keys than the store.
    #[error("the snapshot has {snapshot} keys and the store {store}: it belongs to another store")]
    OtherKeys {
        /// How many keys the snapshot has.
        snapshot: u64,
        /// How many keys the store has.
        store: u64,
    },
}

/// How the number of a snapshot stands to that of its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Matches,
    /// By so many commits.
    Behind(u64),
    Newer,
    Foreign,
}

impl Standing {
    /// Of a snapshot of this commit, in a store whose lists were made at `first` and are at `now`.
    pub(crate) fn of(snapshot: u64, first: u64, now: u64) -> Self {
        match snapshot {
            snapshot if snapshot == now => Self::Matches,
            snapshot if snapshot < first => Self::Foreign,
            snapshot if snapshot < now => Self::Behind(now - snapshot),
            _ => Self::Newer,
        }
    }
}

/// The filter in a file, checked from end to end, and the commit that it belongs to. `None` if there is no such file.
pub(crate) fn load<F: Persist>(path: &Path) -> Result<Option<(F, u64)>, SnapshotRefused> {
    let unreadable = |source| SnapshotRefused::Unreadable { path: path.to_owned(), source };
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| unreadable(error.into()))?,
    };
    let (filter, generation) = open(&file).map_err(unreadable)?;
    Ok(Some((filter, generation)))
}

fn open<F: Persist>(file: &File) -> Result<(F, u64), FormatError> {
    // SAFETY: the file belongs to the store. `Persist::save` never changes a file, it puts a new one in its place, and the map
    // keeps the old one; the store's lock keeps other processes away.
    let region = unsafe { Region::map(file)? };
    // A map is not checked by being opened.
    format::check(&mut &region[..])?;
    let (filter, header) = F::open(&region, &ReadOptions::new())?;
    if header.file_len() != region.len() as u64 {
        return Err(FormatError::TrailingBytes { found: region.len() as u64, expected: header.file_len() });
    }
    filter.verify()?;
    Ok((filter, header.generation))
}

#[cfg(test)]
mod tests {
    //! Catches: a snapshot that is taken for a match, or for one that can be caught up, and is none.
    use super::*;

    #[test]
    fn only_the_same_commit_matches() {
        assert_eq!(Standing::of(7, 5, 7), Standing::Matches);
        assert_eq!(Standing::of(5, 5, 7), Standing::Behind(2));
        assert_eq!(Standing::of(4, 5, 7), Standing::Foreign);
        assert_eq!(Standing::of(8, 5, 7), Standing::Newer);
        assert_eq!(Standing::of(u64::MAX, 5, 7), Standing::Newer);
    }
}
