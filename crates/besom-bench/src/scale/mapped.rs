//! Filters that are opened on a file without reading it.

use std::error::Error;
use std::fs::File;
use std::time::Instant;

use besom::format::{Persist, ReadOptions, Region, WriteOptions};
use besom::quotient::QuotientFilter;
use besom::testing::NullRemote;
use besom::{TelescopingFilter, Xxh3};

use super::{Comparison, Scale, count, count_single};

pub(super) fn run(scale: &Scale) -> Result<Vec<Comparison>, Box<dyn Error>> {
    let quotient = QuotientFilter::builder().capacity(scale.items).max_load(scale.load).seed(1_u64);
    let telescoping = TelescopingFilter::builder().capacity(scale.items).max_load(scale.load).seed(1_u64);
    Ok(vec![
        compare::<QuotientFilter<Xxh3>>(
            scale,
            "quotient: negative queries",
            &quotient.from_keys(&scale.members)?,
        )?,
        compare::<TelescopingFilter<Xxh3>>(
            scale,
            "telescoping: negative queries",
            &telescoping.from_keys(&scale.members, &mut NullRemote)?,
        )?,
    ])
}

fn compare<F: Persist>(scale: &Scale, title: &'static str, owned: &F) -> Result<Comparison, Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("besom-bench-{}.besom", std::process::id()));
    owned.save(&path, &WriteOptions::new())?;
    let (mapped, micros) = open::<F>(&path)?;
    std::fs::remove_file(&path)?;
    println!("\n{}: opened by a map in {micros:.0} µs", F::KIND);
    let strangers = &scale.strangers[..];
    let expected = count(owned, strangers);
    assert_eq!(count(&mapped, strangers), expected, "the same answers");
    scale.compare::<Box<dyn Error>>(
        title,
        strangers.len(),
        &mut [
            ("owned, one by one", &mut || Ok(count_single(owned, strangers))),
            ("mapped, one by one", &mut || Ok(count_single(&mapped, strangers))),
            ("owned, in batches", &mut || Ok(count(owned, strangers))),
            ("mapped, in batches", &mut || Ok(count(&mapped, strangers))),
        ],
    )
}

/// The filter of a file, and how many microseconds opening it took.
fn open<F: Persist>(path: &std::path::Path) -> Result<(F, f64), Box<dyn Error>> {
    let start = Instant::now();
    // SAFETY: nobody else knows this file, and nobody writes to it.
    let region = unsafe { Region::map(&File::open(path)?) }?;
    let (filter, _) = F::open(&region, &ReadOptions::new())?;
    Ok((filter, start.elapsed().as_secs_f64() * 1e6))
}
