//! Snapshots of a filter in a file beside its store: when they are good, and why they are not.

use std::fs::{self, File};
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

    /// Removes what killed processes left behind while they wrote a snapshot: one store at a time has this one.
    fn clear_out(&self) {
        let target = self.0.canonicalize().unwrap_or_else(|_| self.0.clone());
        let folder =
            target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (Some(name), Ok(files)) = (target.file_name(), fs::read_dir(folder)) else { return };
        for file in files.flatten() {
            if is_unfinished(file.file_name().as_encoded_bytes(), name.as_encoded_bytes())
                && begins_as_ours(&file.path())
            {
                let _ = fs::remove_file(file.path());
            }
        }
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
        let Some(file) = self else { return Ok(None) };
        file.clear_out();
        file.load()
    }
}

/// Whether a file has the name of a snapshot that is being written: a dot, the snapshot's name, two numbers, `new`.
fn is_unfinished(name: &[u8], snapshot: &[u8]) -> bool {
    let numbers = name
        .strip_prefix(b".")
        .and_then(|name| name.strip_prefix(snapshot)?.strip_prefix(b".")?.strip_suffix(b".new"));
    // Names that a person would choose are somebody else's.
    numbers.is_some_and(|numbers| numbers.iter().all(|byte| b"0123456789-".contains(byte)))
}

/// Whether a file begins as a snapshot does, or ends before that can be told.
fn begins_as_ours(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).map(|file| file.take(MAGIC.len() as u64).read_to_end(&mut begin));
    matches!(read, Ok(Ok(_))) && MAGIC.starts_with(&begin)
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

#[cfg(test)]
mod tests {
    //! Catches: files of killed processes that pile up, and files of others that go with them.
    use super::*;

    #[test]
    fn snapshots_that_were_not_finished_go_and_nothing_else_does() {
        let folder = std::env::temp_dir().join(format!("besom-snapshot-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let ours = [
            (".a.besom.17-0.new", &b"BESOM and half of it"[..]),
            (".a.besom.17-1.new", b""),
            (".a.besom.2-0.new", b"BES"),
        ];
        let others = [
            ("a.besom", &b"BESOM"[..]),
            (".a.besom.17-2.new", b"not ours"),
            (".a.besom.year.new", b"BESOM"),
            (".a.besom.new", b"BESOM"),
            (".b.besom.17-0.new", b"BESOM"),
            ("a.besom.17-0.new", b"BESOM"),
        ];
        let write = |&(name, bytes): &(&str, &[u8])| fs::write(folder.join(name), bytes).unwrap();
        ours.iter().chain(&others).for_each(write);
        SnapshotFile(folder.join("a.besom")).clear_out();
        assert!(ours.iter().all(|(name, _)| !folder.join(name).exists()));
        assert!(others.iter().all(|(name, _)| folder.join(name).exists()));
        fs::remove_dir_all(&folder).unwrap();
    }
}
