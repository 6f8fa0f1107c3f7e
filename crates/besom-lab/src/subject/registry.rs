//! The registry: one line per filter.

use besom::{
    AdaptiveBloomFilter, BinFilter, BlockedBloomFilter, BloomFilter, BroomFilter, BuildError, Cascade,
    CuckooFilter, CuckooingFilter, CyclicFilter, DynFilter, ExtensionFilter, Filter, Ground, Overflow,
    QuotientFilter, SwappingFilter, TelescopingFilter, TinySet, UncompressedTelescopingFilter,
    WhitelistFilter, dyn_adaptive, dyn_plain, dyn_removable,
};

use super::{Space, Spec, Subject, SubjectError};
use crate::comparison::{
    BalancedBloomFilter, Cached, Clock, Lru, RankIndexedFilter, Sample, StackedFilter, VacuumFilter,
};
use crate::random::derive;
use crate::workload::Zipf;
use besom::dyn_whitelist;

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
type Build = fn(&Spec) -> Built;

impl Entry {
    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// What its builder refuses.
    pub fn filter(&self, spec: &Spec) -> Result<Box<dyn DynFilter>, SubjectError> {
        (self.build)(spec).map_err(|source| SubjectError::Build { name: self.name, source })
    }

    /// Builds the filter, and gives it a remote in memory.
    ///
    /// # Errors
    ///
    /// What its builder refuses.
    pub fn build(&self, spec: &Spec) -> Result<Subject, SubjectError> {
        self.filter(spec).map(Subject::new)
    }

    const fn adaptive(name: &'static str, states: Option<u32>, build: Build) -> Self {
        Self { name, adaptive: true, removal: true, states, build }
    }

    const fn plain(name: &'static str, removal: bool, build: Build) -> Self {
        Self { name, adaptive: false, removal, states: None, build }
    }
}

/// All filters, in the order of reports.
#[must_use]
pub fn registry() -> &'static [Entry] {
    REGISTRY
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

/// A filter of the cuckoo family by its type, the spec and a call that chooses its shape.
macro_rules! cuckoo {
    ($filter:ty, $spec:expr $(, $shape:ident)?) => {{
        let builder = <$filter>::builder().capacity($spec.keys).max_load($spec.load).seed($spec.seed)$(.$shape())?;
        let builder = match $spec.space {
            Space::SlotBits(bits) => builder.slot_bits(bits),
            Space::Rate(rate) => builder.false_positive_rate(rate),
        };
        builder.build().map(dyn_adaptive)
    }};
}

/// A filter on the quotient table by its type, the spec, the bits of a slot that are no remainder, and further
/// calls on its builder.
macro_rules! on_quotients {
    ($filter:ty, $spec:expr, $overhead:expr $(, $call:ident($value:expr))*) => {
        <$filter>::builder()
            .capacity($spec.keys)
            .max_load($spec.load)
            .seed($spec.seed)
            .false_positive_rate(rate($spec, $overhead))
            $(.$call($value))*
            .build()
    };
}

/// A Bloom filter, or a filter of levels, by its type, the spec and its rate (that of the first level).
macro_rules! without_slots {
    ($filter:ty, $spec:expr, $rate:expr) => {
        <$filter>::builder().capacity($spec.keys).false_positive_rate($rate).seed($spec.seed).build()
    };
}

const REGISTRY: &[Entry] = &[
    Entry::adaptive("telescoping", None, |spec| on_quotients!(TelescopingFilter, spec, 3).map(dyn_adaptive)),
    Entry::adaptive("telescoping-reset", None, |spec| {
        on_quotients!(TelescopingFilter, spec, 3, overflow(Overflow::Reset)).map(dyn_adaptive)
    }),
    Entry::adaptive("telescoping-uncompressed", None, |spec| {
        on_quotients!(UncompressedTelescopingFilter, spec, 3).map(dyn_adaptive)
    }),
    Entry::adaptive("extension", None, |spec| on_quotients!(ExtensionFilter, spec, 3).map(dyn_adaptive)),
    Entry::adaptive("extension-quotient", None, |spec| {
        on_quotients!(ExtensionFilter, spec, 3, ground(Ground::Quotient)).map(dyn_adaptive)
    }),
    Entry::adaptive("extension-bins", None, |spec| {
        on_quotients!(ExtensionFilter, spec, 3, ground(Ground::Bins)).map(dyn_adaptive)
    }),
    Entry::adaptive("extension-reset", None, |spec| {
        on_quotients!(ExtensionFilter, spec, 3, overflow(Overflow::Reset)).map(dyn_adaptive)
    }),
    Entry::adaptive("broom", None, |spec| {
        // Built for a load of 0.90.
        let spec = spec.load(spec.load.min(0.90));
        on_quotients!(BroomFilter, &spec, 3).map(dyn_adaptive)
    }),
    Entry::adaptive("broom-quotient", None, |spec| {
        let spec = spec.load(spec.load.min(0.90));
        on_quotients!(BroomFilter, &spec, 3, ground(Ground::Quotient)).map(dyn_adaptive)
    }),
    Entry::adaptive("broom-bins", None, |spec| {
        let spec = spec.load(spec.load.min(0.90));
        on_quotients!(BroomFilter, &spec, 3, ground(Ground::Bins)).map(dyn_adaptive)
    }),
    Entry::adaptive("cuckooing", Some(4), |spec| cuckoo!(CuckooingFilter, spec)),
    Entry::adaptive("cyclic-1", Some(2), |spec| cuckoo!(CyclicFilter::<1>, spec)),
    Entry::adaptive("cyclic-2", Some(4), |spec| cuckoo!(CyclicFilter::<2>, spec)),
    Entry::adaptive("cyclic-3", Some(8), |spec| cuckoo!(CyclicFilter::<3>, spec)),
    Entry::adaptive("swapping", Some(4), |spec| cuckoo!(SwappingFilter, spec)),
    Entry::adaptive("adaptive-bloom", None, |spec| {
        without_slots!(AdaptiveBloomFilter, spec, bloom_rate(spec)).map(dyn_adaptive)
    }),
    Entry::adaptive("cascade", None, |spec| {
        without_slots!(Cascade<QuotientFilter>, spec, rate(spec, 3)).map(dyn_adaptive)
    }),
    Entry { adaptive: true, ..Entry::plain("whitelist", false, whitelist) },
    Entry {
        adaptive: false,
        ..Entry::adaptive("cuckoo", None, |spec| cuckoo!(CuckooFilter, spec, four_by_one))
    },
    Entry::plain("quotient", true, |spec| quotient(spec).map(dyn_removable)),
    Entry::plain("bins", true, |spec| {
        without_slots!(BinFilter, spec, rate(spec, QUOTIENT_OVERHEAD)).map(dyn_removable)
    }),
    Entry::plain("bloom", false, |spec| bloom(spec).map(dyn_plain)),
    Entry::plain("blocked-bloom", false, |spec| {
        without_slots!(BlockedBloomFilter, spec, bloom_rate(spec)).map(dyn_plain)
    }),
    Entry::plain("tinyset", false, |spec| tinyset(spec).map(dyn_removable)),
    Entry::plain("rank-indexed", false, |spec| Ok(dyn_removable(rank_indexed(spec)))),
    Entry::plain("balanced-bloom", false, |spec| Ok(dyn_plain(balanced_bloom(spec)))),
    Entry::plain("vacuum", true, |spec| Ok(dyn_removable(vacuum(spec)))),
    Entry { adaptive: true, ..Entry::plain("quotient-cache", true, quotient_with_cache) },
    Entry { adaptive: true, ..Entry::plain("bloom+cache", false, bloom_with_cache) },
    Entry::plain("stacked", false, |spec| stacked(spec).map(dyn_plain)),
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
    on_quotients!(QuotientFilter, spec, QUOTIENT_OVERHEAD)
}

/// The rate of a Bloom filter of as many bits as the slots have.
fn bloom_rate(spec: &Spec) -> f64 {
    match spec.space {
        Space::SlotBits(bits) => 0.5_f64.powf(f64::from(bits) / spec.load * std::f64::consts::LN_2),
        Space::Rate(rate) => rate,
    }
}

fn bloom(spec: &Spec) -> Result<BloomFilter, BuildError> {
    without_slots!(BloomFilter, spec, bloom_rate(spec))
}

fn whitelist(spec: &Spec) -> Built {
    without_slots!(WhitelistFilter, spec, bloom_rate(spec)).map(dyn_whitelist)
}

/// A TinySet of as many bits as the slots have.
fn tinyset(spec: &Spec) -> Result<TinySet, BuildError> {
    let builder = TinySet::builder().capacity(spec.keys).seed(spec.seed);
    let builder = match spec.space {
        Space::SlotBits(bits) => builder.items_per_block(512.0 * spec.load / f64::from(bits)),
        Space::Rate(rate) => builder.false_positive_rate(rate),
    };
    builder.build()
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

/// A Bloom filter and a real cache of known-absent keys: a tenth of the space of the former, where nothing is known of the queries.
fn bloom_with_cache(spec: &Spec) -> Built {
    let bits = bloom_bits(spec);
    let cache = Lru::new(bits as usize / 80, spec.seed);
    let left = match spec.space {
        Space::SlotBits(_) => bits - 8.0 * Lru::sizes(bits as usize / 80).last().unwrap_or(0) as f64,
        // The rate is the filter's; the cache comes on top.
        Space::Rate(_) => bits,
    };
    let rate = 0.5_f64.powf(left / spec.keys as f64 * std::f64::consts::LN_2);
    let filter = without_slots!(BloomFilter, spec, rate)?;
    Ok(Box::new(Cached::new(dyn_plain(filter), cache)))
}

/// A stacked filter that was trained on ordinary traffic: Zipf's law over ten absent keys for each stored one. Nobody else in a
/// game or a contest asks for these.
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
