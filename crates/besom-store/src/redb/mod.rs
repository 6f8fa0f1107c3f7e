//! A redb database with the lists of a filter in it.
//!
//! | table | key | value |
//! |---|---|---|
//! | `data` (split) | key | value |
//! | `besom lists 0`, `besom lists 1` | address, number in the list | split: key; merged: length of the key, key, value |
//! | `besom` | name | number: format, layout, which lists, first and last commit |
//! | `besom log` | number of a commit | what it did, since the last snapshot |
//!
//! Of the two tables of lists one is in use. Building the filter anew fills the other one in the same transaction.

mod carried;
mod engine;
mod entries;
mod file;
mod lists;
mod meta;
mod transaction;
mod view;

use ::redb::TableDefinition;

pub(crate) use engine::{Opener, Redb, Refused};
pub use entries::Entries;
pub(crate) use file::open_or_make;
pub(crate) use meta::FORMAT;
pub(crate) use view::RedbView;

/// Where the data of a store lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Layout {
    /// Data in the order of its keys, the filter's lists in a table of their own. [`range`](crate::RedbStore::range) works.
    #[default]
    Split,
    /// Data in the filter's lists themselves: no second table, and one read answers both the look-up and the question whose bits
    /// collided. For filters whose keys have [one address](besom::Adaptive::address_of): telescoping, extension, broom and cascades.
    Merged,
}

const DATA: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("data");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("besom");
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("besom log");

/// By address and number in the list. Numbers ascend; gaps are left by removals.
type Lists<'n> = TableDefinition<'n, (u64, u64), &'static [u8]>;

const LISTS: [Lists<'_>; 2] = [TableDefinition::new("besom lists 0"), TableDefinition::new("besom lists 1")];
