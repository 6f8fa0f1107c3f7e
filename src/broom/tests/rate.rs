//! The false-positive rate wherever the frontier is.
//!
//! Catches: keys that crowd ahead of the frontier or behind it, where queries then find more of them than ε allows.
use super::super::builder::Blueprint;
use super::super::columns::CROWDING;
use super::super::core::Core;
use super::super::filter::On;
use super::super::on_bins::BroomBins;
use super::super::on_quotients::BroomQuotients;
use super::super::table::BroomTable;
use super::{bins, filter, small};
use crate::{Adaptive, BroomFilter, Filter, MemoryRemote, Xxh3};

/// What the tests promise of filters with remainders, or tags, of 8 bits at load 0.9.
const QUOTIENT_RATE: f64 = 0.9 / 256.0;
const BIN_RATE: f64 = 0.9 / 256.0;

/// A filter that is filled with the frontier at this fraction of a phase, and then taken half a phase further.
fn filled<G: BroomTable>(
    blueprint: Blueprint<G::Cut>,
    keys: usize,
    fraction: f64,
    seed: u64,
) -> (Core<G, Xxh3>, MemoryRemote) {
    let (mut filter, mut remote) = (filter::<G>(blueprint, keys, seed), MemoryRemote::new());
    let walk = filter.local.functions.walk();
    filter.local.functions.set_position((0, (walk as f64 * fraction) as u64));
    // Collisions of insertions shall not move it.
    filter.local.switches.frontier = false;
    (0..keys as u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    filter.local.switches.frontier = true;
    (filter, remote)
}

/// False positives among fresh queries, over what the promised rate allows; and how far the 99% interval goes down.
fn over_promise(filter: &impl Filter, rate: f64, queries: u64) -> (f64, f64) {
    let (mut found, mut answers) = (0, Vec::new());
    let first = 1_u64 << 40;
    for start in (first..first + queries).step_by(10_000) {
        let keys: Vec<u64> = (start..start + 10_000).collect();
        filter.contains_many(&keys, &mut answers);
        found += answers.iter().filter(|&&answer| answer).count();
    }
    let promised = rate * queries as f64;
    (found as f64 / promised, 2.576 * (found as f64).sqrt() / promised)
}

#[test]
fn the_promised_rate_holds_at_every_place_of_the_frontier() {
    holds_everywhere::<BroomQuotients>(small(8, 0.9), QUOTIENT_RATE);
    holds_everywhere::<BroomBins>(bins(8, 0.9), BIN_RATE);
}

fn holds_everywhere<G: BroomTable>(blueprint: Blueprint<G::Cut>, rate: f64) {
    let (keys, queries) = if full() { (1_000_000, 20_000_000) } else { (50_000, 2_000_000) };
    for fraction in [0.0, 0.25, 0.5, 0.75] {
        let (filter, _) = filled::<G>(blueprint, keys, fraction, 11);
        let (ratio, interval) = over_promise(&filter, rate, queries);
        println!("frontier at {fraction}: {ratio:.4} ± {interval:.4} of the promised rate");
        assert!(ratio - interval <= 1.0, "{ratio} ± {interval} at {fraction}");
        filter.verify().unwrap();
    }
}

#[test]
fn the_promised_rate_holds_while_the_frontier_walks() {
    holds_while_it_walks::<BroomQuotients>(small(8, 0.9), QUOTIENT_RATE);
    holds_while_it_walks::<BroomBins>(bins(8, 0.9), BIN_RATE);
}

fn holds_while_it_walks<G: BroomTable>(blueprint: Blueprint<G::Cut>, rate: f64) {
    let (keys, queries) = if full() { (1_000_000, 20_000_000) } else { (50_000, 2_000_000) };
    let (mut filter, mut remote) = filled::<G>(blueprint, keys, 0.0, 12);
    for fraction in [0.25, 0.5, 0.75] {
        let (phase, walk) = (filter.local.functions.position().0, filter.local.functions.walk() as f64);
        while filter.local.functions.position() < (phase, (walk * fraction) as u64) {
            filter.push_frontier(&mut remote);
        }
        let (ratio, interval) = over_promise(&filter, rate, queries);
        println!("frontier walked to {fraction}: {ratio:.4} ± {interval:.4} of the promised rate");
        assert!(ratio - interval <= 1.0, "{ratio} ± {interval} at {fraction}");
    }
    filter.verify().unwrap();
    filter.verify_remote(&mut remote).unwrap();
}

/// A filter as the builder makes it, with its frontier at this fraction of a phase, then filled.
fn built(
    table: crate::Table,
    rate: f64,
    load: f64,
    keys: usize,
    fraction: f64,
    seed: u64,
) -> Option<BroomFilter> {
    fn place<G: BroomTable>(core: &mut Core<G, Xxh3>, fraction: f64) {
        let walk = core.local.functions.walk() as f64;
        core.local.functions.set_position((0, (walk * fraction) as u64));
        core.local.switches.frontier = false;
    }
    let builder = BroomFilter::builder().capacity(keys).false_positive_rate(rate).max_load(load);
    let mut filter = builder.table(table).seed(seed).build().ok()?;
    match &mut filter.on {
        On::Quotient(core) => place(core, fraction),
        On::Bins(core) => place(core, fraction),
    }
    let mut remote = MemoryRemote::new();
    (0..keys as u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    Some(filter)
}

/// False positives of several filters over what the rate allows, with the 99.9% interval: there are many of them.
fn over_rate(table: crate::Table, rate: f64, load: f64, keys: usize, fraction: f64) -> Option<(f64, f64)> {
    // Of five million queries, 76 are false positives at the lowest rate.
    let (filters, wanted) = ((3_000 / keys).clamp(1, 100), if full() { 3_000.0 } else { 1_500.0 });
    let queries = ((wanted / rate).min(5e6) / filters as f64).max(2_000.0) as u64;
    let mut found = 0.0;
    for seed in 0..filters as u64 {
        let filter = built(table, rate, load, keys, fraction, seed)?;
        found += over_promise(&filter, rate, queries.next_multiple_of(10_000)).0 / filters as f64;
    }
    let promised = rate * queries.next_multiple_of(10_000) as f64 * filters as f64;
    Some((found, 3.29 * (found / promised).sqrt()))
}

fn full() -> bool {
    std::env::var_os("BESOM_FULL").is_some()
}

/// Tight rates: those that a remainder of so many bits just meets.
fn tight(bits: i32, load: f64) -> f64 {
    load * CROWDING * 0.5_f64.powi(bits) * (1.0 + 1e-9)
}

#[test]
fn what_the_builder_promises_holds_at_all_sizes_rates_loads_and_places_of_the_frontier() {
    let (sizes, rates, loads, eighths): (&[usize], &[i32], &[f64], &[u32]) = if full() {
        let sizes = &[10, 20, 50, 100, 1_000, 20_000, 1_000_000];
        (sizes, &[2, 3, 4, 6, 8, 10, 12, 16], &[0.5, 0.8, 0.9, 0.95, 0.99], &[0, 1, 2, 3, 4, 5, 6, 7])
    } else {
        (&[10, 50, 1_000], &[3, 8], &[0.9], &[0, 1, 5, 6])
    };
    for table in [crate::Table::Quotient, crate::Table::Bins] {
        for &keys in sizes {
            // A large filter takes seconds to fill and to bring to its place: each second load, rate and place.
            let step = if keys >= 1_000_000 { 2 } else { 1 };
            for &load in loads.iter().step_by(step) {
                let mut all = Vec::new();
                for &bits in rates.iter().step_by(step) {
                    let rates = [0.5_f64.powi(bits), tight(bits, load)];
                    for (rate, eighth) in
                        rates.iter().flat_map(|rate| eighths.iter().step_by(step).map(move |at| (*rate, *at)))
                    {
                        let over = over_rate(table, rate, load, keys, f64::from(eighth) / 8.0);
                        let Some((ratio, interval)) = over else { continue };
                        assert!(
                            ratio - interval <= 1.0,
                            "{table:?}, {keys} keys, rate {rate:e}, load {load}, frontier at {eighth}/8: {ratio} ± {interval}"
                        );
                        all.push(ratio);
                    }
                }
                let most = all.iter().copied().fold(0.0, f64::max);
                let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
                println!(
                    "{table:?}, {keys} keys, load {load}: {mean:.3} of the promise, {most:.3} at most, {} rates and places",
                    all.len()
                );
            }
        }
    }
}
