//! 002, Figure 11 and Table 2: the time of insertions and queries while filters fill.

use std::hint::black_box;
use std::time::Instant;

use besom::Insert;
use besom::bloom::BloomFilter;
use besom::tinyset::TinySet;

use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::report::{Axis, Claim, Column, Line, Plot, Section, Table, compact};
use crate::workload::Uniform;

/// The figure and the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filling;

/// The paper measures every 62,500 of a million operations.
const STEPS: usize = 16;

const RATES: [(f64, &str); 3] = [(1e-2, "1%"), (1e-3, "0.1%"), (1e-4, "0.01%")];

const FILTERS: [&str; 4] = ["tinyset 32B", "tinyset 64B", "tinyset 64I", "bloom"];

/// Bits per item of TinySet 64I at the rates, of Table 1.
const BITS_64I: [f64; 3] = [9.1, 12.8, 16.6];

fn keys(setting: &Setting) -> usize {
    setting.pick(200_000, 1_000_000)
}

/// Fills one filter step by step; asks for as many stored keys after each step as the step has.
fn fill(
    mut filter: impl Insert,
    (series, rate): (&str, &str),
    keys: &[u64],
    run: u32,
) -> Result<Vec<Point>, TaskError> {
    let (step, mut points) = (keys.len() / STEPS, Vec::new());
    for number in 0..STEPS {
        let start = Instant::now();
        for key in &keys[number * step..(number + 1) * step] {
            black_box(&mut filter).insert(key)?;
        }
        let inserting = start.elapsed().as_secs_f64();
        // One in this many of the keys that are there, so that none is asked for just after it was inserted.
        let start = Instant::now();
        let asked = keys[..(number + 1) * step].iter().step_by(number + 1);
        let found = asked.filter(|key| filter.contains(black_box(*key))).count();
        let asking = start.elapsed().as_secs_f64();
        if found < step {
            return Err(format!("{series} lost {} stored keys", step - found).into());
        }
        let nanoseconds = |seconds: f64| 1e9 * seconds / step as f64;
        points.push(
            Point::new(series, (number + 1) as f64 / STEPS as f64, run)
                .in_panel(rate)
                .with("insert", nanoseconds(inserting))
                .with("query", nanoseconds(asking)),
        );
    }
    Ok(points)
}

/// Measures one filter at one rate.
fn measure(
    series: &'static str,
    number: usize,
    keys: usize,
    seed: u64,
    run: u32,
) -> Result<Vec<Point>, TaskError> {
    let (rate, name) = RATES[number];
    let stored: Vec<u64> = Uniform::new(seed).take(keys).collect();
    let builder = TinySet::builder().capacity(keys).seed(seed);
    let builder = match series {
        "bloom" => {
            let filter =
                BloomFilter::builder().capacity(keys).false_positive_rate(rate).seed(seed).build()?;
            return fill(filter, (series, name), &stored, run);
        }
        "tinyset 64I" => {
            builder.block_bits((64.0 * BITS_64I[number]) as u32).chains(64).items_per_block(64.0)
        }
        "tinyset 32B" => builder.block_bits(256).false_positive_rate(rate),
        _ => builder.block_bits(512).false_positive_rate(rate),
    };
    fill(builder.build()?, (series, name), &stored, run)
}

impl Experiment for Filling {
    fn name(&self) -> &'static str {
        "002-figure-11-filling"
    }

    fn title(&self) -> &'static str {
        "TinySet: time of insertions and queries while filling (and Table 2)"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let (keys, mut tasks) = (keys(setting), Vec::new());
        for series in FILTERS {
            for (number, (_, name)) in RATES.into_iter().enumerate() {
                for run in 0..setting.repetitions(3, 10) {
                    let seed = setting.seed("filling", run);
                    let id = format!("{series}, {name}, run {run}");
                    let task =
                        Task::new(id, 3.0 * keys as f64, move || measure(series, number, keys, seed, run));
                    tasks.push(task.timed());
                }
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let note = format!(
            "{} keys; the time of one operation in each sixteenth of the fill, queries for stored keys. The Bloom filter is the \
             library's own, as is the hash. `besom-bench --items 1000000 --rate 0.001 --fill …` measures the same beside fastbloom.",
            keys(setting)
        );
        let mut section = Section::new().note(note);
        for (value, title) in
            [("insert", "Insertions while filling, 0.1%"), ("query", "Queries while filling, 0.1%")]
        {
            let axis = Axis::linear("nanoseconds an operation").including(0.0);
            let mut plot = Plot::lines(value, title, Axis::linear("load"), axis);
            for series in points.series("0.1%") {
                plot.line(Line::new(series, points.curve("0.1%", series, value)));
            }
            section = section.plot(plot);
        }
        section.table(table(points)).claim(steady(points)).claim(faster(points))
    }
}

/// Table 2: nanoseconds of an insertion and of a query, over the whole fill.
fn table(points: &Points) -> Table {
    let mut columns = vec![Column::text("false positives")];
    columns.extend(FILTERS.map(Column::number));
    let mut table = Table::new("Nanoseconds an insertion / a query, mean over the fill", columns);
    for (_, rate) in RATES {
        let cell = |series: &str| {
            let mean = |value| points.overall(rate, series, value).map(compact);
            Some(format!("{} / {}", mean("insert")?, mean("query")?))
        };
        let mut row = vec![rate.to_owned()];
        row.extend(FILTERS.map(|series| cell(series).unwrap_or_default()));
        table.row(row);
    }
    table
}

fn steady(points: &Points) -> Claim {
    let claim = Claim::new(
        "TinySet's time does not depend on the false-positive rate (queries within a factor of 1.3)",
    );
    let time = |rate| points.overall(rate, "tinyset 64B", "query");
    let (Some(high), Some(middle), Some(low)) = (time("1%"), time("0.1%"), time("0.01%")) else {
        return claim;
    };
    let text = [high, middle, low].map(compact).join(", ");
    let spread = high.max(middle).max(low) / high.min(middle).min(low);
    claim.measured(format!("{text} ns"), spread <= 1.3)
}

fn faster(points: &Points) -> Claim {
    let claim = Claim::new("queries are faster than the Bloom filter's at 0.1%");
    let time = |series| points.overall("0.1%", series, "query");
    let (Some(tinyset), Some(bloom)) = (time("tinyset 64B"), time("bloom")) else { return claim };
    claim.measured(format!("{} times as fast", compact(bloom / tinyset)), tinyset < bloom).if_not(
        "the paper compares with a Bloom filter of one hash per probe; the library's hashes once, and a small filter lies in the cache",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_is_measured_at_every_rate() {
        for series in FILTERS {
            for number in 0..RATES.len() {
                let points = measure(series, number, 8_000, 1, 0).unwrap();
                assert_eq!(points.len(), STEPS);
                assert!(points.iter().all(|point| point.values["query"] > 0.0));
            }
        }
    }
}
