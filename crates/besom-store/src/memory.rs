//! A database in memory: for tests and examples, and to show what an engine is.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};

use crate::engine::{Durability, Engine, KeyRange, Table, View, VisitRow, Write};

type Rows = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// An [`Engine`] that keeps everything in memory. Clones share it.
///
/// A view keeps the rows as they are, and the next write copies them all: this is not for large data.
#[derive(Debug, Clone, Default)]
pub struct MemoryEngine {
    rows: Arc<RwLock<Arc<Rows>>>,
}

impl MemoryEngine {
    /// An empty database.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes back all writes since a view.
    #[cfg(test)]
    pub(crate) fn go_back(&self, view: &MemoryView) {
        *self.rows.write().unwrap_or_else(PoisonError::into_inner) = view.0.clone();
    }
}

impl Engine for MemoryEngine {
    type Error = Infallible;
    type Value = Vec<u8>;
    type View = MemoryView;
    type Receipt = ();

    fn view(&self) -> Result<MemoryView, Infallible> {
        Ok(MemoryView(self.rows.read().unwrap_or_else(PoisonError::into_inner).clone()))
    }

    async fn write(&self, writes: Vec<Write>, _: Durability) -> Result<(), Infallible> {
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let rows = Arc::make_mut(&mut rows);
        for Write { table, key, value } in writes {
            match value {
                Some(value) => rows.insert((table, key), value),
                None => rows.remove(&(table, key)),
            };
        }
        Ok(())
    }
}

/// The rows of a [`MemoryEngine`] as they were at one moment.
#[derive(Debug, Clone)]
pub struct MemoryView(Arc<Rows>);

impl View for MemoryView {
    type Error = Infallible;
    type Value = Vec<u8>;

    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        Ok(self.0.get(&(table, key.to_vec())).cloned())
    }

    async fn scan(
        &self,
        table: Table,
        range: KeyRange,
        _: bool,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Infallible> {
        let inside = |key: &Vec<u8>| range.to.as_ref().is_none_or(|to| key < to);
        for ((_, key), value) in
            self.0.range((table, range.from)..).take_while(|((of, key), _)| *of == table && inside(key))
        {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}
