//! Catches: a filter that has changed although its remote failed or panicked, a stored key that is lost on the way, a
//! state of filter and remote from which no way leads back, a lie or an old view of the remote that is believed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::{explicit_core, telescoping_core};
use crate::testing::{Fault, Faults, Faulty, StaleRemote};
use crate::{AdaptiveError, Remote};

type FaultyRemote = Faulty<MemoryRemote>;

/// A hash function under which the few keys of a test collide all the time, in every part of their digests, while keys
/// of other lengths than 8 bytes (those of lies) are hashed well.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Crowded(Xxh3);

impl KeyHasher for Crowded {
    fn with_seed(seed: Seed) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    fn seed(&self) -> Seed {
        self.0.seed()
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        let Ok(number) = bytes.try_into().map(u64::from_le_bytes) else { return self.0.digest(bytes) };
        // 64 values of the upper half, 4 of the lower one.
        let (hi, lo) = (self.0.digest(&(number % 61).to_le_bytes()).hi, number / 61 % 4);
        Digest { hi, lo: lo << 62 | lo << 30 }
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        self.0.rehash(digest, counter)
    }
}

/// A filter behind a faulty remote, and the keys that it must hold.
struct Tormented<F> {
    core: F,
    remote: FaultyRemote,
    /// Keys that were inserted without an error, and not removed.
    stored: HashSet<u64>,
    /// Keys whose last write failed: the remote has them or not. Anyone who stands in front of the filter answers
    /// "maybe" for them.
    doubts: HashSet<u64>,
    random: Random,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    inconsistent: u64,
    agreed: u64,
    in_question: u64,
    settled: u64,
    panics: u64,
    grown: u64,
}

type Outcome<T> = Result<T, AdaptiveError<<FaultyRemote as Remote>::Error>>;

impl<F: Tested<Hasher = Crowded>> Tormented<F> {
    fn new(core: F, seed: u64) -> Self {
        let faults = Faults::random(seed, 6, &Fault::ALL);
        let remote = Faulty::new(MemoryRemote::new(), faults);
        let (stored, doubts, counts) = Default::default();
        Self { core, remote, stored, doubts, random: Random::new(seed), counts }
    }

    /// An operation, during which the remote may panic. Unless it went well, the filter must be as it was.
    fn attempt<T>(&mut self, operate: impl FnOnce(&mut F, &mut FaultyRemote) -> Outcome<T>) -> Option<T> {
        let before = self.core.clone();
        let (core, remote) = (&mut self.core, &mut self.remote);
        let done = match catch_unwind(AssertUnwindSafe(|| operate(core, remote))) {
            Ok(Ok(done)) => Some(done),
            Ok(Err(error)) => {
                self.counts.inconsistent += u64::from(matches!(error, AdaptiveError::Inconsistent { .. }));
                None
            }
            Err(_) => {
                self.counts.panics += 1;
                None
            }
        };
        // A filter that has grown for a key which it could not take in then has grown.
        let grown = self.core.capacity() > before.capacity();
        assert!(done.is_some() || grown || self.core == before, "a failed operation has changed the filter");
        done
    }

    /// Whether a key in doubt has the home of this one. Then no read there is authoritative.
    fn is_doubtful(&self, number: u64) -> bool {
        let home = self.core.home(&key(number));
        self.doubts.iter().any(|&doubt| self.core.home(&key(doubt)) == home)
    }

    /// The store answers, and the home of a key is settled for good.
    fn resolve(&mut self, number: u64) {
        let (addresses, home) = (self.core.addresses(&key(number)), self.core.home(&key(number)));
        let settled = self.core.settle(addresses, Authority::Authoritative, &mut self.remote.inner);
        assert_eq!(settled, Ok(Settled::Agreed));
        self.counts.settled += 1;
        let (core, remote, stored) = (&self.core, &self.remote.inner, &mut self.stored);
        self.doubts.retain(|&doubt| {
            let here = core.home(&key(doubt)) == home;
            if here && remote.iter().any(|(_, other)| other == key(doubt)) {
                stored.insert(doubt);
            }
            !here
        });
    }

    fn step(&mut self) {
        let number = self.random.below(600);
        let bytes = key(number);
        let action = self.random.below(200);
        if action < 121 && self.is_doubtful(number) {
            return self.resolve(number);
        }
        // A doubling reads everything.
        if self.core.len() >= self.core.capacity() && !self.doubts.is_empty() {
            return self.settle();
        }
        match action {
            0..70 => {
                let stored = self.stored.contains(&number);
                let new = !stored && self.random.one_in(3);
                let insert = |core: &mut F, remote: &mut FaultyRemote| match new {
                    true => core.insert_new(&bytes, remote).map(|()| true),
                    false => core.insert(&bytes, remote),
                };
                match self.attempt(insert) {
                    // It may have been told that the key is not there. Then it has one item too many.
                    Some(_) => drop(self.stored.insert(number)),
                    None if stored => {}
                    None => drop(self.doubts.insert(number)),
                }
            }
            70..110 => {
                let (was, sure) = (self.stored.remove(&number), self.random.one_in(2));
                let remove = |core: &mut F, remote: &mut FaultyRemote| match was && sure {
                    true => core.remove_stored(&bytes, remote),
                    false => core.remove(&bytes, remote),
                };
                match self.attempt(remove) {
                    Some(true) => assert!(was),
                    // It was told that the key is not there, and changed nothing.
                    Some(false) if was => drop(self.stored.insert(number)),
                    None if was => drop(self.doubts.insert(number)),
                    Some(false) | None => {}
                }
            }
            110..121 if self.doubts.is_empty() && self.core.capacity() < 3_000 && self.random.one_in(20) => {
                self.attempt(F::grow);
                self.counts.grown += 1;
            }
            121..160 => {
                // Whatever the view lacks, nothing is taken away.
                let addresses = self.core.addresses(&bytes);
                let partial = |core: &mut F, remote: &mut FaultyRemote| {
                    core.settle(addresses, Authority::Partial, remote)
                };
                match self.attempt(partial) {
                    Some(Settled::Agreed) => self.counts.agreed += 1,
                    Some(Settled::InQuestion { slots }) => {
                        assert!(slots > 0);
                        self.counts.in_question += 1;
                    }
                    None => {}
                }
            }
            _ if !self.is_doubtful(number) => {
                let adapted = self.attempt(|core, remote| core.adapt(&bytes, remote));
                if adapted.is_some_and(Adaptation::is_fixed) {
                    assert!(!self.core.contains(&bytes));
                }
            }
            _ => {}
        }
    }

    /// The faults stop, and everything is settled.
    fn settle(&mut self) {
        let all = 0..=u64::MAX;
        let settled = self.core.settle(all, Authority::Authoritative, &mut self.remote.inner);
        assert_eq!(settled, Ok(Settled::Agreed));
        self.core.check(&mut self.remote.inner);
        let listed: HashSet<Vec<u8>> = self.remote.inner.iter().map(|(_, key)| key.to_vec()).collect();
        assert!(self.stored.iter().all(|&number| listed.contains(&key(number)[..])));
        assert!(listed.len() <= self.stored.len() + self.doubts.len());
        self.stored.extend(self.doubts.drain().filter(|&doubt| listed.contains(&key(doubt)[..])));
    }

    fn run(mut self, steps: usize) -> (Counts, Faults) {
        for step in 0..steps {
            self.step();
            assert!(
                self.stored.iter().all(|&number| self.core.contains(&key(number))),
                "a stored key was lost"
            );
            if step % 5 == 4 {
                self.core.verify().unwrap();
            }
            if step % 200 == 199 {
                self.settle();
            }
        }
        (self.counts, self.remote.faults)
    }
}

/// Remainders of 12 and more bits, which no lie has by chance.
fn torment<F: Tested<Hasher = Crowded>>(of: impl Fn(Parameters) -> F, overflow: Overflow, steps: usize) {
    for (seed, bits) in [(1, 12), (2, 16)] {
        let parameters = Parameters { growable: true, ..parameters(100, bits, 0.95, overflow, 7) };
        let (counts, faults) = Tormented::new(of(parameters), seed).run(steps);
        for fault in Fault::ALL {
            assert!(faults.count(fault) > steps as u64 / 400, "{fault:?}: {}", faults.count(fault));
        }
        let Counts { inconsistent, agreed, in_question, settled, panics, .. } = counts;
        assert!(inconsistent.min(agreed).min(in_question).min(settled).min(panics) > 3, "{counts:?}");
    }
}

/// With `BESOM_FULL` a hundred times as many.
fn steps() -> usize {
    if std::env::var_os("BESOM_FULL").is_some() { 1_000_000 } else { 10_000 }
}

/// Panics that were made on purpose need not be read.
fn quietly(test: impl FnOnce()) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().downcast_ref::<&str>().is_some_and(|message| message.starts_with("made to panic"))
        {
            hook(info);
        }
    }));
    test();
}

#[test]
fn whatever_goes_wrong_no_key_is_lost_and_a_way_leads_back() {
    quietly(|| {
        for overflow in [Overflow::Reset, Overflow::Spill] {
            torment(telescoping_core, overflow, steps());
            torment(extension_core, overflow, steps());
        }
        torment(explicit_core, Overflow::Spill, steps());
        torment(extension_bins, Overflow::Spill, steps());
    });
}

/// Keys come and go, and the views that the filter is settled with are old: they have keys that are gone and lack keys
/// that are stored, often as many of one kind as of the other.
fn old_views_take_nothing_away<F: Tested<Hasher = Crowded>>(mut core: F, steps: usize, seed: u64) {
    let mut remote = StaleRemote::new(MemoryRemote::new());
    let (mut stored, mut random) = (HashSet::new(), Random::new(seed));
    let (mut in_question, mut as_many) = (0, 0);
    for step in 0..steps {
        let number = random.below(600);
        let bytes = key(number);
        remote.lag(0);
        match random.below(10) {
            0..4 => assert_eq!(core.insert(&bytes, &mut remote).unwrap(), stored.insert(number)),
            4..7 => match core.remove(&bytes, &mut remote) {
                Ok(removed) => assert_eq!(removed, stored.remove(&number)),
                // Which selector is its own depends on items that are in question: nothing has changed.
                Err(error) => assert!(matches!(error, AdaptiveError::Inconsistent { .. }), "{error}"),
            },
            7 => drop(core.adapt(&bytes, &mut remote)),
            _ => {
                remote.lag(1 + random.below(40) as usize);
                let before = core.len();
                let settled = core.settle(core.addresses(&bytes), Authority::Partial, &mut remote).unwrap();
                in_question += usize::from(settled != Settled::Agreed);
                as_many += usize::from(settled == Settled::Agreed && core.len() == before);
            }
        }
        assert!(stored.iter().all(|&number| core.contains(&key(number))), "a stored key was lost");
        if step % 50 == 49 {
            remote.lag(0);
            let settled = core.settle(0..=u64::MAX, Authority::Authoritative, &mut remote).unwrap();
            assert_eq!((settled, core.len()), (Settled::Agreed, stored.len()));
            core.verify_remote(&mut remote).unwrap();
        }
    }
    assert!(remote.stale_reads() as usize > steps / 20 && in_question.min(as_many) > steps / 200);
}

#[test]
fn old_views_lose_no_key() {
    for seed in 0..4 {
        // No item is moved without its key, so a doubling would refuse what old views have left in question.
        let of = || parameters(2_000, 12, 0.95, Overflow::Spill, 7);
        old_views_take_nothing_away(telescoping_core(of()), steps() / 2, seed);
        old_views_take_nothing_away(extension_core(of()), steps() / 2, seed);
        old_views_take_nothing_away(explicit_core(of()), steps() / 2, seed);
        old_views_take_nothing_away(extension_bins(of()), steps() / 2, seed);
    }
}
