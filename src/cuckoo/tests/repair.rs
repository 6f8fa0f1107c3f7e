//! Catches: two chains of one repair that get in each other's way.

use crate::cuckoo::{AdaptiveCuckooFilter, Cuckooing};
use crate::{Adaptive, Filter, MemoryRemote};

/// With two bits a fingerprint and hardly a free slot, a query collides with several keys at once, and the chain that
/// moves the first often moves the others as well.
#[test]
fn a_key_that_another_chain_has_moved_is_left_alone() {
    let mut repairs = 0;
    for seed in 0..60_u64 {
        for (tables, slots_per_bin, keys) in [(4, 1, 27_u32), (2, 4, 31), (3, 2, 29)] {
            let builder = AdaptiveCuckooFilter::<Cuckooing>::builder().shape(tables, slots_per_bin);
            let mut filter = builder.capacity(28).slot_bits(2).seed(seed).build().unwrap();
            filter.capacity = filter.table.layout().slots();
            let mut remote = MemoryRemote::new();
            let stored: Vec<u32> =
                (0..keys).filter(|key| filter.insert(key, &mut remote).unwrap_or(false)).collect();
            for query in 1000..1040_u32 {
                repairs += u32::from(filter.adapt(&query, &mut remote).unwrap().is_fixed());
                assert!(stored.iter().all(|key| filter.contains(key)), "a key is lost");
                filter.verify().unwrap();
                filter.verify_remote(&mut remote).unwrap();
            }
        }
    }
    assert!(repairs > 1000, "{repairs} repairs");
}
