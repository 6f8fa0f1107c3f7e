//! One filter file, mapped into memory by several processes: it is opened at once, and kept in memory once.
//!
//! ```text
//! cargo run --release --features mmap --example share_a_file
//! ```

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use besom::format::{self, Persist, ReadOptions, Region, WriteOptions};
use besom::{BinFilter, Filter, Insert};

const KEYS: u64 = 200_000;

/// What every process does: maps the file and asks it.
fn ask(path: &Path) -> Result<(), Box<dyn Error>> {
    // Once after a transfer, not at every opening.
    format::check(&mut File::open(path)?)?;
    // SAFETY: nobody changes the file in place; `save` replaces it.
    let region = unsafe { Region::map(&File::open(path)?)? };
    let (filter, header) = BinFilter::<besom::Xxh3>::open(&region, &ReadOptions::new())?;
    let accepted = (0..2 * KEYS).filter(|key| filter.contains(key)).count() as u64;
    println!(
        "process {}: generation {}, {accepted} of {} accepted",
        std::process::id(),
        header.generation,
        2 * KEYS
    );
    let fine = (KEYS..KEYS + KEYS / 100).contains(&accepted);
    if fine { Ok(()) } else { Err("wrong answers".into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::args().nth(1) {
        return ask(Path::new(&path));
    }
    let path = std::env::temp_dir().join(format!("besom-shared-{}.besom", std::process::id()));
    let mut filter = BinFilter::with_capacity(KEYS as usize)?;
    (0..KEYS).try_for_each(|key| filter.insert(&key).map(drop))?;
    filter.save(&path, &WriteOptions::new().generation(1))?;
    let program = std::env::current_exe()?;
    let children: Result<Vec<_>, _> = (0..3).map(|_| Command::new(&program).arg(&path).spawn()).collect();
    let mut fine = true;
    for mut child in children? {
        fine &= child.wait()?.success();
    }
    std::fs::remove_file(&path)?;
    if fine { Ok(()) } else { Err("a process failed".into()) }
}
