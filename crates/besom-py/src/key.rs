//! From Python objects to the bytes of keys: the same ones that `besom::Key` has in Rust.
//!
//! | Python | Rust |
//! |---|---|
//! | `str` | `str` |
//! | `bytes` | `[u8]` |
//! | `int` from 0 to 2^64 - 1, NumPy's integers | `u64` |
//! | `int` from -2^63 to -1 | `i64` |
//! | `uuid.UUID` | `[u8; 16]`, as `uuid.bytes` has them |
//! | `tuple` of two and more | a tuple; more than four as one that ends with a tuple |

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString, PyTuple, PyType};

/// Tuples may be nested this deep: whoever builds one deeper builds it to overflow a stack.
const MAX_DEPTH: usize = 16;

/// Calls `f` with the bytes of a key. Copies nothing if it is one string or some bytes.
///
/// # Errors
///
/// `TypeError` for objects that are no keys, and what else [`write`] says.
#[inline]
pub(crate) fn with_key<R>(key: &Bound<'_, PyAny>, f: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
    if let Ok(text) = key.cast_exact::<PyString>() {
        return Ok(f(text.to_str()?.as_bytes()));
    }
    if key.is_exact_instance_of::<PyInt>() {
        return Ok(f(&integer(key)?.0.to_le_bytes()));
    }
    if let Ok(bytes) = key.cast_exact::<PyBytes>() {
        return Ok(f(bytes.as_bytes()));
    }
    let mut bytes = Vec::new();
    write(key, &mut bytes, &mut Shape::default())?;
    Ok(f(&bytes))
}

/// Appends the bytes of a key.
///
/// # Errors
///
/// `TypeError`, `OverflowError`, `ValueError` or `UnicodeEncodeError`: each says what to do. Some bytes may have been
/// appended.
#[inline]
pub(crate) fn append(key: &Bound<'_, PyAny>, bytes: &mut Vec<u8>) -> PyResult<()> {
    with_key(key, |key| bytes.extend_from_slice(key))
}

/// Appends the bytes of a key, and notes what they were made of.
///
/// # Errors
///
/// As [`append`].
pub(crate) fn write(key: &Bound<'_, PyAny>, bytes: &mut Vec<u8>, shape: &mut Shape) -> PyResult<()> {
    write_nested(key, bytes, shape, 0)
}

fn write_nested(
    key: &Bound<'_, PyAny>,
    bytes: &mut Vec<u8>,
    shape: &mut Shape,
    depth: usize,
) -> PyResult<()> {
    if let Ok(text) = key.cast::<PyString>() {
        shape.types.push(b's');
        bytes.extend_from_slice(text.to_str()?.as_bytes());
    } else if let Ok(part) = key.cast::<PyBytes>() {
        shape.types.push(b'b');
        bytes.extend_from_slice(part.as_bytes());
    } else if is_bool(key) {
        return Err(unfit(key, "use int(key)"));
    } else if key.is_instance_of::<PyInt>() {
        write_integer(key, bytes, shape)?;
    } else if let Ok(parts) = key.cast::<PyTuple>() {
        return write_tuple(parts, bytes, shape, depth + 1);
    } else if let Some(uuid) = uuid_bytes(key)? {
        shape.types.push(b'u');
        bytes.extend_from_slice(&uuid);
    } else {
        write_integer(&as_index(key)?, bytes, shape)?;
    }
    Ok(())
}

/// A tuple is the bytes of its parts, each but the last behind its length.
fn write_tuple(
    parts: &Bound<'_, PyTuple>,
    bytes: &mut Vec<u8>,
    shape: &mut Shape,
    depth: usize,
) -> PyResult<()> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!(
            "tuples as keys may be nested {MAX_DEPTH} deep, no deeper"
        )));
    }
    if parts.len() < 2 {
        return Err(PyTypeError::new_err(format!(
            "a tuple of {} is no key; use tuples of at least two parts, or the part itself",
            parts.len()
        )));
    }
    shape.types.push(b'(');
    for (index, part) in parts.iter_borrowed().enumerate() {
        let is_last = index + 1 == parts.len();
        let start = bytes.len();
        if !is_last {
            bytes.extend_from_slice(&[0; 8]);
        }
        write_nested(&part, bytes, shape, depth)?;
        if !is_last {
            let length = (bytes.len() - start - 8) as u64;
            bytes[start..start + 8].copy_from_slice(&length.to_le_bytes());
        }
    }
    shape.types.push(b')');
    Ok(())
}

fn write_integer(key: &Bound<'_, PyAny>, bytes: &mut Vec<u8>, shape: &mut Shape) -> PyResult<()> {
    let (word, sign) = integer(key)?;
    shape.types.push(b'i');
    shape.negative |= sign == Sign::Negative;
    shape.large |= sign == Sign::Large;
    bytes.extend_from_slice(&word.to_le_bytes());
    Ok(())
}

/// Where an integer lies.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Negative,
    /// `u64` and `i64` have it, and with the same bytes.
    Common,
    /// From 2^63 on.
    Large,
}

/// An integer as the 64 bits that it has in Rust.
#[inline]
fn integer(key: &Bound<'_, PyAny>) -> PyResult<(u64, Sign)> {
    let mut overflow = 0;
    // SAFETY: the object is an int, as all callers have checked, and alive.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(key.as_ptr(), &mut overflow) };
    if overflow == 0 {
        return Ok((value.cast_unsigned(), if value < 0 { Sign::Negative } else { Sign::Common }));
    }
    match key.extract::<u64>() {
        Ok(value) if overflow > 0 => Ok((value, Sign::Large)),
        _ => Err(PyOverflowError::new_err(
            "an int is a key of 64 bits, from -2**63 to 2**64 - 1; for wider ones use bytes, such as \
             key.to_bytes(16, \"little\"), which is an u128 in Rust",
        )),
    }
}

/// Whether this is a truth value, Python's or NumPy's: some versions of NumPy let theirs count as an index.
fn is_bool(key: &Bound<'_, PyAny>) -> bool {
    let numpy = || key.get_type().name().is_ok_and(|name| name == "bool" || name == "bool_");
    key.is_instance_of::<PyBool>() || numpy()
}

/// The int that an object counts as: what counts as an index is an integer, as NumPy's are.
fn as_index<'py>(key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the object is alive; the result is a new reference, or null with an exception set, which is fetched.
    let index = unsafe { Bound::from_owned_ptr_or_err(key.py(), ffi::PyNumber_Index(key.as_ptr())) };
    // What else the object raises, an interrupt for one, is not about its type.
    index.map_err(
        |error| if error.is_instance_of::<PyTypeError>(key.py()) { unfit(key, ADVICE) } else { error },
    )
}

/// The bytes of a UUID.
fn uuid_bytes(key: &Bound<'_, PyAny>) -> PyResult<Option<[u8; 16]>> {
    static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if !key.is_instance(UUID.import(key.py(), "uuid", "UUID")?)? {
        return Ok(None);
    }
    Ok(Some(key.getattr("bytes")?.extract()?))
}

const ADVICE: &str = "use str, bytes, int, uuid.UUID or a tuple of these; of other objects, their bytes";

fn unfit(key: &Bound<'_, PyAny>, advice: &str) -> PyErr {
    let name = key.get_type().qualname().map_or_else(|_| "object".into(), |name| name.to_string());
    PyTypeError::new_err(format!("a key cannot be of type {name}; {advice}"))
}

/// What the bytes of a key were made of. Objects of one shape are equal if their bytes are; of two, they need not be.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Shape {
    /// A letter for each part, and parentheses for tuples.
    types: Vec<u8>,
    /// A part is below 0.
    negative: bool,
    /// A part is 2^63 or more. Such a part and a negative one can have the same bytes.
    large: bool,
}

/// What the keys of a mapping are made of, for all who note it.
#[derive(Clone)]
pub(crate) struct Shapes {
    known: Arc<Mutex<Shape>>,
    /// The mapping takes text for its bytes: `"a"` and `b"a"` are one key there.
    text_is_bytes: bool,
}

impl Shapes {
    /// Those of a mapping, of whose keys none was seen.
    pub(crate) fn new(mapping: &Bound<'_, PyAny>) -> PyResult<Self> {
        let module = mapping.get_type().module()?;
        let text_is_bytes = ["dbm.dumb", "dbm.sqlite3", "_dbm", "_gdbm"].iter().any(|dbm| module == *dbm);
        Ok(Self { known: Arc::default(), text_is_bytes })
    }

    /// Appends the bytes of a key that the mapping has or is about to have.
    ///
    /// # Errors
    ///
    /// As [`append`], and `TypeError` if its bytes could be those of another key.
    pub(crate) fn admit(&self, key: &Bound<'_, PyAny>, bytes: &mut Vec<u8>) -> PyResult<()> {
        let shape = self.shape(key, bytes)?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).unite(shape)
    }

    /// The same for a key that somebody asks about.
    ///
    /// # Errors
    ///
    /// As [`admit`](Self::admit).
    pub(crate) fn compare(&self, key: &Bound<'_, PyAny>, bytes: &mut Vec<u8>) -> PyResult<()> {
        let shape = self.shape(key, bytes)?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone().unite(shape)
    }

    fn shape(&self, key: &Bound<'_, PyAny>, bytes: &mut Vec<u8>) -> PyResult<Shape> {
        let mut shape = Shape::default();
        write(key, bytes, &mut shape)?;
        if self.text_is_bytes && shape.types == b"s" {
            shape.types = b"b".to_vec();
        }
        Ok(shape)
    }
}

impl Shape {
    /// Takes another key in, if keys of this shape so far and this one can be told apart by their bytes.
    ///
    /// # Errors
    ///
    /// `TypeError` if not.
    fn unite(&mut self, other: Self) -> PyResult<()> {
        if self.types.is_empty() {
            *self = other;
            return Ok(());
        }
        if self.types != other.types {
            return Err(PyTypeError::new_err(format!(
                "the keys of a guard must be of one type: the first one was {}, and this one is {}; different keys would \
                 have the same bytes otherwise",
                self.name(),
                other.name()
            )));
        }
        let (negative, large) = (self.negative || other.negative, self.large || other.large);
        if negative && large {
            return Err(PyTypeError::new_err(
                "the integers of a guard must be from -2**63 to 2**63 - 1 or from 0 to 2**64 - 1; -1 and 2**64 - 1 have the \
                 same bytes",
            ));
        }
        (self.negative, self.large) = (negative, large);
        Ok(())
    }

    fn name(&self) -> String {
        match self.types.as_slice() {
            b"s" => "str".into(),
            b"b" => "bytes".into(),
            b"i" => "int".into(),
            b"u" => "UUID".into(),
            parts => format!("a tuple {}", String::from_utf8_lossy(parts)),
        }
    }
}
