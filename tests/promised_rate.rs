//! Catches: a filter of the roster that promises a rate that it does not keep, one other than it was asked for, or one that
//! changes on the way through a file, a growth or a wrapper.

use std::sync::Arc;

use besom::any::{AnyFilter, Config};
use besom::exact::ExactList;
use besom::format::{Persist, ReadOptions, WriteOptions};
use besom::quotient::QuotientFilter;
use besom::{Adaptive, BinFilter, Filter, Growable, Insert, MemoryRemote, Sharded, TelescopingFilter};

/// How many standard deviations of the number of false positives are left to chance.
const DEVIATIONS: f64 = 4.0;

fn full() -> bool {
    std::env::var_os("BESOM_FULL").is_some()
}

/// Every name that a filter can be built by.
fn built() -> impl Iterator<Item = &'static str> {
    Config::names().filter(|name| !["exact", "sharded"].contains(name))
}

fn build(name: &str, capacity: usize, rate: f64, seed: u64) -> AnyFilter {
    let config: Config = name.parse().unwrap();
    AnyFilter::build(&config.capacity(capacity).false_positive_rate(rate).seed(seed)).unwrap()
}

/// False positives among this many strangers.
fn false_positives(filter: &impl Filter, queries: u64) -> u64 {
    const FIRST: u64 = 1 << 40;
    let (mut found, mut answers) = (0, Vec::new());
    for start in (0..queries).step_by(10_000) {
        let strangers: Vec<u64> = (start..queries.min(start + 10_000)).map(|number| FIRST + number).collect();
        filter.contains_many(&strangers, &mut answers);
        found += answers.iter().filter(|&&accepted| accepted).count() as u64;
    }
    found
}

/// Fills filters of several seeds to their capacity, and compares what they accept with what they promised before.
fn keeps_its_promise(name: &str, capacity: usize, rate: f64) {
    // As many false positives as this, unless they are so rare that it takes too many queries.
    let (wanted, most) = if full() { (20_000.0, 2e7) } else { (3_000.0, 1e6) };
    // What a small filter accepts depends on its seed: there are many of them.
    let seeds = (30_000 / capacity as u64).clamp(2, 30);
    let queries = f64::min(wanted / rate, most) as u64 / seeds;
    let (mut each, mut promised) = (Vec::new(), 0.0);
    for seed in 0..seeds {
        let (mut filter, mut remote) = (build(name, capacity, rate, seed), MemoryRemote::new());
        promised = filter.false_positive_rate();
        assert!(promised <= rate * (1.0 + 1e-9), "{name}: {promised:e} promised for {rate:e}");
        // Fewer keys get one or two cache lines, which may be far too large for them.
        assert!(
            promised >= rate / 10.0 || capacity < 1_000,
            "{name}: only {promised:e} promised for {rate:e}"
        );
        for key in 0..capacity as u64 {
            let inserted = filter.insert(&key, &mut remote);
            // Partial keys have few bins to go to, which may all be full a little before the others are.
            let nearly = name == "cuckoo" && 5 * key > 4 * capacity as u64;
            assert!(inserted.is_ok() || nearly, "{name}: {inserted:?}");
        }
        assert_eq!(filter.false_positive_rate(), promised, "{name}: keys change the promise");
        each.push(false_positives(&filter, queries) as f64);
    }
    let (found, most) = (each.iter().sum::<f64>(), promised * (queries * seeds) as f64);
    println!("{name}, {capacity} keys at {rate:e}: {:.3} of {promised:e}", found / most);
    // Chance decides which queries come, and how evenly the seeds spread the keys.
    let mean = found / seeds as f64;
    let spread = each.iter().map(|found| (found - mean).powi(2)).sum::<f64>();
    let deviation = most.max(spread).sqrt();
    assert!(
        found < most + DEVIATIONS * deviation,
        "{name}, {capacity} keys at {rate:e}: {found} false positives, and {most:.0} ± {deviation:.0} promised"
    );
}

#[test]
fn every_filter_keeps_the_rate_that_it_promises_at_capacity() {
    let (sizes, rates): (&[usize], &[f64]) = if full() {
        (&[30, 100, 1_000, 20_000, 300_000], &[0.05, 0.01, 1.0 / 256.0, 1e-3, 2e-4])
    } else {
        (&[30, 100, 1_000, 12_000], &[0.05, 1.0 / 256.0])
    };
    for name in built() {
        for (&capacity, &rate) in sizes.iter().flat_map(|size| rates.iter().map(move |rate| (size, rate))) {
            keeps_its_promise(name, capacity, rate);
        }
    }
}

#[test]
fn the_promise_comes_through_files_and_wrappers() {
    for name in built() {
        let filter = build(name, 500, 0.01, 7);
        let promised = filter.false_positive_rate();
        let bytes = filter.to_bytes(&WriteOptions::new()).unwrap();
        let (read, _) = AnyFilter::<besom::Xxh3>::from_bytes(&bytes, &ReadOptions::new()).unwrap();
        assert_eq!(read.false_positive_rate(), promised, "{name}");
        assert_eq!(filter.emptied().unwrap().false_positive_rate(), promised, "{name}");
        assert_eq!(Arc::new(&filter).false_positive_rate(), promised, "{name}");
        let mut rates = [0.01, 0.02, 0.005].into_iter();
        let shards =
            Sharded::build(3, 500, |keys, _| Ok(build(name, keys, rates.next().unwrap(), 7))).unwrap();
        let each = (0..3).map(|shard| shards.look::<_, ()>(shard, Filter::false_positive_rate).unwrap());
        assert_eq!(shards.false_positive_rate(), each.fold(0.0, f64::max), "{name}");
        assert_eq!(filter.into_dyn().false_positive_rate(), promised, "{name}");
    }
}

#[test]
fn growth_never_leads_above_the_rate_that_was_asked_for() {
    const RATE: f64 = 1.0 / 100.0;
    let bins = BinFilter::builder().capacity(100).growable_to(3_000).false_positive_rate(RATE).seed(1_u64);
    grows_within(bins.build().unwrap(), RATE);
    let quotient = QuotientFilter::builder().capacity(100).growable_to(3_000).false_positive_rate(RATE);
    grows_within(quotient.seed(1_u64).build().unwrap(), RATE);
    let builder = TelescopingFilter::builder().capacity(100).false_positive_rate(RATE).seed(1_u64);
    let (mut filter, mut remote) = (builder.build().unwrap(), MemoryRemote::new());
    let promised = filter.false_positive_rate();
    for _ in 0..5 {
        filter.grow(&mut remote).unwrap();
        assert!((filter.false_positive_rate() / promised - 1.0).abs() < 0.02 && promised <= RATE);
    }
}

/// Each growth takes a bit, so the rate rises to the one that was asked for and not beyond.
fn grows_within<F: Insert>(mut filter: F, rate: f64) {
    let mut last = 0.0;
    for key in 0..3_000_u64 {
        filter.insert(&key).unwrap();
        let promised = filter.false_positive_rate();
        assert!(last <= promised && promised <= rate, "{last} rose to {promised} of {rate}");
        last = promised;
    }
    assert!(last > rate / 4.0, "{last} in the end, of {rate}");
}

#[test]
fn a_list_promises_the_rate_of_keys_that_it_does_not_know() {
    for rate in [None, Some(0.001)] {
        let builder = ExactList::builder().seed(5_u64);
        let builder = rate.into_iter().fold(builder, besom::exact::ExactListBuilder::unknown_rate);
        let list = builder.build(0..5_000_u64, 5_000..30_000_u64).unwrap();
        let promised = list.false_positive_rate();
        assert!(rate.is_none_or(|rate| (rate / 10.0..=rate).contains(&promised)), "{promised}");
        let (found, most) = (false_positives(&list, 400_000) as f64, 400_000.0 * promised);
        assert!((found - most).abs() < DEVIATIONS * most.sqrt(), "{found}, and {most} promised");
    }
}
