//! The keys of rows.
//!
//! ```text
//! hashed    data: hi key -> value
//! ordered   data: key -> value        index: hi key -> nothing
//! with a filter that moves its keys   index: address key -> nothing, in both layouts
//! ```
//!
//! `hi` is the upper half of the key's digest, and addresses are 64 bits as well: big-endian, so that the order of bytes is that
//! of numbers.

use std::ops::RangeInclusive;

use crate::engine::KeyRange;

/// Where the data of a store lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Layout {
    /// Data in the order of its keys' hashes. The data itself is the index that repairs read: nothing is stored twice.
    #[default]
    Hashed,
    /// Data in the order of its keys, and an index of hashes beside it. Ranges of keys can be read.
    Ordered,
}

const HI: usize = size_of::<u64>();

/// The row of a key at an address.
pub(crate) fn row(address: u64, key: &[u8]) -> Vec<u8> {
    with_room(&address.to_be_bytes(), key)
}

/// A row of these parts, with room for the byte that an engine without tables puts in front.
pub(crate) fn with_room(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(1 + first.len() + second.len());
    row.extend_from_slice(first);
    row.extend_from_slice(second);
    row
}

/// The address and the key of a row; `None` if it is too short for one.
pub(crate) fn parts(row: &[u8]) -> Option<(u64, &[u8])> {
    let (address, key) = row.split_first_chunk::<HI>()?;
    Some((u64::from_be_bytes(*address), key))
}

/// The rows of these addresses.
pub(crate) fn rows(addresses: &RangeInclusive<u64>) -> KeyRange {
    let from = addresses.start().to_be_bytes().to_vec();
    KeyRange { from, to: addresses.end().checked_add(1).map(|behind| behind.to_be_bytes().to_vec()) }
}

/// The least row that is greater.
pub(crate) fn behind(row: &[u8]) -> Vec<u8> {
    [row, &[0]].concat()
}

#[cfg(test)]
mod tests {
    //! Catches: a range off by one, rows in another order than their addresses.
    use super::*;

    #[test]
    fn rows_lie_in_the_order_of_addresses_and_ranges_have_both_ends() {
        let pairs: [(u64, &[u8]); 6] =
            [(0, b""), (0, b"a"), (1, b""), (255, b"z"), (256, b""), (u64::MAX, b"key")];
        assert!(pairs.map(|(address, key)| row(address, key)).is_sorted());
        assert!(pairs.iter().all(|&(address, key)| parts(&row(address, key)) == Some((address, key))));
        assert_eq!(parts(&[0; 7]), None);
        let count = |range: &RangeInclusive<u64>| {
            let KeyRange { from, to } = rows(range);
            let inside = |row: &Vec<u8>| *row >= from && to.as_ref().is_none_or(|to| row < to);
            pairs.map(|(address, key)| row(address, key)).iter().filter(|row| inside(row)).count()
        };
        assert_eq!((count(&(0..=0)), count(&(0..=255)), count(&(1..=256))), (2, 4, 3));
        assert_eq!((count(&(256..=u64::MAX)), count(&(0..=u64::MAX))), (2, 6));
        assert!(behind(b"a") > b"a".to_vec() && behind(b"a") < b"a\x01".to_vec());
    }
}
