//! Catches: a key that is rejected although it may be there, a wrong answer, or a disagreement that stays, when accesses to the
//! database fail before or after acting, act late, panic, or come late. On any engine.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use besom::testing::Random;
use besom::{BuildError, Seed};
use besom_store::engine::Engine;
use besom_store::{Batch, Durability, Layout, Options, Store, StoreError, StoreFilter, wait};

use super::faulty::{Dice, FaultError, Faulty, KINDS};

/// What a key may have; more than one thing after a failure.
type Possible = Vec<Option<Vec<u8>>>;

/// A key, and what it is to have.
type Step = (Vec<u8>, Option<Vec<u8>>);

type Guarded<F, E> = Store<F, Faulty<E>>;

type Outcome<T, E> = Result<T, StoreError<FaultError<<E as Engine>::Error>>>;

pub(crate) type Make<F> = fn(usize, Seed) -> Result<F, BuildError>;

pub(crate) struct Play<F: StoreFilter, E: Engine> {
    pub(crate) guarded: Guarded<F, E>,
    pub(crate) dice: Dice,
    random: Random,
    model: BTreeMap<Vec<u8>, Possible>,
    failures: u64,
}

const KEYS: u64 = 60;

/// One access in this many fails.
const ONE_IN: u64 = 12;

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("{number}").into_bytes()
}

/// The bytes of a value.
fn owned<V: AsRef<[u8]>>(value: Option<V>) -> Option<Vec<u8>> {
    value.map(|value| value.as_ref().to_vec())
}

impl<F: StoreFilter, E: Engine> Play<F, E> {
    pub(crate) fn new(engine: E, layout: Layout, seed: u64, make: Make<F>) -> Self {
        let dice = Dice::new(seed);
        let engine = Faulty { inner: engine, dice: dice.clone() };
        // Not the seed that the store draws: a game that is lost can be played again.
        let make = move |keys, _| make(keys, Seed::from(seed));
        let options = Options::new().layout(layout).durability(Durability::Buffered);
        let Ok(guarded) = wait(Store::open(engine, make, options)) else {
            panic!("a database that works opens")
        };
        let model = (0..KEYS).map(|number| (key(number), vec![None])).collect();
        Self { guarded, dice, random: Random::new(seed), model, failures: 0 }
    }

    /// Runs something that may fail or panic.
    fn attempt<T>(&mut self, act: impl FnOnce(&Guarded<F, E>) -> Outcome<T, E>) -> Option<T> {
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

    /// A key has one of the values that it may have, and from now on only that, unless a commit is still on its way.
    fn settle(&mut self, key: &[u8], found: Option<Vec<u8>>) {
        let late = self.dice.has_late();
        let possible = self.possible(key);
        assert!(possible.contains(&found), "{key:?} has {found:?}, which is not among {possible:?}");
        if !late {
            *possible = vec![found];
        }
    }

    fn write(&mut self, steps: &[Step]) {
        let unread = self.random.one_in(3);
        let done = match steps {
            [(key, Some(value))] if unread => self.attempt(|guarded| wait(guarded.put(key, value))),
            [(key, None)] if unread => self.attempt(|guarded| wait(guarded.delete(key))),
            [(key, Some(value))] => self
                .attempt(|guarded| wait(guarded.insert(key, value)))
                .map(|old| self.settle(key, owned(old))),
            [(key, None)] => {
                self.attempt(|guarded| wait(guarded.remove(key))).map(|old| self.settle(key, owned(old)))
            }
            steps => {
                let batch = batch(steps);
                self.attempt(|guarded| wait(guarded.write(&batch)))
            }
        };
        // The last change to a key is what counts.
        let last: BTreeMap<Vec<u8>, Option<Vec<u8>>> = steps.iter().cloned().collect();
        for (key, value) in &last {
            let possible = self.possible(key);
            if done.is_some() {
                possible.clear();
            }
            possible.push(value.clone());
        }
        if done.is_none() && steps.len() > 1 {
            self.all_or_nothing(&last);
        }
    }

    /// After a batch that failed: either all its keys have the new values, or none, unless the old one was the same.
    fn all_or_nothing(&mut self, last: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        let before: Vec<Possible> = last.keys().map(|key| self.possible(key).clone()).collect();
        self.calmly(|play| {
            wait(play.guarded.restore()).unwrap();
            let found: Vec<_> = last.keys().map(|key| owned(wait(play.guarded.get(key)).unwrap())).collect();
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
        self.dice.set_one_in(ONE_IN);
    }

    fn step(&mut self) -> Step {
        let key = key(self.random.below(KEYS));
        let value = (!self.random.one_in(3)).then(|| self.random.below(1000).to_string().into_bytes());
        (key, value)
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
                let found = self.attempt(|guarded| wait(guarded.contains_key(&stranger)));
                assert_ne!(found, Some(true));
            }
            _ => {
                let key = key(self.random.below(KEYS));
                let look = |guarded: &Guarded<F, E>| wait(guarded.get_with(&key, <[u8]>::to_vec));
                let found = match self.random.one_in(2) {
                    true => self.attempt(|guarded| wait(guarded.get(&key))).map(owned),
                    false => self.attempt(look),
                };
                if let Some(found) = found {
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
            self.settle(&key, owned(found));
        }
        wait(self.guarded.verify()).unwrap();
        let stored = self.model.values().filter(|possible| possible[0].is_some()).count();
        assert_eq!(wait(self.guarded.len()).unwrap(), stored as u64);
        let metrics = self.guarded.metrics();
        assert_eq!((metrics.keys, metrics.keys_in_doubt), (stored as u64, 0));
    }
}

/// These changes in one batch.
fn batch(steps: &[Step]) -> Batch {
    let mut batch = Batch::new();
    for (key, value) in steps {
        match value {
            Some(value) => batch.insert(key, value),
            None => batch.remove(key),
        };
    }
    batch
}

/// Plays this many games, each on an engine of its own; with `BESOM_FULL` sixteen times as many. Faults of each kind must be at
/// least `faults`.
pub(crate) fn run<F: StoreFilter, E: Engine>(
    mut engine: impl FnMut(u64) -> E,
    layout: Layout,
    make: Make<F>,
    (games, least): (u64, u64),
) {
    let games = if std::env::var_os("BESOM_FULL").is_some() { 16 * games } else { games };
    let mut faults = [0; KINDS];

    // Others than those of an ordinary run.
    let first: u64 = std::env::var("BESOM_SEED").map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + games {
        let mut play = Play::new(engine(seed), layout, seed, make);
        for _ in 0..6 {
            play.dice.set_one_in(ONE_IN);
            (0..60).for_each(|_| play.round());
            play.check();
        }
        assert!(play.failures > 0);
        faults.iter_mut().zip(play.dice.faults()).for_each(|(sum, count)| *sum += count);
    }
    println!("{layout:?}: {games} games, {faults:?} faults");
    assert!(faults.iter().all(|&count| count > least), "{faults:?}");
}
