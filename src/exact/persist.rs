//! Lists in files: the words of both tables as one section.

use crate::KeyHasher;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, in_range, unsound};

use super::list::{ExactList, Tables};
use super::ribbon::machine::MOST_COLUMNS;
use super::ribbon::{Band, Columns, Measures, Table};

/// Bits of the second parameter: which tables there are, whether answers are turned round, and above them how many
/// blocks of the first table have one more column.
const FIRST: u64 = 1 << 8;
const SECOND: u64 = 1 << 9;
const INVERTED: u64 = 1 << 10;
const WIDER_AT: u32 = 16;

/// Bits of the salt, below the number of places.
const SALT_BITS: u32 = 8;

/// Parameters: rejected keys; columns and what tables there are; three for each table: buckets of the first and of the
/// second layer; places and salt of the last.
impl<H: KeyHasher> Persist for ExactList<H> {
    const KIND: Kind = Kind::Exact;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let Tables { words, first, second, inverted, rejected, .. } = &self.tables;
        let columns = first.as_ref().map_or(Columns::all(0), Table::columns);
        let flag = |flag: u64, set: bool| if set { flag } else { 0 };
        let shape = columns.count
            | flag(FIRST, first.is_some())
            | flag(SECOND, second.is_some())
            | flag(INVERTED, *inverted)
            | columns.wider << WIDER_AT;
        let [a, b, c] = numbers(first.as_ref().map(Table::measures));
        let [d, e, f] = numbers(second.as_ref().map(Table::measures));
        encoder.parameters(&[*rejected, shape, a, b, c, d, e, f]);
        Ok(encoder.words(words)?)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [rejected, shape, first @ .., _, _, _] = decoder.parameters::<8>()?;
        let [.., d, e, f] = decoder.parameters::<8>()?;
        let hasher = decoder.hasher()?;
        let accepted = decoder.len()? as u64;
        let stray = shape & !(0xff | FIRST | SECOND | INVERTED | u64::MAX << WIDER_AT);
        in_range::<u64>("tables", stray, 0..=0)?;
        let least = u64::from(shape & FIRST != 0);
        let most = if shape & FIRST == 0 { 0 } else { MOST_COLUMNS };
        let wider = shape >> WIDER_AT;
        let count = in_range("columns", shape & 0xff, least..=most - least.min(wider.min(1)))?;
        let first = table(shape & FIRST != 0, first, Columns { count, wider }, 0)?;
        let at = first.as_ref().map_or(0, Table::end);
        let second = table(shape & SECOND != 0, [d, e, f], Columns::all(1), at)?;
        let end = second.as_ref().map_or(at, Table::end);
        let words = decoder.words(end as u64)?;
        let (inverted, version) = (shape & INVERTED != 0, Tables::active_version());
        Ok(Self { hasher, tables: Tables { words, first, second, inverted, accepted, rejected, version } })
    }
}

/// The measures of a table as they are written.
fn numbers(measures: Option<Measures>) -> [u64; 3] {
    let Measures { buckets: [first, second], starts, salt } = measures.unwrap_or_default();
    [first, second, starts << SALT_BITS | salt]
}

/// The table of these numbers, if there is one.
fn table<B: Band>(
    exists: bool,
    [first, second, last]: [u64; 3],
    columns: Columns,
    at: usize,
) -> Result<Option<Table<B>>, FormatError> {
    let measures =
        Measures { buckets: [first, second], starts: last >> SALT_BITS, salt: last & ((1 << SALT_BITS) - 1) };
    if !exists {
        let none = measures == Measures::default() && columns.wider == 0;
        return if none { Ok(None) } else { Err(unsound("there are measures of a table that is not there")) };
    }
    let table = Table::new(measures, columns, at);
    table.map(Some).ok_or_else(|| unsound("a table is larger than any memory"))
}
