//! What a filter saves in front of a bucket: requests, and their price.
//!
//! ```sh
//! cargo run --profile dev -p besom-store --features slatedb --example slate_benefit -- 1000000 5000000 8
//! ```
//!
//! The arguments are keys, queries, and megabytes of cache.
//!
//! Keys that are stored, then queries for others: Zipf(1.1) ones first, then those of an attacker who repeats whatever got
//! through. Counted are the look-ups that reach the database, and the requests that reach the bucket, repairs included.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use besom::testing::Random;
use besom::{BuildError, ExtensionFilter, KeyHasher, Seed, Table, TelescopingFilter, Xxh3};
use besom_store::slate::slatedb::Db;
use besom_store::slate::slatedb::config::{GarbageCollectorOptions, Settings};
use besom_store::slate::slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use besom_store::slate::slatedb::object_store::local::LocalFileSystem;
use besom_store::slate::slatedb::object_store::path::Path;
use besom_store::slate::slatedb::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as Answer,
};
use besom_store::slate::{SlateOptions, SlateStore};
use besom_store::{Batch, Durability, Options, StoreFilter};
use futures_util::stream::BoxStream;

type Failure = Box<dyn Error>;

/// Dollars for a request: the list price of S3 Standard in us-east-1.
const GET_PRICE: f64 = 0.0004 / 1000.0;
const PUT_PRICE: f64 = 0.005 / 1000.0;

const VALUE_BYTES: usize = 100;
/// Keys that are asked for and not stored.
const UNIVERSE: usize = 1 << 22;
/// Keys that the attacker repeats, and how often.
const ATTACK: usize = 1000;
const ROUNDS: usize = 10;
/// Queries that do without a filter, since each takes so long.
const UNFILTERED: usize = 20_000;

/// A bucket that counts its requests.
#[derive(Debug)]
struct Counted {
    inner: LocalFileSystem,
    gets: AtomicU64,
    puts: AtomicU64,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Counted {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Answer<PutResult> {
        self.puts.fetch_add(1, Relaxed);
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Answer<Box<dyn MultipartUpload>> {
        self.puts.fetch_add(1, Relaxed);
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Answer<GetResult> {
        self.gets.fetch_add(1, Relaxed);
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Answer<Path>>) -> BoxStream<'static, Answer<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Answer<ObjectMeta>> {
        self.puts.fetch_add(1, Relaxed);
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Answer<ListResult> {
        self.puts.fetch_add(1, Relaxed);
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Answer<()> {
        self.puts.fetch_add(1, Relaxed);
        self.inner.copy_opts(from, to, options).await
    }
}

/// Random ranks, the first ones more often: rank r in proportion to r^-1.1.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(ranks: usize) -> Self {
        let mut sums: Vec<f64> = (1..=ranks)
            .scan(0.0, |sum, rank| {
                *sum += (rank as f64).powf(-1.1);
                Some(*sum)
            })
            .collect();
        let total = sums[ranks - 1];
        sums.iter_mut().for_each(|sum| *sum /= total);
        Self(sums)
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let at = random.next() as f64 / 2f64.powi(64);
        self.0.partition_point(|&sum| sum < at) as u64
    }
}

fn member(key: u64) -> [u8; 16] {
    (u128::from(key) << 64 | 1).to_be_bytes()
}

fn stranger(key: u64) -> [u8; 16] {
    (u128::from(key) << 64 | 2).to_be_bytes()
}

/// What answers queries.
enum Contender<F: StoreFilter> {
    Unfiltered(Db),
    Bloom(Db, fastbloom::BloomFilter),
    Guarded(SlateStore<F>),
}

impl<F: StoreFilter> Contender<F> {
    /// Asks for a key that is not stored. Whether the database was asked.
    async fn ask(&self, key: &[u8]) -> Result<bool, Failure> {
        let db = match self {
            Self::Guarded(store) => {
                let passed = store.may_contain_key(key);
                assert!(store.get(key).await?.is_none());
                return Ok(passed);
            }
            Self::Bloom(_, filter) if !filter.contains(key) => return Ok(false),
            Self::Bloom(db, _) | Self::Unfiltered(db) => db,
        };
        // Rows are in the order of hashes.
        let hash = Xxh3::with_seed(Seed::from(1_u64)).digest(key).hi.to_be_bytes();
        assert!(db.get([b"d", &hash[..], key].concat()).await?.is_none());
        Ok(true)
    }

    async fn close(self) -> Result<(), Failure> {
        match self {
            Self::Guarded(store) => store.close().await?,
            Self::Unfiltered(db) | Self::Bloom(db, _) => db.close().await?,
        }
        Ok(())
    }
}

struct Bench {
    bucket: Arc<Counted>,
    keys: u64,
    queries: usize,
    zipf: Zipf,
    /// The cache of blocks, indexes and filters of tables, in bytes.
    cache: u64,
}

impl Bench {
    fn settings() -> Settings {
        let garbage =
            GarbageCollectorOptions { boundary_files_enabled: false, ..GarbageCollectorOptions::default() };
        Settings {
            garbage_collector_options: Some(garbage),
            l0_max_ssts: 64,
            l0_max_ssts_per_key: 64,
            l0_sst_size_bytes: 16 << 20,
            ..Settings::default()
        }
    }

    fn cache(&self) -> Arc<MokaCache> {
        Arc::new(MokaCache::new_with_opts(MokaCacheOptions {
            max_capacity: self.cache,
            ..Default::default()
        }))
    }

    async fn guarded<F: StoreFilter>(
        &self,
        make: impl Fn(usize, Seed) -> Result<F, BuildError> + Send + Sync + 'static,
    ) -> Result<SlateStore<F>, Failure> {
        let options = SlateOptions::new().settings(Self::settings());
        let options = options.store(Options::new().durability(Durability::Buffered));
        let start = Instant::now();
        let options = options.cache(self.cache(), 1);
        let store = SlateStore::open("db", self.bucket.clone(), make, options).await?;
        eprintln!("opened in {:?}, filter from {:?}", start.elapsed(), store.opening());
        Ok(store)
    }

    async fn unguarded(&self) -> Result<Db, Failure> {
        let builder = Db::builder("db", self.bucket.clone()).with_settings(Self::settings());
        Ok(builder.with_db_cache(self.cache(), 1).build().await?)
    }

    async fn load<F: StoreFilter>(&self, store: &SlateStore<F>) -> Result<(), Failure> {
        let start = Instant::now();
        let value = [7; VALUE_BYTES];
        for first in (0..self.keys).step_by(2000) {
            let mut batch = Batch::new();
            for key in first..self.keys.min(first + 2000) {
                batch.insert(&member(key), &value);
            }
            store.write(&batch).await?;
        }
        store.flush().await?;
        let rate = self.keys as f64 / start.elapsed().as_secs_f64();
        eprintln!("{} keys stored, {rate:.0} a second", self.keys);
        Ok(())
    }

    /// Runs one contender and prints its line. Reads in a million queries, after the first million.
    async fn run<F: StoreFilter>(&self, name: &str, contender: Contender<F>) -> Result<(), Failure> {
        let unfiltered = matches!(contender, Contender::Unfiltered(_));
        let queries = if unfiltered { self.queries.min(UNFILTERED) } else { self.queries };
        let warm = if unfiltered { 0 } else { queries / 5 };
        let mut random = Random::new(99);
        let (mut reads, mut gets, mut puts) = (0_u64, 0, 0);
        let start = Instant::now();
        for query in 0..queries {
            if query == warm {
                (reads, gets, puts) = (0, self.bucket.gets.load(Relaxed), self.bucket.puts.load(Relaxed));
            }
            reads += u64::from(contender.ask(&stranger(self.zipf.draw(&mut random))).await?);
        }
        let took = start.elapsed();
        gets = self.bucket.gets.load(Relaxed) - gets;
        puts = self.bucket.puts.load(Relaxed) - puts;
        let per_million = 1e6 / (queries - warm) as f64;
        let price = (gets as f64 * GET_PRICE + puts as f64 * PUT_PRICE) * per_million;
        let (attacked, attack_gets) = self.attack(&contender, &mut random).await?;
        println!(
            "| {name} | {:.0} | {:.0} | {price:.4} | {:.1} | {attacked:.4} | {attack_gets:.3} |",
            reads as f64 * per_million,
            gets as f64 * per_million,
            took.as_secs_f64() * 1e6 / queries as f64,
        );
        contender.close().await
    }

    /// Finds keys that get through, and repeats them. Reads and requests per repeated query.
    async fn attack<F: StoreFilter>(
        &self,
        contender: &Contender<F>,
        random: &mut Random,
    ) -> Result<(f64, f64), Failure> {
        let mut found = Vec::new();
        while found.len() < ATTACK {
            let key = stranger(UNIVERSE as u64 + random.below(1 << 40));
            if contender.ask(&key).await? {
                found.push(key);
            }
        }
        let (gets, mut reads) = (self.bucket.gets.load(Relaxed), 0);
        for _ in 0..ROUNDS {
            for key in &found {
                reads += usize::from(contender.ask(key).await?);
            }
        }
        let gets = self.bucket.gets.load(Relaxed) - gets;
        let queries = (ATTACK * ROUNDS) as f64;
        Ok((reads as f64 / queries, gets as f64 / queries))
    }

    async fn all(&self) -> Result<(), Failure> {
        let capacity = self.keys as usize;
        let telescoping = move |_, seed| TelescopingFilter::builder().capacity(capacity).seed(seed).build();
        let store = self.guarded(telescoping).await?;
        self.load(&store).await?;
        let bits = store.metrics().bits_per_key;
        store.close().await?;
        // Compaction goes on for a while.
        let db = self.unguarded().await?;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let manifest = db.manifest();
        let tables = (manifest.l0().len(), manifest.compacted().len());
        eprintln!(
            "{} tables at level 0, {} sorted runs; filters of {bits:.2} bits per key",
            tables.0, tables.1
        );
        println!(
            "| filter | reads per 10^6 | GETs per 10^6 | $ per 10^6 | µs per query | attack: reads per query | GETs |"
        );
        println!("|---|---|---|---|---|---|---|");
        self.run("none", Contender::<TelescopingFilter>::Unfiltered(db)).await?;
        let mut bloom = fastbloom::BloomFilter::with_num_bits((bits * self.keys as f64) as usize)
            .seed(&1)
            .expected_items(capacity);
        for key in 0..self.keys {
            bloom.insert(&member(key)[..]);
        }
        self.run("fastbloom", Contender::<TelescopingFilter>::Bloom(self.unguarded().await?, bloom)).await?;
        self.run("telescoping", Contender::Guarded(self.guarded(telescoping).await?)).await?;
        let extension = move |_, seed| {
            ExtensionFilter::builder().capacity(capacity).table(Table::Quotient).seed(seed).build()
        };
        self.run("extension-quotient", Contender::Guarded(self.guarded(extension).await?)).await
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (keys, queries, cache) = (number(1_000_000)?, number(5_000_000)? as usize, number(8)? << 20);
    let folder = tempfile::tempdir()?;
    let inner = LocalFileSystem::new_with_prefix(folder.path())?;
    let bucket = Arc::new(Counted { inner, gets: AtomicU64::new(0), puts: AtomicU64::new(0) });
    let bench = Bench { bucket, keys, queries, zipf: Zipf::new(UNIVERSE), cache };
    let megabytes = keys as f64 * (1 + 16 + VALUE_BYTES) as f64 / 1e6;
    eprintln!("{keys} keys, {megabytes:.0} MB of data, {} MB of cache, {queries} queries", cache >> 20);
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(bench.all())
}
