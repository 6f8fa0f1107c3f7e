//! Snapshots of a filter in a file beside its store: when they are good, and why they are not.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use besom::format::{self, FormatError, Persist, ReadOptions, Region, WriteOptions};
use thiserror::Error;

use crate::guard::Snapshots;
use crate::{StoreError, StoreFilter};

/// How a file of besom begins.
const MAGIC: &[u8; 5] = b"BESOM";

/// Why a snapshot was not used. The filter was built from the store instead, and nothing was lost but time.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotRefused {
    /// It cannot be read, or is damaged; what is inside says where.
    #[error("the snapshot {name} cannot be used: {source}")]
    Unreadable {
        /// Its file or object.
        name: String,
        /// What is wrong with it.
        source: FormatError,
    },
    /// The snapshots could not be looked for.
    #[error("no snapshot could be looked for: {0}")]
    Unreachable(String),
    /// The file is none of besom's.
    #[error("{path} is no snapshot of a filter, and is left as it is", path = path.display())]
    NotASnapshot {
        /// The file.
        path: PathBuf,
    },
    /// It belongs to an earlier state of the store, and the way from there is not known.
    #[error("the snapshot is {commits} commits behind the store, and could not be caught up: {why}")]
    Older {
        /// How many.
        commits: u64,
        /// Why it could not be caught up.
        why: &'static str,
    },
    /// It belongs to another store, or to another history of this one: a copy or a backup went another way, or it was taken too
    /// long ago.
    #[error(
        "the snapshot belongs to no state that this store has been in since its last snapshot: it is another store's, or a copy or \
         backup of this one went another way"
    )]
    Foreign,
    /// It has another number of keys than the store.
    #[error("the snapshot has {snapshot} keys and the store {store}: it belongs to another store")]
    OtherKeys {
        /// How many keys the snapshot has.
        snapshot: u64,
        /// How many keys the store has.
        store: u64,
    },
}

/// The one snapshot that lies beside a store.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotFile(pub(crate) PathBuf);

impl SnapshotFile {
    /// Whether something else has this name: it is never changed or removed.
    fn is_foreign(&self) -> Result<bool, FormatError> {
        let mut file = match File::open(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        let mut magic = [0; MAGIC.len()];
        match file.read_exact(&mut magic) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(true),
            read => read.map(|()| magic != *MAGIC).map_err(FormatError::from),
        }
    }

    /// Puts a snapshot in the place of the one before.
    pub(crate) fn save<F: StoreFilter, E>(&self, filter: &F, name: u64) -> Result<(), StoreError<E>> {
        let failed = |source| StoreError::Snapshot { name: self.0.display().to_string(), source };
        if self.is_foreign().map_err(failed)? {
            return Err(StoreError::NotASnapshot { path: self.0.clone() });
        }
        filter.save(&self.0, &WriteOptions::new().generation(name)).map_err(failed)
    }

    fn load<F: Persist>(&self) -> Result<Option<(F, u64)>, SnapshotRefused> {
        let unreadable = |source| SnapshotRefused::Unreadable { name: self.0.display().to_string(), source };
        if self.is_foreign().map_err(unreadable)? {
            return Err(SnapshotRefused::NotASnapshot { path: self.0.clone() });
        }
        let file = match File::open(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| unreadable(error.into()))?,
        };
        open(&file).map(Some).map_err(unreadable)
    }
}

impl<F: StoreFilter> Snapshots<F> for Option<SnapshotFile> {
    async fn find(&self, _: &[u64]) -> Result<Option<(F, u64)>, SnapshotRefused> {
        self.as_ref().map_or(Ok(None), SnapshotFile::load)
    }
}

/// The filter in a file, checked from end to end, and the name of the state that it belongs to.
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

/// Whether two paths name one file.
pub(crate) fn is_same_file(one: &Path, two: &Path) -> bool {
    match (one.canonicalize(), two.canonicalize()) {
        (Ok(one), Ok(two)) => one == two,
        _ => std::path::absolute(one).ok() == std::path::absolute(two).ok(),
    }
}
