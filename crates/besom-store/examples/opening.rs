//! How long a store takes to open: without a snapshot of its filter, which is then built from all keys, and with one.
//!
//! ```text
//! cargo run --release -p besom-store --example opening -- [keys] [filter]
//! ```
//!
//! Keys of 16 bytes with values of 100 in a redb file, in the hashed layout. What was just written is in the system's cache. Times
//! are the shortest of three openings without and of five with a snapshot; filters that move keys are built once, since they write
//! an index then.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use besom::cascade::AdaptiveBloomFilter;
use besom::cuckoo::CuckooingFilter;
use besom::testing::Random;
use besom::{BroomFilter, BuildError, ExtensionFilter, Seed, Table, TelescopingFilter};
use besom_store::{Batch, Durability, Opening, RedbStore, StoreFilter};

type Failure = Box<dyn Error>;

fn key(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&Random::new(number).next().to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn fill(path: &Path, keys: u64) -> Result<(), Failure> {
    let make = move |_, seed| TelescopingFilter::builder().capacity(keys as usize).seed(seed).build();
    let store = RedbStore::builder().durability(Durability::Buffered).open(path, make)?;
    for from in (0..keys).step_by(20_000) {
        let mut batch = Batch::new();
        for number in from..keys.min(from + 20_000) {
            batch.insert(&key(number), &[7; 100]);
        }
        store.write(&batch)?;
    }
    Ok(store.flush()?)
}

/// The shortest of some openings, in seconds.
fn shortest(times: u32, mut open: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let mut best = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        open()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn measure<F: StoreFilter>(
    name: &str,
    path: &Path,
    keys: u64,
    make: impl Fn(usize, Seed) -> Result<F, BuildError> + Copy + Send + Sync + 'static,
) -> Result<(), Failure> {
    let snapshot = path.with_extension("besom");
    let open = || RedbStore::builder().snapshot_path(&snapshot).open(path, make);
    let built = shortest(if F::HASH_ADDRESSED { 3 } else { 1 }, || {
        let _ = std::fs::remove_file(&snapshot);
        let store = open()?;
        assert!(matches!(store.opening(), Opening::Built { keys: built, .. } if *built == keys));
        Ok(())
    })?;
    open()?.snapshot()?;
    let loaded = shortest(5, || {
        assert!(matches!(open()?.opening(), Opening::Snapshot));
        Ok(())
    })?;
    let rate = keys as f64 / built / 1e6;
    println!(
        "{name:<22} built in {built:.2} s, {rate:.2} million keys a second; loaded in {:.1} ms",
        loaded * 1e3
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let keys: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let only = arguments.next();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store.redb");
    let start = Instant::now();
    fill(&path, keys)?;
    let (seconds, bytes) = (start.elapsed().as_secs_f64(), std::fs::metadata(&path)?.len());
    println!("{keys} keys stored in {seconds:.1} s, {:.0} MB", bytes as f64 / 1e6);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    // Each takes the number of keys from the store, so that closures are small and can be copied.
    macro_rules! measure {
        ($name:literal, $builder:expr) => {
            if wanted($name) {
                measure($name, &path, keys, |keys, seed| $builder.capacity(keys.max(1)).seed(seed).build())?;
            }
        };
    }
    measure!("telescoping", TelescopingFilter::builder());
    measure!("extension-bins", ExtensionFilter::builder().table(Table::Bins));
    measure!("extension-quotient", ExtensionFilter::builder().table(Table::Quotient));
    measure!("adaptive-bloom", AdaptiveBloomFilter::builder());
    measure!("broom-bins", BroomFilter::builder().table(Table::Bins));
    measure!("broom-quotient", BroomFilter::builder().table(Table::Quotient));
    measure!("cuckooing", CuckooingFilter::builder());
    Ok(())
}
