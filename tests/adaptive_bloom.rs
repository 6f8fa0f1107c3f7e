//! What is promised of adaptive Bloom filters and cascades at working sizes: space however long they run, the
//! sustained rate, and that no adversary does better than it. And the same for the whitelist filter within its bound.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use besom::bloom::{BlockedBloomFilter, BloomFilter};
use besom::cascade::{AdaptiveBloomFilter, Cascade, LevelFilter, Schedule};
use besom::game::{Adversary, DeletionTiming, LowerBoundRounds, Oracle, RepeatFalsePositives, Rules};
use besom::quotient::QuotientFilter;
use besom::whitelist::{WhitelistError, WhitelistFilter};
use besom::{
    Adaptation, Adaptive, AdaptiveError, Authority, BuildError, Digest, Filter, FilterStats, Insert,
    InvariantError, MemoryRemote, Remote, Settled, Xxh3,
};

/// A permutation of all numbers: distinct numbers are distinct keys.
fn key(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Four standard deviations above the expectation.
fn at_most(expected: f64) -> f64 {
    expected + 4.0 * expected.sqrt() + 4.0
}

/// A full filter asked about n/ε different absent keys, adapting to each false positive.
fn long_run<F: LevelFilter>(items: u64, rate: f64, check: impl Fn(&Cascade<F>)) -> Cascade<F> {
    let builder = Cascade::<F>::builder().capacity(items as usize).false_positive_rate(rate).seed(11_u64);
    let mut filter = builder.build().unwrap();
    let mut remote = MemoryRemote::new();
    for number in 0..items {
        filter.insert(&key(number), &mut remote).unwrap();
    }
    let (queries, mut hits) = ((items as f64 / rate) as u64, 0_u64);
    for number in items..items + queries {
        let stranger = key(number);
        if filter.contains(&stranger) {
            hits += 1;
            assert!(filter.adapt(&stranger, &mut remote).unwrap().is_fixed());
            assert!(!filter.contains(&stranger));
        }
        if number % (queries / 64) == 0 {
            check(&filter);
        }
    }
    assert!((0..items).all(|number| filter.contains(&key(number))), "a false negative");
    let allowed = at_most(queries as f64 * rate);
    assert!((hits as f64) < allowed, "{hits} false positives of {queries} queries, {allowed} allowed");
    filter.verify().unwrap();
    filter
}

#[test]
fn adaptive_bloom_filters_keep_within_their_space_for_any_number_of_queries() {
    for (items, rate) in [(1 << 16, 1.0 / 256.0), (50_000, 0.01), (40_000, 1.0 / 64.0), (50_000, 0.1)] {
        // And a bit a key for the sums of its lists, without which it would not notice that one lacks a key.
        let allowed = (1.0 + 8.0 * rate) * 1.45 * items as f64 * -f64::log2(rate) + items as f64;
        let within = |filter: &AdaptiveBloomFilter| {
            let bits = filter.stats().bits as f64;
            assert!(bits <= allowed, "{bits} bits for {items} keys at {rate}, {allowed} allowed");
        };
        let filter = long_run(items, rate, within);
        let stats = filter.stats();
        assert!(stats.rebuilds > 0 && stats.adaptations > 0);
        println!(
            "{items} keys at {rate}: {:.3} of {allowed:.0} bits, {stats:?}",
            stats.bits as f64 / allowed
        );
        for level in filter.levels() {
            println!("  {level:?}");
            assert!(level.keys <= level.capacity && level.dead_cells <= level.dead_capacity);
        }
    }
}

#[test]
fn cascades_of_other_filters_sustain_their_rate() {
    long_run::<QuotientFilter>(1 << 14, 1.0 / 128.0, |_| {});
    long_run::<BlockedBloomFilter>(1 << 14, 1.0 / 128.0, |_| {});
}

/// Plays the adversary against fresh filters. It may win as often as ε allows, and on the way find false positives
/// as often.
fn survives<F: Adaptive>(
    build: impl Fn(u64) -> F,
    adversary: impl Fn(u64) -> Box<dyn Adversary>,
    rules: Rules,
) {
    const GAMES: u64 = 400;
    let (mut wins, mut hits, mut queries) = (0, 0, 0);
    for seed in 0..GAMES {
        let mut oracle = Oracle::new(build(seed), MemoryRemote::new(), rules);
        let outcome = oracle.play(&mut *adversary(seed)).unwrap();
        assert_eq!(outcome.false_negatives, 0);
        wins += u64::from(outcome.won);
        hits += outcome.false_positives;
        queries += outcome.negative_lookups;
    }
    let allowed = at_most(GAMES as f64 * rules.rate);
    assert!((wins as f64) < allowed, "{wins} of {GAMES} games won, {allowed} allowed");
    let allowed = at_most(queries as f64 * rules.rate);
    assert!((hits as f64) < allowed, "{hits} of {queries} queries accepted, {allowed} allowed");
}

fn adversaries() -> [fn(u64) -> Box<dyn Adversary>; 3] {
    [
        |seed| Box::new(RepeatFalsePositives::new(seed, 3_000)),
        |seed| Box::new(LowerBoundRounds::new(seed, 2)),
        |seed| Box::new(DeletionTiming::new(seed, 100)),
    ]
}

fn cascade_survives<F: LevelFilter>(schedule: Schedule) {
    let rules = Rules { capacity: 200, rate: 1.0 / 16.0 };
    let build = |seed| {
        let builder = Cascade::<F>::builder().capacity(rules.capacity).false_positive_rate(rules.rate);
        builder.schedule(schedule).seed(seed).build().unwrap()
    };
    for adversary in adversaries() {
        survives(build, adversary, rules);
    }
}

#[test]
fn no_adversary_beats_the_adaptive_bloom_filter() {
    cascade_survives::<BloomFilter>(Schedule::Squaring);
}

#[test]
fn no_adversary_beats_the_cascade() {
    cascade_survives::<QuotientFilter>(Schedule::Squaring);
    cascade_survives::<QuotientFilter>(Schedule::LogStar);
}

/// A whitelist filter with somebody beside it who knows what is stored, as the game requires.
struct WithDictionary {
    filter: WhitelistFilter,
    stored: HashSet<Vec<u8>>,
}

impl Filter for WithDictionary {
    type Hasher = Xxh3;
    type Place = Digest;

    fn hasher(&self) -> &Xxh3 {
        self.filter.hasher()
    }

    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.filter.contains_digest(digest)
    }

    fn len(&self) -> usize {
        self.filter.len()
    }

    fn capacity(&self) -> usize {
        self.filter.capacity()
    }

    fn false_positive_rate(&self) -> f64 {
        self.filter.false_positive_rate()
    }

    fn stats(&self) -> FilterStats {
        self.filter.stats()
    }

    fn verify(&self) -> Result<(), InvariantError> {
        Ok(())
    }
}

type Answer<T, R> = Result<T, AdaptiveError<<R as Remote>::Error>>;

impl Adaptive for WithDictionary {
    fn insert_bytes<R: Remote>(&mut self, key: &[u8], _: &mut R) -> Answer<bool, R> {
        self.filter.insert(key)?;
        Ok(self.stored.insert(key.to_vec()))
    }

    fn remove_bytes<R: Remote>(&mut self, _: &[u8], _: &mut R) -> Answer<bool, R> {
        unreachable!("the adversaries that play here remove nothing")
    }

    fn adapt_bytes<R: Remote>(&mut self, key: &[u8], _: &mut R) -> Answer<Adaptation, R> {
        assert!(!self.stored.contains(key));
        Ok(self.filter.adapt(key).expect("within the bound"))
    }

    fn clear<R: Remote>(&mut self, _: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        unreachable!("nobody clears a model")
    }

    fn verify_remote<R: Remote>(&self, _: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        Ok(())
    }

    fn settle<R: Remote>(&mut self, _: RangeInclusive<u64>, _: Authority, _: &mut R) -> Answer<Settled, R> {
        Ok(Settled::Agreed)
    }

    fn emptied(&self) -> Result<Self, BuildError> {
        unreachable!("nobody empties a model")
    }
}

#[test]
fn no_adversary_beats_the_whitelist_filter_within_its_bound() {
    let rules = Rules { capacity: 200, rate: 1.0 / 16.0 };
    let build = |seed| {
        let builder = WhitelistFilter::builder().capacity(rules.capacity).false_positive_rate(rules.rate);
        let filter = builder.whitelist_bound(1_000).seed(seed).build().unwrap();
        WithDictionary { filter, stored: HashSet::new() }
    };
    for adversary in &adversaries()[..2] {
        survives(build, adversary, rules);
    }
}

#[test]
fn whitelist_filters_agree_with_a_set_and_stop_at_their_bound() {
    for seed in 0..30_u64 {
        let mut random = (0..).map(|number| key(seed << 32 | number));
        let mut below = |bound: u64| random.next().unwrap() % bound;
        let (capacity, bound) = (1 + below(100) as usize, below(40) as usize);
        let builder = WhitelistFilter::builder().capacity(capacity).false_positive_rate(0.25).seed(seed);
        let mut filter = builder.whitelist_bound(bound).build().unwrap();
        let (mut stored, mut listed, mut len) = (HashSet::new(), HashSet::new(), 0);
        for _ in 0..2_000 {
            let key = below(500);
            if below(4) == 0 {
                // A listed key is accepted underneath, so that it takes no room.
                let takes_room = !filter.contains(&key) && !listed.contains(&key);
                if filter.insert(&key).is_ok() {
                    stored.insert(key);
                    listed.remove(&key);
                    len += usize::from(takes_room);
                } else {
                    assert!(takes_room && len == capacity);
                }
            } else if !stored.contains(&key) {
                let accepted = filter.contains(&key);
                match filter.adapt(&key) {
                    Ok(adaptation) => {
                        assert_eq!(adaptation.is_fixed(), accepted);
                        assert!(!filter.contains(&key));
                        if accepted {
                            listed.insert(key);
                        }
                    }
                    Err(error) => {
                        assert_eq!(error.to_string(), WhitelistError::Full { len: bound, bound }.to_string());
                        assert!(accepted && listed.len() == bound);
                    }
                }
            }
            filter.verify().unwrap();
            assert_eq!((filter.len(), filter.whitelist_len()), (len, listed.len()));
            assert!(stored.iter().all(|key| filter.contains(key)), "a false negative");
            assert!(!listed.iter().any(|key| filter.contains(key)), "a repaired false positive came back");
        }
        let keys: Vec<u64> = (0..500).collect();
        let mut answers = Vec::new();
        filter.contains_many(&keys, &mut answers);
        assert_eq!(answers, keys.iter().map(|key| filter.contains(key)).collect::<Vec<_>>());
        filter.clear();
        assert_eq!((filter.len(), filter.whitelist_len()), (0, 0));
    }
}

#[test]
fn the_default_bound_of_the_whitelist_is_that_of_the_lemma() {
    let filter = WhitelistFilter::with_capacity(128_000).unwrap();
    assert_eq!(filter.whitelist_bound(), 7_000);
    assert_eq!(WhitelistFilter::with_capacity(0).unwrap_err(), BuildError::ZeroCapacity);
    let collected: WhitelistFilter = (0..128_000_u32).collect();
    assert_eq!((collected.whitelist_bound(), collected.capacity()), (7_000, 128_000));
    // Keys that the filter accepted by chance when they came are not counted: 1 of 256 near the end.
    assert!((127_500..128_000).contains(&collected.len()), "{}", collected.len());
}

#[test]
fn whitelist_filters_are_equal_sized_and_extended_as_promised() {
    fn sendable<T: Send + Sync + 'static>(_: &T) {}
    let builder = WhitelistFilter::builder().capacity(50).false_positive_rate(0.25).seed(3_u64);
    let bits = builder.size_in_bits().unwrap();
    let (mut left, mut right) = (builder.clone().build().unwrap(), builder.build().unwrap());
    sendable(&left);
    assert_eq!(left.stats().bits, bits);
    left.extend(0..100_u64);
    right.extend((0..100_u64).rev());
    assert!(left == right && left.len() > 50 && (0..100_u64).all(|key| left.contains(&key)));
    let stranger = (100..).find(|key: &u64| left.contains(key)).unwrap();
    assert!(left.adapt(&stranger).unwrap().is_fixed());
    assert!(left != right && left.stats().bits > bits);
    // An insertion takes the key from the list of those that are absent.
    assert!(!left.contains(&stranger));
    left.extend([stranger]);
    assert!(left.contains(&stranger) && left.whitelist_len() == 0);
}

#[test]
fn cascades_answer_batches_as_they_answer_single_keys() {
    let mut filter =
        AdaptiveBloomFilter::builder().capacity(3_000).false_positive_rate(0.1).seed(5_u64).build().unwrap();
    let mut remote = MemoryRemote::new();
    (0..3_000_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    for key in 3_000..4_000_u64 {
        filter.adapt(&key, &mut remote).unwrap();
    }
    let keys: Vec<u64> = (0..6_000).collect();
    let mut answers = Vec::new();
    filter.contains_many(&keys, &mut answers);
    assert_eq!(answers, keys.iter().map(|key| filter.contains(key)).collect::<Vec<_>>());
}
