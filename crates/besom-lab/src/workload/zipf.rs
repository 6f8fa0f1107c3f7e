//! Zipf's law.

use super::WorkloadError;
use crate::random::{Random, mix};

/// Independent draws from a universe in which the key of rank i comes in proportion to i^-s.
///
/// Drawn by rejection-inversion (Hörmann and Derflinger 1996): constant time and memory for any universe and any
/// s ≥ 0.
///
/// ```
/// use besom_lab::workload::Zipf;
///
/// let draws: Vec<u64> = Zipf::new(1000, 1.0, 7)?.take(10_000).collect();
/// let most = Zipf::key_of_rank(1, 7);
/// let share = draws.iter().filter(|key| **key == most).count() as f64 / 10_000.0;
/// // The first of 1000 ranks has 1/H(1000) = 13.4% of the draws.
/// assert!((share - 0.134).abs() < 0.02);
/// # Ok::<(), besom_lab::workload::WorkloadError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Zipf {
    random: Random,
    seed: u64,
    universe: f64,
    exponent: f64,
    /// The integral of the density up to 1.5, less the mass of rank 1.
    low: f64,
    /// The integral up to universe + 0.5.
    high: f64,
    /// How near to the rank a point may be to be accepted without another look.
    shortcut: f64,
}

impl Zipf {
    /// Draws from `universe` keys with exponent `s`.
    ///
    /// # Errors
    ///
    /// [`WorkloadError::Parameter`] for an empty universe or an exponent that is negative or not finite.
    pub fn new(universe: u64, s: f64, seed: u64) -> Result<Self, WorkloadError> {
        if universe == 0 {
            return Err(WorkloadError::Parameter { name: "universe", value: 0.0, problem: "no key to draw" });
        }
        if !(s.is_finite() && s >= 0.0) {
            let problem = "the exponent must be a number from 0 up";
            return Err(WorkloadError::Parameter { name: "s", value: s, problem });
        }
        let universe = universe as f64;
        Ok(Self {
            random: Random::new(seed),
            seed,
            universe,
            exponent: s,
            low: integral(1.5, s) - 1.0,
            high: integral(universe + 0.5, s),
            shortcut: 2.0 - inverse(integral(2.5, s) - 2_f64.powf(-s), s),
        })
    }

    /// The key that stands at a rank, counted from 1.
    #[must_use]
    pub fn key_of_rank(rank: u64, seed: u64) -> u64 {
        mix(rank ^ mix(seed ^ 0x2545_f491_4f6c_dd1d))
    }

    fn rank(&mut self) -> u64 {
        loop {
            let u = self.high + self.random.unit() * (self.low - self.high);
            let x = inverse(u, self.exponent);
            let rank = x.round().clamp(1.0, self.universe);
            let accept = rank - x <= self.shortcut
                || u >= integral(rank + 0.5, self.exponent) - rank.powf(-self.exponent);
            if accept {
                return rank as u64;
            }
        }
    }
}

impl Iterator for Zipf {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(Self::key_of_rank(self.rank(), self.seed))
    }
}

/// The integral of x^-s from 1, in a form that is continuous at s = 1.
fn integral(x: f64, s: f64) -> f64 {
    let log = x.ln();
    log * expm1_over((1.0 - s) * log)
}

/// The x at which [`integral`] has this value.
fn inverse(value: f64, s: f64) -> f64 {
    let t = (value * (1.0 - s)).max(-1.0);
    (value * ln1p_over(t)).exp()
}

/// (e^x − 1)/x.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x)/x.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_their_shares() {
        const DRAWS: usize = 400_000;
        for s in [0.0, 0.5, 1.0, 1.5, 3.0] {
            let mut zipf = Zipf::new(50, s, 1).unwrap();
            let mut counts = [0_u32; 51];
            (0..DRAWS).for_each(|_| counts[zipf.rank() as usize] += 1);
            let total: f64 = (1..=50).map(|i| f64::from(i).powf(-s)).sum();
            for (rank, &count) in counts.iter().enumerate().skip(1) {
                let expected = DRAWS as f64 * (rank as f64).powf(-s) / total;
                let deviation = (f64::from(count) - expected).abs();
                assert!(
                    deviation < 5.0 * expected.sqrt() + 5.0,
                    "s {s}, rank {rank}: {count}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn senseless_parameters_are_refused() {
        assert!(Zipf::new(0, 1.0, 1).is_err());
        assert!(Zipf::new(10, -1.0, 1).is_err());
        assert!(Zipf::new(10, f64::NAN, 1).is_err());
        assert_eq!(Zipf::new(1, 1.0, 1).unwrap().rank(), 1);
    }
}
