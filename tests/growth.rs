//! Growth by doubling, from 1,000 keys on: the rate at every size, what a doubling costs, and what becomes of repairs.
//!
//! A line has the number of keys, the rate, the bits per key, and what the next doubling costs: what is read of the remote, the
//! memory of both tables, and how many repairs returned. Ends at 256,000 keys; with `BESOM_FULL`, at 16,000,000. The figures are printed:
//! `BESOM_FULL=1 cargo test --release --test all growth:: -- --nocapture`.

use besom::quotient::QuotientFilter;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::testing::CountingRemote;
use besom::{
    Adaptive, BroomFilter, ExtensionFilter, Filter, Growable, Insert, MemoryRemote, Table, TelescopingFilter,
};

const FIRST: usize = 1_000;
const LOAD: f64 = 0.95;
/// What remainders of 8 bits give at this load, so that nothing is gained by rounding.
const RATE: f64 = LOAD / 256.0 * 1.000_1;

/// How often the filters double.
fn doublings() -> u32 {
    if std::env::var_os("BESOM_FULL").is_some() { 14 } else { 8 }
}

/// Keys that are never stored.
fn stranger(number: u64) -> u64 {
    number | 1 << 63
}

/// The rate must be within 5% of this one, as far as this many queries can tell.
fn check_rate(filter: &impl Filter, rate: f64, first: u64) -> f64 {
    const QUERIES: u64 = 2_000_000;
    let queries: Vec<u64> = (first..first + QUERIES).map(stranger).collect();
    let mut answers = Vec::new();
    filter.contains_many(&queries, &mut answers);
    let found = answers.iter().filter(|&&answer| answer).count() as f64;
    let expected = rate * QUERIES as f64;
    let allowed = 0.05 * expected + 3.0 * expected.sqrt();
    assert!((found - expected).abs() <= allowed, "{found} instead of {expected} at {} keys", filter.len());
    found / QUERIES as f64
}

fn check_stored(filter: &impl Filter, len: u64) {
    let (keys, mut answers): (Vec<u64>, _) = ((0..len).collect(), Vec::new());
    filter.contains_many(&keys, &mut answers);
    assert!(answers.iter().all(|&answer| answer), "a stored key was lost");
}

/// Repairs some false positives, of which there shall be one for every hundred keys.
fn repair<F: Adaptive>(filter: &mut F, remote: &mut CountingRemote<MemoryRemote>, repaired: &mut Vec<u64>) {
    let wanted = filter.len() / 100;
    let mut queries = (1 << 62..).map(stranger).filter(|query| filter.contains(query));
    let found: Vec<u64> = queries.by_ref().take(wanted).collect();
    for query in found {
        if filter.adapt(&query, remote).unwrap().is_fixed() {
            repaired.push(query);
        }
    }
}

/// `returning` is the share of repairs that may be lost by a doubling.
fn grows<F: Adaptive>(name: &str, rate: f64, returning: f64, mut filter: F) {
    let mut remote = CountingRemote::new(MemoryRemote::new());
    let (mut next, mut repaired) = (0_u64, Vec::new());
    for doubling in 0..=doublings() {
        let capacity = (FIRST << doubling) as u64;
        for key in next..capacity {
            assert!(filter.insert(&key, &mut remote).unwrap());
        }
        next = capacity;
        let rate = check_rate(&filter, rate, 1_000_000_000 * u64::from(doubling));
        check_stored(&filter, next);
        let figures = format!("{name:24} {next:9} {rate:.6} {:6.2}", filter.stats().bits_per_key());
        if doubling == doublings() {
            println!("{figures}");
            break;
        }
        repair(&mut filter, &mut remote, &mut repaired);
        repaired.retain(|query| !filter.contains(query));
        let before = filter.stats().bits;
        remote.take_accesses();
        assert!(filter.insert(&next, &mut remote).unwrap());
        next += 1;
        let (accesses, peak) = (remote.take_accesses(), before + filter.stats().bits);
        let returned = repaired.iter().filter(|query| filter.contains(*query)).count();
        println!(
            "{figures}; {} reads of {} pairs, {} changes; {:.2} MiB; {returned} of {}",
            accesses.reads,
            accesses.pairs,
            accesses.changes,
            peak as f64 / f64::from(8 << 20),
            repaired.len()
        );
        // One change is the new key's. Filters that move keys write all of them.
        if F::HASH_ADDRESSED {
            assert_eq!((accesses.writes, accesses.changes), (1, 1), "a doubling has written");
        }
        // The new key may be accepted in their place; beyond that, with probability ε, or never.
        let expected = returning * repaired.len() as f64;
        assert!(returned as f64 <= expected + 4.0 * expected.sqrt() + 2.0, "{returned} repairs returned");
    }
    filter.verify().unwrap();
    filter.verify_remote(&mut remote).unwrap();
}

macro_rules! growable {
    ($filter:ident $(, $call:ident($value:expr))?) => {
        $filter::builder()
            .capacity(FIRST)
            $(.$call($value))?
            .false_positive_rate(RATE)
            .max_load(LOAD)
            .seed(1_u64)
            .growable()
            .build()
            .unwrap()
    };
}

#[test]
fn telescoping_filters_grow() {
    grows("telescoping", RATE, RATE, growable!(TelescopingFilter));
}

#[test]
fn uncompressed_telescoping_filters_grow() {
    grows("telescoping-uncompressed", RATE, RATE, growable!(UncompressedTelescopingFilter));
}

#[test]
fn extension_filters_grow() {
    grows("extension-quotient", RATE, 0.0, growable!(ExtensionFilter, table(Table::Quotient)));
}

/// Bins have 49 slots with classes and tags of 14 bits together; so 1,000 keys need 22 of them.
#[test]
fn extension_filters_on_bins_grow() {
    // 22 bins of 50 classes, with tags of 8 bits.
    let rate = FIRST as f64 / (22.0 * 50.0 * 256.0);
    grows("extension-bins", rate, 0.0, growable!(ExtensionFilter, table(Table::Bins)));
}

#[test]
fn broom_filters_grow() {
    // Planned with room for crowding while the frontier walks: it takes one bit more than this rate needs.
    grows("broom", RATE / 2.0, RATE, growable!(BroomFilter));
}

#[test]
fn quotient_filters_grow() {
    let builder = QuotientFilter::builder().capacity(FIRST).growable_to(FIRST << doublings());
    let mut filter = builder.false_positive_rate(RATE).max_load(LOAD).seed(1_u64).build().unwrap();
    let mut next = 0_u64;
    for doubling in 0..=doublings() {
        for key in next..(FIRST << doubling) as u64 {
            filter.insert(&key).unwrap();
        }
        next = (FIRST << doubling) as u64;
        assert_eq!(filter.capacity() as u64, next);
        check_stored(&filter, next);
        // Remainders still have the bits of the doublings to come: the rate is lower until then.
        if doubling == doublings() {
            check_rate(&filter, RATE, 0);
        }
        let queries = 2_000_000;
        let found = (0..queries).filter(|&query| filter.contains(&stranger(query))).count();
        assert!(found as f64 <= 1.05 * RATE * queries as f64 + 3.0 * (RATE * queries as f64).sqrt());
        println!(
            "{:24} {next:9} {:.6} {:6.2}",
            "quotient",
            found as f64 / queries as f64,
            filter.stats().bits_per_key()
        );
    }
    filter.verify().unwrap();
}

/// What a doubling takes, beside a filter of the same size that is made from a scan:
/// `BESOM_FULL=1 cargo test --release --test all doublings_beside -- --nocapture --test-threads=1`.
#[test]
fn doublings_beside_scans() {
    macro_rules! beside {
        ($name:literal, $filter:ident $(, $call:ident($value:expr))?) => {
            let (mut filter, mut remote) = (growable!($filter $(, $call($value))?), MemoryRemote::new());
            let mut next = 0_u64;
            for doubling in 0..=doublings() {
                (next..(FIRST << doubling) as u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
                next = (FIRST << doubling) as u64;
                let (mut grown, mut scanned) = (f64::MAX, f64::MAX);
                for _ in 0..3 {
                    let mut copy = filter.clone();
                    let start = std::time::Instant::now();
                    copy.grow(&mut remote).unwrap();
                    grown = grown.min(start.elapsed().as_secs_f64());
                    let builder = $filter::builder()$(.$call($value))?.false_positive_rate(RATE).max_load(LOAD).seed(1_u64);
                    let start = std::time::Instant::now();
                    let built = builder.capacity(2 * next as usize).from_sorted(&mut remote).unwrap();
                    scanned = scanned.min(start.elapsed().as_secs_f64());
                    assert_eq!((built.len(), built.capacity()), (copy.len(), copy.capacity()));
                }
                println!(
                    "{:24} {next:9} keys: {:8.2} ms, from a scan {:8.2} ms, {:.2} times, {:.1} million keys a second",
                    $name,
                    1e3 * grown,
                    1e3 * scanned,
                    grown / scanned,
                    next as f64 / scanned / 1e6
                );
            }
        };
    }
    beside!("telescoping", TelescopingFilter);
    beside!("telescoping-uncompressed", UncompressedTelescopingFilter);
    beside!("extension-quotient", ExtensionFilter, table(Table::Quotient));
    beside!("extension-bins", ExtensionFilter, table(Table::Bins));
}
