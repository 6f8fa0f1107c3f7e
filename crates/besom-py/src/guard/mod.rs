//! The class `Guard`: a filter in front of a mapping of Python's.

mod mapping;

use std::sync::atomic::{AtomicU64, Ordering};

use besom::any::{AnyFilter, AnyHasher, Config};
use besom::{GuardStats, HashKind, MemoryRemote, SipHash, Xxh3};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::adaptive::check_index;
use crate::config;
use crate::error::Raise;
use crate::key::Shapes;
use crate::remote::{Beside, Held};
use crate::shared::Shared;
use crate::state::Hashed;
use crate::view;
use mapping::Mapping;

type Guarded<H> = besom::Guard<AnyFilter<H>, Mapping, Beside>;

/// A guard by the hash function of its filter.
enum AnyGuard {
    Xxh3(Guarded<Xxh3>),
    SipHash(Guarded<SipHash>),
}

/// Does the same with a guard of either hash function.
macro_rules! either {
    ($any:expr, $guard:ident => $work:expr) => {
        match $any {
            AnyGuard::Xxh3($guard) => $work,
            AnyGuard::SipHash($guard) => $work,
        }
    };
}

impl AnyGuard {
    fn contains(&self, key: &[u8]) -> bool {
        either!(self, guard => guard.contains(key))
    }

    fn mapping(&mut self) -> &mut Mapping {
        either!(self, guard => guard.dictionary_mut())
    }

    /// Does something with a key whose object is in the mapping's hand meanwhile.
    fn holding<R>(&mut self, key: Py<PyAny>, work: impl FnOnce(&mut Self) -> R) -> R {
        self.mapping().key = Some(key);
        let result = work(self);
        self.mapping().key = None;
        result
    }

    fn get(&mut self, key: &[u8]) -> PyResult<Option<Py<PyAny>>> {
        either!(self, guard => guard.get(key).map_err(Raise::raise))
    }

    fn insert(&mut self, key: &[u8], value: Py<PyAny>) -> PyResult<Option<Py<PyAny>>> {
        self.mapping().is_absent = !self.contains(key);
        either!(self, guard => guard.insert(key, value).map_err(Raise::raise))
    }

    fn remove(&mut self, key: &[u8]) -> PyResult<Option<Py<PyAny>>> {
        either!(self, guard => guard.remove(key).map_err(Raise::raise))
    }

    fn stats(&self) -> GuardStats {
        either!(self, guard => guard.stats())
    }

    fn filter(&self) -> Hashed {
        match self {
            Self::Xxh3(guard) => Hashed::Xxh3(guard.filter().clone()),
            Self::SipHash(guard) => Hashed::SipHash(guard.filter().clone()),
        }
    }
}

/// An adaptive filter in front of a mapping: look-ups of absent keys stay away from the mapping, and every one that did
/// not is repaired on the spot.
///
/// The mapping can be a dict, a shelf, a dbm file or any other MutableMapping; what it holds already is read once. A
/// guard is a MutableMapping itself. From now on, write through the guard only: it rejects keys that it has not heard
/// of.
///
/// >>> from besom import Guard
/// >>> ages = Guard({"Ada": 36})
/// >>> ages["Grace"] = 85
/// >>> ages["Ada"], ages.get("Charles")
/// (36, None)
/// >>> ages.stats()["negatives"]
/// 1
///
/// An exception of the mapping reaches the caller as it is. Whatever was raised, and whether or not the mapping has
/// done what it was asked for, no key that it has is ever rejected.
///
/// A mapping with a method ``range(lo, hi)``, or an ``index`` that has one, answers which keys have nearly the same
/// hash; without one, the guard keeps all keys in memory for that. See AdaptiveFilter.
///
/// All keys must be of one type. Threads can share a guard; while one of them waits for the mapping, the others wait
/// for it.
#[pyclass(frozen, subclass, weakref, module = "besom._besom", name = "Guard")]
pub(crate) struct Guard {
    shared: Shared<AnyGuard>,
    mapping: Held,
    index: Option<Held>,
    /// What the keys of the mapping are made of.
    shapes: Shapes,
    /// Queries that were answered without the guard's lock for changes.
    negatives: AtomicU64,
}

impl Guard {
    /// The bytes of a key, if keys of its type can be told from those that there are.
    fn bytes(&self, key: &Bound<'_, PyAny>, change: bool) -> PyResult<Vec<u8>> {
        let mut bytes = Vec::new();
        if change {
            self.shapes.admit(key, &mut bytes)?;
        } else {
            self.shapes.compare(key, &mut bytes)?;
        }
        Ok(bytes)
    }

    fn look_up(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let bytes = self.bytes(key, false)?;
        if !self.shared.read(key.py(), |guard| guard.contains(&bytes))? {
            self.negatives.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        let object = key.clone().unbind();
        self.shared.write(key.py(), |guard| guard.holding(object, |guard| guard.get(&bytes)))?
    }
}

#[pymethods]
impl Guard {
    #[new]
    #[pyo3(signature = (mapping, capacity=None, rate=None, *, kind="extension", seed=None, hash="xxh3", index=None, **options))]
    fn new(
        mapping: Bound<'_, PyAny>,
        capacity: Option<Bound<'_, PyAny>>,
        rate: Option<&Bound<'_, PyAny>>,
        kind: &str,
        seed: Option<&Bound<'_, PyAny>>,
        hash: &str,
        index: Option<Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = mapping.py();
        check_mapping(&mapping)?;
        let capacity = match capacity {
            Some(capacity) => capacity,
            None => (2 * mapping.len().unwrap_or(0)).max(1000).into_pyobject(py)?.into_any(),
        };
        let mut config = config::config(kind, Some(&capacity), rate, seed, Some(hash), options)?;
        if config.growable.is_none() && config.accepts("growable") {
            config = config.growable(true);
        }
        let index = index.or_else(|| mapping.hasattr("range").is_ok_and(|has| has).then(|| mapping.clone()));
        if index.is_some() && seed.is_none() {
            return Err(PyTypeError::new_err("give the seed of the hash column: seed="));
        }
        let shapes = Shapes::new(&mapping)?;
        let mapping = Held::new(mapping);
        let inside = Mapping::new(mapping.clone(), shapes.clone());
        let (any, index) = match config.hash {
            HashKind::SipHash => over(&config, inside, index, Hashed::SipHash)
                .map(|(guard, index)| (AnyGuard::SipHash(guard), index)),
            _ => over(&config, inside, index, Hashed::Xxh3)
                .map(|(guard, index)| (AnyGuard::Xxh3(guard), index)),
        }?;
        Ok(Self { shared: Shared::new(any), mapping, index, shapes, negatives: AtomicU64::new(0) })
    }

    /// The value of a key, or ``default``.
    #[pyo3(signature = (key, default=None))]
    fn get(&self, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.look_up(key)?.or(default))
    }

    fn __getitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.look_up(key)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    /// Whether the mapping has the key. Asks it if the filter accepts the key.
    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.look_up(key)?.is_some())
    }

    /// Whether the mapping may have the key, by the filter's word alone. False is certain.
    fn may_contain(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = self.bytes(key, false)?;
        self.shared.read(key.py(), |guard| guard.contains(&bytes))
    }

    /// Stores a value, and returns the one that was there before, or None.
    fn insert(&self, key: &Bound<'_, PyAny>, value: Py<PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let (bytes, object) = (self.bytes(key, true)?, key.clone().unbind());
        self.shared.write(key.py(), |guard| guard.holding(object, |guard| guard.insert(&bytes, value)))?
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: Py<PyAny>) -> PyResult<()> {
        self.insert(key, value).map(drop)
    }

    /// Removes a key, and returns its value, or None.
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let (bytes, object) = (self.bytes(key, true)?, key.clone().unbind());
        self.shared.write(key.py(), |guard| guard.holding(object, |guard| guard.remove(&bytes)))?
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.remove(key)? {
            Some(_) => Ok(()),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.mapping.get(py)?.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
        self.mapping.get(py)?.try_iter()
    }

    /// The mapping that is guarded.
    #[getter]
    fn mapping<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.mapping.get(py)
    }

    /// What was counted so far, by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.shared.read(py, AnyGuard::stats)?;
        view::guard_stats(py, &stats, self.negatives.load(Ordering::Relaxed))
    }

    /// A copy of the filter as it is, without its keys: to be saved, or looked at.
    fn filter(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let filter = self.shared.read(py, AnyGuard::filter)?;
        let state = crate::state::State { filter, beside: Beside::Nothing };
        crate::filter::object(py, crate::filter::Filter::of(state))
    }

    /// Brings filter and mapping into step where an operation failed. Costs nothing if none has.
    fn restore(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.write(py, |guard| either!(guard, guard => guard.restore().map_err(Raise::raise)))?
    }

    /// Builds the filter again from all keys of the mapping. Repairs are forgotten.
    fn rebuild(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.write(py, |guard| either!(guard, guard => guard.rebuild().map_err(Raise::raise)))?
    }

    /// Checks that filter and mapping hold the same keys, by reading them all.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.write(py, |guard| either!(guard, guard => guard.verify().map_err(Raise::raise)))?
    }

    /// The last failure on the filter's side that failed no operation, as an exception, or None.
    fn take_fault(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        self.shared.write(py, |guard| either!(guard, guard => guard.take_fault().map(Raise::raise)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let filter = self.shared.read(py, |guard| view::line("Filter", &guard.filter()))?;
        Ok(format!("<besom.Guard of {} behind {filter}>", self.mapping.get(py)?.get_type().name()?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.mapping.traverse(&visit)?;
        self.index.as_ref().map_or(Ok(()), |index| index.traverse(&visit))
    }

    fn __clear__(&self) {
        self.mapping.clear();
        if let Some(index) = &self.index {
            index.clear();
        }
    }
}

fn check_mapping(mapping: &Bound<'_, PyAny>) -> PyResult<()> {
    for method in ["__getitem__", "__setitem__", "__delitem__", "keys"] {
        if !mapping.hasattr(method)? {
            let name = mapping.get_type().name()?;
            return Err(PyTypeError::new_err(format!("a {name} is no mutable mapping: it has no {method}")));
        }
    }
    Ok(())
}

/// A guard over a mapping whose keys are read, and its index.
fn over<H: AnyHasher>(
    config: &Config,
    mapping: Mapping,
    index: Option<Bound<'_, PyAny>>,
    hashed: fn(AnyFilter<H>) -> Hashed,
) -> PyResult<(Guarded<H>, Option<Held>)> {
    let filter = AnyFilter::<H>::build(config).map_err(Raise::raise)?;
    let index = index.map(|index| check_index(&hashed(filter.clone()), index)).transpose()?;
    let beside = index.clone().map_or_else(|| Beside::Memory(MemoryRemote::new()), Beside::Index);
    let guard = besom::Guard::over(filter, mapping, beside).map_err(Raise::raise)?;
    Ok((guard, index))
}
