//! Catches: fingerprints that match too often, slots that are looked at twice, a builder that promises too much.

use besom::cuckoo::{AdaptiveCuckooFilter, AdaptiveVariant, Cuckooing, Cyclic, Inert, Swapping};
use besom::cuckoo::{
    AdaptiveCuckooFilterBuilder, CuckooFilter, CyclicFilter, RemoteCuckooFilter, SwappingFilter,
};
use besom::{BuildError, Filter, Insert};

use super::Stored;

const KEYS: u64 = 100_000;
const QUERIES: u64 = 2_000_000;

/// False positives among `QUERIES` keys that are not stored.
fn false_positives(filter: &impl Filter) -> f64 {
    (KEYS..KEYS + QUERIES).filter(|key| filter.contains(key)).count() as f64
}

/// Compares with bk/(γ·2^f), and with the exact probability, of which that is the first term.
fn check<V: AdaptiveVariant>(name: &str, tables: usize, slots_per_bin: usize) {
    for fingerprint in [4, 8, 11, 13] {
        let builder =
            AdaptiveCuckooFilter::<V>::builder().shape(tables, slots_per_bin).seed(u64::from(fingerprint));
        let slot_bits = fingerprint + V::SELECTOR_BITS;
        let stored = Stored::new(builder.capacity(KEYS as usize).slot_bits(slot_bits), 0..KEYS);
        let found = false_positives(&stored.filter);
        let probes = (tables * slots_per_bin) as f64;
        let load = stored.filter.stats().load;
        let union_bound = QUERIES as f64 * probes * load / f64::from(fingerprint).exp2();
        let hit = load / (f64::from(fingerprint).exp2() - 1.0);
        let exact = QUERIES as f64 * (1.0 - (1.0 - hit).powf(probes));
        println!(
            "{name}, f = {fingerprint}: {found} false positives, {exact:.0} expected, bk/(γ2^f) {union_bound:.0}"
        );
        // Occupied slots are not drawn independently of each other, but nearly so: 4 standard deviations.
        assert!((found - exact).abs() < 4.0 * exact.sqrt(), "{found} for {exact}");
        if fingerprint >= 8 {
            // The terms beyond the first one are within the error now.
            assert!(
                (found - union_bound).abs()
                    < 4.0 * union_bound.sqrt() + 1.5 * union_bound * hit * probes / 2.0
            );
        }
    }
}

#[test]
fn fresh_filters_have_the_rate_of_the_formula() {
    check::<Inert>("cuckoo-remote 2x4", 2, 4);
    check::<Inert>("cuckoo-remote 4x1", 4, 1);
    check::<Inert>("cuckoo-remote 3x2", 3, 2);
    check::<Cuckooing>("cuckooing", 4, 1);
    check::<Cyclic<1>>("cyclic-1", 4, 1);
    check::<Cyclic<2>>("cyclic-2", 4, 1);
    check::<Cyclic<3>>("cyclic-3", 4, 1);
    check::<Swapping>("swapping", 2, 4);
}

#[test]
fn the_rate_asked_for_is_kept_and_not_undercut_by_more_than_a_bit() {
    for rate in [0.1, 0.01, 1.0 / 256.0, 0.001] {
        let mut filter = CuckooFilter::builder()
            .capacity(KEYS as usize)
            .false_positive_rate(rate)
            .seed(3_u64)
            .build()
            .unwrap();
        (0..KEYS).for_each(|key| {
            filter.insert(&key).unwrap();
        });
        let found = false_positives(&filter);
        let most = rate * QUERIES as f64;
        println!("cuckoo, rate {rate}: {found} of {most}");
        assert!(found < most + 4.0 * most.sqrt(), "{found} of {most}");
        // Short fingerprints are lengthened so that the table can be filled.
        assert!(found > 0.45 * most || filter.slot_bits() <= 7, "{found} of {most}");
    }
}

#[test]
fn memory_per_key_is_what_was_asked_for_and_hardly_less() {
    let ask = |builder: AdaptiveCuckooFilterBuilder<Swapping>, bits: f64| {
        let filter = builder.capacity(KEYS as usize).bits_per_key(bits).build().unwrap();
        filter.stats().bits as f64 / KEYS as f64
    };
    for bits in [2.2, 7.0, 8.0, 10.55, 12.0, 16.9, 33.0] {
        let per_key = ask(SwappingFilter::builder(), bits);
        // Eight bytes behind the slots; a slot's width is whole.
        assert!(per_key <= bits + 0.001 && per_key > bits - 1.1, "{per_key} for {bits}");
    }
}

#[test]
fn the_size_is_known_before_building() {
    fn check<V: AdaptiveVariant>(builder: AdaptiveCuckooFilterBuilder<V>) {
        let size = builder.size_in_bits();
        assert_eq!(builder.build().map(|filter| filter.stats().bits), size);
    }
    for capacity in [0, 1, 2, 7, 100, 999, 1000, 12_345] {
        for rate in [0.3, 0.1, 1.0 / 256.0, 1e-4, 1e-30] {
            check(RemoteCuckooFilter::builder().capacity(capacity).false_positive_rate(rate));
            check(CyclicFilter::<3>::builder().capacity(capacity).false_positive_rate(rate).shape(3, 2));
            check(SwappingFilter::builder().capacity(capacity).false_positive_rate(rate).max_load(0.5));
            let builder = CuckooFilter::builder().capacity(capacity).false_positive_rate(rate);
            let size = builder.size_in_bits();
            assert_eq!(builder.build().map(|filter| filter.stats().bits), size);
        }
        check(RemoteCuckooFilter::builder().capacity(capacity).slot_bits(13));
        check(RemoteCuckooFilter::builder().capacity(capacity).bits_per_key(13.0).four_by_one());
    }
}

#[test]
fn equality_is_that_of_parameters_hash_function_and_contents() {
    let build = |seed: u64, slot_bits| {
        CuckooFilter::builder().capacity(100).slot_bits(slot_bits).seed(seed).build().unwrap()
    };
    let (mut a, mut b) = (build(1, 12), build(1, 12));
    assert!(a == b && a != build(2, 12) && a != build(1, 13));
    a.insert("key").unwrap();
    assert_ne!(a, b);
    b.insert("key").unwrap();
    assert_eq!(a, b);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let build = || RemoteCuckooFilter::builder().capacity(1000);
    assert_eq!(RemoteCuckooFilter::builder().build().unwrap_err(), BuildError::ZeroCapacity);
    assert_eq!(RemoteCuckooFilter::with_capacity(0).unwrap_err(), BuildError::ZeroCapacity);
    let is_out_of_range = |error| matches!(error, BuildError::OutOfRange { .. });
    assert!(is_out_of_range(build().slot_bits(1).build().unwrap_err()));
    assert!(is_out_of_range(build().slot_bits(33).build().unwrap_err()));
    assert!(is_out_of_range(build().bits_per_key(f64::NAN).build().unwrap_err()));
    assert!(is_out_of_range(build().bits_per_key(1.0).build().unwrap_err()));
    assert!(is_out_of_range(build().max_load(0.99).build().unwrap_err()));
    assert!(is_out_of_range(build().max_load(0.0).build().unwrap_err()));
    assert!(is_out_of_range(build().max_load(f64::INFINITY).build().unwrap_err()));
    assert!(is_out_of_range(build().shape(1, 4).build().unwrap_err()));
    assert!(is_out_of_range(build().shape(2, 0).build().unwrap_err()));
    assert!(is_out_of_range(build().shape(9, 1).build().unwrap_err()));
    assert!(is_out_of_range(SwappingFilter::builder().capacity(9).shape(4, 1).build().unwrap_err()));
    assert!(is_out_of_range(CyclicFilter::<3>::builder().capacity(9).slot_bits(4).build().unwrap_err()));
    assert!(is_out_of_range(CuckooFilter::builder().capacity(9).slot_bits(4).build().unwrap_err()));
    for rate in [0.0, -1.0, 1.0, 1e-20, f64::NAN] {
        let error = build().false_positive_rate(rate).build().unwrap_err();
        assert!(matches!(error, BuildError::RateOutOfRange { .. }), "{error}");
    }
    assert_eq!(
        build().slot_bits(8).bits_per_key(9.0).build().unwrap_err(),
        BuildError::Conflict { first: "slot_bits", second: "bits_per_key" }
    );
    let huge = RemoteCuckooFilter::builder().capacity(usize::MAX).build().unwrap_err();
    assert!(matches!(huge, BuildError::CapacityTooLarge { .. } | BuildError::OutOfMemory { .. }), "{huge}");
    let large = RemoteCuckooFilter::builder().capacity(1 << 43).slot_bits(32).build().unwrap_err();
    assert!(matches!(large, BuildError::OutOfMemory { .. }), "{large}");
}
