//! The class `Store`: the embedded store.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use besom::Xxh3;
use besom::any::{AnyFilter, Config};
use besom_store::{Batch, Durability, Entries as Rows, RedbStore};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::config;
use crate::error::{BuildException, Raise, StoreError};
use crate::file::FilePath;
use crate::key::with_key;
use crate::view;

type Inner = RedbStore<AnyFilter<Xxh3>>;

/// A key-value store in a file, with an adaptive filter in front of it. It survives crashes at any moment.
///
/// Keys are those of filters, values are bytes. Keys are stored as their bytes: ``"a"`` and ``b"a"`` are one key, and
/// iterating yields bytes. A store is a MutableMapping, for many threads of one process.
///
/// >>> import tempfile, os
/// >>> from besom import Store
/// >>> path = os.path.join(tempfile.mkdtemp(), "users.redb")
/// >>> with Store.open(path) as users:
/// ...     users["Ada"] = b"36"
/// ...     users["Ada"], users.get("Charles")
/// (b'36', None)
#[pyclass(frozen, subclass, weakref, module = "besom._besom", name = "Store")]
pub(crate) struct Store {
    inner: Mutex<Option<Arc<Inner>>>,
    path: PathBuf,
}

impl Store {
    fn inner(&self) -> PyResult<Arc<Inner>> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clone().ok_or_else(|| {
            StoreError::new_err("the store was closed; open it again if it should be used here")
        })
    }

    /// Does something with the store, without the interpreter lock: it may wait for the disk.
    fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&Inner) -> PyResult<R> + Send) -> PyResult<R> {
        let inner = self.inner()?;
        // The last one to drop the store may write a snapshot, so that is done here too.
        py.detach(move || {
            let result = work(&inner);
            drop(inner);
            result
        })
    }

    fn with_key<R: Send>(
        &self,
        key: &Bound<'_, PyAny>,
        work: impl FnOnce(&Inner, &[u8]) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        with_key(key, |bytes| self.with(key.py(), |store| work(store, bytes)))?
    }

    fn value(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
        self.with_key(key, |store, key| store.get(key).map_err(Raise::raise))
    }
}

#[pymethods]
impl Store {
    /// Opens a store, or makes one if there is no file.
    ///
    /// ``durable=False`` lets a crash take back the last writes, which makes them faster; ``flush`` makes them last.
    /// The filter grows with the store; ``capacity``, ``rate``, ``kind`` and options of the kind say how it begins.
    #[classmethod]
    #[pyo3(signature = (path, *, capacity=None, rate=None, kind="extension", create=true, durable=true, cache_size=None,
        snapshot_every=None, **options))]
    fn open<'py>(
        class: &Bound<'py, PyType>,
        path: FilePath,
        capacity: Option<Bound<'_, PyAny>>,
        rate: Option<&Bound<'_, PyAny>>,
        kind: &str,
        create: bool,
        durable: bool,
        cache_size: Option<usize>,
        snapshot_every: Option<NonZeroU64>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, path) = (class.py(), path.0);
        let capacity = capacity.map_or_else(|| 1000.into_pyobject(py).map(Bound::into_any), Ok)?;
        let config = filter_config(&config::config(kind, Some(&capacity), rate, None, None, options)?)?;
        let mut builder = RedbStore::builder().create(create);
        if !durable {
            builder = builder.durability(Durability::Buffered);
        }
        if let Some(bytes) = cache_size {
            builder = builder.cache_size(bytes);
        }
        if let Some(commits) = snapshot_every {
            builder = builder.snapshot_every(commits);
        }
        let make = move |keys: usize, seed| {
            let capacity = config.capacity.max(keys);
            AnyFilter::build(&config.clone().capacity(capacity).seed(seed))
        };
        let store = py.detach(|| builder.open(&path, make)).map_err(Raise::raise)?;
        let store = Self { inner: Mutex::new(Some(Arc::new(store))), path };
        class.call1((Py::new(py, Opened(Mutex::new(Some(store))))?,))
    }

    #[new]
    fn new(opened: &Bound<'_, PyAny>) -> PyResult<Self> {
        let unopened = || PyTypeError::new_err("a store is opened: use Store.open(path)");
        let opened = opened.cast::<Opened>().map_err(|_| unopened())?.get();
        opened.0.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(unopened)
    }

    /// The value of a key, or ``default``.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.value(key)?.map(|value| PyBytes::new(key.py(), &value).into_any()).or(default))
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        match self.value(key)? {
            Some(value) => Ok(PyBytes::new(key.py(), &value)),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// Whether the store has the key. Reads no value.
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.with_key(key, |store, key| store.contains_key(key).map_err(Raise::raise))
    }

    /// Whether the store may have the key, by the filter's word alone: no disk. False is certain.
    fn may_contain(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.with_key(key, |store, key| Ok(store.may_contain_key(key)))
    }

    /// Stores a value, and returns the one that was there before, or None.
    fn insert<'py>(&self, key: &Bound<'py, PyAny>, value: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let old = self.with_key(key, |store, key| store.insert(key, value).map_err(Raise::raise))?;
        Ok(old.map(|old| PyBytes::new(key.py(), &old)))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &[u8]) -> PyResult<()> {
        self.with_key(key, |store, key| store.put(key, value).map_err(Raise::raise))
    }

    /// Removes a key, and returns its value, or None.
    fn remove<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let old = self.with_key(key, |store, key| store.remove(key).map_err(Raise::raise))?;
        Ok(old.map(|old| PyBytes::new(key.py(), &old)))
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.remove(key)? {
            Some(_) => Ok(()),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    /// Makes many changes in one commit, all or none: pairs of key and value, or a mapping. None as a value removes the
    /// key.
    fn write(&self, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        let items = if pairs.hasattr("items")? { pairs.call_method0("items")? } else { pairs.clone() };
        let mut batch = Batch::new();
        for pair in items.try_iter()? {
            let (key, value): (Bound<'_, PyAny>, Option<Vec<u8>>) = pair?.extract()?;
            with_key(&key, |key| match &value {
                Some(value) => drop(batch.insert(key, value)),
                None => drop(batch.remove(key)),
            })?;
        }
        self.with(pairs.py(), |store| store.write(&batch).map_err(Raise::raise))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let len = self.with(py, |store| store.len().map_err(Raise::raise))?;
        Ok(usize::try_from(len)?)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Entries> {
        self.entries(py, false)
    }

    /// Iterates over pairs of key and value, as they are now.
    fn _items(&self, py: Python<'_>) -> PyResult<Entries> {
        self.entries(py, true)
    }

    /// Makes sure that all writes last.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |store| store.flush().map_err(Raise::raise))
    }

    /// Writes the filter to its file, so that the next opening finds it. Closing does so too.
    fn snapshot(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |store| store.snapshot().map_err(Raise::raise))
    }

    /// Copies the store as it is now into a new file, while it is in use.
    fn backup(&self, py: Python<'_>, path: FilePath) -> PyResult<()> {
        self.with(py, |store| store.backup(&path.0).map_err(Raise::raise))
    }

    /// Checks everything: the database, and that the filter has its keys.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |store| store.verify().map_err(Raise::raise))
    }

    /// What was counted since the store was opened, by name.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = self.with(py, |store| Ok(store.metrics()))?;
        view::metrics(py, &metrics)
    }

    /// Writes a snapshot of the filter and closes the store. Closing it twice does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(inner) = inner else { return Ok(()) };
        py.detach(move || {
            let snapshot = inner.snapshot().map_err(Raise::raise);
            drop(inner);
            snapshot
        })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _type: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let closed = if self.inner().is_ok() { "" } else { ", closed" };
        format!("<besom.Store {:?}{closed}>", self.path.display().to_string())
    }
}

impl Store {
    fn entries(&self, py: Python<'_>, with_values: bool) -> PyResult<Entries> {
        let rows = self.with(py, |store| store.iter().map_err(Raise::raise))?;
        Ok(Entries { rows: Mutex::new(rows), with_values })
    }
}

/// A store on its way from `open` to the class that was asked for, which may be a subclass.
#[pyclass(frozen)]
struct Opened(Mutex<Option<Store>>);

/// The keys of a store, or its entries, as they were.
#[pyclass(frozen, module = "besom._besom")]
pub(crate) struct Entries {
    rows: Mutex<Rows>,
    with_values: bool,
}

#[pymethods]
impl Entries {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = py.detach(|| self.rows.lock().unwrap_or_else(PoisonError::into_inner).next());
        let Some(row) = next else { return Ok(None) };
        let (key, value) =
            row.map_err(|error| StoreError::new_err(format!("the database failed: {error}")))?;
        let key = PyBytes::new(py, &key);
        if self.with_values {
            return Ok(Some((key, PyBytes::new(py, &value)).into_pyobject(py)?.into_any()));
        }
        Ok(Some(key.into_any()))
    }
}

/// The filter of a store: it grows, unless the caller has said otherwise, and must be able to adapt.
fn filter_config(config: &Config) -> PyResult<Config> {
    let probe = AnyFilter::<Xxh3>::build(&config.clone().capacity(1)).map_err(Raise::raise)?;
    if !probe.is_adaptive() {
        let kind = config.kind();
        return Err(BuildException::new_err(format!(
            "a store needs a filter that adapts, and {kind} does not"
        )));
    }
    let grows = config.growable.is_none() && config.accepts("growable");
    Ok(if grows { config.clone().growable(true) } else { config.clone() })
}
