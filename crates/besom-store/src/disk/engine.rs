//! The database file: opened, opened again after an error, checked, compacted.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ::redb::{
    Builder, Database, DatabaseError, Error, ReadTransaction, ReadableDatabase, TableError, TableHandle,
    WriteTransaction,
};

use super::file::open_or_make;
use super::{ADOPTION, STATE, definition};
use crate::engine::{Durability, Engine, Health, KeyRange, Table, View, VisitRow, Write};
use crate::guard::lock;

/// How the database is opened, the first time and after an error.
pub(crate) type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send + Sync>;

/// How long a check waits for readers to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// A redb database as an [`Engine`]. Clones share it.
#[derive(Clone)]
pub struct Redb(Arc<Shared>);

struct Shared {
    /// `None` if it could not be opened again.
    database: RwLock<Option<Database>>,
    opener: Opener,
    health: Broken,
    /// The transaction in which the next write is made.
    begun: Mutex<Option<WriteTransaction>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        close(self.database.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Closes a database. redb writes then, and can panic if its file is damaged: that is told by nobody any more.
fn close(database: Option<Database>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
}

/// Whether redb still answers. After an error of the file it refuses everything until it is opened again.
#[derive(Debug, Clone, Default)]
pub(super) struct Broken(Arc<AtomicBool>);

impl Broken {
    /// Notes the errors after which the database has to be opened again. A panic of redb's, which damaged files can cause, is an
    /// error as well.
    pub(super) fn checked<T>(&self, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let result = catch_unwind(AssertUnwindSafe(act));
        let result = result.unwrap_or_else(|panic| Err(Error::Corrupted(told(&*panic))));
        if let Err(Error::Io(_) | Error::PreviousIo | Error::DatabaseClosed | Error::LockPoisoned(_)) = result
        {
            self.0.store(true, Ordering::Release);
        }
        result
    }
}

/// What a panic of redb's says.
fn told(panic: &(dyn Any + Send)) -> String {
    let what = panic.downcast_ref::<String>().map(String::as_str);
    let what = what.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("redb panicked: {}", what.unwrap_or("no reason given"))
}

impl std::fmt::Debug for Redb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redb").field("broken", &self.0.health).finish_non_exhaustive()
    }
}

impl Redb {
    /// Opens the database in a file, or makes one, with the tables of a store: for a [`Store`](crate::Store) that is awaited.
    ///
    /// # Errors
    ///
    /// What redb says, and [`Error::Corrupted`] if the file has other tables than those of a store.
    pub fn at(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let opened = Self::open(Box::new(move || open_or_make(&Builder::new(), &path)), None)?;
        opened.ok_or_else(|| Error::Corrupted("it has other tables than a store".into()))
    }

    /// Opens a database, and makes the tables of a store if it has no tables at all, or the one that is adopted. `None` if it
    /// has others.
    pub(crate) fn open(opener: Opener, adopting: Option<&str>) -> Result<Option<Self>, Error> {
        let health = Broken::default();
        let Some(database) = health.checked(|| open_with_tables(&opener, adopting))? else { return Ok(None) };
        let database = RwLock::new(Some(database));
        Ok(Some(Self(Arc::new(Shared { database, opener, health, begun: Mutex::default() }))))
    }

    /// The table that is being adopted.
    pub(crate) fn adopted(&self) -> Result<Option<String>, Error> {
        self.with(|database| match database.begin_read()?.open_table(ADOPTION) {
            Ok(table) => Ok(table.get(())?.map(|name| name.value().to_owned())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        })
    }

    /// Begins a transaction, for the one who writes.
    pub(crate) fn begin(&self) -> Result<WriteTransaction, Error> {
        self.with(|database| Ok(database.begin_write()?))
    }

    /// Lets the next write be made in this transaction. If there is none before what is returned is dropped, it is aborted.
    pub(crate) fn lend(&self, transaction: WriteTransaction) -> Lent<'_> {
        *lock(&self.0.begun) = Some(transaction);
        Lent(&self.0.begun)
    }

    /// Lets `act` use the database.
    fn with<T>(&self, act: impl FnOnce(&Database) -> Result<T, Error>) -> Result<T, Error> {
        let database = self.0.database.read().unwrap_or_else(PoisonError::into_inner);
        self.0.health.checked(|| act(database.as_ref().ok_or(Error::DatabaseClosed)?))
    }

    /// Gives unused pages back to the file system. Whether there were any.
    pub(crate) fn compact(&self) -> Result<bool, Error> {
        let mut database = self.0.database.write().unwrap_or_else(PoisonError::into_inner);
        self.0.health.checked(|| Ok(database.as_mut().ok_or(Error::DatabaseClosed)?.compact()?))
    }

    /// The engine's own check; a panic there is damage as well.
    fn check_now(&self) -> Result<Option<String>, Error> {
        let start = Instant::now();
        loop {
            let mut database = self.0.database.write().unwrap_or_else(PoisonError::into_inner);
            let open = database.as_mut().ok_or(Error::DatabaseClosed)?;
            match catch_unwind(AssertUnwindSafe(|| open.check_integrity())) {
                Ok(Ok(true)) => return Ok(None),
                Ok(Ok(false)) => return Ok(Some("redb found damage, and repaired what it could".into())),
                Ok(Err(DatabaseError::TransactionInProgress)) if start.elapsed() < PATIENCE => {
                    drop(database);
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(Err(DatabaseError::Storage(::redb::StorageError::Corrupted(what)))) => {
                    return Ok(Some(what));
                }
                Ok(Err(error)) => return Err(error.into()),
                Err(panic) => {
                    self.0.health.0.store(true, Ordering::Release);
                    return Ok(Some(told(&*panic)));
                }
            }
        }
    }
}

/// See [`Redb::lend`].
pub(crate) struct Lent<'r>(&'r Mutex<Option<WriteTransaction>>);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

/// Opens a database. One without tables, or with the one that is adopted, gets those of a store. `None` for one that has others, but
/// not those.
fn open_with_tables(opener: &Opener, adopting: Option<&str>) -> Result<Option<Database>, Error> {
    let database = opener()?;
    let read = database.begin_read()?;
    let adopts = adopting.is_some() && read.list_tables()?.any(|table| Some(table.name()) == adopting);
    let empty = read.list_tables()?.next().is_none() && read.list_multimap_tables()?.next().is_none();
    let makes = empty || adopts;
    for table in Table::ALL {
        match read.open_table(definition(table)) {
            Ok(_) => {}
            Err(TableError::TableDoesNotExist(_)) if makes => {}
            Err(TableError::Storage(error)) => return Err(error.into()),
            Err(_) => return Ok(None),
        }
    }
    drop(read);
    if makes {
        let transaction = database.begin_write()?;
        let new = !transaction.list_tables()?.any(|table| table.name() == STATE.name());
        for table in Table::ALL {
            transaction.open_table(definition(table))?;
        }
        if let Some(name) = adopting.filter(|_| new && adopts) {
            transaction.open_table(ADOPTION)?.insert((), name)?;
        }
        transaction.commit()?;
    }
    Ok(Some(database))
}

fn write_rows(transaction: &WriteTransaction, writes: Vec<Write>) -> Result<(), Error> {
    let mut writes = writes.into_iter().peekable();
    while let Some(first) = writes.peek() {
        let of = first.table;
        let mut table = transaction.open_table(definition(of))?;
        while let Some(Write { key, value, .. }) = writes.next_if(|write| write.table == of) {
            match value {
                Some(value) => drop(table.insert(&*key, &*value)?),
                None => drop(table.remove(&*key)?),
            }
        }
    }
    Ok(())
}

impl Engine for Redb {
    type Error = Error;
    type Value = Vec<u8>;
    type View = RedbView;
    type Receipt = ();

    fn view(&self) -> Result<RedbView, Error> {
        let transaction = self.with(|database| Ok(database.begin_read()?))?;
        Ok(RedbView { transaction, health: self.0.health.clone() })
    }

    async fn write(&self, writes: Vec<Write>, durability: Durability) -> Result<(), Error> {
        let begun = lock(&self.0.begun).take();
        let mut transaction = begun.map_or_else(|| self.begin(), Ok)?;
        self.0.health.checked(|| {
            transaction.set_durability(match durability {
                Durability::Durable => ::redb::Durability::Immediate,
                Durability::Buffered => ::redb::Durability::None,
            })?;
            write_rows(&transaction, writes)?;
            Ok(transaction.commit()?)
        })
    }

    fn health(&self) -> Health {
        if self.0.health.0.load(Ordering::Acquire) { Health::Broken } else { Health::Sound }
    }

    async fn reopen(&self) -> Result<(), Error> {
        let mut database = self.0.database.write().unwrap_or_else(PoisonError::into_inner);
        if self.health() == Health::Sound {
            return Ok(());
        }
        // The old one first: it holds the lock of the file.
        close(database.take());
        let opened = self.0.health.checked(|| open_with_tables(&self.0.opener, None))?;
        let changed = || Error::Corrupted("the file is no longer the store that it was".into());
        *database = Some(opened.ok_or_else(changed)?);
        self.0.health.0.store(false, Ordering::Release);
        Ok(())
    }

    async fn check(&self) -> Result<Option<String>, Error> {
        self.check_now()
    }
}

/// A redb database as it was at one moment.
pub struct RedbView {
    pub(super) transaction: ReadTransaction,
    pub(super) health: Broken,
}

impl std::fmt::Debug for RedbView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedbView").finish_non_exhaustive()
    }
}

impl RedbView {
    fn scan_now(&self, table: Table, range: &KeyRange, visit: &mut VisitRow<'_>) -> Result<(), Error> {
        let table = self.transaction.open_table(definition(table))?;
        let rows = match &range.to {
            Some(to) => table.range::<&[u8]>(&*range.from..&**to)?,
            None => table.range::<&[u8]>(&*range.from..)?,
        };
        for row in rows {
            let (key, value) = row?;
            if visit(key.value(), value.value()).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl View for RedbView {
    type Error = Error;
    type Value = Vec<u8>;

    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.health.checked(|| {
            let table = self.transaction.open_table(definition(table))?;
            Ok(table.get(key)?.map(|value| value.value().to_vec()))
        })
    }

    async fn get_with<T: Send>(
        &self,
        table: Table,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T + Send,
    ) -> Result<Option<T>, Error> {
        let value = self.health.checked(|| {
            let value = self.transaction.open_table(definition(table))?.get(key)?;
            // redb's panics are met here: those of `look` are none of redb's.
            let _ = value.as_ref().map(|value| value.value().len());
            Ok(value)
        })?;
        Ok(value.map(|value| look(value.value())))
    }

    async fn has(&self, table: Table, key: &[u8]) -> Result<bool, Error> {
        self.health.checked(|| Ok(self.transaction.open_table(definition(table))?.get(key)?.is_some()))
    }

    async fn scan(
        &self,
        table: Table,
        range: KeyRange,
        _: bool,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Error> {
        if range.to.as_ref().is_some_and(|to| *to <= range.from) {
            return Ok(());
        }
        // The visitor's panics are none of redb's.
        let mut panic = None;
        let visit = &mut |key: &[u8], value: &[u8]| {
            catch_unwind(AssertUnwindSafe(|| visit(key, value))).unwrap_or_else(|caught| {
                panic = Some(caught);
                ControlFlow::Break(())
            })
        };
        let scanned = self.health.checked(|| self.scan_now(table, &range, visit));
        panic.map_or(scanned, |panic| resume_unwind(panic))
    }
}
