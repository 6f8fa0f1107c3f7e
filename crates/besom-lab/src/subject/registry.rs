//! The registry: every filter of besom, and those that it is compared with.

use std::sync::LazyLock;

use besom::any::{AnyFilter, Config, DynFilter, dyn_plain, dyn_removable};
use besom::bloom::BloomFilter;
use besom::format::Kind;
use besom::quotient::QuotientFilter;
use besom::{BuildError, Filter, Seed, Xxh3};

use super::{Space, Spec, Subject, SubjectError};
use crate::comparison::{
    BalancedBloomFilter, Cached, Clock, Lru, RankIndexedFilter, Sample, StackedFilter, VacuumFilter,
};
use crate::random::derive;
use crate::workload::Zipf;

/// A filter that can be built.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name on command lines and in reports.
    pub name: &'static str,
    /// Whether it repairs false positives.
    pub adaptive: bool,
    /// Whether keys can be removed from it.
    pub removal: bool,
    /// In how many states a stored key can be, where that is a small number: what an adversary knows of it.
    pub states: Option<u32>,
    build: Build,
}

type Built = Result<Box<dyn DynFilter>, BuildError>;
type Build = fn(&str, &Spec) -> Built;

impl Entry {
    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// What its builder refuses.
    pub fn filter(&self, spec: &Spec) -> Result<Box<dyn DynFilter>, SubjectError> {
        (self.build)(self.name, spec).map_err(|source| SubjectError::Build { name: self.name, source })
    }

    /// Builds the filter, and gives it a remote in memory.
    ///
    /// # Errors
    ///
    /// What its builder refuses.
    pub fn build(&self, spec: &Spec) -> Result<Subject, SubjectError> {
        self.filter(spec).map(Subject::new)
    }

    const fn plain(name: &'static str, removal: bool, build: Build) -> Self {
        Self { name, adaptive: false, removal, states: None, build }
    }
}

/// All filters, in the order of reports.
#[must_use]
pub fn registry() -> &'static [Entry] {
    &REGISTRY
}

/// The filter of this name.
///
/// # Errors
///
/// [`SubjectError::Unknown`] if there is none.
pub fn find(name: &str) -> Result<&'static Entry, SubjectError> {
    registry()
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| SubjectError::Unknown { name: name.to_owned() })
}

/// Builds the filter of this name, with a remote in memory.
///
/// # Errors
///
/// If there is none, or its builder refuses.
pub fn build(name: &str, spec: &Spec) -> Result<Subject, SubjectError> {
    find(name)?.build(spec)
}

/// The configuration of a filter of besom by its name, and the spec.
///
/// # Errors
///
/// [`SubjectError::Unknown`] if no filter of besom has this name.
pub fn config(name: &str, spec: &Spec) -> Result<Config, SubjectError> {
    let config: Config = name.parse().map_err(|_| SubjectError::Unknown { name: name.to_owned() })?;
    let mut config = config.capacity(spec.keys).seed(Seed::from(spec.seed));
    let kind = config.kind();
    if config.accepts("max_load") && kind != Kind::Bins {
        // Broom filters are built for a load of 0.90.
        config.max_load = Some(if kind == Kind::Broom { spec.load.min(0.90) } else { spec.load });
    }
    if kind == Kind::CuckooRemote {
        config.shape = Some((4, 1));
    }
    match spec.space {
        Space::SlotBits(bits) if config.accepts("slot_bits") => config.slot_bits = Some(bits),
        Space::SlotBits(bits) if config.accepts("items_per_block") => {
            config.items_per_block = Some(512.0 * spec.load / f64::from(bits));
        }
        _ if config.accepts("max_load") || kind == Kind::Cascade => {
            config.false_positive_rate = Some(rate(spec, QUOTIENT_OVERHEAD));
        }
        _ => config.false_positive_rate = Some(bloom_rate(spec)),
    }
    Ok(config)
}

/// A filter of besom.
fn ours(name: &'static str) -> Option<Entry> {
    let kind = name.parse::<Config>().ok()?.kind();
    let states = match kind {
        Kind::Cuckooing | Kind::Cyclic2 | Kind::Swapping => Some(4),
        Kind::Cyclic1 => Some(2),
        Kind::Cyclic3 => Some(8),
        _ => None,
    };
    // The default of a `TinySet` is smaller, and does not remove.
    let removal = kind.removes() && kind != Kind::TinySet;
    // `cuckoo` is listed in the shape of its builder, and the yardstick of the papers, `cuckoo-remote`, in this one.
    let listed = kind.is_configured() && name != "cuckoo-remote-4x1";
    listed.then_some(Entry { name, adaptive: kind.repairs(), removal, states, build: build_ours })
}

fn build_ours(name: &str, spec: &Spec) -> Built {
    let Ok(config) = config(name, spec) else { return Err(BuildError::ZeroCapacity) };
    AnyFilter::<Xxh3>::build(&config).map(AnyFilter::into_dyn)
}

static REGISTRY: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut entries: Vec<Entry> = Config::names().filter_map(ours).collect();
    entries.sort_by_key(|entry| !entry.adaptive);
    entries.extend(OTHERS);
    entries
});

/// Filters that besom does not have.
const OTHERS: [Entry; 6] = [
    Entry::plain("rank-indexed", false, |_, spec| Ok(dyn_removable(rank_indexed(spec)))),
    Entry::plain("balanced-bloom", false, |_, spec| Ok(dyn_plain(balanced_bloom(spec)))),
    Entry::plain("vacuum", true, |_, spec| Ok(dyn_removable(vacuum(spec)))),
    Entry { adaptive: true, ..Entry::plain("quotient-cache", true, |_, spec| quotient_with_cache(spec)) },
    Entry { adaptive: true, ..Entry::plain("bloom+cache", false, |_, spec| bloom_with_cache(spec)) },
    Entry::plain("stacked", false, |_, spec| stacked(spec).map(dyn_plain)),
];

/// Metadata and adaptivity bits of a slot on the quotient table, as the papers count them: 2.125 + 0.875.
const QUOTIENT_OVERHEAD: u32 = 3;

/// The false-positive rate that makes a quotient filter take remainders as long as the spec allows.
fn rate(spec: &Spec, overhead: u32) -> f64 {
    match spec.space {
        Space::SlotBits(bits) => 0.5_f64.powi(bits.saturating_sub(overhead) as i32),
        Space::Rate(rate) => rate,
    }
}

fn quotient(spec: &Spec) -> Result<QuotientFilter, BuildError> {
    let builder = QuotientFilter::builder().capacity(spec.keys).max_load(spec.load).seed(spec.seed);
    builder.false_positive_rate(rate(spec, QUOTIENT_OVERHEAD)).build()
}

/// The rate of a Bloom filter of as many bits as the slots have.
fn bloom_rate(spec: &Spec) -> f64 {
    match spec.space {
        Space::SlotBits(bits) => 0.5_f64.powf(f64::from(bits) / spec.load * std::f64::consts::LN_2),
        Space::Rate(rate) => rate,
    }
}

fn rank_indexed(spec: &Spec) -> RankIndexedFilter {
    let bits = match spec.space {
        Space::SlotBits(bits) => f64::from(bits) / spec.load,
        Space::Rate(rate) => RankIndexedFilter::bits_per_key((1.0 / rate).log2(), false),
    };
    RankIndexedFilter::plain(spec.keys, RankIndexedFilter::remainder_bits(bits, false), spec.seed)
}

fn balanced_bloom(spec: &Spec) -> BalancedBloomFilter {
    let bits = match spec.space {
        Space::SlotBits(bits) => f64::from(bits) / spec.load,
        // What an ordinary Bloom filter takes, and a tenth for the blocks.
        Space::Rate(rate) => 1.1 * (1.0 / rate).log2() / std::f64::consts::LN_2,
    };
    BalancedBloomFilter::balanced(spec.keys, bits, spec.seed)
}

fn vacuum(spec: &Spec) -> VacuumFilter {
    let bits = match spec.space {
        Space::SlotBits(bits) => bits,
        // A query is compared with eight slots.
        Space::Rate(rate) => (8.0 * spec.load / rate).log2().ceil() as u32,
    };
    VacuumFilter::new(spec.keys, bits, spec.load, spec.seed)
}

/// A plain quotient filter, and a cache of whole 64-bit keys in what the papers' filters spend on adaptivity.
fn quotient_with_cache(spec: &Spec) -> Built {
    const KEY_BITS: usize = 64;
    let filter = quotient(spec)?;
    let slots = spec.keys as f64 / spec.load;
    let budget = match spec.space {
        Space::SlotBits(bits) => f64::from(bits) * slots,
        Space::Rate(rate) => (f64::from(QUOTIENT_OVERHEAD) + (spec.load / rate).log2().ceil()) * slots,
    };
    let room = budget as usize / KEY_BITS;
    let entries = room.saturating_sub(filter.stats().bits.div_ceil(KEY_BITS));
    Ok(Box::new(Cached::new(dyn_removable(filter), Clock::new(entries, KEY_BITS))))
}

/// The bits of a Bloom filter, and of what takes its place.
fn bloom_bits(spec: &Spec) -> f64 {
    let per_key = match spec.space {
        Space::SlotBits(bits) => f64::from(bits) / spec.load,
        Space::Rate(rate) => (1.0 / rate).log2() / std::f64::consts::LN_2,
    };
    per_key * spec.keys as f64
}

/// A Bloom filter and a real cache of known-absent keys: a tenth of the space of the former, where nothing is known of
/// the queries.
fn bloom_with_cache(spec: &Spec) -> Built {
    let bits = bloom_bits(spec);
    let cache = Lru::new(bits as usize / 80, spec.seed);
    let left = match spec.space {
        Space::SlotBits(_) => bits - 8.0 * Lru::sizes(bits as usize / 80).last().unwrap_or(0) as f64,
        // The rate is the filter's; the cache comes on top.
        Space::Rate(_) => bits,
    };
    let rate = 0.5_f64.powf(left / spec.keys as f64 * std::f64::consts::LN_2);
    let filter =
        BloomFilter::builder().capacity(spec.keys).false_positive_rate(rate).seed(spec.seed).build()?;
    Ok(Box::new(Cached::new(dyn_plain(filter), cache)))
}

/// A stacked filter that was trained on ordinary traffic: Zipf's law over ten absent keys for each stored one. Nobody
/// else in a game or a contest asks for these.
fn stacked(spec: &Spec) -> Result<StackedFilter, BuildError> {
    let universe = 10 * spec.keys as u64;
    let zipf = Zipf::new(universe, 1.0, derive(spec.seed, "traffic", 0)).into_iter().flatten();
    let traffic: Vec<[u8; 8]> = zipf.take(2 * spec.keys).map(u64::to_le_bytes).collect();
    let sample = Sample::of(traffic.iter().map(<[u8; 8]>::as_slice));
    StackedFilter::new(spec.keys, bloom_bits(spec), &sample, spec.seed)
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, Trial};
    use super::*;
    use crate::workload::Uniform;

    /// Every filter of the registry can be filled as the papers do it, keeps its keys, adapts if it says so, and
    /// takes the space it was given.
    #[test]
    fn every_filter_does_what_its_entry_says() {
        for entry in registry() {
            for spec in [Spec::new(4000, 1), Spec::new(4000, 2).rate(1.0 / 64.0)] {
                let mut trial = Trial::new(entry.build(&spec).unwrap());
                let stored: Vec<[u8; 8]> = Uniform::new(1).take(4000).map(u64::to_le_bytes).collect();
                stored.iter().for_each(|key| assert!(trial.insert(key).unwrap()));
                let queries: Vec<[u8; 8]> = Uniform::new(2).take(20_000).map(u64::to_le_bytes).collect();
                let (mut found, mut again) = (0, 0);
                for key in &queries {
                    if trial.lookup(key).unwrap().is_false_positive() {
                        found += 1;
                        again += usize::from(trial.lookup(key).unwrap().is_false_positive());
                    }
                }
                // A cyclic filter cannot repair a key that collides in each of its states.
                let expected = if entry.adaptive { 0..found / 4 } else { found..found + 1 };
                assert!(expected.contains(&again), "{}: {again} of {found}", entry.name);
                assert!(found > 10 && found < 1000, "{}: {found}", entry.name);
                stored.iter().for_each(|key| assert_eq!(trial.lookup(key).unwrap(), Answer::Positive));
                let bits = trial.stats().bits_per_key();
                // Whole selectors, and lists of whole digests, take what they take.
                let most = match entry.name {
                    "telescoping-uncompressed" | "whitelist" => 40.0,
                    _ => 24.0,
                };
                assert!(bits > 6.0 && bits < most, "{}: {bits} bits a key", entry.name);
                assert_eq!(trial.remove(&stored[0]).is_ok(), entry.removal, "{}", entry.name);
            }
        }
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        assert!(matches!(build("no-such", &Spec::new(1, 1)), Err(SubjectError::Unknown { .. })));
    }
}
