//! Lists that are filled in the order of addresses, a quarter of a million keys at a time.
//!
//! Keys come in an order that has nothing to do with their addresses. Pushed one by one, each goes to another page of the database;
//! gathered and sorted, neighbours share one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use besom::{Change, Remote};

use crate::engine::Transaction;

/// Pushes that are gathered, at most: so many, or so many bytes.
const KEYS: usize = 1 << 18;
const BYTES: usize = 64 << 20;

/// A key and its value.
type Entry = (Box<[u8]>, Box<[u8]>);

/// The remote of a filter that is being built.
pub(super) struct Bulk<'t, T> {
    pub(super) transaction: &'t mut T,
    /// The pushes that were not made so far. They come behind what the transaction has at their addresses.
    lists: BTreeMap<u64, Vec<Entry>>,
    keys: usize,
    bytes: usize,
    /// The key that is being inserted.
    current: Entry,
    /// Whether values are in the lists too.
    merged: bool,
}

impl<'t, T: Transaction> Bulk<'t, T> {
    pub(super) fn new(transaction: &'t mut T, merged: bool) -> Self {
        Self { transaction, lists: BTreeMap::new(), keys: 0, bytes: 0, current: Entry::default(), merged }
    }

    /// Says which key comes next.
    pub(super) fn begin(&mut self, key: &[u8], value: &[u8]) {
        self.current = (key.into(), if self.merged { value.into() } else { Box::default() });
    }

    /// Makes all pushes that were gathered. Must be called at the end.
    pub(super) fn flush(&mut self) -> Result<(), T::Error> {
        let lists = std::mem::take(&mut self.lists);
        (self.keys, self.bytes) = (0, 0);
        let entries = lists
            .iter()
            .flat_map(|(&address, list)| list.iter().map(move |(key, value)| (address, &**key, &**value)));
        self.transaction.push_all(&mut { entries })
    }

    fn gather(&mut self, address: u64) -> Result<(), T::Error> {
        let entry = std::mem::take(&mut self.current);
        self.keys += 1;
        self.bytes += entry.0.len() + entry.1.len();
        self.lists.entry(address).or_default().push(entry);
        if self.keys < KEYS && self.bytes < BYTES { Ok(()) } else { self.flush() }
    }
}

impl<T: Transaction> Remote for Bulk<'_, T>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    type Error = T::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), T::Error> {
        self.transaction.list(address, visit)?;
        for (key, value) in self.lists.get(&address).into_iter().flatten() {
            // The filter may move it.
            self.transaction.carry(key, value);
            visit(key);
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), T::Error> {
        match *changes {
            [Change::Push { address, key }] if *key == *self.current.0 => self.gather(address),
            _ => {
                self.flush()?;
                self.transaction.carry(&self.current.0, &self.current.1);
                self.transaction.apply(changes)
            }
        }
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), T::Error> {
        self.flush()?;
        self.transaction.scan_lists(visit)
    }
}
