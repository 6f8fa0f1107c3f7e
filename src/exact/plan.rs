//! How a list is built: which side is stored, and with how many columns.

use crate::BuildError;

/// The most columns of a table, one more for the first blocks among them.
const MOST_COLUMNS: u32 = 31;

/// What one more row costs beside its columns, in bits: the limits of buckets of 128.
const ROW: f64 = 2.0 / 128.0;

/// What rows that no equation needs and limits come to, beside the columns of the exact table.
const EXACT: f64 = 1.0035;

/// The rate of a list without rejected keys, unless another is asked for.
pub(super) const DEFAULT_RATE: f64 = 1.0 / 256.0;

/// What is built for two lists.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    /// Whether the rejected keys are stored and the answers are turned round.
    pub(super) inverted: bool,
    /// The columns of the first table; there is none with 0 columns.
    pub(super) columns: u32,
    /// The share of the first table that has one more.
    pub(super) wider: f64,
    /// Whether there is a second table.
    pub(super) exact: bool,
}

impl Plan {
    /// The smallest list for this many keys of both kinds that meets the rate, if one is asked for.
    pub(super) fn choose(yes: u64, no: u64, unknown_rate: Option<f64>) -> Result<Self, BuildError> {
        let max = if no == 0 { 0.5 } else { 1.0 };
        let min = (2.0_f64).powi(-(MOST_COLUMNS as i32));
        if let Some(rate) = unknown_rate.filter(|rate| !(min..=max).contains(rate)) {
            return Err(BuildError::RateOutOfRange { rate, min, max });
        }
        if no == 0 || yes == 0 {
            // Without an accepted key nothing is stored, and nothing is accepted.
            let (columns, wider) = columns_for(unknown_rate.unwrap_or(DEFAULT_RATE).min(0.5));
            return Ok(Self { inverted: false, columns, wider, exact: false });
        }
        // To be rejected unless stored is what the rate is about.
        let inverted = unknown_rate.is_none() && no < yes;
        let (stored, others) = if inverted { (no, yes) } else { (yes, no) };
        let cost = |columns: u32| bits(stored, others, columns);
        let columns = (0..=MOST_COLUMNS).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(0);
        // The second table accepts half of what the first one lets through.
        let wanted = unknown_rate.map_or(1.0, |rate| 2.0 * rate);
        let smallest = Self { inverted, columns, wider: 0.0, exact: true };
        if wanted >= 2.0_f64.powi(-(columns as i32)) {
            return Ok(smallest);
        }
        let (columns, wider) = columns_for(wanted.min(0.5));
        Ok(Self { columns, wider, ..smallest })
    }
}

/// About how many bits two tables take.
fn bits(stored: u64, others: u64, columns: u32) -> f64 {
    let (stored, through) = (stored as f64, others as f64 * 2.0_f64.powi(-(columns as i32)));
    let row = if columns == 0 { 0.0 } else { f64::from(columns) * 1.0005 + ROW };
    stored * row + (stored + through) * EXACT
}

/// How many columns a table has that lets through this share, at most a half, of other keys; and the share of it that
/// has one more.
fn columns_for(rate: f64) -> (u32, f64) {
    let columns = (-rate.log2()).floor().max(1.0);
    // (1 − wider) · 2^−columns + wider · 2^−(columns + 1) = rate
    let wider = 2.0 * (1.0 - rate * columns.exp2());
    if wider < 1e-9 { (columns as u32, 0.0) } else { (columns as u32, wider.min(1.0)) }
}

/// The limit of any list that tells this many accepted keys from this many rejected ones, in bits: the binary logarithm
/// of the number of ways to choose the accepted ones.
///
/// ```
/// use besom::exact::limit_bits;
///
/// assert_eq!(limit_bits(1, 255), 8.0);
/// assert!((limit_bits(1_000_000, 10_000_000) / 1e6 - 4.834).abs() < 0.001);
/// ```
#[must_use]
pub fn limit_bits(yes: u64, no: u64) -> f64 {
    let bits = (ln_factorial(yes as f64 + no as f64) - ln_factorial(yes as f64) - ln_factorial(no as f64))
        / std::f64::consts::LN_2;
    // Small numbers come out exactly.
    if (bits - bits.round()).abs() < 1e-9 { bits.round() } else { bits }
}

/// ln n!, by Stirling's series from 64 on and by adding up before.
fn ln_factorial(n: f64) -> f64 {
    if n < 64.0 {
        return (2..=n as u64).map(|factor| (factor as f64).ln()).sum();
    }
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n * n * n);
    n * n.ln() - n + (2.0 * std::f64::consts::PI * n).ln() / 2.0 + series
}

#[cfg(test)]
mod tests {
    //! Catches: a choice that is not the smallest, rates that are not met, a limit that is none.
    use super::*;

    #[test]
    fn columns_follow_the_ratio() {
        let columns = |no: u64| Plan::choose(1_000_000, no * 1_000_000, None).unwrap().columns;
        assert_eq!([1, 10, 70, 110, 1000].map(columns), [0, 3, 6, 6, 9]);
        let turned = Plan::choose(10_000_000, 1_000_000, None).unwrap();
        assert_eq!(turned, Plan { inverted: true, columns: 3, wider: 0.0, exact: true });
    }

    #[test]
    fn rates_are_met() {
        let plan = |rate| Plan::choose(1000, 1000, Some(rate)).unwrap();
        assert_eq!(plan(1.0 / 256.0), Plan { inverted: false, columns: 7, wider: 0.0, exact: true });
        assert_eq!(plan(0.5).columns, 0);
        assert_eq!(Plan::choose(1000, 0, None).unwrap().columns, 8);
        for rate in [0.5, 0.4, 0.3, 0.1, 0.01, 1.0 / 65536.0, 1e-9] {
            let (columns, wider) = columns_for(rate);
            let met = (1.0 - wider / 2.0) * 2.0_f64.powi(-(columns as i32));
            assert!(met <= rate * 1.000001 && (0.0..=1.0).contains(&wider), "{rate}: {met}");
        }
        for rate in [0.0, -1.0, 2.0, 1e-12, f64::NAN] {
            assert!(Plan::choose(10, 10, Some(rate)).is_err(), "{rate}");
        }
        assert!(Plan::choose(10, 0, Some(0.7)).is_err());
    }

    #[test]
    fn the_limit_is_that_of_small_numbers() {
        assert_eq!(limit_bits(0, 5), 0.0);
        assert!((limit_bits(2, 2) - 6.0_f64.log2()).abs() < 1e-9);
        assert!((limit_bits(100, 100) / 100.0 - 1.958).abs() < 0.01);
        // Both ways to work it out meet.
        assert!((ln_factorial(63.0) + 64.0_f64.ln() - ln_factorial(64.0)).abs() < 1e-9);
    }
}
