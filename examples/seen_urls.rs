//! A crawler's memory: which URLs were seen, shared by many threads.
//!
//! ```text
//! cargo run --release --example seen_urls
//! ```
//!
//! Every URL turns up many times. `insert_unique` asks and inserts at once, and a repetition takes no room.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use besom::{BinFilter, Filter, Sharded};

const URLS: u64 = 200_000;
const THREADS: u64 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let seen = Sharded::build(16, URLS as usize, |capacity, seed| {
        BinFilter::builder().capacity(capacity).false_positive_rate(0.001).seed(seed).build()
    })?;
    let fetched = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (seen, fetched) = (&seen, &fetched);
            scope.spawn(move || {
                // All threads find the same links, in another order.
                for step in 0..2 * URLS {
                    let number = (step * 7919 + thread * 104_729) % URLS;
                    match seen.insert_unique(&format!("https://example.org/{number}")) {
                        Ok(true) => drop(fetched.fetch_add(1, Ordering::Relaxed)),
                        Ok(false) => {}
                        Err(error) => eprintln!("{error}"),
                    }
                }
            });
        }
    });
    let (fetched, links) = (fetched.into_inner(), 2 * THREADS * URLS);
    println!("{links} links, {fetched} URLs fetched, {:.1} bits each", seen.stats().bits_per_key());
    // A false positive is a URL that is never fetched: fewer than one in a thousand.
    let missed = URLS - fetched;
    if missed < URLS / 500 { Ok(()) } else { Err(format!("{missed} URLs were taken for seen").into()) }
}
