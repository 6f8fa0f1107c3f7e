//! Every kind of filter through all that it can do, small enough for an interpreter that checks every access to memory:
//!
//! ```text
//! MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --no-default-features --test all every_kind::
//! ```
//!
//! Catches: reads and writes beyond a table, of memory that was not initialised, or that somebody else borrows; in the portable
//! code, since the interpreter has no vector instructions.

use besom::any::{AnyFilter, Config};
use besom::format::{Persist, ReadOptions, WriteOptions};
use besom::{Adaptive, AdaptiveError, BuildError, Filter, MemoryRemote, Xxh3};

const CAPACITY: u64 = if cfg!(miri) { 60 } else { 600 };
const STRANGERS: u64 = if cfg!(miri) { 120 } else { 3_000 };

fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// `None` for exact lists and sharded filters, which are not built from parameters.
fn build(name: &str) -> Option<AnyFilter<Xxh3>> {
    let config: Config = format!("{name}:capacity={CAPACITY},rate=1/64,seed=7").parse().unwrap();
    match AnyFilter::build(&config) {
        Err(BuildError::Unsupported { option: "a configuration", .. }) => None,
        built => Some(built.unwrap()),
    }
}

/// Inserts, asks, repairs, removes, writes and reads; whether there is such a filter.
fn through_all(name: &str) -> bool {
    let (Some(mut filter), mut remote) = (build(name), MemoryRemote::new()) else { return false };
    for number in 0..CAPACITY {
        filter.insert(&key(number), &mut remote).unwrap();
    }
    let strangers: Vec<u64> = (CAPACITY..CAPACITY + STRANGERS).map(key).collect();
    for stranger in &strangers {
        if filter.contains(stranger) {
            let adapted = filter.adapt(stranger, &mut remote).unwrap();
            assert_eq!(filter.contains(stranger), !adapted.is_fixed(), "{name}: {adapted:?}");
        }
    }
    let mut kept = 0;
    match filter.remove(&key(0), &mut remote) {
        Err(AdaptiveError::Unsupported { .. }) => {}
        removed => {
            assert!(removed.unwrap(), "{name}");
            kept = CAPACITY / 2;
            (1..kept).for_each(|number| assert!(filter.remove(&key(number), &mut remote).unwrap()));
        }
    }
    let stored: Vec<u64> = (kept..CAPACITY).map(key).collect();
    let bytes = filter.to_bytes(&WriteOptions::new()).unwrap();
    let (read, _) = AnyFilter::<Xxh3>::from_bytes(&bytes, &ReadOptions::new()).unwrap();
    for filter in [&filter, &read] {
        filter.verify().unwrap();
        assert!(stored.iter().all(|key| filter.contains(key)), "{name}");
        let mut answers = Vec::new();
        filter.contains_many(&strangers, &mut answers);
        assert_eq!(answers, strangers.iter().map(|key| filter.contains(key)).collect::<Vec<_>>(), "{name}");
    }
    true
}

#[test]
fn every_kind_goes_through_all_that_it_can_do() {
    let built = Config::names().filter(|name| through_all(name)).count();
    assert_eq!(built, Config::names().count() - 2);
}
