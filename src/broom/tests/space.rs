//! Adaptivity bits over time (Lemma 14): O(n) with the frontier, and growing without it.
use super::super::builder::Blueprint;
use super::super::core::Core;
use super::super::on_bins::BroomBins;
use super::super::on_quotients::BroomQuotients;
use super::super::table::BroomTable;
use super::{bins, filter, small};
use crate::game::FreshKeys;
use crate::{Adaptive, Filter, MemoryRemote, Xxh3};

/// Asks for fresh keys until there were 20·n false positives, or as many queries as given. Adaptivity bits per key
/// after every n-th part, and the number of queries.
fn bits_over_time<G: BroomTable>(
    blueprint: Blueprint<G::Cut>,
    frontier: bool,
    queries: Option<u64>,
) -> (Vec<f64>, u64) {
    const N: usize = 1 << 12;
    let mut filter: Core<G, Xxh3> = filter(blueprint, N, 77);
    filter.local.switches.frontier = frontier;
    let mut remote = MemoryRemote::new();
    let mut keys = FreshKeys::new(7);
    keys.by_ref().take(N).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    let (mut asked, mut fixed, mut table) = (0, 0, Vec::new());
    for key in keys {
        asked += 1;
        if filter.contains(&key) {
            assert!(filter.adapt(&key, &mut remote).unwrap().is_fixed());
            fixed += 1;
        }
        let sample = match queries {
            None => filter.contains(&key) || fixed / N > table.len(),
            Some(queries) => asked % (queries / 20) == 0,
        };
        if sample {
            table.push(filter.stats().adaptivity_bits as f64 / N as f64);
        }
        if table.len() == 20 {
            break;
        }
    }
    filter.verify().unwrap();
    (table, asked)
}

#[test]
fn adaptivity_bits_stay_linear_over_20_n_false_positives() {
    stay_linear::<BroomQuotients>(small(4, 0.9));
    stay_linear::<BroomBins>(bins(4, 0.9));
}

fn stay_linear<G: BroomTable>(blueprint: Blueprint<G::Cut>) {
    let (on, queries) = bits_over_time::<G>(blueprint, true, None);
    let (off, _) = bits_over_time::<G>(blueprint, false, Some(queries));
    println!("adaptivity bits per key over {queries} fresh queries, 20 n false positives with the frontier");
    println!("{:>8} {:>12} {:>12}", "part", "frontier on", "frontier off");
    for (part, (on, off)) in on.iter().zip(&off).enumerate() {
        println!("{:>8} {on:>12.3} {off:>12.3}", part + 1);
    }
    // Bounded from the first phase on, and not growing: the second half is like the first.
    assert!(on.iter().all(|&bits| bits < 1.0), "{on:?}");
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    assert!(mean(&on[10..]) < 1.1 * mean(&on[2..10]), "{on:?}");
    assert!(off[19] > 3.0 && off[19] > off[9] + 0.5, "{off:?}");
}

/// The adaptivity bits per key that there are beyond the budget at most: half a bit by the repairs of one phase, and
/// what the carried keys need in order to be told apart, which is much with remainders of 4 bits.
const MARGIN: f64 = 0.85;

/// The most adaptivity bits per key while there are 20·n false positives. `replay` asks again about all former ones,
/// and `churn` replaces a key with each.
fn most_bits<G: BroomTable>(blueprint: Blueprint<G::Cut>, replay: bool, churn: bool) -> f64 {
    const N: usize = 1 << 11;
    let (mut filter, mut remote): (Core<G, Xxh3>, _) = (filter(blueprint, N, 78), MemoryRemote::new());
    let (mut keys, mut known) = (FreshKeys::new(8), Vec::new());
    let mut stored: Vec<[u8; 8]> = keys.by_ref().take(N).collect();
    stored.iter().for_each(|key| assert!(filter.insert(key, &mut remote).unwrap()));
    let (mut fixed, mut most, mut asked) = (0, 0.0_f64, 0);
    while fixed < 20 * N {
        asked += 1;
        let old = replay && asked % 2 == 0 && !known.is_empty();
        let key = if old { known[asked / 2 % known.len()] } else { keys.next().unwrap() };
        if !filter.contains(&key) {
            continue;
        }
        assert!(filter.adapt(&key, &mut remote).unwrap().is_fixed());
        fixed += 1;
        if !old {
            known.push(key);
        }
        if churn {
            let slot = keys.below(N);
            assert!(filter.remove(&stored[slot], &mut remote).unwrap());
            stored[slot] = keys.next().unwrap();
            assert!(filter.insert(&stored[slot], &mut remote).unwrap());
        }
        most = most.max(filter.stats().adaptivity_bits as f64 / N as f64);
    }
    filter.verify().unwrap();
    filter.verify_remote(&mut remote).unwrap();
    // The budget is kept by a running count: here all strings are walked.
    let local = &filter.local;
    let items = (0..local.quotients()).flat_map(|quotient| local.table.items_of(quotient));
    let walked = items.map(|(_, item)| item.tail.len() as usize).sum::<usize>();
    assert_eq!(filter.stats().adaptivity_bits, walked + local.table.ghost_counts()[1]);
    assert!(filter.levels().phase >= 3, "{:?}", filter.levels());
    most
}

#[test]
fn adaptivity_bits_never_exceed_the_budget_by_more_than_the_margin() {
    never_more::<BroomQuotients>(small(4, 0.9), &[0.0, 0.5, 1.0, 2.0]);
    never_more::<BroomBins>(bins(4, 0.9), &[0.0, 0.5]);
}

fn never_more<G: BroomTable>(blueprint: Blueprint<G::Cut>, budgets: &[f64]) {
    for &budget in budgets {
        for (replay, churn) in [(false, false), (true, false), (true, true)] {
            let most = most_bits::<G>(Blueprint { budget, ..blueprint }, replay, churn);
            println!("budget {budget}, replay {replay}, churn {churn}: at most {most:.3} bits per key");
            assert!(most <= budget + MARGIN, "{most} with a budget of {budget}");
        }
    }
}
