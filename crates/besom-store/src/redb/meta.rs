//! What the database says of itself.

use ::redb::{Error, ReadTransaction, ReadableTable, Table, WriteTransaction};

use super::{DATA, LISTS, LOG, Layout, META};

/// The tables as they are now. A later version of this crate may have others.
pub(crate) const FORMAT: u64 = 1;

const FORMAT_NAME: &str = "format";
const LAYOUT_NAME: &str = "layout";
/// Which of the tables of lists is in use.
const LISTS_NAME: &str = "lists";
/// The number of the commit at which the lists were last made anew. It is random: numbers of other stores, and of this one
/// before, are far away.
const FIRST_NAME: &str = "first";
const SEQUENCE_NAME: &str = "sequence";

/// The numbers that a transaction begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) layout: Layout,
    pub(super) lists: usize,
    pub(super) first: u64,
    pub(super) sequence: u64,
}

/// What a database turned out to be.
pub(super) enum Found {
    Store(Meta),
    /// No table at all.
    Empty,
    /// Tables of somebody else.
    Foreign,
    /// A store of a later version.
    Newer(u64),
}

fn code(layout: Layout) -> u64 {
    match layout {
        Layout::Split => 0,
        Layout::Merged => 1,
    }
}

fn number(table: &impl ReadableTable<&'static str, u64>, name: &str) -> Result<u64, Error> {
    match table.get(name)? {
        Some(number) => Ok(number.value()),
        None => Err(Error::Corrupted(format!("the table of this store's numbers has no {name}"))),
    }
}

impl Meta {
    /// Reads the numbers. Those that no store has are damage.
    pub(super) fn read(table: &impl ReadableTable<&'static str, u64>) -> Result<Self, Error> {
        let layout = match number(table, LAYOUT_NAME)? {
            0 => Layout::Split,
            1 => Layout::Merged,
            other => return Err(Error::Corrupted(format!("layout {other} is not known"))),
        };
        let (first, sequence) = (number(table, FIRST_NAME)?, number(table, SEQUENCE_NAME)?);
        Ok(Self { layout, lists: Self::lists(table)?, first, sequence })
    }

    /// Which of the tables of lists is in use.
    pub(super) fn lists(table: &impl ReadableTable<&'static str, u64>) -> Result<usize, Error> {
        match number(table, LISTS_NAME)? {
            lists @ 0..2 => Ok(lists as usize),
            other => Err(Error::Corrupted(format!("lists {other} are not known"))),
        }
    }

    /// The number of the last commit that changed lists.
    pub(super) fn sequence(table: &impl ReadableTable<&'static str, u64>) -> Result<u64, Error> {
        number(table, SEQUENCE_NAME)
    }

    /// What the database is.
    pub(super) fn find(transaction: &ReadTransaction) -> Result<Found, Error> {
        let table = match transaction.open_table(META) {
            Ok(table) => table,
            Err(::redb::TableError::TableDoesNotExist(_)) => {
                let empty = transaction.list_tables()?.next().is_none()
                    && transaction.list_multimap_tables()?.next().is_none();
                return Ok(if empty { Found::Empty } else { Found::Foreign });
            }
            Err(::redb::TableError::Storage(error)) => return Err(error.into()),
            Err(_) => return Ok(Found::Foreign),
        };
        match table.get(FORMAT_NAME)?.map(|number| number.value()) {
            Some(FORMAT) => Self::read(&table).map(Found::Store),
            Some(newer) => Ok(Found::Newer(newer)),
            None => Ok(Found::Foreign),
        }
    }

    /// Makes all tables, so that views need not care whether they exist.
    pub(super) fn create(self, transaction: &WriteTransaction) -> Result<(), Error> {
        if self.layout == Layout::Split {
            transaction.open_table(DATA)?;
        }
        for lists in LISTS {
            transaction.open_table(lists)?;
        }
        transaction.open_table(LOG)?;
        let mut table = transaction.open_table(META)?;
        table.insert(FORMAT_NAME, FORMAT)?;
        table.insert(LAYOUT_NAME, code(self.layout))?;
        table.insert(FIRST_NAME, self.first)?;
        self.write(&mut table)
    }

    /// Writes the numbers that change with every commit.
    pub(super) fn write(self, table: &mut Table<'_, &'static str, u64>) -> Result<(), Error> {
        table.insert(LISTS_NAME, self.lists as u64)?;
        table.insert(SEQUENCE_NAME, self.sequence)?;
        Ok(())
    }

    /// Writes the numbers of a store whose lists were made anew.
    pub(super) fn write_renewed(self, table: &mut Table<'_, &'static str, u64>) -> Result<(), Error> {
        table.insert(FIRST_NAME, self.first)?;
        self.write(table)
    }
}
