//! The biased power law of the Firehose benchmark.

use std::sync::{Arc, OnceLock};

use crate::random::Random;

/// Keys 10⁹ + i with i from a Yule–Simon distribution (ρ = 1/2), cut off at 100,000.
///
/// A third of all draws is one key, three quarters are ten keys, and yet 50 million draws meet 82,000 keys.
///
/// ```
/// use besom_lab::workload::PowerLaw;
///
/// let draws: Vec<u64> = PowerLaw::new(1).take(10_000).collect();
/// let share = draws.iter().filter(|key| **key == 1_000_000_001).count() as f64 / 10_000.0;
/// assert!((share - 0.334).abs() < 0.02);
/// ```
#[derive(Debug, Clone)]
pub struct PowerLaw {
    random: Random,
    law: Arc<Law>,
}

/// How many indices there are, the 0 that is never drawn included.
const INDICES: usize = 100_000;
const KEY_BASE: u64 = 1_000_000_000;
const GUIDES: usize = 1 << 16;

#[derive(Debug)]
struct Law {
    /// `cumulative[i]` = C[i], the probability of an index up to i.
    cumulative: Vec<f64>,
    /// `guide[g]` = the smallest index whose C reaches g / GUIDES: where the search begins.
    guide: Vec<u32>,
}

impl PowerLaw {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        static LAW: OnceLock<Arc<Law>> = OnceLock::new();
        Self { random: Random::new(seed), law: Arc::clone(LAW.get_or_init(|| Arc::new(Law::new()))) }
    }
}

impl Law {
    fn new() -> Self {
        // C[i] = 1 − i·B(i, 3/2), where i·B(i, 3/2) is 2/3 at i = 1 and then changes by (i + 1)/(i + 3/2).
        let mut cumulative = vec![0.0; INDICES];
        let mut beyond = 2.0 / 3.0;
        for (index, c) in cumulative.iter_mut().enumerate().skip(1) {
            *c = 1.0 - beyond;
            beyond *= (index as f64 + 1.0) / (index as f64 + 1.5);
        }
        let guide = (0..GUIDES).map(|g| cumulative.partition_point(|&c| c < g as f64 / GUIDES as f64) as u32);
        let guide = guide.collect();
        Self { cumulative, guide }
    }

    /// The i with C[i − 1] < u ≤ C[i].
    fn index(&self, u: f64) -> Option<usize> {
        let first = self.guide[((u * GUIDES as f64) as usize).min(GUIDES - 1)] as usize;
        let ahead = self.cumulative[first..].iter().position(|&c| u <= c)?;
        Some(first + ahead).filter(|&index| index > 0)
    }
}

impl Iterator for PowerLaw {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some(index) = self.law.index(self.random.unit()) {
                return Some(KEY_BASE + index as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn shares_and_distinct_keys_are_those_of_the_benchmark() {
        const DRAWS: usize = 50_000_000;
        let mut counts = vec![0_u64; INDICES];
        PowerLaw::new(1).take(DRAWS).for_each(|key| counts[(key - KEY_BASE) as usize] += 1);
        let share = |count: u64| count as f64 / DRAWS as f64;
        assert!((share(counts[1]) - 0.334).abs() < 0.001);
        assert!((share(counts[1..=10].iter().sum()) - 0.73).abs() < 0.005);
        assert!((share(counts[1..=1000].iter().sum()) - 0.975).abs() < 0.001);
        let distinct = counts.iter().filter(|&&count| count > 0).count();
        assert!(distinct.abs_diff(82_300) < 400, "{distinct}");
    }

    #[test]
    fn the_guide_skips_nothing() {
        let law = Law::new();
        let mut random = Random::new(1);
        let mut seen: HashMap<usize, f64> = HashMap::new();
        for _ in 0..100_000 {
            let u = random.unit();
            match law.index(u) {
                Some(index) => {
                    assert!(law.cumulative[index - 1] < u && u <= law.cumulative[index]);
                    seen.insert(index, u);
                }
                None => assert!(u == 0.0 || u > law.cumulative[INDICES - 1]),
            }
        }
        assert!(seen.len() > 2000);
    }
}
