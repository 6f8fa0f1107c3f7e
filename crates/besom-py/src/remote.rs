//! The keys beside an adaptive filter: what it repairs its false positives with.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::{Arc, Mutex, PoisonError};

use besom::{Change, MemoryRemote, Remote};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::error::{Raised, RemoteError};
use crate::key;

/// An object of Python's that several parts of a value hold, and that counts as one reference: so the garbage collector
/// finds cycles through it.
#[derive(Clone)]
pub(crate) struct Held(Arc<Mutex<Option<Py<PyAny>>>>);

impl Held {
    pub(crate) fn new(object: Bound<'_, PyAny>) -> Self {
        Self(Arc::new(Mutex::new(Some(object.unbind()))))
    }

    /// The object.
    ///
    /// # Errors
    ///
    /// `RuntimeError` after the garbage collector has taken it.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let object = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let object = object.as_ref().map(|object| object.bind(py).clone());
        object.ok_or_else(|| PyRuntimeError::new_err("the object behind this one was garbage collected"))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // It is locked for a moment at a time, and never by the thread that collects.
        match self.0.try_lock() {
            Ok(object) => object.as_ref().map_or(Ok(()), |object| visit.call(object)),
            Err(_) => Ok(()),
        }
    }

    pub(crate) fn clear(&self) {
        let object = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(object); // without the lock: this may run any code
    }
}

/// What is beside a filter.
#[derive(Clone)]
pub(crate) enum Beside {
    /// Nothing: the filter needs nothing, or was read from a file.
    Nothing,
    /// All keys, in memory.
    Memory(MemoryRemote),
    /// An object that reads an index on a hash column.
    Index(Held),
}

impl Beside {
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

fn nothing() -> Raised {
    Raised(RemoteError::new_err(
        "a filter that was read from a file does not have its keys; call attach(keys), or open it with index=",
    ))
}

impl Remote for Beside {
    type Error = Raised;

    fn range(
        &mut self,
        addresses: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Raised> {
        match self {
            Self::Nothing => Err(nothing()),
            Self::Memory(memory) => memory.range(addresses, visit).map_err(|never| match never {}),
            Self::Index(index) => {
                Python::attach(|py| read_index(&index.get(py)?, &addresses, visit)).map_err(Raised)
            }
        }
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Raised> {
        match self {
            Self::Nothing => Err(nothing()),
            Self::Memory(memory) => memory.apply(changes).map_err(|never| match never {}),
            // The table keeps its column itself.
            Self::Index(_) => Ok(()),
        }
    }
}

/// Visits the rows of an index: `range(lo, hi)` yields pairs of hash and key, both ends included, in ascending order.
fn read_index(
    index: &Bound<'_, PyAny>,
    addresses: &RangeInclusive<u64>,
    visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> PyResult<()> {
    let rows = index.call_method1("range", (*addresses.start(), *addresses.end()))?;
    let mut last: Option<(u64, Vec<u8>)> = None;
    for row in rows.try_iter()? {
        let (address, key): (u64, Bound<'_, PyAny>) = row?.extract()?;
        let mut bytes = Vec::new();
        key::append(&key, &mut bytes)?;
        let row = (address, bytes);
        if !addresses.contains(&address) || last.as_ref().is_some_and(|last| *last >= row) {
            return Err(RemoteError::new_err(format!(
                "range({}, {}) yielded the hash {address} outside of the range or out of order; yield (hash, key) in ascending \
                 order, both ends included, keys ordered by their bytes",
                addresses.start(),
                addresses.end()
            )));
        }
        if visit(row.0, &row.1).is_break() {
            break;
        }
        last = Some(row);
    }
    Ok(())
}
