//! Keys of Arrow arrays, read where they lie: pyarrow, polars, pandas and everything else that exports them through the
//! Arrow C data interface.
//!
//! The interface is a contract in C: whoever exports an array promises that its buffers are as long as its length and
//! its offsets say, that they stay as they are, and that they live until the array is released. Capsules release what
//! is in them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{Chunk, Column, Work, column, numpy};

#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowStream)>,
    private_data: *mut c_void,
}

/// Works on the keys of an object that exports Arrow data. `false`, and nothing happens, if it does not.
pub(super) fn exported(keys: &Bound<'_, PyAny>, work: &mut Work<'_>) -> PyResult<bool> {
    if keys.hasattr("__arrow_c_array__")? {
        let capsules = keys.call_method0("__arrow_c_array__")?.cast_into::<PyTuple>()?;
        let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
        let schema = pointer::<ArrowSchema>(&schema, c"arrow_schema")?;
        let array = pointer::<ArrowArray>(&array, c"arrow_array")?;
        // SAFETY: both are alive as long as their capsules, and so as long as `capsules`.
        let (layout, array) = unsafe { (Layout::of(&*schema)?, &*array) };
        one(keys.py(), layout, array, 0, work)?;
        return Ok(true);
    }
    if keys.hasattr("__arrow_c_stream__")? {
        let capsule = keys.call_method0("__arrow_c_stream__")?;
        stream(keys.py(), pointer::<ArrowStream>(&capsule, c"arrow_array_stream")?, work)?;
        return Ok(true);
    }
    Ok(false)
}

/// What a capsule of this name points to.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<*mut T> {
    // SAFETY: Python checks that it is a capsule of this name.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) };
    if pointer.is_null() { Err(PyErr::fetch(capsule.py())) } else { Ok(pointer.cast()) }
}

/// The arrays of a stream, one after the other.
fn stream(py: Python<'_>, stream: *mut ArrowStream, work: &mut Work<'_>) -> PyResult<()> {
    let mut schema = Owned(std::mem::MaybeUninit::<ArrowSchema>::zeroed());
    // SAFETY: the stream is alive, since its capsule is. A structure of zeros is one that was released.
    unsafe { called(stream, (*stream).get_schema, schema.0.as_mut_ptr())? };
    // SAFETY: it was just written, and lives until it is dropped.
    let layout = unsafe { Layout::of(&*schema.0.as_ptr())? };
    let mut before = 0;
    loop {
        let mut array = Owned(std::mem::MaybeUninit::<ArrowArray>::zeroed());
        // SAFETY: as above.
        let array = unsafe {
            called(stream, (*stream).get_next, array.0.as_mut_ptr())?;
            if (*array.0.as_ptr()).release.is_none() {
                return Ok(()); // the end of the stream
            }
            &*array.0.as_ptr()
        };
        before += one(py, layout, array, before, work)?;
    }
}

/// Calls a function of a stream.
///
/// # Safety
///
/// The stream and the target are alive.
unsafe fn called<T>(
    stream: *mut ArrowStream,
    function: Option<unsafe extern "C" fn(*mut ArrowStream, *mut T) -> c_int>,
    target: *mut T,
) -> PyResult<()> {
    let broken = || PyValueError::new_err("the Arrow stream was released; export it again");
    // SAFETY: the stream is alive, as the caller promises.
    let code = unsafe { function.ok_or_else(broken)?(stream, target) };
    if code == 0 {
        return Ok(());
    }
    // SAFETY: as above; the text is alive until the next call.
    let text = unsafe {
        let text = (*stream).get_last_error.map_or(std::ptr::null(), |last| last(stream));
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    Err(PyValueError::new_err(format!("the Arrow stream failed: {}", text.unwrap_or_default())))
}

/// A structure of our own that releases what it holds.
struct Owned<T: Released>(std::mem::MaybeUninit<T>);

trait Released {
    /// Gives back what is held.
    ///
    /// # Safety
    ///
    /// `this` is alive, and holds nothing or what a stream put there.
    // SAFETY: said above, for those who call it.
    unsafe fn release(this: *mut Self);
}

macro_rules! released {
    ($($structure:ident)*) => {$(
        impl Released for $structure {
            // SAFETY: the trait says what callers owe.
            unsafe fn release(this: *mut Self) {
                // SAFETY: it is alive; without the function it holds nothing.
                unsafe { (*this).release.map(|release| release(this)) };
            }
        }
    )*};
}
released!(ArrowSchema ArrowArray);

impl<T: Released> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: it was zeroed when it was made, so it holds nothing or what a stream put there.
        unsafe { T::release(self.0.as_mut_ptr()) };
    }
}

/// How the keys of an array lie.
#[derive(Clone, Copy)]
enum Layout {
    /// Integers: whether they have a sign, and their size.
    Integers(bool, usize),
    /// Offsets of 32 bits, and the bytes.
    Short,
    /// Offsets of 64 bits, and the bytes.
    Long,
    /// Views of 16 bytes: the bytes themselves, or where they are.
    Views,
    /// This many bytes each.
    Fixed(usize),
}

impl Layout {
    fn of(schema: &ArrowSchema) -> PyResult<Self> {
        // SAFETY: a schema has a format.
        let format = unsafe { CStr::from_ptr(schema.format) }.to_string_lossy();
        let unfit = || {
            PyTypeError::new_err(format!(
                "an Arrow array of format {format:?} has no keys; cast it to integers, strings or binary, or give one column"
            ))
        };
        if !schema.dictionary.is_null() {
            return Err(PyTypeError::new_err(
                "an Arrow array with a dictionary has no keys itself; cast it to strings",
            ));
        }
        Ok(match &*format {
            "c" => Self::Integers(true, 1),
            "s" => Self::Integers(true, 2),
            "i" => Self::Integers(true, 4),
            "l" => Self::Integers(true, 8),
            "C" => Self::Integers(false, 1),
            "S" => Self::Integers(false, 2),
            "I" => Self::Integers(false, 4),
            "L" => Self::Integers(false, 8),
            "u" | "z" => Self::Short,
            "U" | "Z" => Self::Long,
            "vu" | "vz" => Self::Views,
            other => {
                Self::Fixed(other.strip_prefix("w:").and_then(|size| size.parse().ok()).ok_or_else(unfit)?)
            }
        })
    }
}

/// The keys of one array, which comes behind so many others. Returns how many there are.
fn one(
    py: Python<'_>,
    layout: Layout,
    array: &ArrowArray,
    before: usize,
    work: &mut Work<'_>,
) -> PyResult<usize> {
    let (len, offset) = (usize::try_from(array.length)?, usize::try_from(array.offset)?);
    if len == 0 {
        return Ok(0);
    }
    let values = Values { layout, array, len, offset };
    if let Some(row) = values.first_null() {
        return Err(PyValueError::new_err(format!(
            "there is no key at {}, but a null; drop the nulls first",
            before + row
        )));
    }
    column(py, &values, work)?;
    Ok(len)
}

/// The values of an array that is alive.
struct Values<'a> {
    layout: Layout,
    array: &'a ArrowArray,
    len: usize,
    /// The first value's place in the buffers.
    offset: usize,
}

// SAFETY: the buffers of an array do not change while it lives, and nothing else of it is used.
unsafe impl Sync for Values<'_> {}

impl Values<'_> {
    fn buffer(&self, index: usize) -> *const u8 {
        // SAFETY: the layouts have two buffers (one of nulls, one of values), those of strings three and more; `index`
        // is one of them.
        unsafe { self.array.buffers.add(index).read().cast() }
    }

    /// The first row that has no value.
    fn first_null(&self) -> Option<usize> {
        let bits = self.buffer(0);
        if self.array.null_count == 0 || bits.is_null() {
            return None;
        }
        // SAFETY: there is a bit for every value.
        let is_valid = |at: usize| unsafe { bits.add(at / 8).read() } >> (at % 8) & 1 == 1;
        (0..self.len).find(|row| !is_valid(self.offset + row))
    }

    /// The bytes of a value; its row is in the array.
    fn bytes(&self, row: usize) -> &[u8] {
        let at = self.offset + row;
        // SAFETY: the row is in the array, and the buffers are as the layout says; see the head of this file.
        unsafe {
            match self.layout {
                Layout::Short => {
                    let ends = self.buffer(1).cast::<i32>();
                    self.slice(2, ends.add(at).read() as usize, ends.add(at + 1).read() as usize)
                }
                Layout::Long => {
                    let ends = self.buffer(1).cast::<i64>();
                    self.slice(2, ends.add(at).read() as usize, ends.add(at + 1).read() as usize)
                }
                Layout::Views => self.viewed(at),
                Layout::Fixed(size) => self.slice(1, at * size, (at + 1) * size),
                Layout::Integers(..) => &[],
            }
        }
    }

    /// Some bytes of a buffer. Empty ones of none: an array of empty strings may have no buffer for them.
    ///
    /// # Safety
    ///
    /// The buffer has these bytes.
    unsafe fn slice(&self, buffer: usize, start: usize, end: usize) -> &[u8] {
        if start >= end {
            return &[];
        }
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(self.buffer(buffer).add(start), end - start) }
    }

    /// The bytes that a view shows: a length, and up to 12 bytes or 4 bytes, the number of a buffer and an offset.
    ///
    /// # Safety
    ///
    /// The array has this many views, and more.
    unsafe fn viewed(&self, at: usize) -> &[u8] {
        // SAFETY: the view is there, and what it says is so.
        unsafe {
            let view = self.buffer(1).add(16 * at);
            let word = |index: usize| view.cast::<i32>().add(index).read_unaligned() as usize;
            let len = word(0);
            if len <= 12 {
                return std::slice::from_raw_parts(view.add(4), len);
            }
            self.slice(2 + word(2), word(3), word(3) + len)
        }
    }
}

impl Column for Values<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, rows: Range<usize>, chunk: &mut Chunk) -> PyResult<()> {
        if let Layout::Integers(signed, size) = self.layout {
            let at = self.offset + rows.start..self.offset + rows.end;
            // SAFETY: the rows are in the array, whose second buffer has the integers.
            unsafe { numpy::widen(self.buffer(1), at, (signed, size), chunk.words()) };
            return Ok(());
        }
        let packed = chunk.packed();
        rows.for_each(|row| packed.push(self.bytes(row)));
        Ok(())
    }
}
