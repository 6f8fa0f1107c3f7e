//! Where a payload comes from: a stream whose chunks are checked as they come, or a region that is looked at in place.

use std::io::Read;

use xxhash_rust::xxh3::xxh3_64;

use super::header::{ALIGN, CHUNK, Header, read_up_to};
use super::{FormatError, Region};
use crate::bits::AlignedWords;

/// The payload of one file, read from front to back.
pub(super) enum Source<'r> {
    /// Every byte has been checked before it is handed out.
    Stream(Chunks<'r>),
    /// Nothing has been checked. The next byte of the payload is at this place.
    Region(&'r Region, usize),
}

/// A stream of chunks, of which one is in memory.
pub(super) struct Chunks<'r> {
    reader: &'r mut dyn Read,
    /// The checksums, as they are in the file.
    list: Vec<u8>,
    /// The chunk in memory, and how much of it was handed out.
    buffer: Vec<u8>,
    taken: usize,
    /// The number of the next chunk, where it begins in the file, and how many bytes are left from there on.
    next: usize,
    offset: u64,
    left: u64,
    /// Whether the input is known to be as long as the header says.
    whole: bool,
}

impl<'r> Chunks<'r> {
    /// The chunks behind a header that was just read. `input` is the length of the whole input, if it is known.
    pub(super) fn new(
        reader: &'r mut dyn Read,
        header: &Header,
        input: Option<u64>,
    ) -> Result<Self, FormatError> {
        let expected = header.file_len();
        if let Some(found) = input.filter(|&found| found < expected) {
            return Err(FormatError::Truncated { found, expected });
        }
        let list = read_list(reader, header)?;
        Ok(Self {
            reader,
            list,
            buffer: Vec::new(),
            taken: 0,
            next: 0,
            offset: header.payload_at(),
            left: header.payload_len,
            whole: input.is_some(),
        })
    }

    /// The bytes that are at hand; empty only at the end of the payload.
    fn available(&mut self) -> Result<&[u8], FormatError> {
        if self.taken == self.buffer.len() && self.left > 0 {
            self.read_chunk()?;
        }
        Ok(&self.buffer[self.taken..])
    }

    /// Reads and checks the next chunk.
    fn read_chunk(&mut self) -> Result<(), FormatError> {
        let len = self.left.min(CHUNK) as usize;
        self.buffer.resize(len, 0);
        let found = read_up_to(self.reader, &mut self.buffer)?;
        if found < len {
            let (found, expected) = (self.offset + found as u64, self.offset + self.left);
            return Err(FormatError::Truncated { found, expected });
        }
        let (stored, computed) = (self.checksum(self.next), xxh3_64(&self.buffer));
        if stored != computed {
            let (chunk, offset) = (self.next as u64, self.offset);
            return Err(FormatError::ChunkDamaged { chunk, offset, stored, computed });
        }
        (self.taken, self.next) = (0, self.next + 1);
        (self.offset, self.left) = (self.offset + len as u64, self.left - len as u64);
        Ok(())
    }

    /// The checksum of a chunk, as the file has it.
    fn checksum(&self, chunk: usize) -> u64 {
        let bytes = self.list.as_chunks::<8>().0.get(chunk);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn read_exact(&mut self, mut out: &mut [u8]) -> Result<(), FormatError> {
        while !out.is_empty() {
            let available = self.available()?;
            let count = available.len().min(out.len());
            if count == 0 {
                return Err(FormatError::WrongLength { needed: out.len() as u64, left: 0 });
            }
            out[..count].copy_from_slice(&available[..count]);
            self.taken += count;
            out = &mut out[count..];
        }
        Ok(())
    }

    /// Reads the rest of the payload, to check it.
    pub(super) fn drain(&mut self) -> Result<(), FormatError> {
        while self.left > 0 {
            self.read_chunk()?;
        }
        Ok(())
    }
}

/// Reads the list of checksums and the zeros behind it. Allocates no more than what arrives, twice.
fn read_list(reader: &mut dyn Read, header: &Header) -> Result<Vec<u8>, FormatError> {
    if header.is_short() {
        return Ok(header.list_checksum.to_le_bytes().to_vec());
    }
    let (mut list, size) = (Vec::new(), header.size() as u64);
    let expected = header.payload_at() - size;
    reader.take(expected).read_to_end(&mut list)?;
    if (list.len() as u64) < expected {
        let found = size + list.len() as u64;
        return Err(FormatError::Truncated { found, expected: header.file_len() });
    }
    let padding = list.split_off((header.chunks() * size_of::<u64>() as u64) as usize);
    let (stored, computed) = (header.list_checksum, xxh3_64(&list));
    if stored != computed {
        return Err(FormatError::ChecksumsDamaged { stored, computed });
    }
    zeros(&padding)?;
    Ok(list)
}

/// Padding is zero, so that a filter has one file and no other.
fn zeros(padding: &[u8]) -> Result<(), FormatError> {
    let stray = padding.iter().find(|&&byte| byte != 0);
    stray.map_or(Ok(()), |&byte| Err(FormatError::BadNumber { name: "padding", value: byte.into() }))
}

impl Source<'_> {
    /// How many bytes of the payload are still to come.
    pub(super) fn left(&self) -> u64 {
        match self {
            Self::Stream(chunks) => chunks.left + (chunks.buffer.len() - chunks.taken) as u64,
            Self::Region(region, at) => (region.len() - at) as u64,
        }
    }

    /// Whether this many bytes can be asked for: the payload has them, as far as its header can be believed.
    fn reserve(&self, bytes: u64) -> Result<usize, FormatError> {
        let too_long = FormatError::WrongLength { needed: bytes, left: self.left() };
        if bytes > self.left() {
            return Err(too_long);
        }
        usize::try_from(bytes).map_err(|_| too_long)
    }

    /// A section of `len` words: those of a region in place if they can be.
    pub(super) fn words(&mut self, len: u64) -> Result<AlignedWords, FormatError> {
        let bytes = self.reserve(len.saturating_mul(8))?;
        let words = match self {
            Self::Region(region, at) => match AlignedWords::shared(region, *at, bytes / 8) {
                Some(words) => {
                    *at += bytes;
                    words
                }
                None => self.copied_words(bytes / 8)?,
            },
            Self::Stream(_) => self.copied_words(bytes / 8)?,
        };
        self.skip_padding()?;
        Ok(words)
    }

    /// A section of `len` bytes, in words whose unused bytes are 0.
    pub(super) fn bytes(&mut self, len: u64) -> Result<AlignedWords, FormatError> {
        // In memory and in files they have the same order, whatever the order of a word's bytes is.
        let mut words = self.words(len.div_ceil(8))?;
        if cfg!(target_endian = "big") {
            words.iter_mut().for_each(|word| *word = word.swap_bytes());
        }
        zeros(&words.as_bytes()[len as usize..])?;
        Ok(words)
    }

    /// The next `len` words, in memory of their own.
    fn copied_words(&mut self, len: usize) -> Result<AlignedWords, FormatError> {
        /// What is allocated on the word of a header alone.
        const TRUSTED: usize = 1 << 17;
        let whole = matches!(self, Self::Region(..) | Self::Stream(Chunks { whole: true, .. }));
        // Without knowing that so much will come, as much as has come already.
        let mut words = allocate(if whole { len } else { len.min(TRUSTED) })?;
        let mut filled = 0;
        loop {
            filled += self.fill(&mut words[filled..])?;
            if filled == len {
                return Ok(words);
            }
            let larger = len.min(2 * filled);
            words = words.resized(larger).ok_or(FormatError::OutOfMemory { bytes: larger * 8 })?;
        }
    }

    /// Fills all of `words`, and says how many they are.
    fn fill(&mut self, words: &mut [u64]) -> Result<usize, FormatError> {
        const BLOCK: usize = 1024;
        let mut buffer = [0; 8 * BLOCK];
        for block in words.chunks_mut(BLOCK) {
            let bytes = &mut buffer[..8 * block.len()];
            self.read_exact(bytes)?;
            for (word, bytes) in block.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        Ok(words.len())
    }

    fn read_exact(&mut self, out: &mut [u8]) -> Result<(), FormatError> {
        match self {
            Self::Stream(chunks) => chunks.read_exact(out),
            Self::Region(region, at) => {
                let left = (region.len() - *at) as u64;
                let needed = FormatError::WrongLength { needed: out.len() as u64, left };
                let bytes = region.get(*at..*at + out.len()).ok_or(needed)?;
                out.copy_from_slice(bytes);
                *at += out.len();
                Ok(())
            }
        }
    }

    /// To the next line, over zeros.
    fn skip_padding(&mut self) -> Result<(), FormatError> {
        // Payloads are whole lines: what is missing to the next line is what is left over them.
        let mut padding = [0; ALIGN as usize];
        let padding = &mut padding[..(self.left() % ALIGN) as usize];
        self.read_exact(padding)?;
        zeros(padding)
    }
}

fn allocate(len: usize) -> Result<AlignedWords, FormatError> {
    AlignedWords::zeroed(len).ok_or(FormatError::OutOfMemory { bytes: len.saturating_mul(8) })
}
