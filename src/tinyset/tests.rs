//! Catches: a key that gets lost, a neighbour that is changed, a block that overflows, versions of the
//! operations that disagree, rates that the analysis does not predict.

use super::geometry::{Geometry, Place};
use super::table::Table;
use super::*;
use crate::bits::{Isa, low_mask};
use crate::testing::Random;
use crate::{BuildError, SipHash};

/// One block after the paper's text: a list of items in the order of their chains, newest first in a chain.
#[derive(Default, Clone)]
struct Model {
    items: Vec<Item>,
    logical: usize,
}

#[derive(Clone, Copy)]
struct Item {
    chain: u32,
    remainder: u64,
    /// Whether the item's extra bit is what it was, and not lost in a move.
    extra_known: bool,
}

impl Model {
    /// The bits of the first `m` remainders and `m` itself.
    fn sizes(array_bits: u32, logical: usize) -> (u32, usize) {
        (array_bits / logical as u32, array_bits as usize % logical)
    }

    fn insert(&mut self, geometry: &Geometry, place: Place) -> bool {
        let before = self.logical;
        let logical = before.max(self.items.len() + 1);
        if logical > geometry.array_bits() as usize {
            return false;
        }
        let (size, extended) = Self::sizes(geometry.array_bits(), logical);
        if before > 0 && size < Self::sizes(geometry.array_bits(), before).0 {
            // What is an extra bit now was a bit that every item had.
            self.items.iter_mut().for_each(|item| item.extra_known = true);
        }
        let at = self.items.partition_point(|item| item.chain < place.chain);
        let item = Item { chain: place.chain, remainder: place.remainder, extra_known: true };
        self.items.insert(at, item);
        self.items.iter_mut().skip(extended).for_each(|item| item.extra_known = false);
        self.logical = logical;
        true
    }

    /// The items that match, with whether they do so by an extra bit of 1.
    fn matches<'a>(
        &'a self,
        geometry: &'a Geometry,
        place: Place,
    ) -> impl Iterator<Item = (usize, bool)> + 'a {
        let items = self.items.iter().enumerate().filter(move |(_, item)| item.chain == place.chain);
        items.filter_map(move |(number, item)| {
            let (size, extended) = Self::sizes(geometry.array_bits(), self.logical);
            let differ = item.remainder ^ place.remainder;
            let extra = number < extended && size <= 57;
            let stored = item.remainder >> (size - 1).min(63) & 1 == 1;
            let agrees = differ & low_mask(size - 1) == 0;
            let agrees_extra = match (extra, geometry.removal()) {
                (false, _) => true,
                (true, false) => differ & low_mask(size) == 0,
                (true, true) => !(item.extra_known && stored) || differ & low_mask(size) == 0,
            };
            (agrees && agrees_extra).then_some((number, extra && item.extra_known && stored))
        })
    }

    fn contains(&self, geometry: &Geometry, place: Place) -> bool {
        self.matches(geometry, place).next().is_some()
    }

    fn remove(&mut self, geometry: &Geometry, place: Place) -> bool {
        let specific = self.matches(geometry, place).find(|&(_, by_extra)| by_extra);
        let Some((number, _)) = specific.or_else(|| self.matches(geometry, place).next()) else {
            return false;
        };
        self.items.remove(number);
        if self.items.is_empty() {
            self.logical = 0;
        }
        true
    }
}

/// The table under test in all its versions, the model, and the exact multiset of what is stored.
struct Bench {
    tables: Vec<Table>,
    model: Vec<Model>,
    stored: Vec<Place>,
    geometry: Geometry,
    random: Random,
}

impl Bench {
    fn new(bits: u32, chains: u32, removal: bool, blocks: usize) -> Self {
        let geometry = Geometry::new(bits, chains, removal).unwrap();
        let table = Table::new(geometry, blocks).unwrap();
        let versions = Isa::available().into_iter().map(|isa| table.clone().with_isa(isa));
        let tables = versions.chain([table.clone().without_line()]).collect();
        let model = vec![Model::default(); blocks];
        let seed = u64::from(bits * 2 + chains + u32::from(removal));
        Self { tables, model, stored: Vec::new(), geometry, random: Random::new(seed) }
    }

    /// A place in `chains` chains of each block, so that chains grow long; half of the remainders are of few
    /// values, so that items collide.
    fn place(&mut self, chains: u32) -> Place {
        let mask = if self.random.one_in(2) { 0x0180_0000_0000_0307 } else { u64::MAX >> 7 };
        Place {
            block: self.random.below(self.model.len() as u64) as usize,
            chain: self.random.below(chains.into()) as u32 * self.geometry.chains / chains,
            remainder: self.random.next() & mask,
        }
    }

    /// Runs one operation on everything and compares what can be seen.
    fn step(&mut self, place: Place, run: impl Fn(&mut Table) -> bool, expected: bool) {
        let neighbours = |table: &Table| -> Vec<Vec<u64>> {
            let others = (0..table.blocks()).filter(|&block| block != place.block);
            others.map(|block| table.block_words(block)).collect()
        };
        for table in &mut self.tables {
            let before = (neighbours(table), table.block_words(place.block));
            assert_eq!(run(table), expected);
            assert_eq!(neighbours(table), before.0, "a neighbour of block {} changed", place.block);
            assert!(expected || table.block_words(place.block) == before.1, "refused, but changed");
            table.verify().unwrap();
        }
        let (first, others) = self.tables.split_first().unwrap();
        for other in others {
            assert_eq!(other.block_words(place.block), first.block_words(place.block), "versions differ");
        }
    }

    fn insert(&mut self, place: Place) -> bool {
        let fits = self.model[place.block].insert(&self.geometry, place);
        let insert = |table: &mut Table| {
            let fresh = !table.contains(place);
            table.insert(place).inspect(|&answer| assert_eq!(answer, fresh)).is_some()
        };
        self.step(place, insert, fits);
        if fits {
            self.stored.push(place);
        }
        fits
    }

    fn remove(&mut self, place: Place) {
        let there = self.model[place.block].remove(&self.geometry, place);
        self.step(place, |table| table.remove(place), there);
    }

    /// Nothing stored is missing; other places are answered as the model does.
    fn compare(&mut self, queries: usize) {
        let places: Vec<Place> = (0..queries).map(|_| self.place(self.geometry.chains)).collect();
        for table in &self.tables {
            assert!(self.stored.iter().all(|&place| table.contains(place)), "a stored item is missing");
            for &place in &places {
                let expected = self.model[place.block].contains(&self.geometry, place);
                assert_eq!(table.contains(place), expected, "{place:?}");
            }
            assert_eq!(table.len(), self.stored.len());
            assert_eq!(table.logical(), self.model.iter().map(|block| block.logical).sum::<usize>());
        }
    }
}

/// Lines, odd sizes that share words with their neighbours, indexes of one and of two words, tiny blocks.
const SHAPES: [(u32, u32); 13] = [
    (32, 4),
    (41, 8),
    (64, 8),
    (100, 16),
    (131, 16),
    (158, 16),
    (256, 32),
    (256, 72),
    (512, 64),
    (512, 80),
    (512, 128),
    (810, 64),
    (1037, 128),
];

#[test]
fn blocks_agree_with_the_model_up_to_their_last_bit_and_then_refuse() {
    for (bits, chains) in SHAPES {
        for removal in [false, true] {
            let mut bench = Bench::new(bits, chains, removal, 2);
            let mut refused = 0;
            while refused < 20 {
                let some = [1, 2, chains / 2, chains][bench.random.below(4) as usize];
                let place = bench.place(some);
                refused += u32::from(!bench.insert(place));
                if bench.stored.len() < 40 || bench.random.one_in(16) {
                    bench.compare(20);
                }
            }
            bench.compare(200);
            let full = bench.geometry.array_bits() as usize;
            assert!(bench.model.iter().any(|block| block.items.len() == full), "{bits} bits never full");
        }
    }
}

#[test]
fn insertions_and_removals_agree_with_the_model() {
    for (bits, chains) in SHAPES {
        let mut bench = Bench::new(bits, chains, true, 2);
        let most = [bits as usize / 20, bits as usize / 4, bits as usize * 3 / 2];
        for step in 0..3_000 {
            // The target moves, so that blocks run empty, grow, shrink and overflow.
            let target = most[step / 300 % 3] * (step % 300) / 300;
            if bench.stored.len() <= target || bench.stored.is_empty() {
                let some = [1, 3, chains][bench.random.below(3) as usize];
                let place = bench.place(some.min(chains));
                bench.insert(place);
            } else {
                let victim = bench.random.below(bench.stored.len() as u64) as usize;
                let place = bench.stored.swap_remove(victim);
                bench.remove(place);
            }
            if step % 8 == 0 {
                bench.compare(10);
            }
        }
        while let Some(place) = bench.stored.pop() {
            bench.remove(place);
        }
        bench.compare(50);
        assert!(bench.tables.iter().all(|table| table.len() == 0 && table.logical() == 0));
    }
}

#[test]
fn removing_what_was_never_inserted_takes_at_most_a_match() {
    let mut bench = Bench::new(256, 32, true, 3);
    for _ in 0..60 {
        let place = bench.place(32);
        bench.insert(place);
    }
    for _ in 0..2_000 {
        let place = bench.place(32);
        bench.remove(place);
    }
}

#[test]
fn batches_answer_as_single_queries() {
    for bits in [100, 256, 512] {
        let mut filter = TinySet::builder().capacity(500).block_bits(bits).seed(4_u64).build().unwrap();
        (0..500_u32).for_each(|key| {
            filter.insert(&key).unwrap();
        });
        let keys: Vec<u32> = (0..50_000).collect();
        let mut answers = Vec::new();
        filter.contains_many(&keys, &mut answers);
        assert!(keys.iter().zip(&answers).all(|(key, &answer)| filter.contains(key) == answer));
        assert!(answers[..500].iter().all(|&answer| answer));
    }
}

/// The share of 4 million other keys that a filter with its capacity of keys accepts.
fn measured_rate<H: KeyHasher>(filter: &mut TinySet<H>, queries: u64) -> f64 {
    let n = filter.capacity() as u64;
    (0..n).for_each(|key| {
        filter.insert(&key).unwrap();
    });
    filter.verify().unwrap();
    let accepted = (n..n + queries).filter(|key| filter.contains(key)).count();
    accepted as f64 / queries as f64
}

/// Fails if the measured rate is more than five standard deviations and one percent from the expected one.
fn assert_rate(measured: f64, expected: f64, queries: u64) {
    let deviation = (expected / queries as f64).sqrt();
    assert!(
        (measured - expected).abs() <= 5.0 * deviation + 0.01 * expected,
        "{measured} measured, {expected} expected"
    );
}

#[test]
fn the_measured_rate_is_the_expected_one() {
    const QUERIES: u64 = 2_000_000;
    for (bits, chains, items) in [(256, 32, 18.7), (512, 64, 39.9), (512, 80, 57.0), (810, 64, 64.0)] {
        for removal in [false, true] {
            let builder = TinySet::builder().capacity(200_000).block_bits(bits).chains(chains);
            let builder = builder.items_per_block(items).removal(removal).seed(5_u64);
            let mut filter = builder.build().unwrap();
            let expected = filter.expected_rate(200_000);
            assert_rate(measured_rate(&mut filter, QUERIES), expected, QUERIES);
        }
    }
}

#[test]
fn the_builder_meets_the_rate_with_few_bits() {
    const QUERIES: u64 = 2_000_000;
    for (rate, bits, most) in
        [(0.01, 512, 8.95), (0.001, 512, 12.85), (0.0001, 512, 17.25), (0.01, 256, 9.35), (0.001, 256, 13.75)]
    {
        let builder = TinySet::builder().capacity(300_000).false_positive_rate(rate).block_bits(bits);
        let mut filter = builder.seed(6_u64).build().unwrap();
        let measured = measured_rate(&mut filter, QUERIES);
        assert_rate(measured, rate, QUERIES);
        assert!(filter.stats().bits_per_key() <= most, "{} bits a key", filter.stats().bits_per_key());
    }
    let mut filter = TinySet::builder().hasher::<SipHash>().capacity(300_000).seed(6_u64).build().unwrap();
    assert_rate(measured_rate(&mut filter, QUERIES), 1.0 / 256.0, QUERIES);
}

#[test]
fn small_and_odd_capacities_work() {
    for capacity in (1..60).chain([99, 100, 101, 1_000]) {
        for rate in [0.5, 0.01, 1e-9] {
            let builder = TinySet::builder().capacity(capacity).false_positive_rate(rate).seed(7_u64);
            let mut filter = builder.build().unwrap();
            (0..capacity).for_each(|key| {
                filter.insert(&key).unwrap();
            });
            filter.verify().unwrap();
            assert!((0..capacity).all(|key| filter.contains(&key)));
            assert!(filter.expected_rate(capacity) <= rate);
        }
    }
}

#[test]
fn impossible_wishes_are_refused_with_what_is_possible() {
    let builder = || TinySet::builder().capacity(1_000);
    assert_eq!(TinySet::builder().build().unwrap_err(), BuildError::ZeroCapacity);
    for rate in [0.0, -1.0, 0.51, 1.0, f64::NAN, f64::INFINITY, 1e-16] {
        let error = builder().false_positive_rate(rate).build().unwrap_err();
        assert!(matches!(error, BuildError::RateOutOfRange { .. }), "{error}");
    }
    for bits in [0, 31, 4097, u32::MAX] {
        let error = builder().block_bits(bits).build().unwrap_err();
        assert!(matches!(error, BuildError::OutOfRange { name: "block_bits", .. }), "{error}");
    }
    for chains in [0, 257, 512, u32::MAX] {
        let error = builder().chains(chains).build().unwrap_err();
        assert!(matches!(error, BuildError::OutOfRange { name: "chains", .. }), "{error}");
    }
    for items in [0.0, -1.0, 512.0, f64::NAN] {
        let error = builder().items_per_block(items).build().unwrap_err();
        assert!(matches!(error, BuildError::OutOfRange { name: "items_per_block", .. }), "{error}");
    }
    let both = builder().items_per_block(3.0).false_positive_rate(0.1).build();
    assert!(matches!(both.unwrap_err(), BuildError::Conflict { .. }));
    let huge = TinySet::with_capacity(usize::MAX).unwrap_err();
    assert!(matches!(huge, BuildError::CapacityTooLarge { .. } | BuildError::OutOfMemory { .. }), "{huge}");
    let large = TinySet::with_capacity(1 << 44).unwrap_err();
    assert!(matches!(large, BuildError::OutOfMemory { .. }), "{large}");
}

#[test]
fn without_removal_nothing_is_removed() {
    let mut filter = TinySet::with_capacity(10).unwrap();
    filter.insert("key").unwrap();
    assert_eq!(filter.remove("key"), Err(RemovalDisabled));
    assert!(filter.contains("key"));
    filter.clear();
    assert!(!filter.contains("key") && filter.is_empty());
    filter.verify().unwrap();
}

#[test]
fn the_size_is_known_before_building() {
    for capacity in [1, 10, 333, 50_000] {
        for (rate, bits) in [(0.5, 512), (0.01, 256), (1e-6, 512), (0.01, 100), (0.01, 4096)] {
            for removal in [false, true] {
                let builder =
                    TinySet::builder().capacity(capacity).false_positive_rate(rate).block_bits(bits);
                let builder = builder.removal(removal);
                let told = builder.size_in_bits().unwrap();
                assert_eq!(builder.build().unwrap().stats().bits, told);
            }
        }
    }
    assert_eq!(TinySet::builder().size_in_bits(), Err(BuildError::ZeroCapacity));
}

#[test]
fn filters_go_to_other_threads() {
    fn sendable<T: Send + Sync + 'static>() {}
    sendable::<TinySet>();
    sendable::<TinySetBuilder<SipHash>>();
}

#[test]
fn insertion_says_whether_the_key_seemed_to_be_there() {
    let mut filter =
        TinySet::builder().capacity(2_000).false_positive_rate(0.05).seed(9_u64).build().unwrap();
    let mut seen = 0;
    for key in 0..4_000_u64 {
        let accepted = filter.contains(&key);
        assert_eq!(filter.insert(&key), Ok(!accepted));
        assert_eq!(filter.insert(&key), Ok(false));
        seen += u32::from(accepted);
    }
    assert!(seen > 20, "{seen} false positives");
}
