//! What many keys at once, many threads and mapped files are worth, each beside what it is compared with.
//!
//! ```text
//! besom-bench --scale --log2-slots 24
//! ```

mod bulk;
mod mapped;
mod sharded;

use std::hint::black_box;
use std::time::{Duration, Instant};

use besom::BuildError;

use crate::keys::{Keys, Role};

/// What is measured, and on which keys.
pub(crate) struct Scale {
    pub(crate) repeat: u32,
    /// How many keys the filters hold, and how full they are then.
    pub(crate) items: usize,
    pub(crate) load: f64,
    members: Vec<u64>,
    strangers: Vec<u64>,
}

/// Different keys that are asked for.
const QUERIES: usize = 1 << 22;

/// One line: the median and the best of the repeats in million operations a second.
struct Line {
    what: &'static str,
    median: f64,
    best: f64,
}

/// Lines that are compared with the first of them.
struct Comparison {
    title: &'static str,
    lines: Vec<Line>,
}

/// A name, and something to be timed.
type Way<'w, E> = (&'static str, &'w mut dyn FnMut() -> Result<usize, E>);

/// What is done is done again until it took so long.
const AT_LEAST: Duration = Duration::from_millis(20);

impl Scale {
    pub(crate) fn new(items: usize, load: f64, repeat: u32, seed: u64) -> Self {
        let keys = Keys::new(seed);
        let members = keys.range(Role::Member, 0, items);
        let strangers = keys.range(Role::Stranger, 0, QUERIES.min(4 * items));
        Self { repeat, items, load, members, strangers }
    }

    /// Measures and prints everything.
    pub(crate) fn run(&self) -> Result<(), Box<dyn std::error::Error>> {
        println!(
            "{} keys at load {}, Mops: medians and bests of {} repeats, each beside the first line's",
            self.items, self.load, self.repeat
        );
        for comparison in [bulk::run, mapped::run, sharded::run] {
            for Comparison { title, lines } in comparison(self)? {
                println!("\n{title}");
                let (median_of, best_of) = lines.first().map_or((1.0, 1.0), |line| (line.median, line.best));
                for Line { what, median, best } in &lines {
                    let (ratio, best_ratio) = (median / median_of, best / best_of);
                    println!("  {what:<44} {median:>8.2} {ratio:>7.2}x {best:>8.2} {best_ratio:>7.2}x");
                }
            }
        }
        Ok(())
    }

    /// The speeds of all ways to do `count` operations, which are measured by turns. What they return is not looked at.
    fn compare<E>(
        &self,
        title: &'static str,
        count: usize,
        ways: &mut [Way<'_, E>],
    ) -> Result<Comparison, E> {
        let mut times = vec![Vec::new(); ways.len()];
        for _ in 0..self.repeat {
            for ((_, way), times) in ways.iter_mut().zip(&mut times) {
                let (start, mut passes) = (Instant::now(), 0_u32);
                while passes == 0 || start.elapsed() < AT_LEAST {
                    black_box(way()?);
                    passes += 1;
                }
                times.push(start.elapsed().as_secs_f64() / f64::from(passes));
            }
        }
        let line = |((what, _), mut times): (&(&'static str, _), Vec<f64>)| {
            times.sort_by(f64::total_cmp);
            let mops = |time: f64| count as f64 / time.max(1e-9) / 1e6;
            Line { what, median: mops(times[times.len() / 2]), best: mops(times[0]) }
        };
        Ok(Comparison { title, lines: ways.iter().zip(times).map(line).collect() })
    }
}

/// Counts the answers of batches, so that nobody can leave them out.
fn count(filter: &impl besom::Filter, keys: &[u64]) -> usize {
    let mut answers = Vec::new();
    let batches = keys.chunks(crate::subject::BATCH);
    let mut count = |batch: &[u64]| {
        filter.contains_many(batch, &mut answers);
        answers.iter().filter(|&&answer| answer).count()
    };
    batches.map(&mut count).sum()
}

fn count_single(filter: &impl besom::Filter, keys: &[u64]) -> usize {
    keys.iter().filter(|key| filter.contains(*key)).count()
}

type Built<T> = Result<T, BuildError>;
