//! What the papers prove and the documentation promises, measured.

use std::collections::HashMap;

use super::*;
use crate::extension::testing::extension_core;
use crate::telescoping::testing::telescoping_core;
use crate::testing::NullRemote;

#[test]
fn space_at_load_95_is_below_11_8_bits_a_key() {
    let of = || parameters(100_000, 8, 0.95, Overflow::Reset, 1);
    let mut telescoping = telescoping_core::<Xxh3>(of());
    let mut extension = extension_core::<Xxh3>(of());
    for number in 0..100_000_u64 {
        telescoping.insert(&number.to_le_bytes(), &mut NullRemote).unwrap();
        extension.insert(&number.to_le_bytes(), &mut NullRemote).unwrap();
    }
    for stats in [telescoping.stats(), extension.stats()] {
        assert!((stats.load - 0.95).abs() < 1e-4);
        assert!(stats.bits_per_key() < 11.8, "{}", stats.bits_per_key());
    }
}

#[test]
fn four_n_unique_queries_overflow_less_than_one_block_in_a_hundred() {
    // Theorem 4 with ε = 2^-8 and b = 4.
    let mut core = telescoping_core::<Xxh3>(parameters(60_000, 8, 0.95, Overflow::Spill, 1));
    let mut remote = MemoryRemote::new();
    let n = 60_000_u64;
    for number in 0..n {
        core.insert(&number.to_le_bytes(), &mut remote).unwrap();
    }
    for number in n..5 * n {
        core.adapt(&number.to_le_bytes(), &mut remote).unwrap();
    }
    let stats = core.stats();
    assert!(stats.adaptations > 600, "{stats:?}");
    assert!(stats.spills * 100 < core.table.blocks(), "{stats:?}");
    // Even 20n, where the paper sees its filter degrade, stay below one in a hundred.
    for number in 5 * n..21 * n {
        core.adapt(&number.to_le_bytes(), &mut remote).unwrap();
    }
    assert!(core.stats().spills * 100 < core.table.blocks(), "{:?}", core.stats());
}

/// The hashes of the stored keys whose slots accept a query.
fn accepting<F: Homed>(core: &F, query: u64, remote: &mut MemoryRemote) -> Vec<u64> {
    let digest = core.hasher().digest(&query.to_le_bytes());
    let home = core.homes().of(digest.hi);
    let stored = crate::homes::paired_in(core, home, remote).unwrap();
    let pairs = core.items(home).into_iter().zip(stored);
    pairs.filter(|&(item, _)| core.accepts(item, digest)).map(|(_, stored)| stored.lo).collect()
}

#[test]
fn a_repaired_query_returns_with_probability_epsilon_when_its_key_moves_again() {
    let mut core = telescoping_core::<Xxh3>(parameters(400, 4, 0.95, Overflow::Spill, 1));
    let mut remote = MemoryRemote::new();
    for number in 0..400_u64 {
        core.insert(&number.to_le_bytes(), &mut remote).unwrap();
    }
    let mut repaired: HashMap<u64, Vec<u64>> = HashMap::new();
    let (mut trials, mut returns) = (0_u32, 0_u32);
    for number in 1_000..120_000_u64 {
        let moving = accepting(&core, number, &mut remote);
        if moving.is_empty() {
            continue;
        }
        assert!(core.adapt(&number.to_le_bytes(), &mut remote).unwrap().is_fixed());
        for key in moving {
            let queries = repaired.entry(key).or_default();
            for &query in queries.iter().rev().take(20) {
                let back = accepting(&core, query, &mut remote).contains(&key);
                trials += 1;
                returns += u32::from(back);
            }
            queries.push(number);
        }
    }
    // ε = 1/16, within four standard deviations.
    let (expected, trials) = (f64::from(trials) / 16.0, f64::from(trials));
    let deviation = (trials / 16.0 * (15.0 / 16.0)).sqrt();
    assert!(trials > 10_000.0);
    assert!((f64::from(returns) - expected).abs() < 4.0 * deviation, "{returns} returns in {trials} moves");
}

/// Zipf(1.0) over 1..=universe, by inverting the cumulated weights.
struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    fn new(universe: usize) -> Self {
        let mut sum = 0.0;
        let weights = (1..=universe).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self { cumulated: weights.collect() }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let total = self.cumulated.last().copied().unwrap_or(1.0);
        let point = random.next() as f64 / 2_f64.powi(64) * total;
        self.cumulated.partition_point(|&sum| sum < point) as u64
    }
}

fn false_positives<F: Tested<Hasher = Xxh3>>(mut core: F, adapt: bool) -> f64 {
    let (n, queries) = (core.capacity() as u64, 10 * core.capacity());
    let mut remote = MemoryRemote::new();
    for number in 0..n {
        core.insert(&number.to_le_bytes(), &mut remote).unwrap();
    }
    let (zipf, mut random) = (Zipf::new(10 * n as usize), Random::new(71));
    let mut count = 0;
    for _ in 0..queries {
        let stranger = (n + zipf.draw(&mut random)).to_le_bytes();
        if core.contains(&stranger) {
            count += 1;
            if adapt {
                core.adapt(&stranger, &mut remote).unwrap();
            }
        }
    }
    f64::from(count) / queries as f64
}

#[test]
fn adapting_leaves_few_more_false_positives_than_first_ones() {
    // About one query in five is a first one. At 2^20 slots the benchmark shows the figures of the issue.
    let of = || parameters(59_000, 8, 0.9, Overflow::Spill, 1);
    let (telescoping, extension) =
        (false_positives(telescoping_core(of()), true), false_positives(extension_core(of()), true));
    assert!(telescoping < 0.0009 && extension < 0.0009, "{telescoping} {extension}");
    let bins = false_positives(extension_bins(of()), true);
    assert!(bins < 0.0009, "{bins}");
    assert!(false_positives(telescoping_core(of()), false) > 2.0 * telescoping);
}
