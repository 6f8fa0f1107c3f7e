//! From the arguments of a Python call to the configuration of a filter.

use besom::any::Config;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

use crate::error::BuildException;
use crate::error::Raise;

/// The configuration that a name and some arguments ask for.
///
/// # Errors
///
/// `BuildError` if there is no such kind or option, or an option cannot have its value.
pub(crate) fn config(
    kind: &str,
    capacity: Option<&Bound<'_, PyAny>>,
    rate: Option<&Bound<'_, PyAny>>,
    seed: Option<&Bound<'_, PyAny>>,
    hash: Option<&str>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Config> {
    let mut text = Text(kind.to_owned());
    for (name, value) in [("capacity", capacity), ("rate", rate), ("seed", seed)] {
        if let Some(value) = value {
            text.add(name, &shown(value)?)?;
        }
    }
    if let Some(hash) = hash {
        text.add("hash", hash)?;
    }
    for (name, value) in options.into_iter().flatten() {
        if !value.is_none() {
            text.add(&name.to_string(), &shown(&value)?)?;
        }
    }
    text.0.parse().map_err(|error: besom::any::ConfigError| error.raise())
}

/// A configuration as text.
struct Text(String);

impl Text {
    fn add(&mut self, name: &str, value: &str) -> PyResult<()> {
        // What would be read as another option, or as none.
        if value.contains(',') || value.trim().is_empty() {
            return Err(BuildException::new_err(format!("{name} cannot be {value:?}; it must be one value")));
        }
        let before = if self.0.contains(':') { ',' } else { ':' };
        self.0.push_str(&format!("{before}{name}={value}"));
        Ok(())
    }
}

/// A value as configurations have it.
fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(if flag.is_true() { "yes" } else { "no" }.to_owned());
    }
    if let Ok(parts) = value.cast::<PyTuple>() {
        let parts = parts.iter().map(|part| shown(&part)).collect::<PyResult<Vec<_>>>()?;
        return Ok(parts.join("x"));
    }
    Ok(value.str()?.to_string())
}
