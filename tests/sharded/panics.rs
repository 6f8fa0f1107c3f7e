//! Catches: a panic in one thread that changes the answers that others get, or that there is no way back from.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use besom::format::{Persist, WriteOptions};
use besom::quotient::QuotientFilter;
use besom::sharded::ShardedError;
use besom::testing::{Fault, Faults, Faulty};
use besom::{Digest, Filter, FullError, KeyHasher, MemoryRemote, Seed, Sharded, TelescopingFilter, Xxh3};

use crate::quiet_about_made_panics;

#[test]
fn a_remote_that_panics_leaves_the_filter_as_it_was() {
    quiet_about_made_panics();
    for fault in [Fault::PanicBefore, Fault::PanicAfter] {
        let filter = Sharded::build(4, 1_000, |capacity, _| {
            TelescopingFilter::builder().capacity(capacity).seed(1_u64).growable().build()
        })
        .unwrap();
        let remote = Mutex::new(Faulty::new(MemoryRemote::new(), Faults::none()));
        for round in 0..200_u64 {
            for key in 10 * round..10 * round + 9 {
                assert!(filter.with_remote(&remote).insert(&key).unwrap());
            }
            remote.lock().unwrap_or_else(PoisonError::into_inner).faults.light_fuse(0, fault);
            let key = 10 * round + 9;
            let thread =
                std::thread::scope(|scope| scope.spawn(|| filter.with_remote(&remote).insert(&key)).join());
            assert!(thread.is_err());
            assert!(filter.in_doubt().is_empty());
            assert!((0..10 * round + 9).filter(|key| key % 10 != 9).all(|key| filter.contains(&key)));
            filter.with_remote(&remote).settle().unwrap();
            // Done or not done: it can be done again.
            filter.with_remote(&remote).insert(&key).unwrap();
        }
        assert_eq!(filter.len(), 2_000);
        filter.with_remote(&remote).verify_remote().unwrap();
    }
}

/// XXH3 that panics in the middle of operations when told to.
#[derive(Debug, Clone, PartialEq)]
struct Fragile(Xxh3);

static BREAKS: AtomicBool = AtomicBool::new(false);

impl KeyHasher for Fragile {
    fn with_seed(seed: Seed) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    fn seed(&self) -> Seed {
        self.0.seed()
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        self.0.digest(bytes)
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        assert!(!BREAKS.load(Ordering::SeqCst), "made to panic");
        self.0.rehash(digest, counter)
    }
}

fn plain() -> Sharded<QuotientFilter<Fragile>> {
    Sharded::build(8, 1_000, |capacity, _| {
        QuotientFilter::builder().capacity(capacity).seed(1_u64).hasher::<Fragile>().build()
    })
    .unwrap()
}

/// Panics while a shard is being changed in memory.
fn break_shard(filter: &Sharded<QuotientFilter<Fragile>>, key: u64) {
    let broken = catch_unwind(AssertUnwindSafe(|| filter.change(&key, |_| panic!("made to panic"))));
    assert!(broken.is_err());
}

#[test]
fn a_shard_in_doubt_answers_maybe_and_the_others_go_on() {
    quiet_about_made_panics();
    let filter = plain();
    let keys: Vec<u64> = (0..1_000).collect();
    filter.insert_many(&keys).unwrap();
    let strangers: Vec<u64> = (1 << 40..(1 << 40) + 2_000).collect();
    let before: Vec<bool> = strangers.iter().map(|key| filter.contains(key)).collect();
    break_shard(&filter, 7);
    let shard = filter.shard_of(&7_u64);
    assert_eq!(filter.in_doubt(), [shard]);
    assert!(keys.iter().all(|key| filter.contains(key)), "a key was lost");
    let mut many = Vec::new();
    filter.contains_many(&strangers, &mut many);
    for ((key, &before), &many) in strangers.iter().zip(&before).zip(&many) {
        let expected = filter.shard_of(key) == shard || before;
        assert_eq!((filter.contains(key), many), (expected, expected));
    }
    // Changes go on elsewhere, and are refused here.
    let elsewhere = strangers.iter().find(|key| filter.shard_of(*key) != shard).unwrap();
    filter.insert(elsewhere).unwrap();
    assert_eq!(filter.insert(&7_u64), Err(ShardedError::InDoubt { shard }));
    assert_eq!(filter.remove(&7_u64), Err(ShardedError::InDoubt { shard }));
    assert!(filter.insert_many(&keys).is_err());
    assert!(filter.verify().unwrap_err().to_string().contains("in doubt"));
    assert!(filter.snapshot::<FullError>().is_err());
    assert!(filter.to_bytes(&WriteOptions::new()).unwrap_err().to_string().contains("in doubt"));
}

#[test]
fn doubt_ends_when_the_shard_is_made_anew() {
    quiet_about_made_panics();
    let filter = plain();
    (0..1_000_u64).for_each(|key| assert!(filter.insert(&key).is_ok()));
    break_shard(&filter, 7);
    filter.clear();
    assert!(filter.in_doubt().is_empty() && filter.is_empty());
    assert!((0..1_000_u64).filter(|key| filter.contains(key)).count() == 0);
    filter.insert(&7_u64).unwrap();
    break_shard(&filter, 7);
    let fresh = QuotientFilter::builder().capacity(200).seed(1_u64).hasher::<Fragile>().build().unwrap();
    filter.replace(filter.shard_of(&7_u64), fresh).unwrap();
    assert!(filter.in_doubt().is_empty() && !filter.contains(&7_u64));
    filter.verify().unwrap();
}

#[test]
fn a_rebuild_leads_out_of_doubt() {
    quiet_about_made_panics();
    // So few bits that repairs need more of the hash than the digest has.
    let filter = Sharded::build(3, 300, |capacity, _| {
        TelescopingFilter::builder()
            .capacity(capacity)
            .false_positive_rate(0.4)
            .seed(1_u64)
            .hasher::<Fragile>()
            .build()
    })
    .unwrap();
    let remote = Mutex::new(MemoryRemote::new());
    let mut shared = filter.with_remote(&remote);
    (0..300_u64).for_each(|key| assert!(shared.insert(&key).unwrap()));
    BREAKS.store(true, Ordering::SeqCst);
    let panicked =
        (1_000..200_000_u64).find(|key| catch_unwind(AssertUnwindSafe(|| shared.adapt(key))).is_err());
    BREAKS.store(false, Ordering::SeqCst);
    assert!(panicked.is_some(), "no repair was so deep");
    assert!((0..300_u64).all(|key| filter.contains(&key)));
    let keys = |visit: &mut dyn FnMut(&[u8]) -> std::ops::ControlFlow<()>| {
        let _ = (0..300_u64).try_for_each(|key| visit(&key.to_le_bytes()));
        Ok::<(), std::convert::Infallible>(())
    };
    shared.rebuild(keys).unwrap();
    assert!(filter.in_doubt().is_empty());
    assert!((0..300_u64).all(|key| filter.contains(&key)));
    shared.verify_remote().unwrap();
    filter.verify().unwrap();
}
