//! Reading: the parts of a filter in the order in which they were written, each checked against what is left.

use std::io::Read;

use super::header::{Header, PARAMETERS, expect, hash_check};
use super::source::{Chunks, Source};
use super::{FormatError, Kind, NESTED_SEED, Persist, ReadOptions, Region};
use crate::bits::AlignedWords;
use crate::{InvariantError, KeyHasher, Seed};

/// More keys than any filter has room for, and few enough that no sum overflows.
const MAX_KEYS: u64 = 1 << 56;

/// Hands out the parts of a filter that is being read. Only this crate's filters have a use for it.
pub struct Decoder<'r> {
    header: Header,
    seed: Option<Seed>,
    source: Source<'r>,
}

impl Decoder<'_> {
    /// Which filter it is.
    pub(crate) fn kind(&self) -> Kind {
        self.header.kind
    }

    /// Returns how many keys are stored.
    pub(crate) fn len(&self) -> Result<usize, FormatError> {
        in_range("keys stored", self.header.len, 0..=MAX_KEYS)
    }

    /// How many keys fit: at least one.
    pub(crate) fn capacity(&self) -> Result<usize, FormatError> {
        in_range("capacity", self.header.capacity, 1..=MAX_KEYS)
    }

    /// The first `N` parameters. The others must be 0.
    pub(crate) fn parameters<const N: usize>(&self) -> Result<[u64; N], FormatError> {
        const { assert!(N <= PARAMETERS, "there is no room for so many") }
        let parameters = &self.header.parameters;
        let stray = parameters[N..].iter().find(|&&value| value != 0);
        expect("an unused parameter", stray.copied().unwrap_or(0), stray.is_none())?;
        Ok(std::array::from_fn(|index| parameters[index]))
    }

    /// The hash function, with the seed from the file or the one that was given.
    pub(crate) fn hasher<H: KeyHasher>(&self) -> Result<H, FormatError> {
        let (found, expected) = (self.header.hash, H::KIND);
        if found != expected {
            return Err(FormatError::WrongHash { found, expected });
        }
        let seed = self.seed.or(self.header.seed).ok_or(FormatError::SeedMissing)?;
        let hasher = H::with_seed(seed);
        if hash_check(&hasher) != self.header.hash_check {
            return Err(FormatError::SeedMismatch);
        }
        Ok(hasher)
    }

    /// A section of `N` numbers.
    pub(crate) fn numbers<const N: usize>(&mut self) -> Result<[u64; N], FormatError> {
        let words = self.source.words(N as u64)?;
        Ok(std::array::from_fn(|index| words[index]))
    }

    /// A section of `N` numbers that count something, few enough that no sum overflows.
    pub(crate) fn counts<const N: usize>(
        &mut self,
        names: [&'static str; N],
    ) -> Result<[u64; N], FormatError> {
        let counts = self.numbers::<N>()?;
        names.iter().zip(counts).try_for_each(|(&name, count)| expect(name, count, count <= MAX_KEYS))?;
        Ok(counts)
    }

    /// A section of `len` words.
    pub(crate) fn words(&mut self, len: u64) -> Result<AlignedWords, FormatError> {
        self.source.words(len)
    }

    /// A section of `len` bytes, in words whose unused bytes are 0.
    pub(crate) fn bytes(&mut self, len: u64) -> Result<AlignedWords, FormatError> {
        self.source.bytes(len)
    }

    /// A filter that is part of another one, as [`Encoder::nested`](super::Encoder::nested) wrote it.
    pub(crate) fn nested<F: Persist>(&mut self) -> Result<F, FormatError> {
        let seed = Seed::from(NESTED_SEED);
        let (hash, hash_check) = (F::Hasher::KIND, hash_check(&F::Hasher::with_seed(seed)));
        let inner = Header { hash, hash_check, seed: Some(seed), ..self.header.clone() };
        let outer = (std::mem::replace(&mut self.header, inner), self.seed.take());
        let filter = self.part(F::KIND);
        (self.header, self.seed) = outer;
        filter
    }

    /// The same for a filter of this kind that hashes for itself, as the whole does.
    pub(crate) fn part<F: Persist>(&mut self, kind: Kind) -> Result<F, FormatError> {
        let [len, capacity, parameters @ ..] = self.numbers::<{ 2 + PARAMETERS }>()?;
        let inner = Header { kind, len, capacity, parameters, ..self.header.clone() };
        let outer = std::mem::replace(&mut self.header, inner);
        let filter = F::decode(self);
        self.header = outer;
        let filter = filter?;
        expect("keys of a part", len, filter.len() as u64 == len)?;
        expect("capacity of a part", capacity, filter.capacity() as u64 == capacity)?;
        Ok(filter)
    }

    /// The whole filter, if the payload holds no more and the header says the same of it.
    fn filter<F: Persist>(mut self) -> Result<F, FormatError> {
        let (found, expected) = (self.header.kind, F::KIND);
        if !F::may_be(found) {
            return Err(FormatError::WrongKind { found, expected });
        }
        let filter = F::decode(&mut self)?;
        let left = self.source.left();
        if left > 0 {
            return Err(FormatError::WrongLength { needed: 0, left });
        }
        expect("keys stored", self.header.len, filter.len() as u64 == self.header.len)?;
        expect("capacity", self.header.capacity, filter.capacity() as u64 == self.header.capacity)?;
        Ok(filter)
    }
}

/// A number that must fit into memory.
pub(crate) fn number(name: &'static str, value: u64) -> Result<usize, FormatError> {
    usize::try_from(value).map_err(|_| FormatError::BadNumber { name, value })
}

/// A parameter that must be in a range.
pub(crate) fn in_range<T: TryFrom<u64>>(
    name: &'static str,
    value: u64,
    range: std::ops::RangeInclusive<u64>,
) -> Result<T, FormatError> {
    expect(name, value, range.contains(&value))?;
    T::try_from(value).map_err(|_| FormatError::BadNumber { name, value })
}

/// A parameter that says yes or no.
pub(crate) fn flag(name: &'static str, value: u64) -> Result<bool, FormatError> {
    expect(name, value, value <= 1)?;
    Ok(value == 1)
}

/// Something that does not hold although all checksums agree.
pub(crate) fn unsound(what: impl Into<String>) -> FormatError {
    FormatError::Unsound(InvariantError::new(what))
}

/// Reads a filter, checking everything. `input` is the length of the whole input, if it is known.
pub(super) fn read<F: Persist>(
    reader: &mut dyn Read,
    input: Option<u64>,
    options: &ReadOptions,
) -> Result<(F, Header), FormatError> {
    let header = Header::read(reader)?;
    let source = Source::Stream(Chunks::new(reader, &header, input)?);
    let filter: F = Decoder { header: header.clone(), seed: options.seed, source }.filter()?;
    filter.verify()?;
    Ok((filter, header))
}

/// A filter that looks at the region. Checks the header, and what it says against the length of the region.
pub(super) fn open<F: Persist>(region: &Region, options: &ReadOptions) -> Result<(F, Header), FormatError> {
    let header = Header::read(&mut &region[..])?;
    exact_length(&header, region.len() as u64)?;
    let source = Source::Region(region, header.payload_at() as usize);
    let filter = Decoder { header: header.clone(), seed: options.seed, source }.filter()?;
    Ok((filter, header))
}

/// An input of this length holds this filter and nothing else.
pub(crate) fn exact_length(header: &Header, found: u64) -> Result<(), FormatError> {
    let expected = header.file_len();
    match found.cmp(&expected) {
        std::cmp::Ordering::Less => Err(FormatError::Truncated { found, expected }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(FormatError::TrailingBytes { found, expected }),
    }
}

/// Reads an input to its end, checking header and checksums.
pub(super) fn check(reader: &mut dyn Read) -> Result<Header, FormatError> {
    let header = Header::read(reader)?;
    Chunks::new(reader, &header, None)?.drain()?;
    Ok(header)
}
