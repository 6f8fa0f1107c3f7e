//! What a filter that adapts saves: useless reads and time, beside no filter and a Bloom filter of the same size.
//!
//! ```text
//! cargo run --release -p besom-store --example benefit -- [keys] [queries]
//! ```
//!
//! A million keys with values of 100 bytes, in a redb file with a cache far smaller than that. Then five million queries of keys that
//! are not there, by Zipf's law with exponent 1.1 over four million of them; then an attacker, who asks a million times and repeats
//! whatever got through to the store. Numbers are counts of queries that reached the store.

use std::collections::VecDeque;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use besom::testing::Random;
use besom::{BuildError, ExtensionFilter, Seed, Table, TelescopingFilter};
use besom_store::{Batch, Durability, Layout, Opening, RedbStore, RedbStoreBuilder, StoreFilter};
use redb::{Builder, Database, ReadableDatabase, TableDefinition};

/// redb's own cache, in bytes.
const CACHE: usize = 32 << 20;
const VALUE: usize = 100;
const UNIVERSE: usize = 1 << 22;
/// Queries in a phase of the report.
const PHASE: usize = 1_000_000;
/// Where the store keeps its data, by key.
const DATA: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("data");

fn member(number: u64) -> [u8; 16] {
    key(number, 1)
}

fn stranger(number: u64) -> [u8; 16] {
    key(number, 2)
}

fn key(number: u64, kind: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&Random::new(number << 2 | kind).next().to_le_bytes());
    bytes[8..].copy_from_slice(&(number << 2 | kind).to_le_bytes());
    bytes
}

/// Something that is asked. Whether the question reached the store.
type Ask<'a> = dyn FnMut(&[u8]) -> Result<bool, Box<dyn Error>> + 'a;

/// What was counted.
struct Row {
    name: String,
    bits: f64,
    /// Useless reads of each million queries.
    phases: Vec<usize>,
    seconds: f64,
    attack: usize,
    attack_seconds: f64,
}

impl Row {
    fn measure(name: &str, bits: f64, queries: &[u32], ask: &mut Ask<'_>) -> Result<Self, Box<dyn Error>> {
        let start = Instant::now();
        let mut phases = Vec::new();
        for phase in queries.chunks(PHASE) {
            let mut reads = 0;
            for &query in phase {
                reads += usize::from(ask(&stranger(query.into()))?);
            }
            phases.push(reads);
        }
        let seconds = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let attack = attack(ask)?;
        let row = Self {
            name: name.into(),
            bits,
            phases,
            seconds,
            attack,
            attack_seconds: start.elapsed().as_secs_f64(),
        };
        row.print();
        Ok(row)
    }

    /// Useless reads per million queries behind the first million.
    fn later(&self) -> f64 {
        let later = &self.phases[1.min(self.phases.len() - 1)..];
        later.iter().sum::<usize>() as f64 / later.len() as f64
    }

    fn print(&self) {
        let phases: String = self.phases.iter().map(|reads| format!("{reads:>9}")).collect();
        let Self { name, bits, seconds, attack, attack_seconds, .. } = self;
        println!("{name:<13}{bits:>6.2}{phases}{seconds:>9.1} s{attack:>10}{attack_seconds:>9.1} s");
    }
}

/// Asks a million times: what got through is asked again for as long as it does, and otherwise something new.
fn attack(ask: &mut Ask<'_>) -> Result<usize, Box<dyn Error>> {
    let (mut through, mut fresh, mut reads) = (VecDeque::new(), UNIVERSE as u64, 0);
    for _ in 0..PHASE {
        let number = through.pop_front().unwrap_or_else(|| {
            fresh += 1;
            fresh
        });
        if ask(&stranger(number))? {
            reads += 1;
            through.push_back(number);
        }
    }
    Ok(reads)
}

/// Numbers by Zipf's law.
fn zipf(count: usize, exponent: f64, seed: u64) -> Vec<u32> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=UNIVERSE)
        .map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        })
        .collect();
    let mut random = Random::new(seed);
    let draw = |_| {
        let point = random.next() as f64 / 2_f64.powi(64) * sum;
        sums.partition_point(|&sum| sum < point) as u32
    };
    (0..count).map(draw).collect()
}

/// Data by key, so that those without a guard find it.
fn builder(cache: usize) -> RedbStoreBuilder {
    RedbStore::builder().layout(Layout::Ordered).cache_size(cache).durability(Durability::Buffered)
}

fn fill(path: &Path, keys: u64) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let capacity = usize::try_from(keys)?;
    let make = move |_, seed| TelescopingFilter::builder().capacity(capacity).seed(seed).build();
    let store = builder(256 << 20).open(path, make)?;
    let mut batch = Batch::new();
    for number in 0..keys {
        batch.insert(&member(number), &[number as u8; VALUE]);
        if batch.len() == 20_000 || number + 1 == keys {
            store.write(&batch)?;
            batch.clear();
        }
    }
    store.snapshot()?;
    println!("{keys} keys in batches of 20000: {:.0} a second", keys as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

/// Opens the store with a filter: builds it, saves it, and opens it again with the snapshot.
fn opened<F: StoreFilter>(
    path: &Path,
    make: impl Fn(usize, Seed) -> Result<F, BuildError> + Clone + Send + Sync + 'static,
) -> Result<RedbStore<F>, Box<dyn Error>> {
    let store = builder(CACHE).open(path, make.clone())?;
    if let Opening::Built { keys, seconds, .. } = store.opening() {
        println!("filter built from the keys: {:.0} keys a second", *keys as f64 / seconds);
    }
    store.snapshot()?;
    drop(store);
    // The best of some: other processes have a say in the rest.
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        let store = builder(CACHE).open(path, make.clone())?;
        assert!(matches!(store.opening(), Opening::Snapshot));
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("opened with its snapshot in {:.1} ms", best * 1e3);
    Ok(builder(CACHE).open(path, make)?)
}

fn guarded<F: StoreFilter>(
    name: &str,
    path: &Path,
    queries: &[u32],
    make: impl Fn(usize, Seed) -> Result<F, BuildError> + Clone + Send + Sync + 'static,
) -> Result<Row, Box<dyn Error>> {
    let store = opened(path, make)?;
    let bits = store.with_filter(|filter| filter.stats().bits_per_key());
    let row = Row::measure(name, bits, queries, &mut |key| {
        let reaches = store.may_contain_key(key);
        assert!(store.get(key)?.is_none());
        Ok(reaches)
    })?;
    let metrics = store.metrics();
    println!(
        "  {} repairs, {} failed, {:.2} bits per key in the end",
        metrics.adaptations, metrics.failed_adaptations, metrics.bits_per_key
    );
    for number in (0..store.len()?).step_by(997) {
        assert!(store.contains_key(&member(number))?, "a key was lost");
    }
    Ok(row)
}

/// A look-up without a guard.
fn read(database: &Database, key: &[u8]) -> Result<bool, Box<dyn Error>> {
    let table = database.begin_read()?.open_table(DATA)?;
    assert!(table.get(key)?.is_none());
    Ok(true)
}

fn bloom(keys: u64, bits: usize, seed: u128) -> fastbloom::BloomFilter {
    let mut bloom = fastbloom::BloomFilter::with_num_bits(bits).seed(&seed).expected_items(keys as usize);
    for number in 0..keys {
        bloom.insert(&member(number));
    }
    bloom
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let keys: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let count: usize = arguments.next().map_or(Ok(5_000_000), |text| text.parse())?;
    let directory: PathBuf = std::env::temp_dir().join(format!("besom-benefit-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("store.redb");
    let done = run(&path, keys, count);
    std::fs::remove_dir_all(&directory)?;
    done
}

fn run(path: &Path, keys: u64, count: usize) -> Result<(), Box<dyn Error>> {
    fill(path, keys)?;
    let size = std::fs::metadata(path)?.len();
    println!("file of {} MiB, cache of {} MiB\n", size >> 20, CACHE >> 20);
    let queries = zipf(count, 1.1, 7);
    let capacity = usize::try_from(keys)?;
    println!("useless reads    bits  by million queries{:>27}{:>20}", "time", "attack   time");
    let telescoping = guarded("telescoping", path, &queries, move |_, seed| {
        TelescopingFilter::builder().capacity(capacity).seed(seed).build()
    })?;
    let extension = guarded("extension-quotient", path, &queries, move |_, seed| {
        ExtensionFilter::builder().capacity(capacity).table(Table::Quotient).seed(seed).build()
    })?;

    let database = Builder::new().set_cache_size(CACHE).open(path)?;
    let bits = (telescoping.bits * keys as f64) as usize;
    let filter = bloom(keys, bits, 1);
    Row::measure("fastbloom", telescoping.bits, &queries, &mut |key| {
        Ok(filter.contains(&<[u8; 16]>::try_from(key)?) && read(&database, key)?)
    })?;
    Row::measure("none", 0.0, &queries, &mut |key| read(&database, key))?;
    // Which of the frequent queries a Bloom filter lets through is a matter of luck, so take the mean.
    let later = &queries[PHASE.min(queries.len() - 1)..];
    let seeds = 8;
    let through: usize = (1..=seeds)
        .map(|seed| {
            let filter = bloom(keys, bits, seed);
            later.iter().filter(|&&query| filter.contains(&stranger(query.into()))).count()
        })
        .sum();
    let mean = through as f64 / seeds as f64 / later.len() as f64 * 1e6;
    println!("\nbehind the first million, per million queries: fastbloom {mean:.0} (mean of {seeds} seeds)");
    for row in [telescoping, extension] {
        println!("  {:<12}{:>8.0}, {:.3} times that", row.name, row.later(), row.later() / mean);
    }
    Ok(())
}
