//! The library's errors as Python's exceptions. The messages are the library's.

use besom::exact::ExactListError;
use besom::format::FormatError;
use besom::{
    AdaptiveError, BuildError, FullError, GuardError, InsertManyError, InvariantError, MergeError,
    RebuildError,
};
use besom_store::{StoreError as AnyStoreError, VerifyError};
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyOSError};

mod classes {
    use pyo3::import_exception;

    import_exception!(besom._errors, BuildError);
    import_exception!(besom._errors, DamagedError);
    import_exception!(besom._errors, FormatError);
    import_exception!(besom._errors, FullError);
    import_exception!(besom._errors, MergeError);
    import_exception!(besom._errors, RemoteError);
    import_exception!(besom._errors, StoreError);
    import_exception!(besom._errors, UnsupportedError);
}

pub(crate) use classes::{
    BuildError as BuildException, DamagedError, RemoteError, StoreError, UnsupportedError,
};

/// An error that Python can raise.
pub(crate) trait Raise {
    /// The exception.
    fn raise(self) -> PyErr;
}

/// An error that is an exception of Python's already.
#[derive(Debug)]
pub(crate) struct Raised(pub(crate) PyErr);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Raised {}

impl Raise for Raised {
    fn raise(self) -> PyErr {
        self.0
    }
}

impl Raise for std::convert::Infallible {
    fn raise(self) -> PyErr {
        match self {}
    }
}

impl Raise for BuildError {
    fn raise(self) -> PyErr {
        match self {
            Self::OutOfMemory { .. } => PyMemoryError::new_err(self.to_string()),
            Self::Unsupported { .. } => UnsupportedError::new_err(self.to_string()),
            _ => classes::BuildError::new_err(self.to_string()),
        }
    }
}

impl Raise for besom::any::ConfigError {
    fn raise(self) -> PyErr {
        classes::BuildError::new_err(self.to_string())
    }
}

impl Raise for FullError {
    fn raise(self) -> PyErr {
        classes::FullError::new_err(self.to_string())
    }
}

impl Raise for InsertManyError {
    fn raise(self) -> PyErr {
        self.full.raise()
    }
}

impl Raise for MergeError {
    fn raise(self) -> PyErr {
        match self {
            Self::OutOfMemory { .. } => PyMemoryError::new_err(self.to_string()),
            _ => classes::MergeError::new_err(self.to_string()),
        }
    }
}

impl<E: Raise + std::fmt::Display> Raise for AdaptiveError<E> {
    fn raise(self) -> PyErr {
        match self {
            Self::Full(full) => full.raise(),
            Self::Remote(error) => error.raise(),
            Self::Unsupported { .. } => UnsupportedError::new_err(self.to_string()),
            Self::OutOfMemory { .. } => PyMemoryError::new_err(self.to_string()),
            _ => RemoteError::new_err(self.to_string()),
        }
    }
}

impl<R: Raise + std::fmt::Display, D: Raise> Raise for GuardError<R, D> {
    fn raise(self) -> PyErr {
        match self {
            Self::Filter(error) => error.raise(),
            Self::Dictionary(error) => error.raise(),
            _ => RemoteError::new_err("the guard failed"),
        }
    }
}

impl<K: Raise, R: Raise + std::fmt::Display> Raise for RebuildError<K, R> {
    fn raise(self) -> PyErr {
        match self {
            Self::Keys(error) => error.raise(),
            Self::Filter(error) => error.raise(),
            _ => RemoteError::new_err("the filter could not be built again"),
        }
    }
}

impl Raise for FormatError {
    fn raise(self) -> PyErr {
        match self {
            // The operating system's errors are Python's: FileNotFoundError and so on.
            Self::Io(error) => error.into(),
            Self::SeedMissing => {
                classes::FormatError::new_err("the seed was left out of this file; give it with seed=")
            }
            error => classes::FormatError::new_err(error.to_string()),
        }
    }
}

impl Raise for InvariantError {
    fn raise(self) -> PyErr {
        DamagedError::new_err(format!("{self}; build the filter again from its keys"))
    }
}

impl Raise for ExactListError {
    fn raise(self) -> PyErr {
        match self {
            Self::Build(error) => error.raise(),
            error => classes::BuildError::new_err(error.to_string()),
        }
    }
}

impl<E: std::fmt::Display> Raise for AnyStoreError<E> {
    fn raise(self) -> PyErr {
        match self {
            Self::Full(full) => full.raise(),
            Self::Build(error) => error.raise(),
            Self::OutOfMemory { .. } => PyMemoryError::new_err(self.to_string()),
            error => StoreError::new_err(error.to_string()),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> Raise for VerifyError<E> {
    fn raise(self) -> PyErr {
        StoreError::new_err(self.to_string())
    }
}

/// An error of the operating system as Python raises it: with its number, which makes it FileNotFoundError and so on,
/// and the name of the file.
pub(crate) fn named(error: std::io::Error, path: &std::path::Path) -> PyErr {
    let Some(code) = error.raw_os_error() else {
        return PyOSError::new_err(format!("{error}: {}", path.display()));
    };
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    PyOSError::new_err((code, text, path.as_os_str().to_owned()))
}

/// The same for files of filters.
pub(crate) fn named_format(error: FormatError, path: &std::path::Path) -> PyErr {
    match error {
        FormatError::Io(error) => named(error, path),
        error => error.raise(),
    }
}

/// The exception of a file that another one has taken the place of.
pub(crate) fn replaced(path: &std::path::Path) -> PyErr {
    PyOSError::new_err(format!(
        "{} is another file than the one that was sent; open it again, and send that",
        path.display()
    ))
}
