//! 002: what all experiments of the TinySet paper share: its filters at a given space, and their measured rate.

use besom::any::{dyn_plain, dyn_removable};
use besom::tinyset::TinySet;

use super::{Setting, TaskError};
use crate::comparison::{BalancedBloomFilter, DLeftFilter, RankIndexedFilter, VariableIncrementFilter};
use crate::subject::Subject;
use crate::workload::Uniform;

/// A filter of the paper, to be built at any number of bits per key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Contender {
    /// TinySet with a given average number of items in a block.
    Items { items: f64, chains: u32, removal: bool },
    /// TinySet with blocks of a given size.
    Block { bits: u32, chains: u32 },
    /// An ordinary Bloom filter.
    Bloom,
    /// A Bloom filter in blocks of 32 bytes, with the probes of an ordinary one unless told otherwise.
    Blocked { probes: Option<u32> },
    /// The same, balanced.
    Balanced,
    /// Rank-indexed hashing in bins of so many chains.
    Rank { counting: bool, chains: usize },
    /// The d-left counting Bloom filter.
    DLeft,
    /// The variable-increment counting Bloom filter.
    VariableIncrement,
}

impl Contender {
    /// TinySet with λ = 1: as many chains in a block as items on average.
    pub(super) const fn items(items: u32) -> Self {
        Self::Items { items: items as f64, chains: items, removal: false }
    }

    /// The filter for this many keys with about this many bits for each.
    pub(super) fn build(self, keys: usize, bits_per_key: f64, seed: u64) -> Result<Subject, TaskError> {
        Ok(Subject::new(match self {
            Self::Items { .. } | Self::Block { .. } => {
                dyn_removable(self.tinyset(keys, bits_per_key, seed)?)
            }
            Self::Bloom => dyn_plain(BalancedBloomFilter::ordinary(keys, bits_per_key, seed)),
            Self::Blocked { probes } => dyn_plain(match probes {
                None => BalancedBloomFilter::blocked(keys, bits_per_key, seed),
                Some(probes) => BalancedBloomFilter::blocked_with(probes, keys, bits_per_key, seed),
            }),
            Self::Balanced => dyn_plain(BalancedBloomFilter::balanced(keys, bits_per_key, seed)),
            Self::Rank { counting, chains } => {
                let bits = RankIndexedFilter::remainder_bits(bits_per_key, counting);
                dyn_removable(RankIndexedFilter::with_bins(chains, keys, bits, counting, seed))
            }
            // Eight cells for six keys, each with a counter of two bits.
            Self::DLeft => {
                let remainder_bits = (bits_per_key * 0.75 - 2.0).round() as u32;
                dyn_removable(DLeftFilter::new(keys, remainder_bits, seed))
            }
            Self::VariableIncrement => dyn_removable(VariableIncrementFilter::new(keys, bits_per_key, seed)),
        }))
    }

    /// The TinySet of such a contender.
    pub(super) fn tinyset(self, keys: usize, bits_per_key: f64, seed: u64) -> Result<TinySet, TaskError> {
        let builder = TinySet::builder().capacity(keys).seed(seed);
        let builder = match self {
            Self::Items { items, chains, removal } => {
                let bits = (bits_per_key * items).round() as u32;
                builder.block_bits(bits).chains(chains).items_per_block(items).removal(removal)
            }
            Self::Block { bits, chains } => {
                builder.block_bits(bits).chains(chains).items_per_block(f64::from(bits) / bits_per_key)
            }
            _ => return Err(format!("{self:?} is no TinySet").into()),
        };
        Ok(builder.build()?)
    }

    /// How far apart in bits a key two sizes must be to be different ones.
    fn step(self) -> f64 {
        match self {
            Self::Rank { .. } => 1.2,
            Self::DLeft => 1.4,
            _ => 0.4,
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) keys: usize,
    pub(super) queries: usize,
}

impl Effort {
    pub(super) fn new(setting: &Setting) -> Self {
        Self { keys: setting.pick(100_000, 400_000), queries: setting.pick(1_000_000, 5_000_000) }
    }

    /// The effort that a rate needs to be met often enough.
    pub(super) fn for_rate(self, rate: f64) -> Self {
        Self { queries: if rate < 5e-4 { 4 * self.queries } else { self.queries }, ..self }
    }

    /// About how many filter operations a measurement takes.
    pub(super) fn cost(self) -> f64 {
        (self.keys + self.queries) as f64
    }
}

/// A filter that holds its keys: the bits that each takes, and how often another key is taken for one of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    pub(super) bits: f64,
    pub(super) rate: f64,
}

/// Fills a filter and asks for fresh keys.
pub(super) fn measure(
    contender: Contender,
    bits_per_key: f64,
    effort: Effort,
    seed: u64,
) -> Result<Measured, TaskError> {
    let mut filter = contender.build(effort.keys, bits_per_key, seed)?;
    let mut keys = Uniform::new(seed);
    for key in keys.by_ref().take(effort.keys) {
        filter.insert(&key.to_le_bytes())?;
    }
    // The same generator goes on, so that no key comes twice.
    Ok(Measured { bits: filter.stats().bits_per_key(), rate: rate_of(&filter, &mut keys, effort.queries) })
}

/// The share of the next `queries` keys that a filter accepts; half of one if it accepts none.
pub(super) fn rate_of(filter: &Subject, keys: &mut Uniform, queries: usize) -> f64 {
    let accepted = keys.take(queries).filter(|key| filter.contains(&key.to_le_bytes())).count();
    (accepted as f64).max(0.5) / queries as f64
}

/// The bits a key at which a filter has exactly this rate, by measurements on both sides of it.
pub(super) fn bits_at(
    contender: Contender,
    rate: f64,
    start: f64,
    effort: Effort,
    seed: u64,
) -> Result<f64, TaskError> {
    let found = near(contender, rate, start, effort, seed)?;
    // Where the rate hardly falls, the first guess may be far off.
    if (found - start).abs() < 3.0 * contender.step() {
        return Ok(found);
    }
    near(contender, rate, found, effort, seed.wrapping_add(3))
}

/// One round: measures at `start` and on both sides of where the rate seems to be met from there.
fn near(contender: Contender, rate: f64, start: f64, effort: Effort, seed: u64) -> Result<f64, TaskError> {
    let mut known = vec![measure(contender, start, effort, seed)?];
    // A bit more halves the rate, nearly.
    let guess = known[0].bits + 1.1 * (known[0].rate / rate).log2();
    for (number, step) in [(1, -contender.step()), (2, contender.step())] {
        known.push(measure(contender, guess + step, effort, seed.wrapping_add(number))?);
    }
    // A straight line through the logarithms; a rate is as certain as it was often met.
    let mean = |value: &dyn Fn(&Measured) -> f64| {
        let weighted: f64 = known.iter().map(|measured| measured.rate * value(measured)).sum();
        weighted / known.iter().map(|measured| measured.rate).sum::<f64>()
    };
    let log = |measured: &Measured| (measured.rate / rate).log2();
    let (bits, level) = (mean(&|measured| measured.bits), mean(&log));
    let slope = mean(&|measured| (measured.bits - bits) * (log(measured) - level))
        / mean(&|measured| (measured.bits - bits).powi(2));
    let found = bits - level / slope;
    if found.is_finite() {
        Ok(found)
    } else {
        Err(format!("{contender:?} has one size near {start} bits").into())
    }
}
