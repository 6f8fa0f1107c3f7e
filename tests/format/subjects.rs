//! Every kind of filter in many states, with the keys that it must know.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use besom::bloom::{BlockedBloomFilter, BloomFilter};
use besom::cascade::Cascade;
use besom::cuckoo::CuckooFilter;
use besom::cuckoo::{self, AdaptiveCuckooFilter};
use besom::exact::ExactList;
use besom::format::Persist;
use besom::quotient::QuotientFilter;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::tinyset::TinySet;
use besom::whitelist::WhitelistFilter;
use besom::{
    Adaptive, BinFilter, BroomFilter, ExtensionFilter, Filter, Growable, Insert, KeyHasher, MemoryRemote,
    Overflow, Remove, Sharded, Table, TelescopingFilter,
};

/// A filter, and the keys that it must know.
pub(crate) struct State<F> {
    pub(crate) filter: F,
    pub(crate) keys: Vec<u64>,
}

/// One kind of filter.
pub(crate) trait Subject {
    type Filter: Persist + Clone + Send + Sync;

    /// What its fixtures are called, if not by their kind.
    const NAME: Option<&str> = None;

    /// Filters of this capacity in every state that their operations lead to; the last one has much in it.
    fn states(capacity: usize, seed: u64) -> Vec<State<Self::Filter>>;

    /// Changes the filter in a way that shows; `None` if it cannot be changed without more.
    fn change(filter: &mut Self::Filter);
}

/// Empty, half full, full.
fn filled<F: Insert + Clone>(mut filter: F) -> Vec<State<F>> {
    let mut states = vec![State { filter: filter.clone(), keys: Vec::new() }];
    let capacity = filter.capacity() as u64;
    let steps = [0..capacity / 2, capacity / 2..capacity];
    let mut keys = Vec::new();
    for step in steps {
        for key in step {
            filter.insert(&key).unwrap();
            keys.push(key);
        }
        states.push(State { filter: filter.clone(), keys: keys.clone() });
    }
    states
}

/// The last state after the removal of every other key.
fn removed<F: Remove + Clone>(states: &mut Vec<State<F>>) {
    let State { filter, keys } = states.last().unwrap();
    let (mut filter, mut kept) = (filter.clone(), Vec::new());
    for (index, &key) in keys.iter().enumerate() {
        if index % 2 == 0 {
            assert!(filter.remove(&key).unwrap());
        } else {
            kept.push(key);
        }
    }
    let at = states.len() - 1;
    states.insert(at, State { filter, keys: kept });
}

macro_rules! subject {
    ($(#[$doc:meta])* $name:ident $(= $fixture:literal)?, $filter:ident, $states:expr) => {
        $(#[$doc])*
        pub(crate) struct $name<H>(PhantomData<H>);

        impl<H: KeyHasher> Subject for $name<H> {
            type Filter = $filter<H>;

            $(const NAME: Option<&str> = Some($fixture);)?

            fn states(capacity: usize, seed: u64) -> Vec<State<Self::Filter>> {
                let states: fn(usize, u64) -> Vec<State<Self::Filter>> = $states;
                states(capacity, seed)
            }

            fn change(filter: &mut Self::Filter) {
                let (before, mut key) = (filter.len(), 1_u64 << 40);
                filter.clear();
                while filter.is_empty() || filter.len() < before / 2 {
                    filter.insert(&key).unwrap();
                    key += 1;
                }
            }
        }
    };
}

subject!(Bloom, BloomFilter, |capacity, seed| {
    let rate = [0.3, 0.01, 1.0 / 256.0][seed as usize % 3];
    let builder = BloomFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
    filled(builder.hasher::<H>().build().unwrap())
});

subject!(BlockedBloom = "blocked-bloom-half", BlockedBloomFilter, |capacity, seed| {
    let rate = [0.1, 0.01, 0.0001][seed as usize % 3];
    let builder = BlockedBloomFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
    filled(builder.hasher::<H>().build().unwrap())
});

subject!(Cuckoo, CuckooFilter, |capacity, seed| {
    let shape = [(2, 4), (4, 1), (3, 2)][seed as usize % 3];
    let builder = CuckooFilter::builder().shape(shape.0, shape.1).max_load(0.8);
    let mut states = filled(builder.capacity(capacity).seed(seed).hasher::<H>().build().unwrap());
    removed(&mut states);
    states
});

subject!(Tiny, TinySet, |capacity, seed| {
    let bits = [512, 256, 100, 1000][seed as usize % 4];
    let builder = TinySet::builder().capacity(capacity).seed(seed).block_bits(bits);
    let mut states = filled(builder.clone().hasher::<H>().build().unwrap());
    let mut with_removal = filled(builder.removal(true).hasher::<H>().build().unwrap());
    removed(&mut with_removal);
    states.extend(with_removal);
    states
});

subject!(Quotient, QuotientFilter, |capacity, seed| {
    let rate = [1.0 / 256.0, 0.2, 1e-5][seed as usize % 3];
    let builder = QuotientFilter::builder().seed(seed).false_positive_rate(rate);
    let builder = builder.hasher::<H>().capacity(capacity);
    let grown = builder.clone().growable_to(4 * capacity).build().unwrap();
    let mut states = filled(builder.build().unwrap());
    removed(&mut states);
    let State { mut filter, mut keys } = State { filter: grown, keys: Vec::new() };
    for key in 0..3 * capacity as u64 {
        filter.insert(&key).unwrap();
        keys.push(key);
    }
    states.push(State { filter, keys });
    states
});

/// Empty, full, repaired, repaired more, and after the removal of every third key.
fn adapted<F: Adaptive + Clone>(mut filter: F, repairs: u64) -> (Vec<State<F>>, MemoryRemote) {
    let mut remote = MemoryRemote::new();
    let mut states = vec![State { filter: filter.clone(), keys: Vec::new() }];
    let mut keys: Vec<u64> = (0..filter.capacity() as u64).collect();
    for key in &keys {
        filter.insert(key, &mut remote).unwrap();
    }
    states.push(State { filter: filter.clone(), keys: keys.clone() });
    for round in 0..2 {
        for key in (1 << 30) + round * repairs..(1 << 30) + (round + 1) * repairs {
            if filter.contains(&key) {
                filter.adapt(&key, &mut remote).unwrap();
            }
        }
        states.push(State { filter: filter.clone(), keys: keys.clone() });
    }
    for key in keys.extract_if(.., |key| *key % 3 == 0) {
        assert!(filter.remove(&key, &mut remote).unwrap());
    }
    states.push(State { filter, keys });
    (states, remote)
}

/// The last state once more after it has doubled.
fn doubled<F: Adaptive + Growable + Clone>(
    (mut states, mut remote): (Vec<State<F>>, MemoryRemote),
) -> (Vec<State<F>>, MemoryRemote) {
    let State { filter, keys } = states.last().unwrap();
    let (mut filter, keys) = (filter.clone(), keys.clone());
    filter.grow(&mut remote).unwrap();
    states.push(State { filter, keys });
    (states, remote)
}

subject!(Bins = "bins-dense", BinFilter, |capacity, seed| {
    let rate = [1.0 / 256.0, 0.01, 1e-4][seed as usize % 3];
    let load = [0.90, 0.99, 0.95][seed as usize / 3 % 3];
    let builder = BinFilter::builder().seed(seed).false_positive_rate(rate).max_load(load);
    let builder = builder.hasher::<H>().capacity(capacity);
    let grown = builder.clone().growable_to(2 * capacity).build();
    let mut states = filled(builder.build().unwrap());
    removed(&mut states);
    if let Ok(mut filter) = grown {
        let keys: Vec<u64> = (0..2 * capacity as u64).collect();
        keys.iter().for_each(|key| assert!(filter.insert(key).is_ok()));
        states.insert(0, State { filter, keys });
    }
    states
});

macro_rules! adaptive_subject {
    ($name:ident $(($fixture:literal))?, $filter:ident $(<$variant:ty>)?, $states:expr) => {
        pub(crate) struct $name<H>(PhantomData<H>);

        impl<H: KeyHasher> Subject for $name<H> {
            type Filter = $filter<$($variant,)? H>;

            $(const NAME: Option<&str> = Some($fixture);)?

            fn states(capacity: usize, seed: u64) -> Vec<State<Self::Filter>> {
                let states: fn(usize, u64) -> Vec<State<Self::Filter>> = $states;
                states(capacity, seed)
            }

            fn change(filter: &mut Self::Filter) {
                let (keys, mut remote) = (1.max(filter.len() as u64 / 2), MemoryRemote::new());
                filter.clear(&mut remote).unwrap();
                for key in (1 << 40)..(1 << 40) + keys {
                    filter.insert(&key, &mut remote).unwrap();
                }
            }
        }
    };
}

adaptive_subject!(Telescoping, TelescopingFilter, |capacity, seed| {
    let rate = [1.0 / 256.0, 0.2, 0.01][seed as usize % 3];
    let overflow = [Overflow::Spill, Overflow::Spill, Overflow::Reset][seed as usize / 3 % 3];
    let builder = TelescopingFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
    let filter = builder.overflow(overflow).hasher::<H>().build().unwrap();
    doubled(adapted(filter, 20 * capacity as u64)).0
});

adaptive_subject!(TelescopingUncompressed, UncompressedTelescopingFilter, |capacity, seed| {
    let rate = [1.0 / 256.0, 0.2, 0.01][seed as usize % 3];
    let builder = UncompressedTelescopingFilter::builder().capacity(capacity).false_positive_rate(rate);
    let filter = builder.seed(seed).growable().hasher::<H>().build().unwrap();
    doubled(adapted(filter, 5 * capacity as u64)).0
});

adaptive_subject!(Extension, ExtensionFilter, |capacity, seed| {
    let rate = [1.0 / 256.0, 0.2, 0.01][seed as usize % 3];
    let overflow = [Overflow::Spill, Overflow::Spill, Overflow::Reset][seed as usize / 3 % 3];
    let builder = ExtensionFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
    let filter = builder.table(Table::Quotient).overflow(overflow).hasher::<H>().build().unwrap();
    doubled(adapted(filter, 20 * capacity as u64)).0
});

adaptive_subject!(ExtensionOnBins("extension-bins-dense"), ExtensionFilter, |capacity, seed| {
    let rate = [1.0 / 256.0, 0.02, 1e-3][seed as usize % 3];
    let load = [0.90, 0.99, 0.95][seed as usize / 3 % 3];
    let builder = ExtensionFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
    let filter = builder.table(Table::Bins).max_load(load).hasher::<H>().build().unwrap();
    doubled(adapted(filter, 20 * capacity as u64)).0
});

macro_rules! cuckoo_subject {
    ($name:ident, $variant:ty) => {
        adaptive_subject!($name, AdaptiveCuckooFilter<$variant>, |capacity, seed| {
            let rate = [0.2, 0.02, 1.0 / 256.0][seed as usize % 3];
            let builder = AdaptiveCuckooFilter::<$variant>::builder().capacity(capacity);
            let filter = builder.false_positive_rate(rate).seed(seed).hasher::<H>().build().unwrap();
            rehashed(adapted(filter, 5 * capacity as u64))
        });
    };
}

/// The last state once more after it was built anew: with other hash functions, at other addresses.
fn rehashed<F: Adaptive + Clone>((mut states, mut remote): (Vec<State<F>>, MemoryRemote)) -> Vec<State<F>> {
    let State { filter, keys } = states.last().unwrap();
    let (mut filter, keys) = (filter.clone(), keys.clone());
    let all = keys.clone();
    filter
        .rebuild(
            |visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>| {
                let _ = all.iter().try_for_each(|key| visit(&key.to_le_bytes()));
                Ok::<(), std::convert::Infallible>(())
            },
            &mut remote,
        )
        .unwrap();
    states.push(State { filter, keys });
    states
}

cuckoo_subject!(CuckooRemote, cuckoo::Inert);
cuckoo_subject!(Cuckooing, cuckoo::Cuckooing);
cuckoo_subject!(Swapping, cuckoo::Swapping);
cuckoo_subject!(Cyclic1, cuckoo::Cyclic<1>);
cuckoo_subject!(Cyclic2, cuckoo::Cyclic<2>);
cuckoo_subject!(Cyclic3, cuckoo::Cyclic<3>);

macro_rules! cascade_subject {
    ($name:ident, $level:ty, $levels:expr) => {
        adaptive_subject!($name, Cascade<$level>, |capacity, seed| {
            let rate = [0.2, 0.02, 1.0 / 256.0][seed as usize % 3];
            let builder = Cascade::<$level>::builder().capacity(capacity).levels($levels);
            let filter = builder.false_positive_rate(rate).seed(seed).hasher::<H>().build().unwrap();
            rehashed(adapted(filter, 5 * capacity as u64))
        });
    };
}

cascade_subject!(AdaptiveBloom, BloomFilter, 2);
cascade_subject!(CascadeOfQuotient, QuotientFilter, 3);

adaptive_subject!(Broom, BroomFilter, |capacity, seed| {
    // Small remainders, and large ones that go on beside the table; budgets that are kept and that are used up.
    let (rate, budget) = [(0.1, 0.5), (0.01, 4.0), (1e-4, 0.1)][seed as usize % 3];
    let builder = BroomFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
    let filter = builder.adaptivity_budget(budget).hasher::<H>().build().unwrap();
    rehashed(doubled(adapted(filter, 20 * capacity as u64)))
});

adaptive_subject!(BroomOnBins("broom-bins-dense"), BroomFilter, |capacity, seed| {
    // Bins that overflow; budgets that are kept and that are used up.
    let (rate, budget, load) =
        [(1e-3, 0.5, 0.90), (1.0 / 64.0, 4.0, 0.99), (0.005, 0.0, 0.95)][seed as usize % 3];
    let builder = BroomFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
    let builder = builder.table(Table::Bins).max_load(load).adaptivity_budget(budget);
    let mut states = rehashed(doubled(adapted(builder.hasher::<H>().build().unwrap(), 40 * capacity as u64)));
    // The last one has strings and ghosts.
    states.rotate_left(5);
    states
});

subject!(Whitelist, WhitelistFilter, |capacity, seed| {
    let rate = [0.2, 0.02, 1.0 / 256.0][seed as usize % 3];
    let builder = WhitelistFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
    let mut states = filled(builder.whitelist_bound(5 * capacity).hasher::<H>().build().unwrap());
    let State { filter, keys } = states.last().unwrap();
    let (mut filter, keys) = (filter.clone(), keys.clone());
    for stranger in (1 << 30)..(1 << 30) + 5 * capacity as u64 {
        filter.adapt(&stranger).unwrap();
    }
    states.push(State { filter, keys });
    states
});

/// Every state in three shards, of which each has all keys of its state: more than it needs, and enough.
fn in_shards<F: Persist + Clone>(states: Vec<State<F>>) -> Vec<State<Sharded<F>>> {
    let shard = |State { filter, keys }: State<F>| State {
        filter: Sharded::build(3, filter.capacity(), |_, _| Ok(filter.clone())).unwrap(),
        keys,
    };
    states.into_iter().map(shard).collect()
}

pub(crate) struct ShardedQuotient<H>(PhantomData<H>);

impl<H: KeyHasher> Subject for ShardedQuotient<H> {
    type Filter = Sharded<QuotientFilter<H>>;

    const NAME: Option<&str> = Some("sharded-upper-quotient");

    fn states(capacity: usize, seed: u64) -> Vec<State<Self::Filter>> {
        in_shards(Quotient::<H>::states(capacity, seed))
    }

    fn change(filter: &mut Self::Filter) {
        let keys = 1.max(filter.len() as u64 / 6);
        filter.clear();
        (1 << 40..(1 << 40) + keys).for_each(|key| assert!(filter.insert(&key).is_ok()));
    }
}

pub(crate) struct ShardedTelescoping<H>(PhantomData<H>);

impl<H: KeyHasher> Subject for ShardedTelescoping<H> {
    type Filter = Sharded<TelescopingFilter<H>>;

    const NAME: Option<&str> = Some("sharded-upper-telescoping");

    fn states(capacity: usize, seed: u64) -> Vec<State<Self::Filter>> {
        in_shards(Telescoping::<H>::states(capacity, seed))
    }

    fn change(filter: &mut Self::Filter) {
        let keys = 1.max(filter.len() as u64 / 6);
        let mut shared = filter.with_remote(MemoryRemote::new());
        shared.clear().unwrap();
        (1 << 40..(1 << 40) + keys).for_each(|key| assert!(shared.insert(&key).is_ok()));
    }
}

pub(crate) struct Exact<H>(PhantomData<H>);

impl<H: KeyHasher> Subject for Exact<H> {
    type Filter = ExactList<H>;

    /// Empty; a static filter of an odd rate; turned round; without and with a first table.
    fn states(capacity: usize, seed: u64) -> Vec<State<Self::Filter>> {
        let builder = ExactList::builder().seed(seed).hasher::<H>();
        let keys: Vec<u64> = (0..capacity as u64).collect();
        let build = |yes: usize, no: u64| {
            let list = builder.clone().build(&keys[..yes], 1 << 32..(1 << 32) + no);
            State { filter: list.unwrap(), keys: keys[..yes].to_vec() }
        };
        let filter = builder.clone().unknown_rate(0.01).build_filter(&keys).unwrap();
        let many = capacity as u64 * 5;
        vec![
            build(0, 0),
            State { filter, keys: keys.clone() },
            build(capacity, 1 + capacity as u64 / 10),
            build(capacity / 2, many / 10),
            build(capacity, many),
        ]
    }

    /// There is no change but another list.
    fn change(filter: &mut Self::Filter) {
        let builder = ExactList::builder().seed(filter.seed()).hasher::<H>();
        *filter = builder.build(1 << 40..(1 << 40) + 10_u64, 0..10_u64).unwrap();
    }
}

/// Calls a generic function for every subject, with both hash functions, or with the one in brackets: what does not look at
/// the hash function need not be compiled for both.
#[macro_export]
macro_rules! for_every_subject {
    ([$hasher:ident] $check:ident $(, $argument:expr)*) => {
        for_every_subject!(@ $hasher, $check, ($($argument),*), Bloom BlockedBloom Cuckoo Tiny Quotient
            Telescoping TelescopingUncompressed Extension ExtensionOnBins
            CuckooRemote Cuckooing Swapping Cyclic1 Cyclic2 Cyclic3 AdaptiveBloom CascadeOfQuotient Whitelist Broom BroomOnBins Bins
            ShardedQuotient ShardedTelescoping Exact)
    };
    ($check:ident $(, $argument:expr)*) => {
        for_every_subject!([Xxh3] $check $(, $argument)*);
        for_every_subject!([SipHash] $check $(, $argument)*);
    };
    (@ $hasher:ident, $check:ident, $arguments:tt, $($subject:ident)*) => {
        $(for_every_subject!(@@ $hasher, $check, $arguments, $subject);)*
    };
    (@@ $hasher:ident, $check:ident, ($($argument:expr),*), $subject:ident) => {
        $check::<$crate::format::subjects::$subject<besom::$hasher>>($($argument),*);
    };
}
