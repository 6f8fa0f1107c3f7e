//! Means with confidence intervals, medians with ranges.

use serde::Serialize;

/// A mean over several runs with its 95% confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval; the mean itself if there was only one run.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// How many runs.
    pub runs: usize,
}

/// The 97.5% quantile of the normal distribution.
const Z: f64 = 1.96;

impl Summary {
    /// Summarises values of independent runs with Student's t distribution. `None` without values.
    ///
    /// ```
    /// use besom_lab::stats::Summary;
    ///
    /// let summary = Summary::of(&[1.0, 2.0, 3.0]).unwrap();
    /// assert_eq!(summary.mean, 2.0);
    /// assert!((summary.high - 2.0 - 4.303 / 3_f64.sqrt()).abs() < 1e-3);
    /// ```
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let half = if values.len() < 2 {
            0.0
        } else {
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
            t_quantile(values.len() - 1) * (variance / n).sqrt()
        };
        Some(Self { mean, low: mean - half, high: mean + half, runs: values.len() })
    }

    /// The rate of `hits` in `trials` with Wilson's 95% interval, which stays inside [0, 1].
    ///
    /// ```
    /// use besom_lab::stats::Summary;
    ///
    /// let none = Summary::rate(0, 100);
    /// assert_eq!((none.mean, none.low), (0.0, 0.0));
    /// assert!(none.high > 0.03 && none.high < 0.04);
    /// ```
    #[must_use]
    pub fn rate(hits: u64, trials: u64) -> Self {
        if trials == 0 {
            return Self { mean: 0.0, low: 0.0, high: 1.0, runs: 0 };
        }
        let (hits, n) = (hits as f64, trials as f64);
        let rate = hits / n;
        let centre = (hits + Z * Z / 2.0) / (n + Z * Z);
        let half = Z / (n + Z * Z) * (hits * (n - hits) / n + Z * Z / 4.0).sqrt();
        let low = if hits == 0.0 { 0.0 } else { (centre - half).max(0.0) };
        let high = if hits == n { 1.0 } else { (centre + half).min(1.0) };
        Self { mean: rate, low, high, runs: trials as usize }
    }
}

/// How probable `hits` or more of `trials` are, if each has this probability.
///
/// ```
/// use besom_lab::stats::at_least;
///
/// assert_eq!(at_least(0, 10, 0.5), 1.0);
/// assert!((at_least(2, 3, 0.5) - 0.5).abs() < 1e-12);
/// ```
#[must_use]
pub fn at_least(hits: u64, trials: u64, rate: f64) -> f64 {
    if rate >= 1.0 {
        return f64::from(hits <= trials);
    }
    // The probabilities of 0, 1, … hits, each from the one before, in logarithms: the first may be tiny.
    let odds = (rate / (1.0 - rate)).ln();
    let mut term = trials as f64 * (1.0 - rate).ln();
    let mut fewer = 0.0;
    for hit in 0..hits.min(trials + 1) {
        fewer += term.exp();
        term += odds + ((trials - hit.min(trials)) as f64 / (hit + 1) as f64).ln();
    }
    (1.0 - fewer).max(0.0)
}

/// The median of several runs, and the range of all of them: what is said of a few runs without a word on their
/// distribution.
///
/// ```
/// use besom_lab::stats::Spread;
///
/// let spread = Spread::of([5.0, 1.0, 9.0, 2.0]).unwrap();
/// assert_eq!((spread.low, spread.median, spread.high), (1.0, 3.5, 9.0));
/// assert!(spread.parts_from(&Spread::of([9.5, 12.0]).unwrap()));
/// assert!(!spread.parts_from(&Spread::of([9.0, 12.0]).unwrap()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest value.
    pub low: f64,
    /// The one in the middle, or the mean of the two in the middle.
    pub median: f64,
    /// The largest value.
    pub high: f64,
}

impl Spread {
    /// The spread of some values. `None` without any.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&low, &high) = (values.first()?, values.last()?);
        let (upper, lower) = (values[values.len() / 2], values[(values.len() - 1) / 2]);
        Some(Self { low, median: f64::midpoint(lower, upper), high })
    }

    /// Whether all of these values are below all of the others.
    #[must_use]
    pub fn parts_from(&self, others: &Self) -> bool {
        self.high < others.low
    }
}

/// The 97.5% quantile of Student's t distribution.
fn t_quantile(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    // Beyond the table the first correction of the normal quantile is right within 0.004.
    TABLE.get(degrees.wrapping_sub(1)).copied().unwrap_or(Z + (Z.powi(3) + Z) / (4.0 * degrees as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_run_has_no_width() {
        let summary = Summary::of(&[4.0]).unwrap();
        assert_eq!((summary.low, summary.high), (4.0, 4.0));
        assert_eq!(Summary::of(&[]), None);
    }

    /// Computed by hand: the deviation of 0 and 2 is √2 with n − 1 in the denominator, and 1 for the mean of two.
    #[test]
    fn the_interval_of_two_runs_is_that_of_students_distribution() {
        let summary = Summary::of(&[0.0, 2.0]).unwrap();
        assert_eq!((summary.mean, summary.runs), (1.0, 2));
        assert!((summary.high - 13.706).abs() < 1e-9 && (summary.low + 11.706).abs() < 1e-9, "{summary:?}");
        // Four runs: a deviation of √(20/3), half of it for the mean.
        let summary = Summary::of(&[1.0, 3.0, 5.0, 7.0]).unwrap();
        let half = 3.182 * (20.0_f64 / 3.0 / 4.0).sqrt();
        assert!((summary.high - summary.mean - half).abs() < 1e-9, "{summary:?}");
    }

    /// Three of forty at 1/64, by hand: 1 − 0.53262 − 0.33817 − 0.10467. One who plays with many is lucky with some.
    #[test]
    fn luck_has_a_probability() {
        assert!((at_least(3, 40, 1.0 / 64.0) - 0.02454).abs() < 1e-4, "{}", at_least(3, 40, 1.0 / 64.0));
        assert!(at_least(14, 40, 1.0 / 64.0) < 1e-9 && at_least(40, 40, 0.5) < 1e-9);
        assert_eq!((at_least(1, 0, 0.5), at_least(5, 3, 0.5), at_least(2, 2, 1.0)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn quantiles_go_on_smoothly_beyond_the_table() {
        assert!((t_quantile(31) - 2.040).abs() < 4e-3);
        assert!((t_quantile(100) - 1.984).abs() < 2e-3);
    }

    #[test]
    fn intervals_of_rates_stay_inside_the_unit_interval() {
        for (hits, trials) in [(0, 1), (1, 1), (3, 1000), (999, 1000), (0, 0)] {
            let rate = Summary::rate(hits, trials);
            assert!(0.0 <= rate.low && rate.low <= rate.mean && rate.mean <= rate.high && rate.high <= 1.0);
        }
    }
}
