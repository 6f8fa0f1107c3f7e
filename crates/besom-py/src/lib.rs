//! The Python package `besom`: see `python/besom/__init__.py` for what users see, and `docs/python.md` for the manual.
//!
//! | file | subject |
//! |---|---|
//! | `key` | from Python objects to the bytes of keys |
//! | `keys/` | many keys at once: lists, NumPy, Arrow |
//! | `state`, `remote` | a filter of any kind and the keys beside it |
//! | `shared` | values that threads share, with or without the interpreter lock |
//! | `filter`, `adaptive`, `exact`, `guard`, `store` | the classes |
//! | `file` | files, maps, pickles |

#![expect(clippy::doc_markdown, reason = "what users read are docstrings, which are not Markdown")]
#![expect(clippy::too_many_arguments, reason = "Python's have names and defaults")]
#![expect(clippy::needless_pass_by_value, reason = "arguments come from Python by value")]

mod adaptive;
mod config;
mod error;
mod exact;
mod file;
mod filter;
mod guard;
mod key;
mod keys;
mod remote;
mod shared;
mod state;
mod store;
mod view;

use besom::{KeyHasher, SipHash, Xxh3};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{BuildException, UnsupportedError};

/// Builds a filter of any kind by its name: a Filter, or an AdaptiveFilter if the kind adapts.
///
/// >>> import besom
/// >>> besom.build("telescoping", capacity=1000, rate=0.01).capacity
/// 1000
/// >>> besom.build("bloom:capacity=1e6,rate=1/1000").capacity
/// 1000000
#[pyfunction]
#[pyo3(signature = (kind, capacity=None, rate=None, *, seed=None, hash=None, index=None, **options))]
fn build(
    py: Python<'_>,
    kind: &str,
    capacity: Option<&Bound<'_, PyAny>>,
    rate: Option<&Bound<'_, PyAny>>,
    seed: Option<&Bound<'_, PyAny>>,
    hash: Option<&str>,
    index: Option<Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<PyAny>> {
    if matches!(kind, "exact" | "sharded") {
        let instead =
            if kind == "exact" { "use ExactList(accepted, rejected)" } else { "threads share every filter" };
        return Err(UnsupportedError::new_err(format!("{kind} is not built from parameters; {instead}")));
    }
    let config = config::config(kind, capacity, rate, seed, hash, options)?;
    let state = adaptive::build(py, &config, index)?;
    filter::object(py, filter::Filter::of(state))
}

/// The names that ``build`` knows.
#[pyfunction]
fn kinds() -> Vec<&'static str> {
    let built = |name: &&str| !matches!(*name, "exact" | "sharded");
    besom::any::Config::names().filter(built).collect()
}

/// The bytes of a key: the same as in Rust, on every platform and in every version.
///
/// >>> from besom import key_bytes
/// >>> key_bytes("ab"), key_bytes(258)
/// (b'ab', b'\x02\x01\x00\x00\x00\x00\x00\x00')
#[pyfunction]
fn key_bytes<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    key::with_key(key, |bytes| PyBytes::new(key.py(), bytes))
}

/// The hash that stands in the hash column of a table: an int of 64 bits, the upper half of the key's digest. Where
/// integers are signed, store ``key_hash(key, seed) - 2**63``, which keeps the order.
///
/// >>> from besom import key_hash
/// >>> hex(key_hash("besom", seed=7))
/// '0x91124bbfe0f2e2a2'
#[pyfunction]
#[pyo3(signature = (key, seed, *, hash="xxh3"))]
fn key_hash(key: &Bound<'_, PyAny>, seed: u128, hash: &str) -> PyResult<u64> {
    key::with_key(key, |bytes| match hash {
        "xxh3" => Ok(Xxh3::with_seed(seed.into()).digest(bytes).hi),
        "siphash" => Ok(SipHash::with_seed(seed.into()).digest(bytes).hi),
        other => {
            Err(BuildException::new_err(format!("hash cannot be {other:?}; it must be xxh3 or siphash")))
        }
    })?
}

/// The part of the package that is compiled.
#[pymodule(gil_used = false)]
fn _besom(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<filter::Filter>()?;
    module.add_class::<adaptive::AdaptiveFilter>()?;
    module.add_class::<exact::ExactList>()?;
    module.add_class::<guard::Guard>()?;
    module.add_class::<store::Store>()?;
    module.add_function(wrap_pyfunction!(build, module)?)?;
    module.add_function(wrap_pyfunction!(kinds, module)?)?;
    module.add_function(wrap_pyfunction!(key_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(key_hash, module)?)?;
    module.add_function(wrap_pyfunction!(file::open, module)?)?;
    module.add_function(wrap_pyfunction!(file::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(file::check, module)?)?;
    module.add_function(wrap_pyfunction!(file::_restore, module)?)?;
    module.add_function(wrap_pyfunction!(shared::_forked, module)?)?;
    Ok(())
}
