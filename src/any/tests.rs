//! Catches: a row of the roster that leads to another filter, an option that is lost on the way to a builder, an error
//! of a remote that does not come back, a file that is read as something else, a remote without one of the keys that is
//! said to agree.
use super::*;
use crate::exact::ExactList;
use crate::format::{Kind, Persist, ReadOptions, WriteOptions};
use crate::testing::{Fault, Faults, Faulty};
use crate::{
    Adaptation, Adaptive, AdaptiveError, BinFilter, BuildError, Change, Filter, Guard, Insert,
    MemoryDictionary, MemoryRemote, Merge, MergeError, Remote, Sharded, SipHash, Xxh3,
};

/// Every name that a filter can be built by.
fn built() -> impl Iterator<Item = &'static str> {
    Config::names().filter(|name| !["exact", "sharded"].contains(name))
}

fn build<H: AnyHasher>(name: &str) -> AnyFilter<H> {
    let config: Config = format!("{name}:capacity=300,seed=7,rate=1/50").parse().unwrap();
    AnyFilter::build(&config).unwrap()
}

/// Fills, asks, repairs, writes, reads and asks again.
fn lives<H: AnyHasher>(name: &str) {
    let (mut filter, mut remote) = (build::<H>(name), MemoryRemote::new());
    assert!(name.starts_with(filter.kind().name()), "{name}");
    for key in 0..300_u64 {
        filter.insert(&key, &mut remote).unwrap();
    }
    assert_eq!(remote.is_empty(), !filter.is_adaptive(), "{name}");
    let strangers: Vec<u64> = (1000..4000).collect();
    let mut answers = Vec::new();
    filter.contains_many(&strangers, &mut answers);
    let single: Vec<bool> = strangers.iter().map(|key| filter.contains(key)).collect();
    assert_eq!(answers, single, "{name}");
    for key in &strangers {
        if !filter.contains(key) {
            continue;
        }
        let adaptation = filter.adapt(key, &mut remote).unwrap();
        assert_eq!(adaptation == Adaptation::Unfixable, filter.contains(key), "{name}: {adaptation:?}");
    }
    let bytes = filter.to_bytes(&WriteOptions::new().generation(3)).unwrap();
    let (read, header) = AnyFilter::<H>::from_bytes(&bytes, &ReadOptions::new()).unwrap();
    assert_eq!((header.kind, header.generation, read.kind()), (filter.kind(), 3, filter.kind()));
    assert_eq!(read.to_bytes(&WriteOptions::new().generation(3)).unwrap(), bytes, "{name}");
    let all = || (0..4000_u64).filter(|key| filter.contains(key));
    assert!(all().eq((0..4000).filter(|key| read.contains(key))), "{name}");
    filter.verify_remote(&mut remote).unwrap();
    let digest = filter.hasher().digest(b"key");
    let home = filter.home(digest).is_some_and(|home| home.contains(&digest.hi));
    let sorted = filter.clone().rebuild_sorted(&mut remote).unwrap();
    assert_eq!([home, sorted], [filter.is_hash_addressed(); 2], "{name}");
    let mut empty = filter.emptied().unwrap();
    assert!(empty.is_empty() && empty.kind() == filter.kind());
    empty.insert("another", &mut MemoryRemote::new()).unwrap();
    assert_eq!(filter.clone().into_dyn().len(), filter.len(), "{name}");
    if filter.is_adaptive() {
        let (address, key) = remote.iter().next().map(|(address, key)| (address, key.to_vec())).unwrap();
        remote.apply(&[Change::Remove { address, key: &key }]).unwrap();
        filter.verify_remote(&mut remote).expect_err(name);
    }
}

#[test]
fn every_filter_is_built_by_name_and_comes_back_from_its_file() {
    for name in built() {
        lives::<Xxh3>(name);
    }
    for name in ["extension", "bins", "cyclic-2", "whitelist"] {
        lives::<SipHash>(name);
    }
}

#[test]
fn options_reach_their_builder_and_strange_ones_are_refused() {
    let bits = |text: &str| {
        let config: Config = text.parse().unwrap();
        AnyFilter::<Xxh3>::build(&config).map(|filter| filter.stats().bits)
    };
    assert!(bits("bloom:capacity=1000,rate=2^-10").unwrap() > bits("bloom:capacity=1000,rate=1%").unwrap());
    let plain = bits("tinyset:capacity=1000").unwrap();
    assert!(bits("tinyset:capacity=1000,removal").unwrap() > plain);
    assert!(bits("quotient:capacity=1000,max_load=0.5").unwrap() > bits("quotient:capacity=1000").unwrap());
    assert!(bits("cuckoo:capacity=1000,slot_bits=16").unwrap() > bits("cuckoo:capacity=1000").unwrap());
    let refused = bits("bloom:capacity=1000,max_load=0.5").unwrap_err();
    assert_eq!(refused, BuildError::Unsupported { filter: "bloom", option: "max_load" });
    assert_eq!(bits("bloom"), Err(BuildError::ZeroCapacity));
    for name in ["exact:capacity=9", "sharded:capacity=9"] {
        assert!(matches!(bits(name), Err(BuildError::Unsupported { .. })), "{name}");
    }
    for &kind in Kind::ALL {
        for option in kind.options() {
            assert!(Config::new(kind).accepts(option), "{kind}: {option}");
        }
    }
}

#[test]
fn texts_that_are_no_configuration_say_why() {
    for (text, part) in [
        ("blooom", "blocked-bloom"),
        ("bloom:colour=red", "colour"),
        ("bloom:rate=2", "1/1000"),
        ("bloom:capacity=1.5", "1000000"),
        ("cuckoo:shape=2", "2x4"),
        ("extension:table=mud", "bins or quotient"),
        ("", "quotient"),
    ] {
        let error = text.parse::<Config>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    for text in ["1/1000", "0.1%", "2^-8", "0.001", " 1 / 64 "] {
        assert!(config::rate(text).is_some(), "{text}");
    }
    for text in ["", "0", "1", "2", "1/0", "0/1", "-1/5", "100%", "2^8", "nan", "%", "1/2/3", "x"] {
        assert!(config::rate(text).is_none(), "{text}");
    }
    for name in built() {
        let config: Config = format!("{name}:capacity=5,hash=siphash,seed=0xff").parse().unwrap();
        assert_eq!(config.to_string().parse(), Ok(config), "{name}");
    }
}

#[test]
fn an_error_of_the_remote_comes_back_as_it_was() {
    let mut filter = build::<Xxh3>("extension");
    let mut remote = Faulty::new(MemoryRemote::new(), Faults::none());
    remote.faults.light_fuse(0, Fault::FailBefore);
    let error = filter.insert("key", &mut remote).unwrap_err();
    assert!(matches!(error, AdaptiveError::Remote(_)), "{error:?}");
    assert!(filter.is_empty() && filter.insert("key", &mut remote).unwrap());
}

#[test]
fn filters_that_cannot_do_something_say_so() {
    let mut bloom = build::<Xxh3>("bloom");
    let error = bloom.remove("key", &mut MemoryRemote::new()).unwrap_err();
    assert!(error.to_string().contains("cannot remove keys"), "{error}");
    let list = crate::exact::ExactList::builder().build(0..10_u64, 10..20_u64).unwrap();
    let mut list = AnyFilter::from_list(list);
    assert!(list.contains(&5_u64) && list.kind() == Kind::Exact);
    assert!(list.insert(&77_u64, &mut MemoryRemote::new()).is_err() && list.emptied().is_err());
}

#[test]
fn every_kind_merges_or_says_why_not_and_is_unchanged_then() {
    let of = |text: &str, keys: std::ops::Range<u64>| {
        let (mut filter, mut remote) =
            (AnyFilter::<Xxh3>::build(&text.parse().unwrap()).unwrap(), MemoryRemote::new());
        for key in keys {
            filter.insert(&key, &mut remote).unwrap();
        }
        filter
    };
    let bytes = |filter: &AnyFilter| filter.to_bytes(&WriteOptions::new()).unwrap();
    for name in built() {
        let small = format!("{name}:capacity=200,seed=7,rate=1/50");
        let mut left = of(&small, 0..100);
        let before = bytes(&left);
        let stranger = of(if name == "bloom" { "bins:capacity=9" } else { "bloom:capacity=9" }, 0..5);
        assert_eq!(left.merge(&stranger), Err(MergeError::Unsupported), "{name}");
        let right = of(&small, 50..150);
        if !["quotient", "bins", "bloom", "blocked-bloom"].contains(&name) {
            assert_eq!(left.merge(&right), Err(MergeError::Unsupported), "{name}");
            assert_eq!(bytes(&left), before, "{name}");
            continue;
        }
        let seeded = of(&small.replace("seed=7", "seed=8"), 0..5);
        assert_eq!(left.merge(&seeded), Err(MergeError::HashMismatch), "{name}");
        let larger = of(&small.replace("=200", "=2000"), 0..5);
        assert!(matches!(left.merge(&larger), Err(MergeError::ShapeMismatch { .. })), "{name}");
        let many = of(&small, 200..400);
        assert!(matches!(left.merge(&many), Err(MergeError::Full { capacity: 200, .. })), "{name}");
        assert_eq!(bytes(&left), before, "{name}");
        left.merge(&right).unwrap();
        assert!((0..150_u64).all(|key| left.contains(&key)) && left.verify().is_ok(), "{name}");
        assert_eq!(bytes(&right), bytes(&of(&small, 50..150)), "{name}");
    }
}

#[test]
fn a_guard_and_shards_work_with_filters_of_any_kind() {
    for name in built().filter(|name| !["bloom", "blocked-bloom", "whitelist", "tinyset"].contains(name)) {
        let mut guard = Guard::new(build::<Xxh3>(name), MemoryDictionary::new());
        for key in 0..200_u64 {
            guard.insert(&key, key).unwrap();
        }
        assert!((0..200_u64).all(|key| guard.get(&key).unwrap() == Some(key)), "{name}");
        assert!((0..100_u64).all(|key| guard.remove(&key).unwrap() == Some(key)), "{name}");
        assert!((100..200_u64).all(|key| guard.get(&key).unwrap() == Some(key)), "{name}");
        assert!((0..100_u64).all(|key| guard.get(&key).unwrap().is_none()), "{name}");

        let config: Config = name.parse().unwrap();
        let make = |capacity, seed| AnyFilter::<Xxh3>::build(&config.clone().capacity(capacity).seed(seed));
        let sharded = Sharded::build(4, 500, make).unwrap();
        let store = std::sync::Mutex::new(MemoryRemote::new());
        let mut shared = sharded.with_remote(&store);
        assert!((0..500_u64).all(|key| shared.insert(&key).is_ok()), "{name}");
        let bytes = sharded.to_bytes(&WriteOptions::new()).unwrap();
        let (read, header) = Sharded::<AnyFilter>::from_bytes(&bytes, &ReadOptions::new()).unwrap();
        assert_eq!(header.kind, Kind::Sharded);
        assert!((0..500_u64).all(|key| read.contains(&key)), "{name}");
    }
}

#[test]
fn many_keys_are_answered_as_one_by_one_whatever_their_lengths() {
    for name in built() {
        let mut filter = build::<Xxh3>(name);
        let mut remote = MemoryRemote::new();
        for key in (0..100_u64).step_by(2) {
            filter.insert(&key, &mut remote).unwrap();
            filter.insert(&key.to_string(), &mut remote).unwrap();
        }
        let words: Vec<u64> = (0..3000).collect();
        // Keys of 8 bytes, of other lengths, and batches with both, whose ends may fall on those of words.
        let long = |key: &u64| key.to_le_bytes().repeat(if key.is_multiple_of(2) { 2 } else { 0 });
        let mixed = |key: &u64| {
            if key % 1500 == 7 { key.to_string().into_bytes() } else { key.to_le_bytes().to_vec() }
        };
        let mut answers = Vec::new();
        filter.contains_many(&words, &mut answers);
        assert_eq!(answers, words.iter().map(|key| filter.contains(key)).collect::<Vec<_>>(), "{name}");
        for keys in [words.iter().map(long).collect::<Vec<_>>(), words.iter().map(mixed).collect()] {
            filter.contains_many(&keys, &mut answers);
            assert_eq!(answers, keys.iter().map(|key| filter.contains(key)).collect::<Vec<_>>(), "{name}");
        }
    }
}

/// What `Debug` prints of filters for this many keys.
struct Shown(Config);

impl Visit<Xxh3> for Shown {
    type Output = String;

    fn plain<F: Configured<Hasher = Xxh3>>(self, _: Abilities<F>) -> String {
        format!("{:?}", F::configured(&self.0).unwrap())
    }

    fn adaptive<F: Configured<Hasher = Xxh3>>(self, _: Abilities<F>) -> String {
        format!("{:?}", F::configured(&self.0).unwrap())
    }

    fn list(self, _: Abilities<ExactList>) -> String {
        let keys = self.0.capacity as u64;
        format!("{:?}", ExactList::builder().seed(7_u64).build(0..keys, keys..2 * keys).unwrap())
    }
}

#[test]
fn debug_prints_parameters_and_figures_and_not_the_words_of_a_filter() {
    let sharded = |capacity| {
        let build = |capacity, seed| BinFilter::builder().capacity(capacity).seed(seed).build();
        format!("{:?}", Sharded::build(1, capacity, build).unwrap())
    };
    for &kind in Kind::ALL {
        let config = |capacity| Shown(Config::new(kind).capacity(capacity).seed(7_u64));
        let [small, large] =
            [500, 50_000].map(|keys| visit::<Xxh3, _>(kind, config(keys)).unwrap_or_else(|| sharded(keys)));
        assert!(large.contains("50000"), "{kind} does not show its capacity: {large}");
        assert!(large.len() < small.len() + 50 && large.len() < 400, "{kind} shows its words: {large}");
    }
    let any = format!("{:?}", build::<Xxh3>("extension"));
    assert!(
        any.starts_with("AnyFilter<extension> { len: 0, capacity: 300, false_positive_rate: 0.0"),
        "{any}"
    );
}

/// Inserts few keys many times more often than there is room for.
struct Repeats(Config);

const ROOM: usize = 64;

impl Visit<Xxh3> for Repeats {
    type Output = ();

    fn plain<F: Configured<Hasher = Xxh3> + Insert>(self, _: Abilities<F>) {
        let kind = F::KIND;
        let mut filter = F::configured(&self.0).unwrap();
        let sharded = Sharded::build(3, ROOM, |capacity, seed| {
            F::configured(&self.0.clone().capacity(capacity).seed(seed))
        });
        let sharded = sharded.unwrap();
        for repetition in 0..100 {
            for key in 0..5_u64 {
                let fresh = filter.insert_unique(&key).unwrap();
                assert!(!fresh || repetition == 0, "{kind}");
                assert!(!sharded.insert_unique(&key).unwrap() || repetition == 0, "{kind}");
                // Those that count a key by the bits that it sets need no other word for it.
                if matches!(kind, Kind::Bloom | Kind::BlockedBloom | Kind::Whitelist) {
                    assert!(!filter.insert(&key).unwrap(), "{kind}");
                }
            }
        }
        assert!(filter.len() <= 5 && sharded.len() <= 5, "{kind}: {} {}", filter.len(), sharded.len());
        assert!((0..5_u64).all(|key| filter.contains(&key) && sharded.contains(&key)), "{kind}");
        (100..100 + ROOM as u64 - 5).for_each(|key| assert!(filter.insert_unique(&key).is_ok(), "{kind}"));
    }

    fn adaptive<F: Configured<Hasher = Xxh3> + Adaptive>(self, _: Abilities<F>) {
        let (mut filter, mut remote) = (F::configured(&self.0).unwrap(), MemoryRemote::new());
        for repetition in 0..100 {
            for key in 0..5_u64 {
                let fresh = filter.insert(&key, &mut remote).unwrap();
                assert_eq!(fresh, repetition == 0, "{}", F::KIND);
            }
        }
        assert_eq!((filter.len(), remote.len()), (5, 5), "{}", F::KIND);
    }

    /// Built from 1,000 lines with two different keys: the shorter list, whose repetitions are noticed.
    fn list(self, _: Abilities<ExactList>) {
        let yes = std::iter::repeat_n([1_u64, 2], 500).flatten();
        let list = ExactList::builder().seed(7_u64).build(yes, 3..5000_u64).unwrap();
        assert_eq!(list.len(), 2);
    }
}

#[test]
fn keys_that_come_again_take_no_room() {
    for &kind in Kind::ALL {
        visit::<Xxh3, _>(kind, Repeats(Config::new(kind).capacity(ROOM).seed(7_u64)));
    }
}
