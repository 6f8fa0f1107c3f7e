//! Catches: a key lost, or a filter that cannot be brought back into step, after a remote that fails before, after or
//! in the middle of acting, that panics, or that lies. Random operations on tables so small that chains, repairs and
//! rehashes happen all the time.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cuckoo::{
    AdaptiveCuckooFilter, AdaptiveCuckooFilterBuilder, AdaptiveVariant, Cuckooing, Cyclic, Inert, Swapping,
};
use crate::testing::{Fault, FaultError, Faults, Faulty, Random};
use crate::{
    Adaptive, AdaptiveError, Authority, Digest, Filter, KeyHasher, MemoryRemote, Seed, Settled, Xxh3,
};

type Error = AdaptiveError<FaultError<Infallible>>;

/// Keys of four bytes, which are the test's own, have one of eight values where the first fingerprint function looks:
/// they collide all the time, however long fingerprints are. Other keys, which only lies have, are hashed well.
#[derive(Debug, Clone, PartialEq)]
struct Colliding(Xxh3);

impl Colliding {
    fn collide(digest: Digest, class: u64) -> Digest {
        Digest { lo: (class % 8) << 61 | digest.lo & 0xffff_ffff, ..digest }
    }
}

impl KeyHasher for Colliding {
    fn with_seed(seed: Seed) -> Self {
        Self(Xxh3::with_seed(seed))
    }
    fn seed(&self) -> Seed {
        self.0.seed()
    }
    fn digest(&self, bytes: &[u8]) -> Digest {
        let digest = self.0.digest(bytes);
        if bytes.len() == 4 { Self::collide(digest, digest.lo >> 40) } else { digest }
    }
    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        let fresh = self.0.rehash(digest, counter);
        let is_own = digest.lo & 0x1fff_ffff_0000_0000 == 0;
        if is_own { Self::collide(fresh, fresh.lo >> 40) } else { fresh }
    }
}

/// How often things happened that the test is for.
#[derive(Debug, Default)]
struct Tally {
    faults: u64,
    panics: u64,
    repairs: u64,
    rehashes: u64,
    taken_in: u64,
    agreed: u64,
    rebuilt: u64,
}

struct Run<V: AdaptiveVariant> {
    filter: AdaptiveCuckooFilter<V, Colliding>,
    remote: Faulty<MemoryRemote>,
    /// The keys that the filter holds: it must accept them whatever happens.
    held: BTreeSet<u32>,
    /// The keys of operations that failed: they may be stored or not.
    uncertain: BTreeSet<u32>,
    random: Random,
    tally: Tally,
}

impl<V: AdaptiveVariant> Run<V> {
    fn new(builder: AdaptiveCuckooFilterBuilder<V>, seed: u64, kinds: &[Fault]) -> Self {
        let mut filter = builder.hasher().seed(seed).build().unwrap();
        filter.capacity = filter.table.layout().slots();
        filter.budget = if seed % 2 == 1 { 8 } else { filter.budget };
        Self {
            filter,
            remote: Faulty::new(MemoryRemote::new(), Faults::random(!seed, 5 + seed % 17, kinds)),
            held: BTreeSet::new(),
            uncertain: BTreeSet::new(),
            random: Random::new(seed),
            tally: Tally::default(),
        }
    }

    fn steps(&mut self, steps: u32) {
        for _ in 0..steps {
            let key = self.random.below(2 * self.filter.capacity() as u64) as u32;
            let kind = self.random.below(8);
            let (before, rebuilds) = (self.filter.clone(), self.filter.rebuilds);
            if self.attempt(|run| run.operate(kind, key)) {
                continue;
            }
            // The hash functions may be new, but nothing else has changed.
            assert!(before == self.filter || self.filter.rebuilds == rebuilds + 1, "traces were left");
            self.uncertain.insert(key);
            if matches!(kind, 4 | 5) {
                // The remote may have removed it, and then it is gone.
                self.held.remove(&key);
            }
            // A part of the slots, and all of them: whatever a view lacks, nothing is taken away.
            while self.random.one_in(2) {
                let slot = self.random.below(self.filter.capacity() as u64);
                let range = if self.random.one_in(2) { slot..=slot + 5 } else { 0..=u64::MAX };
                self.attempt(|run| run.filter.settle(range, Authority::Partial, &mut run.remote).map(drop));
            }
            // A key may be at an address that the filter does not know of: it is not to be touched until that is
            // settled.
            self.go_back();
        }
        self.go_back();
        self.tally.faults += self.remote.faults.total();
        self.tally.rehashes += self.filter.rebuilds;
    }

    /// Whether it went well. In any case no key is lost.
    fn attempt(&mut self, operate: impl FnOnce(&mut Self) -> Result<(), Error>) -> bool {
        let outcome = catch_unwind(AssertUnwindSafe(|| operate(self)));
        self.tally.panics += u64::from(outcome.is_err());
        self.filter.verify().unwrap();
        self.check_held();
        matches!(outcome, Ok(Ok(())))
    }

    fn operate(&mut self, kind: u64, key: u32) -> Result<(), Error> {
        match kind {
            0..=3 => {
                self.filter.insert(&key, &mut self.remote)?;
                self.held.insert(key);
                self.uncertain.remove(&key);
            }
            4 | 5 => {
                self.filter.remove(&key, &mut self.remote)?;
                self.held.remove(&key);
            }
            _ => {
                let adaptation = self.filter.adapt(&key, &mut self.remote)?;
                assert!(!adaptation.is_fixed() || !self.filter.contains(&key));
                self.tally.repairs += u64::from(adaptation.is_fixed());
            }
        }
        Ok(())
    }

    fn check_held(&self) {
        assert!(self.held.iter().all(|key| self.filter.contains(key)), "a key is lost");
    }

    /// Without faults: everything is read. What a store has made by half is no evidence that a key is gone.
    fn go_back(&mut self) {
        let remote = &mut self.remote.inner;
        let len = self.filter.len;
        let whole = self.remote.faults.count(Fault::FailMiddle) == 0 || self.random.one_in(2);
        let authority = if whole { Authority::Authoritative } else { Authority::Partial };
        let agreed = match self.filter.settle(0..=u64::MAX, authority, remote) {
            Ok(Settled::Agreed) => self.filter.verify_remote(remote).is_ok(),
            Ok(Settled::InQuestion { slots }) => {
                assert!(slots > 0 && authority == Authority::Partial);
                false
            }
            // No room, or a chain that would move a key in question.
            Err(AdaptiveError::Full(_) | AdaptiveError::Inconsistent { .. }) => false,
            Err(error) => panic!("{error}"),
        };
        self.check_held();
        self.tally.taken_in += self.filter.len.saturating_sub(len) as u64;
        self.tally.agreed += u64::from(agreed);
        if !agreed {
            self.rebuild();
        }
        self.check_agreement();
    }

    fn rebuild(&mut self) {
        let (keys, remote) = (&self.held, &mut self.remote.inner);
        self.tally.rebuilt += 1;
        let visit_all = |visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>| {
            let _ = keys.iter().try_for_each(|key| visit(&key.to_le_bytes()));
            Ok::<_, Infallible>(())
        };
        // Filled to the last slot, not every set of keys fits: then all have to go.
        if self.filter.rebuild(visit_all, remote).is_err() {
            self.held.clear();
            self.filter.clear(remote).unwrap();
        }
    }

    /// Filter and remote hold the same keys: all that must be stored, and none that cannot be.
    fn check_agreement(&mut self) {
        let remote = &mut self.remote.inner;
        self.filter.verify().unwrap();
        self.filter.verify_remote(remote).unwrap();
        // What a lying view had in excess has got an item, and a pair.
        let word = |key: &[u8]| key.try_into().map(u32::from_le_bytes).ok();
        let stored: BTreeSet<u32> = remote.iter().filter_map(|(_, key)| word(key)).collect();
        let made_up = remote.iter().filter(|(_, key)| word(key).is_none()).count();
        assert_eq!((stored.len() + made_up, self.filter.len()), (remote.len(), remote.len()), "a key twice");
        assert!(stored.is_superset(&self.held));
        assert!(stored.iter().all(|key| self.held.contains(key) || self.uncertain.contains(key)));
        (self.held, self.uncertain) = (stored, BTreeSet::new());
        self.check_held();
    }
}

/// Runs `kinds` of faults on tables of many sizes and says what happened.
fn drive<V: AdaptiveVariant>(
    builder: impl Fn() -> AdaptiveCuckooFilterBuilder<V>,
    kinds: &[Fault],
    fingerprint: u32,
) {
    let mut total = Tally::default();
    for (seed, capacity) in (0..).zip([1, 2, 3, 5, 8, 9, 13, 14, 20, 33]) {
        let builder = builder().capacity(capacity).slot_bits(fingerprint + V::SELECTOR_BITS);
        let mut run = Run::new(builder, seed, kinds);
        run.steps(2000);
        total.faults += run.tally.faults;
        total.panics += run.tally.panics;
        total.repairs += run.tally.repairs;
        total.rehashes += run.tally.rehashes;
        total.taken_in += run.tally.taken_in;
        total.agreed += run.tally.agreed;
        total.rebuilt += run.tally.rebuilt;
    }
    println!("{}: {total:?}", std::any::type_name::<V>());
    assert!(total.faults > 1000 && total.panics > 100 && total.rehashes > 2, "{total:?}");
    assert!(total.agreed > 500 && total.rebuilt > 10 && total.taken_in > 5, "{total:?}");
    let adaptive = V::ON_FALSE_POSITIVE != crate::cuckoo::OnFalsePositive::Nothing;
    assert_eq!(total.repairs > 50, adaptive, "{total:?}");
}

/// All kinds of faults for one variant: those that are no lies with short fingerprints, where slots are explained by
/// the wrong keys all the time; lies with long ones, because no check tells a lie that fits from the truth.
fn drive_all<V: AdaptiveVariant>(builder: impl Fn() -> AdaptiveCuckooFilterBuilder<V>) {
    drive(&builder, &Fault::HONEST, 3);
    drive(&builder, &Fault::HONEST, 20);
    drive(&builder, &Fault::ALL, 24);
}

#[test]
fn plain() {
    drive_all(AdaptiveCuckooFilter::<Inert>::builder);
}

#[test]
fn cuckooing() {
    drive_all(AdaptiveCuckooFilter::<Cuckooing>::builder);
    drive_all(|| AdaptiveCuckooFilter::<Cuckooing>::builder().two_by_four());
}

#[test]
fn cyclic() {
    drive_all(AdaptiveCuckooFilter::<Cyclic<1>>::builder);
    drive_all(AdaptiveCuckooFilter::<Cyclic<3>>::builder);
}

#[test]
fn swapping() {
    drive_all(AdaptiveCuckooFilter::<Swapping>::builder);
}
