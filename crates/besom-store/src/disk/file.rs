//! How a database comes into its file.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ::redb::{Builder, Database, DatabaseError};

/// Opens the database in a file, or makes one if there is no such file.
///
/// redb writes what marks a file as its own last, and will not open one that lacks it. So a process that is killed while it makes
/// a database must not leave that file in its place: it is made beside it, and put there when it is whole.
///
/// A file that is there but empty becomes a database where it is.
pub(super) fn open_or_make(builder: &Builder, path: &Path) -> Result<Database, DatabaseError> {
    if !path.try_exists()? {
        make(builder, path)?;
    }
    clear_out(path);
    builder.create(path)
}

/// What stands between the name of a store and the numbers of one that is being made.
const NEW: &str = ".new-";

/// Removes what killed processes left behind while they made this store: redb locks the file that it makes, so one that is not
/// locked belongs to nobody.
fn clear_out(path: &Path) {
    let (Some(name), Ok(files)) = (path.file_name(), fs::read_dir(folder(path))) else { return };
    let mut prefix = name.to_owned();
    prefix.push(NEW);
    for file in files.flatten() {
        let name = file.file_name();
        let numbers = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        // Names that a person would choose are somebody else's.
        let is_new = numbers.is_some_and(|numbers| numbers.iter().all(|byte| b"0123456789-".contains(byte)));
        if is_new && fs::File::open(file.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(file.path());
        }
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a database, unless somebody else is faster.
fn make(builder: &Builder, path: &Path) -> Result<(), DatabaseError> {
    let beside = Beside::new(path);
    // Whatever has this name was left behind by another process that had our number.
    let _ = fs::remove_file(&beside.0);
    drop(builder.create(&beside.0)?);
    match fs::hard_link(&beside.0, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        // Where there are no links: then two who make one store at once are not kept apart.
        Err(_) => fs::rename(&beside.0, path)?,
        Ok(()) => {}
    }
    sync_directory(path);
    Ok(())
}

/// A file beside another one, which goes when this is dropped.
struct Beside(PathBuf);

impl Beside {
    fn new(path: &Path) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut name: OsString = path.as_os_str().to_owned();
        name.push(format!("{NEW}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        Self(name.into())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Lets the name of a new file last, where directories can be synced. Without it the store may be gone after a loss of power; a
/// write that was acknowledged is not, on any file system that orders names before what is in their files.
fn sync_directory(path: &Path) {
    if let Ok(directory) = fs::File::open(folder(path)) {
        let _ = directory.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_make_a_database_at_once_all_get_the_same() {
        let folder = std::env::temp_dir().join(format!("besom-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("new.redb");
        for _ in 0..20 {
            let _ = fs::remove_file(&path);
            std::thread::scope(|scope| {
                let makers: Vec<_> =
                    (0..4).map(|_| scope.spawn(|| make(&Builder::new(), &path).unwrap())).collect();
                let first = loop {
                    if path.exists() {
                        break fs::metadata(&path).unwrap();
                    }
                };
                makers.into_iter().for_each(|maker| maker.join().unwrap());
                let last = fs::metadata(&path).unwrap();
                assert_eq!(first.created().ok(), last.created().ok(), "another one took its place");
            });
            drop(open_or_make(&Builder::new(), &path).unwrap());
        }
        fs::write(folder.join("new.redb.new-1-1"), b"left behind by a killed process").unwrap();
        let others = ["new.redb.newer", "new.redb.new-year"].map(|name| folder.join(name));
        others.iter().for_each(|other| fs::write(other, b"somebody else's").unwrap());
        drop(open_or_make(&Builder::new(), &path).unwrap());
        others.iter().for_each(|other| fs::remove_file(other).unwrap());
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["new.redb"], "something was left behind");
        fs::remove_dir_all(&folder).unwrap();
    }
}
