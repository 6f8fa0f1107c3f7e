//! Seeded randomness: the same numbers on every platform and in every version, so that a report's seed is
//! enough to repeat it.

/// The generator of everything random in the lab: xoshiro256++ (Blackman and Vigna), seeded by `SplitMix64`.
///
/// ```
/// use besom_lab::random::Random;
///
/// let (mut a, mut b) = (Random::new(7), Random::new(7));
/// assert_eq!(a.next_u64(), b.next_u64());
/// assert!(a.below(10) < 10);
/// ```
#[derive(Debug, Clone)]
pub struct Random([u64; 4]);

impl Random {
    /// The generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        }))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A uniform number below `bound`; 0 if `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias is at most bound / 2^64, far below anything that a run could notice.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform number in [0, 1) with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Brings a slice into random order.
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        for last in (1..slice.len()).rev() {
            slice.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// One of many independent seeds that follow from one: `label` keeps the purposes apart, `run` the repetitions.
///
/// ```
/// use besom_lab::random::derive;
///
/// assert_ne!(derive(1, "keys", 0), derive(1, "keys", 1));
/// assert_ne!(derive(1, "keys", 0), derive(1, "queries", 0));
/// ```
#[must_use]
pub fn derive(seed: u64, label: &str, run: u32) -> u64 {
    let absorb = |state: u64, byte: u8| mix(state ^ u64::from(byte)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(label.bytes().fold(mix(seed), absorb) ^ u64::from(run) << 32)
}

/// A bijection on words without visible structure (the finaliser of `SplitMix64`): turns a counter into fresh keys.
#[inline]
#[must_use]
pub fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_never_changes() {
        let mut random = Random::new(1);
        let words: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(words, [14971601782005023387, 13781649495232077965, 1847458086238483744]);
    }

    #[test]
    fn bounded_numbers_are_uniform() {
        let mut random = Random::new(2);
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[random.below(10) as usize] += 1);
        // Each count is binomial with mean 10,000 and deviation 95.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 500), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn a_shuffle_loses_nothing() {
        let mut numbers: Vec<u32> = (0..100).collect();
        Random::new(3).shuffle(&mut numbers);
        assert_ne!(numbers, (0..100).collect::<Vec<_>>());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }
}
