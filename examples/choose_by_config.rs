//! The filter comes from a line of a configuration file: it is built, used, saved, and read again without knowing its kind.
//!
//! ```text
//! cargo run --release --example choose_by_config -- "telescoping:capacity=50000,rate=1/500"
//! ```

use std::error::Error;

use besom::any::{AnyFilter, Config};
use besom::format::{Persist, ReadOptions, WriteOptions};
use besom::{Adaptive, Filter, MemoryRemote};

fn main() -> Result<(), Box<dyn Error>> {
    let line = std::env::args().nth(1).unwrap_or_else(|| "extension:capacity=50000,rate=1/500".into());
    let config: Config = line.parse()?;
    let (mut filter, mut remote) = (AnyFilter::<besom::Xxh3>::build(&config)?, MemoryRemote::new());
    for key in 0..config.capacity as u64 {
        filter.insert(&key, &mut remote)?;
    }
    let strangers = 1 << 40..(1 << 40) + 100_000_u64;
    let count = |filter: &AnyFilter| strangers.clone().filter(|key| filter.contains(key)).count();
    let before = count(&filter);
    for key in strangers.clone() {
        if filter.contains(&key) {
            filter.adapt(&key, &mut remote)?;
        }
    }
    let bytes = filter.to_bytes(&WriteOptions::new())?;
    let (read, header) = AnyFilter::<besom::Xxh3>::from_bytes(&bytes, &ReadOptions::new())?;
    let bits = read.stats().bits_per_key();
    println!(
        "{config}\n{}: {bits:.2} bits a key, {before} false positives, {} after repairs",
        header.kind,
        count(&read)
    );
    let lost = (0..config.capacity as u64).filter(|key| !read.contains(key)).count();
    if lost == 0 { Ok(()) } else { Err(format!("{lost} keys are lost").into()) }
}
