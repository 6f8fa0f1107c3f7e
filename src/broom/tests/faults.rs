//! Random operations on a remote in which everything goes wrong that can.
//!
//! Catches: a key that a failure, a panic or a lie of the remote makes the filter lose; traces that a failed operation
//! leaves; a disagreement that neither of the two ways back ends.
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::builder::Blueprint;
use super::super::core::Core;
use super::super::on_bins::BroomBins;
use super::super::on_quotients::BroomQuotients;
use super::{Recording, Tested, bins, coarse_bins, large, small};
use crate::testing::{Fault, Faults, Random};
use crate::{Adaptive, Authority, Change, Digest, Filter, KeyHasher, Remote, Seed, Settled, Xxh3};

/// Fits into one bin.
const CAPACITY: usize = 40;

/// Does not fit into one bin.
const CROWD: usize = 90;
const UNIVERSE: u64 = 160;

/// A hash under which half of the integers have one of a few upper halves: they collide under every function, in
/// quotient, remainder and dozens of bits behind. Strangers, which are no integers, collide with nobody.
#[derive(Debug, Clone, PartialEq)]
struct Clustered(Xxh3);

impl KeyHasher for Clustered {
    fn with_seed(seed: Seed) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    fn seed(&self) -> Seed {
        self.0.seed()
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        let digest = self.0.digest(bytes);
        if bytes.len() != 8 || digest.lo.is_multiple_of(2) {
            return digest;
        }
        let cluster = Digest { hi: 1, lo: digest.lo >> 8 & 15 };
        Digest { hi: self.0.rehash(cluster, 1).hi, lo: digest.lo }
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        self.0.rehash(digest, counter)
    }
}

/// As many keys as some of them lie elsewhere.
fn capacity_on<G: Tested>() -> usize {
    if G::GROUND == crate::Table::Bins { CROWD } else { CAPACITY }
}

/// A filter beside the keys that it must hold.
struct Pair<G: Tested> {
    filter: Core<G, Clustered>,
    remote: Recording,
    stored: BTreeSet<u64>,
    random: Random,
    failed: u64,
    settled: u64,
    rebuilt: u64,
    /// A key whose insertion or removal failed.
    doubt: Option<u64>,
    /// How often accesses go wrong.
    one_in: u64,
    most_elsewhere: usize,
}

impl<G: Tested> Pair<G> {
    fn new(blueprint: Blueprint<G::Cut>, growable: bool, kinds: &[Fault], seed: u64) -> Self {
        let capacity = if growable { 5 } else { capacity_on::<G>() };
        let hasher = Clustered::with_seed(seed.into());
        Self {
            filter: Core::from_blueprint(blueprint, capacity, growable, hasher, 0).unwrap(),
            remote: Recording::new(Faults::random(seed, 0, kinds)),
            stored: BTreeSet::new(),
            random: Random::new(seed),
            failed: 0,
            settled: 0,
            rebuilt: 0,
            doubt: None,
            one_in: 0,
            most_elsewhere: 0,
        }
    }

    /// One operation, as a store would drive it: while something is in doubt, that is settled first. What an operation
    /// failed to do, the filter must not show.
    fn step(&mut self) {
        if !self.remote.touched.is_empty() {
            self.settle_doubts();
            return self.check();
        }
        let before = self.filter.clone();
        let (key, kind) = (self.random.below(UNIVERSE), self.random.below(20));
        let Self { filter, remote, stored, .. } = self;
        let done = catch_unwind(AssertUnwindSafe(|| match kind {
            // It may have been told that a stored key is not there.
            0..=6 => filter.insert(&key, remote).is_ok_and(|_| {
                stored.insert(key);
                true
            }),
            7..=10 => filter.remove(&key, remote).is_ok_and(|removed| {
                assert!(!removed || stored.remove(&key));
                true
            }),
            11..=18 => filter.adapt(&key, remote).is_ok_and(|adaptation| {
                assert!(!adaptation.is_fixed() || !(stored.contains(&key) || filter.contains(&key)));
                true
            }),
            _ => filter.settle(0..=u64::MAX, Authority::Partial, remote).is_ok(),
        }));
        if matches!(done, Ok(true)) {
            self.remote.touched.clear();
        } else {
            self.failed += 1;
            let grown = self.filter.capacity() > before.capacity();
            // A range is settled in parts.
            assert!(self.filter == before || grown || kind == 19, "a failure left traces");
            self.doubt = (kind <= 10).then_some(key);
        }
        self.check();
    }

    /// Settles what the last operation has touched: first without believing that what is not there is gone, then, if
    /// nothing goes wrong for once, with that.
    fn settle_doubts(&mut self) {
        let touched = self.remote.touched.clone();
        let Self { filter, remote, .. } = self;
        let settled = catch_unwind(AssertUnwindSafe(|| {
            touched.iter().all(|&at| filter.settle(at..=at, Authority::Partial, remote).is_ok())
        }));
        if !matches!(settled, Ok(true)) {
            return;
        }
        self.check();
        let one_in = self.one_in;
        self.remote.remote.faults.set_one_in(0);
        // What a group that was made by half has lost is put back by whoever has the data. (Stores make groups as a
        // whole.)
        let listed = self.listed();
        let doubt = self.doubt.take();
        let lost: Vec<u64> =
            self.stored.iter().copied().filter(|key| !listed.contains(key) && Some(*key) != doubt).collect();
        for key in lost.into_iter().map(u64::to_le_bytes) {
            let address = self.filter.local.address(&self.filter.fingerprint_of(&key));
            self.remote.apply(&[Change::Insert { address, key: &key }]).unwrap();
        }
        if let Some(key) = doubt {
            if listed.contains(&key) {
                self.stored.insert(key)
            } else {
                self.stored.remove(&key)
            };
        }
        for at in touched {
            let _ = self.filter.settle(at..=at, Authority::Authoritative, &mut self.remote).unwrap();
        }
        self.settled += 1;
        self.remote.touched.clear();
        self.remote.remote.faults.set_one_in(one_in);
    }

    /// The keys that the remote has where the filter looks for them.
    fn listed(&self) -> BTreeSet<u64> {
        let local = &self.filter.local;
        let listed = self.remote.remote.inner.iter().filter(|(at, key)| local.at_home(*at, key).is_some());
        listed.filter_map(|(_, key)| Some(u64::from_le_bytes(key.try_into().ok()?))).collect()
    }

    fn check(&mut self) {
        self.filter.verify().unwrap();
        let lost = self.stored.iter().find(|key| !self.filter.contains(*key));
        assert!(lost.is_none(), "{lost:?} is lost");
        self.most_elsewhere = self.most_elsewhere.max(self.filter.levels().elsewhere);
    }

    /// The faults have stopped: filter and remote are brought into agreement.
    fn recover(&mut self) {
        while !self.remote.touched.is_empty() {
            self.settle_doubts();
        }
        let settled = self.filter.settle(0..=u64::MAX, Authority::Authoritative, &mut self.remote);
        assert_eq!(settled.unwrap(), Settled::Agreed);
        self.filter.verify_remote(&mut self.remote).unwrap();
        self.check();
        let listed = self.listed();
        assert!(self.stored.is_subset(&listed) && listed.len() <= self.filter.len());
        self.stored = listed;
        if self.random.one_in(20) {
            let stored = self.stored.clone();
            let scan = |visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>| {
                let _ = stored.iter().try_for_each(|key| visit(&key.to_le_bytes()));
                Ok::<(), std::io::Error>(())
            };
            self.filter.rebuild(scan, &mut self.remote).unwrap();
            self.rebuilt += 1;
        }
        self.remote.touched.clear();
    }
}

fn drive<G: Tested>(blueprint: Blueprint<G::Cut>, growable: bool, kinds: &[Fault], seed: u64) {
    let rounds = if std::env::var_os("BESOM_FULL").is_some() { 20_000 } else { 400 };
    let mut pair: Pair<G> = Pair::new(blueprint, growable, kinds, seed);
    let mut phases = 0;
    for round in 0..rounds {
        pair.one_in = [5, 15, 60][round % 3];
        pair.remote.remote.faults.set_one_in(pair.one_in);
        // A filter that was rebuilt or has grown knows nothing of it.
        pair.filter.local.table.crowd();
        let steps = 10 + pair.random.below(40);
        let (first, _) = pair.filter.local.functions.position();
        (0..steps).for_each(|_| pair.step());
        phases += pair.filter.local.functions.position().0 - first;
        pair.one_in = 0;
        pair.remote.remote.faults.set_one_in(0);
        pair.recover();
    }
    let faults = &pair.remote.remote.faults;
    let counts: Vec<u64> = kinds.iter().map(|&kind| faults.count(kind)).collect();
    println!(
        "{} faults {counts:?}, {} operations failed, {} ways back by settling, {} by rebuilding, {phases} phases",
        faults.total(),
        pair.failed,
        pair.settled,
        pair.rebuilt
    );
    assert!(counts.iter().all(|&count| count > 10), "{counts:?}");
    assert!(pair.failed > 100 && pair.settled > 50 && pair.rebuilt >= 5);
    assert!(phases >= 3 && pair.most_elsewhere > 0, "{phases} phases, {} elsewhere", pair.most_elsewhere);
}

#[test]
fn nothing_is_lost_whatever_the_remote_does() {
    for (seed, blueprint) in [(71, small(12, 0.9)), (72, large(8, 4, 0.6)), (73, large(8, 8, 0.9))] {
        drive::<BroomQuotients>(blueprint, false, &Fault::ALL, seed);
    }
    for (seed, blueprint) in [(74, bins(8, 2.0)), (76, bins(8, 2.0)), (75, coarse_bins(8, 2.0))] {
        drive::<BroomBins>(blueprint, false, &Fault::ALL, seed);
    }
}

#[test]
fn nothing_is_lost_while_the_filter_grows() {
    for (seed, blueprint) in [(81, small(12, 0.9)), (82, large(8, 4, 0.6))] {
        drive::<BroomQuotients>(blueprint, true, &Fault::ALL, seed);
    }
    drive::<BroomBins>(bins(8, 2.5), true, &Fault::ALL, 83);
}

#[test]
fn honest_faults_do_no_harm_to_the_shortest_remainders() {
    for (seed, blueprint) in [(91, small(3, 0.9)), (92, large(2, 1, 0.6))] {
        drive::<BroomQuotients>(blueprint, false, &Fault::HONEST, seed);
    }
    drive::<BroomBins>(bins(3, 2.0), false, &Fault::HONEST, 93);
}
