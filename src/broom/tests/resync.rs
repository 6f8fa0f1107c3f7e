//! What the remote says is checked, and the way back after a failure.
//!
//! Catches: a list that is believed although it lacks a key, has another one or one too many; a disagreement that
//! nothing can end; a key that is dropped because a list does not have it.
use super::super::builder::Blueprint;
use super::super::core::Core;
use super::super::ground::Ground;
use super::super::on_bins::BinGround;
use super::super::on_quotients::QuotientGround;
use super::{Recording, Tested, bins, coarse_bins, filter, large, small};
use crate::testing::{Fault, Faults};
use crate::{
    Adaptation, Adaptive, AdaptiveError, Change, Digest, Filter, KeyHasher, MemoryRemote, Remote, Resync,
    Seed, Xxh3,
};

const KEYS: u64 = 300;

/// A filter of [`KEYS`] keys, with room for ten more.
fn filled<G: Tested>(blueprint: Blueprint<G::Cut>, seed: u64) -> (Core<G, Xxh3>, Recording) {
    let mut filter: Core<G, Xxh3> = filter(blueprint, KEYS as usize + 10, seed);
    // So small a table would have all keys in its one section; a back yard takes more than its share anyway.
    if filter.local.remainders.rest_bits == 0 {
        filter.local.ground.crowd();
    }
    let mut remote = Recording::new(Faults::none());
    (0..KEYS).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    remote.touched.clear();
    (filter, remote)
}

/// The same with a seed under which the stranger is none: no list gives one away that has the fingerprint of the missing key.
fn start<G: Tested>(blueprint: Blueprint<G::Cut>) -> (Core<G, Xxh3>, Recording) {
    let mut filters = (61..).map(|seed| filled(blueprint, seed));
    filters.find(|(filter, _)| !filter.contains("stranger")).unwrap()
}

/// A test of all ways to store keys that the primary table, or a line, cannot take.
macro_rules! on_all_grounds {
    ($($test:ident: $check:ident;)*) => {$(
        #[test]
        fn $test() {
            $check(start::<QuotientGround>(small(4, 0.9)));
            $check(start::<QuotientGround>(large(2, 3, 0.6)));
            $check(start::<BinGround>(bins(4, 1.2)));
            $check(start::<BinGround>(coarse_bins(6, 1.1)));
        }
    )*};
}

on_all_grounds! {
    a_spoilt_list_is_noticed_by_every_operation_that_reads_it_and_by_verify_remote: spoilt_lists;
    a_key_under_an_address_that_has_none_is_noticed: stray_keys;
    an_insertion_that_was_made_after_all_is_taken_in: late_insertions;
    a_removal_that_was_made_after_all_is_in_question_and_nothing_is_dropped: late_removals;
    keys_that_were_carried_after_all_are_carried_back: late_steps;
    duplicates_are_dropped_and_strangers_are_inserted_at_home: duplicates;
}

fn check<G: Ground>(filter: &Core<G, Xxh3>, remote: &mut Recording, keys: impl IntoIterator<Item = u64>) {
    filter.verify().unwrap();
    filter.verify_remote(remote).unwrap();
    assert!(keys.into_iter().all(|key| filter.contains(&key)));
}

fn is_inconsistent<T, E>(result: &Result<T, AdaptiveError<E>>) -> bool {
    matches!(result, Err(AdaptiveError::Inconsistent { expected, found, .. }) if expected != found)
}

/// Where a key is listed.
fn address<G: Ground>(filter: &Core<G, Xxh3>, key: u64) -> u64 {
    filter.local.address(filter.fingerprint_of(&key.to_le_bytes()).quotient())
}

/// The rank of a key in its list.
fn rank<G: Ground>(filter: &Core<G, Xxh3>, remote: &mut Recording, key: u64) -> usize {
    let (mut rank, mut seen) = (None, 0);
    let mut visit = |stored: &[u8]| {
        if stored == key.to_le_bytes() {
            rank = Some(seen);
        }
        seen += 1;
    };
    remote.read(address(filter, key), &mut visit).unwrap();
    rank.unwrap()
}

/// The key's list loses it, or has another key in its place (a stranger, or one that is stored), or one too many.
fn spoil<G: Ground>(filter: &Core<G, Xxh3>, remote: &mut Recording, key: u64, how: usize) {
    let (address, rank, old) = (address(filter, key), rank(filter, remote, key), key.to_le_bytes());
    let elsewhere = (0..KEYS).find(|&other| self::address(filter, other) != address);
    let from_elsewhere = elsewhere.unwrap().to_le_bytes();
    let change = match how {
        0 => Change::Remove { address, rank, key: &old },
        1 => Change::Replace { address, rank, old: &old, key: b"stranger" },
        2 => Change::Push { address, key: b"stranger" },
        3 => Change::Replace { address, rank, old: &old, key: &from_elsewhere },
        _ => Change::Push { address, key: &old },
    };
    remote.remote.apply(&[change]).unwrap();
}

fn spoilt_lists<G: Tested>((start, clean): (Core<G, Xxh3>, Recording)) {
    for key in (0..KEYS).step_by(3) {
        for how in 0..5 {
            let (mut filter, mut remote) = (start.clone(), Recording::new(Faults::none()));
            remote.remote = clean.remote.clone();
            spoil(&filter, &mut remote, key, how);
            assert!(is_inconsistent(&filter.verify_remote(&mut remote)), "{how}");
            assert!(is_inconsistent(&filter.remove(&key, &mut remote)), "{how}");
            assert!(is_inconsistent(&filter.insert(&key, &mut remote)), "{how}");
            let same_list = |query: &u64| address(&filter, *query) == address(&filter, key);
            let mut strangers = (1_000..3_000).filter(|query| filter.contains(query));
            if let Some(query) = strangers.find(same_list) {
                assert!(is_inconsistent(&filter.adapt(&query, &mut remote)), "{how}");
            }
            assert!(filter == start);
        }
    }
    assert!(start.levels().elsewhere > 0, "keys elsewhere are checked too");
}

/// All keys have the same digest.
#[derive(Debug, Clone, PartialEq)]
struct Constant(Seed);

impl KeyHasher for Constant {
    fn with_seed(seed: Seed) -> Self {
        Self(seed)
    }

    fn seed(&self) -> Seed {
        self.0
    }

    fn digest(&self, _: &[u8]) -> Digest {
        Digest { hi: 0x1234_5678_9abc_def0, lo: 5 }
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        Digest { hi: digest.hi ^ counter, lo: digest.lo.wrapping_mul(counter | 1) }
    }
}

#[test]
fn keys_that_nothing_tells_apart_are_kept_apart_by_their_lists() {
    fn check<G: Ground>(blueprint: Blueprint<G::Cut>) {
        let hasher = Constant::with_seed(1_u64.into());
        let mut filter: Core<G, Constant> = Core::from_blueprint(blueprint, 20, false, hasher, 0).unwrap();
        let mut remote = MemoryRemote::new();
        for key in 0..6_u64 {
            assert!(filter.insert(&key, &mut remote).unwrap() && !filter.insert(&key, &mut remote).unwrap());
        }
        assert_eq!(filter.adapt(&99_u64, &mut remote).unwrap(), Adaptation::Unfixable);
        filter.verify().unwrap();
        filter.verify_remote(&mut remote).unwrap();
        let address = remote.iter().next().unwrap().0;
        let [old, key] = [3_u64.to_le_bytes(), 4_u64.to_le_bytes()];
        remote.apply(&[Change::Replace { address, rank: 3, old: &old, key: &key }]).unwrap();
        assert!(is_inconsistent(&filter.remove(&0_u64, &mut remote)));
        remote.apply(&[Change::Replace { address, rank: 3, old: &key, key: &old }]).unwrap();
        // One more of them in the list is one more than the filter has.
        remote.apply(&[Change::Push { address, key: &6_u64.to_le_bytes() }]).unwrap();
        assert_eq!(filter.resync(&[address], &mut remote).unwrap(), Resync::Agreed);
        assert_eq!((filter.len(), remote.len()), (7, 7));
        filter.verify().unwrap();
        for key in 0..7_u64 {
            assert!(filter.contains(&6_u64) && filter.remove(&key, &mut remote).unwrap());
            filter.verify_remote(&mut remote).unwrap();
        }
        assert!(filter.is_empty());
    }
    check::<QuotientGround>(small(4, 0.9));
    check::<QuotientGround>(large(2, 3, 0.6));
    check::<BinGround>(bins(8, 0.9));
}

#[test]
fn hundreds_of_keys_that_nothing_tells_apart_share_a_bin() {
    let hasher = Constant::with_seed(1_u64.into());
    let mut filter: Core<BinGround, Constant> =
        Core::from_blueprint(bins(8, 0.9), 400, false, hasher, 0).unwrap();
    let mut remote = MemoryRemote::new();
    (0..200_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    filter.verify().unwrap();
    filter.verify_remote(&mut remote).unwrap();
    (0..200_u64).for_each(|key| assert!(filter.remove(&key, &mut remote).unwrap()));
    filter.verify().unwrap();
    assert!(filter.is_empty() && remote.is_empty());
}

fn stray_keys<G: Tested>((filter, mut remote): (Core<G, Xxh3>, Recording)) {
    let slots = filter.local.quotients();
    let empty = (0..slots).rev().find(|&quotient| filter.local.ground.stored_at(quotient) == 0).unwrap();
    for address in [filter.local.address(empty), filter.local.address(slots + 5)] {
        remote.remote.apply(&[Change::Push { address, key: b"stranger" }]).unwrap();
        assert!(is_inconsistent(&filter.verify_remote(&mut remote)));
        remote.remote.apply(&[Change::Remove { address, rank: 0, key: b"stranger" }]).unwrap();
    }
    // What lies under another generation is nobody's.
    let other = filter.local.address(empty) ^ 1 << 50;
    remote.remote.apply(&[Change::Push { address: other, key: b"left over" }]).unwrap();
    check(&filter, &mut remote, 0..KEYS);
}

fn late_insertions<G: Tested>((mut filter, mut remote): (Core<G, Xxh3>, Recording)) {
    let before = filter.clone();
    for key in KEYS..KEYS + 10 {
        remote.touched.clear();
        remote.remote.faults.light_fuse(0, Fault::FailAfter);
        // A collision reads first; the second access is the group then.
        while filter.insert(&key, &mut remote).is_ok() {
            assert!(filter.remove(&key, &mut remote).unwrap());
            remote.remote.faults.light_fuse(1, Fault::FailAfter);
        }
        remote.remote.faults.put_out();
        let touched = std::mem::take(&mut remote.touched);
        assert_eq!(filter.resync(&touched, &mut remote).unwrap(), Resync::Agreed);
        check(&filter, &mut remote, 0..KEYS);
    }
    assert!(filter.len() >= before.len());
}

fn late_removals<G: Tested>((mut filter, mut remote): (Core<G, Xxh3>, Recording)) {
    for key in (0..KEYS).step_by(7) {
        let before = filter.clone();
        remote.remote.faults.light_fuse(1, Fault::FailAfter);
        filter.remove(&key, &mut remote).unwrap_err();
        let resync = filter.resync(&[address(&filter, key)], &mut remote).unwrap();
        assert_eq!(resync, Resync::InQuestion { slots: 1 });
        assert!(filter == before && filter.contains(&key));
        // The dictionary still has it: then it is listed again.
        let bytes = key.to_le_bytes();
        remote.remote.apply(&[Change::Push { address: address(&filter, key), key: &bytes }]).unwrap();
        assert_eq!(filter.resync(&[address(&filter, key)], &mut remote).unwrap(), Resync::Agreed);
        assert!(filter == before);
    }
    check(&filter, &mut remote, 0..KEYS);
}

fn late_steps<G: Tested>((mut filter, mut remote): (Core<G, Xxh3>, Recording)) {
    let (mut carried, mut moved) = (0, 0);
    for query in 10_000..14_000_u64 {
        let mut copy = filter.clone();
        let mut other = Recording::new(Faults::none());
        other.remote = remote.remote.clone();
        if !matches!(copy.adapt(&query, &mut other), Ok(Adaptation::Fixed { .. })) || other.touched.is_empty()
        {
            continue;
        }
        // The same again, with a time-out at the end.
        let before = filter.clone();
        let lists = |remote: &MemoryRemote| {
            let mut all: Vec<_> = remote.iter().map(|(at, key)| (at, key.to_vec())).collect();
            all.sort_unstable();
            all
        };
        let true_lists = lists(&remote.remote.inner);
        remote.remote.inner = other.remote.inner.clone();
        let one = [other.touched[0]];
        let addresses: &[u64] = if query % 2 == 0 { &other.touched } else { &one };
        match filter.resync(addresses, &mut remote).unwrap() {
            Resync::Agreed => moved += 1,
            Resync::InQuestion { slots } => {
                assert!(slots > 0 && addresses.len() == 1, "all lists together explain everything");
                assert_eq!(filter.resync(&other.touched, &mut remote).unwrap(), Resync::Agreed);
            }
        }
        assert!(filter == before, "repairs and places are as they were");
        if addresses.len() > 1 {
            assert_eq!(lists(&remote.remote.inner), true_lists);
        }
        let touched = std::mem::take(&mut other.touched);
        assert_eq!(filter.resync(&touched, &mut remote).unwrap(), Resync::Agreed);
        check(&filter, &mut remote, 0..KEYS);
        carried += 1;
        let _ = filter.adapt(&query, &mut remote).unwrap();
    }
    assert!(carried > 20 && moved > 10, "{carried} {moved}");
    assert!(filter.levels().phase > 0 || filter.levels().frontier > 0.2, "{:?}", filter.levels());
}

fn duplicates<G: Tested>((mut filter, mut remote): (Core<G, Xxh3>, Recording)) {
    let (at, before) = (address(&filter, 5), filter.clone());
    let known = 5_u64.to_le_bytes();
    let elsewhere = (0..KEYS).find(|&key| address(&filter, key) != at).unwrap().to_le_bytes();
    for key in [&known, &elsewhere] {
        remote.remote.apply(&[Change::Push { address: at, key }]).unwrap();
    }
    assert_eq!(filter.resync(&[at], &mut remote).unwrap(), Resync::Agreed);
    assert!(filter == before);
    check(&filter, &mut remote, 0..KEYS);
    let stranger = (KEYS..).find(|&key| address(&filter, key) != at).unwrap();
    remote.remote.apply(&[Change::Push { address: at, key: &stranger.to_le_bytes() }]).unwrap();
    // Addresses beyond the table and of other generations do no harm.
    let addresses = [at, u64::MAX, filter.local.address(1 << 40)];
    assert_eq!(filter.resync(&addresses, &mut remote).unwrap(), Resync::Agreed);
    assert_eq!(filter.len() as u64, KEYS + 1);
    check(&filter, &mut remote, (0..KEYS).chain([stranger]));
    // Without room for it nothing changes.
    filter.capacity = filter.len();
    let before = filter.clone();
    remote.remote.apply(&[Change::Push { address: at, key: b"one too many" }]).unwrap();
    let full = filter.resync(&[at], &mut remote).unwrap_err();
    assert!(matches!(full, AdaptiveError::Full(_)) && filter == before);
}
