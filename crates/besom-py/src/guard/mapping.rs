//! A mapping of Python's as the dictionary of a guard.

use std::ops::ControlFlow;

use besom::Dictionary;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;

use crate::error::Raised;
use crate::key::Shapes;
use crate::remote::Held;

/// A mapping, and the key that it is asked about: the library knows keys by their bytes, and the mapping by their
/// objects.
pub(super) struct Mapping {
    object: Held,
    /// What its keys are made of.
    shapes: Shapes,
    /// The object whose bytes the library has in hand.
    pub(super) key: Option<Py<PyAny>>,
    /// The filter has rejected the key, so that no value need be looked for.
    pub(super) is_absent: bool,
}

impl Mapping {
    pub(super) fn new(object: Held, shapes: Shapes) -> Self {
        Self { object, shapes, key: None, is_absent: false }
    }

    fn with<R>(
        &self,
        ask: impl FnOnce(&Bound<'_, PyAny>, &Bound<'_, PyAny>) -> PyResult<R>,
    ) -> Result<R, Raised> {
        let asked = |py: Python<'_>| {
            let key =
                self.key.as_ref().ok_or_else(|| PyRuntimeError::new_err("the guard has no key in hand"))?;
            ask(&self.object.get(py)?, key.bind(py))
        };
        Python::attach(asked).map_err(Raised)
    }
}

/// The value of a key, if the mapping has it.
fn look_up(mapping: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    // Not by subscription where there is another way: that makes entries in a defaultdict.
    if mapping.hasattr("get")? {
        let nothing = mapping.py().get_type::<Missing>();
        let found = mapping.call_method1("get", (key, &nothing))?;
        return Ok((!found.is(&nothing)).then(|| found.unbind()));
    }
    or_absent(mapping.get_item(key), mapping.py()).map(|found| found.map(Bound::unbind))
}

/// Stands for a value that is not there.
#[pyclass(frozen)]
struct Missing;

/// What a mapping says of a key that it does not have.
fn or_absent<T>(result: PyResult<T>, py: Python<'_>) -> PyResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_instance_of::<PyKeyError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Dictionary for Mapping {
    type Value = Py<PyAny>;
    type Error = Raised;

    fn get(&mut self, _: &[u8]) -> Result<Option<Py<PyAny>>, Raised> {
        self.with(look_up)
    }

    fn insert(&mut self, _: &[u8], value: Py<PyAny>) -> Result<Option<Py<PyAny>>, Raised> {
        self.with(|mapping, key| {
            let old = if self.is_absent { None } else { look_up(mapping, key)? };
            mapping.set_item(key, value)?;
            Ok(old)
        })
    }

    fn remove(&mut self, _: &[u8]) -> Result<Option<Py<PyAny>>, Raised> {
        self.with(|mapping, key| {
            let Some(old) = look_up(mapping, key)? else { return Ok(None) };
            Ok(or_absent(mapping.del_item(key), mapping.py())?.map(|()| old))
        })
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Raised> {
        let scan = |py: Python<'_>| {
            let mapping = self.object.get(py)?;
            // Not every dbm module has an iterator; all have keys.
            let keys = if mapping.hasattr("__iter__")? { mapping } else { mapping.call_method0("keys")? };
            let mut bytes = Vec::new();
            for key in keys.try_iter()? {
                bytes.clear();
                self.shapes.admit(&key?, &mut bytes)?;
                if visit(&bytes).is_break() {
                    break;
                }
            }
            Ok(())
        };
        Python::attach(scan).map_err(Raised)
    }
}
