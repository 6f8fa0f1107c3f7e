//! Many keys at once: lists, NumPy arrays, Arrow arrays and streams, anything that can be iterated over.
//!
//! Keys come in [chunks](Chunk). Those of arrays are read without the interpreter lock; those of lists are read with it
//! and worked on without it.

mod arrow;
mod chunk;
mod numpy;

use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString, PyTuple};

pub(crate) use chunk::{Chunk, Packed};

use crate::key;

/// Keys of an array that are worked on at once: their bytes stay in a near cache.
const ARRAY_CHUNK: usize = 1 << 10;

/// Objects that are read at once. Taking the interpreter lock back can take as long as another thread likes, so it is
/// given up less often.
const OBJECT_CHUNK: usize = 1 << 14;

/// Keys of an array between two looks at whether the user has pressed Ctrl-C: some milliseconds.
const SIGNALS: usize = 1 << 20;

/// An array of keys that can be read without the interpreter lock.
trait Column: Sync {
    /// How many keys it has.
    fn len(&self) -> usize;

    /// Puts these keys into an empty chunk.
    ///
    /// # Errors
    ///
    /// An exception if one of them is no key.
    fn fill(&self, rows: std::ops::Range<usize>, chunk: &mut Chunk) -> PyResult<()>;
}

/// What is done with each chunk: without the interpreter lock.
pub(crate) type Work<'w> = dyn FnMut(&Chunk) -> PyResult<()> + Send + 'w;

/// Does some work with all keys, chunk by chunk, until it fails.
///
/// # Errors
///
/// `TypeError` if these are no keys, whatever iterating over them raises, what the work says. Chunks before it were
/// worked on, and so were the keys before an object that is no key.
pub(crate) fn for_each_chunk(keys: &Bound<'_, PyAny>, work: &mut Work<'_>) -> PyResult<()> {
    let is_one = keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>();
    if is_one {
        return Err(PyTypeError::new_err("many keys are expected here, and this is one; put it into a list"));
    }
    if keys.is_exact_instance_of::<PyList>() || keys.is_exact_instance_of::<PyTuple>() {
        return objects(keys, work);
    }
    if numpy::is_array(keys)? {
        return numpy::array(keys, work);
    }
    if has_objects(keys)? {
        return objects(keys, work);
    }
    match arrow::exported(keys, work) {
        Err(error) if error.is_instance_of::<PyImportError>(keys.py()) => {}
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(error) => return Err(error),
    }
    if keys.hasattr("__array__")? {
        return numpy::array(&numpy::from_any(keys)?, work);
    }
    objects(keys, work)
}

/// Whether this is a series of pandas or polars whose elements are Python's objects. Such a series must not go through
/// Arrow: pandas would make something else of the objects, and polars exports their addresses.
fn has_objects(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(element) = keys.getattr_opt("dtype")? else { return Ok(false) };
    let name = element.str()?;
    Ok(name == "object" || name == "Object")
}

/// About how many keys there are, if that is known before they are read.
pub(crate) fn length_hint(keys: &Bound<'_, PyAny>) -> usize {
    // Nobody is obliged to say, and what is said is not relied on.
    keys.len().unwrap_or(0).min(1 << 28)
}

/// The keys of a column.
fn column(py: Python<'_>, column: &dyn Column, work: &mut Work<'_>) -> PyResult<()> {
    let mut chunk = Chunk::default();
    let mut start = 0;
    while start < column.len() {
        let stop = column.len().min(start + SIGNALS);
        py.detach(|| {
            while start < stop {
                let end = stop.min(start + ARRAY_CHUNK);
                chunk.clear();
                column.fill(start..end, &mut chunk)?;
                work(&chunk)?;
                start = end;
            }
            PyResult::Ok(())
        })?;
        py.check_signals()?;
    }
    Ok(())
}

/// The keys that an iteration yields.
fn objects(keys: &Bound<'_, PyAny>, work: &mut Work<'_>) -> PyResult<()> {
    let mut iterator = keys.try_iter()?;
    let mut packed = Packed::default();
    loop {
        let filled = fill(&mut iterator, &mut packed);
        if packed.len() > 0 {
            let chunk = Chunk::Bytes(std::mem::take(&mut packed));
            keys.py().detach(|| work(&chunk))?;
            packed = chunk.into_packed();
            packed.clear();
        }
        if !filled? {
            return Ok(());
        }
        keys.py().check_signals()?;
    }
}

/// Fills a chunk with the next objects. Whether there may be more.
fn fill(iterator: &mut Bound<'_, pyo3::types::PyIterator>, packed: &mut Packed) -> PyResult<bool> {
    while packed.len() < OBJECT_CHUNK {
        let Some(key) = iterator.next() else { return Ok(false) };
        let key = key?;
        packed.try_push_with(|bytes| key::append(&key, bytes))?;
    }
    Ok(true)
}
