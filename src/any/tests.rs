//! Catches: a row of the roster that leads to another filter, an option that is lost on the way to a builder, an error
//! of a remote that does not come back, a file that is read as something else.
use super::*;
use crate::format::{Kind, Persist, ReadOptions, WriteOptions};
use crate::testing::{Fault, Faults, Faulty};
use crate::{
    Adaptation, Adaptive, AdaptiveError, BuildError, Filter, Guard, MemoryDictionary, MemoryRemote, Merge,
    MergeError, Sharded, SipHash, Xxh3,
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
    let mut empty = filter.emptied().unwrap();
    assert!(empty.is_empty() && empty.kind() == filter.kind());
    empty.insert("another", &mut MemoryRemote::new()).unwrap();
    assert_eq!(filter.clone().into_dyn().len(), filter.len(), "{name}");
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
