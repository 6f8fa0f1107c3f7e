//! The class `Filter`: what all filters do.

use std::sync::atomic::{AtomicBool, Ordering};

use besom::format::Kind;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3::{PyTraverseError, PyVisit};

use crate::config;
use crate::error::{Raise, UnsupportedError};
use crate::file::{self, Mapped};
use crate::key::with_key;
use crate::keys;
use crate::remote::{Beside, Held};
use crate::shared::Shared;
use crate::state::{Hashed, State};
use crate::view;

/// A set of keys that answers "certainly absent" or "maybe present".
///
/// A plain filter: `kind="bins"` unless another one is named. It can remove keys, and it keeps a key once for every
/// time that it was inserted. It does not repair its false positives; AdaptiveFilter does.
///
/// >>> from besom import Filter
/// >>> seen = Filter(capacity=1000, rate=0.001)
/// >>> seen.insert("https://example.org")
/// True
/// >>> "https://example.org" in seen
/// True
/// >>> seen.update(["a", "b", "c"])
/// >>> len(seen)
/// 4
///
/// A rate is the largest share of other keys that the full filter may accept. A seed makes a filter repeatable; without
/// one, it is random, so that nobody outside can aim at the filter. `hash` is "xxh3" or "siphash"; further options are
/// those of the kind.
#[pyclass(frozen, subclass, weakref, module = "besom", name = "Filter")]
pub(crate) struct Filter {
    pub(crate) shared: Shared<State>,
    /// The index that the state holds, for the garbage collector.
    index: Option<Held>,
    /// The file that the filter was opened on.
    mapped: Option<Mapped>,
    /// Whether the filter may be another one than its file's.
    changed: AtomicBool,
}

impl Filter {
    pub(crate) fn of(state: State) -> Self {
        let index = match &state.beside {
            Beside::Index(index) => Some(index.clone()),
            _ => None,
        };
        Self { shared: Shared::new(state), index, mapped: None, changed: AtomicBool::new(false) }
    }

    /// Says that the filter was opened on a file.
    pub(crate) fn mapped(self, mapped: Mapped) -> Self {
        Self { mapped: Some(mapped), ..self }
    }

    /// Changes filter and keys.
    pub(crate) fn change<R: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut State) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        self.changed.store(true, Ordering::Relaxed);
        self.shared.write(py, change)?
    }

    pub(crate) fn state(&self, py: Python<'_>) -> PyResult<State> {
        self.shared.read(py, State::clone)
    }
}

/// The object of a filter: of the class that its kind belongs to.
pub(crate) fn object(py: Python<'_>, filter: Filter) -> PyResult<Py<PyAny>> {
    let (kind, adaptive) =
        filter.shared.read(py, |state| (state.filter.kind(), state.filter.is_adaptive()))?;
    let base = PyClassInitializer::from(filter);
    Ok(match (kind, adaptive) {
        (Kind::Exact, _) => Py::new(py, base.add_subclass(crate::exact::ExactList))?.into_any(),
        (_, true) => Py::new(py, base.add_subclass(crate::adaptive::AdaptiveFilter))?.into_any(),
        (_, false) => Py::new(py, base)?.into_any(),
    })
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (capacity, rate=None, *, kind="bins", seed=None, hash="xxh3", **options))]
    fn new(
        capacity: &Bound<'_, PyAny>,
        rate: Option<&Bound<'_, PyAny>>,
        kind: &str,
        seed: Option<&Bound<'_, PyAny>>,
        hash: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config = config::config(kind, Some(capacity), rate, seed, Some(hash), options)?;
        let filter = capacity.py().detach(|| Hashed::build(&config)).map_err(Raise::raise)?;
        if filter.is_adaptive() {
            let name = filter.kind().name();
            return Err(UnsupportedError::new_err(format!(
                "a filter of kind {name} adapts; use AdaptiveFilter(kind={name:?}) or besom.build({name:?})"
            )));
        }
        Ok(Self::of(State { filter, beside: Beside::Nothing }))
    }

    /// Inserts a key. False if the filter accepted it before already: it was there, or a false positive.
    ///
    /// Raises FullError if there is no room for it; the filter is unchanged then.
    fn insert(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_key(key, |bytes| self.change(key.py(), |state| state.insert(bytes)))?
    }

    /// Whether the key may be there. False is certain. The same as ``key in filter``.
    fn contains(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.__contains__(key)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_key(key, |bytes| self.shared.read(key.py(), |state| state.filter.contains(bytes)))?
    }

    /// Removes a key, once if it was inserted several times. False if the filter rejects it.
    ///
    /// Remove only what was inserted. A filter that is not adaptive keeps a few bits of each key: to remove a key that
    /// was never inserted can take away those of another one.
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        with_key(key, |bytes| self.change(key.py(), |state| state.remove(bytes)))?
    }

    /// Repairs the false positive ``key``. Whether the filter rejects it from now on although it accepted it before.
    ///
    /// Filters that do not adapt repair nothing. Do not tell a whitelist filter that a stored key is absent; all others
    /// notice.
    fn adapt(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let adapted = with_key(key, |bytes| self.change(key.py(), |state| state.adapt(bytes)))??;
        Ok(adapted.is_fixed())
    }

    /// Inserts all keys: a list, a NumPy array, an Arrow array, or anything that can be iterated over.
    ///
    /// If there is no room for all of them, or one of them is no key, or the iteration fails, those before it are in.
    ///
    /// >>> import numpy
    /// >>> filter = Filter(capacity=1000)
    /// >>> filter.update(numpy.arange(500))
    /// >>> 499 in filter
    /// True
    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        self.changed.store(true, Ordering::Relaxed);
        keys::for_each_chunk(keys, &mut |chunk| {
            self.shared.write_detached(|state| state.insert_chunk(chunk))?
        })
    }

    /// Asks about many keys at once: an array of bool, one for each key.
    ///
    /// >>> filter = Filter(capacity=1000, seed=1)
    /// >>> filter.update(["a", "b"])
    /// >>> filter.contains_many(["a", "c", "b"])
    /// array([ True, False,  True])
    fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (mut answers, mut part) = (Vec::with_capacity(keys::length_hint(keys)), Vec::new());
        keys::for_each_chunk(keys, &mut |chunk| {
            self.shared.read_detached(|state| state.filter.contains_chunk(chunk, &mut part))?;
            answers.extend_from_slice(&part);
            Ok(())
        })?;
        view::bool_array(keys.py(), &answers)
    }

    /// Removes all keys and repairs. Capacity and seed stay.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, State::clear)
    }

    /// Takes all keys of another filter in, which must have been built alike and with the same seed. The same as
    /// ``|=``.
    ///
    /// >>> left, right = (Filter(capacity=100, seed=7) for _ in range(2))
    /// >>> left.update("abc".split("b")), right.insert("d")
    /// (None, True)
    /// >>> left |= right
    /// >>> len(left)
    /// 3
    fn merge(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        let py = other.py();
        // A copy: whoever holds one filter never waits for another.
        let other = other.get().shared.read(py, |state| state.filter.clone())?;
        self.change(py, |state| state.merge(&other))
    }

    fn __ior__(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.merge(other)
    }

    fn __or__(&self, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let mut union = self.state(other.py())?;
        let other_filter = other.get().shared.read(other.py(), |state| state.filter.clone())?;
        union.merge(&other_filter)?;
        object(other.py(), Self::of(union))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.read(py, |state| state.filter.len())
    }

    /// How many keys fit before the filter is full or has to grow.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.read(py, |state| state.filter.capacity())
    }

    /// The name of the kind of filter, such as "bins" or "extension".
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.shared.read(py, |state| state.filter.kind().name())
    }

    /// The hash function: "xxh3" or "siphash".
    #[getter]
    fn hash(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.shared.read(py, |state| state.filter.hash_name())
    }

    /// The seed of the hash function, a secret.
    #[getter]
    fn seed(&self, py: Python<'_>) -> PyResult<u128> {
        self.shared.read(py, |state| state.filter.seed())
    }

    /// The promised rate: at most this share of other keys is accepted by the full filter, before any repair. It meets
    /// the rate that was asked for.
    ///
    /// >>> Filter(capacity=1000, rate=0.001).rate <= 0.001
    /// True
    #[getter]
    fn rate(&self, py: Python<'_>) -> PyResult<f64> {
        self.shared.read(py, |state| state.filter.promised_rate())
    }

    /// The memory of the filter, in bytes. The keys beside an adaptive filter are not counted.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.read(py, |state| state.filter.stats().bits.div_ceil(8))
    }

    /// The numbers that an operator wants to see, by name.
    ///
    /// >>> Filter(capacity=1000).stats()["items"]
    /// 0
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        view::stats(py, &self.shared.read(py, |state| state.filter.stats())?)
    }

    /// Measures which share of random keys the filter accepts at present.
    #[pyo3(signature = (samples=100_000))]
    fn measure_rate(&self, py: Python<'_>, samples: usize) -> PyResult<f64> {
        py.detach(|| self.shared.read_detached(|state| state.filter.measured_rate(samples)))
    }

    /// The hash that stands in the hash column of a table: an int of 64 bits.
    fn key_hash(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        with_key(key, |bytes| self.shared.read(key.py(), |state| state.filter.digest(bytes).hi))?
    }

    /// Checks all invariants, and that the keys beside the filter are its own. Walks the whole filter.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.write(py, State::verify)?
    }

    /// Writes the filter to a file, in the place of the one that may be there: whatever happens, the file is the old
    /// one or the new one. Rust reads it too. The keys beside an adaptive filter are not written.
    ///
    /// Without the seed, only those can read the file who know it.
    #[pyo3(signature = (path, *, include_seed=true, generation=0))]
    fn save(
        &self,
        py: Python<'_>,
        path: file::FilePath,
        include_seed: bool,
        generation: u64,
    ) -> PyResult<()> {
        py.detach(|| {
            self.shared.read_detached(|state| file::save(&state.filter, &path.0, include_seed, generation))?
        })
    }

    /// The bytes of the filter's file.
    #[pyo3(signature = (*, include_seed=true, generation=0))]
    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        include_seed: bool,
        generation: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let options = file::write_options(include_seed, generation);
        let bytes = py.detach(|| self.shared.read_detached(|state| state.filter.to_bytes(&options))?)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads a filter of any kind from the bytes of its file.
    #[staticmethod]
    #[pyo3(signature = (data, *, seed=None))]
    fn from_bytes(py: Python<'_>, data: &[u8], seed: Option<u128>) -> PyResult<Py<PyAny>> {
        let options = file::read_options(seed);
        let (filter, _) = py.detach(|| Hashed::from_bytes(data, &options))?;
        object(py, Self::of(State { filter, beside: Beside::Nothing }))
    }

    /// A copy, with the keys beside it.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        object(py, Self::of(self.state(py)?))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.copy(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        file::reduce(py, self)
    }

    /// The file that the filter is a map of, and what tells it from another of its name; None once the filter was
    /// changed.
    fn _mapped_file(&self) -> Option<(std::path::PathBuf, u64, u128)> {
        let unchanged = !self.changed.load(Ordering::Relaxed);
        self.mapped.as_ref().filter(|_| unchanged && self.index.is_none()).map(Mapped::parts)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get_type().name()?.to_string();
        slf.get().shared.read(slf.py(), |state| view::line(&name, &state.filter))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get_type().name()?.to_string();
        slf.get().shared.read(slf.py(), |state| view::html(&name, &state.filter))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.index.as_ref().map_or(Ok(()), |index| index.traverse(&visit))
    }

    fn __clear__(&self) {
        if let Some(index) = &self.index {
            index.clear();
        }
    }
}
