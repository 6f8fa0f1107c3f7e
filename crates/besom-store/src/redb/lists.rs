//! Lists as rows of a table: the address, a number that ascends within the list, and the key.

use std::ops::RangeInclusive;

use ::redb::{AccessGuard, Error, ReadableTable, Table};

use super::Layout;

/// The length of a key in front of it, where its value follows.
const LENGTH: usize = size_of::<u32>();

/// The rows of a list.
pub(super) fn rows(address: u64) -> RangeInclusive<(u64, u64)> {
    (address, 0)..=(address, u64::MAX)
}

/// A row for a key and its value.
pub(super) fn encode(layout: Layout, key: &[u8], value: &[u8]) -> Result<Vec<u8>, Error> {
    if layout == Layout::Split {
        return Ok(key.to_vec());
    }
    let length = u32::try_from(key.len()).map_err(|_| Error::ValueTooLarge(key.len()))?;
    let mut row = Vec::with_capacity(LENGTH + key.len() + value.len());
    row.extend_from_slice(&length.to_le_bytes());
    row.extend_from_slice(key);
    row.extend_from_slice(value);
    Ok(row)
}

/// The key of a row and its value, which is empty where data is elsewhere.
pub(super) fn decode(layout: Layout, row: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    if layout == Layout::Split {
        return Ok((row, &[]));
    }
    let split = row.split_first_chunk::<LENGTH>().and_then(|(length, rest)| {
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        rest.split_at_checked(length)
    });
    split.ok_or_else(|| Error::Corrupted(format!("a row of {} bytes is shorter than its key", row.len())))
}

type Row<'t> = (u64, AccessGuard<'t, &'static [u8]>);

/// The rows of a list, in order.
pub(super) fn list<'t>(
    table: &'t impl ReadableTable<(u64, u64), &'static [u8]>,
    address: u64,
) -> Result<impl Iterator<Item = Result<Row<'t>, Error>>, Error> {
    let rows = table.range(rows(address))?;
    Ok(rows.map(|row| row.map(|(place, bytes)| (place.value().1, bytes)).map_err(Error::from)))
}

/// The value of a key in a list, and where.
pub(super) fn find(
    table: &impl ReadableTable<(u64, u64), &'static [u8]>,
    layout: Layout,
    address: u64,
    key: &[u8],
) -> Result<Option<(u64, Vec<u8>)>, Error> {
    for row in list(table, address)? {
        let (number, row) = row?;
        let (stored, value) = decode(layout, row.value())?;
        if stored == key {
            return Ok(Some((number, value.to_vec())));
        }
    }
    Ok(None)
}

/// The number of the row that has this rank, which must be that of the key.
pub(super) fn number_of(
    table: &Table<'_, (u64, u64), &'static [u8]>,
    layout: Layout,
    (address, rank): (u64, usize),
    key: &[u8],
) -> Result<u64, Error> {
    if let Some(row) = list(table, address)?.nth(rank) {
        let (number, row) = row?;
        if decode(layout, row.value())?.0 == key {
            return Ok(number);
        }
    }
    Err(Error::Corrupted(format!(
        "the list at address {address} has another key at rank {rank} than the filter says"
    )))
}

/// The number that follows the last one of a list.
pub(super) fn next_number(table: &Table<'_, (u64, u64), &'static [u8]>, address: u64) -> Result<u64, Error> {
    let last = table.range(rows(address))?.next_back().transpose()?;
    match last.map(|(place, _)| place.value().1) {
        None => Ok(0),
        Some(number) => number
            .checked_add(1)
            .ok_or_else(|| Error::Corrupted(format!("the list at address {address} is numbered to the end"))),
    }
}
