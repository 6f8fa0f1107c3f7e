//! The trait of filters that can be written and read.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use super::{
    Decoder, Encoder, FormatError, Header, Kind, ReadOptions, Region, WriteOptions, decoder, encoder, save,
};
use crate::Filter;

/// A filter that lasts: it can be written to files, streams and bytes, and read from them.
///
/// The same filter always gives the same bytes, on every platform and in every version that has this
/// [format version](super::VERSION). Reading checks everything: what comes back is a filter whose
/// [`verify`](Filter::verify) holds, or an error. [`open`](Self::open) alone checks only the header.
///
/// ```
/// use besom::format::{Persist, ReadOptions, WriteOptions};
/// use besom::quotient::QuotientFilter;
/// use besom::{Filter, Insert};
///
/// let mut filter = QuotientFilter::with_capacity(1000)?;
/// filter.insert("key")?;
/// let path = std::env::temp_dir().join(format!("besom-example-{}", std::process::id()));
/// filter.save(&path, &WriteOptions::new().generation(7))?;
///
/// let (loaded, header) = QuotientFilter::<besom::Xxh3>::load(&path, &ReadOptions::new())?;
/// assert!(loaded.contains("key"));
/// assert_eq!(header.generation, 7);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Persist: Filter + Sized {
    /// The kind of the filter; for a type that has filters of several kinds, the default.
    const KIND: Kind;

    /// Returns the kind of this filter.
    fn kind(&self) -> Kind {
        Self::KIND
    }

    /// Returns whether a filter of this type may be of this kind.
    #[must_use]
    fn may_be(kind: Kind) -> bool {
        kind == Self::KIND
    }

    /// Hands all parts of the filter to the encoder. Called twice for one file, and must do the same both times.
    ///
    /// # Errors
    ///
    /// The error of the encoder.
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError>;

    /// Builds the filter from the parts that the decoder returns, in the order in which the encoder got them.
    ///
    /// Checks everything that it takes to build the filter and to call its other functions without harm, but does not
    /// walk it: what [`verify`](Filter::verify) checks is checked there.
    ///
    /// # Errors
    ///
    /// The error of the decoder, or what is wrong with the parts.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError>;

    /// Writes the filter. Any writer will do: it need not seek.
    ///
    /// # Errors
    ///
    /// [`FormatError::Io`] if the writer fails.
    fn write_to(&self, writer: &mut impl Write, options: &WriteOptions) -> Result<(), FormatError> {
        encoder::write(self, writer, options)
    }

    /// Reads a filter, and not a byte more: what follows it in the stream is left there.
    ///
    /// Checks every chunk before it uses it. Takes at most three times as much memory as has arrived, and a constant.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what is wrong with the input.
    fn read_from(reader: &mut impl Read, options: &ReadOptions) -> Result<(Self, Header), FormatError> {
        decoder::read(reader, None, options)
    }

    /// Returns the filter as bytes.
    ///
    /// # Errors
    ///
    /// None in practice: memory grows like that of a `Vec`.
    fn to_bytes(&self, options: &WriteOptions) -> Result<Vec<u8>, FormatError> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes, options)?;
        Ok(bytes)
    }

    /// Reads a filter from all of these bytes. Takes as much memory as they do, and a constant.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what is wrong with the bytes.
    fn from_bytes(bytes: &[u8], options: &ReadOptions) -> Result<(Self, Header), FormatError> {
        read_all(&mut &*bytes, bytes.len() as u64, options)
    }

    /// Writes the filter to a file, and replaces an existing one.
    ///
    /// Even after a power failure the file is the old one or the new one: the bytes go to a file beside it
    /// (`.name.….new`, which stays behind if the process is killed), which is synced and then renamed.
    ///
    /// # Errors
    ///
    /// [`FormatError::Io`]. The file is the old one then, unless only syncing its directory failed.
    fn save(&self, path: impl AsRef<Path>, options: &WriteOptions) -> Result<(), FormatError> {
        save::replace(path.as_ref(), |mut file| self.write_to(&mut file, options))
    }

    /// Reads a filter from a file that holds nothing else. Takes as much memory as the file is long, and a constant.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what is wrong with the file.
    fn load(path: impl AsRef<Path>, options: &ReadOptions) -> Result<(Self, Header), FormatError> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        read_all(&mut file, len, options)
    }

    /// A filter that answers straight from a region, which is not read before it is asked for.
    ///
    /// **Nothing but the header is checked.** On a file that is damaged or was made by somebody else, answers may be
    /// wrong, keys may be missing and operations may panic, although memory stays safe. [`check`](super::check) finds
    /// damage; [`verify`](Filter::verify) finds what checksums do not.
    ///
    /// The first insertion, removal or repair copies what it changes into memory; the region never changes. Parts that
    /// do not begin on a cache line, since the region itself does not, are copied at once.
    ///
    /// # Errors
    ///
    /// [`FormatError`] says what is wrong with the header, or with the length of the region.
    fn open(region: &Region, options: &ReadOptions) -> Result<(Self, Header), FormatError> {
        decoder::open(region, options)
    }
}

/// Reads a filter from an input of known length that holds nothing else.
fn read_all<F: Persist>(
    reader: &mut dyn Read,
    len: u64,
    options: &ReadOptions,
) -> Result<(F, Header), FormatError> {
    let (filter, header) = decoder::read(reader, Some(len), options)?;
    decoder::exact_length(&header, len)?;
    Ok((filter, header))
}
