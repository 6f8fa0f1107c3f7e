//! Catches: a repair with what was read before a write, a late commit, a rollback or another repair, which would give the item of a
//! key that is stored the bits of one that is not any more. Every interleaving is forced: a query stops between its range and
//! its repair, a commit before it is made.
//!
//! The keys are *twins*: the filter has one item for either of them, and a stranger whom this item lets through. If what is
//! read has the wrong twin, then there are as many keys as items, and nothing but the guard's book of changes tells.

use std::time::Duration;

use besom::cuckoo::CuckooingFilter;
use besom::{BroomFilter, BuildError, ExtensionFilter, Seed, TelescopingFilter};

use super::faulty::{Dice, Faulty, Stop};
use crate::engine::Engine;
use crate::{Batch, Layout, MemoryEngine, Options, Store, StoreError, StoreFilter, wait};

type Make<F> = fn(usize, Seed) -> Result<F, BuildError>;

struct Scene<F: StoreFilter> {
    store: Store<F, Faulty<MemoryEngine>>,
    dice: Dice,
    engine: MemoryEngine,
}

const KEYS: u64 = 24;

fn key(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn strangers() -> impl Iterator<Item = Vec<u8>> {
    (1_000..3_000).map(key)
}

/// A stored key, another one, and a stranger: the item of the first lets all three through, and no other item does.
struct Twins {
    old: Vec<u8>,
    new: Vec<u8>,
    stranger: Vec<u8>,
}

impl Twins {
    /// The new one takes the place of the old one.
    fn exchange(&self) -> Batch {
        let mut batch = Batch::new();
        batch.insert(&self.new, b"new").remove(&self.old);
        batch
    }
}

impl<F: StoreFilter> Scene<F> {
    fn new(layout: Layout, make: Make<F>, without: Option<u64>) -> Self {
        let (engine, dice) = (MemoryEngine::new(), Dice::new(1));
        let faulty = Faulty { inner: engine.clone(), dice: dice.clone() };
        let store = wait(Store::open(faulty, make, Options::new().layout(layout))).unwrap();
        for number in (0..KEYS).filter(|&number| Some(number) != without) {
            wait(store.insert(&key(number), b"old")).unwrap();
        }
        Self { store, dice, engine }
    }

    /// Asks for a key, and does something else between the range that its repair reads and the repair.
    fn ask_while(&self, key: &[u8], between: impl FnOnce()) {
        std::thread::scope(|scope| {
            let (arrived, go) = self.dice.stop(Stop::Range);
            let reader = scope.spawn(|| wait(self.store.get(key)).unwrap());
            arrived.recv_timeout(Duration::from_secs(60)).expect("a false positive");
            between();
            go.send(()).unwrap();
            assert!(reader.join().unwrap().is_none());
        });
    }

    /// One of the twins is stored, and everything agrees, without the filter having been made again.
    fn check(&self, twins: &Twins, [old, new]: [bool; 2], rebuilds: u64) {
        for (key, stored) in [(&twins.old, old), (&twins.new, new)] {
            assert_eq!(wait(self.store.get(key)).unwrap().is_some(), stored, "{key:?}");
        }
        let others = (0..KEYS).map(key).filter(|key| *key != twins.old);
        others.for_each(|key| assert!(wait(self.store.get(&key)).unwrap().is_some()));
        wait(self.store.repair_waiting(10));
        wait(self.store.verify()).unwrap();
        let metrics = self.store.metrics();
        assert_eq!((metrics.failed_adaptations, metrics.rebuilds), (0, rebuilds), "{metrics:?}");
        assert_eq!((metrics.waiting_adaptations, metrics.keys), (0, KEYS));
        assert!(!self.store.may_contain_key(&twins.stranger), "it is repaired in the end");
    }
}

/// All twins of a scene.
fn twins<F: StoreFilter>(layout: Layout, make: Make<F>) -> Vec<Twins> {
    let full = Scene::new(layout, make, None);
    let of = |number: u64| {
        let without = Scene::new(layout, make, Some(number));
        let mut through =
            strangers().filter(|key| full.store.may_contain_key(key) && !without.store.may_contain_key(key));
        Some(Twins { old: key(number), new: through.next()?, stranger: through.next()? })
    };
    (0..KEYS).filter_map(of).collect()
}

/// Plays one interleaving with all twins, layouts and filters whose repairs write nothing.
fn with_twins(play: &impl Play) {
    fn with<F: StoreFilter>(layout: Layout, make: Make<F>, play: &impl Play) {
        let twins = twins(layout, make);
        assert!(twins.len() > 10, "{}: the test shows little", twins.len());
        twins.iter().for_each(|twins| play.play(&Scene::new(layout, make, None), twins));
    }
    for layout in [Layout::Hashed, Layout::Ordered] {
        with(layout, telescoping, play);
        with(layout, extension, play);
    }
}

trait Play {
    fn play<F: StoreFilter>(&self, scene: &Scene<F>, twins: &Twins);
}

fn telescoping(_: usize, _: Seed) -> Result<TelescopingFilter, BuildError> {
    TelescopingFilter::builder().capacity(60).false_positive_rate(0.1).seed(3_u64).build()
}

fn extension(_: usize, _: Seed) -> Result<ExtensionFilter, BuildError> {
    ExtensionFilter::builder().capacity(60).false_positive_rate(0.1).seed(3_u64).build()
}

#[test]
fn what_was_read_before_a_write_repairs_nothing() {
    struct Between;
    impl Play for Between {
        fn play<F: StoreFilter>(&self, scene: &Scene<F>, twins: &Twins) {
            scene.ask_while(&twins.stranger, || wait(scene.store.write(&twins.exchange())).unwrap());
            scene.check(twins, [false, true], 0);
        }
    }
    with_twins(&Between);
}

#[test]
fn what_was_read_during_a_commit_repairs_nothing() {
    struct During;
    impl Play for During {
        fn play<F: StoreFilter>(&self, scene: &Scene<F>, twins: &Twins) {
            std::thread::scope(|scope| {
                let (arrived, go) = scene.dice.stop(Stop::Commit);
                let writer = scope.spawn(|| wait(scene.store.write(&twins.exchange())).unwrap());
                arrived.recv_timeout(Duration::from_secs(60)).unwrap();
                scene.ask_while(&twins.stranger, || {
                    go.send(()).unwrap();
                    writer.join().unwrap();
                });
            });
            scene.check(twins, [false, true], 0);
        }
    }
    with_twins(&During);
}

/// A repair that finds a write under way waits for its end.
#[test]
fn a_repair_waits_for_a_commit_in_its_home() {
    struct Under;
    impl Play for Under {
        fn play<F: StoreFilter>(&self, scene: &Scene<F>, twins: &Twins) {
            std::thread::scope(|scope| {
                let (arrived, go) = scene.dice.stop(Stop::Commit);
                let writer = scope.spawn(|| wait(scene.store.write(&twins.exchange())).unwrap());
                arrived.recv_timeout(Duration::from_secs(60)).unwrap();
                assert!(wait(scene.store.get(&twins.stranger)).unwrap().is_none());
                assert_eq!(scene.store.metrics().waiting_adaptations, 1);
                go.send(()).unwrap();
                writer.join().unwrap();
            });
            scene.check(twins, [false, true], 0);
        }
    }
    with_twins(&Under);
}

/// Before, homes that were settled counted as unchanged: what was read of them earlier was used, and a stored key was lost.
#[test]
fn what_was_read_before_a_commit_came_late_repairs_nothing() {
    struct Late;
    impl Play for Late {
        fn play<F: StoreFilter>(&self, scene: &Scene<F>, twins: &Twins) {
            scene.dice.delay_commit();
            wait(scene.store.write(&twins.exchange())).unwrap_err();
            scene.ask_while(&twins.stranger, || wait(scene.store.restore()).unwrap());
            scene.check(twins, [false, true], 0);
        }
    }
    with_twins(&Late);
}

/// Before, the same was so of everything that was read before the database went back to an earlier state.
#[test]
fn what_was_read_before_commits_were_lost_repairs_nothing() {
    struct Lost;
    impl Play for Lost {
        fn play<F: StoreFilter>(&self, scene: &Scene<F>, twins: &Twins) {
            let before = scene.engine.view().unwrap();
            wait(scene.store.write(&twins.exchange())).unwrap();
            scene.ask_while(&twins.stranger, || {
                scene.engine.go_back(&before);
                scene.dice.break_down();
                let told = wait(scene.store.restore());
                assert!(matches!(told, Err(StoreError::RolledBack { commits: 1 })), "{told:?}");
            });
            scene.check(twins, [true, false], 1);
        }
    }
    with_twins(&Lost);
}

/// Before, a removal that had looked before a commit came late took the key for absent, and said that it was gone.
#[test]
fn a_write_knows_of_a_commit_that_came_late() {
    struct Looks;
    impl Play for Looks {
        fn play<F: StoreFilter>(&self, scene: &Scene<F>, twins: &Twins) {
            scene.dice.delay_commit();
            wait(scene.store.write(&twins.exchange())).unwrap_err();
            let removed = wait(scene.store.remove(&twins.new)).unwrap();
            assert_eq!(removed.as_deref(), Some(&b"new"[..]), "it was there when it was removed");
            assert_eq!(wait(scene.store.insert(&twins.old, b"old")).unwrap(), None);
            assert!(wait(scene.store.get(&twins.stranger)).unwrap().is_none());
            scene.check(twins, [true, false], 0);
        }
    }
    with_twins(&Looks);
}

/// Before, who overwrote a value, or removed it, after somebody else had overwritten it got the one before that.
#[test]
fn a_write_returns_the_value_that_it_replaces() {
    for removes in [false, true] {
        let scene = Scene::new(Layout::Hashed, telescoping, None);
        let returned = std::thread::scope(|scope| {
            let (arrived, go) = scene.dice.stop(Stop::Commit);
            let first = scope.spawn(|| wait(scene.store.insert(&key(1), b"first")).unwrap());
            arrived.recv_timeout(Duration::from_secs(60)).unwrap();
            scene.dice.take_reads();
            let second = scope.spawn(|| match removes {
                true => wait(scene.store.remove(&key(1))).unwrap(),
                false => wait(scene.store.insert(&key(1), b"second")).unwrap(),
            });
            // It has looked, and waits for the first.
            while scene.dice.take_reads() == [0, 0] {
                std::thread::yield_now();
            }
            go.send(()).unwrap();
            [first.join().unwrap(), second.join().unwrap()]
        });
        assert_eq!(returned, [Some(b"old".to_vec()), Some(b"first".to_vec())]);
        wait(scene.store.verify()).unwrap();
    }
}

fn cuckooing(_: usize, _: Seed) -> Result<CuckooingFilter, BuildError> {
    CuckooingFilter::builder().capacity(30).false_positive_rate(0.2).seed(3_u64).build()
}

fn broom(_: usize, _: Seed) -> Result<BroomFilter, BuildError> {
    BroomFilter::builder().capacity(30).false_positive_rate(0.2).seed(3_u64).build()
}

/// A repair that moves keys in the index is a change, for other repairs too.
#[test]
fn what_was_read_before_another_repair_repairs_nothing() {
    fn play<F: StoreFilter>(layout: Layout, make: Make<F>) {
        let scene = Scene::new(layout, make, None);
        let mut asked = strangers();
        let mut next = || asked.by_ref().find(|key| scene.store.may_contain_key(key));
        let mut rounds = 0;
        while let (Some(one), Some(other)) = (next(), next()) {
            if !scene.store.may_contain_key(&one) {
                continue;
            }
            scene.ask_while(&one, || assert!(wait(scene.store.get(&other)).unwrap().is_none()));
            rounds += 1;
            let metrics = scene.store.metrics();
            assert_eq!((metrics.failed_adaptations, metrics.rebuilds), (0, 0), "{rounds}: {metrics:?}");
            (0..KEYS).for_each(|number| assert!(wait(scene.store.get(&key(number))).unwrap().is_some()));
            wait(scene.store.verify()).unwrap();
        }
        assert!(rounds > 5, "{rounds}");
    }
    for layout in [Layout::Hashed, Layout::Ordered] {
        play(layout, cuckooing);
        play(layout, broom);
    }
}

/// Before, a repair that had marked the filter for itself took the mark of another one away when it was done.
#[test]
fn a_disagreement_that_is_found_beside_a_repair_is_not_forgotten() {
    let scene = Scene::new(Layout::Hashed, cuckooing, None);
    let stranger = strangers().find(|key| scene.store.may_contain_key(key)).unwrap();
    std::thread::scope(|scope| {
        let (arrived, go) = scene.dice.stop(Stop::Commit);
        let reader = scope.spawn(|| wait(scene.store.get(&stranger)).unwrap());
        arrived.recv_timeout(Duration::from_secs(60)).unwrap();
        drop(scene.store.disagreed(StoreError::Inconsistent { address: 0 }));
        go.send(()).unwrap();
        assert!(reader.join().unwrap().is_none());
    });
    assert_eq!(scene.store.metrics().adaptations, 1);
    wait(scene.store.restore()).unwrap();
    assert_eq!(scene.store.metrics().rebuilds, 1, "filter and index disagree, and nobody does anything");
    wait(scene.store.verify()).unwrap();
}
