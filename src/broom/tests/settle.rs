//! What the remote says is paired with what the filter has, and the way back after a failure.
//!
//! Catches: a view that is believed although it lacks a key or has another one; a disagreement that
//! nothing can end; a key that is dropped because a view does not have it.
use super::super::builder::Blueprint;
use super::super::core::Core;
use super::super::on_bins::BroomBins;
use super::super::on_quotients::BroomQuotients;
use super::super::table::BroomTable;
use super::{Recording, Tested, bins, coarse_bins, filter, large, small};
use crate::testing::{Fault, Faults};
use crate::{
    Adaptation, Adaptive, AdaptiveError, Authority, Change, Digest, Filter, KeyHasher, MemoryRemote, Remote,
    Seed, Settled, Xxh3,
};

const KEYS: u64 = 300;

/// A filter of [`KEYS`] keys, with room for ten more.
fn filled<G: Tested>(blueprint: Blueprint<G::Cut>, seed: u64) -> (Core<G, Xxh3>, Recording) {
    let mut filter: Core<G, Xxh3> = filter(blueprint, KEYS as usize + 10, seed);
    // So small a table would have all keys in its one section; a back yard takes more than its share anyway.
    if filter.local.remainders.rest_bits == 0 {
        filter.local.table.crowd();
    }
    let mut remote = Recording::new(Faults::none());
    (0..KEYS).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    remote.touched.clear();
    (filter, remote)
}

/// The same with a seed under which the stranger is none: no list gives one away that has the fingerprint of the
/// missing key.
fn start<G: Tested>(blueprint: Blueprint<G::Cut>) -> (Core<G, Xxh3>, Recording) {
    let mut filters = (61..).map(|seed| filled(blueprint, seed));
    filters.find(|(filter, _)| !filter.contains("stranger")).unwrap()
}

/// A test of all ways to store keys that the primary table, or a line, cannot take.
macro_rules! on_all_tables {
    ($($test:ident: $check:ident;)*) => {$(
        #[test]
        fn $test() {
            $check(start::<BroomQuotients>(small(4, 0.9)));
            $check(start::<BroomQuotients>(large(2, 3, 0.6)));
            $check(start::<BroomBins>(bins(4, 1.2)));
            $check(start::<BroomBins>(coarse_bins(6, 1.1)));
        }
    )*};
}

on_all_tables! {
    a_fingerprint_without_a_key_is_noticed_and_goes_only_on_an_authoritative_read: lost_pairs;
    debris_is_passed_over_and_a_key_without_a_fingerprint_is_noticed: stray_keys;
    an_insertion_that_was_made_after_all_is_taken_in: late_insertions;
    a_removal_that_was_made_after_all_is_in_question_and_nothing_is_dropped: late_removals;
    keys_that_were_carried_after_all_are_carried_back: late_steps;
    pairs_astray_are_dropped_or_lead_their_keys_home: astray;
    a_view_with_as_many_keys_but_others_loses_nothing: stale_views;
}

fn check<G: BroomTable>(filter: &Core<G, Xxh3>, remote: &mut Recording, keys: impl IntoIterator<Item = u64>) {
    filter.verify().unwrap();
    filter.verify_remote(remote).unwrap();
    assert!(keys.into_iter().all(|key| filter.contains(&key)));
}

fn is_inconsistent<T, E>(result: &Result<T, AdaptiveError<E>>) -> bool {
    matches!(result, Err(AdaptiveError::Inconsistent { expected, found, .. }) if expected != found)
}

/// Where a key is listed.
fn address<G: BroomTable>(filter: &Core<G, Xxh3>, key: u64) -> u64 {
    filter.local.address(&filter.fingerprint_of(&key.to_le_bytes()))
}

/// Settles these addresses, one after the other. Whether all of them agree in the end.
fn settle<G: BroomTable>(
    filter: &mut Core<G, Xxh3>,
    addresses: &[u64],
    authority: Authority,
    remote: &mut Recording,
) -> bool {
    let settled = addresses.iter().map(|&at| filter.settle(at..=at, authority, remote).unwrap());
    settled.last() == Some(Settled::Agreed)
}

/// A key loses its pair, another one takes its place, or a stranger comes.
fn spoil<G: BroomTable>(filter: &Core<G, Xxh3>, remote: &mut Recording, key: u64, how: usize) {
    let (address, key) = (address(filter, key), key.to_le_bytes());
    let elsewhere = (0..KEYS).find(|&other| self::address(filter, other) != address);
    let from_elsewhere = elsewhere.unwrap().to_le_bytes();
    let gone = Change::Remove { address, key: &key };
    match how {
        0 => remote.remote.apply(&[gone]).unwrap(),
        1 => remote.remote.apply(&[gone, Change::Insert { address, key: b"stranger" }]).unwrap(),
        _ => remote.remote.apply(&[gone, Change::Insert { address, key: &from_elsewhere }]).unwrap(),
    }
}

fn lost_pairs<G: Tested>((start, clean): (Core<G, Xxh3>, Recording)) {
    for key in (0..KEYS).step_by(3) {
        for how in 0..3 {
            let (mut filter, mut remote) = (start.clone(), Recording::new(Faults::none()));
            remote.remote = clean.remote.clone();
            spoil(&filter, &mut remote, key, how);
            assert!(is_inconsistent(&filter.verify_remote(&mut remote)), "{how}");
            // Nobody says that it was there; and what nobody knows the owner of is not repaired.
            let home = filter.fingerprint_of(&key.to_le_bytes());
            let spot = filter.local.table.find(&home);
            assert!(!filter.remove(&key, &mut remote).unwrap(), "{how}");
            let mut strangers = (1_000..3_000).filter(|query: &u64| {
                filter.local.table.find(&filter.fingerprint_of(&query.to_le_bytes())) == spot
            });
            if let Some(query) = strangers.find(|_| spot.is_some()) {
                assert!(is_inconsistent(&filter.adapt(&query, &mut remote)), "{how}");
            }
            assert!(filter == start);
            // A partial view takes nothing away, an authoritative one does.
            let at = address(&filter, key);
            assert_eq!(
                filter.settle(at..=at, Authority::Partial, &mut remote).unwrap(),
                Settled::InQuestion { slots: 1 }
            );
            assert!((0..KEYS).all(|key| filter.contains(&key)));
            let mut gone = filter.clone();
            assert!(settle(&mut gone, &[at], Authority::Authoritative, &mut remote), "{how}");
            check(&gone, &mut remote, (0..KEYS).filter(|other| *other != key));
            // A stranger that was found astray has been led home.
            assert_eq!(gone.len() as u64, KEYS - 1 + u64::from(how == 1));
            // It does not come again as long as its old fingerprint may be another key's.
            assert!(is_inconsistent(&filter.insert(&key, &mut remote)), "{how}");
            assert!(gone.insert(&key, &mut remote).unwrap());
            check(&gone, &mut remote, 0..KEYS);
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
    fn check<G: BroomTable>(blueprint: Blueprint<G::Cut>) {
        let hasher = Constant::with_seed(1_u64.into());
        let mut filter: Core<G, Constant> = Core::from_blueprint(blueprint, 20, false, hasher, 0).unwrap();
        let mut remote = MemoryRemote::new();
        for key in 0..6_u64 {
            assert!(filter.insert(&key, &mut remote).unwrap() && !filter.insert(&key, &mut remote).unwrap());
        }
        assert_eq!(filter.adapt(&99_u64, &mut remote).unwrap(), Adaptation::Unfixable);
        filter.verify().unwrap();
        filter.verify_remote(&mut remote).unwrap();
        // One more of them is one more than the filter has.
        let address = remote.iter().next().unwrap().0;
        remote.apply(&[Change::Insert { address, key: &6_u64.to_le_bytes() }]).unwrap();
        assert!(is_inconsistent(&filter.verify_remote(&mut remote)));
        let settled = filter.settle(address..=address, Authority::Authoritative, &mut remote).unwrap();
        assert_eq!((settled, filter.len(), remote.len()), (Settled::Agreed, 7, 7));
        filter.verify().unwrap();
        for key in 0..7_u64 {
            assert!(filter.contains(&6_u64) && filter.remove(&key, &mut remote).unwrap());
            filter.verify_remote(&mut remote).unwrap();
        }
        assert!(filter.is_empty());
    }
    check::<BroomQuotients>(small(4, 0.9));
    check::<BroomQuotients>(large(2, 3, 0.6));
    check::<BroomBins>(bins(8, 0.9));
}

#[test]
fn hundreds_of_keys_that_nothing_tells_apart_share_a_bin() {
    let hasher = Constant::with_seed(1_u64.into());
    let mut filter: Core<BroomBins, Constant> =
        Core::from_blueprint(bins(8, 0.9), 400, false, hasher, 0).unwrap();
    let mut remote = MemoryRemote::new();
    (0..200_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    filter.verify().unwrap();
    filter.verify_remote(&mut remote).unwrap();
    (0..200_u64).for_each(|key| assert!(filter.remove(&key, &mut remote).unwrap()));
    filter.verify().unwrap();
    assert!(filter.is_empty() && remote.is_empty());
}

fn stray_keys<G: Tested>((mut filter, mut remote): (Core<G, Xxh3>, Recording)) {
    let stranger = filter.local.address(&filter.fingerprint_of(b"stranger"));
    for address in [stranger ^ 1, stranger ^ 8, u64::MAX, filter.local.all_addresses().end() + 1] {
        remote.remote.apply(&[Change::Insert { address, key: b"stranger" }]).unwrap();
        check(&filter, &mut remote, 0..KEYS);
        remote.remote.apply(&[Change::Remove { address, key: b"stranger" }]).unwrap();
    }
    remote.remote.apply(&[Change::Insert { address: stranger, key: b"stranger" }]).unwrap();
    assert!(is_inconsistent(&filter.verify_remote(&mut remote)));
    assert!(settle(&mut filter, &[stranger], Authority::Partial, &mut remote));
    assert!(filter.contains("stranger"));
    check(&filter, &mut remote, 0..KEYS);
}

fn late_insertions<G: Tested>((mut filter, mut remote): (Core<G, Xxh3>, Recording)) {
    let before = filter.clone();
    for key in KEYS..KEYS + 10 {
        // A collision reads before it writes; the group is a later access then.
        for accesses in 0.. {
            remote.touched.clear();
            remote.remote.faults.light_fuse(accesses, Fault::FailAfter);
            let inserted = filter.insert(&key, &mut remote);
            remote.remote.faults.put_out();
            if inserted.is_ok() {
                assert!(filter.remove(&key, &mut remote).unwrap());
            } else if !remote.touched.is_empty() {
                break;
            }
        }
        let touched = std::mem::take(&mut remote.touched);
        assert!(settle(&mut filter, &touched, Authority::Partial, &mut remote));
        check(&filter, &mut remote, 0..KEYS);
    }
    assert!(filter.len() >= before.len());
}

fn late_removals<G: Tested>((mut filter, mut remote): (Core<G, Xxh3>, Recording)) {
    for key in (0..KEYS).step_by(7) {
        let before = filter.clone();
        remote.remote.faults.light_fuse(1, Fault::FailAfter);
        filter.remove(&key, &mut remote).unwrap_err();
        let at = address(&filter, key);
        let settled = filter.settle(at..=at, Authority::Partial, &mut remote).unwrap();
        assert_eq!(settled, Settled::InQuestion { slots: 1 });
        assert!(filter == before && filter.contains(&key));
        // The dictionary still has it: then it is listed again.
        remote.remote.apply(&[Change::Insert { address: at, key: &key.to_le_bytes() }]).unwrap();
        assert!(settle(&mut filter, &[at], Authority::Authoritative, &mut remote));
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
        let touched = std::mem::take(&mut other.touched);
        // In whatever order the addresses come, none of them says that a key is gone.
        for (number, &at) in touched.iter().enumerate() {
            moved += u64::from(
                filter.settle(at..=at, Authority::Partial, &mut remote).unwrap() == Settled::Agreed,
            );
            assert!((0..KEYS).all(|key| filter.contains(&key)), "after {number}");
        }
        assert!(filter == before, "repairs and places are as they were");
        assert_eq!(lists(&remote.remote.inner), true_lists);
        assert!(settle(&mut filter, &touched, Authority::Authoritative, &mut remote));
        check(&filter, &mut remote, 0..KEYS);
        carried += 1;
        let _ = filter.adapt(&query, &mut remote).unwrap();
    }
    assert!(carried > 20 && moved > 10, "{carried} {moved}");
    assert!(filter.levels().phase > 0 || filter.levels().frontier > 0.2, "{:?}", filter.levels());
}

fn astray<G: Tested>((mut filter, mut remote): (Core<G, Xxh3>, Recording)) {
    let (at, before) = (address(&filter, 5), filter.clone());
    let elsewhere = (0..KEYS).find(|&key| address(&filter, key) != at).unwrap().to_le_bytes();
    remote.remote.apply(&[Change::Insert { address: at, key: &elsewhere }]).unwrap();
    assert!(settle(&mut filter, &[at], Authority::Authoritative, &mut remote));
    assert!(filter == before && remote.remote.inner.len() as u64 == KEYS);
    check(&filter, &mut remote, 0..KEYS);
    let stranger = (KEYS..).find(|&key| address(&filter, key) != at).unwrap();
    remote.remote.apply(&[Change::Insert { address: at, key: &stranger.to_le_bytes() }]).unwrap();
    assert_eq!(filter.settle(0..=u64::MAX, Authority::Authoritative, &mut remote).unwrap(), Settled::Agreed);
    assert_eq!((filter.len() as u64, remote.remote.inner.len() as u64), (KEYS + 1, KEYS + 1));
    check(&filter, &mut remote, (0..KEYS).chain([stranger]));
    // A full filter takes it in, too, and no other key from then on.
    filter.capacity = filter.len();
    remote.remote.apply(&[Change::Insert { address: at, key: b"one too many" }]).unwrap();
    assert!(settle(&mut filter, &[at], Authority::Authoritative, &mut remote));
    assert!(filter.contains(&b"one too many"[..]) && filter.len() == filter.capacity + 1);
    let full = filter.insert(&b"another"[..], &mut remote).unwrap_err();
    assert!(matches!(full, AdaptiveError::Full(_)), "{full}");
}

/// A view that lacks what was inserted last and still has what was removed last.
fn stale_views<G: Tested>((mut filter, mut remote): (Core<G, Xxh3>, Recording)) {
    for key in (0..KEYS).step_by(5) {
        let mut stale = Recording::new(Faults::none());
        stale.remote = remote.remote.clone();
        assert!(filter.remove(&key, &mut remote).unwrap());
        let newcomer = 10_000 + key;
        assert!(filter.insert(&newcomer, &mut remote).unwrap());
        for at in [address(&filter, key), address(&filter, newcomer)] {
            let _ = filter.settle(at..=at, Authority::Partial, &mut stale).unwrap();
            assert!(filter.contains(&newcomer), "the view does not know it yet");
        }
        // Once everything is in view again, what the view has brought back goes.
        let settled = filter.settle(0..=u64::MAX, Authority::Authoritative, &mut remote).unwrap();
        assert_eq!((settled, filter.len() as u64), (Settled::Agreed, KEYS));
        filter.verify_remote(&mut remote).unwrap();
        assert!(filter.remove(&newcomer, &mut remote).unwrap() && filter.insert(&key, &mut remote).unwrap());
    }
    check(&filter, &mut remote, 0..KEYS);
}
