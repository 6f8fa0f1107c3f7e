//! Faults on fjall: accesses that fail, act late or panic, in the games that the guard plays in memory; and a journal that ends in
//! the middle of a commit.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use besom::cuckoo::CuckooingFilter;
use besom::testing::Random;
use besom::{ExtensionFilter, Seed, TelescopingFilter};
use besom_fjall::Fjall;
use besom_store::{Batch, Durability, Layout, Options, Store, StoreFilter, wait};

use crate::Directory;
use crate::driver::{Make, run};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Games on folders of their own, in which faults of every kind are met.
fn play<F: StoreFilter>(layout: Layout, make: Make<F>) {
    let directory = Directory::new();
    run(|seed| Fjall::open(directory.0.join(seed.to_string())).unwrap(), layout, make, (3, 5));
}

#[test]
fn telescoping_survives_faults_in_both_layouts() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        play(layout, |_, seed| {
            TelescopingFilter::builder().capacity(4).false_positive_rate(0.2).seed(seed).growable().build()
        });
    }
}

#[test]
fn others_survive_faults() {
    play(Layout::Hashed, |_, seed| {
        ExtensionFilter::builder().capacity(4).false_positive_rate(0.2).seed(seed).growable().build()
    });
    play(Layout::Ordered, |_, seed| {
        CuckooingFilter::builder().capacity(80).false_positive_rate(0.2).seed(seed).build()
    });
}

fn open(folder: &Path, layout: Layout) -> Option<Store<TelescopingFilter, Fjall>> {
    let make = |_, _: Seed| TelescopingFilter::builder().capacity(4).seed(5_u64).growable().build();
    let options = Options::new().layout(layout).durability(Durability::Buffered);
    Some(wait(Store::open(Fjall::open(folder).ok()?, make, options)).unwrap())
}

/// Writes a history, and closes the store. All states, the first of them empty.
fn history(folder: &Path, layout: Layout) -> Vec<Model> {
    let store = open(folder, layout).unwrap();
    let (mut random, mut states) = (Random::new(layout as u64), vec![Model::new()]);
    for _ in 0..120 {
        let (mut batch, mut model) = (Batch::new(), states[states.len() - 1].clone());
        for _ in 0..=random.below(4) {
            let key = random.below(40).to_string().into_bytes();
            if random.one_in(3) {
                batch.remove(&key);
                model.remove(&key);
            } else {
                let value = vec![random.next() as u8; random.below(100) as usize];
                batch.insert(&key, &value);
                model.insert(key, value);
            }
        }
        wait(store.write(&batch)).unwrap();
        states.push(model);
    }
    states
}

fn journal_of(folder: &Path) -> PathBuf {
    let mut journals = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    journals.find(|path| path.extension().is_some_and(|extension| extension == "jnl")).unwrap()
}

/// Copies a folder, but for its journal.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.path().extension().is_none_or(|extension| extension != "jnl") {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Which state of its history a store has. Everything in it agrees.
fn state_of(store: &Store<TelescopingFilter, Fjall>, states: &[Model]) -> usize {
    wait(store.verify()).unwrap();
    let mut found = Model::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        found.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    wait(store.for_each(visit)).unwrap();
    assert!(found.keys().all(|key| store.may_contain_key(key)));
    assert_eq!(wait(store.len()).unwrap(), found.len() as u64);
    states.iter().rposition(|state| *state == found).expect("a state that was")
}

/// The journal ends somewhere, also in the middle of a commit: what is found is a state that was, and a later one the more of the
/// journal there is. `zeros` says that what is missing is there as zeros, as after a loss of power: then
/// fjall may refuse the folder, by an error or, where debug assertions are on, by a panic, which is an error to us.
fn tear(layout: Layout, zeros: bool) {
    let directory = Directory::new();
    let whole = directory.0.join("whole");
    let states = history(&whole, layout);
    let mut bytes = fs::read(journal_of(&whole)).unwrap();
    bytes.truncate(bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1);
    let cuts: usize = if std::env::var_os("BESOM_FULL").is_some() { 500 } else { 25 };
    let (mut last, mut refused, mut seen) = (0, 0, std::collections::BTreeSet::new());
    for cut in (0..=cuts).map(|at| bytes.len() * at / cuts) {
        let folder = directory.0.join("torn");
        copy(&whole, &folder);
        let name = journal_of(&whole).file_name().unwrap().to_owned();
        let mut torn = bytes[..cut].to_vec();
        torn.resize(if zeros { bytes.len() + 4096 } else { cut }, 0);
        fs::write(folder.join(name), torn).unwrap();
        match open(&folder, layout) {
            Some(store) => {
                let at = state_of(&store, &states);
                assert!(at >= last, "state {at} behind state {last}");
                last = at;
                seen.insert(at);
                // It goes on from there.
                wait(store.insert(b"more", b"")).unwrap();
                wait(store.verify()).unwrap();
            }
            None => refused += 1,
        }
        fs::remove_dir_all(&folder).unwrap();
    }
    println!("{layout:?}, zeros: {zeros}: {} states of {}, {refused} refused", seen.len(), states.len());
    assert_eq!(last, states.len() - 1, "the whole journal has everything");
    assert!(seen.len() > cuts / 2 && refused <= if zeros { cuts / 5 } else { 0 });
}

#[test]
fn a_torn_journal_leaves_a_state_that_was() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        tear(layout, false);
        tear(layout, true);
    }
}
