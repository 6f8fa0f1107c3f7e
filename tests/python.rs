//! Catches: keys whose bytes differ between Rust and Python. `crates/besom-py/tests/python/test_files.py` builds the same filter
//! in Python and compares it with the same file, which Python has written.

use std::path::Path;

use besom::any::{AnyFilter, Config};
use besom::format::{Persist, ReadOptions, WriteOptions};
use besom::{Adaptive, Filter, Key, MemoryRemote, SipHash};

#[test]
fn a_filter_of_python_is_the_filter_of_the_same_keys_here() {
    let config: Config = "telescoping:capacity=300,rate=1/256,seed=0xbe50".parse().unwrap();
    let mut filter = AnyFilter::<SipHash>::build(&config).unwrap();
    let mut remote = MemoryRemote::new();
    let mut insert = |key: &[u8]| assert!(filter.insert(key, &mut remote).unwrap());
    (-50..50_i64).for_each(|key| key.with_bytes(&mut insert));
    (0..50).for_each(|number| format!("ключ {number}").with_bytes(&mut insert));
    (0..50_u64).for_each(|number| (format!("user {number}"), number).with_bytes(&mut insert));
    (0..50_u8).for_each(|number| [number].with_bytes(&mut insert));

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/python/telescoping.besom");
    let (read, _) = AnyFilter::<SipHash>::load(&path, &ReadOptions::new()).unwrap();
    assert!((-50..50_i64).all(|key| read.contains(&key)));
    assert!((0..50_u64).all(|number| read.contains(&(format!("user {number}"), number))));
    assert_eq!(filter.to_bytes(&WriteOptions::new()).unwrap(), std::fs::read(path).unwrap());
}
