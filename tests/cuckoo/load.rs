//! Catches: a filter that is full before it is full, or that rebuilds all the time on the way there.

use std::time::Instant;

use besom::cuckoo::CuckooFilter;
use besom::cuckoo::{AdaptiveCuckooFilter, AdaptiveVariant, Cuckooing, Cyclic, Inert, Swapping};
use besom::{Filter, Insert};

use super::{Stored, is_full};

fn sizes() -> Vec<usize> {
    let mut sizes = vec![1_000, 1_001, 4_999, 30_000, 200_000];
    if is_full() {
        sizes.extend([1_000_000, 10_000_000]);
    }
    sizes
}

/// Fills a filter with exactly the keys it was built for, and says how often it was rebuilt.
fn fill<V: AdaptiveVariant>(name: &str, tables: usize, slots_per_bin: usize) {
    for keys in sizes() {
        let builder = AdaptiveCuckooFilter::<V>::builder().shape(tables, slots_per_bin);
        let start = Instant::now();
        let Stored { filter, remote } = Stored::new(builder.capacity(keys).seed(keys as u64), 0..keys as u64);
        let stats = filter.stats();
        let seconds = start.elapsed().as_secs_f64();
        println!("{name}: {keys} keys, load {:.4}, {} rebuilds, {seconds:.2} s", stats.load, stats.rebuilds);
        // The number of slots is rounded up to whole rows of bins.
        let row = (tables * slots_per_bin) as f64;
        assert!(stats.load >= keys as f64 / (keys as f64 / 0.95 + row), "load {}", stats.load);
        assert_eq!((stats.items, remote.len()), (keys, keys));
        assert!(stats.rebuilds <= 2, "{} rebuilds of {name} with {keys} keys", stats.rebuilds);
        filter.verify().unwrap();
        assert!((0..keys as u64).all(|key| filter.contains(&key)));
    }
}

#[test]
fn two_by_four_reaches_its_load() {
    fill::<Inert>("cuckoo-remote 2x4", 2, 4);
}

#[test]
fn four_by_one_reaches_its_load() {
    fill::<Inert>("cuckoo-remote 4x1", 4, 1);
}

#[test]
fn cuckooing_reaches_its_load() {
    fill::<Cuckooing>("cuckooing", 4, 1);
}

#[test]
fn cyclic_reaches_its_load() {
    fill::<Cyclic<1>>("cyclic-1", 4, 1);
    fill::<Cyclic<2>>("cyclic-2", 4, 1);
    fill::<Cyclic<3>>("cyclic-3", 4, 1);
}

#[test]
fn swapping_reaches_its_load() {
    fill::<Swapping>("swapping", 2, 4);
}

#[test]
fn partial_keys_reach_their_load_without_a_rebuild() {
    for keys in sizes() {
        // At the shortest fingerprints that the builder grants, too: they leave the fewest bins to choose from.
        for (slot_bits, seeds) in [(None, 0..3), (Some(()), 0..3)] {
            for seed in seeds {
                let builder = || CuckooFilter::builder().capacity(keys).seed(keys as u64 + seed);
                let mut filter = match slot_bits {
                    None => builder().build(),
                    Some(()) => (2..)
                        .find_map(|bits| builder().slot_bits(bits).build().ok())
                        .ok_or_else(|| unreachable!()),
                }
                .unwrap();
                for key in 0..keys as u64 {
                    filter.insert(&key).unwrap();
                }
                filter.verify().unwrap();
                assert!((0..keys as u64).all(|key| filter.contains(&key)));
                println!("cuckoo, {} bits: {keys} keys, load {:.4}", filter.slot_bits(), filter.stats().load);
            }
        }
    }
}

#[test]
fn other_shapes_reach_their_load() {
    for (tables, slots_per_bin) in [(2, 1), (2, 2), (2, 3), (2, 8), (3, 1), (3, 2), (5, 1), (8, 8)] {
        for keys in [1_000_u64, 20_000] {
            let builder = AdaptiveCuckooFilter::<Inert>::builder().shape(tables, slots_per_bin);
            let Stored { filter, .. } = Stored::new(builder.capacity(keys as usize).seed(1_u64), 0..keys);
            let stats = filter.stats();
            println!(
                "{tables}x{slots_per_bin}: {keys} keys, load {:.4}, {} rebuilds",
                stats.load, stats.rebuilds
            );
            assert!(stats.load >= 0.47);
            // Two tables of single slots are filled up to the very load at which one try in five or so fails.
            assert!(stats.rebuilds <= if (tables, slots_per_bin) == (2, 1) { 40 } else { 2 });
        }
    }
}
