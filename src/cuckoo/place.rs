//! Where a key may live and what is written there: functions of the 128 bits of its digest.

use crate::Digest;

/// The digest of a key under the filter's present hash functions.
///
/// The upper half chooses the bins, the lower half makes the fingerprints, so that the two are independent.
/// Function number i of a half is the half times the i-th odd constant, cut from the top: each is a bijection
/// of a uniform word, and two keys that agree under one of them agree under another no more often than chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CuckooPlace(Digest);

/// Odd, without structure among each other, and the identity first: the commonest function costs nothing.
const MULTIPLIERS: [u64; 8] = [
    1,
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xff51_afd7_ed55_8ccd,
    0xc4ce_b9fe_1a85_ec53,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
];

impl CuckooPlace {
    #[inline]
    pub(super) fn new(digest: Digest) -> Self {
        Self(digest)
    }

    /// The bin in table `table`, below `bins`. A table of any size: the word is read as a fraction.
    #[inline]
    pub(super) fn bin(self, table: usize, bins: usize) -> usize {
        scale(self.0.hi.wrapping_mul(MULTIPLIERS[table]), bins)
    }

    /// Fingerprint function number `function`, `width` bits wide, never 0: that is the empty slot.
    ///
    /// All 2^width − 1 other values are equally likely, so a stored fingerprint meets another with probability
    /// 1/(2^width − 1).
    #[inline]
    pub(super) fn fingerprint(self, function: usize, width: u32) -> u64 {
        let half = self.0.lo.wrapping_mul(MULTIPLIERS[function]) >> 32;
        ((half * ((1 << width) - 1)) >> 32) + 1
    }
}

/// The word as a fraction of 2^64, times `bound`, rounded down: uniform below `bound` for a uniform word.
#[inline]
pub(super) fn scale(word: u64, bound: usize) -> usize {
    ((u128::from(word) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    //! Catches: functions that follow each other, a fingerprint that means "empty", a value that never occurs.
    use super::*;
    use crate::testing::Random;

    fn places(count: usize) -> Vec<CuckooPlace> {
        let mut random = Random::new(11);
        (0..count).map(|_| CuckooPlace::new(Digest { hi: random.next(), lo: random.next() })).collect()
    }

    #[test]
    fn fingerprints_take_every_value_but_zero() {
        for width in [2, 3, 8, 12] {
            let mut counts = vec![0_u32; 1 << width];
            let places = places(400 << width);
            for place in &places {
                counts[place.fingerprint(3, width) as usize] += 1;
            }
            assert_eq!(counts[0], 0);
            let mean = places.len() as f64 / f64::from((1 << width) - 1);
            for count in &counts[1..] {
                assert!((f64::from(*count) - mean).abs() < 6.0 * mean.sqrt(), "{count} for {mean}");
            }
        }
        assert!(places(1000).iter().all(|place| (1..1 << 32).contains(&place.fingerprint(0, 32))));
    }

    #[test]
    fn agreement_under_one_function_says_nothing_about_another() {
        // Pairs of keys that share fingerprint or bin under one function share it under a second one with
        // the probability of a coincidence: 1/15 for four bits, 1/16 for sixteen bins.
        let places = places(1 << 18);
        for first in 0..MULTIPLIERS.len() {
            for second in (0..MULTIPLIERS.len()).filter(|&second| second != first) {
                let (mut pairs, mut both) = ([0_u32; 2], [0_u32; 2]);
                for pair in places.chunks_exact(2) {
                    let same = [
                        |pair: &[CuckooPlace], f| pair[0].fingerprint(f, 4) == pair[1].fingerprint(f, 4),
                        |pair: &[CuckooPlace], f| pair[0].bin(f, 16) == pair[1].bin(f, 16),
                    ];
                    for (kind, same) in same.iter().enumerate().filter(|(_, same)| same(pair, first)) {
                        pairs[kind] += 1;
                        both[kind] += u32::from(same(pair, second));
                    }
                }
                for (kind, chance) in [1.0 / 15.0, 1.0 / 16.0].into_iter().enumerate() {
                    let expected = f64::from(pairs[kind]) * chance;
                    let deviation = (f64::from(both[kind]) - expected).abs() / expected.sqrt();
                    assert!(deviation < 5.0, "kind {kind}: {first} and {second} are {deviation} apart");
                }
            }
        }
    }

    #[test]
    fn every_bin_of_a_table_of_any_size_is_used_alike() {
        for bins in [1, 3, 100, 257] {
            for table in 0..MULTIPLIERS.len() {
                let mut counts = vec![0_u32; bins];
                let places = places(400 * bins);
                places.iter().for_each(|place| counts[place.bin(table, bins)] += 1);
                assert!(counts.iter().all(|&count| (f64::from(count) - 400.0).abs() < 6.0 * 20.0));
            }
        }
    }
}
