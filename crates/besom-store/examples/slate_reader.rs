//! Guard a bucket: one process writes, another one reads beside it.
//!
//! ```sh
//! cargo run -p besom-store --features slatedb --example slate_reader -- /tmp/bucket
//! ```
//!
//! The bucket is a folder here. With the feature `aws` of the crate `object_store`, an `AmazonS3Builder` in `bucket` is all
//! that changes.

use std::error::Error;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use besom::TelescopingFilter;
use besom_store::Batch;
use besom_store::slate::slatedb::config::{GarbageCollectorOptions, Settings};
use besom_store::slate::slatedb::object_store::ObjectStore;
use besom_store::slate::slatedb::object_store::local::LocalFileSystem;
use besom_store::slate::{SlateOptions, SlateReader, SlateStore};

fn bucket(folder: &str) -> Result<Arc<dyn ObjectStore>, Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    Ok(Arc::new(LocalFileSystem::new_with_prefix(folder)?))
}

fn options() -> SlateOptions {
    // A folder cannot replace an object on a condition; a bucket can, and needs no settings of its own.
    let garbage =
        GarbageCollectorOptions { boundary_files_enabled: false, ..GarbageCollectorOptions::default() };
    let settings = Settings {
        garbage_collector_options: Some(garbage),
        l0_max_ssts: 64,
        l0_max_ssts_per_key: 64,
        ..Settings::default()
    };
    SlateOptions::new().settings(settings)
}

/// Writes words, and publishes a snapshot after each batch.
async fn write(folder: &str) -> Result<(), Box<dyn Error>> {
    let make = |keys: usize, seed| {
        TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).growable().build()
    };
    let store = SlateStore::open("words", bucket(folder)?, make, options()).await?;
    println!("writer: the filter comes from {:?}", store.opening());
    for round in 0..5_u32 {
        let mut batch = Batch::new();
        for word in 0..1000_u32 {
            batch.insert(format!("word {round} {word}").as_bytes(), &word.to_le_bytes());
        }
        store.write(&batch).await?;
        let published = store.publish().await?;
        println!("writer: {} words, snapshot of {} bytes", (round + 1) * 1000, published.bytes);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    Ok(store.close().await?)
}

/// Follows the writer, and asks for words that are there and for words that are not.
async fn read(folder: &str) -> Result<(), Box<dyn Error>> {
    let reader = loop {
        match SlateReader::<TelescopingFilter>::open("words", bucket(folder)?, options()).await {
            Ok(reader) => break reader,
            // The writer has not published yet.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    for _ in 0..8 {
        let mut found = 0;
        for round in 0..5 {
            found += usize::from(reader.get(format!("word {round} 7").as_bytes()).await?.is_some());
        }
        for absent in 0..10_000 {
            assert!(reader.get(format!("no word {absent}").as_bytes()).await?.is_none());
        }
        let stats = reader.metrics();
        println!(
            "reader: {found} of 5 rounds; {} queries, {} reads avoided, {} in vain, {} repaired",
            stats.queries, stats.reads_avoided, stats.false_positives, stats.adaptations
        );
        tokio::time::sleep(Duration::from_millis(250)).await;
        reader.refresh().await?;
    }
    Ok(())
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("say in which folder the bucket is to be")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if arguments.next().as_deref() == Some("reader") {
        runtime.block_on(read(&folder))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut reader = Command::new(std::env::current_exe()?).args([&folder, "reader"]).spawn()?;
    runtime.block_on(write(&folder))?;
    Ok(if reader.wait()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
