//! Adaptivity bits over time (Lemma 14): O(n) with the frontier, and growing without it.
use super::{filter, small};
use crate::game::FreshKeys;
use crate::{Adaptive, Filter, MemoryRemote};

/// Asks for fresh keys until there were 20·n false positives, or as many queries as given. Adaptivity bits per key
/// after every n-th part, and the number of queries.
fn bits_over_time(frontier: bool, queries: Option<u64>) -> (Vec<f64>, u64) {
    const N: usize = 1 << 12;
    let mut filter = filter(small(4, 0.9), N, 77);
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
    let (on, queries) = bits_over_time(true, None);
    let (off, _) = bits_over_time(false, Some(queries));
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
