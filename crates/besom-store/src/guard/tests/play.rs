//! Catches: a key that is rejected although it may be there, a wrong answer, or a disagreement that stays, when accesses to the
//! database fail before or after acting, panic, or come late.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};

use besom::cascade::AdaptiveBloomFilter;
use besom::cuckoo::CuckooingFilter;
use besom::testing::Random;
use besom::{BroomFilter, BuildError, ExtensionFilter, Seed, TelescopingFilter};

use super::faulty::{Dice, FaultError, Faulty};
use crate::batch::Step;
use crate::{Batch, Layout, MemoryEngine, Options, Store, StoreError, StoreFilter, wait};

/// What a key may have; more than one thing after a failure.
type Possible = Vec<Option<Vec<u8>>>;

type Guarded<F> = Store<F, Faulty<MemoryEngine>>;

type Make<F> = fn(usize, Seed) -> Result<F, BuildError>;

struct Play<F: StoreFilter> {
    guarded: Guarded<F>,
    dice: Dice,
    random: Random,
    model: BTreeMap<Vec<u8>, Possible>,
    failures: u64,
}

const KEYS: u64 = 60;

fn key(number: u64) -> Vec<u8> {
    format!("{number}").into_bytes()
}

impl<F: StoreFilter> Play<F> {
    fn new(layout: Layout, seed: u64, make: Make<F>) -> Self {
        let dice = Dice::new(seed);
        let engine = Faulty { inner: MemoryEngine::new(), dice: dice.clone() };
        // Not the seed that the store draws: a game that is lost can be played again.
        let make = move |keys, _| make(keys, Seed::from(seed));
        let Ok(guarded) = wait(Store::open(engine, make, Options::new().layout(layout))) else {
            panic!("a database in memory opens")
        };
        let model = (0..KEYS).map(|number| (key(number), vec![None])).collect();
        Self { guarded, dice, random: Random::new(seed), model, failures: 0 }
    }

    /// Runs something that may fail or panic.
    fn attempt<T>(
        &mut self,
        act: impl FnOnce(&Guarded<F>) -> Result<T, StoreError<FaultError<Infallible>>>,
    ) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| act(&self.guarded))) {
            Ok(Ok(done)) => Some(done),
            Ok(Err(error)) => {
                let honest = matches!(
                    error,
                    StoreError::Engine(FaultError::Injected)
                        | StoreError::Full(_)
                        | StoreError::Inconsistent { .. }
                );
                assert!(honest, "{error}");
                self.failures += 1;
                None
            }
            Err(panic) => {
                let text = panic.downcast_ref::<&str>().copied().unwrap_or("another panic");
                assert!(text.starts_with("made to panic"), "{text}");
                self.failures += 1;
                None
            }
        }
    }

    fn possible(&mut self, key: &[u8]) -> &mut Possible {
        self.model.get_mut(key).unwrap()
    }

    /// A key has one of the values that it may have, and from now on only that.
    fn settle(&mut self, key: &[u8], found: Option<Vec<u8>>) {
        let possible = self.possible(key);
        assert!(possible.contains(&found), "{key:?} has {found:?}, which is not among {possible:?}");
        *possible = vec![found];
    }

    fn write(&mut self, steps: &[Step]) {
        let unread = self.random.one_in(3);
        let done = match steps {
            [Step { key, value: Some(value) }] if unread => {
                self.attempt(|guarded| wait(guarded.put(key, value)))
            }
            [Step { key, value: None }] if unread => self.attempt(|guarded| wait(guarded.delete(key))),
            [Step { key, value: Some(value) }] => {
                self.attempt(|guarded| wait(guarded.insert(key, value))).map(|old| self.settle(key, old))
            }
            [Step { key, value: None }] => {
                self.attempt(|guarded| wait(guarded.remove(key))).map(|old| self.settle(key, old))
            }
            steps => {
                let batch = Batch { steps: steps.to_vec() };
                self.attempt(|guarded| wait(guarded.write(&batch)))
            }
        };
        // The last change to a key is what counts.
        let mut last = BTreeMap::new();
        for Step { key, value } in steps {
            last.insert(key, value.clone());
        }
        for (key, value) in &last {
            let possible = self.possible(key);
            if done.is_some() {
                possible.clear();
            }
            possible.push(value.clone());
        }
        if done.is_none() && steps.len() > 1 {
            self.all_or_nothing(&last.into_iter().map(|(key, value)| (key.clone(), value)).collect());
        }
    }

    /// After a batch that failed: either all its keys have the new values, or none, unless the old one was the same.
    fn all_or_nothing(&mut self, last: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        let before: Vec<Possible> = last.keys().map(|key| self.possible(key).clone()).collect();
        self.calmly(|play| {
            let found: Vec<_> = last.keys().map(|key| wait(play.guarded.get(key)).unwrap()).collect();
            let all = found.iter().zip(last.values()).all(|(found, new)| found == new);
            let old = |(found, possible): (_, &Possible)| possible[..possible.len() - 1].contains(found);
            assert!(all || found.iter().zip(&before).all(old), "a batch was made in part");
            for (key, found) in last.keys().zip(found) {
                play.settle(key, found);
            }
        });
    }

    /// Without faults.
    fn calmly(&mut self, act: impl FnOnce(&mut Self)) {
        self.dice.set_one_in(0);
        act(self);
        self.dice.set_one_in(12);
    }

    fn step(&mut self) -> Step {
        let key = key(self.random.below(KEYS));
        if self.random.one_in(3) {
            return Step { key, value: None };
        }
        Step { key, value: Some(self.random.below(1000).to_string().into_bytes()) }
    }

    fn round(&mut self) {
        match self.random.below(10) {
            0..=4 => {
                let step = self.step();
                self.write(&[step]);
            }
            5 => {
                let steps: Vec<Step> = (0..self.random.below(6)).map(|_| self.step()).collect();
                self.write(&steps);
            }
            6 => drop(self.attempt(|guarded| wait(guarded.flush()))),
            7 => {
                let stranger = format!("stranger {}", self.random.below(500)).into_bytes();
                let found = self.attempt(|guarded| wait(guarded.get(&stranger)));
                assert!(found.flatten().is_none());
            }
            _ => {
                let key = key(self.random.below(KEYS));
                if let Some(found) = self.attempt(|guarded| wait(guarded.get(&key))) {
                    self.settle(&key, found);
                }
            }
        }
        for (key, possible) in &self.model {
            assert!(possible.contains(&None) || self.guarded.may_contain_key(key), "{key:?} is rejected");
        }
    }

    /// Everything agrees once the faults are over.
    fn check(&mut self) {
        self.dice.set_one_in(0);
        wait(self.guarded.restore()).unwrap();
        let keys: Vec<Vec<u8>> = self.model.keys().cloned().collect();
        for key in keys {
            let found = wait(self.guarded.get(&key)).unwrap();
            self.settle(&key, found);
        }
        wait(self.guarded.verify()).unwrap();
        let stored = self.model.values().filter(|possible| possible[0].is_some()).count();
        assert_eq!(wait(self.guarded.len()).unwrap(), stored as u64);
        let metrics = self.guarded.metrics();
        assert_eq!((metrics.keys, metrics.keys_in_doubt), (stored as u64, 0));
    }
}

pub(super) fn run<F: StoreFilter>(layout: Layout, make: Make<F>) {
    let games = if std::env::var_os("BESOM_FULL").is_some() { 400 } else { 24 };
    let mut faults = [0; 5];

    // Others than those of an ordinary run.
    let first: u64 = std::env::var("BESOM_SEED").map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + games {
        let mut play = Play::new(layout, seed, make);
        for _ in 0..6 {
            play.dice.set_one_in(12);
            (0..60).for_each(|_| play.round());
            play.check();
        }
        assert!(play.failures > 0);
        faults.iter_mut().zip(play.dice.faults()).for_each(|(sum, count)| *sum += count);
    }
    assert!(faults.iter().all(|&count| count > 20), "{faults:?}");
}

/// While a writer waits for the database nobody else does: keys are found and rejected, and repairs wait for its end.
#[test]
fn readers_do_not_wait_for_a_commit() {
    let make =
        |_, _: Seed| TelescopingFilter::builder().capacity(60).false_positive_rate(0.2).seed(3_u64).build();
    for layout in [Layout::Hashed, Layout::Ordered] {
        let play = Play::new(layout, 1, make);
        let guarded = &play.guarded;
        (0..50).for_each(|number| drop(wait(guarded.insert(&key(number), b"")).unwrap()));
        std::thread::scope(|scope| {
            let (arrived, go) = play.dice.stop_commit();
            let writer = scope.spawn(|| wait(guarded.insert(b"new", b"")).unwrap());
            arrived.recv().unwrap();
            (0..50).for_each(|number| assert!(wait(guarded.get(&key(number))).unwrap().is_some()));
            (100..600).for_each(|number| assert!(wait(guarded.get(&key(number))).unwrap().is_none()));
            let metrics = guarded.metrics();
            // Only those in the home of the new key wait.
            assert!(metrics.adaptations > 5 && metrics.waiting_adaptations < 10, "{metrics:?}");
            assert_eq!(metrics.adaptations + metrics.waiting_adaptations, metrics.false_positives);
            assert!(guarded.may_contain_key(b"new"), "it may be there");
            go.send(()).unwrap();
            writer.join().unwrap();
        });
        wait(guarded.repair_waiting(1000));
        let metrics = guarded.metrics();
        assert!(metrics.adaptations > 5 && metrics.waiting_adaptations == 0, "{metrics:?}");
        (100..600).for_each(|number| assert!(wait(guarded.get(&key(number))).unwrap().is_none()));
        assert!(wait(guarded.get(b"new")).unwrap().is_some());
    }
}

#[test]
fn telescoping_in_both_layouts() {
    let make = |_, seed: Seed| {
        TelescopingFilter::builder().capacity(4).false_positive_rate(0.2).seed(seed).growable().build()
    };
    run(Layout::Ordered, make);
    run(Layout::Hashed, make);
}

#[test]
fn extension_merged() {
    run(Layout::Hashed, |_, seed| {
        ExtensionFilter::builder().capacity(4).seed(seed).false_positive_rate(0.2).growable().build()
    });
}

/// Filters that choose the addresses of their keys, in an index of their own; and cascades.
#[test]
fn others_in_both_layouts() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        run(layout, |_, seed: Seed| {
            CuckooingFilter::builder().capacity(80).false_positive_rate(0.2).seed(seed).build()
        });
        run(layout, |_, seed: Seed| {
            AdaptiveBloomFilter::builder().capacity(80).false_positive_rate(0.2).seed(seed).build()
        });
        run(layout, |_, seed: Seed| {
            BroomFilter::builder().capacity(80).false_positive_rate(0.2).seed(seed).build()
        });
    }
}
