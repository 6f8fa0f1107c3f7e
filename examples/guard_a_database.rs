//! A filter in front of a database of your own: four methods, and look-ups of missing keys stay away from it.
//!
//! ```text
//! cargo run --release --example guard_a_database
//! ```

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::ops::ControlFlow;

use besom::{Dictionary, ExtensionFilter, Guard};

/// Stands for a database on a disk. It counts how often it is read.
#[derive(Default)]
struct Database {
    rows: BTreeMap<Vec<u8>, String>,
    reads: u64,
}

impl Dictionary for Database {
    type Value = String;
    type Error = Infallible;

    fn get(&mut self, key: &[u8]) -> Result<Option<String>, Infallible> {
        self.reads += 1;
        Ok(self.rows.get(key).cloned())
    }

    fn insert(&mut self, key: &[u8], value: String) -> Result<Option<String>, Infallible> {
        Ok(self.rows.insert(key.to_vec(), value))
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<String>, Infallible> {
        Ok(self.rows.remove(key))
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Infallible> {
        let _ = self.rows.keys().try_for_each(|key| visit(key));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let filter = ExtensionFilter::builder().capacity(20_000).build()?;
    let mut guard = Guard::new(filter, Database::default());
    for user in 0..20_000_u32 {
        guard.insert(&user, format!("user {user}"))?;
    }
    guard.remove(&7_u32)?;

    // Clients keep asking for the same 10,000 users, who do not exist.
    for _ in 0..50 {
        for stranger in 1_000_000..1_010_000_u32 {
            assert_eq!(guard.get(&stranger)?, None);
        }
    }
    assert_eq!(guard.get(&8_u32)?.as_deref(), Some("user 8"));
    let stats = guard.stats();
    let reads = guard.dictionary().reads;
    println!("{} look-ups, {reads} reads, {} of them useless", stats.queries, stats.false_positives);
    if stats.false_positives < 100 { Ok(()) } else { Err("the filter repeats its mistakes".into()) }
}
