//! Copies of a store, made while it is in use.

use std::ops::ControlFlow;

use super::open::is_empty;
use super::{Outcome, Store, StoreFilter};
use crate::engine::{Durability, Engine, KeyRange, Table, View, Write};
use crate::{StoreError, rows};

/// Rows, and bytes, that are copied in one write.
const ROWS: usize = 4096;
const BYTES: usize = 4 << 20;

impl<F: StoreFilter, E: Engine> Store<F, E> {
    /// Copies the store as it is now into an empty database: a backup, while everybody else reads and writes. What was not durable is
    /// in it too. The filter is not: the copy builds its own when it is opened.
    ///
    /// The header comes last, so a copy that was broken off is refused when it is opened.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotAStore`] if the database is not empty, [`StoreError::Engine`] if one of the two failed.
    pub async fn backup(&self, target: &E) -> Outcome<(), E> {
        if !is_empty::<E>(&target.view().map_err(StoreError::Engine)?).await? {
            let what = "a backup needs one that is empty";
            return Err(StoreError::NotAStore { name: "the database".into(), what });
        }
        let view = self.view().await?;
        // The key of the header is the empty one.
        for (table, mut from) in
            [(Table::Data, Vec::new()), (Table::Index, Vec::new()), (Table::State, vec![0])]
        {
            loop {
                let (mut writes, mut bytes) = (Vec::new(), 0);
                let visit = &mut |key: &[u8], value: &[u8]| {
                    bytes += key.len() + value.len();
                    writes.push(Write { table, key: key.to_vec(), value: Some(value.to_vec()) });
                    let full = writes.len() == ROWS || bytes > BYTES;
                    if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let range = KeyRange { from, to: None };
                view.scan(table, range, true, visit).await.map_err(StoreError::Engine)?;
                let Some(last) = writes.last() else { break };
                from = rows::behind(&last.key);
                drop(target.write(writes, Durability::Buffered).await.map_err(StoreError::Engine)?);
            }
        }
        let header = Write { table: Table::State, key: Vec::new(), value: Some(self.header.encode()) };
        let receipt = target.write(vec![header], Durability::Durable).await.map_err(StoreError::Engine)?;
        target.acknowledge(receipt).await.map_err(StoreError::Engine)
    }
}
