//! Catches: a fingerprint that loses its way back to its first bin; a refused insertion that leaves traces.

use std::collections::BTreeMap;

use crate::testing::Random;
use crate::{CuckooFilter, Filter, Insert, Remove};

#[test]
fn random_operations_agree_with_an_exact_multiset() {
    let mut refusals = 0;
    for (tables, bin_slots, capacity) in
        [(2, 4, 1), (2, 4, 10), (2, 4, 60), (4, 1, 40), (2, 1, 30), (3, 2, 50), (2, 8, 100)]
    {
        let builder = CuckooFilter::builder().capacity(capacity).shape(tables, bin_slots);
        let mut filter = builder.slot_bits(24).seed(3_u64).build().unwrap();
        let mut random = Random::new(capacity as u64);
        let mut model: BTreeMap<u32, usize> = BTreeMap::new();
        for _ in 0..4000 {
            let key = random.below(2 * capacity as u64) as u32;
            if random.below(5) < 3 {
                let before: Vec<u64> = (0..filter.stats().slots).map(|slot| filter.raw(slot)).collect();
                if filter.insert(&key).is_ok() {
                    *model.entry(key).or_default() += 1;
                } else {
                    refusals += 1;
                    assert!((0..before.len()).all(|slot| filter.raw(slot) == before[slot]));
                }
            } else {
                // With 24 bits and a given seed, no two of these keys share a fingerprint.
                let count = model.entry(key).or_default();
                assert_eq!(filter.remove(&key), Ok(*count > 0));
                *count = count.saturating_sub(1);
            }
            filter.verify().unwrap();
            assert_eq!(filter.len(), model.values().sum::<usize>());
            assert!(model.iter().all(|(key, &count)| filter.contains(key) || count == 0));
        }
    }
    assert!(refusals > 100, "{refusals} refusals");
}
