//! Catches: a size that is not what was announced, filters that cannot be shared, equality that overlooks something.

use super::*;
use crate::{
    Adaptive, BuildError, ExtensionFilter, Filter, Growable, TelescopingFilter, UncompressedTelescopingFilter,
};

macro_rules! sizes {
    ($filter:ident) => {
        for capacity in [1, 45, 46, 47, 50, 1_000, 99_991] {
            for rate in [0.5, 0.1, 1.0 / 256.0, 1e-5, 1e-9] {
                for load in [0.01, 0.5, 0.95, 0.99] {
                    let builder =
                        $filter::builder().capacity(capacity).false_positive_rate(rate).max_load(load);
                    let size = builder.size_in_bits().unwrap();
                    assert_eq!(builder.build().unwrap().stats().bits, size, "{capacity} {rate} {load}");
                }
            }
        }
        let builder = $filter::builder();
        assert_eq!(builder.size_in_bits(), Err(BuildError::ZeroCapacity));
        assert!(builder.capacity(1 << 44).false_positive_rate(1e-9).size_in_bits().is_err());
    };
}

#[test]
fn the_size_is_known_before() {
    sizes!(TelescopingFilter);
    sizes!(ExtensionFilter);
    sizes!(UncompressedTelescopingFilter);
}

#[test]
fn filters_can_be_shared_between_threads() {
    fn assert_send_and_sync<T: Send + Sync>() {}
    assert_send_and_sync::<TelescopingFilter>();
    assert_send_and_sync::<ExtensionFilter>();
    assert_send_and_sync::<UncompressedTelescopingFilter>();
}

#[test]
fn equality_sees_keys_repairs_and_parameters() {
    let build = |seed: u64| TelescopingFilter::builder().capacity(100).seed(seed).build().unwrap();
    let mut remote = MemoryRemote::new();
    let mut filter = build(1);
    assert!(filter == build(1) && filter != build(2));
    (0..90_u64).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    let same = filter.clone();
    assert!(filter == same && filter != build(1));
    let stranger = (1_000_u64..).find(|key| filter.contains(key)).unwrap();
    assert!(filter.adapt(&stranger, &mut remote).unwrap().is_fixed());
    assert!(filter != same, "a repair was overlooked");
    let mut grown = same.clone();
    grown.grow(&mut remote).unwrap();
    assert!(grown != same);
    let resetting = TelescopingFilter::builder().capacity(100).seed(1_u64).overflow(Overflow::Reset);
    assert!(resetting.build().unwrap() != build(1));
    assert!(TelescopingFilter::builder().capacity(100).seed(1_u64).growable().build().unwrap() != build(1));
}
