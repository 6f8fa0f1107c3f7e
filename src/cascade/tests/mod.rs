//! Catches: a key that is lost when cells die, when it comes late, when it is removed and comes back, or when the
//! filter is rebuilt; repairs that do not repair; a remote error that leaves half a change behind.

use std::collections::HashSet;
use std::convert::Infallible;

use super::*;
use crate::testing::{Fault, FaultError, Faults, Faulty, Random};
use crate::{
    Adaptation, Adaptive, AdaptiveBloomFilter, AdaptiveError, BlockedBloomFilter, BloomFilter, BuildError,
    Filter, MemoryRemote, QuotientFilter,
};

mod faults;
mod promises;

type TestRemote = Faulty<MemoryRemote>;

/// A cascade beside the exact set of what it stores.
struct Checked<F> {
    filter: Cascade<F>,
    remote: TestRemote,
    stored: HashSet<u64>,
}

fn no_faults() -> TestRemote {
    Faulty::new(MemoryRemote::new(), Faults::none())
}

const FAILURE: AdaptiveError<FaultError<Infallible>> =
    AdaptiveError::Remote(FaultError::Injected(Fault::FailBefore));

impl<F: LevelFilter> Checked<F> {
    fn new(builder: CascadeBuilder<F>) -> Self {
        Self { filter: builder.build().unwrap(), remote: no_faults(), stored: HashSet::new() }
    }

    fn insert(&mut self, key: u64) {
        let full = self.stored.len() >= self.filter.capacity();
        match self.filter.insert(&key, &mut self.remote) {
            Ok(fresh) => assert_eq!(fresh, self.stored.insert(key)),
            Err(AdaptiveError::Full(_)) => assert!(full && !self.stored.contains(&key)),
            Err(error) => assert_eq!(error, FAILURE),
        }
    }

    fn remove(&mut self, key: u64) {
        match self.filter.remove(&key, &mut self.remote) {
            Ok(removed) => assert_eq!(removed, self.stored.remove(&key)),
            Err(error) => assert_eq!(error, FAILURE),
        }
    }

    fn adapt(&mut self, key: u64) {
        let false_positive = self.filter.contains(&key) && !self.stored.contains(&key);
        match self.filter.adapt(&key, &mut self.remote) {
            Ok(adaptation) if false_positive => {
                assert!(adaptation.is_fixed(), "{adaptation:?}");
                assert!(!self.filter.contains(&key));
            }
            Ok(adaptation) => assert_eq!(adaptation, Adaptation::NotFalsePositive),
            Err(error) => assert_eq!(error, FAILURE),
        }
    }

    fn check(&mut self) {
        self.filter.verify().unwrap();
        self.filter.verify_remote(&mut self.remote).unwrap();
        assert_eq!(self.filter.len(), self.stored.len());
        assert_eq!(self.remote.inner.len(), self.stored.len(), "one entry per key");
        assert!(self.stored.iter().all(|key| self.filter.contains(key)), "a false negative");
    }
}

/// Random operations on tiny cascades, so that cells are shared, die, overflow and are rebuilt all the time.
fn agrees_with_a_set<F: LevelFilter>(cascades: u64) -> u64 {
    let mut rebuilds = 0;
    for seed in 0..cascades {
        let mut random = Random::new(seed);
        let capacity = 1 + random.below(60) as usize;
        let rate = 0.5_f64.powi(1 + random.below(6) as i32);
        let schedule = [Schedule::Squaring, Schedule::LogStar][random.below(2) as usize];
        let builder = Cascade::<F>::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
        let mut checked = Checked::new(builder.levels(1 + random.below(4) as usize).schedule(schedule));
        let keys = 20 * capacity as u64;
        for _ in 0..500 {
            if random.one_in(8) {
                checked.remote.faults.light_fuse(random.below(5), Fault::FailBefore);
            }
            let key = random.below(keys);
            match random.below(10) {
                0..4 => checked.insert(key),
                4 => checked.remove(key),
                5 => checked.stored.iter().next().copied().into_iter().for_each(|key| checked.remove(key)),
                _ => (0..4).for_each(|_| checked.adapt(random.below(10 * keys))),
            }
            checked.remote.faults.put_out();
            checked.check();
        }
        rebuilds += checked.filter.stats().rebuilds;
    }
    rebuilds
}

#[test]
fn cascades_of_bloom_filters_agree_with_a_set() {
    assert!(agrees_with_a_set::<BloomFilter>(60) > 100);
}

#[test]
fn cascades_of_blocked_bloom_filters_agree_with_a_set() {
    assert!(agrees_with_a_set::<BlockedBloomFilter>(10) > 30);
}

#[test]
fn cascades_of_quotient_filters_agree_with_a_set() {
    assert!(agrees_with_a_set::<QuotientFilter>(60) > 40);
}

/// The trap of the construction: a key that is inserted after its home cell died must be found, as deep as homes
/// are dead.
fn late_keys_are_found<F: LevelFilter>() {
    let mut deepest = 0;
    for seed in 0..20_u64 {
        let builder = Cascade::<F>::builder().capacity(1_000).false_positive_rate(0.25).seed(seed);
        let mut checked = Checked::new(builder.levels(3));
        (0..500).for_each(|key| checked.insert(key));
        (1_000..3_000).for_each(|key| checked.adapt(key));
        let moved = |checked: &Checked<F>| checked.filter.levels()[1].keys;
        let (before, rebuilds) = (moved(&checked), checked.filter.stats().rebuilds);
        (3_000..3_500).for_each(|key| checked.insert(key));
        checked.check();
        if checked.filter.stats().rebuilds == rebuilds {
            deepest += moved(&checked) - before;
        }
    }
    assert!(deepest > 20, "only {deepest} keys came late to a dead cell");
}

#[test]
fn keys_that_come_late_to_a_dead_cell_are_found() {
    late_keys_are_found::<BloomFilter>();
    late_keys_are_found::<QuotientFilter>();
}

/// A key that is removed and inserted again and again ends up where removal is exact, and costs nothing further.
#[test]
fn a_key_that_comes_and_goes_is_found_and_rejected_in_turn() {
    for levels in 1..=4 {
        let builder = AdaptiveBloomFilter::builder().capacity(200).false_positive_rate(0.1).seed(3_u64);
        let mut checked = Checked::new(builder.levels(levels));
        (0..150).for_each(|key| checked.insert(key));
        for _ in 0..50 {
            checked.remove(7);
            assert!(!checked.filter.contains(&7_u64));
            checked.insert(7);
            checked.check();
        }
    }
}

#[test]
fn a_cleared_cascade_is_empty_here_and_in_the_remote() {
    let mut checked = Checked::new(Cascade::<QuotientFilter>::builder().capacity(50).seed(1_u64));
    (0..50).for_each(|key| checked.insert(key));
    checked.filter.clear(&mut checked.remote).unwrap();
    checked.stored.clear();
    checked.check();
    (0..50).for_each(|key| checked.insert(key));
    checked.check();
}

#[test]
fn bad_parameters_are_refused() {
    let builder = || AdaptiveBloomFilter::builder().capacity(10);
    assert_eq!(builder().capacity(0).build().unwrap_err(), BuildError::ZeroCapacity);
    for rate in [0.0, -1.0, 0.7, f64::NAN] {
        let error = builder().false_positive_rate(rate).build().unwrap_err();
        assert!(matches!(error, BuildError::RateOutOfRange { .. }), "{error}");
    }
    for levels in [0, 5] {
        let error = builder().levels(levels).build().unwrap_err();
        assert!(matches!(error, BuildError::OutOfRange { name: "levels", .. }), "{error}");
    }
    for capacity in [usize::MAX, (1 << 44) + 1] {
        let error = builder().capacity(capacity).build().unwrap_err();
        assert_eq!(error, BuildError::CapacityTooLarge { capacity, max: 1 << 44 });
    }
}
