//! How many bits and probes a Bloom filter needs for a false-positive rate.

use std::f64::consts::LN_2;

use super::line::{LANES, Probes};
use crate::BuildError;

/// The rates that the builders accept. Below the smallest one the 128 bits of a digest no longer carry the
/// analysis; above the largest a filter is hardly one.
const RATES: (f64, f64) = (1.0 / (1_u64 << 50) as f64, 0.5);

/// The rate if it can be met.
pub(crate) fn check_rate(rate: f64) -> Result<f64, BuildError> {
    let (min, max) = RATES;
    if (min..=max).contains(&rate) { Ok(rate) } else { Err(BuildError::RateOutOfRange { rate, min, max }) }
}

/// Size and number of probes of a classic Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BloomSize {
    /// Bits, before rounding up to whole words.
    pub(crate) bits: f64,
    /// Hash functions.
    pub(crate) probes: u32,
}

impl BloomSize {
    /// The smallest filter that holds `keys` keys at `rate`.
    ///
    /// The optimum k = log₂(1/rate) is seldom an integer, and m is the larger the farther k is from it, so the
    /// better one of its two neighbours is taken.
    pub(crate) fn smallest(keys: f64, rate: f64) -> Self {
        let optimum = (-rate.log2()).floor().max(1.0) as u32;
        let [fewer, more] = [optimum, optimum + 1].map(|probes| Self::with_probes(keys, rate, probes));
        if fewer.bits <= more.bits { fewer } else { more }
    }

    /// The filter with the fewest probes among those that are larger than the smallest one by at most a share of
    /// `slack`, or of 0.75%.
    ///
    /// Space is flat around the optimum k: at 1/256, seven probes take 0.6% more bits than eight, and save an
    /// eighth of the work.
    pub(crate) fn fastest(keys: f64, rate: f64, slack: f64) -> Self {
        let smallest = Self::smallest(keys, rate);
        let most = smallest.bits * (1.0 + slack.min(0.0075));
        let mut sizes = (1..smallest.probes).map(|probes| Self::with_probes(keys, rate, probes));
        sizes.find(|size| size.bits <= most).unwrap_or(smallest)
    }

    /// The filter with this many probes: of m bits with k probes and n keys, a share of p = 1 − e^(−kn/m) is set,
    /// and it errs with probability p^k.
    fn with_probes(keys: f64, rate: f64, probes: u32) -> Self {
        let k = f64::from(probes);
        let fill = rate.powf(1.0 / k);
        Self { bits: keys * k / -(-fill).ln_1p(), probes }
    }

    /// The rate of a filter of this size with this many keys.
    pub(super) fn rate(bits: usize, probes: u32, keys: usize) -> f64 {
        let k = f64::from(probes);
        (-(-k * keys as f64 / bits as f64).exp_m1()).powf(k)
    }

    /// The words that this many bits take. Saturates for absurd sizes, which the allocation then refuses.
    pub(super) fn words(&self) -> usize {
        (self.bits / 64.0).ceil().max(1.0) as usize
    }

    /// The memory of the filter, in bits.
    pub(crate) fn memory(&self) -> usize {
        self.words().saturating_mul(64)
    }
}

/// The smallest number of bits per key that any Bloom filter of this rate can have: log₂(1/rate) / ln 2.
pub(crate) fn optimal_bits_per_key(rate: f64) -> f64 {
    -rate.log2() / LN_2
}

/// How much larger than whole lines half lines may be: they are twice as fast.
const SLACK: f64 = 0.08;

/// The most lines that are used by halves: 32 of 64 digits are left for the bits of a key.
const MOST_LINES: f64 = (1_u64 << 31) as f64;

/// Size and number of probes of a blocked Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BlockedSize {
    /// Cache lines, before rounding up.
    lines: f64,
    pub(super) probes: Probes,
}

impl BlockedSize {
    /// The filter that holds `keys` keys at `rate`: in half lines if these take little more than whole ones.
    pub(super) fn fastest(keys: usize, rate: f64) -> Self {
        let (half, smallest) = (Self::of(keys, rate, Probes::Half), Self::smallest(keys, rate));
        if half.lines <= MOST_LINES && half.lines <= smallest.lines * (1.0 + SLACK) { half } else { smallest }
    }

    /// The smallest filter of whole lines; that with the fewest probes among equals.
    fn smallest(keys: usize, rate: f64) -> Self {
        let [first, others @ ..] = Probes::LINES.map(|probes| Self::of(keys, rate, probes));
        others.into_iter().fold(first, |best, size| if size.lines < best.lines { size } else { best })
    }

    fn of(keys: usize, rate: f64, probes: Probes) -> Self {
        Self { lines: (keys as f64 / keys_per_line(probes, rate)).max(1.0), probes }
    }

    /// The words of the lines. Saturates for absurd sizes, which the allocation then refuses.
    pub(super) fn words(&self) -> usize {
        (self.lines.ceil() as usize).saturating_mul(LANES)
    }

    /// The memory of the filter, in bits.
    pub(super) fn memory(&self) -> usize {
        self.words().saturating_mul(64)
    }
}

/// The mean number of keys per line at which the filter errs with probability `rate`.
fn keys_per_line(probes: Probes, rate: f64) -> f64 {
    // No filter of a rate of 1/2 has fewer than 1.44 bits a key.
    let (mut low, mut high) = (0.0, 512.0);
    // The rate grows with the load: halve the interval until nothing is left of it.
    for _ in 0..57 {
        let middle = (low + high) / 2.0;
        if blocked_rate(probes, middle) <= rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.max(1e-6)
}

/// The false-positive rate of a blocked filter with `load` keys per line on average: the mean of the rates of
/// lines with 0, 1, 2, … keys, weighted by Poisson's distribution. It is what makes a blocked filter larger
/// than a classic one: lines that are fuller than the average err far more often than emptier ones make up for.
pub(super) fn blocked_rate(probes: Probes, load: f64) -> f64 {
    // Keys of the other half of the lanes, or of the line, do not meet the query.
    let load = if matches!(probes, Probes::Four | Probes::Half) { load / 2.0 } else { load };
    let last = (load + 12.0 * load.sqrt() + 30.0) as u32;
    let mut log_weight = -load;
    let mut rate = 0.0;
    for keys in 0..=last {
        if keys > 0 {
            log_weight += (load / f64::from(keys)).ln();
        }
        rate += log_weight.exp() * line_rate(probes, f64::from(keys));
    }
    rate
}

/// The false-positive rate of a line with exactly `keys` keys (in the half of the lanes that is asked about).
///
/// Lanes are independent of each other, and a bit of a lane is missed by one probe with probability 63/64, or 31/32 in
/// half a line. With two probes per lane, the two bits of the query coincide once in 64 times.
fn line_rate(probes: Probes, keys: f64) -> f64 {
    let unset = |bits: f64, balls: f64| ((64.0 - bits) / 64.0).powf(balls);
    match probes {
        Probes::Four => (1.0 - unset(1.0, keys)).powi(4),
        Probes::Eight => (1.0 - unset(1.0, keys)).powi(8),
        Probes::Half => (1.0 - unset(2.0, keys)).powi(8),
        Probes::Sixteen => {
            let balls = 2.0 * keys;
            let one = 1.0 - unset(1.0, balls);
            let both = 1.0 - 2.0 * unset(1.0, balls) + unset(2.0, balls);
            (one / 64.0 + both * 63.0 / 64.0).powi(8)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classic_size_is_within_a_percent_of_the_optimum() {
        for exponent in 1..40 {
            for rate in [0.5_f64.powi(exponent), 0.7 * 0.5_f64.powi(exponent)] {
                let size = BloomSize::smallest(1.0, rate);
                assert!(size.bits >= optimal_bits_per_key(rate) * 0.999_999);
                let slack = if rate < 0.1 { 1.01 } else { 1.04 };
                assert!(size.bits <= optimal_bits_per_key(rate) * slack, "{rate}: {size:?}");
                let fastest = BloomSize::fastest(1.0, rate, 1.0);
                assert!(fastest.bits <= size.bits * 1.0075 && fastest.probes <= size.probes);
            }
        }
        assert_eq!(BloomSize::smallest(1.0, 1.0 / 256.0).probes, 8);
        assert_eq!(BloomSize::fastest(1.0, 1.0 / 256.0, 1.0).probes, 7);
        assert_eq!(BloomSize::smallest(1.0, 0.01).probes, 7);
    }

    #[test]
    fn blocked_filters_take_the_fewest_probes_for_high_rates_and_the_most_for_low_ones() {
        let probes = |rate| BlockedSize::smallest(1 << 20, rate).probes;
        assert_eq!(probes(0.2), Probes::Four);
        assert_eq!(probes(1.0 / 256.0), Probes::Eight);
        assert_eq!(probes(1e-6), Probes::Sixteen);
        let fastest = |rate| BlockedSize::fastest(1 << 20, rate);
        assert_eq!([0.2, 0.01, 1.0 / 256.0, 0.001].map(|rate| fastest(rate).probes)[1..], [Probes::Half; 3]);
        assert_eq!(fastest(1e-6).probes, Probes::Sixteen);
        let bits = |size: BlockedSize| size.memory() as f64 / f64::from(1 << 20);
        assert!((12.8..12.9).contains(&bits(fastest(1.0 / 256.0))));
    }

    #[test]
    fn the_blocked_rate_grows_with_the_load() {
        for probes in Probes::LINES.into_iter().chain([Probes::Half]) {
            let rates: Vec<f64> = (0..200).map(|load| blocked_rate(probes, f64::from(load))).collect();
            assert!(rates.windows(2).all(|pair| pair[0] < pair[1]), "{probes:?}");
        }
    }
}
