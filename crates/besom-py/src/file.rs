//! Files, maps and pickles.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use besom::format::{FormatError, Persist, ReadOptions, Region, WriteOptions};
use besom::{Change, Filter as _, MemoryRemote, Remote};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::adaptive::check_index;
use crate::error::{Raise, named, named_format, replaced};
use crate::filter::{Filter, object};
use crate::remote::Beside;
use crate::shared::guarded;
use crate::state::{Hashed, State, either};

pub(crate) fn read_options(seed: Option<u128>) -> ReadOptions {
    seed.map_or_else(ReadOptions::new, |seed| ReadOptions::new().seed(seed))
}

pub(crate) fn write_options(include_seed: bool, generation: u64) -> WriteOptions {
    WriteOptions::new().include_seed(include_seed).generation(generation)
}

pub(crate) fn save(filter: &Hashed, path: &Path, include_seed: bool, generation: u64) -> PyResult<()> {
    let options = write_options(include_seed, generation);
    either!(filter, filter => filter.save(path, &options)).map_err(|error| named_format(error, path))
}

/// The name of a file, in every form that Python's own `open` takes.
pub(crate) struct FilePath(pub(crate) PathBuf);

impl<'py> FromPyObject<'_, 'py> for FilePath {
    type Error = PyErr;

    fn extract(path: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let text = path.py().import("os")?.call_method1("fsdecode", (path,))?;
        Ok(Self(text.extract()?))
    }
}

/// A file that was mapped.
#[derive(Clone, PartialEq)]
pub(crate) struct Mapped {
    path: PathBuf,
    /// Its length and the time of its last change: what tells it from a file that was put in its place.
    len: u64,
    modified: u128,
}

impl Mapped {
    fn of(path: &Path, file: &File) -> PyResult<Self> {
        let metadata = file.metadata()?;
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        Ok(Self { path: std::path::absolute(path)?, len: metadata.len(), modified })
    }

    pub(crate) fn parts(&self) -> (PathBuf, u64, u128) {
        (self.path.clone(), self.len, self.modified)
    }
}

/// Opens a file of a filter in place: nothing is copied, and all processes that open it share its memory. The first
/// change copies what it changes; the file never changes.
///
/// ``check=True`` reads the file once and checks it whole. Without that only its header is looked at: a damaged file
/// then gives wrong answers or raises DamagedError. Nobody may change or shorten the file in place while it is open:
/// the operating system kills (SIGBUS) a process that reads a map whose file was shortened. ``save`` puts a new file in
/// its place, which is safe. For files that others write, ``Filter.from_bytes(file.read())`` makes a copy.
///
/// A filter that adapts is opened without its keys: ``index`` or ``attach(keys)`` gives them back.
#[pyfunction]
#[pyo3(signature = (path, *, seed=None, index=None, check=true, _identity=None))]
pub(crate) fn open(
    py: Python<'_>,
    path: FilePath,
    seed: Option<u128>,
    index: Option<Bound<'_, PyAny>>,
    check: bool,
    _identity: Option<(u64, u128)>,
) -> PyResult<Py<PyAny>> {
    let (filter, mapped) = py.detach(|| map(&path.0, _identity, &read_options(seed), check))?;
    let beside = match index {
        Some(index) => Beside::Index(check_index(&filter, index)?),
        None => Beside::Nothing,
    };
    object(py, Filter::of(State { filter, beside }).mapped(mapped))
}

/// Maps the file, if it is the one of this length and time.
fn map(
    path: &Path,
    identity: Option<(u64, u128)>,
    options: &ReadOptions,
    check: bool,
) -> PyResult<(Hashed, Mapped)> {
    let file = File::open(path).map_err(|error| named(error, path))?;
    let mapped = Mapped::of(path, &file)?;
    if identity.is_some_and(|identity| identity != (mapped.len, mapped.modified)) {
        return Err(replaced(path));
    }
    if check {
        besom::format::check(&mut BufReader::with_capacity(1 << 16, &file))
            .map_err(|error| named_format(error, path))?;
    }
    // SAFETY: the documentation of the function asks of its callers that the file stays as it is.
    let region = match unsafe { Region::map(&file) } {
        Ok(region) => region,
        // There is nothing to map in an empty file, and nothing to read.
        Err(_) if mapped.len == 0 => Region::from(&[][..]),
        Err(error) => return Err(named(error, path)),
    };
    let (filter, _) = guarded(|| Hashed::open(&region, options))??;
    if check {
        guarded(|| either!(&filter, filter => filter.verify()).map_err(Raise::raise))??;
    }
    Ok((filter, mapped))
}

/// Reads what the header of a file says: kind, hash function, number of keys and so on, by name.
#[pyfunction]
pub(crate) fn inspect(py: Python<'_>, path: FilePath) -> PyResult<Bound<'_, PyDict>> {
    let header = py.detach(|| header(&path.0, false)).map_err(|error| named_format(error, &path.0))?;
    described(py, &header)
}

/// Reads a whole file and checks that it is as it was written. Returns what its header says; raises FormatError if it
/// is damaged.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, path: FilePath) -> PyResult<Bound<'_, PyDict>> {
    let header = py.detach(|| header(&path.0, true)).map_err(|error| named_format(error, &path.0))?;
    described(py, &header)
}

fn header(path: &Path, all: bool) -> Result<besom::format::Header, FormatError> {
    let mut reader = BufReader::new(File::open(path)?);
    if all { besom::format::check(&mut reader) } else { besom::format::inspect(&mut reader) }
}

fn described<'py>(py: Python<'py>, header: &besom::format::Header) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("kind", header.kind.name())?;
    all.set_item("hash", header.hash.to_string())?;
    all.set_item("len", header.len)?;
    all.set_item("capacity", header.capacity)?;
    all.set_item("generation", header.generation)?;
    all.set_item("has_seed", header.seed.is_some())?;
    all.set_item("version", header.version)?;
    all.set_item("bytes", header.file_len())?;
    Ok(all)
}

/// What pickle keeps of a filter: its bytes, and what is beside it.
pub(crate) fn reduce<'py>(py: Python<'py>, filter: &Filter) -> PyResult<Bound<'py, PyAny>> {
    let state = filter.state(py)?;
    let bytes = py.detach(|| state.filter.to_bytes(&WriteOptions::new()))?;
    let (rows, index) = match &state.beside {
        Beside::Nothing => (None, None),
        Beside::Memory(memory) => (Some(PyBytes::new(py, &rows(memory))), None),
        Beside::Index(index) => (None, Some(index.get(py)?)),
    };
    let restore = py.import("besom._besom")?.getattr("_restore")?;
    (restore, (PyBytes::new(py, &bytes), rows, index)).into_pyobject(py).map(Bound::into_any)
}

/// The filter that was pickled.
#[pyfunction]
#[pyo3(signature = (data, rows, index))]
pub(crate) fn _restore(
    py: Python<'_>,
    data: &[u8],
    rows: Option<&[u8]>,
    index: Option<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (filter, _) = py.detach(|| Hashed::from_bytes(data, &ReadOptions::new()))?;
    let beside = match (rows, index) {
        (Some(rows), _) => Beside::Memory(memory(rows).ok_or_else(|| {
            PyValueError::new_err("the pickled keys are damaged; build the filter again from its keys")
        })?),
        (None, Some(index)) => Beside::Index(check_index(&filter, index)?),
        (None, None) => Beside::Nothing,
    };
    object(py, Filter::of(State { filter, beside }))
}

/// The pairs of a remote, one after the other: address, length of the key, key.
fn rows(memory: &MemoryRemote) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (address, key) in memory.iter() {
        bytes.extend_from_slice(&address.to_le_bytes());
        bytes.extend_from_slice(&(key.len() as u64).to_le_bytes());
        bytes.extend_from_slice(key);
    }
    bytes
}

/// The remote that has these pairs; `None` if the bytes are cut off.
fn memory(mut rows: &[u8]) -> Option<MemoryRemote> {
    let mut memory = MemoryRemote::new();
    while !rows.is_empty() {
        let (address, rest) = rows.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        let address = u64::from_le_bytes(*address);
        let Ok(()) = memory.apply(&[Change::Insert { address, key }]);
        rows = rest;
    }
    Some(memory)
}
