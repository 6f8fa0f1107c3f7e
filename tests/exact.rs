//! Catches: known negatives that are still accepted, stored keys that are lost while others are excluded, lists that cannot be
//! excluded and are not refused.

use besom::cuckoo::CuckooingFilter;
use besom::exact::{ExactList, ExcludeError, exclude};
use besom::format::{Persist, WriteOptions};
use besom::telescoping::UncompressedTelescopingFilter;
use besom::testing::Random;
use besom::{
    Adaptive, BroomFilter, ExtensionFilter, Filter, MemoryRemote, Overflow, Seed, Table, TelescopingFilter,
};

const GROUNDS: [Table; 2] = [Table::Quotient, Table::Bins];

/// Fills a filter with random keys, excludes a random list, and compares all answers with the lists.
fn check<F: Adaptive>(mut filter: F, keys: u64, negatives: u64, seed: u64, exact: bool) {
    let (mut remote, mut random) = (MemoryRemote::new(), Random::new(seed));
    let stored: Vec<u64> = (0..keys).map(|_| random.next() | 1).collect();
    stored.iter().for_each(|key| assert!(filter.insert(key, &mut remote).unwrap()));
    // Some of the list more than once, and next to one another.
    let list: Vec<u64> = (0..negatives)
        .map(|_| random.next() & !1)
        .flat_map(|key| vec![key; 1 + usize::from(key % 7 == 0)])
        .collect();
    let done = exclude(&mut filter, &list, &mut remote);
    assert!(stored.iter().all(|key| filter.contains(key)), "a stored key is lost");
    filter.verify().unwrap();
    filter.verify_remote(&mut remote).unwrap();
    match done {
        Ok(done) => {
            assert!(list.iter().all(|key| !filter.contains(key)), "a negative is accepted after {done:?}");
            assert_eq!(done.negatives, list.len() as u64);
            assert!(done.passes == 1 || done.adaptations > 0);
            // Nothing is left to do.
            let again = exclude(&mut filter, &list, &mut remote).unwrap();
            assert_eq!((again.passes, again.adaptations), (1, 0));
        }
        Err(error) => assert!(!exact, "{error}"),
    }
}

#[test]
fn every_negative_is_rejected_and_every_key_accepted() {
    for seed in 0..30_u64 {
        // Coarse rates on small tables: nearly every block overflows, and repairs undo one another.
        let (keys, negatives) = (1 + seed * 7, 50 + seed * 100);
        for rate in [0.25, 1.0 / 16.0, 1.0 / 256.0] {
            let capacity = keys as usize;
            let telescoping =
                TelescopingFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
            check(telescoping.build().unwrap(), keys, negatives, seed, rate < 0.2);
            let explicit = UncompressedTelescopingFilter::builder()
                .capacity(capacity)
                .false_positive_rate(rate)
                .seed(seed);
            check(explicit.build().unwrap(), keys, negatives, seed, rate < 0.01);
            for table in GROUNDS {
                let extension = ExtensionFilter::builder().capacity(capacity).table(table);
                let extension = extension.false_positive_rate(rate).seed(seed);
                check(extension.build().unwrap(), keys, negatives, seed, true);
            }
        }
        let broom = BroomFilter::builder().capacity(keys as usize).false_positive_rate(1.0 / 64.0).seed(seed);
        check(broom.build().unwrap(), keys, negatives.min(200), seed, false);
        let cuckooing =
            CuckooingFilter::builder().capacity(keys as usize).false_positive_rate(1.0 / 64.0).seed(seed);
        check(cuckooing.build().unwrap(), keys, negatives.min(200), seed, false);
    }
}

/// An extension filter never takes a repair back: what the first pass repairs, the second finds repaired.
#[test]
fn two_passes_are_enough_for_an_extension_filter() {
    for table in GROUNDS {
        let filter = ExtensionFilter::builder().capacity(2000).table(table).seed(3_u64);
        let (mut filter, mut remote) = (filter.build().unwrap(), MemoryRemote::new());
        (0..2000_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
        let done = exclude(&mut filter, 2000..100_000_u64, &mut remote).unwrap();
        assert_eq!(done.passes, 2);
        assert!((200..550).contains(&done.adaptations), "{done:?}: about 1/256 of 98,000");
    }
}

#[test]
fn a_key_in_both_lists_is_refused_and_stays() {
    let (mut filter, mut remote) = (TelescopingFilter::with_capacity(100).unwrap(), MemoryRemote::new());
    ["a", "b", "c"].iter().for_each(|key| assert!(filter.insert(*key, &mut remote).unwrap()));
    match exclude(&mut filter, ["x", "b"], &mut remote) {
        Err(ExcludeError::Stored { key }) => assert_eq!(key, b"b"),
        other => panic!("{other:?}"),
    }
    assert!(filter.contains("b"));
    let message = exclude(&mut filter, ["b"], &mut remote).unwrap_err().to_string();
    assert!(message.contains("\"b\" is stored") && message.contains("both lists"), "{message}");
}

/// A filter that forgets has no end of it, and says so instead of trying for ever.
#[test]
fn a_filter_that_forgets_too_much_is_an_error() {
    let builder =
        TelescopingFilter::builder().capacity(64).false_positive_rate(0.5).overflow(Overflow::Reset);
    let (mut filter, mut remote) = (builder.seed(Seed::from(1_u64)).build().unwrap(), MemoryRemote::new());
    (0..64_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    let error = exclude(&mut filter, 1000..20_000_u64, &mut remote).unwrap_err();
    assert!(matches!(error, ExcludeError::NoEnd { .. }), "{error}");
    assert!((0..64_u64).all(|key| filter.contains(&key)));
}

#[test]
fn nothing_to_exclude_is_one_pass() {
    let (mut filter, mut remote) = (ExtensionFilter::with_capacity(10).unwrap(), MemoryRemote::new());
    let done = exclude(&mut filter, [0_u64; 0], &mut remote).unwrap();
    assert_eq!((done.passes, done.negatives, done.adaptations), (1, 0, 0));
}

/// The rule by which `besom build --updatable` chooses a rate: about half a repair for every key makes the file smallest.
#[test]
fn half_a_repair_a_key_makes_the_smallest_file() {
    const KEYS: u64 = 20_000;
    for ratio in [10_u64, 70] {
        let size = |rate: f64| {
            let builder =
                ExtensionFilter::builder().capacity(KEYS as usize).false_positive_rate(rate).seed(1_u64);
            let filter = builder.table(Table::Quotient).build().unwrap();
            let (mut filter, mut remote) = (filter, MemoryRemote::new());
            (0..KEYS).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
            exclude(&mut filter, 1 << 40..(1 << 40) + ratio * KEYS, &mut remote).unwrap();
            filter.to_bytes(&Default::default()).unwrap().len() as f64 * 8.0 / KEYS as f64
        };
        let chosen = size(0.6 / ratio as f64);
        let others = [0.1, 0.2, 0.4, 0.8, 1.6].map(|repairs| size(repairs / ratio as f64));
        println!("1 : {ratio}: {chosen:.2} bits a key; at other rates {others:.2?}");
        // Remainders have whole bits.
        assert!(others.iter().all(|&other| chosen <= 1.06 * other), "{chosen} beside {others:?}");
    }
}

fn full() -> bool {
    std::env::var_os("BESOM_FULL").is_some()
}

/// Lists of all shapes, with short headers and long ones, damaged: refused, or a list that answers and has one file.
#[test]
fn damaged_lists_are_errors_or_sound() {
    let builder = || ExactList::builder().seed(1_u64);
    let lists = [
        builder().build(0..0_u64, 0..0_u64),
        builder().build(0..100_u64, 1000..1100_u64),
        builder().build(0..100_u64, 1000..3000_u64),
        builder().build(0..2000_u64, 10_000..10_100_u64),
        builder().unknown_rate(0.01).build_filter(0..3000_u64),
        builder().build(0..9000_u64, 10_000..100_000_u64),
        builder().unknown_rate(1e-9).build_filter(0..20_000_u64),
    ];
    let files = lists.map(|list| list.unwrap().to_bytes(&Default::default()).unwrap());
    let (rounds, mut sound) = (if full() { 1_000_000 } else { 20_000 }, 0);
    let mut damage = besom::testing::Damage::new(26);
    for round in 0..rounds {
        let bytes = damage.file(&files[round % files.len()], &files[round / 7 % files.len()]);
        let Ok((list, header)) = <ExactList>::from_bytes(&bytes, &Default::default()) else { continue };
        sound += 1;
        let found = (0..200_u64).filter(|key| list.contains(key)).count();
        assert!(found <= 200 && list.verify().is_ok());
        let options = WriteOptions::new().generation(header.generation).include_seed(header.seed.is_some());
        assert!(
            list.to_bytes(&options).unwrap() == bytes,
            "round {round}: another file than the one that was read"
        );
    }
    println!("{rounds} damaged lists, {sound} of them sound");
    assert!(sound > rounds / 100 && sound < rounds);
}

/// Few rejected keys among many accepted ones, more than are put through the first table at once.
#[test]
fn lists_that_are_turned_round_are_exact() {
    for (yes, no) in [(300_000_u64, 30_000_u64), (100_000, 99_000), (200_000, 1)] {
        let list = ExactList::builder().seed(3_u64).build(0..yes, yes..yes + no).unwrap();
        let wrong = (0..yes + no).filter(|&key| list.contains(&key) != (key < yes)).count();
        assert_eq!(wrong, 0, "{yes} : {no}");
    }
}
