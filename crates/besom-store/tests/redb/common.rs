//! What the tests of stores share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use besom::testing::Random;
use besom_store::{RedbStore, StoreFilter};

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A directory that goes when it is dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("store-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A key of a few bytes, out of this many.
pub(crate) fn key(number: u64) -> Vec<u8> {
    let mut key = format!("key {number}").into_bytes();
    key.truncate(4 + number as usize % 9);
    key.extend_from_slice(&number.to_le_bytes()[..3]);
    key
}

/// A value of any length.
pub(crate) fn value(random: &mut Random) -> Vec<u8> {
    let length = if random.one_in(50) { 5000 } else { random.below(20) as usize };
    vec![random.next() as u8; length]
}

/// The store has what the model has, and everything in it agrees.
pub(crate) fn check<F: StoreFilter>(store: &RedbStore<F>, model: &Model) {
    store.verify().unwrap();
    assert_eq!(store.len().unwrap(), model.len() as u64);
    for (key, value) in model {
        assert_eq!(store.get(key).unwrap().as_ref(), Some(value), "{key:?}");
    }
    let mut entries: Vec<_> = store.iter().unwrap().map(Result::unwrap).collect();
    entries.sort();
    assert!(entries.into_iter().eq(model.clone()), "iteration");
}
