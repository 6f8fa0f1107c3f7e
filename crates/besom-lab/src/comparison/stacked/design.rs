//! Which stacked filter is the best in a given space: the search of the paper, over numbers alone.

use besom::bloom::BloomFilter;

/// How many known negatives a stacked filter is built with, and the rate of each layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// How many of the most frequent negatives it knows.
    pub known: usize,
    /// The rates of the layers: of the keys, of the negatives that pass, of the keys that pass these, and so on. An odd
    /// number.
    pub rates: Vec<f64>,
}

/// Layers that are tried; more change nothing that could be measured.
const LAYERS: [usize; 3] = [1, 3, 5];
/// The rates that are tried: 2^-1 to 2^-12 in steps of half a bit in the inner layers, 2^-1 to 2^-30 in steps of an
/// eighth in the first.
const INNER: std::ops::RangeInclusive<u32> = 2..=24;
const FIRST: std::ops::Range<u32> = 8..240;

impl Design {
    /// The design with the fewest expected false positives for this many keys within this many bits. `shares` says
    /// which share of the queries to come the most frequent k negatives will make up, for several k.
    #[must_use]
    pub fn fit(keys: usize, bits: f64, shares: &[(usize, f64)]) -> Self {
        let plain = [(0, 0.0)];
        let candidates = plain.iter().chain(shares).flat_map(|&(known, share)| {
            let inner = INNER.map(|step| 0.5_f64.powf(f64::from(step) / 2.0));
            inner.flat_map(move |inner| {
                let layers = LAYERS.into_iter().filter(move |&layers| layers == 1 || known > 0);
                layers.filter_map(move |layers| {
                    let design = Self::within(keys, bits, known, inner, layers)?;
                    Some((design.false_positives(share), design))
                })
            })
        });
        let best = candidates.min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or_else(|| Self { known: 0, rates: vec![0.5] }, |(_, design)| design)
    }

    /// The design with these inner layers whose first layer takes the bits that are left. `None` if there are too few.
    fn within(keys: usize, bits: f64, known: usize, inner: f64, layers: usize) -> Option<Self> {
        let at = |step: u32| {
            let mut rates = vec![inner; layers];
            rates[0] = 0.5_f64.powf(f64::from(step) / 8.0);
            Self { known, rates }
        };
        let fits = |step: u32| at(step).bits(keys) <= bits;
        if !fits(FIRST.start) {
            return None;
        }
        // The first layer grows with its precision faster than the others shrink.
        let (mut good, mut bad) = (FIRST.start, FIRST.end);
        while good + 1 < bad {
            let step = u32::midpoint(good, bad);
            if fits(step) {
                good = step;
            } else {
                bad = step;
            }
        }
        Some(at(good))
    }

    /// The expected bits of all layers for this many keys.
    #[must_use]
    pub fn bits(&self, keys: usize) -> f64 {
        let mut reaching = [keys as f64, self.known as f64];
        let mut bits = 0.0;
        for (place, &rate) in self.rates.iter().enumerate() {
            let side = place % 2;
            bits += layer_bits(reaching[side], rate);
            // A layer lets all of its own side pass, and this share of the other.
            reaching[1 - side] *= rate;
        }
        bits
    }

    /// The expected share of false positives, if known negatives make up this share of the queries.
    #[must_use]
    pub fn false_positives(&self, share: f64) -> f64 {
        let known: f64 = self.rates.iter().step_by(2).product();
        let (mut reaching, mut unknown) = (1.0, 0.0);
        for (place, &rate) in self.rates.iter().enumerate() {
            if place % 2 == 1 {
                unknown += reaching * (1.0 - rate);
            }
            reaching *= rate;
        }
        share * known + (1.0 - share) * (unknown + reaching)
    }
}

/// The bits of a Bloom filter for this many keys, of which there may be a fraction.
fn layer_bits(keys: f64, rate: f64) -> f64 {
    let whole = keys.ceil().max(1.0);
    let builder = BloomFilter::builder().capacity(whole as usize).false_positive_rate(rate);
    builder.size_in_bits().map_or(f64::INFINITY, |bits| bits as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_is_known_the_fewer_false_positives() {
        let unknown = Design::fit(10_000, 120_000.0, &[]);
        assert_eq!((unknown.known, unknown.rates.len()), (0, 1));
        let of = |share| Design::fit(10_000, 120_000.0, &[(5000, share)]).false_positives(share);
        let rates = [0.0, 0.2, 0.5, 0.9, 0.99].map(of);
        assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
        assert!(rates[4] < rates[0] / 20.0, "{rates:?}");
    }

    #[test]
    fn a_design_fits() {
        for bits in [2.0, 8.0, 12.0, 20.0] {
            let design = Design::fit(10_000, bits * 10_000.0, &[(100, 0.2), (10_000, 0.6)]);
            assert!(design.bits(10_000) <= bits * 10_000.0, "{design:?}");
            assert!(design.bits(10_000) >= 0.9 * bits * 10_000.0, "{design:?}");
        }
    }
}
