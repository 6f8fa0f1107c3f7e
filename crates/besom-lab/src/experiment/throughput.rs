//! 001, Figure 5: throughput of insertions and queries over the load.

use std::hint::black_box;
use std::time::Instant;

use besom::any::DynFilterError;
use besom::testing::NullRemote;
use besom::{MemoryRemote, Remote};

use super::space::{space_cells, space_columns};
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::report::{Axis, Claim, Column, Line, Plot, Section, Table, compact, with_interval};
use crate::subject::{Spec, Subject, find};
use crate::workload::{ActiveSet, ActiveSetShape, Uniform};

/// Both plots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Throughput;

const FILTERS: [&str; 6] =
    ["telescoping", "telescoping-uncompressed", "extension-quotient", "broom-quotient", "quotient", "vacuum"];
const LOADS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

fn slots(setting: &Setting) -> usize {
    setting.pick(1 << 22, 1 << 24)
}

fn queries(setting: &Setting) -> usize {
    setting.pick(1_000_000, 10_000_000)
}

/// Fills a filter from load to load and measures each stretch; asks the active set's queries at each load if the remote
/// stores what it is given: otherwise there is nothing to repair with.
fn measure<R: Remote + Default>(
    setting: &Setting,
    filter: &'static str,
    stores: bool,
    run: u32,
) -> Result<Vec<Point>, TaskError> {
    let slots = slots(setting);
    let most = (slots as f64 * 0.95) as usize;
    let spec = Spec::new(most, setting.seed("filter", run));
    let mut subject = Subject::<R>::new(find(filter)?.filter(&spec)?);
    let stored: Vec<[u8; 8]> =
        Uniform::new(setting.seed("stored", run)).take(most).map(u64::to_le_bytes).collect();
    let asked: Vec<[u8; 8]> = ActiveSet::with_shape(ActiveSetShape::default(), setting.seed("queries", run))
        .take(queries(setting))
        .map(u64::to_le_bytes)
        .collect();
    let (mut points, mut inserted) = (Vec::new(), 0);
    for load in LOADS {
        let until = ((slots as f64 * load) as usize).min(most);
        let insertions = median_speed(&stored[inserted..until], |key| subject.insert(key).map(|_| ()))?;
        inserted = until;
        let panel = if stores { "insert, remote in memory" } else { "insert" };
        points.push(Point::new(filter, load, run).in_panel(panel).with("speed", insertions));
        if !stores {
            continue;
        }
        let mut found = 0_u64;
        let speed = median_speed(&asked, |key| {
            if subject.contains(black_box(key)) {
                found += 1;
                subject.adapt(key)?;
            }
            Ok(())
        })?;
        let point = Point::new(filter, load, run).in_panel("query").with("speed", speed);
        let point = point.with("rate", found as f64 / asked.len() as f64);
        let stats = subject.stats();
        points.push(point.with("bits", stats.bits as f64 / most as f64).with_working(stats.working_bits));
    }
    Ok(points)
}

/// Millions of operations a second: the median over a few pieces, so that what else happens on the machine for a
/// moment does not count.
fn median_speed(
    keys: &[[u8; 8]],
    mut operation: impl FnMut(&[u8; 8]) -> Result<(), DynFilterError>,
) -> Result<f64, DynFilterError> {
    const PIECES: usize = 9;
    let mut speeds = Vec::with_capacity(PIECES);
    for piece in keys.chunks(keys.len().div_ceil(PIECES).max(1)) {
        let start = Instant::now();
        piece.iter().try_for_each(&mut operation)?;
        speeds.push(piece.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    speeds.sort_by(f64::total_cmp);
    Ok(speeds.get(speeds.len() / 2).copied().unwrap_or(0.0))
}

impl Experiment for Throughput {
    fn name(&self) -> &'static str {
        "001-figure-5-throughput"
    }

    fn title(&self) -> &'static str {
        "Throughput over the load"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let mut tasks = Vec::new();
        for run in 0..setting.repetitions(3, 10) {
            for filter in FILTERS {
                for (stores, name) in [(true, "with a remote"), (false, "without a remote")] {
                    // Its insertions read what it has stored.
                    if filter == "broom-quotient" && !stores {
                        continue;
                    }
                    let measure = if stores { measure::<MemoryRemote> } else { measure::<NullRemote> };
                    let setting = setting.clone();
                    let cost = 6.0 * queries(&setting) as f64 + 10.0 * slots(&setting) as f64;
                    let task = Task::new(format!("{filter}, {name}, run {run}"), cost, move || {
                        measure(&setting, filter, stores, run)
                    });
                    tasks.push(task.timed());
                }
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let section = Section::new()
            .note(format!(
                "{} slots, 8-bit remainders (vacuum: 11-bit fingerprints), one thread, machine and command as at the top of the page. Insertions: \
                 random keys, the speed of the stretch up to the load (the median of nine pieces of it, here and for queries); with a remote that stores nothing (the filter's own work) and \
                 with the remote in memory. Queries: {} of the active set at each load, false positives repaired. The vacuum \
                 filter is the lab's own and not tuned.",
                slots(setting),
                queries(setting)
            ))
            .plot(plot(points, "insert", "insert", "Insertions, remote not counted"))
            .plot(plot(points, "query", "query", "Queries with repairs"))
            .plot(plot(points, "insert, remote in memory", "insert-remote", "Insertions with the remote in memory"))
            .table(table(points, "query", "Queries, millions a second"))
            .table(table(points, "insert", "Insertions without the remote, millions a second"))
            .table(table(points, "insert, remote in memory", "Insertions with the remote in memory, millions a second"));
        claims(section, points)
    }
}

fn plot(points: &Points, panel: &str, id: &str, title: &str) -> Plot {
    let mut plot =
        Plot::lines(id, title, Axis::linear("load"), Axis::linear("millions a second").including(0.0));
    for series in points.series(panel) {
        plot.line(Line::new(series, points.curve(panel, series, "speed")));
    }
    plot
}

fn table(points: &Points, panel: &str, caption: &str) -> Table {
    let mut columns = vec![Column::text("filter")];
    columns.extend(space_columns());
    columns.extend(LOADS.map(|load| Column::number(format!("load {load}"))));
    let mut table = Table::new(caption, columns);
    for series in points.series(panel) {
        let mut row = vec![series.to_owned()];
        row.extend(space_cells(points, "query", series));
        let cell = |load| points.summary(panel, series, load, "speed").map(|speed| with_interval(&speed));
        row.extend(LOADS.map(|load| cell(load).unwrap_or_default()));
        table.row(row);
    }
    table
}

fn claims(section: Section, points: &Points) -> Section {
    let ratio = |panel: &str, upper: &str, lower: &str| {
        let speed = |series, load| points.mean(panel, series, load, "speed");
        let all: Option<Vec<f64>> =
            LOADS.iter().map(|&load| Some(speed(upper, load)? / speed(lower, load)?)).collect();
        all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
    };
    let mut half = Claim::new(
        "telescoping answers queries about half as fast as extension and uncompressed telescoping (0.35 to 0.65)",
    );
    let pair = (
        ratio("query", "telescoping", "extension-quotient"),
        ratio("query", "telescoping", "telescoping-uncompressed"),
    );
    if let (Some(extension), Some(uncompressed)) = pair {
        let text = format!(
            "{} of extension's, {} of uncompressed, mean over the loads",
            compact(extension),
            compact(uncompressed)
        );
        let agrees = [extension, uncompressed].iter().all(|ratio| (0.35..=0.65).contains(ratio));
        half = half.measured(text, agrees).if_not(
            "faster by design: a query's remainders are compared with the whole run before any code is decoded, which the \
             paper's filter does on every query",
        );
    }
    let mut alike = Claim::new(
        "insertions into telescoping, extension and the plain quotient filter are alike (within a factor of 1.5)",
    );
    let pair =
        (ratio("insert", "telescoping", "quotient"), ratio("insert", "extension-quotient", "quotient"));
    if let (Some(telescoping), Some(extension)) = pair {
        let text = format!(
            "of the quotient filter's: telescoping {}, extension {}",
            compact(telescoping),
            compact(extension)
        );
        let alike_enough = |ratio: f64| (1.0 / 1.5..=1.5).contains(&ratio);
        alike = alike.measured(text, alike_enough(telescoping) && alike_enough(extension));
    }
    section.claim(half).claim(alike)
}
