//! Guards a redb file: a store of sessions that is asked for many that it does not have, and that survives a restart.
//!
//! ```text
//! cargo run --release -p besom-store --example guard_a_file
//! ```

use std::error::Error;
use std::path::Path;

use besom::TelescopingFilter;
use besom_store::{Batch, Layout, RedbStore};

type Store = RedbStore<TelescopingFilter>;

fn open(path: &Path) -> Result<Store, Box<dyn Error>> {
    // Called when there is no filter to load, with the number of keys that there are and the store's seed. Room for more, and growth beyond that.
    let make = |keys: usize, seed| {
        TelescopingFilter::builder().capacity((2 * keys).max(10_000)).seed(seed).growable().build()
    };
    let store = RedbStore::builder()
        .layout(Layout::Ordered)
        .on_progress(|progress| println!("  {} of {} keys", progress.keys, progress.total))
        .open(path, make)?;
    println!("opened: {:?}", store.opening());
    Ok(store)
}

fn session(number: u32) -> String {
    format!("session-{number:08}")
}

fn fill(store: &Store) -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::new();
    for number in 0..20_000 {
        batch.insert(session(number).as_bytes(), format!("user {}", number % 100).as_bytes());
    }
    store.write(&batch)?; // one transaction
    store.insert(b"session-of-the-day", b"user 7")?;
    store.remove(session(3).as_bytes())?;
    Ok(())
}

/// Threads that ask for sessions that were never there, the same ones over and over.
fn ask(store: &Store) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..5 {
                    for number in 0..20_000 {
                        let stranger = format!("stranger-{thread}-{number}");
                        match store.get(stranger.as_bytes()) {
                            Ok(found) => assert!(found.is_none()),
                            Err(error) => eprintln!("round {round}: {error}"),
                        }
                    }
                }
            });
        }
    });
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("besom-guard-a-file-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("sessions.redb");

    let store = open(&path)?;
    fill(&store)?;
    ask(&store);
    let metrics = store.metrics();
    println!("{} queries, {} of them reached the file for nothing", metrics.queries, metrics.false_positives);
    println!("{} were repaired, {} came again", metrics.adaptations, metrics.repeated_false_positives);
    println!("{:.2} bits per key", metrics.bits_per_key);
    store.snapshot()?;
    drop(store);

    let store = open(&path)?; // with the snapshot: no key is read
    assert_eq!(store.get(b"session-of-the-day")?, Some(b"user 7".to_vec()));
    assert_eq!(store.get(session(3).as_bytes())?, None);
    let first: Vec<u8> = store.range(session(100).as_bytes()..)?.next().ok_or("the range is empty")??.0;
    println!("the first session from 100 on: {}", String::from_utf8_lossy(&first));
    store.verify()?;
    drop(store);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}
