//! Stores of `besom-store` on fjall, an LSM engine that is written in Rust: a folder of files, one process, many threads.
//!
//! [`Fjall`] is an [`Engine`], and all that it takes: a [`Store`](besom_store::Store) on it has every operation of the others.
//!
//! ```
//! use besom::TelescopingFilter;
//! use besom_fjall::Fjall;
//! use besom_store::{Options, Store, wait};
//!
//! # let folder = std::env::temp_dir().join(format!("besom-fjall-doc-{}", std::process::id()));
//! let make = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).growable().build();
//! let options = Options::new().snapshot_path(folder.join("filter.besom"));
//! let store = wait(Store::open(Fjall::open(&folder)?, make, options))?;
//! wait(store.insert(b"Ada", b"36"))?;
//! assert_eq!(wait(store.get(b"Ada"))?.as_deref(), Some(&b"36"[..]));
//! assert!(wait(store.get(b"Charles"))?.is_none()); // almost certainly without a look into the files
//! wait(store.snapshot())?; // the filter, for the next opening
//! # drop(store);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What fjall promises, and what a store makes of it
//!
//! A batch is in the journal as a whole or not at all, and the journal is read from its beginning after a crash, up to the first
//! batch that is not whole: so writes are all or nothing and the last ones are lost first. Durable ones are synced. If the power
//! fails while the last bytes of a batch are written, fjall 3 may take what it finds for damage and not open the folder; a
//! backup helps then. A process that is killed leaves no such batch behind. After a failure to write the journal fjall refuses
//! everything; the store then opens the folder again, which can take until all who read have finished.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use besom_store::Durability;
use besom_store::engine::{Engine, Health, KeyRange, Table, View, VisitRow, Write};
use fjall::{Database, Error, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Slice, Snapshot};

pub use fjall;

/// A fjall database as an [`Engine`]. Clones share it.
#[derive(Clone)]
pub struct Fjall(Arc<Shared>);

struct Shared {
    path: PathBuf,
    /// `None` if it could not be opened again.
    open: RwLock<Option<Open>>,
    broken: AtomicBool,
}

#[derive(Clone)]
struct Open {
    database: Database,
    rows: Keyspace,
}

impl Open {
    /// A panic of fjall's, which damaged files can cause, is an error as well.
    fn new(path: &Path) -> Result<Self, Error> {
        let opened = catch_unwind(|| {
            let database = Database::builder(path).open()?;
            let rows = database.keyspace("besom", KeyspaceCreateOptions::default)?;
            Ok(Self { database, rows })
        });
        opened.unwrap_or_else(|panic| {
            let what = panic.downcast_ref::<String>().map(String::as_str);
            let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
            Err(Error::Io(io::Error::new(io::ErrorKind::InvalidData, format!("fjall panicked: {what}"))))
        })
    }
}

/// The name of a folder that is being made, up to its number.
fn beside(path: &Path) -> OsString {
    let mut name = path.as_os_str().to_owned();
    name.push(".new-");
    name
}

/// Makes a database, unless somebody else is faster.
fn make(path: &Path) -> Result<(), Error> {
    let mut new = beside(path);
    new.push(std::process::id().to_string());
    // Whatever has this name was left behind by another process that had our number.
    let _ = fs::remove_dir_all(&new);
    let made = Open::new(Path::new(&new)).map(drop).and_then(|()| Ok(fs::rename(&new, path)?));
    if made.is_err() && path.exists() { Ok(()) } else { made }
}

/// Removes what killed processes have left behind. The database is there, so nobody is making one that will be used.
fn clear_out(path: &Path) {
    let (Some(folder), prefix) = (path.parent(), beside(path)) else { return };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Some(prefix) = Path::new(&prefix).file_name() else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        // Names that a person would choose are somebody else's.
        if number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The key of a row in the one keyspace of a store. fjall has no empty keys.
fn row(table: Table, key: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(1 + key.len());
    row.push(prefix(table));
    row.extend_from_slice(key);
    row
}

fn prefix(table: Table) -> u8 {
    match table {
        Table::State => b's',
        Table::Data => b'd',
        Table::Index => b'i',
    }
}

impl Fjall {
    /// Opens the database in a folder, or makes one. Keyspaces of others in it are left alone.
    ///
    /// fjall does not open a folder that a killed process was about to make. So a new one is made beside its place, as `….new-` and
    /// a number, and moved there when it is whole. What killed processes have left behind goes with the next opening.
    ///
    /// # Errors
    ///
    /// What fjall says, for instance [`Error::Locked`] if another process has it open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        if fs::read_dir(&path).map_or(true, |mut files| files.next().is_none()) {
            make(&path)?;
        }
        let open = RwLock::new(Some(Open::new(&path)?));
        clear_out(&path);
        Ok(Self(Arc::new(Shared { path, open, broken: AtomicBool::new(false) })))
    }

    /// The database itself, for keyspaces of one's own; `None` if it could not be opened again after an error.
    pub fn database(&self) -> Option<Database> {
        self.current().ok().map(|open| open.database)
    }

    fn current(&self) -> Result<Open, Error> {
        self.0.open.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Error::Poisoned)
    }
}

impl std::fmt::Debug for Fjall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fjall").field("path", &self.0.path).finish_non_exhaustive()
    }
}

impl Engine for Fjall {
    type Error = Error;
    type Value = Slice;
    type View = FjallView;
    type Receipt = ();

    fn view(&self) -> Result<FjallView, Error> {
        let Open { database, rows } = self.current()?;
        Ok(FjallView { snapshot: database.snapshot(), rows })
    }

    async fn write(&self, writes: Vec<Write>, durability: Durability) -> Result<(), Error> {
        let Open { database, rows } = self.current()?;
        // One that is buffered reaches the operating system, and is lost with the machine only.
        let mut batch = database.batch().durability(Some(match durability {
            Durability::Durable => PersistMode::SyncAll,
            Durability::Buffered => PersistMode::Buffer,
        }));
        for Write { table, key, value } in writes {
            match value {
                Some(value) => batch.insert(&rows, row(table, &key), value),
                None => batch.remove(&rows, row(table, &key)),
            }
        }
        let written = batch.commit();
        self.0.broken.fetch_or(written.is_err(), Ordering::AcqRel);
        written
    }

    fn health(&self) -> Health {
        if self.0.broken.load(Ordering::Acquire) { Health::Broken } else { Health::Sound }
    }

    async fn reopen(&self) -> Result<(), Error> {
        let mut open = self.0.open.write().unwrap_or_else(PoisonError::into_inner);
        if self.health() == Health::Broken {
            // The old one first: it holds the lock of the folder.
            *open = None;
            *open = Some(Open::new(&self.0.path)?);
            self.0.broken.store(false, Ordering::Release);
        }
        Ok(())
    }
}

/// A fjall database as it was at one moment.
pub struct FjallView {
    snapshot: Snapshot,
    rows: Keyspace,
}

impl std::fmt::Debug for FjallView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FjallView").finish_non_exhaustive()
    }
}

impl View for FjallView {
    type Error = Error;
    type Value = Slice;

    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Slice>, Error> {
        self.snapshot.get(&self.rows, row(table, key))
    }

    async fn has(&self, table: Table, key: &[u8]) -> Result<bool, Error> {
        self.snapshot.contains_key(&self.rows, row(table, key))
    }

    async fn scan(
        &self,
        table: Table,
        range: KeyRange,
        _: bool,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Error> {
        let to = range.to.map_or_else(|| vec![prefix(table) + 1], |to| row(table, &to));
        let from = row(table, &range.from);
        if to <= from {
            return Ok(());
        }
        for found in self.snapshot.range(&self.rows, from..to) {
            let (key, value) = found.into_inner()?;
            if visit(&key[1..], &value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a database that stays away after an error although it could be opened again, or comes back with less than was
    //! acknowledged.

    use besom::TelescopingFilter;
    use besom_store::{Options, Store, wait};

    use super::*;

    #[test]
    fn a_broken_database_is_opened_again_once_nobody_reads_the_old_one() {
        let folder = std::env::temp_dir().join(format!("besom-fjall-reopen-{}", std::process::id()));
        let engine = Fjall::open(&folder).unwrap();
        let make = |_, seed| TelescopingFilter::builder().capacity(100).seed(seed).growable().build();
        let store = wait(Store::open(engine.clone(), make, Options::new())).unwrap();
        for number in 0..50_u64 {
            wait(store.insert(&number.to_le_bytes(), b"value")).unwrap();
        }
        let reader = engine.view().unwrap();
        engine.0.broken.store(true, Ordering::Release);
        assert!(wait(store.insert(b"new", b"")).is_err(), "the folder is locked by who reads");
        assert!((0..50_u64).all(|number| store.may_contain_key(&number.to_le_bytes())));
        assert!(store.may_contain_key(b"anything"), "nothing is certain now");
        drop(reader);
        wait(store.insert(b"new", b"")).unwrap();
        assert_eq!(wait(store.len()).unwrap(), 51);
        assert!((0..50_u64).all(|number| wait(store.get(&number.to_le_bytes())).unwrap().is_some()));
        wait(store.verify()).unwrap();
        assert!(store.metrics().reopenings >= 2);
        drop((store, engine));
        fs::remove_dir_all(folder).unwrap();
    }
}
