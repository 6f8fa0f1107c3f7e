//! Filters that last: one file format for all of them.
//!
//! [`Persist`] writes and reads filters as streams, bytes and files, and opens them on a [`Region`] (a memory map, say)
//! without reading them. [`inspect`] says what a file holds, [`check`] whether it is intact. `docs/formats.md` draws
//! the format. [`delta`](crate::delta) has what changed between two files, [`AnyFilter`](crate::any::AnyFilter) opens a
//! file of any kind.
//!
//! ```text
//! | header       | checksums of the chunks, | payload: sections, each padded   |
//! | (192 bytes,  | padded to a cache line   | to a cache line                  |
//! | short: 128)  |                          |                                  |
//! ```
//!
//! Everything is little-endian. A payload is cut into chunks of 64 KiB, and damage is found chunk by chunk while
//! reading. Since the sections begin on cache lines, a file that is mapped into memory is the filter.

mod decoder;
mod encoder;
mod error;
mod header;
mod kind;
mod options;
mod persist;
pub(crate) mod rice;
mod runs;
mod save;
mod source;

use std::io::Read;

pub use crate::bits::Region;
pub use decoder::Decoder;
pub(crate) use decoder::{exact_length, flag, in_range, number, unsound};
pub use encoder::Encoder;
pub(crate) use encoder::write;
pub use error::FormatError;
pub use header::Header;
#[cfg(any(test, feature = "testing"))]
pub(crate) use header::reseal;
pub(crate) use header::{CHUNK, SIZE as HEADER_SIZE};
pub use kind::{Kind, UnknownKind};
pub use options::{ReadOptions, WriteOptions};
pub use persist::Persist;
pub(crate) use runs::{HasRuns, RunItem, Runs};

/// The version that is written, and the newest one that is read.
pub const VERSION: u16 = 2;

/// The seed of filters that are parts of others, which hash for them.
const NESTED_SEED: u64 = 0;

/// Reads the header of a file and nothing else: what filter it is, and how large.
///
/// ```
/// use besom::format::{Kind, Persist, inspect};
/// use besom::tinyset::TinySet;
///
/// let bytes = TinySet::with_capacity(100)?.to_bytes(&Default::default())?;
/// let header = inspect(&mut &bytes[..])?;
/// assert_eq!((header.kind, header.capacity), (Kind::TinySet, 100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`FormatError`] if the bytes are not the header of a filter file.
pub fn inspect(reader: &mut impl Read) -> Result<Header, FormatError> {
    Header::read(reader)
}

/// Reads a filter of any kind to its end and checks header and checksums: whether it is as it was written.
///
/// # Errors
///
/// [`FormatError`] says what is damaged, and where.
pub fn check(reader: &mut impl Read) -> Result<Header, FormatError> {
    decoder::check(reader)
}
