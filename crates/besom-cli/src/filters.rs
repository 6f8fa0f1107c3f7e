//! Filter files of every kind behind one interface.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use besom::any::{AnyFilter, AnyHasher};
use besom::format::{self, FormatError, Header, Kind, Persist, ReadOptions, Region, WriteOptions};
use besom::{FilterStats, HashKind, Seed, Sharded, SipHash, Xxh3};

use crate::error::{Failure, Outcome};
use crate::interrupt;
use crate::output::{check_target, is_stdout};

/// A filter of some kind, read from a file.
pub(crate) trait Opened {
    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>);
    fn stats(&self) -> FilterStats;
    fn promised_rate(&self) -> f64;
    fn write(&self, path: &Path, options: &WriteOptions) -> Result<(), FormatError>;
    fn write_to(&self, writer: &mut dyn Write, options: &WriteOptions) -> Result<(), FormatError>;
}

impl<F: Persist> Opened for F {
    fn contains_many(&self, keys: &[&[u8]], answers: &mut Vec<bool>) {
        besom::Filter::contains_many(self, keys, answers);
    }

    fn stats(&self) -> FilterStats {
        besom::Filter::stats(self)
    }

    fn promised_rate(&self) -> f64 {
        self.false_positive_rate()
    }

    fn write(&self, path: &Path, options: &WriteOptions) -> Result<(), FormatError> {
        self.save(path, options)
    }

    fn write_to(&self, mut writer: &mut dyn Write, options: &WriteOptions) -> Result<(), FormatError> {
        Persist::write_to(self, &mut writer, options)
    }
}

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Mapped into memory, and checked from end to end.
    Checked,
    /// Mapped into memory and believed: only the header is looked at.
    Trusted,
}

/// Opens a filter file by mapping it.
pub(crate) fn open(path: &Path, seed: Option<u128>, how: How) -> Outcome<(Box<dyn Opened>, Header)> {
    let (region, header) = map(path)?;
    open_region(&region, &header, seed, how).map_err(|source| named(path, source))
}

/// Maps a file, and reads its header.
pub(crate) fn map(path: &Path) -> Outcome<(Region, Header)> {
    let failed = |source| Failure::Io { what: path.display().to_string(), source };
    let file = File::open(path).map_err(failed)?;
    let there = file.metadata().map_err(failed)?;
    if there.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    // An empty file cannot be mapped.
    if there.len() == 0 {
        return Err(Failure::Usage(format!("{}: this is not a besom file: it is empty", path.display())));
    }
    // SAFETY: files of filters are replaced as a whole and never changed in place, neither by `save` nor by this
    // program. Anyone who changes one in place while it is being asked has been told not to.
    let region = unsafe { Region::map(&file) }.map_err(failed)?;
    let header = format::inspect(&mut &region[..]).map_err(|source| named(path, source))?;
    Ok((region, header))
}

/// An error of a file, with its name.
pub(crate) fn named(path: &Path, source: FormatError) -> Failure {
    Failure::Filter { path: path.to_owned(), source }
}

fn open_region(
    region: &Region,
    header: &Header,
    seed: Option<u128>,
    how: How,
) -> Result<(Box<dyn Opened>, Header), FormatError> {
    match header.hash {
        HashKind::SipHash => open_as::<SipHash>(region, header, seed, how),
        _ => open_as::<Xxh3>(region, header, seed, how),
    }
}

fn open_as<H: AnyHasher>(
    region: &Region,
    header: &Header,
    seed: Option<u128>,
    how: How,
) -> Result<(Box<dyn Opened>, Header), FormatError> {
    if header.kind == Kind::Sharded {
        return typed::<Sharded<AnyFilter<H>>>(region, seed, how).map(boxed);
    }
    typed::<AnyFilter<H>>(region, seed, how).map(boxed)
}

fn boxed<F: Persist + 'static>((filter, header): (F, Header)) -> (Box<dyn Opened>, Header) {
    (Box::new(filter), header)
}

/// A filter of a known type on a region.
pub(crate) fn typed<F: Persist>(
    region: &Region,
    seed: Option<u128>,
    how: How,
) -> Result<(F, Header), FormatError> {
    let options = seed.map_or_else(ReadOptions::new, |seed| ReadOptions::new().seed(Seed::from(seed)));
    if how == How::Checked {
        format::check(&mut &region[..])?;
    }
    let (filter, header) = F::open(region, &options)?;
    if how == How::Checked {
        filter.verify()?;
    }
    Ok((filter, header))
}

/// Saves a filter: the file is there as a whole or not at all. `-` is standard output. How many bytes it has.
pub(crate) fn save(filter: &dyn Opened, path: &Path, options: &WriteOptions) -> Outcome<u64> {
    check_target(path)?;
    if is_stdout(path) {
        let mut out = Counted { out: std::io::stdout().lock(), bytes: 0 };
        return match filter.write_to(&mut out, options).and_then(|()| Ok(out.flush()?)) {
            Ok(()) => Ok(out.bytes),
            Err(FormatError::Io(error)) => Err(Failure::Output(error)),
            Err(error) => Err(named(path, error)),
        };
    }
    interrupt::while_saving(|| filter.write(path, options)).map_err(|source| named(path, source))?;
    let there = std::fs::metadata(path).map_err(Failure::io(path.display().to_string()))?;
    Ok(there.len())
}

/// Counts what is written.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// A seed on the command line: decimal, or hexadecimal after `0x`.
pub(crate) fn seed(text: &str) -> Result<u128, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|error| format!("not a seed: {error}"))
}
