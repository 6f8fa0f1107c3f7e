//! The attacks that broom filters fell to, at the default rate: what keys have in common under all functions, and what
//! queries that hit one key have in common. And one that they could fall to: queries of the crowded side of the
//! frontier.
//!
//! Catches: a trait of a key that outlives its functions, repairs that tell a stored key from one query only, places
//! that are fuller than others by more than rates are planned for.
//!
//! `BESOM_FULL=1 cargo test --release --lib broom::tests::attacks -- --nocapture` prints all sizes.
use crate::game::{Adversary, Gathering, Oracle, QueryMates, Rules, SideInference, Strikes};
use crate::{BroomFilter, Filter, MemoryRemote, Table};

const RATE: f64 = 1.0 / 256.0;

fn full() -> bool {
    std::env::var_os("BESOM_FULL").is_some()
}

/// A full-size filter, and what became of it.
fn play(table: Table, capacity: usize, budget: f64, seed: u64, adversary: &mut dyn Adversary) -> BroomFilter {
    let builder = BroomFilter::builder().capacity(capacity).false_positive_rate(RATE).table(table);
    let filter = builder.adaptivity_budget(budget).seed(seed).build().unwrap();
    let mut oracle = Oracle::new(filter, MemoryRemote::new(), Rules { capacity, rate: RATE });
    let outcome = oracle.play(adversary).unwrap();
    assert_eq!(outcome.false_negatives, 0);
    let (filter, mut remote) = oracle.into_parts();
    filter.verify().unwrap();
    crate::Adaptive::verify_remote(&filter, &mut remote).unwrap();
    println!("{outcome:?}, phase {}", filter.levels().phase);
    filter
}

/// The bounds of the 95% interval of a rate, in units of the promised one (Wilson).
fn interval(Strikes { asked, hits, .. }: Strikes) -> (f64, f64) {
    let (n, z2) = (asked.max(1) as f64, 1.96_f64 * 1.96);
    let p = hits as f64 / n;
    let (middle, half) = (p + z2 / (2.0 * n), 1.96 * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt());
    ((middle - half) / (1.0 + z2 / n) / RATE, (middle + half) / (1.0 + z2 / n) / RATE)
}

#[test]
fn gathering_finds_nothing_that_outlives_a_function() {
    let (capacity, lookups) = if full() { (10_000, 150_000_000) } else { (1_000, 12_000_000) };
    for table in [Table::Bins, Table::Quotient] {
        let mut adversary = Gathering::new(3, lookups, 10);
        let filter = play(table, capacity, 0.5, 5, &mut adversary);
        let strikes = adversary.strikes();
        let (low, high) = interval(strikes);
        println!(
            "{table:?}: {} collected, {strikes:?}: {:.2} ε ({low:.2} to {high:.2}), {:.2} bits a key",
            adversary.collected(),
            strikes.rate() / RATE,
            filter.stats().bits_per_key()
        );
        assert!(low <= 1.0, "{low:.2} ε");
        assert!(strikes.asked >= 100, "{strikes:?} show nothing");
    }
}

/// Mates of all games.
fn mates(table: Table, stored: usize, pool: usize, budget: f64, games: u64, reversed: bool) -> Strikes {
    let capacity = 10_000;
    // As many look-ups as it took without further bits, times the patience of the adversary.
    let patience = if full() { 30 } else { 3 };
    let lookups = (pool * capacity / stored) as f64 / RATE * 1.5;
    let mut all = Strikes::default();
    for seed in 0..games {
        let mut adversary = QueryMates::new(seed, stored, pool, lookups as u64 * patience);
        if reversed {
            adversary = adversary.reversed();
        }
        let filter = play(table, capacity, budget, seed + 1, &mut adversary);
        let strikes = adversary.strikes();
        all.asked += strikes.asked;
        all.hits += strikes.hits;
        let bits = filter.stats().adaptivity_bits as f64 / capacity as f64;
        println!("{strikes:?}, {bits:.3} adaptivity bits a key of capacity");
    }
    let (low, high) = interval(all);
    println!(
        "{table:?}, {stored} stored, {pool} gathered, budget {budget}, reversed {reversed}: {:.2} ε ({low:.2} to {high:.2}), {all:?}",
        all.rate() / RATE
    );
    all
}

#[test]
fn queries_that_hit_one_key_are_strangers_to_each_other() {
    for table in [Table::Bins, Table::Quotient] {
        for reversed in [false, true] {
            let (low, _) = interval(mates(table, 1_000, 1_000, 0.5, 2, reversed));
            assert!(low <= 1.0, "{low:.2} ε");
        }
    }
}

/// Few stored keys or many, and a budget under which phases are sixteen times as long.
#[test]
fn mates_are_strangers_at_all_sizes_and_budgets() {
    let cases: &[(usize, usize, f64)] = if full() {
        &[(100, 200, 0.5), (10_000, 1_000, 0.5), (100, 200, 8.0), (1_000, 1_000, 8.0), (10_000, 1_000, 8.0)]
    } else {
        &[(10_000, 1_000, 0.5), (10_000, 1_000, 8.0)]
    };
    for table in [Table::Bins, Table::Quotient] {
        for &(stored, pool, budget) in cases {
            let games = if full() { (4_000 / pool) as u64 } else { 1 };
            let (low, _) = interval(mates(table, stored, pool, budget, games, false));
            assert!(low <= if budget > 1.0 { 4.0 } else { 1.0 }, "{low:.2} ε");
        }
    }
}

#[test]
fn queries_of_crowded_places_are_no_false_positives_more_often_than_others() {
    let (capacity, rounds) = if full() { (10_000, 400) } else { (1_000, 40) };
    for table in [Table::Bins, Table::Quotient] {
        let mut adversary = SideInference::new(7, rounds, capacity / 5);
        let filter = play(table, capacity, 0.5, 9, &mut adversary);
        for (times, strikes) in [("once", adversary.once()), ("twice", adversary.twice())] {
            let (low, high) = interval(strikes);
            println!(
                "{table:?}, hit {times}: {strikes:?}: {:.3} ε ({low:.3} to {high:.3})",
                strikes.rate() / RATE
            );
            assert!(low <= 1.0, "{low:.2} ε");
        }
        let phases = filter.levels().phase;
        assert!(adversary.once().asked >= 8_000 && phases >= 20, "{phases} phases");
    }
}
