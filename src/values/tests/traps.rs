//! Each of these was seen to go wrong in some program: keys lost when shifting makes a code overflow, selectors
//! that run out of hash bits, a reverse map that is shifted with the slots, keys that look alike.

use super::*;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::{explicit_core, telescoping_core};
use crate::testing::CountingRemote;

/// Adapts to all strangers of a range.
fn adapt_to<F: Tested>(core: &mut F, remote: &mut MemoryRemote, strangers: std::ops::Range<u64>) {
    for stranger in strangers {
        core.adapt(&key(stranger), remote).unwrap();
    }
}

/// Insert half, adapt so much that codes are nearly full, then insert the rest: every insertion shifts values
/// across blocks, and codes overflow that nobody adapted.
fn half_adapt_rest<F: Tested<Hasher = Xxh3>>(mut core: F) -> FilterStats {
    let (n, mut remote) = (core.capacity() as u64, MemoryRemote::new());
    for number in 0..n / 2 {
        assert!(core.insert(&key(number), &mut remote).unwrap());
    }
    adapt_to(&mut core, &mut remote, n..n + 150 * n);
    let resets = core.stats().resets;
    for number in n / 2..n {
        assert!(core.insert(&key(number), &mut remote).unwrap());
    }
    core.check(&mut remote);
    assert!((0..n).all(|number| core.contains(&key(number))));
    // The same the other way round: removals shift values back.
    adapt_to(&mut core, &mut remote, n..n + 50 * n);
    for number in (0..n).step_by(2) {
        assert!(core.remove(&key(number), &mut remote).unwrap());
    }
    core.check(&mut remote);
    assert!((1..n).step_by(2).all(|number| core.contains(&key(number))));
    let stats = core.stats();
    FilterStats { resets: stats.resets - resets, ..stats }
}

#[test]
fn keys_survive_insertions_into_an_adapted_filter() {
    let of = |overflow| parameters(1_500, 8, 0.95, overflow, 9);
    for overflow in [Overflow::Reset, Overflow::Spill] {
        let telescoping = half_adapt_rest(telescoping_core(of(overflow)));
        let extension = half_adapt_rest(extension_core(of(overflow)));
        for stats in [telescoping, extension] {
            match overflow {
                Overflow::Reset => assert!(stats.resets > 20 && stats.spills == 0, "{stats:?}"),
                Overflow::Spill => assert!(stats.resets == 0 && stats.spills > 2, "{stats:?}"),
            }
        }
    }
    half_adapt_rest(explicit_core(of(Overflow::Spill)));
    half_adapt_rest(extension_bins(of(Overflow::Spill)));
}

#[test]
fn chunks_do_not_repeat_where_the_first_hash_ends() {
    let core = telescoping_core::<Xxh3>(parameters(1 << 14, 8, 0.95, Overflow::Spill, 9));
    let hasher = &core.hasher;
    let mut random = Random::new(51);
    for slots_log in [14, 20, 24, 40] {
        let digest = Digest { hi: random.next(), lo: random.next() };
        let string =
            crate::hash_string::HashString::new(hasher, digest, digest.hi << slots_log, 64 - slots_log);
        let chunks: Vec<u64> = (0..64).map(|selector| string.bits(8 * selector, 8)).collect();
        for period in 1..48 {
            let same = chunks.iter().zip(&chunks[period..]).filter(|(a, b)| a == b).count();
            assert!(same < 8, "{same} of the chunks come again after {period} at 2^{slots_log} slots");
        }
    }
}

fn one_entry_for_every_insertion<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = CountingRemote::new(MemoryRemote::new());
    for number in 0..10_000 {
        assert!(core.insert(&key(number), &mut remote).unwrap());
    }
    assert_eq!(remote.accesses().changes, 10_000);
    // Only keys that seem to be there already are looked for in the remote: less than one in 256.
    assert!(remote.accesses().reads < 39, "{:?}", remote.accesses());
    for number in (0..10_000).step_by(2) {
        assert!(core.remove(&key(number), &mut remote).unwrap());
    }
    assert_eq!(remote.accesses().changes, 15_000);
}

#[test]
fn an_insertion_writes_one_entry_however_many_slots_it_shifts() {
    one_entry_for_every_insertion(telescoping_core(parameters(10_000, 8, 0.95, Overflow::Spill, 9)));
    one_entry_for_every_insertion(extension_bins(parameters(10_000, 8, 0.95, Overflow::Spill, 9)));
}

fn stored_once<F: Tested<Hasher = Xxh3>>(mut core: F) {
    let mut remote = MemoryRemote::new();
    assert!(core.insert(&key(1), &mut remote).unwrap());
    assert!(!core.insert(&key(1), &mut remote).unwrap());
    assert_eq!((core.len(), remote.len()), (1, 1));
    assert!(core.remove(&key(1), &mut remote).unwrap());
    assert!(!core.remove(&key(1), &mut remote).unwrap());
    assert_eq!((core.len(), remote.len()), (0, 0));
}

#[test]
fn a_key_inserted_twice_is_stored_once() {
    stored_once(extension_core(parameters(100, 8, 0.95, Overflow::Spill, 9)));
    stored_once(extension_bins(parameters(100, 8, 0.95, Overflow::Spill, 9)));
}

/// The first 16 bytes of a key are its digest, so that tests can choose it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literal(Xxh3);

impl KeyHasher for Literal {
    fn with_seed(seed: Seed) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    fn seed(&self) -> Seed {
        self.0.seed()
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        let mut digest = [0; 16];
        digest.iter_mut().zip(bytes).for_each(|(to, &from)| *to = from);
        Digest::from_u128(u128::from_be_bytes(digest))
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        self.0.rehash(digest, counter)
    }
}

pub(super) fn literal(hi: u64, lo: u64, name: u8) -> Vec<u8> {
    let mut key = Digest { hi, lo }.to_u128().to_be_bytes().to_vec();
    key.push(name);
    key
}

fn keys_that_look_alike<F: Tested<Hasher = Literal>>(mut core: F, late: &[u8]) {
    let mut remote = MemoryRemote::new();
    let contains = |core: &F, key: &[u8]| core.contains(key);
    let (stored, twin) = (literal(5 << 60, 7, 1), literal(5 << 60, 7, 2));
    assert!(core.insert(&stored, &mut remote).unwrap());
    // The twin has the same digest: nothing can tell them apart, and `adapt` says so.
    assert!(contains(&core, &twin));
    assert_eq!(core.adapt(&twin, &mut remote).unwrap(), Adaptation::Unfixable);
    // It is still another key.
    assert!(!core.remove(&twin, &mut remote).unwrap());
    assert!(core.insert(&twin, &mut remote).unwrap());
    assert_eq!(core.len(), 2);
    assert!(core.remove(&stored, &mut remote).unwrap());
    assert!(contains(&core, &twin));
    // One that differs in a late bit only: both stored slots with its fingerprint are fixed at once.
    assert!(core.insert(&stored, &mut remote).unwrap());
    assert!(contains(&core, late));
    let adaptation = core.adapt(late, &mut remote).unwrap();
    assert!(
        matches!(
            adaptation,
            Adaptation::Fixed { slots: 2 }
                | Adaptation::Spilled { slots: 2, .. }
                | Adaptation::FixedAfterReset { slots: 2, .. }
        ),
        "{adaptation:?}"
    );
    assert!(!contains(&core, late) && contains(&core, &stored) && contains(&core, &twin));
    core.check(&mut remote);
}

#[test]
fn equal_fingerprints_of_different_keys_are_told_apart_or_reported() {
    let late = literal(5 << 60, 7 | 1 << 60, 3);
    // With `Reset`, which took such keys for ones that cannot be told apart: no code has room for a repair so far off.
    for overflow in [Overflow::Spill, Overflow::Reset] {
        let of = || parameters(100, 8, 0.95, overflow, 9);
        keys_that_look_alike(telescoping_core(of()), &late);
        keys_that_look_alike(extension_core(of()), &late);
        keys_that_look_alike(explicit_core(of()), &late);
    }
    keys_that_look_alike(extension_bins(parameters(100, 8, 0.95, Overflow::Spill, 9)), &late);
}

/// 400 keys in one quotient, at the beginning, in the middle or at the end of the table.
fn one_long_run<F: Tested<Hasher = Literal>>(mut core: F, hi: u64) {
    let mut remote = MemoryRemote::new();
    let mut random = Random::new(hi);
    let members: Vec<_> = (0..400).map(|_| literal(hi | random.next() >> 8, random.next(), 0)).collect();
    for member in &members {
        assert!(core.insert(member, &mut remote).unwrap());
    }
    let units: HashSet<u64> = members.iter().map(|key| core.unit(key)).collect();
    assert!(units.len() <= 4, "the keys have {} quotients", units.len());
    for round in 0..4_000 {
        let query = literal(hi | random.next() >> 8, random.next(), 1);
        core.adapt(&query, &mut remote).unwrap();
        if round % 500 == 0 {
            core.check(&mut remote);
        }
    }
    assert!(members.iter().all(|key| core.contains(key)));
    for (index, member) in members.iter().enumerate() {
        assert!(core.remove(member, &mut remote).unwrap());
        if index % 50 == 0 {
            core.check(&mut remote);
            let rest = &members[index + 1..];
            assert!(rest.iter().all(|key| core.contains(key)));
        }
    }
    assert_eq!((core.len(), core.stats().adapted_slots, core.stats().spills), (0, 0, 0));
}

#[test]
fn a_run_over_many_blocks_and_over_the_end_of_the_table() {
    for overflow in [Overflow::Reset, Overflow::Spill] {
        for hi in [0, 0x80 << 56, 0xff << 56] {
            one_long_run(telescoping_core(parameters(950, 6, 0.95, overflow, 9)), hi);
            one_long_run(extension_core(parameters(950, 6, 0.95, overflow, 9)), hi);
            one_long_run(explicit_core(parameters(950, 6, 0.95, overflow, 9)), hi);
        }
    }
    // Eight times what a bin holds; this many items of a bin have no place in its record.
    for hi in [0, 0x80 << 56, 0xff << 56] {
        one_long_run(extension_bins(parameters(950, 6, 0.95, Overflow::Spill, 9)), hi);
    }
}
