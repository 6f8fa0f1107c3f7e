//! The class `AdaptiveFilter`: filters that repair their false positives with the help of the keys beside them.

use std::convert::Infallible;
use std::ops::ControlFlow;

use besom::any::Config;
use besom::{Adaptive, Change, MemoryRemote, Remote};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::config;
use crate::error::{Raise, UnsupportedError};
use crate::filter::Filter;
use crate::keys::{self, Chunk, Packed};
use crate::remote::{Beside, Held};
use crate::state::{Hashed, State, either};

/// A filter that repairs every false positive that it is told of.
///
/// Ask the filter, look the key up, and if it is not there, tell the filter so: it does not make the same mistake
/// twice.
///
/// >>> from besom import AdaptiveFilter
/// >>> stored = {f"user {n}": n for n in range(1000)}
/// >>> filter = AdaptiveFilter(capacity=1000, rate=1/64, seed=1)
/// >>> filter.update(stored)
/// >>> def look_up(key):
/// ...     if key in filter:
/// ...         if key in stored:
/// ...             return stored[key]
/// ...         filter.adapt(key)
/// >>> for _ in range(10):
/// ...     for n in range(1000):
/// ...         look_up(f"nobody {n}")
/// >>> any(f"nobody {n}" in filter for n in range(1000))
/// False
///
/// To repair, a filter must learn which stored keys have nearly the same hash. Unless told otherwise, it keeps its keys
/// in memory for that. With ``index``, an object that has a method ``range(lo, hi)``, it asks that instead: the method
/// yields pairs of ``besom.key_hash(key, seed)`` and key, from an index on a hash column of your table, both ends
/// included, in ascending order.
///
/// The kind is "extension" unless another one is named. Options of the kind follow, such as ``growable=True``.
#[pyclass(frozen, extends = Filter, subclass, module = "besom", name = "AdaptiveFilter")]
pub(crate) struct AdaptiveFilter;

#[pymethods]
impl AdaptiveFilter {
    #[new]
    #[pyo3(signature = (capacity, rate=None, *, kind="extension", seed=None, hash="xxh3", index=None, **options))]
    fn new(
        capacity: &Bound<'_, PyAny>,
        rate: Option<&Bound<'_, PyAny>>,
        kind: &str,
        seed: Option<&Bound<'_, PyAny>>,
        hash: &str,
        index: Option<Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let config = config::config(kind, Some(capacity), rate, seed, Some(hash), options)?;
        let state = build(capacity.py(), &config, index)?;
        if !state.filter.is_adaptive() {
            let name = state.filter.kind().name();
            return Err(UnsupportedError::new_err(format!(
                "a filter of kind {name} has no keys to repair with; use Filter(kind={name:?}) or besom.build({name:?})"
            )));
        }
        Ok(PyClassInitializer::from(Filter::of(state)).add_subclass(Self))
    }

    /// Gives a filter that was read from a file its keys back, so that it can be changed and repaired again. They must
    /// be the keys that it stores, all of them.
    ///
    /// Filters whose keys stay at their hashes ("extension", "telescoping" and cascades) keep their repairs; others are
    /// built again from the keys.
    fn attach(slf: &Bound<'_, Self>, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let keys = packed(keys)?;
        slf.as_super().get().change(slf.py(), |state| attach(state, &keys))
    }
}

/// A filter and what is beside it, without keys.
pub(crate) fn build(py: Python<'_>, config: &Config, index: Option<Bound<'_, PyAny>>) -> PyResult<State> {
    let filter = py.detach(|| Hashed::build(config)).map_err(Raise::raise)?;
    let beside = match index {
        Some(index) => Beside::Index(check_index(&filter, index)?),
        None if filter.is_adaptive() => Beside::Memory(MemoryRemote::new()),
        None => Beside::Nothing,
    };
    Ok(State { filter, beside })
}

/// An index, if the filter can use one.
///
/// # Errors
///
/// `UnsupportedError` for filters that move their keys, `TypeError` for objects that are no index.
pub(crate) fn check_index(filter: &Hashed, index: Bound<'_, PyAny>) -> PyResult<Held> {
    if !filter.is_hash_addressed() {
        return Err(UnsupportedError::new_err(format!(
            "a filter of kind {} does not work with an index on a hash column; choose \"extension\" or \"telescoping\"",
            filter.kind().name()
        )));
    }
    if !index.hasattr("range")? {
        return Err(PyTypeError::new_err("an index needs a method range(lo, hi) that yields (hash, key)"));
    }
    Ok(Held::new(index))
}

/// All keys, copied.
pub(crate) fn packed(keys: &Bound<'_, PyAny>) -> PyResult<Packed> {
    let mut all = Packed::default();
    keys::for_each_chunk(keys, &mut |chunk| {
        match chunk {
            Chunk::Words(words) => words.iter().for_each(|word| all.push(&word.to_le_bytes())),
            Chunk::Bytes(packed) => packed.iter().for_each(|key| all.push(key)),
        }
        Ok(())
    })?;
    Ok(all)
}

fn attach(state: &mut State, keys: &Packed) -> PyResult<()> {
    let mut memory = MemoryRemote::new();
    if state.filter.is_hash_addressed() {
        for key in keys.iter() {
            let address = state.filter.digest(key).hi;
            memory.apply(&[Change::Insert { address, key }]).map_err(Raise::raise)?;
        }
        either!(&state.filter, filter => filter.verify_remote(&mut memory).map_err(Raise::raise))?;
    } else {
        let scan = |visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>| {
            // What breaks the scan is the filter, which says why.
            let _ = keys.iter().try_for_each(visit);
            Ok::<(), Infallible>(())
        };
        either!(&mut state.filter, filter => filter.rebuild(scan, &mut memory).map_err(Raise::raise))?;
    }
    state.beside = Beside::Memory(memory);
    Ok(())
}
