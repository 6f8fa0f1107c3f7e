//! Catches: a key that is looked for at another address than its list has, after growth, repairs or a moved frontier.

use std::ops::ControlFlow;

use besom::testing::Random;
use besom::{
    Adaptive, AdaptiveBloomFilter, BroomFilter, CuckooingFilter, ExtensionFilter, Filter, Ground, KeyHasher,
    MemoryRemote, Remote, TelescopingFilter,
};

/// Every key of the remote must be where the filter says.
fn check<F: Adaptive>(filter: &F, remote: &mut MemoryRemote) {
    let mut wrong = Vec::new();
    let visit = &mut |address, key: &[u8]| {
        if filter.address_of(filter.hasher().digest(key)) != Some(address) {
            wrong.push((address, key.to_vec()));
        }
        ControlFlow::Continue(())
    };
    remote.scan(visit).unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn play<F: Adaptive>(mut filter: F, keys: u64) {
    let (mut remote, mut random) = (MemoryRemote::new(), Random::new(5));
    for step in 0..8 * keys {
        let key = random.below(keys);
        match random.below(4) {
            0 | 1 => drop(filter.insert(&key, &mut remote).unwrap()),
            2 => drop(filter.remove(&key, &mut remote).unwrap()),
            _ => drop(filter.adapt(&(keys + random.below(100 * keys)), &mut remote).unwrap()),
        }
        if step % 64 == 0 {
            check(&filter, &mut remote);
        }
    }
    check(&filter, &mut remote);
}

#[test]
fn keys_are_where_the_filter_says() {
    play(TelescopingFilter::builder().capacity(4).growable().seed(1_u64).build().unwrap(), 500);
    for ground in [Ground::Quotient, Ground::Bins] {
        let builder = ExtensionFilter::builder().capacity(4).growable().seed(2_u64);
        play(builder.ground(ground).build().unwrap(), 500);
    }
    play(BroomFilter::builder().capacity(4).growable().seed(3_u64).build().unwrap(), 500);
    let on_bins = BroomFilter::builder().capacity(4).growable().ground(Ground::Bins);
    play(on_bins.seed(5_u64).build().unwrap(), 500);
    play(AdaptiveBloomFilter::builder().capacity(500).seed(4_u64).build().unwrap(), 500);
}

#[test]
fn a_key_of_a_cuckoo_filter_has_no_single_address() {
    let filter = CuckooingFilter::with_capacity(10).unwrap();
    assert_eq!(filter.address_of(filter.hasher().digest_key("key")), None);
}
