//! Queries, once through whatever they come from and then from a temporary file: every filter gets the same ones, and
//! memory does not grow with them.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::Arc;

use crate::error::{Failure, Outcome};

/// The number of a key that is in no set.
pub(super) const STRANGER: u32 = u32::MAX;

/// Queries on their way to the file.
pub(super) struct Recorder {
    file: BufWriter<File>,
    count: u64,
    bytes: u64,
}

/// Queries that can be replayed, by several threads at once.
#[derive(Clone)]
pub(super) struct Queries {
    file: Arc<File>,
    /// Where the first one that counts begins.
    start: u64,
    /// How many there are from there on.
    count: u64,
    /// Keys with smaller numbers are stored.
    stored: u32,
}

impl Recorder {
    pub(super) fn new() -> Outcome<Self> {
        let file = tempfile::tempfile().map_err(temporary)?;
        Ok(Self { file: BufWriter::with_capacity(1 << 18, file), count: 0, bytes: 0 })
    }

    /// Records a query for a key that has this number, or none.
    pub(super) fn push(&mut self, number: u32, key: &[u8]) -> Outcome<()> {
        // No line is longer than a megabyte.
        let length = key.len() as u32;
        let write = |file: &mut BufWriter<File>| {
            file.write_all(&number.to_le_bytes())?;
            file.write_all(&length.to_le_bytes())?;
            file.write_all(key)
        };
        write(&mut self.file).map_err(temporary)?;
        self.count += 1;
        self.bytes += 2 * size_of::<u32>() as u64 + u64::from(length);
        Ok(())
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// How many bytes were recorded.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The queries from the `skipped`th on, which begins at `start`.
    pub(super) fn finish(self, start: u64, skipped: u64, stored: u32) -> Outcome<Queries> {
        let count = self.count - skipped;
        let file = self.file.into_inner().map_err(|error| temporary(error.into_error()))?;
        Ok(Queries { file: Arc::new(file), start, count, stored })
    }
}

fn temporary(source: io::Error) -> Failure {
    Failure::Io { what: format!("{} (temporary files)", std::env::temp_dir().display()), source }
}

/// Some queries in memory.
#[derive(Default)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    /// Where each key ends, and whether it is stored.
    ends: Vec<(usize, bool)>,
}

impl Chunk {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The keys, and whether they are stored.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, stored)| {
            let key = &self.bytes[start..end];
            start = end;
            (key, stored)
        })
    }
}

/// Queries that are read at once, and the bytes after which no more are: a megabyte a line must not add up.
const AT_ONCE: usize = 1 << 15;
const BYTES_AT_ONCE: usize = 1 << 22;

impl Queries {
    pub(super) fn len(&self) -> u64 {
        self.count
    }

    /// Hands all queries to the visitor, a chunk at a time, until it says no.
    pub(super) fn replay(&self, visit: &mut dyn FnMut(&Chunk) -> Outcome<bool>) -> Outcome<()> {
        let mut reader = BufReader::with_capacity(1 << 18, From { file: &self.file, offset: self.start });
        let (mut chunk, mut left) = (Chunk::default(), self.count);
        while left > 0 {
            self.fill(&mut reader, &mut chunk, left).map_err(temporary)?;
            left -= chunk.len() as u64;
            if !visit(&chunk)? {
                break;
            }
        }
        Ok(())
    }

    /// The first queries, and the rest.
    pub(super) fn split(self, first: u64) -> Outcome<(Self, Self)> {
        let first = Self { count: first.min(self.count), ..self.clone() };
        let mut start = self.start;
        first.replay(&mut |chunk| {
            start += (chunk.bytes.len() + chunk.len() * 2 * size_of::<u32>()) as u64;
            Ok(true)
        })?;
        let count = self.count - first.count;
        Ok((first, Self { start, count, ..self }))
    }

    fn fill(&self, reader: &mut impl Read, chunk: &mut Chunk, left: u64) -> io::Result<()> {
        chunk.bytes.clear();
        chunk.ends.clear();
        while (chunk.len() as u64) < left && chunk.len() < AT_ONCE && chunk.bytes.len() < BYTES_AT_ONCE {
            let (mut number, mut length) = ([0; 4], [0; 4]);
            reader.read_exact(&mut number)?;
            reader.read_exact(&mut length)?;
            let (start, length) = (chunk.bytes.len(), u32::from_le_bytes(length) as usize);
            chunk.bytes.resize(start + length, 0);
            reader.read_exact(&mut chunk.bytes[start..])?;
            chunk.ends.push((start + length, u32::from_le_bytes(number) < self.stored));
        }
        Ok(())
    }
}

/// A file from some place on, whoever else reads it.
struct From<'f> {
    file: &'f File,
    offset: u64,
}

impl Read for From<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(self.file, buffer, self.offset)?;
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(self.file, buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    //! Catches: queries lost, mixed up or out of order on their way through the file.
    use super::*;

    #[test]
    fn queries_come_back_as_they_went() {
        // The first key beyond is one that is asked for.
        const STORED: u32 = 3 * 16_666;
        let mut recorder = Recorder::new().unwrap();
        let key = |number: u32| vec![b'k'; (number % 7) as usize];
        let mut start = 0;
        for number in 0..100_000_u32 {
            if number == 1000 {
                start = recorder.bytes();
            }
            recorder.push(if number % 3 == 0 { number } else { STRANGER }, &key(number)).unwrap();
        }
        let queries = recorder.finish(start, 1000, STORED).unwrap();
        for _ in 0..2 {
            let mut next = 1000;
            let mut visit = |chunk: &Chunk| {
                for (found, stored) in chunk.iter() {
                    assert_eq!((found, stored), (&key(next)[..], next % 3 == 0 && next < STORED), "{next}");
                    next += 1;
                }
                Ok(true)
            };
            queries.replay(&mut visit).unwrap();
            assert_eq!(u64::from(next), 1000 + queries.len());
        }
        let (first, rest) = queries.split(40_000).unwrap();
        assert_eq!((first.len(), rest.len()), (40_000, 59_000));
        let mut next = 41_000;
        let mut visit = |chunk: &Chunk| {
            chunk.iter().for_each(|(found, _)| {
                assert_eq!(found, &key(next)[..], "{next}");
                next += 1;
            });
            Ok(true)
        };
        rest.replay(&mut visit).unwrap();
    }
}
