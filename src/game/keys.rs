//! Keys that nobody has asked about before.

/// An endless stream of random-looking 8-byte keys without repetition; streams of different seeds are unrelated.
///
/// ```
/// use besom::game::FreshKeys;
///
/// let keys: std::collections::HashSet<_> = FreshKeys::new(7).take(1000).collect();
/// assert_eq!(keys.len(), 1000);
/// assert_eq!(FreshKeys::new(7).next(), FreshKeys::new(7).next());
/// ```
#[derive(Debug, Clone)]
pub struct FreshKeys {
    offset: u64,
    counter: u64,
}

impl FreshKeys {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { offset: mix(seed ^ 0x5851_f42d_4c95_7f2d), counter: 0 }
    }

    /// A number below `bound`, drawn from the same stream. 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.word()) * bound as u128) >> 64) as usize
    }

    /// Puts the slice into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = self.below(end + 1);
            items.swap(end, other);
        }
    }

    /// The finaliser of `SplitMix64` is a bijection of the words, so distinct counters give distinct words.
    fn word(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.counter.wrapping_add(self.offset))
    }
}

impl Iterator for FreshKeys {
    type Item = [u8; 8];

    fn next(&mut self) -> Option<[u8; 8]> {
        Some(self.word().to_le_bytes())
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
