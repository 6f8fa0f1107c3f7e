//! The database file: opened, opened again after an error, compacted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use ::redb::{Database, DatabaseError, Error, ReadableDatabase};

use super::Layout;
use super::carried::Carried;
use super::meta::{Found, Meta};
use super::transaction::RedbTransaction;
use super::view::RedbView;
use crate::engine::Engine;

/// How the database is opened, the first time and after an error.
pub(crate) type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send + Sync>;

/// Whether redb still answers. After an error of the file it refuses everything until it is opened again.
#[derive(Debug, Clone, Default)]
pub(super) struct Health(Arc<AtomicBool>);

impl Health {
    /// Notes the errors after which the database has to be opened again.
    pub(super) fn checked<T>(&self, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let result = act();
        if let Err(Error::Io(_) | Error::PreviousIo | Error::DatabaseClosed | Error::LockPoisoned(_)) = result
        {
            self.0.store(true, Ordering::Release);
        }
        result
    }
}

/// See the [module](self).
pub(crate) struct Redb {
    /// `None` if it could not be opened again.
    database: RwLock<Option<Database>>,
    opener: Opener,
    health: Health,
    layout: Layout,
}

/// What a file that was to be opened as a store turned out to be.
pub(crate) enum Refused {
    Database(Error),
    Foreign,
    Newer(u64),
    OtherLayout(Layout),
}

impl<E: Into<Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
}

impl Redb {
    /// Opens a store, or makes one of an empty database. `first` is the number of its first commit then.
    pub(crate) fn open(opener: Opener, layout: Option<Layout>, first: u64) -> Result<Self, Refused> {
        let database = opener()?;
        let layout = match (Meta::find(&database.begin_read()?)?, layout) {
            (Found::Store(meta), Some(layout)) if layout != meta.layout => {
                return Err(Refused::OtherLayout(meta.layout));
            }
            (Found::Store(meta), _) => meta.layout,
            (Found::Empty, layout) => {
                let layout = layout.unwrap_or_default();
                let transaction = database.begin_write()?;
                Meta { layout, lists: 0, first, sequence: first }.create(&transaction)?;
                transaction.commit()?;
                layout
            }
            (Found::Foreign, _) => return Err(Refused::Foreign),
            (Found::Newer(version), _) => return Err(Refused::Newer(version)),
        };
        Ok(Self { database: RwLock::new(Some(database)), opener, health: Health::default(), layout })
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Lets `act` use the database. Nothing panics while the lock is held, but for redb itself.
    fn with<T>(&self, act: impl FnOnce(&Database) -> Result<T, Error>) -> Result<T, Error> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        self.health.checked(|| act(database.as_ref().ok_or(Error::DatabaseClosed)?))
    }

    /// Gives unused pages back to the file system. Whether there were any.
    pub(crate) fn compact(&self) -> Result<bool, Error> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        self.health.checked(|| Ok(database.as_mut().ok_or(Error::DatabaseClosed)?.compact()?))
    }
}

impl Engine for Redb {
    type Error = Error;
    type View = RedbView;
    type Transaction = RedbTransaction;

    fn view(&self) -> Result<RedbView, Error> {
        let transaction = self.with(|database| Ok(database.begin_read()?))?;
        Ok(RedbView { transaction, layout: self.layout, health: self.health.clone() })
    }

    fn begin(&self) -> Result<RedbTransaction, Error> {
        let begun = self.with(|database| {
            let transaction = database.begin_write()?;
            let meta = Meta::read(&transaction.open_table(super::META)?)?;
            Ok((transaction, meta))
        });
        let (transaction, meta) = begun?;
        let (health, carried) = (self.health.clone(), Carried::default());
        Ok(RedbTransaction { transaction, health, meta, renewed: false, failed: None, carried })
    }

    fn is_broken(&self) -> bool {
        self.health.0.load(Ordering::Acquire)
    }

    fn reopen(&self) -> Result<(), Error> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        if !self.is_broken() {
            return Ok(());
        }
        // The old one first: it holds the lock of the file.
        *database = None;
        let opened = (self.opener)()?;
        match Meta::find(&opened.begin_read()?)? {
            Found::Store(meta) if meta.layout == self.layout => {}
            _ => return Err(Error::Corrupted("the file is no longer the store that it was".into())),
        }
        *database = Some(opened);
        self.health.0.store(false, Ordering::Release);
        Ok(())
    }

    fn is_merged(&self) -> bool {
        self.layout == Layout::Merged
    }
}
