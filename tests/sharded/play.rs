//! Catches: an operation that does something else when it is played in pieces than at once; a shard that reads or writes the
//! lists of another.

use std::collections::BTreeSet;

use besom::sharded::ShardedError;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::testing::{Fault, Faults, Faulty, Random};
use besom::{
    Adaptive, AdaptiveError, Authority, BuildError, Filter, MemoryRemote, Remote, Seed, Settled, Sharded,
};

use super::times;
use crate::for_every_family;

const KEYS: u64 = 120;

fn entries(remote: &MemoryRemote) -> Vec<(u64, Vec<u8>)> {
    remote.iter().map(|(address, key)| (address, key.to_vec())).collect()
}

/// The address that shard 0 has for one of a filter alone.
fn of_shard_0<F: Adaptive>(address: u64) -> u64 {
    if F::HASH_ADDRESSED { address >> 12 } else { address }
}

fn full<T, E>(result: &Result<T, AdaptiveError<E>>) -> bool {
    matches!(result, Err(AdaptiveError::Full(_)))
}

/// One shard beside the same filter alone: the same answers, results and lists after every operation.
fn same_as_alone<F: Adaptive + Clone>(name: &str, build: impl Fn(usize, Seed) -> Result<F, BuildError>) {
    for seed in 0..times(40) {
        let (mut alone, mut remote) = (build(60, Seed::from(seed)).unwrap(), MemoryRemote::new());
        let sharded = Sharded::build(1, 60, |capacity, _| build(capacity, Seed::from(seed))).unwrap();
        let mut played = sharded.with_remote(MemoryRemote::new());
        let mut random = Random::new(seed);
        for step in 0..400 {
            let key = random.below(KEYS);
            match random.below(8) {
                0..4 => {
                    let (one, two) = (alone.insert(&key, &mut remote), played.insert(&key));
                    assert_eq!(one.as_ref().ok(), two.as_ref().ok(), "{name}: {one:?} and {two:?}");
                    assert!(one.is_ok() || full(&one), "{name}: {one:?}");
                }
                4 | 5 => assert_eq!(alone.remove(&key, &mut remote).unwrap(), played.remove(&key).unwrap()),
                _ => assert_eq!(alone.adapt(&key, &mut remote).unwrap(), played.adapt(&key).unwrap()),
            }
            for key in 0..2 * KEYS {
                assert_eq!(
                    alone.contains(&key),
                    sharded.contains(&key),
                    "{name}, seed {seed}, step {step}, key {key}"
                );
            }
            assert_eq!(alone.len(), sharded.len(), "{name}, seed {seed}, step {step}");
            let mut expected: Vec<_> =
                entries(&remote).into_iter().map(|(at, key)| (of_shard_0::<F>(at), key)).collect();
            expected.sort();
            assert_eq!(expected, entries(played.remote_mut()), "{name}, seed {seed}, step {step}");
        }
        sharded.verify().unwrap();
        played.verify_remote().unwrap();
        let (one, two) = (alone.stats(), sharded.stats());
        assert_eq!((one.adaptations, one.rebuilds), (two.adaptations, two.rebuilds), "{name}");
    }
}

#[test]
fn one_shard_is_the_filter_itself() {
    for_every_family!(same_as_alone);
}

/// Several shards on one remote, against a set; with faults and panics of the remote, from which it finds its way back.
fn holds_its_keys<F: Adaptive + Clone>(name: &str, build: impl Fn(usize, Seed) -> Result<F, BuildError>) {
    crate::quiet_about_made_panics();
    for seed in 0..times(40) {
        let sharded = Sharded::build(3, 60, |capacity, _| build(capacity, Seed::from(seed))).unwrap();
        let faults = Faults::random(seed, 30, &Fault::HONEST);
        let mut shared = sharded.with_remote(Faulty::new(MemoryRemote::new(), faults));
        let (mut random, mut model) = (Random::new(seed), BTreeSet::new());
        for step in 0..600 {
            let (key, action) = (random.below(KEYS), random.below(8));
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match action {
                0..4 => shared.insert(&key).map(|_| Some(true)),
                4 | 5 => shared.remove(&key).map(|_| Some(false)),
                _ => shared.adapt(&key).map(|_| None),
            }));
            match done {
                Ok(Ok(Some(true))) => drop(model.insert(key)),
                Ok(Ok(Some(false))) => drop(model.remove(&key)),
                Ok(Ok(None) | Err(ShardedError::Filter(AdaptiveError::Full(_)))) => {}
                _ => recover(&mut shared, &mut model),
            }
            let lost: Vec<&u64> = model.iter().filter(|key| !sharded.contains(*key)).collect();
            assert!(lost.is_empty(), "{name}, seed {seed}, step {step}: lost {lost:?}");
            assert!(sharded.in_doubt().is_empty(), "{name}: a remote's failure is no doubt");
        }
        recover(&mut shared, &mut model);
        sharded.verify().unwrap();
        assert_eq!(sharded.len(), model.len(), "{name}, seed {seed}");
    }
}

/// Faults stop, filter and remote come to agree, and faults begin again. The remote then says what is stored.
fn recover<F: Adaptive + Clone>(
    shared: &mut besom::sharded::WithRemote<'_, F, Faulty<MemoryRemote>>,
    model: &mut BTreeSet<u64>,
) {
    shared.remote_mut().faults.set_one_in(0);
    shared.settle().unwrap();
    let stored: Vec<Vec<u8>> = shared.remote_mut().inner.iter().map(|(_, key)| key.to_vec()).collect();
    if shared.verify_remote().is_err() || shared.filter().len() != stored.len() {
        // The remote does not say it all: what the model has is what a dictionary would.
        let keys: Vec<u64> = model.iter().copied().collect();
        let scan = |visit: &mut dyn FnMut(&[u8]) -> std::ops::ControlFlow<()>| {
            let _ = keys.iter().try_for_each(|key| visit(&key.to_le_bytes()));
            Ok::<(), std::convert::Infallible>(())
        };
        shared.rebuild(scan).unwrap();
    } else {
        *model = stored.iter().map(|key| u64::from_le_bytes(key[..].try_into().unwrap())).collect();
    }
    shared.verify_remote().unwrap();
    shared.remote_mut().faults.set_one_in(30);
}

#[test]
fn no_key_is_lost_whatever_the_remote_does() {
    for_every_family!(holds_its_keys);
}

fn sharded(shards: usize, capacity: usize) -> Sharded<UncompressedTelescopingFilter> {
    Sharded::build(shards, capacity, |capacity, _| {
        UncompressedTelescopingFilter::builder().capacity(capacity).seed(1_u64).growable().build()
    })
    .unwrap()
}

#[test]
fn shards_grow_one_by_one_and_clear_together() {
    let (filter, capacity) = (sharded(5, 100), 5 * 160);
    let mut shared = filter.with_remote(MemoryRemote::new());
    for key in 0..3_000_u64 {
        assert!(shared.insert(&key).unwrap());
    }
    assert!(filter.capacity() >= 3_000 && filter.capacity() > capacity);
    shared.grow().unwrap();
    assert!((0..3_000_u64).all(|key| filter.contains(&key)));
    shared.verify_remote().unwrap();
    assert!((0..1_000_u64).all(|key| shared.remove(&key).unwrap()));
    assert_eq!((filter.len(), shared.remote_mut().len()), (2_000, 2_000));
    shared.clear().unwrap();
    assert!(filter.is_empty() && shared.remote_mut().is_empty());
    shared.verify_remote().unwrap();
    assert!(shared.insert(&7_u64).unwrap());
    assert!(filter.contains(&7_u64));
}

/// A group that failed after it was made is taken back by whatever comes next, and not forgotten because that succeeds.
#[test]
fn a_success_does_not_hide_an_older_failure() {
    let filter = sharded(1, 100);
    let mut shared = filter.with_remote(Faulty::new(MemoryRemote::new(), Faults::none()));
    for key in 0..40_u64 {
        shared.remote_mut().faults.light_fuse(0, Fault::FailAfter);
        assert!(shared.insert(&(1_000 + key)).is_err());
        assert!(shared.insert(&key).unwrap());
        assert_eq!(shared.remote_mut().inner.len(), filter.len());
    }
    shared.verify_remote().unwrap();
    assert!((0..40_u64).all(|key| filter.contains(&key)));
}

#[test]
fn keys_of_nobody_are_found_in_the_remote() {
    let filter = sharded(5, 100);
    let mut shared = filter.with_remote(MemoryRemote::new());
    (0..100_u64).for_each(|key| assert!(shared.insert(&key).unwrap()));
    for address in [5 << 52, u64::MAX, 3 << 52 | 99] {
        let key = b"nobody's".as_slice();
        shared.remote_mut().apply(&[besom::Change::Insert { address, key }]).unwrap();
        let error = shared.verify_remote().unwrap_err();
        assert!(matches!(error, ShardedError::Filter(AdaptiveError::Inconsistent { .. })), "{error}");
        shared.remote_mut().apply(&[besom::Change::Remove { address, key }]).unwrap();
    }
    shared.verify_remote().unwrap();
}

/// Rows that others have written or lost, as a store with a column of its own may see them.
#[test]
fn a_shard_is_settled_with_what_the_remote_has() {
    let filter = sharded(3, 100);
    let mut shared = filter.with_remote(MemoryRemote::new());
    (0..50_u64).for_each(|key| assert!(shared.insert(&key).unwrap()));
    for key in 50..60_u64 {
        let (address, key) = (filter.address(&key).unwrap(), &key.to_le_bytes()[..]);
        shared.remote_mut().apply(&[besom::Change::Insert { address, key }]).unwrap();
    }
    for key in 0..5_u64 {
        let (address, key) = (filter.address(&key).unwrap(), &key.to_le_bytes()[..]);
        shared.remote_mut().apply(&[besom::Change::Remove { address, key }]).unwrap();
    }
    let settle = |shared: &mut besom::sharded::WithRemote<'_, _, _>, authority| -> Vec<bool> {
        (0..3).map(|shard| shared.settle_shard(shard, authority).unwrap() == Settled::Agreed).collect()
    };
    assert!(settle(&mut shared, Authority::Partial).contains(&false));
    assert!((0..60_u64).all(|key| filter.contains(&key)), "nothing goes without authority");
    assert_eq!(settle(&mut shared, Authority::Authoritative), [true; 3]);
    assert!((5..60_u64).all(|key| filter.contains(&key)));
    assert_eq!(filter.len(), 55);
    shared.verify_remote().unwrap();
}
