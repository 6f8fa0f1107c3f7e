//! Rates as people write them.

use besom::any::Config;
use besom::format::Kind;

/// A false-positive rate: `1/1000`, `0.1%`, `2^-8` or `0.001`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let config = format!("{}:rate={text}", Kind::Extension).parse::<Config>();
    let rate = config.ok().and_then(|config| config.false_positive_rate);
    rate.ok_or_else(|| "not a rate between 0 and 1; write 1/1000, 0.1%, 2^-10 or 0.001".into())
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn a_rate_is_one_number_between_0_and_1() {
        for (text, value) in
            [("1/1000", 0.001), ("0.1%", 0.001), ("2^-8", 1.0 / 256.0), (" 1 / 64 ", 1.0 / 64.0)]
        {
            assert_eq!(rate(text), Ok(value), "{text}");
        }
        for text in ["", "0", "1", "2", "1/0", "100%", "nan", "x", "0.1,rate=0.2"] {
            assert!(rate(text).is_err() || text.contains(','), "{text}");
        }
    }
}
