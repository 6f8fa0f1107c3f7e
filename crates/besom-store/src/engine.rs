//! What a store asks of the database behind it: a few ordered tables of bytes, views, and writes that are all or nothing.
//!
//! [`RedbStore`](crate::RedbStore) and `SlateStore` are the same guard on two engines. A third one is an implementation of
//! [`Engine`] and [`View`], which any ordered key-value store has the means for: [`MemoryEngine`](crate::MemoryEngine) is one
//! in a hundred lines. Open it with [`Store::open`](crate::Store::open).
//!
//! Methods return futures, because some databases have to be awaited. Those of a blocking database are plain `async fn`s that
//! await nothing; [`wait`](crate::wait) turns them back into calls.
//!
//! # What an engine owes
//!
//! 1. **A write is all or nothing**, also after a crash.
//! 2. **Acknowledged writes are seen.** A view sees every write that returned before the view was asked for.
//! 3. **A failed write does not come late.** It was made or it was not. After a later write has returned, it never takes
//!    effect. A write whose future was dropped counts as failed.
//! 4. **Order.** A crash that loses writes loses the last ones. [`Durable`](Durability::Durable) ones are not lost once they are
//!    [acknowledged](Engine::acknowledge).
//!
//! The store does the rest: it never rejects a key that may be stored, whatever an engine returns or fails with.

use std::error::Error;
use std::future::Future;
use std::ops::ControlFlow;

/// The tables of a store. Rows are ordered by the bytes of their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// What the store is, and its last commits: some rows.
    State,
    /// The data.
    Data,
    /// Hashes (or other addresses) and keys, in the layouts that have such an index.
    Index,
}

impl Table {
    /// All tables.
    pub const ALL: [Self; 3] = [Self::State, Self::Data, Self::Index];
}

/// A range of row keys: from one on, and before another or to the end of the table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRange {
    /// The first key that is in the range.
    pub from: Vec<u8>,
    /// The first key that is behind it, if there is one.
    pub to: Option<Vec<u8>>,
}

/// One row that a write stores or, without a value, deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Where.
    pub table: Table,
    /// The row.
    pub key: Vec<u8>,
    /// What it has afterwards.
    pub value: Option<Vec<u8>>,
}

/// Whether a write has to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// It survives a crash once it is acknowledged.
    #[default]
    Durable,
    /// It is visible at once, and lasts with the next durable write or flush.
    Buffered,
}

/// How a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Health {
    /// It answers.
    Sound,
    /// An error has left it unusable until it is [reopened](Engine::reopen).
    Broken,
    /// It was closed, or another process has taken over. It stays so.
    Closed {
        /// Another process has taken over.
        fenced: bool,
    },
}

/// Called with the key and the value of a row.
pub type VisitRow<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + Send + 'v;

/// A database: see the [module](self).
pub trait Engine: Clone + Send + Sync + 'static {
    /// What a failed access returns.
    type Error: Error + Send + Sync + 'static;
    /// The bytes of a value that was read.
    type Value: AsRef<[u8]> + Send + 'static;
    /// The database as it was at one moment.
    type View: View<Error = Self::Error, Value = Self::Value>;
    /// What [`acknowledge`](Self::acknowledge) needs to know of a write.
    type Receipt: Send;

    /// The database as it is now.
    ///
    /// # Errors
    ///
    /// Whatever the database reports.
    fn view(&self) -> Result<Self::View, Self::Error>;

    /// Makes all of these changes, or none. When it returns, views see them. The rows of a table come in ascending order, each
    /// once.
    ///
    /// # Errors
    ///
    /// Whatever the database reports. The changes were made or not.
    fn write(
        &self,
        writes: Vec<Write>,
        durability: Durability,
    ) -> impl Future<Output = Result<Self::Receipt, Self::Error>> + Send;

    /// Waits until a durable write lasts, where [`write`](Self::write) has not waited already.
    ///
    /// # Errors
    ///
    /// Whatever the database reports.
    fn acknowledge(&self, receipt: Self::Receipt) -> impl Future<Output = Result<(), Self::Error>> + Send {
        drop(receipt);
        async { Ok(()) }
    }

    /// How the database is. Asked before every operation, so it should cost little.
    fn health(&self) -> Health {
        Health::Sound
    }

    /// Opens the database again if it is [broken](Health::Broken). What was not durable may be gone then.
    ///
    /// # Errors
    ///
    /// Whatever the database reports. It can be tried again.
    fn reopen(&self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Runs the database's own check of everything it stores; the reason if something is damaged.
    ///
    /// # Errors
    ///
    /// Whatever the database reports.
    fn check(&self) -> impl Future<Output = Result<Option<String>, Self::Error>> + Send {
        async { Ok(None) }
    }

    /// Runs work that takes long, on this thread or another one. `None` if it was broken off.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send {
        async { Some(work()) }
    }
}

/// A database as it was at one moment.
pub trait View: Send + Sync + 'static {
    /// What a failed access returns.
    type Error;
    /// The bytes of a value that was read.
    type Value: AsRef<[u8]> + Send;

    /// The value of a row.
    ///
    /// # Errors
    ///
    /// Whatever the database reports.
    fn get(
        &self,
        table: Table,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Self::Value>, Self::Error>> + Send;

    /// Calls `look` with the value of a row, where it lies if the database lends it. What `look` returns.
    ///
    /// # Errors
    ///
    /// Whatever the database reports.
    fn get_with<T: Send>(
        &self,
        table: Table,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T + Send,
    ) -> impl Future<Output = Result<Option<T>, Self::Error>> + Send {
        let found = self.get(table, key);
        async move { Ok(found.await?.map(|value| look(value.as_ref()))) }
    }

    /// Whether there is a row.
    ///
    /// # Errors
    ///
    /// Whatever the database reports.
    fn has(&self, table: Table, key: &[u8]) -> impl Future<Output = Result<bool, Self::Error>> + Send {
        let found = self.get(table, key);
        async move { Ok(found.await?.is_some()) }
    }

    /// Calls `visit` with the rows of a range, ascending, until it breaks. `bulk` says that many rows are going to be read
    /// once, and need not stay in a cache.
    ///
    /// # Errors
    ///
    /// Whatever the database reports.
    fn scan(
        &self,
        table: Table,
        range: KeyRange,
        bulk: bool,
        visit: &mut VisitRow<'_>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
