//! Catches: a guard that loses a stored key, or cannot find its way back, when remote and dictionary fail before or after
//! acting or in the middle of it, panic, or answer with wrong, missing, surplus or reordered keys.
//!
//! 1.5 million operations in an ordinary run; 10^8 with `BESOM_FULL=1`, in three minutes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use besom::cascade::{AdaptiveBloomFilter, Cascade};
use besom::cuckoo::{CuckooingFilter, CyclicFilter, RemoteCuckooFilter, SwappingFilter};
use besom::quotient::QuotientFilter;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::testing::{Fault, Faults, Faulty, Random};
use besom::{
    Adaptive, BroomFilter, BuildError, Digest, ExtensionFilter, Guard, KeyHasher, MemoryDictionary,
    MemoryRemote, Overflow, Seed, Table, TelescopingFilter, Xxh3,
};

/// XXH3, but 8 of the bits that remainders are cut from are the same for all keys of the test, so that these collide all
/// the time, and other than those of the keys that a lying remote makes up, so that a lie is never true by accident.
#[derive(Debug, Clone, PartialEq)]
struct Crowded(Xxh3);

impl KeyHasher for Crowded {
    fn with_seed(seed: Seed) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    fn seed(&self) -> Seed {
        self.0.seed()
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        let Digest { hi, lo } = self.0.digest(bytes);
        let crowd = 0xff << 46;
        let hi = if bytes.len() == 8 { hi & !crowd } else { hi | crowd };
        Digest { hi, lo }
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        self.0.rehash(digest, counter)
    }
}

const KEYS: u64 = 240;

/// One access in this many goes wrong.
const ONE_IN: u64 = 40;

/// What was done and what went wrong.
#[derive(Debug, Default)]
struct Tally {
    operations: u64,
    remote: u64,
    dictionary: u64,
    panics: u64,
    resyncs: u64,
    rebuilds: u64,
    repairs: u64,
    /// Lies that nothing contradicted until everything was compared.
    unnoticed: u64,
}

struct Run<F: Adaptive> {
    guard: Guard<F, Faulty<MemoryDictionary<u64>>, Faulty<MemoryRemote>>,
    random: Random,
    name: String,
    tally: Tally,
    lies: bool,
}

impl<F: Adaptive> Run<F> {
    fn new(name: String, filter: F, seed: u64, kinds: &[Fault]) -> Self {
        let dictionary = Faulty::new(MemoryDictionary::new(), Faults::random(seed ^ 1, ONE_IN, kinds));
        let remote = Faulty::new(MemoryRemote::new(), Faults::random(seed ^ 2, ONE_IN, kinds));
        let guard = Guard::with_remote(filter, dictionary, remote);
        let lies = kinds.len() > Fault::HONEST.len();
        Self { guard, random: Random::new(seed), name, tally: Tally::default(), lies }
    }

    fn step(&mut self) {
        let (key, value) = (self.random.below(KEYS), self.random.next());
        let action = self.random.below(200);
        let guard = &mut self.guard;
        let done = catch_unwind(AssertUnwindSafe(|| match action {
            0 => drop(guard.restore()),
            1..50 => drop(guard.insert(&key, value)),
            50..75 => drop(guard.remove(&key)),
            _ => drop(guard.get(&key)),
        }));
        self.tally.panics += u64::from(done.is_err());
        self.tally.operations += 1;
        self.check(key);
        if self.tally.operations.is_multiple_of(61) {
            (0..KEYS).for_each(|key| self.check(key));
        }
    }

    /// The one promise.
    fn check(&self, key: u64) {
        let stored = self.guard.dictionary().inner.contains_key(&key.to_le_bytes());
        let Self { name, tally, .. } = self;
        assert!(!stored || self.guard.contains(&key), "{name} lost key {key}: {tally:?}");
    }

    fn let_fail(&mut self, one_in: u64) {
        self.guard.dictionary_mut().faults.set_one_in(one_in);
        self.guard.remote_mut().faults.set_one_in(one_in);
    }

    /// Faults stop: everything must come to agree again, and faults begin again.
    fn recover(&mut self) {
        self.let_fail(0);
        let name = self.name.clone();
        self.guard.restore().unwrap_or_else(|error| panic!("{name}: {error}"));
        // What a lie has left behind may contradict nothing that is said later; errors and panics leave nothing behind.
        if self.lies && self.guard.verify().is_err() {
            self.tally.unnoticed += 1;
            self.guard.rebuild().unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        self.guard.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
        self.guard.filter().verify().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut remote = self.guard.remote().inner.clone();
        self.guard.filter().verify_remote(&mut remote).unwrap_or_else(|error| panic!("{name}: {error}"));
        let dictionary = &self.guard.dictionary().inner;
        assert_eq!(self.guard.filter().len(), dictionary.len(), "{name}");
        // A lie may hide a pair from being cleared away, where the filter does not look any more.
        let surplus = remote.len() - dictionary.len();
        assert!(surplus <= usize::from(self.lies) * 2, "{name}: {surplus} pairs too many");
        assert_eq!(self.guard.stats().in_question, 0, "{name}");
        (0..KEYS).for_each(|key| self.check(key));
        // And it works: every absent key gets through once at the most, but for what cannot be told apart.
        for key in 0..KEYS {
            let present = self.guard.dictionary().inner.contains_key(&key.to_le_bytes());
            assert_eq!(self.guard.get(&key).unwrap().is_some(), present, "{name}");
        }
        assert_eq!(self.guard.stats().in_question, 0, "{name}");
        self.let_fail(ONE_IN);
    }

    fn play(mut self, operations: u64, kinds: &[Fault]) -> Tally {
        for step in 1..=operations {
            self.step();
            if step % 1_999 == 0 || step == operations {
                self.recover();
            }
        }
        let stats = self.guard.stats();
        (self.tally.resyncs, self.tally.rebuilds) = (stats.resyncs, stats.rebuilds);
        self.tally.repairs = self.guard.filter().stats().adaptations;
        let (dictionary, remote) = (&self.guard.dictionary().faults, &self.guard.remote().faults);
        (self.tally.dictionary, self.tally.remote) = (dictionary.total(), remote.total());
        for &kind in kinds {
            assert!(remote.count(kind) > 0, "{}: {kind:?} never happened to the remote", self.name);
        }
        self.tally
    }
}

fn endure<F: Adaptive>(name: &str, lies: bool, build: impl Fn(Seed) -> Result<F, BuildError>) {
    let operations = if std::env::var_os("BESOM_FULL").is_some() { 4_200_000 } else { 52_000 };
    let kinds: &[Fault] = if lies { &Fault::ALL } else { &Fault::HONEST };
    let seed = name.bytes().fold(7_u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
    let name = format!("{name}{}", if lies { ", lied to" } else { "" });
    let run = Run::new(name.clone(), build(Seed::from(seed)).unwrap(), seed, kinds);
    // A panic that was made to happen is no news.
    let tally = run.play(operations, kinds);
    println!("{name}: {tally:?}");
    assert!(tally.operations >= operations && tally.panics > 0 && tally.rebuilds > 0, "{name}: {tally:?}");
    assert!(tally.remote > operations / 500 && tally.dictionary > operations / 500, "{name}: {tally:?}");
}

/// With a rate at which collisions are common, and faults that are no lies; then with a rate so low that a lie can be told
/// from the truth, and keys that collide all the same.
macro_rules! endure {
    ($($test:ident: $name:literal, $filter:ty $(, $call:ident($value:expr))*;)*) => {$(
        #[test]
        fn $test() {
            crate::quiet_about_made_panics();
            endure($name, false, |seed| {
                <$filter>::builder().capacity(160)$(.$call($value))*.false_positive_rate(0.2).seed(seed).build()
            });
            endure($name, true, |seed| {
                let builder = <$filter>::builder().capacity(160)$(.$call($value))*;
                builder.false_positive_rate(1e-5).seed(seed).hasher::<Crowded>().build()
            });
        }
    )*};
}

endure! {
    telescoping: "telescoping", TelescopingFilter;
    telescoping_reset: "telescoping-reset", TelescopingFilter, overflow(Overflow::Reset);
    telescoping_uncompressed: "telescoping-uncompressed", UncompressedTelescopingFilter;
    extension: "extension-quotient", ExtensionFilter, table(Table::Quotient);
    extension_bins: "extension-bins", ExtensionFilter, table(Table::Bins);
    extension_reset: "extension-reset", ExtensionFilter, overflow(Overflow::Reset);
    broom: "broom", BroomFilter;
    broom_bins: "broom-bins", BroomFilter, table(Table::Bins);
    cuckoo_remote: "cuckoo-remote", RemoteCuckooFilter;
    cuckooing: "cuckooing", CuckooingFilter;
    cyclic: "cyclic-2", CyclicFilter<2>;
    swapping: "swapping", SwappingFilter;
    adaptive_bloom: "adaptive-bloom", AdaptiveBloomFilter;
    cascade: "cascade", Cascade<QuotientFilter>;
}
