//! Catches: a delta that makes another file than the new one, one that is applied to a file that it does not belong to, damaged deltas
//! that panic or make half a file.

use besom::bloom::{BlockedBloomFilter, BloomFilter};
use besom::cuckoo::CuckooingFilter;
use besom::delta::{self, DeltaError, Method};
use besom::exact::{ExactList, exclude};
use besom::format::{Kind, Persist, WriteOptions};
use besom::quotient::QuotientFilter;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::testing::Random;
use besom::tinyset::TinySet;
use besom::{
    Adaptive, BinFilter, BroomFilter, ExtensionFilter, Filter, Insert, MemoryRemote, Remove, Table,
    TelescopingFilter,
};

fn bytes<F: Persist>(filter: &F, generation: u64) -> Vec<u8> {
    filter.to_bytes(&WriteOptions::new().generation(generation)).unwrap()
}

/// Two files have the same filter.
fn same<F: Persist + PartialEq>(applied: &[u8], new: &[u8], name: &str) {
    let read = |bytes: &[u8]| F::from_bytes(bytes, &Default::default());
    match (read(applied), read(new)) {
        (Ok((applied, ours)), Ok((new, theirs))) => {
            assert!(applied == new && ours.generation == theirs.generation, "{name}");
        }
        _ => assert!(applied == new, "{name}"),
    }
}

/// The delta leads from one to the other, and from nowhere else.
fn leads(old: &[u8], new: &[u8], name: &str) -> Option<Vec<u8>> {
    match delta::diff(old, new) {
        Ok(change) => {
            let applied = delta::apply(old, &change).unwrap();
            match besom::format::inspect(&mut &new[..]).unwrap().kind {
                // Bins may have the same fingerprints elsewhere.
                Kind::Bins => same::<BinFilter>(&applied, new, name),
                Kind::Extension => same::<ExtensionFilter>(&applied, new, name),
                _ => assert!(applied == new, "{name}"),
            }
            assert!(change.len() < new.len());
            if old != new {
                assert!(matches!(delta::apply(new, &change), Err(DeltaError::WrongBase { .. })), "{name}");
            }
            Some(change)
        }
        Err(DeltaError::NotSmaller { file, .. }) => {
            assert_eq!(file, new.len());
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

fn full() -> bool {
    std::env::var_os("BESOM_FULL").is_some()
}

#[test]
fn additions_to_bins_take_two_and_a_half_bytes() {
    let (keys, additions) = if full() { (1_000_000, 10_000) } else { (200_000, 2_000) };
    let mut filter = BinFilter::builder().capacity(keys + additions).seed(7_u64).build().unwrap();
    (0..keys as u64).for_each(|key| assert!(filter.insert(&key).is_ok()));
    let old = bytes(&filter, 1);
    (0..additions as u64).for_each(|key| assert!(filter.insert(&(1 << 40 | key)).is_ok()));
    let new = bytes(&filter, 2);
    let change = leads(&old, &new, "bins").unwrap();
    assert_eq!(delta::inspect(&change).unwrap().method, Method::Fingerprints);
    let each = change.len() as f64 / additions as f64;
    println!("{each:.3} bytes an addition, {additions} additions to {keys} keys");
    assert!(each <= 2.5, "{each}");
}

/// A filter of many keys and one of some more: what an addition takes in the delta.
macro_rules! bytes_an_addition {
    ($builder:expr) => {{
        let (keys, additions) = if full() { (1_000_000_u64, 10_000_u64) } else { (100_000, 1_000) };
        let builder = $builder.capacity((keys + additions) as usize).seed(7_u64);
        let (mut filter, mut remote) = (builder.build().unwrap(), MemoryRemote::new());
        (0..keys).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
        let old = bytes(&filter, 1);
        (0..additions).for_each(|key| assert!(filter.insert(&(1 << 40 | key), &mut remote).unwrap()));
        let new = bytes(&filter, 2);
        let change = leads(&old, &new, stringify!($builder)).unwrap();
        assert_eq!(delta::inspect(&change).unwrap().method, Method::Fingerprints);
        let each = change.len() as f64 / additions as f64;
        println!("{}: {each:.3} bytes an addition, {additions} to {keys}", stringify!($builder));
        assert!(each <= if full() { 2.5 } else { 2.7 }, "{}: {each}", stringify!($builder));
    }};
}

#[test]
fn additions_to_adaptive_filters_take_two_and_a_half_bytes() {
    bytes_an_addition!(TelescopingFilter::builder());
    bytes_an_addition!(UncompressedTelescopingFilter::builder());
    bytes_an_addition!(ExtensionFilter::builder().table(Table::Quotient));
    bytes_an_addition!(ExtensionFilter::builder().table(Table::Bins));
}

/// Random insertions, removals and repairs in small filters, and a delta after each round: it leads to the same filter.
macro_rules! follows {
    ($name:literal, $filter:ty, $builder:expr) => {{
        let mut random = Random::new(17);
        for round in 0..30_u64 {
            let capacity = 50 + random.below(2000);
            let rate = [0.2, 1.0 / 64.0, 1.0 / 256.0][random.below(3) as usize];
            let builder = $builder.capacity(capacity as usize).false_positive_rate(rate).seed(round);
            let (mut filter, mut remote) = (builder.build().unwrap(), MemoryRemote::new());
            let mut old = bytes(&filter, 0);
            for generation in 1..8 {
                for _ in 0..random.below(capacity / 3) {
                    let key = random.below(2 * capacity);
                    if random.one_in(3) {
                        let _ = filter.remove(&key, &mut remote).unwrap();
                    } else {
                        let _ = filter.insert(&key, &mut remote);
                    }
                }
                for _ in 0..capacity {
                    let stranger = 1 << 40 | random.below(1 << 30);
                    if filter.contains(&stranger) {
                        filter.adapt(&stranger, &mut remote).unwrap();
                    }
                }
                let new = bytes(&filter, generation);
                old = match leads(&old, &new, $name) {
                    Some(change) => delta::apply(&old, &change).unwrap(),
                    None => new,
                };
                let (read, _) = <$filter>::from_bytes(&old, &Default::default()).unwrap();
                assert!(read == filter, "{} in round {round}", $name);
                read.verify().unwrap();
                read.verify_remote(&mut remote).unwrap();
            }
        }
    }};
}

#[test]
fn deltas_follow_adaptive_filters_through_insertions_removals_and_repairs() {
    follows!("telescoping", TelescopingFilter, TelescopingFilter::builder());
    follows!("uncompressed", UncompressedTelescopingFilter, UncompressedTelescopingFilter::builder());
    follows!("extension", ExtensionFilter, ExtensionFilter::builder().table(Table::Quotient));
    follows!("extension on bins", ExtensionFilter, ExtensionFilter::builder().table(Table::Bins));
}

#[test]
fn additions_removals_and_growth_of_bins_lead_to_the_same_bytes() {
    let mut random = Random::new(3);
    for round in 0..60_u64 {
        let capacity = 1 + random.below(3000) as usize;
        let mut filter =
            BinFilter::builder().capacity(capacity).seed(round).growable_to(4 * capacity).build().unwrap();
        let mut stored: Vec<u64> = Vec::new();
        let mut old = bytes(&filter, 0);
        for generation in 1..6 {
            for _ in 0..random.below(capacity as u64 / 2 + 2) {
                if random.one_in(3) && !stored.is_empty() {
                    let key = stored.swap_remove(random.below(stored.len() as u64) as usize);
                    assert!(filter.remove(&key).unwrap());
                } else {
                    let key = random.below(5000);
                    if filter.insert(&key).is_ok() {
                        stored.push(key);
                    }
                }
            }
            let new = bytes(&filter, generation);
            // What others have need not be the same bytes; the next delta fits all the same.
            old = match leads(&old, &new, "bins") {
                Some(change) => delta::apply(&old, &change).unwrap(),
                None => new,
            };
        }
    }
}

/// Every kind that changes has deltas; which are smaller than files where little changed.
#[test]
fn every_kind_that_changes_has_deltas() {
    macro_rules! plain {
        ($($filter:ty),*) => {$({
            let mut filter = <$filter>::builder().capacity(21_000).seed(1_u64).build().unwrap();
            (0..20_000_u64).for_each(|key| assert!(filter.insert(&key).is_ok()));
            let old = bytes(&filter, 1);
            (0..20_u64).for_each(|key| assert!(filter.insert(&(1 << 40 | key)).is_ok()));
            let change = leads(&old, &bytes(&filter, 2), stringify!($filter));
            println!("{}: {:?} bytes for 20 additions", stringify!($filter), change.map(|change| change.len()));
        })*};
    }
    plain!(BinFilter, QuotientFilter, BloomFilter, BlockedBloomFilter, TinySet);
    macro_rules! adaptive {
        ($($filter:ty $(, $table:expr)?;)*) => {$({
            let builder = <$filter>::builder().capacity(21_000).seed(1_u64);
            $(let builder = builder.table($table);)?
            let (mut filter, mut remote) = (builder.build().unwrap(), MemoryRemote::new());
            (0..20_000_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
            let old = bytes(&filter, 1);
            (0..20_u64).for_each(|key| assert!(filter.insert(&(1 << 40 | key), &mut remote).unwrap()));
            assert!(filter.remove(&5_u64, &mut remote).unwrap());
            exclude(&mut filter, 1 << 50..(1 << 50) + 3000_u64, &mut remote).unwrap();
            let change = leads(&old, &bytes(&filter, 2), stringify!($filter));
            println!("{}: {:?} bytes", stringify!($filter), change.map(|change| change.len()));
        })*};
    }
    adaptive!(TelescopingFilter; ExtensionFilter, Table::Bins; ExtensionFilter, Table::Quotient; BroomFilter; CuckooingFilter;);
}

#[test]
fn for_exact_lists_the_file_is_smaller() {
    let list =
        |last: u64| ExactList::builder().seed(1_u64).build(0..last, 1 << 40..(1 << 40) + 50_000_u64).unwrap();
    let (old, new) = (bytes(&list(10_000), 1), bytes(&list(10_010), 2));
    assert!(matches!(delta::diff(&old, &new), Err(DeltaError::NotSmaller { .. })));
    // Only the generation is another.
    let renamed = bytes(&list(10_000), 9);
    assert!(leads(&old, &renamed, "exact").is_some_and(|change| change.len() < 300));
}

#[test]
fn a_seed_that_was_left_out_is_not_needed() {
    let mut filter = BinFilter::builder().capacity(5000).seed(1_u64).build().unwrap();
    (0..4000_u64).for_each(|key| assert!(filter.insert(&key).is_ok()));
    let without = WriteOptions::new().include_seed(false);
    let old = filter.to_bytes(&without).unwrap();
    assert!(filter.insert(&9999_u64).is_ok());
    leads(&old, &filter.to_bytes(&without).unwrap(), "without a seed").unwrap();
}

#[test]
fn what_is_no_filter_or_no_delta_is_refused() {
    let filter = BinFilter::with_capacity(10).unwrap();
    let file = bytes(&filter, 1);
    assert!(matches!(delta::diff(b"something", &file), Err(DeltaError::Format(_))));
    assert!(matches!(delta::diff(&file, &file[..file.len() - 1]), Err(DeltaError::Format(_))));
    assert!(matches!(delta::apply(&file, &file), Err(DeltaError::NotADelta)));
    assert!(matches!(delta::apply(&file, b""), Err(DeltaError::NotADelta)));
}

fn read<F: Persist>(bytes: &[u8]) -> F {
    F::from_bytes(bytes, &Default::default()).unwrap().0
}

/// Gives a damaged delta its checksums back, so that what lies behind them is reached.
fn reseal(change: &mut [u8], random: &mut Random) {
    if change.len() < 240 {
        return;
    }
    if random.one_in(2) {
        besom::testing::Damage::reseal(&mut change[32..224]);
    }
    let at = change.len() - 8;
    let checksum = xxhash_rust::xxh3::xxh3_64(&change[..at]);
    change[at..].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn damaged_deltas_are_errors_or_the_right_filter() {
    let mut random = Random::new(5);
    let mut bins = BinFilter::builder().capacity(600).seed(1_u64).build().unwrap();
    (0..400_u64).for_each(|key| assert!(bins.insert(&key).is_ok()));
    let (mut bloom, mut pairs) =
        (BloomFilter::builder().capacity(600).seed(1_u64).build().unwrap(), Vec::new());
    let (old_bins, old_bloom) = (bytes(&bins, 1), bytes(&bloom, 1));
    for key in 1000..1030_u64 {
        assert!(bins.insert(&key).is_ok() && bloom.insert(&key).is_ok());
        assert!(bins.remove(&(key - 1000)).unwrap());
    }
    pairs.push((old_bins.clone(), bytes(&bins, 2)));
    pairs.push((old_bloom, bytes(&bloom, 2)));
    for table in [Table::Quotient, Table::Bins] {
        let builder = ExtensionFilter::builder().capacity(200).table(table).false_positive_rate(0.1);
        let (mut filter, mut remote) = (builder.seed(1_u64).build().unwrap(), MemoryRemote::new());
        (0..150_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
        let old = bytes(&filter, 1);
        (200..210_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
        (5..9_u64).for_each(|key| assert!(filter.remove(&key, &mut remote).unwrap()));
        exclude(&mut filter, 1 << 40..(1 << 40) + 60_u64, &mut remote).unwrap();
        pairs.push((old, bytes(&filter, 2)));
    }
    let deltas: Vec<Vec<u8>> = pairs.iter().map(|(old, new)| delta::diff(old, new).unwrap()).collect();
    let rounds = if full() { 1_000_000 } else { 20_000 };
    let mut right = 0;
    for round in 0..rounds {
        let (old, new) = &pairs[round % 4];
        let mut change = deltas[round % 4].clone();
        for _ in 0..1 + random.below(4) {
            match random.below(4) {
                0 => change.truncate(random.below(change.len() as u64 + 1) as usize),
                1 => change.extend_from_slice(&random.next().to_le_bytes()),
                _ if !change.is_empty() => {
                    // The frame, the header or the body.
                    let from = [0, 0, 32, 224][random.below(4) as usize].min(change.len() - 1);
                    let at = from + random.below((change.len() - from) as u64) as usize;
                    change[at] ^= 1 << random.below(8);
                }
                _ => {}
            }
        }
        if random.one_in(2) {
            reseal(&mut change, &mut random);
        }
        if let Ok(applied) = delta::apply(old, &change) {
            // Behind right checksums, another generation is no damage that anybody could see; half a filter would be.
            match round % 4 {
                0 => assert!(read::<BinFilter>(&applied) == bins, "round {round}"),
                1 => assert!(applied[192..] == new[192..], "round {round}"),
                _ => {
                    let equal = read::<ExtensionFilter>(&applied) == read::<ExtensionFilter>(new);
                    assert!(equal, "round {round}");
                }
            }
            right += 1;
        }
    }
    println!("{rounds} damaged deltas, {right} applied");
}

#[test]
fn applied_deltas_answer_as_the_filter_does() {
    let mut filter = BinFilter::builder().capacity(30_000).seed(1_u64).build().unwrap();
    (0..25_000_u64).for_each(|key| assert!(filter.insert(&key).is_ok()));
    let old = bytes(&filter, 1);
    (1 << 40..(1 << 40) + 500_u64).for_each(|key| assert!(filter.insert(&key).is_ok()));
    let change = delta::diff(&old, &bytes(&filter, 2)).unwrap();
    let (read, header) =
        BinFilter::<besom::Xxh3>::from_bytes(&delta::apply(&old, &change).unwrap(), &Default::default())
            .unwrap();
    assert_eq!((header.generation, read == filter), (2, true));
    let queries = if full() { 1_000_000 } else { 50_000 };
    assert!((0..queries).map(|key: u64| key << 20).all(|key| read.contains(&key) == filter.contains(&key)));
}
