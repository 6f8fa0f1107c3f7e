//! Filters that the papers compare with, and the rivals that a sceptic would name: correct and tested, not tuned.
//!
//! Each has the library's traits ([`Filter`](besom::Filter), [`Insert`](besom::Insert), [`Remove`](besom::Remove));
//! those that all experiments know have a line in the [registry](crate::subject::registry()).

mod balanced;
mod cached;
mod d_left;
mod packed;
mod rank_indexed;
mod stacked;
#[cfg(test)]
mod tests;
mod vacuum;
mod variable_increment;

use besom::{Digest, FilterStats, InvariantError};

use crate::random::mix;

pub use balanced::BalancedBloomFilter;
pub use cached::{Cached, Clock, Lru, Memory};
pub use d_left::DLeftFilter;
pub use packed::Packed;
pub use rank_indexed::RankIndexedFilter;
pub use stacked::{Design, Sample, StackedFilter};
pub use vacuum::VacuumFilter;
pub use variable_increment::VariableIncrementFilter;

/// The questions that all filters of this folder answer alike.
macro_rules! answer_alike {
    () => {
        type Hasher = Xxh3;

        fn hasher(&self) -> &Xxh3 {
            &self.hash
        }

        fn len(&self) -> usize {
            self.items
        }

        fn capacity(&self) -> usize {
            self.capacity
        }
    };
}
use answer_alike;

/// Maps 64 hash bits to a number below `bound`.
fn below(hash: u64, bound: usize) -> usize {
    ((u128::from(hash) * bound as u128) >> 64) as usize
}

/// `count` independent places below `bound`: in a small block, double hashing would be seen in the rate.
fn probes(digest: Digest, count: u32, bound: usize) -> impl Iterator<Item = usize> {
    let (first, step) = (digest.hi, digest.lo | 1);
    (0..u64::from(count)).map(move |i| below(mix(first.wrapping_add(step.wrapping_mul(i))), bound))
}

/// The probabilities of 0, 1, 2, … under a Poisson distribution, until hardly anything is left.
fn poisson(mean: f64) -> impl Iterator<Item = f64> {
    let most = (mean + 12.0 * mean.sqrt() + 30.0) as u32;
    let mut probability = (-mean).exp();
    (0..most).map(move |i| {
        if i > 0 {
            probability *= mean / f64::from(i);
        }
        probability
    })
}

/// The probability that another key has the fingerprint of one of these keys, if there are so many fingerprints.
fn collision_rate(keys: usize, fingerprints: f64) -> f64 {
    -(keys as f64 * (-fingerprints.recip()).ln_1p()).exp_m1()
}

/// The statistics of a filter that has no more to say than this.
fn stats(items: usize, slots: usize, bits: usize) -> FilterStats {
    let mut stats = FilterStats::default();
    (stats.items, stats.slots, stats.bits) = (items, slots, bits);
    stats.load = items as f64 / slots as f64;
    stats
}

/// An error that describes a violation unless the condition holds.
fn ensure(condition: bool, violation: impl FnOnce() -> String) -> Result<(), InvariantError> {
    if condition { Ok(()) } else { Err(InvariantError::new(violation())) }
}
