//! Catches: a key lost or doubled by a chain of kicks, a swap or a rehash; a filter and a remote that no longer
//! agree after an error; a repair that repairs nothing. Random operations against an exact set, on tables so
//! small that rehashes happen all the time, with a remote that fails at random before it acts.

use std::collections::BTreeSet;
use std::convert::Infallible;

use crate::cuckoo::{
    AdaptiveCuckooFilter, AdaptiveCuckooFilterBuilder, AdaptiveVariant, Cuckooing, Cyclic, Inert,
    OnFalsePositive, Swapping,
};
use crate::testing::{Fault, FaultError, Faults, Faulty, Random};
use crate::{
    Adaptation, Adaptive, AdaptiveError, Authority, Filter, KeyHasher, MemoryRemote, Settled, SipHash, Xxh3,
};

type Error = AdaptiveError<FaultError<Infallible>>;

struct Run<V: AdaptiveVariant, H: KeyHasher> {
    filter: AdaptiveCuckooFilter<V, H>,
    remote: Faulty<MemoryRemote>,
    model: BTreeSet<u32>,
    random: Random,
    faults: u32,
    refusals: u32,
    unfixable: u32,
}

impl<V: AdaptiveVariant, H: KeyHasher> Run<V, H> {
    fn new(builder: AdaptiveCuckooFilterBuilder<V, H>, one_in: u64, seed: u64) -> Self {
        let mut filter = builder.seed(seed).build().unwrap();
        // Filled up to the last slot, beyond what any builder grants: now rehashes happen, and fail.
        filter.capacity = filter.table.layout().slots();
        // And an early end to every second filter's searches, or else they find nearly every chain there is.
        if seed % 2 == 1 {
            filter.budget = 8;
        }
        Self {
            filter,
            remote: Faulty::new(MemoryRemote::new(), Faults::random(!seed, one_in, &[Fault::FailBefore])),
            model: BTreeSet::new(),
            random: Random::new(seed),
            faults: 0,
            refusals: 0,
            unfixable: 0,
        }
    }

    fn steps(&mut self, steps: u32) {
        for _ in 0..steps {
            // Few enough different keys that one meets the same again and again.
            let key = self.random.below(3 * self.filter.capacity() as u64) as u32;
            let (before, rebuilds) = (self.filter.clone(), self.filter.rebuilds);
            let result = match self.random.below(8) {
                0 if !self.model.contains(&key) => self.insert_new(key),
                0..=3 => self.insert(key),
                4 => self.remove(key),
                _ => self.adapt(key),
            };
            if let Err(error) = result {
                // A rehash that could not remove the old pairs has changed the hash functions, but no keys.
                assert!(before == self.filter || self.filter.rebuilds == rebuilds + 1, "{error} left traces");
                match error {
                    AdaptiveError::Remote(FaultError::Injected(_)) => self.faults += 1,
                    AdaptiveError::Full(_) => self.refusals += 1,
                    error => panic!("{error}"),
                }
                // Nothing else can be left over from a remote that fails before it acts than a rehash's copies.
                let settled = self.filter.settle(0..=0, Authority::Partial, &mut self.remote.inner);
                assert_eq!(settled, Ok(Settled::Agreed));
            }
            self.check();
        }
    }

    fn insert(&mut self, key: u32) -> Result<(), Error> {
        let inserted = self.filter.insert(&key, &mut self.remote)?;
        assert_eq!(inserted, self.model.insert(key));
        Ok(())
    }

    fn insert_new(&mut self, key: u32) -> Result<(), Error> {
        self.filter.insert_new(&key, &mut self.remote)?;
        assert!(self.model.insert(key));
        Ok(())
    }

    fn remove(&mut self, key: u32) -> Result<(), Error> {
        let removed = self.filter.remove(&key, &mut self.remote)?;
        assert_eq!(removed, self.model.remove(&key));
        Ok(())
    }

    fn adapt(&mut self, key: u32) -> Result<(), Error> {
        let accepted = self.filter.contains(&key);
        let adaptation = self.filter.adapt(&key, &mut self.remote)?;
        let false_positive = accepted && !self.model.contains(&key);
        match adaptation {
            Adaptation::NotFalsePositive => assert!(!false_positive),
            Adaptation::Unfixable => {
                assert!(false_positive && self.filter.contains(&key));
                self.unfixable += 1;
            }
            fixed => assert!(false_positive && fixed.is_fixed() && !self.filter.contains(&key)),
        }
        Ok(())
    }

    fn check(&mut self) {
        self.filter.verify().unwrap();
        self.filter.verify_remote(&mut self.remote.inner).unwrap();
        assert_eq!((self.filter.len(), self.remote.inner.len()), (self.model.len(), self.model.len()));
        let mut stored: Vec<_> = self.remote.inner.iter().map(|(_, key)| key.to_vec()).collect();
        let mut expected: Vec<_> = self.model.iter().map(|key| key.to_le_bytes().to_vec()).collect();
        stored.sort();
        expected.sort();
        assert_eq!(stored, expected);
        let keys: Vec<u32> = (0..3 * self.filter.capacity() as u32).collect();
        let mut answers = Vec::new();
        self.filter.contains_many(&keys, &mut answers);
        for (key, answer) in keys.iter().zip(answers) {
            assert_eq!(answer, self.filter.contains(key));
            assert!(answer || !self.model.contains(key), "{key} is lost");
        }
    }
}

fn drive<V: AdaptiveVariant, H: KeyHasher>(builder: impl Fn() -> AdaptiveCuckooFilterBuilder<V, H>) {
    let (mut rebuilds, mut faults, mut refusals, mut adaptations, mut unfixable) = (0, 0, 0, 0, 0);
    for (seed, capacity) in (0..).zip([1, 2, 3, 5, 8, 13, 20, 33, 70]) {
        for (one_in, slot_bits) in [(0, 4), (9, 5), (60, 6), (15, 11), (0, 35)] {
            let bits = (slot_bits + V::SELECTOR_BITS).min(32 + V::SELECTOR_BITS);
            let mut run = Run::new(builder().capacity(capacity).slot_bits(bits), one_in, 100 * seed + one_in);
            run.steps(900);
            rebuilds += run.filter.rebuilds;
            faults += run.faults;
            refusals += run.refusals;
            adaptations += run.filter.adaptations;
            unfixable += run.unfixable;
        }
    }
    // The run must have met what it is for.
    assert!(rebuilds > 20, "{rebuilds} rebuilds");
    assert!(faults > 400, "{faults} faults");
    assert!(refusals > 500, "{refusals} refusals");
    let adaptive = V::ON_FALSE_POSITIVE != OnFalsePositive::Nothing;
    assert_eq!(adaptations > 100, adaptive, "{adaptations} adaptations, {unfixable} unfixable");
}

#[test]
fn plain_two_by_four() {
    drive(AdaptiveCuckooFilter::<Inert>::builder);
}

#[test]
fn plain_four_by_one_with_another_hash() {
    drive(|| AdaptiveCuckooFilter::<Inert>::builder().four_by_one().hasher::<SipHash>());
}

#[test]
fn plain_three_by_two() {
    drive(|| AdaptiveCuckooFilter::<Inert>::builder().shape(3, 2));
}

#[test]
fn cuckooing() {
    drive(AdaptiveCuckooFilter::<Cuckooing>::builder);
}

#[test]
fn cuckooing_two_by_one() {
    drive(|| AdaptiveCuckooFilter::<Cuckooing>::builder().shape(2, 1));
}

#[test]
fn cuckooing_two_by_four() {
    drive(|| AdaptiveCuckooFilter::<Cuckooing>::builder().two_by_four());
}

#[test]
fn cyclic() {
    drive(AdaptiveCuckooFilter::<Cyclic<1>>::builder);
    drive(AdaptiveCuckooFilter::<Cyclic<2>>::builder);
    drive(AdaptiveCuckooFilter::<Cyclic<3>>::builder);
}

#[test]
fn cyclic_with_bins() {
    drive(|| AdaptiveCuckooFilter::<Cyclic<2>>::builder().shape(2, 3));
}

#[test]
fn swapping() {
    drive(AdaptiveCuckooFilter::<Swapping>::builder);
}

#[test]
fn swapping_three_by_three() {
    drive(|| AdaptiveCuckooFilter::<Swapping>::builder().shape(3, 3));
}

#[test]
fn clear_empties_filter_and_remote() {
    let mut run = Run::new(AdaptiveCuckooFilter::<Cyclic<1>>::builder().capacity(50).slot_bits(5), 0, 1);
    run.steps(500);
    assert!(run.filter.stats().adapted_slots > 0);
    run.filter.clear(&mut run.remote).unwrap();
    run.model.clear();
    run.check();
    run.steps(500);
}

#[test]
fn another_filters_remote_is_noticed() {
    let build =
        |seed: u64| AdaptiveCuckooFilter::<Cuckooing, Xxh3>::builder().capacity(100).seed(seed).build();
    let (mut mine, mut other) = (build(1).unwrap(), build(2).unwrap());
    let (mut my_remote, mut other_remote) = (MemoryRemote::new(), MemoryRemote::new());
    for key in 0..100_u32 {
        mine.insert(&key, &mut my_remote).unwrap();
        other.insert(&key, &mut other_remote).unwrap();
    }
    for key in 0..100_u32 {
        let error = mine.remove(&key, &mut other_remote).unwrap_err();
        assert!(matches!(error, AdaptiveError::Inconsistent { expected: 1, found: 0, .. }), "{error}");
    }
    assert!(mine.verify_remote(&mut other_remote).is_err());
    assert!(mine.verify_remote(&mut my_remote).is_ok());
}

#[test]
fn keys_with_one_digest_are_unfixable_and_refused_when_they_are_too_many() {
    /// Every key has the same digest.
    #[derive(Debug, Clone, PartialEq)]
    struct Constant(crate::Seed);

    impl KeyHasher for Constant {
        fn with_seed(seed: crate::Seed) -> Self {
            Self(seed)
        }
        fn seed(&self) -> crate::Seed {
            self.0
        }
        fn digest(&self, _: &[u8]) -> crate::Digest {
            crate::Digest::from_u128(1)
        }
        fn rehash(&self, _: crate::Digest, counter: u64) -> crate::Digest {
            crate::Digest::from_u128(u128::from(counter) << 64)
        }
    }

    let builder = || AdaptiveCuckooFilter::<Cuckooing>::builder().capacity(100).hasher::<Constant>();
    let mut run = Run::new(builder(), 0, 1);
    for key in 0..4 {
        run.insert(key).unwrap();
        run.check();
    }
    assert_eq!(run.filter.adapt(&99_u32, &mut run.remote).unwrap(), Adaptation::Unfixable);
    let before = run.filter.clone();
    assert!(matches!(run.insert(4), Err(AdaptiveError::Full(_))));
    assert_eq!(before, run.filter);
    run.check();
}
