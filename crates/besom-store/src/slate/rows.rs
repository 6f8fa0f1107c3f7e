//! What is where in the database.
//!
//! ```text
//! d key                   -> value                                     the data
//! r generation address    -> list: each key behind its length          the reverse map
//! s                       -> state: see below                          overwritten by every batch
//! ```
//!
//! Numbers in row keys are big-endian, so that lists lie in the order of their addresses; numbers in rows are little-endian. A
//! filter that is built anew gets lists of a new generation, and the state row says which generation counts: so the
//! change from one to the other is one write, and lists that a crash left half-written mean nothing.
//!
//! A push does not read the list: it is a merge operand, which the engine appends. So whoever opens such a database needs
//! [`Append`].

use slatedb::bytes::{BufMut, Bytes, BytesMut};
use slatedb::{MergeOperator, MergeOperatorError};

use super::SlateError;

/// The first byte of a data row's key.
const DATA: u8 = b'd';
/// The first byte of a list's key.
const LIST: u8 = b'r';
/// The key of the state row.
pub(super) const STATE: &[u8] = b"s";

/// The version of this layout.
pub(super) const VERSION: u16 = 1;

/// The longest key. SlateDB takes more; a filter's lists should not.
pub(super) const MAX_KEY: usize = u16::MAX as usize;
/// The longest value that SlateDB takes.
pub(super) const MAX_VALUE: usize = u32::MAX as usize;

/// The row key of a stored key.
pub(super) fn data(key: &[u8]) -> Bytes {
    let mut row = BytesMut::with_capacity(1 + key.len());
    row.put_u8(DATA);
    row.put_slice(key);
    row.freeze()
}

/// The stored key of a data row's key.
pub(super) fn key_of(row: &Bytes) -> Bytes {
    row.slice(1..)
}

/// Where data rows begin, and where they end.
pub(super) fn all_data() -> std::ops::Range<[u8; 1]> {
    [DATA]..[DATA + 1]
}

/// The row key of a list.
pub(super) fn list(generation: u64, address: u64) -> Bytes {
    let mut row = BytesMut::with_capacity(1 + 2 * size_of::<u64>());
    row.put_u8(LIST);
    row.put_u64(generation);
    row.put_u64(address);
    row.freeze()
}

/// The address of a list's row key.
pub(super) fn address_of(row: &[u8]) -> Result<u64, SlateError> {
    let at = 1 + size_of::<u64>();
    let tail = row.get(at..).and_then(|bytes| bytes.try_into().ok());
    tail.map(u64::from_be_bytes).ok_or(SlateError::Damaged { what: "the key of a list", len: row.len() })
}

/// Where the lists of one generation end: a key that is behind all of them and before those of the next.
pub(super) fn lists_end(generation: u64) -> Bytes {
    match generation.checked_add(1) {
        Some(next) => Bytes::copy_from_slice(&list(next, 0)[..1 + size_of::<u64>()]),
        None => Bytes::from_static(&[LIST + 1]),
    }
}

/// Where the lists of all generations begin.
pub(super) fn lists_begin() -> Bytes {
    Bytes::from_static(&[LIST])
}

/// Keys as a list's row has them.
pub(super) fn encode_list<'k>(keys: impl Iterator<Item = &'k [u8]>) -> Bytes {
    let mut row = BytesMut::new();
    for key in keys {
        // No key is longer than `MAX_KEY`.
        row.put_u32_le(key.len() as u32);
        row.put_slice(key);
    }
    row.freeze()
}

/// The keys of a list's row.
pub(super) fn decode_list(mut row: &[u8]) -> Result<Vec<Box<[u8]>>, SlateError> {
    let damaged = SlateError::Damaged { what: "a list of the reverse map", len: row.len() };
    let mut keys = Vec::new();
    while !row.is_empty() {
        let Some((len, rest)) = row.split_first_chunk() else { return Err(damaged) };
        let Some((key, rest)) = rest.split_at_checked(u32::from_le_bytes(*len) as usize) else {
            return Err(damaged);
        };
        keys.push(key.into());
        row = rest;
    }
    Ok(keys)
}

/// Appends what is pushed to a list.
pub(super) struct Append;

impl MergeOperator for Append {
    fn merge(&self, _: &Bytes, existing: Option<Bytes>, value: Bytes) -> Result<Bytes, MergeOperatorError> {
        let Some(existing) = existing else { return Ok(value) };
        let mut row = BytesMut::with_capacity(existing.len() + value.len());
        row.put_slice(&existing);
        row.put_slice(&value);
        Ok(row.freeze())
    }
}

/// Which state of the database this is.
///
/// Every batch raises `count` and none that is durable uses it again: a writer goes on from the count that it finds, and
/// what it finds is all that is durable. So a position that was durable once names one state, and equality of positions is
/// equality of states. The epoch of the writer is there to make a mistake in this visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub struct Position {
    /// The epoch of the writer that wrote last. SlateDB gives every writer a higher one than all before it.
    pub epoch: u64,
    /// How many batches were written before this state was reached.
    pub count: u64,
}

/// The state row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct State {
    pub(super) position: Position,
    /// The generation of the lists that count.
    pub(super) generation: u64,
    /// The highest generation that was ever begun.
    pub(super) highest: u64,
}

const VERSION_AT: usize = 0;
const EPOCH_AT: usize = VERSION_AT + size_of::<u16>();
const COUNT_AT: usize = EPOCH_AT + size_of::<u64>();
const GENERATION_AT: usize = COUNT_AT + size_of::<u64>();
const HIGHEST_AT: usize = GENERATION_AT + size_of::<u64>();
const STATE_LEN: usize = HIGHEST_AT + size_of::<u64>();

impl State {
    pub(super) fn encode(&self) -> Bytes {
        let mut row = BytesMut::with_capacity(STATE_LEN);
        row.put_u16_le(VERSION);
        row.put_u64_le(self.position.epoch);
        row.put_u64_le(self.position.count);
        row.put_u64_le(self.generation);
        row.put_u64_le(self.highest);
        row.freeze()
    }

    pub(super) fn decode(row: &[u8]) -> Result<Self, SlateError> {
        let damaged = || SlateError::Damaged { what: "the state row", len: row.len() };
        let version = row.first_chunk().map(|bytes| u16::from_le_bytes(*bytes)).ok_or_else(damaged)?;
        if version != VERSION {
            return Err(SlateError::OtherVersion { found: version, supported: VERSION });
        }
        let row: &[u8; STATE_LEN] = row.try_into().map_err(|_| damaged())?;
        let word = |at: usize| {
            let mut bytes = [0; size_of::<u64>()];
            bytes.copy_from_slice(&row[at..at + size_of::<u64>()]);
            u64::from_le_bytes(bytes)
        };
        let position = Position { epoch: word(EPOCH_AT), count: word(COUNT_AT) };
        Ok(Self { position, generation: word(GENERATION_AT), highest: word(HIGHEST_AT) })
    }
}

#[cfg(test)]
mod tests {
    //! Catches: rows of one kind among those of another, lists out of the order of their addresses, a layout that changed.
    use super::*;

    #[test]
    fn lists_lie_between_their_ends_in_the_order_of_addresses() {
        let mut rows = vec![lists_begin()];
        for generation in [0, 1, 255, 256, u64::MAX] {
            rows.extend([0, 1, 255, 256, u64::MAX].map(|address| list(generation, address)));
            rows.push(lists_end(generation));
        }
        // The end of a generation is the beginning of the next one.
        assert!(rows.is_sorted());
        assert!(data(&[0xff; 9])[..] < rows[0][..] && rows.last().unwrap()[..] <= *STATE);
        assert_eq!(address_of(&list(7, 0x0102)).unwrap(), 0x0102);
    }

    #[test]
    fn lists_come_back_and_cut_ones_are_refused() {
        let keys: [&[u8]; 3] = [b"first", b"", b"third"];
        let row = encode_list(keys.into_iter());
        assert_eq!(row, b"\x05\0\0\0first\0\0\0\0\x05\0\0\0third"[..]);
        let back = decode_list(&row).unwrap();
        assert_eq!(back.iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>(), keys);
        for len in (1..row.len()).filter(|len| ![9, 13].contains(len)) {
            assert!(decode_list(&row[..len]).is_err(), "cut to {len} bytes");
        }
    }

    #[test]
    fn states_come_back_and_others_are_refused() {
        let state = State { position: Position { epoch: 3, count: 0x0405 }, generation: 6, highest: 7 };
        let row = state.encode();
        assert_eq!(row[..12], *b"\x01\0\x03\0\0\0\0\0\0\0\x05\x04");
        assert_eq!(State::decode(&row).unwrap(), state);
        assert!(matches!(State::decode(&row[1..]), Err(SlateError::OtherVersion { .. })));
        assert!(matches!(State::decode(&row[..20]), Err(SlateError::Damaged { len: 20, .. })));
        assert!(matches!(State::decode(b""), Err(SlateError::Damaged { len: 0, .. })));
    }
}
