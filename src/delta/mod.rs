//! Snapshots and what changed since: small files that turn one filter file into another.
//!
//! [`diff`] compares two files, [`apply`] turns the old one into the new one: byte for byte, or for filters on bins
//! into one with the same fingerprints and repairs and so the same answers. A delta names what it belongs to by a
//! checksum and by its generation; any other file is refused. What comes out is checked against a checksum of the new
//! one: it is right, or an error.
//!
//! | kind | what a delta holds | 10,000 additions to 1,000,000 keys |
//! |---|---|---|
//! | `bins`, `quotient`, `telescoping`, `extension` | the fingerprints that came and went, and repairs | about 2 bytes each |
//! | other kinds that change | the bytes that changed, and where | as many bytes as change |
//! | `exact` | nothing: a list that is built again is another one, and its file is smaller than any delta | |
//!
//! ```text
//!   0  magic: "BESOMd", CR, LF                       8
//!   8  version of this format                        2
//!  10  method: 1 bytes, 2 fingerprints               2
//!  12  zeros                                         4
//!  16  checksum of the old filter, old generation   16
//!  32  the new header, zeros behind a short one     192
//! 224  body; by fingerprints, behind the checksum of the new ones
//!  …   checksum of everything before it              8
//! ```

use xxhash_rust::xxh3::xxh3_64;

use crate::any::{AnyFilter, AnyHasher};
use crate::format::rice::{self, BitReader, BitWriter};
use crate::format::{CHUNK, HEADER_SIZE, exact_length};
use crate::format::{FormatError, Header, Persist, ReadOptions, Runs, WriteOptions, check};
use crate::{Filter, HashKind, SipHash, Xxh3};

const MAGIC: [u8; 8] = *b"BESOMd\r\n";
const DELTA_VERSION: u16 = 1;

const METHOD_AT: usize = MAGIC.len() + size_of::<u16>();
const ZEROS_AT: usize = METHOD_AT + size_of::<u16>();
const BASE_AT: usize = 16;
const GENERATION_AT: usize = BASE_AT + size_of::<u64>();
const HEADER_AT: usize = GENERATION_AT + size_of::<u64>();
const BODY_AT: usize = HEADER_AT + HEADER_SIZE;
/// Bytes of a delta without its body.
const FRAME: usize = BODY_AT + size_of::<u64>();

/// Calls a function that is generic in the hash function of a file for the one that its header names.
macro_rules! hashed {
    ($header:expr, $function:ident($($argument:expr),*)) => {
        match $header.hash {
            HashKind::SipHash => $function::<SipHash>($($argument),*),
            _ => $function::<Xxh3>($($argument),*),
        }
    };
}

/// A delta could not be made or applied. No file was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// One of the files is no filter file, or is damaged.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The new file is smaller than what it takes to turn the old one into it.
    #[error("a delta would take {delta} bytes, and the new file only {file}; send the file instead")]
    NotSmaller {
        /// Bytes of the delta, or as many as it would take at least.
        delta: usize,
        /// Bytes of the new file.
        file: usize,
    },
    /// The bytes are no delta, or one of a later version.
    #[error("this is not a delta, or one of a newer besom; make one with besom diff")]
    NotADelta,
    /// The delta is damaged.
    #[error("the delta is damaged: {0}; fetch it again")]
    Damaged(&'static str),
    /// The delta belongs to another file.
    #[error(
        "the delta belongs to another file: to the one with checksum {wanted:016x} and generation {wanted_generation}, not to \
         {found:016x}, generation {found_generation}; apply deltas one by one, in the order in which they were made"
    )]
    WrongBase {
        /// The checksum of the header that it belongs to, and the one that was found.
        wanted: u64,
        /// The checksum of the header of the file that it was applied to.
        found: u64,
        /// The generation that it belongs to.
        wanted_generation: u64,
        /// The generation of the file that it was applied to.
        found_generation: u64,
    },
}

/// How a delta tells what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// The bytes that changed, and where.
    Bytes,
    /// The fingerprints that came and went, and their repairs.
    Fingerprints,
}

/// What a delta says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delta {
    /// How it tells what changed.
    pub method: Method,
    /// The checksum of the header of the file that it belongs to.
    pub base: u64,
    /// The generation of that file.
    pub base_generation: u64,
    /// The header of the file that comes of it.
    pub target: Header,
}

/// Returns the bytes that turn the file `old` into the file `new`.
///
/// ```
/// use besom::delta;
/// use besom::format::{Persist, WriteOptions};
/// use besom::{BinFilter, Insert};
///
/// let mut filter = BinFilter::builder().capacity(20_000).seed(7_u64).build()?;
/// (0..15_000_u64).try_for_each(|key| filter.insert(&key).map(drop))?;
/// let old = filter.to_bytes(&WriteOptions::new().generation(1))?;
/// (15_000..15_100_u64).try_for_each(|key| filter.insert(&key).map(drop))?;
/// let new = filter.to_bytes(&WriteOptions::new().generation(2))?;
///
/// let change = delta::diff(&old, &new)?;
/// assert!(change.len() < new.len() / 20);
/// let (applied, _) = BinFilter::<besom::Xxh3>::from_bytes(&delta::apply(&old, &change)?, &Default::default())?;
/// assert!(applied == filter);
/// assert!(delta::apply(&new, &change).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`DeltaError::NotSmaller`] if the new file itself is smaller; [`FormatError`] if one of them is damaged.
pub fn diff(old: &[u8], new: &[u8]) -> Result<Vec<u8>, DeltaError> {
    let (old_header, new_header) = (whole(old)?, whole(new)?);
    let fingerprints = hashed!(&old_header, fingerprints(old, new));
    let candidates = [
        fingerprints.map(|body| (Method::Fingerprints, body)),
        Some((Method::Bytes, changed_bytes(payload(&old_header, old), payload(&new_header, new)))),
    ];
    let mut smallest: Option<Vec<u8>> = None;
    for (method, body) in candidates.into_iter().flatten() {
        let Some(base) = base_of(method, &old_header, old) else { continue };
        let delta = frame(method, (base, old_header.generation), &new_header, new, &body);
        // Whatever is handed out has been tried. Fingerprints are checked where they are applied.
        let works = apply(old, &delta).is_ok_and(|applied| method == Method::Fingerprints || applied == new);
        if works && smallest.as_ref().is_none_or(|smallest| delta.len() < smallest.len()) {
            smallest = Some(delta);
        }
    }
    match smallest {
        Some(delta) if delta.len() < new.len() => Ok(delta),
        delta => Err(DeltaError::NotSmaller {
            delta: delta.map_or(new.len(), |delta| delta.len()),
            file: new.len(),
        }),
    }
}

/// Applies a delta to the file `old`, and returns the new file.
///
/// # Errors
///
/// [`DeltaError::WrongBase`] if the delta belongs to another file; otherwise what is wrong with the file or the delta.
pub fn apply(old: &[u8], delta: &[u8]) -> Result<Vec<u8>, DeltaError> {
    let said = inspect(delta)?;
    let header = whole(old)?;
    let found =
        base_of(said.method, &header, old).ok_or(DeltaError::Damaged("it is for another kind of filter"))?;
    let found_generation = header.generation;
    if (found, found_generation) != (said.base, said.base_generation) {
        let (wanted, wanted_generation) = (said.base, said.base_generation);
        return Err(DeltaError::WrongBase { wanted, found, wanted_generation, found_generation });
    }
    let body = &delta[BODY_AT..delta.len() - size_of::<u64>()];
    let new_header = &delta[HEADER_AT..BODY_AT];
    match said.method {
        Method::Bytes => patched(payload(&header, old), &said.target, new_header, body),
        Method::Fingerprints => {
            hashed!(&header, with_fingerprints(old, &said.target, body))
        }
    }
}

/// Reads the header of a delta, and checks that the delta is undamaged.
///
/// # Errors
///
/// [`DeltaError::NotADelta`] or [`DeltaError::Damaged`].
pub fn inspect(delta: &[u8]) -> Result<Delta, DeltaError> {
    if delta.len() < FRAME || delta[..MAGIC.len()] != MAGIC {
        return Err(DeltaError::NotADelta);
    }
    let half = |at: usize| u16::from_le_bytes([delta[at], delta[at + 1]]);
    let (content, checksum) = delta.split_at(delta.len() - size_of::<u64>());
    if checksum != xxh3_64(content).to_le_bytes() {
        return Err(DeltaError::Damaged("its checksum is wrong"));
    }
    if half(MAGIC.len()) != DELTA_VERSION || delta[ZEROS_AT..BASE_AT] != [0; BASE_AT - ZEROS_AT] {
        return Err(DeltaError::NotADelta);
    }
    let method = match half(METHOD_AT) {
        1 => Method::Bytes,
        2 => Method::Fingerprints,
        _ => return Err(DeltaError::NotADelta),
    };
    let target = Header::read(&mut &delta[HEADER_AT..BODY_AT])?;
    Ok(Delta { method, base: word(delta, BASE_AT), base_generation: word(delta, GENERATION_AT), target })
}

/// The header of a file that is whole and undamaged.
fn whole(file: &[u8]) -> Result<Header, FormatError> {
    let header = check(&mut &*file)?;
    exact_length(&header, file.len() as u64)?;
    Ok(header)
}

/// The payload of a file that was checked.
fn payload<'f>(header: &Header, file: &'f [u8]) -> &'f [u8] {
    &file[header.payload_at() as usize..]
}

/// The number at this place, which exists.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The checksum at the end of a header, which sums up the whole file.
fn header_checksum(header: &Header, file: &[u8]) -> u64 {
    word(file, header.size() - size_of::<u64>())
}

/// What a delta knows a file by: all its bytes, or its fingerprints, however they lie in it.
fn base_of(method: Method, header: &Header, file: &[u8]) -> Option<u64> {
    match method {
        Method::Bytes => Some(header_checksum(header, file)),
        Method::Fingerprints => hashed!(header, content_of(file)),
    }
}

fn read_file<H: AnyHasher>(file: &[u8]) -> Result<AnyFilter<H>, FormatError> {
    AnyFilter::from_bytes(file, &ReadOptions::new()).map(|(filter, _)| filter)
}

/// A checksum of everything that a filter answers by.
fn content<H: AnyHasher>(filter: &AnyFilter<H>, runs: &Runs) -> u64 {
    let numbers = [runs.checksum(), filter.capacity() as u64, filter.kind().code().into()];
    let mut bytes = numbers.map(u64::to_le_bytes).concat();
    bytes.extend(filter.seed().to_u128().to_le_bytes());
    xxh3_64(&bytes)
}

fn content_of<H: AnyHasher>(file: &[u8]) -> Option<u64> {
    let filter = read_file::<H>(file).ok()?;
    Some(content(&filter, &filter.runs()?))
}

fn frame(method: Method, base: (u64, u64), new_header: &Header, new: &[u8], body: &[u8]) -> Vec<u8> {
    let mut delta = Vec::with_capacity(FRAME + body.len());
    delta.extend(MAGIC);
    delta.extend(DELTA_VERSION.to_le_bytes());
    delta.extend(if method == Method::Bytes { 1_u16 } else { 2 }.to_le_bytes());
    delta.extend([0; BASE_AT - ZEROS_AT]);
    delta.extend(base.0.to_le_bytes());
    delta.extend(base.1.to_le_bytes());
    delta.extend(&new[..new_header.size()]);
    delta.resize(BODY_AT, 0);
    delta.extend(body);
    let checksum = xxh3_64(&delta);
    delta.extend(checksum.to_le_bytes());
    delta
}

/// The bytes of the new payload that differ from the old one, behind where they are. Beyond its end the old one is
/// zeros.
fn changed_bytes(old: &[u8], new: &[u8]) -> Vec<u8> {
    let old = old.iter().copied().chain(std::iter::repeat(0));
    let changed: Vec<(u64, u8)> = (0..)
        .zip(new.iter().copied().zip(old))
        .filter(|(_, (new, old))| new != old)
        .map(|(at, (new, _))| (at, new))
        .collect();
    let places: Vec<u64> = changed.iter().map(|&(at, _)| at).collect();
    let mut writer = BitWriter::default();
    rice::write(&places, &mut writer);
    let mut body = writer.finish();
    let mut all = (body.len() as u64).to_le_bytes().to_vec();
    all.append(&mut body);
    all.extend(changed.iter().map(|&(_, new)| new));
    all
}

/// The file whose payload is the old one with some bytes changed.
fn patched(old: &[u8], target: &Header, new_header: &[u8], body: &[u8]) -> Result<Vec<u8>, DeltaError> {
    const DAMAGED: DeltaError = DeltaError::Damaged("its places and bytes do not fit together");
    let (len, body) = body.split_first_chunk::<8>().ok_or(DAMAGED)?;
    let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| DAMAGED)?;
    let (places, bytes) = body.split_at_checked(len).ok_or(DAMAGED)?;
    let mut reader = BitReader::new(places);
    let places = rice::read(&mut reader, target.payload_len).filter(|_| reader.is_at_end()).ok_or(DAMAGED)?;
    if places.len() != bytes.len() {
        return Err(DAMAGED);
    }
    // Nothing is allocated on the word of a header alone: beyond the old payload, every line has a byte that is not 0
    // or the file is no filter's that grew by a change.
    let payload_len = usize::try_from(target.payload_len).map_err(|_| DAMAGED)?;
    let most = old
        .len()
        .saturating_mul(4)
        .saturating_add(bytes.len().saturating_mul(1 << 10))
        .saturating_add(1 << 16);
    if payload_len > most {
        return Err(DAMAGED);
    }
    let mut payload = old[..old.len().min(payload_len)].to_vec();
    payload.resize(payload_len, 0);
    places.iter().zip(bytes).for_each(|(&at, &byte)| payload[at as usize] = byte);
    file_of(&payload, target, new_header)
}

/// A file of this header and payload, if they belong together.
fn file_of(payload: &[u8], target: &Header, new_header: &[u8]) -> Result<Vec<u8>, DeltaError> {
    let sums: Vec<u8> =
        payload.chunks(CHUNK as usize).flat_map(|chunk| xxh3_64(chunk).to_le_bytes()).collect();
    let computed = if target.is_short() { word(&sums, 0) } else { xxh3_64(&sums) };
    if computed != target.list_checksum {
        return Err(DeltaError::Damaged("what comes of it is not what it was made for"));
    }
    let mut file = new_header[..target.size()].to_vec();
    if !target.is_short() {
        file.extend(sums);
    }
    file.resize(target.payload_at() as usize, 0);
    file.extend(payload);
    Ok(file)
}

/// The fingerprints that came and went, if both are filters of the same measures.
fn fingerprints<H: AnyHasher>(old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    let (old, new) = (read_file::<H>(old).ok()?, read_file::<H>(new).ok()?);
    if old.kind() != new.kind() {
        return None;
    }
    let (old, runs) = (old.runs()?, new.runs()?);
    let mut body = content(&new, &runs).to_le_bytes().to_vec();
    body.extend(old.difference(&runs)?);
    Some(body)
}

/// The file of a filter from which some fingerprints were taken and to which others were added.
fn with_fingerprints<H: AnyHasher>(old: &[u8], target: &Header, body: &[u8]) -> Result<Vec<u8>, DeltaError> {
    const DAMAGED: DeltaError = DeltaError::Damaged("it has fingerprints that the filter cannot have");
    let old = read_file::<H>(old)?;
    let (expected, body) = body.split_first_chunk::<8>().ok_or(DAMAGED)?;
    let runs = old.runs().and_then(|runs| runs.changed(body)).ok_or(DAMAGED)?;
    let filter = old.with_runs(&runs).ok_or(DAMAGED)?;
    filter.verify().map_err(|_| DAMAGED)?;
    if content(&filter, &runs) != u64::from_le_bytes(*expected) {
        return Err(DeltaError::Damaged("what comes of it is not what it was made for"));
    }
    let options = WriteOptions::new().generation(target.generation).include_seed(target.seed.is_some());
    Ok(filter.to_bytes(&options)?)
}
