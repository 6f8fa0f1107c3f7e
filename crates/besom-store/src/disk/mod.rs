//! A store in a file: redb behind the guard.
//!
//! Three tables, `besom`, `data` and `besom index`, of bytes by bytes; [`rows`](crate::rows) says what is in them. The tables of
//! others in the same file are left alone.

mod builder;
mod engine;
mod entries;
mod file;
mod store;
mod transaction;

pub use builder::RedbStoreBuilder;
pub use engine::{Redb, RedbView};
pub use entries::Entries;
pub use store::RedbStore;
pub use transaction::Transaction;

use ::redb::TableDefinition;

use crate::engine::Table;

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

const STATE: Definition = TableDefinition::new("besom");
const DATA: Definition = TableDefinition::new("data");
const INDEX: Definition = TableDefinition::new("besom index");

/// The name of the table that is being adopted. There only while one is, from the moment on in which the store's tables are made:
/// whoever opened a store whose rows are still elsewhere would find it empty.
const ADOPTION: TableDefinition<'static, (), &'static str> = TableDefinition::new("besom adoption");

fn definition(table: Table) -> Definition {
    match table {
        Table::State => STATE,
        Table::Data => DATA,
        Table::Index => INDEX,
    }
}
