//! The endless string of hash bits that a key's remainder, selectors' chunks and extensions are cut from.
//!
//! A key's hash times the number of slots is a fixed-point number: its integer part is the quotient, its fraction
//! the beginning of the string. The string goes on with bits that nothing was cut from before:
//!
//! ```text
//! | fraction: U bits | digest.lo: 64 bits | rehash 1: 128 bits | rehash 2: 128 bits | …
//! ```
//!
//! U = 64 − ⌈log2 m⌉ is how many bits of the fraction of a 64-bit hash times m are worth using. When m doubles,
//! the first bit of the string becomes the last of the quotient, and the rest of the string stays as it is.

use crate::bits::low_mask;
use crate::{Digest, KeyHasher};

/// The hash bits of one key from its remainder on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashString<'h, H> {
    hasher: &'h H,
    digest: Digest,
    /// The bits up to the first rehash, the first of them the most significant.
    head: u128,
    /// How many they are: 128 at most.
    head_len: u32,
}

impl<'h, H: KeyHasher> HashString<'h, H> {
    /// The string of the key with this digest, whose fraction has `fraction_bits` bits worth using, the first of
    /// them the most significant.
    #[inline(always)]
    pub(crate) fn new(hasher: &'h H, digest: Digest, fraction: u64, fraction_bits: u32) -> Self {
        debug_assert!(fraction_bits <= 64);
        let fraction = u128::from(fraction & !low_mask(64 - fraction_bits)) << 64;
        let head = fraction | u128::from(digest.lo) << (64 - fraction_bits);
        Self { hasher, digest, head, head_len: fraction_bits + 64 }
    }

    /// The digest that the string is made of.
    #[inline]
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// The first 64 bits.
    #[inline(always)]
    pub(crate) fn first_word(&self) -> u64 {
        (self.head >> 64) as u64
    }

    /// The `len` bits from `start` on, at most 64, the first of them the most significant.
    #[inline(always)]
    pub(crate) fn bits(&self, start: u64, len: u32) -> u64 {
        debug_assert!(len <= 64);
        if start + u64::from(len.max(1)) <= u64::from(self.head_len) {
            // In two steps, because `len` may be 0.
            (self.head << (start as u32) >> 1 >> (127 - len)) as u64
        } else {
            self.bits_beyond(start, len)
        }
    }

    /// The same where rehashed bits are needed.
    #[cold]
    fn bits_beyond(&self, mut start: u64, mut len: u32) -> u64 {
        let mut bits = 0_u128;
        while len > 0 {
            let (part, part_len, at) = match start.checked_sub(u64::from(self.head_len)) {
                None => (self.head >> (128 - self.head_len), self.head_len, start as u32),
                Some(behind) => {
                    let rehash = self.hasher.rehash(self.digest, behind / 128 + 1);
                    (rehash.to_u128(), 128, (behind % 128) as u32)
                }
            };
            let taken = len.min(part_len - at);
            let piece = (part >> (part_len - at - taken)) as u64 & low_mask(taken);
            bits = bits << taken | u128::from(piece);
            start += u64::from(taken);
            len -= taken;
        }
        bits as u64
    }

    /// The first place at or behind `start` and before `end` where the two strings differ.
    pub(crate) fn first_difference(&self, other: &Self, start: u64, end: u64) -> Option<u64> {
        (start..end).step_by(64).find_map(|at| {
            let len = (end - at).min(64) as u32;
            let difference = (self.bits(at, len) ^ other.bits(at, len)) << (64 - len);
            (difference != 0).then(|| at + u64::from(difference.leading_zeros()))
        })
    }
}

#[cfg(test)]
mod tests {
    //! Catches: bits that are used twice, lost at a seam, or move when the table doubles.
    use super::*;
    use crate::testing::Random;
    use crate::{Seed, Xxh3};

    fn strings(hasher: &Xxh3, slots: u64, digest: Digest) -> (u64, HashString<'_, Xxh3>) {
        let product = u128::from(digest.hi) * u128::from(slots);
        let fraction_bits = (slots - 1).leading_zeros();
        ((product >> 64) as u64, HashString::new(hasher, digest, product as u64, fraction_bits))
    }

    fn bit_by_bit(string: &HashString<'_, Xxh3>, start: u64, len: u32) -> u64 {
        (0..u64::from(len)).fold(0, |bits, place| bits << 1 | string.bits(start + place, 1))
    }

    #[test]
    fn any_cut_is_the_bits_one_by_one() {
        let hasher = Xxh3::with_seed(Seed::from(3_u64));
        let mut random = Random::new(31);
        for slots in [1, 2, 3, 1_000, 1 << 20, (1 << 20) + 1, 1 << 24, 1 << 40] {
            let digest = Digest { hi: random.next(), lo: random.next() };
            let (_, string) = strings(&hasher, slots, digest);
            assert_eq!(string.first_word(), string.bits(0, 64));
            let head = (slots - 1).leading_zeros();
            assert_eq!(string.bits(u64::from(head), 64), digest.lo);
            let rehash = hasher.rehash(digest, 2);
            assert_eq!(string.bits(u64::from(head) + 64 + 128, 64), rehash.hi);
            for start in 0..600 {
                for len in [0, 1, 2, 7, 8, 32, 63, 64] {
                    assert_eq!(string.bits(start, len), bit_by_bit(&string, start, len), "{start}, {len}");
                }
            }
        }
    }

    #[test]
    fn doubling_moves_one_bit_into_the_quotient() {
        let hasher = Xxh3::with_seed(Seed::from(3_u64));
        let mut random = Random::new(32);
        for slots in [1, 3, 1_000, 1 << 20, (1 << 20) + 77] {
            for _ in 0..50 {
                let digest = Digest { hi: random.next(), lo: random.next() };
                let (before, string) = strings(&hasher, slots, digest);
                let (after, doubled) = strings(&hasher, 2 * slots, digest);
                assert_eq!(after, 2 * before + string.bits(0, 1));
                assert!((0..400).step_by(8).all(|at| string.bits(at + 1, 8) == doubled.bits(at, 8)));
            }
        }
    }

    #[test]
    fn differences_are_found_wherever_they_are() {
        let hasher = Xxh3::with_seed(Seed::from(3_u64));
        let digest = Digest { hi: 77 << 32, lo: 1 };
        let (_, string) = strings(&hasher, 1 << 20, digest);
        let (_, other) = strings(&hasher, 1 << 20, Digest { lo: 0, ..digest });
        assert_eq!(string.first_difference(&other, 8, 300), Some(44 + 63));
        assert_eq!(string.first_difference(&other, 8, 44 + 63), None);
        assert_eq!(string.first_difference(&string, 0, 1_000), None);
    }
}
