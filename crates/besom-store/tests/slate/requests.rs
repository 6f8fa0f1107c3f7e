//! Catches: a repair that reads a block of every table, of which one or two have a key in its home.
//!
//! `cargo test --profile dev -p besom-store --features slatedb --test slate requests -- --nocapture` prints the counts.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use besom::testing::Random;
use besom::{BuildError, Seed, TelescopingFilter};
use besom_store::slate::SlateStore;
use besom_store::slate::slatedb::config::Settings;
use besom_store::slate::slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use besom_store::slate::slatedb::object_store::memory::InMemory;
use besom_store::{Batch, Durability, Layout, Options};

use super::bucket::{Bucket, options, run, settings};

const TABLES: u64 = 20;
/// Rows of a table: enough for SlateDB to give it filters.
const ROWS: u64 = 1500;
const USELESS: u64 = 300;

fn make(_: usize, seed: Seed) -> Result<TelescopingFilter, BuildError> {
    let capacity = (TABLES * ROWS) as usize;
    TelescopingFilter::builder().capacity(capacity).false_positive_rate(1.0 / 16.0).seed(seed).build()
}

/// Requests that read, for each useless look-up and its repair, with this many bytes of cache.
async fn requests(layout: Layout, cache: u64) -> f64 {
    let bucket = Bucket::new(Arc::new(InMemory::new()));
    // Tables stay as they are, and nothing else reads.
    let settings = Settings {
        l0_sst_size_bytes: 64 << 20,
        manifest_poll_interval: Duration::from_secs(3600),
        compactor_options: None,
        garbage_collector_options: None,
        ..settings()
    };
    let open = || {
        let options = options()
            .settings(settings.clone())
            .store(Options::new().layout(layout).durability(Durability::Buffered));
        let cache = MokaCacheOptions { max_capacity: cache, ..MokaCacheOptions::default() };
        let options = options.cache(Arc::new(MokaCache::new_with_opts(cache)), 1);
        SlateStore::open("db", bucket.clone(), make, options)
    };
    let store = open().await.unwrap();
    let mut random = Random::new(1);
    for _ in 0..TABLES {
        let mut batch = Batch::new();
        for _ in 0..ROWS {
            batch.insert(&random.next().to_le_bytes(), &[7; 100]);
        }
        store.write(&batch).await.unwrap();
        // It makes a table of what is in memory.
        store.publish().await.unwrap();
    }
    store.close().await.unwrap();
    let store = open().await.unwrap();
    let mut ask = async |useless: u64| {
        let until = store.metrics().false_positives + useless;
        while store.metrics().false_positives < until {
            assert_eq!(store.get(&random.next().to_le_bytes()).await.unwrap(), None);
        }
    };
    ask(USELESS).await;
    let before = bucket.gets.load(Relaxed);
    ask(USELESS).await;
    let gets = bucket.gets.load(Relaxed) - before;
    let metrics = store.metrics();
    assert_eq!((metrics.adaptations, metrics.failed_adaptations), (2 * USELESS, 0));
    gets as f64 / USELESS as f64
}

#[test]
fn a_repair_reads_blocks_of_the_tables_that_have_keys_in_its_home_alone() {
    run(async {
        for layout in [Layout::Hashed, Layout::Ordered] {
            // The filters of all tables take 90 KB, their blocks 4 MB.
            let [cold, cached] = [requests(layout, 0).await, requests(layout, 1 << 20).await];
            println!(
                "{layout:?}: {cold:.2} GETs for a useless look-up without a cache, {cached:.2} with 1 MB"
            );
            // A filter of each table for the look-up and one for the range, without a cache; then what the tables have.
            assert!(cold < 2.0 * TABLES as f64 + 8.0, "{layout:?}: {cold:.2} GETs without a cache");
            assert!(cached < 4.0, "{layout:?}: {cached:.2} GETs with a cache");
        }
    });
}
