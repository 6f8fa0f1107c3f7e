//! Ascending numbers in few bits: the gaps between them, by Rice's code.
//!
//! A gap is its upper part in unary (ones, then a zero) and its lower bits as they are. With the number of lower bits
//! that suits the mean gap, random numbers take about half a bit more than they must.

/// Bits in the order in which they were put, in whole bytes.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that are no whole byte yet, and how many.
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// Puts the lowest bits of a number, at most 32.
    pub(crate) fn put(&mut self, bits: u64, count: u32) {
        self.pending |= (bits & ((1 << count) - 1)) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    /// Puts the lowest bits of a number, at most 64.
    pub(crate) fn put_long(&mut self, bits: u64, count: u32) {
        let low = count.min(32);
        self.put(bits, low);
        self.put(bits >> low.min(63), count - low);
    }

    /// All bytes, the last one filled up with zeros.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

/// Bits as [`BitWriter`] put them. Behind the end there are none.
pub(crate) struct BitReader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> BitReader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn bit(&mut self) -> Option<u64> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (self.at % 8) & 1;
        self.at += 1;
        Some(bit.into())
    }

    /// This many bits, at most 64.
    pub(crate) fn take(&mut self, count: u32) -> Option<u64> {
        (0..count).try_fold(0, |bits, place| Some(bits | self.bit()? << place))
    }

    fn left(&self) -> usize {
        self.bytes.len() * 8 - self.at
    }

    /// Whether nothing is left but the zeros that fill a byte up.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.left() < 8 && self.take(self.left() as u32) == Some(0)
    }
}

/// What is put before the gaps: how many numbers, and how many lower bits.
const COUNT_BITS: u32 = 48;
const LOW_BITS: u32 = 6;

/// Writes numbers that do not descend, all below 2^63.
pub(crate) fn write(numbers: &[u64], writer: &mut BitWriter) {
    let last = numbers.last().copied().unwrap_or(0);
    let mean = last / (numbers.len() as u64).max(1);
    let low = (mean as f64 * std::f64::consts::LN_2).max(1.0).log2().ceil() as u32;
    writer.put_long(numbers.len() as u64, COUNT_BITS);
    writer.put(low.into(), LOW_BITS);
    let mut before = 0;
    for &number in numbers {
        let gap = number - before;
        before = number;
        let mut high = gap >> low;
        while high >= 31 {
            writer.put(u64::MAX, 31);
            high -= 31;
        }
        writer.put((1 << high) - 1, high as u32 + 1);
        writer.put_long(gap, low);
    }
}

/// Reads what [`write`] wrote, all of it below `bound`; `None` if it is something else. Takes no more memory than eight
/// times the bits that are there.
pub(crate) fn read(reader: &mut BitReader<'_>, bound: u64) -> Option<Vec<u64>> {
    let (count, low) = (reader.take(COUNT_BITS)?, reader.take(LOW_BITS)? as u32);
    // Every number takes a bit at least.
    if count > reader.left() as u64 || low >= 63 {
        return None;
    }
    let (mut numbers, mut before) = (Vec::new(), 0_u64);
    for _ in 0..count {
        let mut high = 0_u64;
        while reader.bit()? == 1 {
            high += 1;
        }
        let high = high.checked_mul(1 << low)?;
        before = before.checked_add(high)?.checked_add(reader.take(low)?)?;
        if before >= bound {
            return None;
        }
        numbers.push(before);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    //! Catches: numbers that come back as others, codes that are longer than promised, bits from nowhere.
    use super::*;
    use crate::testing::Random;

    #[test]
    fn numbers_come_back() {
        let mut random = Random::new(8);
        for round in 0..2000 {
            let bound = 1 + (random.next() >> (1 + round % 63));
            let mut numbers: Vec<u64> = (0..random.below(200)).map(|_| random.below(bound)).collect();
            numbers.sort_unstable();
            let mut writer = BitWriter::default();
            write(&numbers, &mut writer);
            write(&[], &mut writer);
            let bytes = writer.finish();
            let mut reader = BitReader::new(&bytes);
            assert_eq!(read(&mut reader, bound), Some(numbers.clone()));
            assert_eq!(read(&mut reader, 0), Some(Vec::new()));
            assert!(reader.is_at_end());
            if let Some(&last) = numbers.last() {
                assert_eq!(read(&mut BitReader::new(&bytes), last), None, "beyond the bound");
            }
        }
    }

    #[test]
    fn random_numbers_take_little_more_than_they_must() {
        let mut random = Random::new(9);
        let mut numbers: Vec<u64> = (0..10_000).map(|_| random.below(1 << 28)).collect();
        numbers.sort_unstable();
        let mut writer = BitWriter::default();
        write(&numbers, &mut writer);
        let bits = writer.finish().len() as f64 * 8.0 / 10_000.0;
        // log2(2^28 / 10^4) + log2(e) is 16.15.
        assert!(bits < 16.5, "{bits}");
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused() {
        let mut random = Random::new(10);
        for _ in 0..20_000 {
            let mut bytes: Vec<u8> = (0..random.below(60)).map(|_| random.next() as u8).collect();
            if bytes.len() > 6 && random.one_in(2) {
                bytes[..6].copy_from_slice(&random.below(40).to_le_bytes()[..6]);
            }
            if let Some(numbers) = read(&mut BitReader::new(&bytes), 1 << 60) {
                assert!(numbers.is_sorted() && numbers.len() <= 8 * bytes.len());
            }
        }
    }
}
