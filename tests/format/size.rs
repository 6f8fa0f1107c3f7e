//! Catches: files that are larger than the filters in memory, whatever was repaired.

use besom::bloom::BloomFilter;
use besom::cascade::Cascade;
use besom::cuckoo::AdaptiveCuckooFilter;
use besom::format::{Persist, WriteOptions};
use besom::quotient::QuotientFilter;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::{Adaptive, ExtensionFilter, MemoryRemote, Table, TelescopingFilter, cuckoo};

const KEYS: u64 = 20_000;

/// Repairs false positives until there were this many repairs, or until a filter that forgets has had enough queries for them.
fn repair<F: Adaptive>(
    filter: &mut F,
    remote: &mut MemoryRemote,
    strangers: &mut std::ops::RangeFrom<u64>,
    repairs: u64,
) {
    let (mut done, mut answers) = (0, Vec::new());
    while done < repairs {
        let batch: Vec<u64> = strangers.take(4096).collect();
        filter.contains_many(&batch, &mut answers);
        for (key, _) in batch.iter().zip(&answers).filter(|(_, accepted)| **accepted) {
            done += u64::from(filter.adapt(key, remote).unwrap().is_fixed());
        }
    }
}

fn check<F: Adaptive + Persist>(name: &str, mut filter: F) {
    let (mut remote, mut strangers) = (MemoryRemote::new(), 1_u64 << 40..);
    (0..KEYS).for_each(|key| assert!(filter.insert(&key, &mut remote).unwrap()));
    for repairs in [0, 1, 3] {
        repair(&mut filter, &mut remote, &mut strangers, repairs * KEYS);
        let (file, memory) = (filter.to_bytes(&WriteOptions::new()).unwrap().len() * 8, filter.stats().bits);
        let ratio = file as f64 / memory as f64;
        println!(
            "{name}, {repairs} repairs a key more: {:.2} bits a key, {ratio:.3} of memory",
            file as f64 / KEYS as f64
        );
        assert!(
            ratio <= 1.05,
            "{name} after {repairs} repairs a key: {file} bits in a file, {memory} in memory"
        );
    }
}

#[test]
fn files_are_as_small_as_memory_with_0_1_and_4_repairs_a_key() {
    let (capacity, seed) = (KEYS as usize, 5_u64);
    // Small rates take many queries.
    let rates: &[f64] =
        if std::env::var_os("BESOM_FULL").is_some() { &[1.0 / 16.0, 1.0 / 256.0] } else { &[1.0 / 16.0] };
    for &rate in rates {
        let telescoping =
            TelescopingFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
        check("telescoping", telescoping.build().unwrap());
        let plain = UncompressedTelescopingFilter::builder().capacity(capacity).false_positive_rate(rate);
        check("telescoping, a byte a value", plain.seed(seed).build().unwrap());
        for table in [Table::Quotient, Table::Bins] {
            let extension =
                ExtensionFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed);
            check("extension", extension.table(table).build().unwrap());
        }
        let cyclic = AdaptiveCuckooFilter::<cuckoo::Cyclic<2>>::builder().capacity(capacity);
        check("cyclic", cyclic.false_positive_rate(rate).seed(seed).build().unwrap());
        let cuckooing = AdaptiveCuckooFilter::<cuckoo::Cuckooing>::builder().capacity(capacity);
        check("cuckooing", cuckooing.false_positive_rate(rate).seed(seed).build().unwrap());
    }
    let cascade = Cascade::<QuotientFilter>::builder().capacity(capacity).levels(3);
    check("cascade", cascade.false_positive_rate(1.0 / 64.0).seed(seed).build().unwrap());
    let cascade = Cascade::<BloomFilter>::builder().capacity(capacity).levels(3);
    check("adaptive Bloom", cascade.false_positive_rate(1.0 / 64.0).seed(seed).build().unwrap());
}
