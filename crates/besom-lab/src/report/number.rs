//! Numbers as people read them.

use crate::stats::Summary;

/// A number in at most about six characters: `0`, `0.0123`, `12.3`, `4.1e-6`, `914145`.
///
/// ```
/// use besom_lab::report::compact;
///
/// assert_eq!(compact(0.012_345), "0.0123");
/// assert_eq!(compact(4.1e-6), "4.1e-6");
/// assert_eq!(compact(914_145.0), "914145");
/// assert_eq!(compact(11.579), "11.58");
/// ```
#[must_use]
pub fn compact(value: f64) -> String {
    let size = value.abs();
    let text = if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    } else if !(1e-3..1e7).contains(&size) {
        let text = format!("{value:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trim(digits));
    } else if size >= 1000.0 {
        format!("{value:.0}")
    } else if size >= 100.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        // Three digits that count.
        let decimals = (2.0 - size.log10().floor()) as usize;
        format!("{value:.decimals$}")
    };
    trim(&text).to_owned()
}

/// A mean with half the width of its interval: `0.0123 ± 0.0004`; the mean alone from a single run.
#[must_use]
pub fn with_interval(summary: &Summary) -> String {
    if summary.runs < 2 {
        return compact(summary.mean);
    }
    let half = (summary.high - summary.low) / 2.0;
    format!("{} ± {}", compact(summary.mean), compact(round_to_two_digits(half)))
}

fn round_to_two_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let unit = 10_f64.powf(value.abs().log10().floor() - 1.0);
    (value / unit).round() * unit
}

/// Zeros after the decimal point say nothing.
fn trim(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (-0.25, "-0.25"),
            (123.456, "123.5"),
            (1234.5, "1234"),
            (0.000_123_4, "1.23e-4"),
            (1e9, "1e9"),
            (100.0, "100"),
        ];
        for (value, text) in cases {
            assert_eq!(compact(value), text);
        }
        assert_eq!(with_interval(&Summary { mean: 2.0, low: 1.876, high: 2.124, runs: 3 }), "2 ± 0.12");
    }
}
