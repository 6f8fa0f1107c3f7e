//! The false-positive rate wherever the frontier is.
//!
//! Catches: keys that crowd ahead of the frontier or behind it, where queries then find more of them than ε allows.
use super::super::builder::Blueprint;
use super::super::core::Core;
use super::super::ground::Ground;
use super::super::on_bins::BinGround;
use super::super::on_quotients::QuotientGround;
use super::{bins, filter, small};
use crate::{Adaptive, Filter, MemoryRemote, Xxh3};

/// What the tests promise of filters with remainders, or tags, of 8 bits at load 0.9.
const QUOTIENT_RATE: f64 = 0.9 / 256.0;
const BIN_RATE: f64 = 0.9 * 49.0 / 64.0 / 256.0;

/// A filter that is filled with the frontier at this fraction of a phase, and then taken half a phase further.
fn filled<G: Ground>(
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
    holds_everywhere::<QuotientGround>(small(8, 0.9), QUOTIENT_RATE);
    holds_everywhere::<BinGround>(bins(8, 0.9), BIN_RATE);
}

fn holds_everywhere<G: Ground>(blueprint: Blueprint<G::Cut>, rate: f64) {
    let full = std::env::var_os("BESOM_FULL").is_some();
    let (keys, queries) = if full { (1_000_000, 20_000_000) } else { (50_000, 2_000_000) };
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
    holds_while_it_walks::<QuotientGround>(small(8, 0.9), QUOTIENT_RATE);
    holds_while_it_walks::<BinGround>(bins(8, 0.9), BIN_RATE);
}

fn holds_while_it_walks<G: Ground>(blueprint: Blueprint<G::Cut>, rate: f64) {
    let full = std::env::var_os("BESOM_FULL").is_some();
    let (keys, queries) = if full { (1_000_000, 20_000_000) } else { (50_000, 2_000_000) };
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
