//! What can be wrong with a file.

use std::io;

use thiserror::Error;

use crate::{HashKind, InvariantError};

use super::Kind;

/// A filter could not be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The reader or the writer failed; its error is inside.
    #[error("cannot read or write the filter: {0}")]
    Io(#[from] io::Error),
    /// The first bytes are not those of a filter.
    #[error("this is not a besom file: it begins with {found:02x?}")]
    NotBesom {
        /// What it begins with.
        found: [u8; 8],
    },
    /// Written by a later version of this crate.
    #[error(
        "format version {found} is newer than {supported}, the newest that this besom reads; update besom"
    )]
    NewerVersion {
        /// The file's version.
        found: u16,
        /// The newest version that this crate reads.
        supported: u16,
    },
    /// A kind of filter that this version does not know.
    #[error("this besom does not know filters of kind {code}; update besom")]
    UnknownKind {
        /// Its number.
        code: u16,
    },
    /// Another filter than the one that was asked for.
    #[error("the file holds a filter of kind {found}, not {expected}; load it as {found}")]
    WrongKind {
        /// What the file holds.
        found: Kind,
        /// What was asked for.
        expected: Kind,
    },
    /// Another hash function than that of the type that was asked for.
    #[error("the file's keys are hashed with {found}, not {expected}; load it with that hash function")]
    WrongHash {
        /// What the file says.
        found: HashKind,
        /// What was asked for.
        expected: HashKind,
    },
    /// The seed was left out of the file, and not given either.
    #[error("this file does not contain its seed; pass it with ReadOptions::seed")]
    SeedMissing,
    /// The seed that was given is not the one that the filter was made with.
    #[error(
        "this is not the seed that the filter was built with, so its keys would not be found; pass the right one"
    )]
    SeedMismatch,
    /// The header is damaged.
    #[error(
        "the header is damaged: its checksum is {computed:016x} instead of {stored:016x}; restore a backup"
    )]
    HeaderDamaged {
        /// The checksum in the file.
        stored: u64,
        /// The checksum of what is there.
        computed: u64,
    },
    /// The list of checksums is damaged.
    #[error(
        "the list of checksums is damaged: its own is {computed:016x} instead of {stored:016x}; restore a backup"
    )]
    ChecksumsDamaged {
        /// The checksum in the file.
        stored: u64,
        /// The checksum of what is there.
        computed: u64,
    },
    /// A part of the payload is damaged.
    #[error(
        "chunk {chunk}, at byte {offset}, is damaged: its checksum is {computed:016x} instead of {stored:016x}; \
         restore a backup, or rebuild the filter from its keys"
    )]
    ChunkDamaged {
        /// Which chunk, from 0.
        chunk: u64,
        /// Where it begins in the file.
        offset: u64,
        /// The checksum in the file.
        stored: u64,
        /// The checksum of what is there.
        computed: u64,
    },
    /// The input ends too early.
    #[error("the input ends after {found} of {expected} bytes; it was cut off, or is still being written")]
    Truncated {
        /// How many bytes there are, as far as is known.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// The input goes on behind the filter.
    #[error("the filter ends after {expected} bytes, but the input has {found}; cut the rest off")]
    TrailingBytes {
        /// How many bytes there are.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// A number in the file that no filter has. Checksums agree, so this was written so: by a bug, or with intent.
    #[error(
        "the file says that {name} is {value}, which no filter of this kind can have; rebuild the filter from its keys"
    )]
    BadNumber {
        /// What the number means.
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// The length of the payload does not fit the filter's parameters.
    #[error(
        "the filter needs {needed} more bytes, but the payload has {left}; rebuild the filter from its keys"
    )]
    WrongLength {
        /// What is still to be read.
        needed: u64,
        /// What is left of the payload.
        left: u64,
    },
    /// What was read is not a sound filter. Checksums agree, so this was written so: by a bug, or with intent.
    #[error("the filter in the file is not sound: {0}; rebuild it from its keys")]
    Unsound(#[from] InvariantError),
    /// Allocation failed.
    #[error("cannot allocate {bytes} bytes of memory; map the file instead of loading it")]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
}
