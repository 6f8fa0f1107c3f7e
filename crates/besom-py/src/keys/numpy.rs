//! Keys of NumPy arrays, read where they lie.
//!
//! The array says where its elements are through `__array_struct__`, which NumPy has had since its first version; the
//! buffer protocol is not part of the stable interface of Python 3.10.

use std::ffi::{c_char, c_int};
use std::ops::Range;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::{Chunk, Column, Packed, Work, column, objects};

/// What NumPy says of an array; see "The array interface protocol" in its manual.
#[repr(C)]
struct ArrayInterface {
    two: c_int,
    dimensions: c_int,
    kind: c_char,
    item_size: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *const u8,
    descr: *mut ffi::PyObject,
}

/// The elements lie one behind the other.
const CONTIGUOUS: c_int = 0x1;
/// Their bytes are in the machine's order.
const NATIVE: c_int = 0x200;

/// Whether this is an array of NumPy. Does not import NumPy.
pub(super) fn is_array(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    let modules = keys.py().import("sys")?.getattr("modules")?;
    match modules.call_method1("get", ("numpy",))? {
        numpy if numpy.is_none() => Ok(false),
        numpy => keys.is_instance(&numpy.getattr("ndarray")?),
    }
}

/// The array that an object is converted to.
pub(super) fn from_any<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    keys.py().import("numpy")?.call_method1("asarray", (keys,))
}

/// Works on the keys of an array.
pub(super) fn array(keys: &Bound<'_, PyAny>, work: &mut Work<'_>) -> PyResult<()> {
    let element = keys.getattr("dtype")?;
    let kind: char = element.getattr("kind")?.extract()?;
    if "fcbMm".contains(kind) || !element.getattr("names")?.is_none() {
        return Err(PyTypeError::new_err(format!(
            "an array of {element} has no keys; use integers, fixed-width strings or objects, or array.view(\"int64\") for bits"
        )));
    }
    if !"iuSUV".contains(kind) {
        check_dimensions(keys.getattr("ndim")?.extract()?)?;
        return objects(&keys.call_method0("tolist")?, work);
    }
    refuse_masked(keys)?;
    let (mut capsule, mut interface) = interface_of(keys)?;
    check_dimensions(interface.dimensions)?;
    if !interface.is_plain() {
        let native = element.call_method1("newbyteorder", ("=",))?;
        let copy = keys.py().import("numpy")?.call_method1("ascontiguousarray", (keys, native))?;
        (capsule, interface) = interface_of(&copy)?;
        if !interface.is_plain() {
            return Err(PyTypeError::new_err(format!(
                "an array of {element} has no keys; use array.tolist()"
            )));
        }
    }
    let elements = Elements::new(&interface)?;
    let done = column(keys.py(), &elements, work);
    drop(capsule); // which has kept the memory of the array
    done
}

/// A masked array has something where it has no value.
fn refuse_masked(keys: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(mask) = keys.getattr_opt("mask")? else { return Ok(()) };
    if !keys.py().import("numpy")?.call_method1("any", (mask,))?.is_truthy()? {
        return Ok(());
    }
    Err(PyValueError::new_err("some of these keys are masked; use array.compressed(), which leaves them out"))
}

impl ArrayInterface {
    /// Whether the elements lie one behind the other, in the machine's order.
    fn is_plain(&self) -> bool {
        self.flags & (CONTIGUOUS | NATIVE) == CONTIGUOUS | NATIVE
    }
}

fn check_dimensions(dimensions: c_int) -> PyResult<()> {
    if dimensions == 1 {
        return Ok(());
    }
    let error = format!("an array of {dimensions} dimensions is no list of keys; use array.ravel()");
    Err(PyValueError::new_err(error))
}

/// What NumPy says of an array, and the capsule that keeps it.
fn interface_of<'py>(array: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyCapsule>, ArrayInterface)> {
    let capsule = array.getattr("__array_struct__")?.cast_into::<PyCapsule>()?;
    // SAFETY: the object is an instance of numpy.ndarray, whose capsules have no name and point to this struct, which
    // lives as long as the capsule and is copied here.
    let interface = unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null());
        if pointer.is_null() {
            return Err(PyErr::fetch(array.py()));
        }
        pointer.cast::<ArrayInterface>().read()
    };
    if interface.two != 2 {
        return Err(PyTypeError::new_err(
            "this array is of a NumPy that is not known here; use array.tolist()",
        ));
    }
    Ok((capsule, interface))
}

/// The elements of a contiguous array of one dimension.
struct Elements {
    data: *const u8,
    len: usize,
    size: usize,
    kind: u8,
}

// SAFETY: the elements are only read, by copying them out. (Another thread that changes the array at the same time
// makes keys of whatever it has written so far; the same happens in NumPy.)
unsafe impl Sync for Elements {}

impl Elements {
    fn new(interface: &ArrayInterface) -> PyResult<Self> {
        // SAFETY: an array of one dimension has one number there.
        let len = unsafe { interface.shape.read() };
        let (len, size) = (usize::try_from(len)?, usize::try_from(interface.item_size)?);
        Ok(Self { data: interface.data, len, size, kind: interface.kind.cast_unsigned() })
    }

    /// Copies an element into the place of another: some thread may be writing to it.
    fn copy<T>(&self, row: usize, into: &mut Vec<T>) {
        let parts = self.size / size_of::<T>();
        // SAFETY: the array has this row, and each has `size` bytes. Parts of any address are read.
        let part = |index| unsafe { self.data.cast::<T>().add(row * parts + index).read_unaligned() };
        into.clear();
        into.extend((0..parts).map(part));
    }
}

impl Column for Elements {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, rows: Range<usize>, chunk: &mut Chunk) -> PyResult<()> {
        match self.kind {
            b'i' | b'u' => {
                let signed = self.kind == b'i';
                // SAFETY: the rows are some of the array's, which is alive.
                unsafe { widen(self.data, rows, (signed, self.size), chunk.words()) };
            }
            b'U' => {
                let mut codes: Vec<u32> = Vec::new();
                for row in rows {
                    self.copy(row, &mut codes);
                    push_text(&codes, chunk.packed())?;
                }
            }
            kind => {
                let mut bytes: Vec<u8> = Vec::new();
                for row in rows {
                    self.copy(row, &mut bytes);
                    chunk.packed().push(if kind == b'S' { without_end(&bytes) } else { &bytes });
                }
            }
        }
        Ok(())
    }
}

/// Integers of any width as those of 64 bits, which Python's are.
///
/// # Safety
///
/// From `data` on there are at least `rows.end` integers of `size` bytes.
pub(super) unsafe fn widen(
    data: *const u8,
    rows: Range<usize>,
    (signed, size): (bool, usize),
    words: &mut Vec<u64>,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match (signed, size) {
            (true, 1) => widen_each(data, rows, words, |element: i8| i64::from(element).cast_unsigned()),
            (true, 2) => widen_each(data, rows, words, |element: i16| i64::from(element).cast_unsigned()),
            (true, 4) => widen_each(data, rows, words, |element: i32| i64::from(element).cast_unsigned()),
            (false, 1) => widen_each(data, rows, words, |element: u8| u64::from(element)),
            (false, 2) => widen_each(data, rows, words, |element: u16| u64::from(element)),
            (false, 4) => widen_each(data, rows, words, |element: u32| u64::from(element)),
            _ => widen_each(data, rows, words, |element: u64| element),
        }
    }
}

/// # Safety
///
/// From `data` on there are at least `rows.end` elements.
unsafe fn widen_each<T>(data: *const u8, rows: Range<usize>, words: &mut Vec<u64>, widen: impl Fn(T) -> u64) {
    // SAFETY: the rows are in the array. Elements of any address are read.
    words.extend(rows.map(|row| widen(unsafe { data.cast::<T>().add(row).read_unaligned() })));
}

/// A fixed-width string ends before the zeros that fill it up, as NumPy has it.
fn without_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &text[..end]
}

/// Appends a string of characters of four bytes each, as UTF-8.
fn push_text(codes: &[u32], packed: &mut Packed) -> PyResult<()> {
    let end = codes.iter().rposition(|&code| code != 0).map_or(0, |last| last + 1);
    packed.try_push_with(|bytes| {
        for &code in &codes[..end] {
            let letter = char::from_u32(code).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "{code:#x} is no character; encode the strings as bytes yourself"
                ))
            })?;
            bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    })
}
