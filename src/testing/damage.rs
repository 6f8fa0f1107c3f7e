//! Damaged files.

use super::Random;
use crate::format::reseal;

/// Damages files of filters in every way that a disk, a network or an attacker can.
///
/// Half of what it makes has checksums that agree, so that the checks behind them are reached.
///
/// ```
/// use besom::format::{Persist, ReadOptions};
/// use besom::testing::Damage;
/// use besom::bloom::BloomFilter;
/// use besom::Filter;
///
/// let file = BloomFilter::with_capacity(100)?.to_bytes(&Default::default())?;
/// let mut damage = Damage::new(7);
/// for _ in 0..100 {
///     // An error, or a sound filter.
///     if let Ok((filter, _)) = BloomFilter::<besom::Xxh3>::from_bytes(&damage.file(&file, &file), &ReadOptions::new()) {
///         assert!(filter.verify().is_ok());
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Damage {
    random: Random,
}

/// How many bytes the beginning of a file has that says what follows.
const HEAD: u64 = 256;

/// Numbers at which code goes wrong.
const LIMITS: [u64; 12] =
    [0, 1, 2, 63, 64, 65, u32::MAX as u64, 1 << 32, 1 << 48, 1 << 56, i64::MAX as u64, u64::MAX];

impl Damage {
    /// Damage that is repeatable.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    /// A damaged copy of `file`, with parts of `other` perhaps.
    pub fn file(&mut self, file: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = file.to_vec();
        for _ in 0..=self.random.below(3) {
            self.once(&mut bytes, other);
        }
        if self.random.one_in(2) {
            reseal(&mut bytes);
        }
        bytes
    }

    /// Makes all checksums of a file right again, as far as it is like one.
    pub fn reseal(file: &mut [u8]) {
        reseal(file);
    }

    fn once(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        match self.random.below(8) {
            0 => bytes.truncate(self.place(bytes.len())),
            1 => {
                let more = self.random.below(200);
                bytes.extend((0..more).map(|_| self.random.next() as u8));
            }
            2 => self.copy(bytes, other),
            3 | 4 => self.set_number(bytes),
            5 => {
                let from = self.place(bytes.len());
                let to = (from + self.random.below(100) as usize).min(bytes.len());
                let byte = if self.random.one_in(2) { 0 } else { 255 };
                bytes[from..to].fill(byte);
            }
            _ => {
                let at = self.place(bytes.len());
                let bit = self.random.below(8);
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << bit);
            }
        }
    }

    /// A place in this many bytes, in the header as often as not.
    fn place(&mut self, len: usize) -> usize {
        let len = len as u64;
        let end = if self.random.one_in(2) { len } else { len.min(HEAD) };
        self.random.below(end + 1) as usize
    }

    /// Puts a piece of another file in the same place of this one.
    fn copy(&mut self, bytes: &mut [u8], other: &[u8]) {
        let end = bytes.len().min(other.len());
        let (one, two) = (self.place(end), self.place(end));
        let piece = one.min(two)..one.max(two);
        bytes[piece.clone()].copy_from_slice(&other[piece]);
    }

    /// Changes a number a little, or to one of the limits.
    fn set_number(&mut self, bytes: &mut [u8]) {
        let at = self.place(bytes.len()) / 8 * 8;
        let Some(number) = bytes.get_mut(at..at + 8).and_then(|bytes| bytes.first_chunk_mut::<8>()) else {
            return;
        };
        let old = u64::from_le_bytes(*number);
        let new = match self.random.below(4) {
            0 => old.wrapping_add(1),
            1 => old.wrapping_sub(1),
            2 => old.wrapping_mul(2),
            _ => LIMITS[self.random.below(LIMITS.len() as u64) as usize],
        };
        *number = new.to_le_bytes();
    }
}
