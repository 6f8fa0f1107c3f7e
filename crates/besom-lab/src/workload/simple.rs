//! The two extremes: never the same key, always the same key.

use crate::random::mix;

/// Fresh keys: no key comes twice, and streams of different seeds have (almost surely) none in common.
///
/// ```
/// use besom_lab::workload::Uniform;
///
/// let keys: std::collections::HashSet<u64> = Uniform::new(1).take(100_000).collect();
/// assert_eq!(keys.len(), 100_000);
/// ```
#[derive(Debug, Clone)]
pub struct Uniform {
    start: u64,
    count: u64,
}

impl Uniform {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { start: mix(seed ^ 0xd1b5_4a32_d192_ed03), count: 0 }
    }
}

impl Iterator for Uniform {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.count += 1;
        // `mix` is a bijection, so distinct counts stay distinct.
        Some(mix(self.start.wrapping_add(self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }
}

/// One key forever.
#[derive(Debug, Clone)]
pub struct Repeated(pub u64);

impl Iterator for Repeated {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(self.0)
    }
}
