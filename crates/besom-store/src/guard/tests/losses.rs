//! Catches: acknowledged commits that are gone, and somebody who could have seen them and is not told, or is told twice.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use besom::cuckoo::CuckooingFilter;
use besom::{BuildError, TelescopingFilter};

use super::faulty::{Dice, Faulty, Stop};
use crate::engine::Engine;
use crate::{Batch, Durability, MemoryEngine, MemoryView, Options, Store, StoreError, StoreFilter, wait};

type Lossy<F> = Store<F, Faulty<MemoryEngine>>;

/// A store with some keys, and the means to take back what is written to it.
struct Scene<F: StoreFilter> {
    store: Lossy<F>,
    dice: Dice,
    engine: MemoryEngine,
    /// Making a filter fails.
    unmakable: Arc<AtomicBool>,
}

fn key(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

impl<F: StoreFilter> Scene<F> {
    fn new(make: impl Fn() -> Result<F, BuildError> + Send + Sync + 'static) -> Self {
        let (engine, dice, unmakable) = (MemoryEngine::new(), Dice::new(1), Arc::new(AtomicBool::new(false)));
        let faulty = Faulty { inner: engine.clone(), dice: dice.clone() };
        let fails = unmakable.clone();
        let make = move |_, _| match fails.load(Ordering::Relaxed) {
            true => {
                Err(TelescopingFilter::builder().capacity(10).false_positive_rate(2.0).build().unwrap_err())
            }
            false => make(),
        };
        let options = Options::new().durability(Durability::Buffered);
        let store = wait(Store::open(faulty, make, options)).unwrap();
        (0..24).for_each(|number| drop(wait(store.insert(&key(number), b"old")).unwrap()));
        Self { store, dice, engine, unmakable }
    }

    /// The database fails, and is as it was.
    fn lose(&self, before: &MemoryView) {
        self.engine.go_back(before);
        self.dice.break_down();
    }
}

fn telescoping() -> Result<TelescopingFilter, BuildError> {
    TelescopingFilter::builder().capacity(60).false_positive_rate(0.1).seed(3_u64).build()
}

fn commits<T, E>(told: &Result<T, StoreError<E>>) -> Option<u64> {
    match told {
        Err(StoreError::RolledBack { commits }) => Some(*commits),
        _ => None,
    }
}

type Ask = fn(&Lossy<TelescopingFilter>) -> Option<u64>;

/// What anyone may do next.
const NEXT: [(&str, Ask); 12] = [
    ("get", |store| commits(&wait(store.get(&key(1))))),
    ("get of an absent key", |store| commits(&wait(store.get(b"absent")))),
    ("get_with", |store| commits(&wait(store.get_with(&key(1), <[u8]>::len)))),
    ("contains_key", |store| commits(&wait(store.contains_key(&key(1))))),
    ("insert", |store| commits(&wait(store.insert(b"more", b"")))),
    ("put", |store| commits(&wait(store.put(b"more", b"")))),
    ("remove", |store| commits(&wait(store.remove(b"absent")))),
    ("write", |store| commits(&wait(store.write(&Batch::new())))),
    ("flush", |store| commits(&wait(store.flush()))),
    ("len", |store| commits(&wait(store.len()))),
    ("for_each", |store| commits(&wait(store.for_each(&mut |_, _| ControlFlow::Break(()))))),
    ("restore", |store| commits(&wait(store.restore()))),
];

/// Before, whoever came first was told, and nobody else.
#[test]
fn every_handle_is_told_once_of_commits_that_are_gone() {
    for (first, found_out) in NEXT {
        let scene = Scene::new(telescoping);
        let handles = NEXT.map(|_| scene.store.clone());
        let before = scene.engine.view().unwrap();
        wait(scene.store.insert(b"lost", b"1")).unwrap();
        wait(scene.store.insert(b"lost too", b"2")).unwrap();
        assert!(wait(handles[0].get(b"lost")).unwrap().is_some());
        scene.lose(&before);
        assert_eq!(found_out(&scene.store), Some(2), "{first} is told");
        assert_eq!(found_out(&scene.store), None, "{first} is told once");
        let later = handles[0].clone();
        for ((name, ask), store) in NEXT.iter().zip(&handles) {
            assert_eq!(ask(store), Some(2), "{name} is told after {first}");
            assert_eq!(ask(store), None, "{name} is told once after {first}");
        }
        assert_eq!(NEXT[0].1(&later), Some(2), "a copy of a handle that was not told");
        assert_eq!(NEXT[0].1(&later.clone()), None, "a copy of one that was");
        // And what is lost later is told again, alone.
        let before = scene.engine.view().unwrap();
        wait(later.insert(b"lost again", b"")).unwrap();
        scene.lose(&before);
        assert!([&scene.store, &later].iter().all(|store| commits(&wait(store.get(b"absent"))) == Some(1)));
        assert_eq!(wait(scene.store.get(b"lost")).unwrap(), None);
        wait(scene.store.verify()).unwrap();
    }
}

/// What is heard by nobody is no telling: a repair fails no query, and `verify` has other things to say.
#[test]
fn who_finds_out_silently_is_told_with_the_next_operation() {
    // Repairs of a cuckooing filter write, and settle what has failed before they do. They read one range or more before: the
    // database fails behind each of them in turn.
    let make = || CuckooingFilter::builder().capacity(30).false_positive_rate(0.2).seed(3_u64).build();
    let (mut found_out, first) = (0, Scene::new(make));
    let strangers = (1_000..2_000).map(key).filter(|key| first.store.may_contain_key(key)).take(20);
    for (stranger, ranges) in strangers.flat_map(|key| (0..4).map(move |ranges| (key.clone(), ranges))) {
        let scene = Scene::new(make);
        let before = scene.engine.view().unwrap();
        wait(scene.store.put(&key(1), b"new")).unwrap();
        std::thread::scope(|scope| {
            let (mut arrived, mut go) = scene.dice.stop(Stop::Range);
            let reader = scope.spawn(|| wait(scene.store.get(&stranger)).unwrap());
            for range in 0..=ranges {
                while arrived.try_recv().is_err() && !reader.is_finished() {
                    std::thread::yield_now();
                }
                match range < ranges {
                    true => {
                        let next = scene.dice.stop(Stop::Range);
                        // It may be done.
                        let _ = go.send(());
                        (arrived, go) = next;
                    }
                    false => scene.lose(&before),
                }
            }
            let _ = go.send(());
            assert!(reader.join().unwrap().is_none());
        });
        found_out += scene.store.metrics().rolled_back;
        // The repair may have made commits of its own before.
        let told = commits(&wait(scene.store.get(b"absent")));
        assert!(
            told.is_some_and(|told| told == scene.store.metrics().rolled_back),
            "{told:?}, range {ranges}"
        );
    }
    assert!(found_out > 10, "repairs have found out {found_out} times");

    let scene = Scene::new(telescoping);
    let before = scene.engine.view().unwrap();
    wait(scene.store.put(&key(1), b"new")).unwrap();
    scene.lose(&before);
    // The filter is not built from what is judged.
    let _ = wait(scene.store.verify());
    assert_eq!(scene.store.metrics().rolled_back, 1);
    assert_eq!(commits(&wait(scene.store.get(b"absent"))), Some(1));
}

/// Before, the loss was forgotten if the way back failed half-way.
#[test]
fn a_loss_is_told_although_the_filter_could_not_be_built_at_first() {
    let scene = Scene::new(telescoping);
    let before = scene.engine.view().unwrap();
    wait(scene.store.insert(b"lost", b"1")).unwrap();
    scene.lose(&before);
    scene.unmakable.store(true, Ordering::Relaxed);
    assert!(matches!(wait(scene.store.restore()), Err(StoreError::Build(_))));
    scene.unmakable.store(false, Ordering::Relaxed);
    assert_eq!(commits(&wait(scene.store.restore())), Some(1));
    wait(scene.store.restore()).unwrap();
    wait(scene.store.verify()).unwrap();
}
