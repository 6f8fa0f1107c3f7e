//! A filter of SlateDB's tables that answers for ranges: which prefixes the rows of a table begin with.
//!
//! A repair reads all keys of a home, which is a range of hashes. Bloom filters cannot say whether a table has a row in a range, so
//! that without this every table costs a block. Here a table of n rows keeps, of the eight bytes behind the letter that names
//! the kind of row, the first log2(n) + 10 bits: a range without rows is taken for one with rows once in about 2^10 times for
//! each of its ends, and the same is so of a single row.
//!
//! ```text
//! for each letter:  letter u8, prefix bits u8, low bits u8, prefixes u32, then
//!     starts  u32 for every 32nd bucket: where it begins in the buckets
//!     buckets a one for every prefix in the bucket and a zero behind it: the upper bits of prefixes
//!     lows    the lower bits of prefixes, one behind the other, and seven bytes more, so that eight can be read anywhere
//! ```
//!
//! All numbers are little-endian. Prefixes take 13 to 15 bits each. What SlateDB reads has passed its checksum; whatever is wrong
//! with it nevertheless, the answer is "maybe".

use std::ops::Bound;
use std::sync::Arc;

use slatedb::bytes::{BufMut, Bytes};
use slatedb::{BloomFilterPolicy, Filter, FilterBuilder, FilterPolicy, FilterQuery, FilterTarget, RowEntry};

/// Bits of a prefix beyond those that count the rows of a table.
const SPARE_BITS: u32 = 10;

/// Buckets for which there is one start.
const STRIDE: u64 = 32;

/// Bytes before the starts.
const HEAD: usize = 7;

/// The filters of a store's tables: SlateDB's own for single rows, in whatever layout, and prefixes.
pub(super) fn policies() -> Vec<Arc<dyn FilterPolicy>> {
    vec![Arc::new(BloomFilterPolicy::new(10)), Arc::new(Prefixes)]
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Prefixes;

impl FilterPolicy for Prefixes {
    fn name(&self) -> &'static str {
        "besom prefixes 1"
    }

    fn builder(&self) -> Box<dyn FilterBuilder> {
        Box::<Building>::default()
    }

    fn decode(&self, data: &[u8]) -> Arc<dyn Filter> {
        let data = Bytes::copy_from_slice(data);
        let sets = sets(&data);
        Arc::new(Known { data, sets })
    }

    fn estimate_size(&self, num_keys: usize) -> usize {
        num_keys * 15 / 8 + 64
    }

    fn supports_range_queries(&self) -> bool {
        true
    }

    // SlateDB asks for the range instead.
    fn supports_prefix_queries(&self) -> bool {
        false
    }
}

/// The letter of a row, and the eight bytes behind it as a number: rows in their order have numbers in theirs.
fn number(row: &[u8]) -> Option<(u8, u64)> {
    let (&letter, rest) = row.split_first()?;
    let mut bytes = [0; 8];
    let len = rest.len().min(8);
    bytes[..len].copy_from_slice(&rest[..len]);
    Some((letter, u64::from_be_bytes(bytes)))
}

/// The numbers of all rows, which come in order, by letter.
#[derive(Default)]
struct Building(Vec<(u8, Vec<u64>)>);

impl FilterBuilder for Building {
    fn add_entry(&mut self, entry: &RowEntry) {
        // There are no empty rows.
        let Some((letter, number)) = number(&entry.key) else { return };
        match self.0.last_mut() {
            Some((last, numbers)) if *last == letter => numbers.push(number),
            _ => self.0.push((letter, vec![number])),
        }
    }

    fn build(&mut self) -> Arc<dyn Filter> {
        let mut data = Vec::new();
        for (letter, numbers) in std::mem::take(&mut self.0) {
            encode(letter, &numbers, &mut data);
        }
        Prefixes.decode(&data)
    }
}

/// The least power of two that is no less than this, as its exponent.
fn log2_up(count: usize) -> u32 {
    count.max(1).next_power_of_two().trailing_zeros()
}

fn set_bits(bytes: &mut [u8], at: u64, value: u64) {
    let (at, shift) = ((at / 8) as usize, at % 8);
    for (byte, more) in bytes[at..].iter_mut().zip((value << shift).to_le_bytes()) {
        *byte |= more;
    }
}

fn encode(letter: u8, numbers: &[u64], data: &mut Vec<u8>) {
    let bits = (log2_up(numbers.len()) + SPARE_BITS).min(64);
    let mut prefixes: Vec<u64> = numbers.iter().map(|number| number >> (64 - bits)).collect();
    prefixes.dedup();
    let low_bits = bits - log2_up(prefixes.len()).min(bits);
    let sizes = Sizes::new(prefixes.len() as u64, bits, low_bits);
    data.extend_from_slice(&[letter, bits as u8, low_bits as u8]);
    data.extend_from_slice(&(prefixes.len() as u32).to_le_bytes());
    let starts = data.len();
    data.resize(starts + sizes.starts + sizes.buckets + sizes.lows, 0);
    let (starts, rest) = data[starts..].split_at_mut(sizes.starts);
    let (buckets, lows) = rest.split_at_mut(sizes.buckets);
    let mut before = 0;
    for bucket in (0..1 << (bits - low_bits)).step_by(STRIDE as usize) {
        before += prefixes[before..].partition_point(|prefix| prefix >> low_bits < bucket);
        let at = (bucket / STRIDE) as usize * 4;
        starts[at..at + 4].copy_from_slice(&(before as u32 + bucket as u32).to_le_bytes());
    }
    for (at, prefix) in (0..).zip(&prefixes) {
        set_bits(buckets, at + (prefix >> low_bits), 1);
        set_bits(lows, at * u64::from(low_bits), prefix & ((1 << low_bits) - 1));
    }
}

/// How many bytes the parts of a set have.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    starts: usize,
    buckets: usize,
    lows: usize,
}

impl Sizes {
    fn new(count: u64, bits: u32, low_bits: u32) -> Self {
        let buckets = 1_u64 << (bits - low_bits);
        Self {
            starts: (buckets.div_ceil(STRIDE) * 4) as usize,
            buckets: (count + buckets).div_ceil(8) as usize + 7,
            lows: (count * u64::from(low_bits)).div_ceil(8) as usize + 7,
        }
    }
}

/// The prefixes of one letter's rows, and where in the data they are.
#[derive(Debug, Clone, Copy)]
struct Set {
    letter: u8,
    bits: u32,
    low_bits: u32,
    count: u64,
    starts: usize,
    sizes: Sizes,
}

/// The sets that the data has, if it is as it should be.
fn sets(data: &[u8]) -> Option<Vec<Set>> {
    let (mut sets, mut at) = (Vec::new(), 0);
    while at < data.len() {
        let head: &[u8; HEAD] = data.get(at..)?.first_chunk()?;
        let [letter, bits, low_bits, count @ ..] = *head;
        let (bits, low_bits) = (u32::from(bits), u32::from(low_bits));
        let count = u64::from(u32::from_le_bytes(count));
        if bits == 0 || bits > 64 || low_bits > bits || low_bits > 56 || bits - low_bits > 32 {
            return None;
        }
        let (starts, sizes) = (at + HEAD, Sizes::new(count, bits, low_bits));
        at = starts + sizes.starts + sizes.buckets + sizes.lows;
        if at > data.len() {
            return None;
        }
        sets.push(Set { letter, bits, low_bits, count, starts, sizes });
    }
    Some(sets)
}

/// Eight bytes that begin with the one of this bit, without the bits before it: 57 bits or more.
fn word(bytes: &[u8], bit: u64) -> Option<u64> {
    let bytes = bytes.get((bit / 8) as usize..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes) >> (bit % 8))
}

impl Set {
    /// Whether there is a prefix between those of two numbers, both included; `None` if the data is not what it should be.
    fn has_between(&self, data: &[u8], from: u64, to: u64) -> Option<bool> {
        let shift = 64 - self.bits;
        let (from, to) = (from >> shift, to >> shift);
        let part = |from: usize, len: usize| data.get(from..from + len);
        let starts = part(self.starts, self.sizes.starts)?;
        let buckets = part(self.starts + self.sizes.starts, self.sizes.buckets)?;
        let lows = part(self.starts + self.sizes.starts + self.sizes.buckets, self.sizes.lows)?;
        let [first, last] = [from, to].map(|prefix| prefix >> self.low_bits);
        let start = starts.get((first / STRIDE) as usize * 4..)?.first_chunk()?;
        let mut at = u64::from(u32::from_le_bytes(*start));
        let mut bucket = first / STRIDE * STRIDE;
        // A one at a place is the prefix with the number of ones before it, and zeros before it are buckets that have ended.
        while bucket <= last {
            let rank = at.checked_sub(bucket)?;
            if rank >= self.count {
                break;
            }
            let word = word(buckets, at)?;
            let zeros = if word == 0 { 57 } else { u64::from(word.trailing_zeros()).min(57) };
            if zeros > 0 {
                (at, bucket) = (at + zeros, bucket + zeros);
                continue;
            }
            let low = self::word(lows, rank * u64::from(self.low_bits))? & ((1 << self.low_bits) - 1);
            let prefix = bucket << self.low_bits | low;
            if prefix >= from {
                return Some(prefix <= to);
            }
            at += 1;
        }
        Some(false)
    }
}

/// What is known of one table.
#[derive(Debug)]
struct Known {
    data: Bytes,
    sets: Option<Vec<Set>>,
}

impl Known {
    fn has_between(&self, from: &[u8], to: &[u8]) -> bool {
        let (Some(sets), Some((letter, from)), Some((last, to))) = (&self.sets, number(from), number(to))
        else {
            return true;
        };
        if letter != last {
            return true;
        }
        let set = sets.iter().find(|set| set.letter == letter);
        set.is_some_and(|set| set.has_between(&self.data, from, to).unwrap_or(true))
    }
}

impl Filter for Known {
    fn might_match(&self, query: &FilterQuery) -> bool {
        match &query.target {
            FilterTarget::Point(row) => self.has_between(row, row),
            FilterTarget::Range {
                lower: Bound::Included(from) | Bound::Excluded(from),
                upper: Bound::Included(to) | Bound::Excluded(to),
            } => self.has_between(from, to),
            FilterTarget::Range { .. } | FilterTarget::Prefix(_) => true,
        }
    }

    fn encode(&self, writer: &mut dyn BufMut) {
        writer.put_slice(&self.data);
    }

    fn size(&self) -> usize {
        self.data.len()
    }

    fn clamp_allocated_size(&self) -> Arc<dyn Filter> {
        Arc::new(Self { data: Bytes::copy_from_slice(&self.data), sets: self.sets.clone() })
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a row that a table has and its filter denies, alone or in a range; ranges without rows that are taken for others
    //! too often; sizes; damage that is believed or panics.
    use besom::testing::Random;
    use slatedb::ValueDeletable;

    use super::*;

    fn filter(rows: &[Vec<u8>]) -> Arc<dyn Filter> {
        let mut building = Prefixes.builder();
        for row in rows {
            let (key, value) = (row.clone().into(), ValueDeletable::Value(Bytes::new()));
            building.add_entry(&RowEntry { key, value, seq: 0, create_ts: None, expire_ts: None });
        }
        let (built, mut bytes) = (building.build(), Vec::new());
        built.encode(&mut bytes);
        assert_eq!(bytes.len(), built.size());
        Prefixes.decode(&bytes)
    }

    fn asks(filter: &dyn Filter, from: &[u8], to: &[u8]) -> bool {
        let bytes = Bytes::copy_from_slice;
        let range = |lower, upper| filter.might_match(&FilterQuery::range(lower, upper));
        let answer = range(Bound::Included(bytes(from)), Bound::Excluded(bytes(to)));
        assert_eq!(answer, range(Bound::Included(bytes(from)), Bound::Included(bytes(to))));
        answer
    }

    fn row(letter: u8, number: u64, rest: &[u8]) -> Vec<u8> {
        [&[letter][..], &number.to_be_bytes(), rest].concat()
    }

    /// Rows of all letters and lengths, spread evenly, crowded, or with common beginnings.
    fn rows(random: &mut Random, count: u64) -> Vec<Vec<u8>> {
        let mut rows: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let number = match random.below(4) {
                    0 => random.next() >> random.below(64),
                    1 => u64::MAX - (random.next() >> random.below(64)),
                    _ => random.next(),
                };
                let mut row = row(b"dis"[random.below(3) as usize], number, b"key");
                row.truncate(1 + random.below(row.len() as u64) as usize);
                row
            })
            .collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    #[test]
    fn no_row_and_no_range_with_rows_is_denied() {
        let mut random = Random::new(1);
        for count in [0, 1, 2, 3, 31, 32, 33, 100, 1_000, 5_000] {
            let rows = rows(&mut random, count);
            let filter = filter(&rows);
            for stored in &rows {
                assert!(filter.might_match(&FilterQuery::point(stored.clone().into())), "{stored:?}");
            }
            for _ in 0..20_000 {
                let letter = b"dis"[random.below(3) as usize];
                let from = random.next() >> random.below(64);
                let to = from.saturating_add(random.next() >> random.below(64));
                let (from, to) = (row(letter, from, b""), row(letter, to, b""));
                let at = rows.partition_point(|stored| *stored < from);
                let has = rows.get(at).is_some_and(|stored| *stored < to);
                assert!(!has || asks(&*filter, &from, &to), "{count}: {from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn ranges_without_rows_are_nearly_always_denied() {
        let mut random = Random::new(2);
        let count = 20_000;
        let mut numbers: Vec<u64> = (0..count).map(|_| random.next()).collect();
        numbers.sort_unstable();
        let rows: Vec<Vec<u8>> = numbers.iter().map(|&number| row(b'd', number, b"a key")).collect();
        let filter = filter(&rows);
        assert!(filter.size() as u64 * 8 < 15 * count, "{} bytes", filter.size());
        assert!(filter.size() <= Prefixes.estimate_size(count as usize));
        // Homes of a filter with a hundred times as many slots.
        let (mut asked, mut wrong, mut wrong_points) = (0, 0, 0);
        while asked < 100_000 {
            let home = random.below(100 * count);
            let of = |home: u64| ((u128::from(home) << 64).div_ceil(100 * u128::from(count))) as u64;
            let (from, to) = (of(home), of(home + 1).wrapping_sub(1));
            let at = numbers.partition_point(|&number| number < from);
            if to < from || numbers.get(at).is_some_and(|&number| number <= to) {
                continue;
            }
            asked += 1;
            wrong += u64::from(asks(&*filter, &row(b'd', from, b""), &row(b'd', to, b"")));
            let point = FilterQuery::point(row(b'd', from, b"another").into());
            wrong_points += u64::from(filter.might_match(&point));
        }
        // One prefix in 1,638 is taken (20,000 of 2^25), and a range has two ends: 122 and 61 are expected.
        println!("{wrong} of {asked} empty homes, {wrong_points} single rows");
        assert!((60..250).contains(&wrong) && (25..125).contains(&wrong_points), "{wrong}, {wrong_points}");
        assert!(!asks(&*filter, &row(b'i', 0, b""), &row(b'i', u64::MAX, b"")), "there are no such rows");
        assert!(asks(&*filter, &row(b'c', 0, b""), &row(b'e', 0, b"")), "whatever is between letters");
    }

    #[test]
    fn damage_is_a_maybe_and_never_a_panic() {
        let mut random = Random::new(3);
        let rows = rows(&mut random, 300);
        let mut good = Vec::new();
        filter(&rows).encode(&mut good);
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            match random.below(3) {
                0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
                1 => bytes.push(random.next() as u8),
                _ => {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] = random.next() as u8;
                }
            }
            let damaged = Prefixes.decode(&bytes);
            let from = row(b'd', random.next(), b"");
            asks(&*damaged, &from, &row(b'd', u64::MAX, b""));
            damaged.might_match(&FilterQuery::point(from.into()));
        }
        assert!(asks(&*Prefixes.decode(&good[..good.len() - 1]), b"d0", b"d1"));
    }
}
