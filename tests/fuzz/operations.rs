//! Catches: a sequence of operations, with failures of the remote in between, after which a key is lost, an invariant is broken,
//! or there is no way back. Every family, with random parameters, on tables of a few slots.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use besom::bloom::{BlockedBloomFilter, BloomFilter};
use besom::cascade::{AdaptiveBloomFilter, Cascade};
use besom::cuckoo::{CuckooFilter, CuckooingFilter, CyclicFilter, RemoteCuckooFilter, SwappingFilter};
use besom::quotient::QuotientFilter;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::testing::{Fault, Faults, Faulty, Random, fuzz};
use besom::tinyset::TinySet;
use besom::{
    Adaptive, AdaptiveError, Authority, BroomFilter, ExtensionFilter, Insert, MemoryRemote, Overflow, Remove,
    Seed, Settled, Table, TelescopingFilter,
};

/// What a filter is built for.
struct Shape {
    capacity: usize,
    rate: f64,
    seed: Seed,
    overflow: Overflow,
    growable: bool,
}

impl Shape {
    fn draw(random: &mut Random) -> Self {
        Self {
            capacity: 1 + random.below(120) as usize,
            rate: [0.4, 0.1, 0.01, 1.0 / 256.0, 1e-4][random.below(5) as usize],
            seed: Seed::from(random.next()),
            overflow: if random.one_in(2) { Overflow::Reset } else { Overflow::Spill },
            growable: random.one_in(2),
        }
    }
}

/// An adaptive filter, its remote, and what must be in it.
struct Adapting<F> {
    filter: F,
    remote: Faulty<MemoryRemote>,
    stored: BTreeSet<u64>,
}

impl<F: Adaptive> Adapting<F> {
    fn play(filter: F, random: &mut Random) {
        let faults = Faults::random(random.next(), 0, &Fault::HONEST);
        let remote = Faulty::new(MemoryRemote::new(), faults);
        let (keys, one_in) = (1 + random.below(300), [0, 10, 100][random.below(3) as usize]);
        let mut play = Self { filter, remote, stored: BTreeSet::new() };
        for _ in 0..random.below(300) {
            play.remote.faults.set_one_in(one_in);
            let (action, key) = (random.below(16), random.below(keys));
            let done = catch_unwind(AssertUnwindSafe(|| play.act(action, key)));
            play.remote.faults.set_one_in(0);
            if !matches!(done, Ok(true)) {
                play.recover();
            }
            let lost: Vec<&u64> = play.stored.iter().filter(|key| !play.filter.contains(*key)).collect();
            assert!(lost.is_empty(), "lost {lost:?}");
        }
        play.recover();
        play.filter.verify().unwrap();
        assert_eq!(play.filter.len(), play.stored.len());
    }

    /// Does something. `false` if the remote failed.
    fn act(&mut self, action: u64, key: u64) -> bool {
        let Self { filter, remote, stored } = self;
        match action {
            0..7 => match filter.insert(&key, remote) {
                Ok(new) => assert_eq!(new, stored.insert(key)),
                Err(error) => return matches!(error, AdaptiveError::Full(_)),
            },
            7..10 => match filter.remove(&key, remote) {
                Ok(removed) => assert_eq!(removed, stored.remove(&key)),
                Err(_) => return false,
            },
            10..15 => match filter.adapt(&key, remote) {
                Ok(adaptation) => assert!(!adaptation.is_fixed() || !filter.contains(&key)),
                Err(_) => return false,
            },
            _ if key.is_multiple_of(16) => match filter.clear(remote) {
                Ok(()) => stored.clear(),
                Err(_) => return false,
            },
            _ => {}
        }
        true
    }

    /// Brings filter and remote back into step. What the remote then has of an operation that failed is what happened.
    fn recover(&mut self) {
        let Self { filter, remote, stored } = self;
        let settled = filter.settle(0..=u64::MAX, Authority::Authoritative, remote);
        // A rehash that failed may have left pairs behind that nobody reads.
        if settled == Ok(Settled::Agreed)
            && filter.verify_remote(remote).is_ok()
            && filter.len() == remote.inner.len()
        {
            let key = |key: &[u8]| u64::from_le_bytes(key.try_into().unwrap());
            *stored = remote.inner.iter().map(|(_, bytes)| key(bytes)).collect();
            return;
        }
        let scan = |visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>| {
            let _ = stored.iter().try_for_each(|key| visit(&key.to_le_bytes()));
            Ok::<(), std::convert::Infallible>(())
        };
        filter.rebuild(scan, remote).unwrap();
        filter.verify_remote(remote).unwrap();
    }
}

macro_rules! fuzz_adaptive {
    ($($test:ident: $filter:ty $(, $call:ident)*;)*) => {$(
        #[test]
        fn $test() {
            crate::quiet_about_made_panics();
            fuzz(stringify!($filter), 150, |random| {
                let shape = Shape::draw(random);
                let builder = <$filter>::builder().capacity(shape.capacity).false_positive_rate(shape.rate).seed(shape.seed);
                $(let builder = fuzz_adaptive!(@ $call, builder, shape);)*
                // Not every filter has every rate.
                if let Ok(filter) = builder.build() {
                    Adapting::play(filter, random);
                }
            });
        }
    )*};
    (@ bins, $builder:ident, $shape:ident) => { $builder.table(Table::Bins) };
    (@ overflow, $builder:ident, $shape:ident) => { $builder.overflow($shape.overflow) };
    (@ bins, $builder:ident, $shape:ident) => { $builder.table(Table::Bins) };
    (@ growable, $builder:ident, $shape:ident) => { if $shape.growable { $builder.growable() } else { $builder } };
}

fuzz_adaptive! {
    fuzz_telescoping: TelescopingFilter, overflow, growable;
    fuzz_telescoping_uncompressed: UncompressedTelescopingFilter, growable;
    fuzz_extension: ExtensionFilter, overflow, growable;
    fuzz_extension_bins: ExtensionFilter, bins, growable;
    fuzz_broom: BroomFilter, growable;
    fuzz_broom_bins: BroomFilter, growable, bins;
    fuzz_cuckoo_remote: RemoteCuckooFilter;
    fuzz_cuckooing: CuckooingFilter;
    fuzz_cyclic: CyclicFilter<2>;
    fuzz_swapping: SwappingFilter;
    fuzz_adaptive_bloom: AdaptiveBloomFilter;
    fuzz_cascade: Cascade<QuotientFilter>;
}

/// A filter without a remote: insertion alone, one by one and many at once.
fn insert_all<F: Insert>(mut filter: F, random: &mut Random) {
    let mut stored = Vec::new();
    for _ in 0..random.below(30) {
        let keys: Vec<u64> = (0..random.below(40)).map(|_| random.below(1_000)).collect();
        if random.one_in(8) {
            filter.clear();
            stored.clear();
        }
        match filter.insert_many(&keys) {
            Ok(fresh) => {
                assert!(fresh <= keys.len());
                stored.extend(keys);
            }
            Err(error) => stored.extend(&keys[..error.inserted]),
        }
        filter.verify().unwrap();
        assert!(stored.iter().all(|key| filter.contains(key)));
    }
}

/// The same with removal of what was inserted.
fn insert_and_remove<F: Remove>(mut filter: F, random: &mut Random) {
    let mut stored: Vec<u64> = Vec::new();
    for _ in 0..random.below(400) {
        let key = random.below(500);
        if random.one_in(3) && !stored.is_empty() {
            let key = stored.swap_remove(random.below(stored.len() as u64) as usize);
            assert!(filter.remove(&key).unwrap(), "a key was lost");
        } else if filter.insert(&key).is_ok() {
            stored.push(key);
        }
        assert!(stored.iter().all(|key| filter.contains(key)));
    }
    filter.verify().unwrap();
    assert_eq!(filter.len(), stored.len());
}

#[test]
fn fuzz_plain_filters() {
    fuzz("plain filters", 300, |random| {
        let Shape { capacity, rate, seed, .. } = Shape::draw(random);
        let bloom = BloomFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed).build();
        let blocked =
            BlockedBloomFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed).build();
        let quotient =
            QuotientFilter::builder().capacity(capacity).growable_to(4 * capacity).false_positive_rate(rate);
        let cuckoo = CuckooFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed).build();
        let tiny = TinySet::builder().capacity(capacity).removal(true).seed(seed).build();
        bloom.into_iter().for_each(|filter| insert_all(filter, random));
        blocked.into_iter().for_each(|filter| insert_all(filter, random));
        cuckoo.into_iter().for_each(|filter| insert_and_remove(filter, random));
        tiny.into_iter().for_each(|filter| insert_and_remove(filter, random));
        if let Ok(filter) = quotient.seed(seed).build() {
            insert_all(filter.clone(), random);
            insert_and_remove(filter, random);
        }
    });
}
