//! The rivals that a sceptic would name: a Bloom filter with a cache of absent keys, and a stacked filter.

use besom::any::dyn_plain;
use besom::bloom::BloomFilter;
use besom::{BuildError, Filter};
use besom_lab::comparison::{Cached, Lru, StackedFilter};
use besom_lab::subject::Subject;

use super::contender::{Contender, Ours, Plan, Refused, Space};

type Built = Result<Box<dyn Contender>, Refused>;

/// The rate of a Bloom filter of this many bits a key.
pub(super) fn rate_of_bits(bits: f64) -> f64 {
    0.5_f64.powf(bits * std::f64::consts::LN_2)
}

fn bits_of_rate(rate: f64) -> f64 {
    (1.0 / rate).log2() / std::f64::consts::LN_2
}

fn refused(error: &BuildError, rate: f64) -> Refused {
    match error {
        BuildError::RateOutOfRange { min, .. } if rate < *min => Refused::TooSmall,
        BuildError::RateOutOfRange { .. } => Refused::TooLarge,
        error => Refused::Other(error.to_string()),
    }
}

/// The rate is the filter's. The cache has the bytes with which the whole stream, seen in hindsight, has the fewest
/// useless reads.
pub(super) fn bloom_with_cache(_: &str, plan: &Plan<'_>, rate: f64) -> Built {
    let builder = BloomFilter::builder().capacity(plan.keys).false_positive_rate(rate).seed(plan.seed);
    let filter = builder.build().map_err(|error| refused(&error, rate))?;
    let bytes = match plan.space {
        Space::BitsPerKey(_) => plan.training.cache_bytes,
        // Nothing is shared out: a tenth of the filter, on top of it.
        Space::Rate(_) => filter.stats().bits / 80,
    };
    Ok(Box::new(Ours(Subject::new(Box::new(Cached::new(dyn_plain(filter), Lru::new(bytes, plan.seed)))))))
}

/// The space is that of a Bloom filter of this rate; the layers share it.
pub(super) fn stacked(_: &str, plan: &Plan<'_>, rate: f64) -> Built {
    let bits = bits_of_rate(rate) * plan.keys as f64;
    let filter = StackedFilter::new(plan.keys, bits, &plan.training.sample, plan.seed)
        .map_err(|error| refused(&error, rate))?;
    Ok(Box::new(Ours(Subject::new(dyn_plain(filter)))))
}
