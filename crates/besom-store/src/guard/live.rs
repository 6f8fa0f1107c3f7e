//! Remotes of filters that nobody else sees.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use besom::play::OwnedChange;
use besom::{Change, Remote};
use thiserror::Error;

use super::write::index_writes;
use crate::engine::{Durability, Engine, KeyRange, Table, View, Write};
use crate::record::{self, Entry, Position};
use crate::{rows, wait};

/// Rows that are read or written at once.
const CHUNK: usize = 4096;

/// A remote that is not to be read, and whose changes the store makes.
pub(super) struct Unread;

/// Something would have to be read.
#[derive(Debug, Clone, Copy, Error)]
#[error("the index has to be read")]
pub(super) struct MustRead;

impl Remote for Unread {
    type Error = MustRead;

    fn range(
        &mut self,
        _: RangeInclusive<u64>,
        _: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), MustRead> {
        Err(MustRead)
    }

    fn apply(&mut self, _: &[Change<'_>]) -> Result<(), MustRead> {
        Ok(())
    }
}

/// The index of a store, with changes that have not been committed yet. Reading it blocks.
pub(crate) struct Live<E: Engine> {
    pub(super) engine: E,
    pub(super) view: E::View,
    pub(crate) table: Table,
    /// By row: whether it comes or goes.
    pub(super) pending: BTreeMap<Vec<u8>, bool>,
    /// What a filter has changed.
    pub(super) group: Vec<OwnedChange>,
    /// Changes are committed as they come, behind this position, in a store of this many keys.
    pub(super) through: Option<(Position, u64)>,
}

impl<E: Engine> Live<E> {
    /// The index as it is in a view, to which nothing is written.
    pub(crate) fn new(engine: &E, view: E::View, table: Table) -> Self {
        Self {
            engine: engine.clone(),
            view,
            table,
            pending: BTreeMap::new(),
            group: Vec::new(),
            through: None,
        }
    }

    /// Some rows of a range, one behind the other, and where each ends.
    pub(super) fn chunk(&self, table: Table, range: KeyRange) -> Result<(Vec<u8>, Vec<usize>), E::Error> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(CHUNK));
        let visit = &mut |row: &[u8], _: &[u8]| {
            bytes.extend_from_slice(row);
            ends.push(bytes.len());
            if ends.len() == CHUNK { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        wait(self.view.scan(table, range, true, visit))?;
        Ok((bytes, ends))
    }

    /// Whether the index has a row.
    pub(crate) fn has(&self, row: &[u8]) -> Result<bool, E::Error> {
        Ok(wait(self.view.get(self.table, row))?.is_some())
    }

    /// Calls `visit` with every row of a table that is in the range.
    pub(crate) fn rows(
        &self,
        table: Table,
        mut range: KeyRange,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), E::Error> {
        loop {
            let (bytes, ends) = self.chunk(table, range.clone())?;
            let mut from = 0;
            for &end in &ends {
                if visit(&bytes[from..end]).is_break() {
                    return Ok(());
                }
                if end != bytes.len() {
                    from = end;
                }
            }
            if ends.len() < CHUNK {
                return Ok(());
            }
            range.from = rows::behind(&bytes[from..]);
        }
    }

    /// Commits what is pending. Must be called at the end of work that writes through.
    pub(super) fn flush(&mut self) -> Result<(), E::Error> {
        let Some((position, keys)) = &mut self.through else { return Ok(()) };
        let mut writes = index_writes(&std::mem::take(&mut self.group));
        let entry = Entry { branch: position.branch, keys: *keys, uncounted: true, hashes: None };
        for (number, value) in [(position.number, None), (position.number + 1, Some(entry.encode()))] {
            writes.push(Write { table: Table::State, key: record::key_of(number), value });
        }
        writes.sort_by(|one, two| (one.table, &one.key).cmp(&(two.table, &two.key)));
        drop(wait(self.engine.write(writes, Durability::Buffered))?);
        position.number += 1;
        self.pending.clear();
        self.view = self.engine.view()?;
        Ok(())
    }
}

impl<E: Engine> Remote for Live<E> {
    type Error = E::Error;

    fn range(
        &mut self,
        addresses: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), E::Error> {
        let range = rows::rows(&addresses);
        let pending = self.pending.range(range.from.clone()..);
        let to = range.to.clone();
        let mut pending = pending.take_while(|(row, _)| to.as_ref().is_none_or(|to| *row < to)).peekable();
        let over = Cell::new(false);
        let mut visit = |row: &[u8]| {
            let visited =
                rows::parts(row).map_or(ControlFlow::Continue(()), |(address, key)| visit(address, key));
            over.set(visited.is_break());
            visited
        };
        self.rows(self.table, range, |row| {
            while let Some((before, inserts)) = pending.next_if(|(pending, _)| pending.as_slice() < row) {
                if *inserts {
                    visit(before)?;
                }
            }
            match pending.next_if(|(pending, _)| pending.as_slice() == row) {
                Some((_, false)) => ControlFlow::Continue(()),
                _ => visit(row),
            }
        })?;
        if !over.get() {
            // The visitor's break ends the walk, and is no failure.
            let _ = { pending }.filter(|(_, inserts)| **inserts).try_for_each(|(row, _)| visit(row));
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), E::Error> {
        for change in changes {
            let change = OwnedChange::from(change);
            self.pending.insert(rows::row(change.address, &change.key), change.inserts);
            self.group.push(change);
        }
        if self.through.is_some() && self.group.len() >= CHUNK { self.flush() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a visitor that has broken off and is called again, rows out of order, and changes that are not seen.
    use super::*;
    use crate::MemoryEngine;

    /// Before, the rows behind a new one at which the visitor broke off were skipped, and growth left pairs behind.
    #[test]
    fn a_visitor_that_breaks_off_has_seen_the_first_pairs_and_no_more() {
        let engine = MemoryEngine::new();
        let stored =
            |address| Write { table: Table::Index, key: rows::row(address, b"key"), value: Some(Vec::new()) };
        wait(engine.write([1, 3, 5, 7, 9].map(stored).to_vec(), Durability::Durable)).unwrap();
        let mut live = Live::new(&engine, engine.view().unwrap(), Table::Index);
        for (address, inserts) in
            [(0, true), (2, true), (3, false), (4, true), (8, true), (10, true), (11, true)]
        {
            live.pending.insert(rows::row(address, b"key"), inserts);
        }
        let expected = [0, 1, 2, 4, 5, 7, 8, 9, 10, 11];
        for count in 1..=expected.len() + 1 {
            let mut seen = Vec::new();
            let visit = &mut |address, _: &[u8]| {
                seen.push(address);
                if seen.len() == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            live.range(0..=u64::MAX, visit).unwrap();
            assert_eq!(seen, expected[..count.min(expected.len())], "{count}");
        }
    }
}
