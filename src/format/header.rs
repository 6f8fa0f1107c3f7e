//! The first bytes of every file.
//!
//! ```text
//!   0  magic: "BESOM", CR, LF, 1A            8
//!   8  format version                        2
//!  10  kind of filter                        2
//!  12  hash function                         2
//!  14  flags: bit 0, the seed is there       2
//!  16  seed, or zeros                       16
//!  32  hash check                            8
//!  40  generation                            8
//!  48  keys stored                           8
//!  56  capacity                              8
//!  64  parameters of this kind          8 × 8
//! 128  payload length                        8
//! 136  checksum of the list of checksums     8
//! 144  zeros                                40
//! 184  checksum of the 184 bytes before      8
//! ```
//!
//! Exact lists are handed out by the million, and many are smaller than this. One whose payload is a single chunk and
//! whose parameters are short has a *short* header instead, and no list of checksums behind it:
//!
//! ```text
//!   0  as above; flags: bit 1, the header is short
//!  64  parameters, seven bits a byte, zeros behind them   40
//! 104  payload length                                      8
//! 112  checksum of the payload                             8
//! 120  checksum of the 120 bytes before                    8
//! ```

use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::io::Read;

use xxhash_rust::xxh3::xxh3_64;

use crate::{HashKind, KeyHasher, Seed};

use super::{FormatError, Kind, VERSION};

/// What no text file and no other format begins with. A transfer that changes line ends destroys it.
const MAGIC: [u8; 8] = *b"BESOM\r\n\x1a";

/// How many parameters every kind has room for.
pub(super) const PARAMETERS: usize = 8;

/// The payload in pieces of this many bytes, each with a checksum of its own.
pub(crate) const CHUNK: u64 = 64 << 10;

/// What sections begin at multiples of: a cache line, so that they can be mapped and read in place.
pub(super) const ALIGN: u64 = 64;

/// More than any machine stores, and few enough that no sum overflows.
const MAX_PAYLOAD: u64 = 1 << 56;

const VERSION_AT: usize = MAGIC.len();
const KIND_AT: usize = VERSION_AT + size_of::<u16>();
const HASH_AT: usize = KIND_AT + size_of::<u16>();
const FLAGS_AT: usize = HASH_AT + size_of::<u16>();
const SEED_AT: usize = FLAGS_AT + size_of::<u16>();
const HASH_CHECK_AT: usize = SEED_AT + size_of::<u128>();
const GENERATION_AT: usize = HASH_CHECK_AT + size_of::<u64>();
const LEN_AT: usize = GENERATION_AT + size_of::<u64>();
const CAPACITY_AT: usize = LEN_AT + size_of::<u64>();
const PARAMETERS_AT: usize = CAPACITY_AT + size_of::<u64>();
/// Bytes of a header: three cache lines.
pub(crate) const SIZE: usize = 192;
/// Bytes of a short header: two cache lines.
const SHORT_SIZE: usize = 128;

/// The seed is in the file.
const SEED_INCLUDED: u16 = 1;
/// The header is a short one.
const SHORT: u16 = 2;

/// Where the last fields of a header are.
struct Places {
    payload_len: usize,
    list_checksum: usize,
    /// Zeros from here to the checksum.
    reserved: usize,
    checksum: usize,
}

impl Places {
    const fn of(short: bool) -> Self {
        let (size, room) =
            if short { (SHORT_SIZE, SHORT_ROOM) } else { (SIZE, PARAMETERS * size_of::<u64>()) };
        let payload_len = PARAMETERS_AT + room;
        let list_checksum = payload_len + size_of::<u64>();
        Self {
            payload_len,
            list_checksum,
            reserved: list_checksum + size_of::<u64>(),
            checksum: size - size_of::<u64>(),
        }
    }
}

/// Bytes for the parameters of a short header.
const SHORT_ROOM: usize = 40;

/// The parameters as a short header has them: seven bits a byte, the highest bit set in all but the last. `None`
/// without room for them.
fn short_parameters(parameters: &[u64; PARAMETERS]) -> Option<[u8; SHORT_ROOM]> {
    let (mut bytes, mut at) = ([0; SHORT_ROOM], 0);
    for &parameter in parameters {
        let mut rest = parameter;
        loop {
            *bytes.get_mut(at)? = (rest & 0x7f) as u8 | if rest > 0x7f { 0x80 } else { 0 };
            (rest, at) = (rest >> 7, at + 1);
            if rest == 0 {
                break;
            }
        }
    }
    Some(bytes)
}

/// The parameters of a short header; `None` if they are written in any other way.
fn read_short_parameters(bytes: [u8; SHORT_ROOM]) -> Option<[u64; PARAMETERS]> {
    let (mut parameters, mut at) = ([0; PARAMETERS], 0);
    for parameter in &mut parameters {
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *bytes.get(at)?;
            *parameter |= u64::from(byte & 0x7f) << shift;
            at += 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    (short_parameters(&parameters) == Some(bytes)).then_some(parameters)
}

/// What a file says of itself, before its payload is read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The format's version.
    pub version: u16,
    /// Which filter it is.
    pub kind: Kind,
    /// The hash function of its keys.
    pub hash: HashKind,
    /// The seed of the hash function, unless it was left out.
    pub seed: Option<Seed>,
    /// A number that belongs to the user.
    pub generation: u64,
    /// Returns how many keys are stored.
    pub len: u64,
    /// How many keys fit before the filter is full or has to grow.
    pub capacity: u64,
    /// The measures of the filter; what they mean depends on its kind.
    pub parameters: [u64; PARAMETERS],
    /// How many bytes follow the checksums.
    pub payload_len: u64,
    /// See [`hash_check`].
    pub(super) hash_check: u64,
    /// The checksum of the list of checksums; behind a short header there is none, and this is the checksum of the
    /// payload.
    pub(crate) list_checksum: u64,
}

/// Whether a file of this kind has a short header.
pub(super) fn is_short(kind: Kind, payload_len: u64, parameters: &[u64; PARAMETERS]) -> bool {
    kind == Kind::Exact && (1..=CHUNK).contains(&payload_len) && short_parameters(parameters).is_some()
}

impl Header {
    /// How many chunks the payload has.
    pub(super) fn chunks(&self) -> u64 {
        self.payload_len.div_ceil(CHUNK)
    }

    /// Whether it is a short one.
    pub(crate) fn is_short(&self) -> bool {
        is_short(self.kind, self.payload_len, &self.parameters)
    }

    /// How many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        if self.is_short() { SHORT_SIZE } else { SIZE }
    }

    /// Where the payload begins: behind header and checksums.
    pub(crate) fn payload_at(&self) -> u64 {
        if self.is_short() {
            return SHORT_SIZE as u64;
        }
        (SIZE as u64 + self.chunks() * size_of::<u64>() as u64).next_multiple_of(ALIGN)
    }

    /// How many bytes the file has.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.payload_at() + self.payload_len
    }

    /// The header as it is written.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size()];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        let short = self.is_short();
        let flags = self.seed.map_or(0, |_| SEED_INCLUDED) | if short { SHORT } else { 0 };
        put(0, &MAGIC);
        put(VERSION_AT, &self.version.to_le_bytes());
        put(KIND_AT, &self.kind.code().to_le_bytes());
        put(HASH_AT, &self.hash.code().to_le_bytes());
        put(FLAGS_AT, &flags.to_le_bytes());
        put(SEED_AT, &self.seed.map_or(0, Seed::to_u128).to_le_bytes());
        put(HASH_CHECK_AT, &self.hash_check.to_le_bytes());
        put(GENERATION_AT, &self.generation.to_le_bytes());
        put(LEN_AT, &self.len.to_le_bytes());
        put(CAPACITY_AT, &self.capacity.to_le_bytes());
        match short_parameters(&self.parameters).filter(|_| short) {
            Some(parameters) => put(PARAMETERS_AT, &parameters),
            None => put(PARAMETERS_AT, &self.parameters.map(u64::to_le_bytes).concat()),
        }
        let places = Places::of(short);
        put(places.payload_len, &self.payload_len.to_le_bytes());
        put(places.list_checksum, &self.list_checksum.to_le_bytes());
        seal(&mut bytes);
        bytes
    }

    /// Reads a header from the beginning of the input.
    pub(crate) fn read(reader: &mut dyn Read) -> Result<Self, FormatError> {
        let mut bytes = [0; SIZE];
        let mut found = read_up_to(reader, &mut bytes[..SHORT_SIZE])?;
        let magic = field(&bytes, 0);
        if magic != MAGIC {
            return Err(FormatError::NotBesom { found: magic });
        }
        let short = is_flagged_short(&bytes);
        if !short && found == SHORT_SIZE {
            found += read_up_to(reader, &mut bytes[SHORT_SIZE..])?;
        }
        let expected = if short { SHORT_SIZE } else { SIZE };
        if found < expected {
            return Err(FormatError::Truncated { found: found as u64, expected: expected as u64 });
        }
        Self::parse(&bytes, short)
    }

    fn parse(bytes: &[u8; SIZE], short: bool) -> Result<Self, FormatError> {
        let half = |at| u16::from_le_bytes(field(bytes, at));
        let word = |at| u64::from_le_bytes(field(bytes, at));
        let version = half(VERSION_AT);
        if version > VERSION {
            return Err(FormatError::NewerVersion { found: version, supported: VERSION });
        }
        let places = Places::of(short);
        let (stored, computed) = (word(places.checksum), xxh3_64(&bytes[..places.checksum]));
        if stored != computed {
            return Err(FormatError::HeaderDamaged { stored, computed });
        }
        expect("format version", version.into(), version == VERSION)?;
        let kind = Kind::from_code(half(KIND_AT)).ok_or(FormatError::UnknownKind { code: half(KIND_AT) })?;
        let hash = HashKind::from_code(half(HASH_AT));
        let hash =
            hash.ok_or(FormatError::BadNumber { name: "hash function", value: half(HASH_AT).into() })?;
        let (flags, seed) = (half(FLAGS_AT), u128::from_le_bytes(field(bytes, SEED_AT)));
        expect("flags", flags.into(), flags & !(SEED_INCLUDED | SHORT) == 0)?;
        let seed_included = flags & SEED_INCLUDED != 0;
        expect("a seed that was left out", seed as u64, seed_included || seed == 0)?;
        let reserved = bytes[places.reserved..places.checksum].iter().find(|&&byte| byte != 0);
        expect("a reserved byte", reserved.copied().unwrap_or(0).into(), reserved.is_none())?;
        let payload_len = word(places.payload_len);
        let whole = payload_len.is_multiple_of(ALIGN) && payload_len <= MAX_PAYLOAD;
        expect("payload length", payload_len, whole)?;
        let parameters = if short {
            let read = read_short_parameters(field(bytes, PARAMETERS_AT));
            read.ok_or(FormatError::BadNumber { name: "a parameter", value: word(PARAMETERS_AT) })?
        } else {
            std::array::from_fn(|index| word(PARAMETERS_AT + index * size_of::<u64>()))
        };
        // A filter has one file and no other.
        expect("flags", flags.into(), short == is_short(kind, payload_len, &parameters))?;
        Ok(Self {
            version,
            kind,
            hash,
            seed: seed_included.then(|| Seed::from(seed)),
            generation: word(GENERATION_AT),
            len: word(LEN_AT),
            capacity: word(CAPACITY_AT),
            parameters,
            payload_len,
            hash_check: word(HASH_CHECK_AT),
            list_checksum: word(places.list_checksum),
        })
    }
}

/// Whether these bytes of a header say that it is a short one.
fn is_flagged_short(bytes: &[u8; SIZE]) -> bool {
    u16::from_le_bytes(field(bytes, FLAGS_AT)) & SHORT != 0
}

/// A number must be one that a filter can have.
pub(super) fn expect(name: &'static str, value: u64, holds: bool) -> Result<(), FormatError> {
    if holds { Ok(()) } else { Err(FormatError::BadNumber { name, value }) }
}

/// Writes the checksum of a header into it.
fn seal(bytes: &mut [u8]) {
    let (content, checksum) = bytes.split_at_mut(bytes.len() - size_of::<u64>());
    checksum.copy_from_slice(&xxh3_64(content).to_le_bytes());
}

/// The bytes of the field at `at`, which lies in the header.
fn field<const N: usize>(bytes: &[u8; SIZE], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

/// Fills the buffer as far as the input goes, and says how far.
pub(super) fn read_up_to(reader: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// 64 bits that tell a hash function and its seed from others, and give away neither.
///
/// A seed that was left out must be given when the filter is read, and with a wrong one every stored key would be
/// missing: so the file has to tell. SipHash keyed with a digest does not lead back to the digest, let alone to the
/// seed.
pub(super) fn hash_check(hasher: &impl KeyHasher) -> u64 {
    const QUESTION: &[u8] = b"besom: which hash function, which seed";
    let key = hasher.digest(QUESTION).to_u128().to_le_bytes();
    let mut hash = SipHasher24::new_with_key(&key);
    hash.write(QUESTION);
    hash.finish128().h1
}

/// Makes all checksums of these bytes right again, as far as they are like a file: for tests that damage files and want
/// to reach what lies behind the checksums.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn reseal(bytes: &mut [u8]) {
    let mut header = [0; SIZE];
    let known = bytes.len().min(SIZE);
    header[..known].copy_from_slice(&bytes[..known]);
    let short = is_flagged_short(&header);
    let (size, places) = (if short { SHORT_SIZE } else { SIZE }, Places::of(short));
    if bytes.len() < size {
        return;
    }
    let payload_len = u64::from_le_bytes(field(&header, places.payload_len)).min(MAX_PAYLOAD);
    let sums = usize::try_from(payload_len.div_ceil(CHUNK) * 8).unwrap_or(usize::MAX);
    let listed = if short { 0 } else { sums };
    let payload_at = size.saturating_add(listed).checked_next_multiple_of(ALIGN as usize);
    if let Some(payload_at) = payload_at.filter(|&at| at <= bytes.len()) {
        let (head, payload) = bytes.split_at_mut(payload_at);
        let payload = &payload[..payload.len().min(payload_len as usize)];
        let list = &mut head[size..size + listed];
        for (sum, chunk) in list.chunks_exact_mut(8).zip(payload.chunks(CHUNK as usize)) {
            sum.copy_from_slice(&xxh3_64(chunk).to_le_bytes());
        }
        let checksum = xxh3_64(if short { payload } else { list }).to_le_bytes();
        head[places.list_checksum..places.reserved].copy_from_slice(&checksum);
    }
    seal(&mut bytes[..size]);
}
