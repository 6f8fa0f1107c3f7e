//! A file that is there as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::FormatError;

/// Puts a file in the place of another, or of none: whatever happens, the old one is there or the new one.
///
/// What `write` writes goes to a file beside the target; only when the storage has it does it take the target's name.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    // Where a link leads, not the link, is what is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (beside, file) = create_beside(&target)?;
    let done = fill(&target, &beside, file, write);
    if done.is_err() {
        // What went wrong first is what the caller has to know.
        let _ = fs::remove_file(&beside);
    }
    done
}

fn fill(
    target: &Path,
    beside: &Path,
    mut file: File,
    write: impl FnOnce(&mut File) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    write(&mut file)?;
    if let Ok(old) = fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    // First the bytes, then the name: the other way round a crash could leave the name on a file without bytes.
    file.sync_all()?;
    drop(file);
    fs::rename(beside, target)?;
    sync_directory(target)?;
    Ok(())
}

/// A new file in the directory of the target, so that renaming does not leave the file system.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no name of a file", target.display()))
    })?;
    loop {
        let mut beside = OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}-{}.new", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let beside = target.with_file_name(beside);
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            // Left behind by a process of the same number that was killed: take the next name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((beside, file?)),
        }
    }
}

/// Makes the new name last.
#[cfg(unix)]
fn sync_directory(target: &Path) -> io::Result<()> {
    let directory = target.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Elsewhere directories cannot be synced by opening them.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
