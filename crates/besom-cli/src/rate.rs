//! Rates as people write them.

/// A false-positive rate: `1/1000`, `0.1%`, `2^-8` or `0.001`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    number(text.trim())
        .filter(|rate| *rate > 0.0 && *rate < 1.0)
        .ok_or_else(|| "not a rate between 0 and 1; write 1/1000, 0.1%, 2^-10 or 0.001".into())
}

fn number(text: &str) -> Option<f64> {
    let plain = |text: &str| text.trim().parse::<f64>().ok();
    if let Some((above, below)) = text.split_once('/') {
        return Some(plain(above)? / plain(below)?);
    }
    if let Some((base, exponent)) = text.split_once('^') {
        return Some(plain(base)?.powf(plain(exponent)?));
    }
    text.strip_suffix('%').map_or_else(|| plain(text), |part| Some(plain(part)? / 100.0))
}

#[cfg(test)]
mod tests {
    use super::rate;

    #[test]
    fn rates_come_in_four_shapes() {
        for (text, value) in [
            ("1/1000", 0.001),
            ("0.1%", 0.001),
            ("2^-8", 1.0 / 256.0),
            ("0.001", 0.001),
            (" 1 / 64 ", 1.0 / 64.0),
        ] {
            assert_eq!(rate(text), Ok(value), "{text}");
        }
        for text in ["", "0", "1", "2", "1/0", "0/1", "-1/5", "100%", "2^8", "nan", "%", "1/2/3", "x"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
