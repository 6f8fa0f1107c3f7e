//! What a store costs and saves beside its engine alone, and beside the engine with a Bloom filter of the same size: one table for
//! redb, fjall and, with its feature, SlateDB on a folder.
//!
//! ```text
//! cargo run --release -p besom-fjall --features slatedb-example --example engines -- [keys] [bytes of a value] [engine]
//! ```
//!
//! Every row does the same: keys of 16 bytes in batches of 1,000, more keys one by one (buffered and durable), overwrites, removals,
//! look-ups of keys that are there and of keys that are not. Numbers are thousands of operations a second, on the wall clock, so run
//! it on a machine that does nothing else. The engine alone has rows in the order of hashes, as the hashed layout does.

#[cfg(feature = "slatedb-example")]
mod slate;

use std::error::Error;
use std::ops::Deref;
use std::path::Path;
use std::time::Instant;

use besom::testing::Random;
use besom::{BuildError, KeyHasher, Seed, TelescopingFilter, Xxh3};
use besom_fjall::Fjall;
use besom_store::engine::{Engine, Table, View, Write};
use besom_store::{Batch, Durability, Layout, Options, Redb, Store, wait};

type Failure = Box<dyn Error>;

const BATCH: u64 = 1_000;
/// Commits that are synced: they take long.
const DURABLE: u64 = 50;

fn key(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&Random::new(number).next().to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// What is measured: a key-value store of some kind. A change without a value is a removal.
trait Subject {
    fn write(&mut self, changes: &[(u64, Option<&[u8]>)], durability: Durability) -> Result<(), Failure>;
    /// Whether the key is there, and whether its engine was asked.
    fn get(&mut self, number: u64) -> Result<(bool, bool), Failure>;
    fn filter_bits(&self) -> usize;
}

/// An engine alone, as far as it is needed.
trait Alone {
    fn write(&self, rows: Vec<Write>, durability: Durability) -> Result<(), Failure>;
    fn has(&self, row: &[u8]) -> Result<bool, Failure>;
}

struct OfEngine<E>(E);

impl<E: Engine> Alone for OfEngine<E> {
    fn write(&self, rows: Vec<Write>, durability: Durability) -> Result<(), Failure> {
        wait(self.0.write(rows, durability))?;
        Ok(())
    }

    fn has(&self, row: &[u8]) -> Result<bool, Failure> {
        Ok(wait(self.0.view()?.get(Table::Data, row))?.is_some())
    }
}

/// An engine, with a Bloom filter in front of it or without.
struct Plain<A> {
    engine: A,
    hasher: Xxh3,
    bloom: Option<fastbloom::BloomFilter>,
}

impl<A> Plain<A> {
    /// With a Bloom filter of this many bits, or with none.
    fn new(engine: A, bloom: Option<usize>, keys: u64) -> Self {
        let bloom = bloom
            .map(|bits| fastbloom::BloomFilter::with_num_bits(bits).seed(&1).expected_items(keys as usize));
        Self { engine, hasher: Xxh3::with_seed(Seed::from(1_u64)), bloom }
    }

    fn row(&self, number: u64) -> Vec<u8> {
        let key = key(number);
        [&self.hasher.digest(&key).hi.to_be_bytes()[..], &key].concat()
    }
}

impl<A: Alone> Subject for Plain<A> {
    fn write(&mut self, changes: &[(u64, Option<&[u8]>)], durability: Durability) -> Result<(), Failure> {
        let write = |&(number, value): &(u64, Option<&[u8]>)| {
            let value = value.map(<[u8]>::to_vec);
            Write { table: Table::Data, key: self.row(number), value }
        };
        let mut writes: Vec<Write> = changes.iter().map(write).collect();
        writes.sort_by(|one, two| one.key.cmp(&two.key));
        if let Some(bloom) = &mut self.bloom {
            for (number, _) in changes {
                bloom.insert(&key(*number));
            }
        }
        self.engine.write(writes, durability)
    }

    fn get(&mut self, number: u64) -> Result<(bool, bool), Failure> {
        if self.bloom.as_ref().is_some_and(|bloom| !bloom.contains(&key(number))) {
            return Ok((false, false));
        }
        Ok((self.engine.has(&self.row(number))?, true))
    }

    fn filter_bits(&self) -> usize {
        self.bloom.as_ref().map_or(0, fastbloom::BloomFilter::num_bits)
    }
}

/// A store of ours, however it is held.
struct Guarded<S>(S);

impl<E: Engine, S: Deref<Target = Store<TelescopingFilter, E>>> Subject for Guarded<S> {
    fn write(&mut self, changes: &[(u64, Option<&[u8]>)], durability: Durability) -> Result<(), Failure> {
        let mut batch = Batch::new();
        for &(number, value) in changes {
            match value {
                Some(value) => batch.insert(&key(number), value),
                None => batch.remove(&key(number)),
            };
        }
        Ok(wait(self.0.write_with(&batch, durability))?)
    }

    fn get(&mut self, number: u64) -> Result<(bool, bool), Failure> {
        let asked = self.0.may_contain_key(&key(number));
        Ok((wait(self.0.get(&key(number)))?.is_some(), asked))
    }

    fn filter_bits(&self) -> usize {
        self.0.with_filter(|filter| besom::Filter::stats(filter).bits)
    }
}

/// Makes the filter of all stores.
fn maker(keys: u64) -> impl Fn(usize, Seed) -> Result<TelescopingFilter, BuildError> + Copy {
    move |_, seed| TelescopingFilter::builder().capacity(keys as usize * 11 / 10 + 100).seed(seed).build()
}

/// Thousands of operations a second.
fn rate(count: u64, act: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let start = Instant::now();
    act()?;
    Ok(count as f64 / start.elapsed().as_secs_f64() / 1e3)
}

fn measure(name: &str, subject: &mut dyn Subject, keys: u64, value: &[u8]) -> Result<(), Failure> {
    let (few, mut random) = (keys / 20, Random::new(1));
    let batched = rate(keys, || {
        (0..keys).step_by(BATCH as usize).try_for_each(|from| {
            let some: Vec<_> = (from..(from + BATCH).min(keys)).map(|number| (number, Some(value))).collect();
            subject.write(&some, Durability::Buffered)
        })
    })?;
    let mut each = |numbers: Vec<u64>, value: Option<&[u8]>, durability| {
        rate(numbers.len() as u64, || {
            numbers.iter().try_for_each(|&number| subject.write(&[(number, value)], durability))
        })
    };
    let single = each((keys..keys + few).collect(), Some(value), Durability::Buffered)?;
    let durable = each((keys + few..keys + few + DURABLE).collect(), Some(value), Durability::Durable)?;
    let over = each((0..few).map(|_| random.below(keys)).collect(), Some(value), Durability::Buffered)?;
    let gone = each((keys..keys + few).collect(), None, Durability::Buffered)?;
    let present = rate(few, || {
        (0..few).try_for_each(|_| {
            subject.get(random.below(keys)).map(|(found, _)| assert!(found, "a key is lost"))
        })
    })?;
    let mut useless = 0;
    let absent = rate(keys, || {
        // By turns: what comes again is what a repair is for.
        (0..keys).try_for_each(|turn| {
            let (found, asked) = subject.get((1 << 40) + turn % (keys / 4))?;
            useless += u64::from(asked);
            assert!(!found);
            Ok(())
        })
    })?;
    let per_million = useless as f64 * 1e6 / keys as f64;
    let bits = subject.filter_bits() as f64 / keys as f64;
    println!(
        "{name:<18}{batched:>9.1}{single:>9.1}{durable:>9.2}{over:>9.1}{gone:>9.1}{present:>9.1}{absent:>10.1}{per_million:>11.0}{bits:>8.2}"
    );
    Ok(())
}

/// Bytes of a file, or of all files in a folder.
fn size(path: &Path) -> Result<u64, Failure> {
    if path.is_file() {
        return Ok(path.metadata()?.len());
    }
    std::fs::read_dir(path)?.map(|entry| size(&entry?.path())).sum()
}

/// All rows of one engine. `open` opens it in a file or folder.
fn rows<E: Engine>(
    name: &str,
    folder: &Path,
    keys: u64,
    value: &[u8],
    open: fn(&Path) -> Result<E, Failure>,
) -> Result<(), Failure> {
    let make = maker(keys);
    let (mut bits, mut sizes) = (0, String::new());
    for layout in [Layout::Hashed, Layout::Ordered] {
        let path = folder.join(format!("{name} {layout:?}"));
        let options = || Options::new().layout(layout).snapshot_path(path.with_extension("besom"));
        let mut guarded = Guarded(Box::new(wait(Store::open(open(&path)?, make, options()))?));
        measure(&format!("{name} {layout:?}"), &mut guarded, keys, value)?;
        bits = guarded.filter_bits();
        wait(guarded.0.flush())?;
        drop(guarded);
        let start = Instant::now();
        let store = wait(Store::open(open(&path)?, make, options()))?;
        let built = start.elapsed().as_secs_f64() * 1e3;
        wait(store.snapshot())?;
        drop(store);
        let engine = open(&path)?;
        let start = Instant::now();
        drop(wait(Store::open(engine, make, options()))?);
        let loaded = start.elapsed().as_secs_f64() * 1e3;
        sizes += &format!(
            "  {name} {layout:?}: {:.1} MB, opened in {built:.0} ms, with a snapshot in {loaded:.1} ms\n",
            size(&path)? as f64 / 1e6
        );
    }
    for bloom in [true, false] {
        let path = folder.join(format!("{name} {bloom}"));
        let title = if bloom { "+ fastbloom" } else { "alone" };
        let mut plain = Plain::new(OfEngine(open(&path)?), bloom.then_some(bits), keys);
        measure(&format!("{name} {title}"), &mut plain, keys, value)?;
        plain.write(&[(0, Some(value))], Durability::Durable)?;
        drop(plain);
        sizes += &format!("  {name} {title}: {:.1} MB\n", size(&path)? as f64 / 1e6);
    }
    print!("{sizes}");
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let keys: u64 = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let value = vec![7; arguments.next().map_or(Ok(100), |text| text.parse())?];
    let folder = std::env::temp_dir().join(format!("besom-engines-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    println!(
        "{keys} keys, values of {} bytes; thousands a second, useless reads per million look-ups",
        value.len()
    );
    println!(
        "{:<18}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>10}{:>11}{:>8}",
        "", "batched", "single", "durable", "over", "remove", "present", "absent", "useless", "bits"
    );
    let only = arguments.next();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let all = || {
        if wanted("redb") {
            rows("redb", &folder, keys, &value, |path| Ok(Redb::at(path)?))?;
        }
        if wanted("fjall") {
            rows("fjall", &folder, keys, &value, |path| Ok(Fjall::open(path)?))?;
        }
        #[cfg(feature = "slatedb-example")]
        if wanted("slatedb") {
            slate::rows(&folder, keys, &value)?;
        }
        Ok(())
    };
    let done = all();
    std::fs::remove_dir_all(&folder)?;
    done
}
