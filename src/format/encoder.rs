//! Writing: the parts of a filter as parameters and sections, in the order in which they will be read.
//!
//! Length and checksums stand before the payload, so that a reader can check every chunk as it comes and so that any
//! [`Write`] will do. A filter is therefore encoded twice: once to be measured and summed, once to be written.

use std::io::{self, BufWriter, Write};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::header::{ALIGN, CHUNK, Header, PARAMETERS, hash_check, is_short};
use super::{FormatError, NESTED_SEED, Persist, VERSION, WriteOptions};
use crate::KeyHasher;

/// Takes the parts of a filter that is being written. Only this crate's filters have a use for it.
pub struct Encoder<'w> {
    sink: &'w mut dyn Write,
    parameters: [u64; PARAMETERS],
    /// Bytes of the payload so far.
    written: u64,
}

impl<'w> Encoder<'w> {
    fn new(sink: &'w mut dyn Write) -> Self {
        Self { sink, parameters: [0; PARAMETERS], written: 0 }
    }

    /// The measures of the filter, for the header: at most [`PARAMETERS`]. Those that are not given are 0.
    pub(crate) fn parameters(&mut self, values: &[u64]) {
        debug_assert!(values.len() <= PARAMETERS, "{} parameters", values.len());
        for (parameter, &value) in self.parameters.iter_mut().zip(values) {
            *parameter = value;
        }
    }

    /// A section of words.
    pub(crate) fn words(&mut self, words: &[u64]) -> io::Result<()> {
        const BLOCK: usize = 1024;
        let mut buffer = [0; 8 * BLOCK];
        for block in words.chunks(BLOCK) {
            for (bytes, word) in buffer.chunks_exact_mut(8).zip(block) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            self.put(&buffer[..8 * block.len()])?;
        }
        self.pad()
    }

    /// A section of bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(bytes)?;
        self.pad()
    }

    /// A filter that is part of another one: its counts and parameters as a section of their own, then its sections.
    /// Its own hash function is never asked, and has the seed 0.
    pub(crate) fn nested<F: Persist>(&mut self, filter: &F) -> Result<(), FormatError> {
        debug_assert_eq!(filter.seed(), NESTED_SEED.into());
        self.part(filter)
    }

    /// The same for a filter that hashes for itself, as the whole does.
    pub(crate) fn part<F: Persist>(&mut self, filter: &F) -> Result<(), FormatError> {
        // Parameters come first, but are known only afterwards.
        let mut nowhere = io::sink();
        let mut measured = Encoder::new(&mut nowhere);
        filter.encode(&mut measured)?;
        let mut numbers = vec![filter.len() as u64, filter.capacity() as u64];
        numbers.extend(measured.parameters);
        self.words(&numbers)?;
        let mut inner = Encoder::new(self.sink);
        filter.encode(&mut inner)?;
        self.written += inner.written;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.sink.write_all(bytes)
    }

    /// Zeros to the next line.
    fn pad(&mut self) -> io::Result<()> {
        const ZEROS: [u8; ALIGN as usize] = [0; ALIGN as usize];
        let missing = self.written.next_multiple_of(ALIGN) - self.written;
        self.put(&ZEROS[..missing as usize])
    }
}

/// Sums chunks instead of keeping them.
#[derive(Default)]
struct Sums {
    /// The checksums of the chunks that are complete, as they are written.
    list: Vec<u8>,
    /// The chunk that is not complete, and its length.
    chunk: Xxh3Default,
    len: u64,
}

impl Sums {
    fn finish(mut self) -> Vec<u8> {
        if self.len > 0 {
            self.complete();
        }
        self.list
    }

    fn complete(&mut self) {
        self.list.extend(self.chunk.digest().to_le_bytes());
        self.chunk.reset();
        self.len = 0;
    }
}

impl Write for Sums {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = ((CHUNK - self.len) as usize).min(bytes.len());
        self.chunk.update(&bytes[..taken]);
        self.len += taken as u64;
        if self.len == CHUNK {
            self.complete();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a filter.
pub(crate) fn write<F: Persist>(
    filter: &F,
    writer: &mut dyn Write,
    options: &WriteOptions,
) -> Result<(), FormatError> {
    let (header, sums) = measure(filter, options)?;
    let mut writer = BufWriter::with_capacity(CHUNK as usize, writer);
    writer.write_all(&header.to_bytes())?;
    if !header.is_short() {
        writer.write_all(&sums)?;
        let gap = header.payload_at() - (header.size() + sums.len()) as u64;
        writer.write_all(&[0; ALIGN as usize][..gap as usize])?;
    }
    let mut encoder = Encoder::new(&mut writer);
    filter.encode(&mut encoder)?;
    debug_assert_eq!(encoder.written, header.payload_len, "encoding is not repeatable");
    writer.flush()?;
    Ok(())
}

/// The header of a filter's file, and the checksums of its chunks.
fn measure<F: Persist>(filter: &F, options: &WriteOptions) -> Result<(Header, Vec<u8>), FormatError> {
    let mut sums = Sums::default();
    let mut encoder = Encoder::new(&mut sums);
    filter.encode(&mut encoder)?;
    let (parameters, payload_len) = (encoder.parameters, encoder.written);
    let sums = sums.finish();
    let short = is_short(filter.kind(), payload_len, &parameters);
    let header = Header {
        version: VERSION,
        kind: filter.kind(),
        hash: F::Hasher::KIND,
        seed: options.include_seed.then(|| filter.seed()),
        generation: options.generation,
        len: filter.len() as u64,
        capacity: filter.capacity() as u64,
        parameters,
        payload_len,
        hash_check: hash_check(filter.hasher()),
        list_checksum: if short { only_sum(&sums) } else { xxh3_64(&sums) },
    };
    Ok((header, sums))
}

/// The first checksum of a list.
fn only_sum(sums: &[u8]) -> u64 {
    sums.first_chunk().map_or(0, |sum| u64::from_le_bytes(*sum))
}
