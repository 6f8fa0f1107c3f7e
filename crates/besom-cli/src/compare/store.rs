//! What the filters stand in front of: one table for all, without a filter of its own.
//!
//! Why not `besom_store::RedbStore`, which is made for this? It is a store and its filter in one. Filters of other
//! people, and those that do not adapt, cannot be put into it: it takes what adapts and can be saved. Nor can it stand
//! behind another filter, since every look-up would meet its own filter first. To treat all filters alike, each of them
//! has the same table of the same database behind it, looked up in one read transaction, the cheapest look-up that redb
//! has. The [`product`](super::product) is tried afterwards with the best of ours.

use redb::{Builder, Database, Durability, ReadOnlyTable, ReadableDatabase, TableDefinition};

use crate::error::{Failure, Outcome};
use crate::keys::KeySet;

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StoreKind {
    /// An embedded database on a file in the temporary directory.
    Redb,
    /// A hash table in memory.
    Memory,
}

impl StoreKind {
    /// What it is, in a few words.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Redb => "redb, a database on disk",
            Self::Memory => "a table in memory",
        }
    }
}

/// The keys that are stored, to be looked up.
pub(crate) enum Store<'k> {
    Redb {
        table: ReadOnlyTable<&'static [u8], u64>,
        /// Keeps the table's data in being.
        _database: Box<Database>,
    },
    Memory {
        keys: &'k KeySet,
        /// Keys with smaller numbers are stored.
        stored: u32,
    },
}

const TABLE: TableDefinition<'_, &[u8], u64> = TableDefinition::new("keys");

/// The database's own cache: enough for a million keys, so that what is measured is the database and not the disk of
/// the day.
pub(super) const CACHE: usize = 128 << 20;

/// Keys in one transaction.
const GROUP: usize = 1 << 18;

impl<'k> Store<'k> {
    /// Stores the first keys of a set.
    pub(crate) fn new(
        kind: StoreKind,
        keys: &'k KeySet,
        stored: u32,
        progress: &mut dyn FnMut(usize),
    ) -> Outcome<Self> {
        match kind {
            StoreKind::Memory => Ok(Self::Memory { keys, stored }),
            StoreKind::Redb => Self::redb(keys, stored, progress),
        }
    }

    fn redb(keys: &KeySet, stored: u32, progress: &mut dyn FnMut(usize)) -> Outcome<Self> {
        // The file has no name: whatever happens, nothing of it stays behind.
        let file = tempfile::tempfile().map_err(Failure::io(std::env::temp_dir().display().to_string()))?;
        let database = Builder::new().set_cache_size(CACHE).create_file(file).map_err(failed)?;
        let mut numbers: Vec<u32> = (0..stored).collect();
        // In order, pages are written once.
        numbers.sort_unstable_by_key(|&number| keys.get(number));
        for group in numbers.chunks(GROUP) {
            let mut transaction = database.begin_write().map_err(failed)?;
            transaction.set_durability(Durability::None).map_err(failed)?;
            {
                let mut table = transaction.open_table(TABLE).map_err(failed)?;
                for &number in group {
                    table.insert(keys.get(number), u64::from(number)).map_err(failed)?;
                }
            }
            transaction.commit().map_err(failed)?;
            progress(group.len());
        }
        let table = database.begin_read().map_err(failed)?.open_table(TABLE).map_err(failed)?;
        Ok(Self::Redb { table, _database: Box::new(database) })
    }

    /// Looks a key up, for real.
    pub(crate) fn get(&self, key: &[u8]) -> Outcome<bool> {
        match self {
            Self::Redb { table, .. } => Ok(table.get(key).map_err(failed)?.is_some()),
            Self::Memory { keys, stored } => Ok(keys.number(key).is_some_and(|number| number < *stored)),
        }
    }
}

fn failed(error: impl Into<redb::Error>) -> Failure {
    Failure::Store(error.into().to_string())
}
