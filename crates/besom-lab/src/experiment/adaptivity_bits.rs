//! 004: the bits that repairs take up, over time.

use super::space::{working_cell, working_column};
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::report::{Axis, Claim, Column, Line, Plot, Section, Table, compact};
use crate::subject::{Spec, build, registry};
use crate::workload::Uniform;

/// The plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct AdaptivityBits;

const EXPONENT: i32 = 6;
/// Where the numbers are taken: false positives per stored key.
const STOPS: [f64; 10] = [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0];

fn keys(setting: &Setting) -> usize {
    setting.pick(1 << 12, 1 << 16)
}

/// Filters whose fingerprints grow have ever fewer false positives: nobody waits for the twentieth per key forever.
fn most_queries(setting: &Setting) -> u64 {
    (20.0 * keys(setting) as f64 / 0.5_f64.powi(EXPONENT) * 32.0) as u64
}

fn adaptive() -> impl Iterator<Item = &'static str> {
    registry().iter().filter(|entry| entry.adaptive && !entry.name.ends_with("cache")).map(|entry| entry.name)
}

fn measure(setting: &Setting, filter: &'static str, run: u32) -> Result<Vec<Point>, TaskError> {
    let keys = keys(setting);
    let spec = Spec::new(keys, setting.seed("filter", run)).rate(0.5_f64.powi(EXPONENT));
    let mut subject = build(filter, &spec)?;
    for key in Uniform::new(setting.seed("stored", run)).take(keys) {
        subject.insert(&key.to_le_bytes())?;
    }
    let (mut points, mut found, mut asked) = (Vec::new(), 0_u64, 0_u64);
    let mut queries = Uniform::new(setting.seed("queries", run));
    for stop in STOPS {
        while (found as f64) < stop * keys as f64 && asked < most_queries(setting) {
            let Some(key) = queries.next() else { break };
            asked += 1;
            if subject.contains(&key.to_le_bytes()) {
                found += 1;
                subject.adapt(&key.to_le_bytes())?;
            }
        }
        if (found as f64) < stop * keys as f64 {
            break;
        }
        let stats = subject.stats();
        points.push(
            Point::new(filter, stop, run)
                .with("adaptivity bits", stats.adaptivity_bits as f64 / keys as f64)
                .with_space(&stats)
                .with("queries", asked as f64 / keys as f64)
                .with("resets", stats.resets as f64)
                .with("spills", stats.spills as f64),
        );
    }
    Ok(points)
}

impl Experiment for AdaptivityBits {
    fn name(&self) -> &'static str {
        "004-adaptivity-bits"
    }

    fn title(&self) -> &'static str {
        "Bits for adaptivity over time"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let cost = 20.0 * keys(setting) as f64 / 0.5_f64.powi(EXPONENT) * 4.0;
        let mut tasks = Vec::new();
        for filter in adaptive() {
            for run in 0..setting.repetitions(2, 10) {
                let setting = setting.clone();
                tasks.push(Task::new(format!("{filter}, run {run}"), cost, move || {
                    measure(&setting, filter, run)
                }));
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        Section::new()
            .note(format!(
                "{} stored keys, ε = 2^-{EXPONENT}, load 0.95; fresh random queries, every false positive repaired, until there \
                 were 20 for every stored key or {} queries.",
                keys(setting),
                most_queries(setting)
            ))
            .plot(plot(points, "adaptivity bits", "adaptivity", "Bits that repairs take up", "adaptivity bits per key"))
            .plot(plot(points, "bits", "memory", "All memory of the filter", "bits per key, side tables included"))
            .table(table(points))
            .claim(broom_claim(points))
            .claim(fixed_claim(points))
    }
}

fn plot(points: &Points, value: &str, id: &str, title: &str, label: &str) -> Plot {
    let x = Axis::linear("false positives repaired per stored key");
    let mut plot = Plot::lines(id, title, x, Axis::linear(label).including(0.0));
    for series in points.series("") {
        plot.line(Line::new(series, points.curve("", series, value)));
    }
    plot
}

fn table(points: &Points) -> Table {
    let mut columns = vec![Column::text("filter")];
    columns.extend(STOPS.iter().map(|stop| Column::number(format!("after {}", compact(*stop)))));
    columns.extend([Column::number("bits a key at the end"), working_column()]);
    columns.extend(["queries a key", "resets"].map(Column::number));
    let mut table =
        Table::new("Adaptivity bits per key after so many repaired false positives per key", columns);
    for series in points.series("") {
        let mut row = vec![series.to_owned()];
        let cell =
            |stop: f64| points.mean("", series, stop, "adaptivity bits").map(compact).unwrap_or_default();
        row.extend(STOPS.iter().map(|stop| cell(*stop)));
        let end = |value: &str| points.curve("", series, value).last().map(|(_, last)| compact(last.mean));
        let end = |value: &str| end(value).unwrap_or_default();
        row.extend([end("bits"), working_cell(points, "", series), end("queries"), end("resets")]);
        table.row(row);
    }
    table
}

fn broom_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "broom's adaptivity bits stay O(n) however many false positives it repairs (after 20n no more than twice those after 4n)",
    );
    let at = |stop| points.mean("", "broom", stop, "adaptivity bits");
    let (Some(early), Some((last, late))) =
        (at(4.0), points.curve("", "broom", "adaptivity bits").last().copied())
    else {
        return claim;
    };
    let text =
        format!("{} bits a key after 4n, {} after {}n", compact(early), compact(late.mean), compact(last));
    let agrees = late.mean <= 2.0 * early && last > 4.0;
    claim.measured(text, agrees).if_not(
        "bits that are not reclaimed make further false positives rarer; where the table ends before 20n, the queries did",
    )
}

fn fixed_claim(points: &Points) -> Claim {
    let claim = Claim::new("the cuckoo family adapts without any further memory");
    let family = ["cuckooing", "cyclic-1", "cyclic-2", "cyclic-3", "swapping"];
    let grown = |name: &str| {
        let curve = points.curve("", name, "bits");
        Some(curve.last()?.1.mean - curve.first()?.1.mean)
    };
    let grown: Vec<(&str, f64)> = family.iter().filter_map(|name| Some((*name, grown(name)?))).collect();
    if grown.is_empty() {
        return claim;
    }
    let text =
        grown.iter().map(|(name, bits)| format!("{name} {}", compact(*bits))).collect::<Vec<_>>().join(", ");
    claim.measured(
        format!("bits a key more at the end: {text}"),
        grown.iter().all(|(_, bits)| bits.abs() < 0.01),
    )
}
