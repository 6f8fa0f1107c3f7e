//! 004: how often each operation goes to the remote.

use besom::testing::Accesses;

use super::space::{space_columns, working_cell};
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::report::{Claim, Column, Section, Table, compact};
use crate::subject::{Spec, Subject, build, registry};
use crate::workload::Uniform;

/// The table.
#[derive(Debug, Clone, Copy)]
pub(super) struct RemoteAccess;

const EXPONENT: i32 = 8;
const OPERATIONS: [&str; 5] = ["insert", "negative query", "positive query", "repair", "remove"];

fn keys(setting: &Setting) -> usize {
    setting.pick(1 << 14, 1 << 20)
}

/// Filters with a remote.
fn with_remote() -> impl Iterator<Item = &'static str> {
    let remote = |name: &str| !name.ends_with("cache") && name != "whitelist";
    registry()
        .iter()
        .filter(move |entry| (entry.adaptive || entry.name == "cuckoo-remote") && remote(entry.name))
        .map(|entry| entry.name)
}

/// The accesses between two moments, per operation.
fn point(
    name: &'static str,
    operation: usize,
    run: u32,
    before: Accesses,
    subject: &Subject,
    times: u64,
) -> Point {
    let after = subject.accesses();
    let per = |after: u64, before: u64| (after - before) as f64 / times.max(1) as f64;
    Point::new(name, operation as f64, run)
        .with("times", times as f64)
        .with("reads", per(after.reads, before.reads))
        .with("writes", per(after.writes, before.writes))
        .with("changes", per(after.changes, before.changes))
        .with_space(&subject.stats())
}

fn measure(setting: &Setting, filter: &'static str, run: u32) -> Result<Vec<Point>, TaskError> {
    let keys = keys(setting);
    let spec = Spec::new(keys, setting.seed("filter", run)).rate(0.5_f64.powi(EXPONENT));
    let mut subject = build(filter, &spec)?;
    let stored: Vec<[u8; 8]> =
        Uniform::new(setting.seed("stored", run)).take(keys).map(u64::to_le_bytes).collect();
    let mut points = Vec::new();

    let before = subject.accesses();
    for key in &stored {
        subject.insert(key)?;
    }
    points.push(point(filter, 0, run, before, &subject, keys as u64));

    let before = subject.accesses();
    let mut found = Vec::new();
    let queries = 64 * keys as u64;
    for key in Uniform::new(setting.seed("queries", run)).take(queries as usize).map(u64::to_le_bytes) {
        if subject.contains(&key) {
            found.push(key);
        }
    }
    points.push(point(filter, 1, run, before, &subject, queries - found.len() as u64));

    let before = subject.accesses();
    let positives = stored.iter().filter(|key| subject.contains(*key)).count();
    points.push(point(filter, 2, run, before, &subject, positives as u64));

    let before = subject.accesses();
    let mut repairs = 0;
    for key in &found {
        // An earlier repair may have fixed it already.
        if subject.contains(key) {
            repairs += 1;
            subject.adapt(key)?;
        }
    }
    points.push(point(filter, 3, run, before, &subject, repairs));

    let before = subject.accesses();
    let removed = stored.iter().step_by(4);
    let count = removed.len() as u64;
    for key in removed {
        subject.remove(key)?;
    }
    points.push(point(filter, 4, run, before, &subject, count));
    Ok(points)
}

impl Experiment for RemoteAccess {
    fn name(&self) -> &'static str {
        "004-remote-accesses"
    }

    fn title(&self) -> &'static str {
        "Remote accesses per operation"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let cost = 100.0 * keys(setting) as f64;
        let mut tasks = Vec::new();
        for filter in with_remote() {
            for run in 0..setting.repetitions(2, 5) {
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
                "{} keys inserted to load 0.95, ε = 2^-{EXPONENT}; 64 queries a key, every false positive of them repaired, a \
                 quarter of the keys removed. Lists read + groups of changes written, and the changes in those groups.",
                keys(setting)
            ))
            .table(table(points))
            .claim(query_claim(points))
            .claim(broom_claim(points))
    }
}

fn table(points: &Points) -> Table {
    let mut columns = vec![Column::text("filter")];
    columns.extend(space_columns());
    columns.extend(
        OPERATIONS.map(|operation| Column::number(operation.to_owned() + ": reads + writes (changes)")),
    );
    let mut table = Table::new("Remote accesses per operation", columns);
    for series in points.series("") {
        let bits = points.mean("", series, 3.0, "bits").map(compact).unwrap_or_default();
        let mut row = vec![series.to_owned(), bits, working_cell(points, "", series)];
        row.extend((0..OPERATIONS.len()).map(|operation| {
            let mean = |value| points.mean("", series, operation as f64, value);
            match (mean("reads"), mean("writes"), mean("changes")) {
                (Some(reads), Some(writes), Some(changes)) => {
                    format!("{} + {} ({})", compact(reads), compact(writes), compact(changes))
                }
                _ => String::new(),
            }
        }));
        table.row(row);
    }
    table
}

fn query_claim(points: &Points) -> Claim {
    let claim =
        Claim::new("a query that is no false positive never goes to the remote for the filter's sake");
    let accesses = |series: &str, operation: f64| {
        Some(points.mean("", series, operation, "reads")? + points.mean("", series, operation, "writes")?)
    };
    let all: Vec<f64> = points
        .series("")
        .iter()
        .flat_map(|series| [accesses(series, 1.0), accesses(series, 2.0)])
        .flatten()
        .collect();
    if all.is_empty() {
        return claim;
    }
    let most = all.iter().fold(0_f64, |most, accesses| most.max(*accesses));
    claim.measured(
        format!("at most {} accesses a query, {} filters", compact(most), all.len() / 2),
        most == 0.0,
    )
}

fn broom_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "broom goes O(1) times to the remote per insertion, removal and repair (here: 8 on average at most)",
    );
    let accesses = |operation: usize| {
        let mean = |value| points.mean("", "broom", operation as f64, value);
        Some(mean("reads")? + mean("writes")?)
    };
    let found: Vec<(&str, f64)> = [0, 3, 4]
        .into_iter()
        .filter_map(|operation| Some((OPERATIONS[operation], accesses(operation)?)))
        .collect();
    if found.is_empty() {
        return claim;
    }
    let text = found
        .iter()
        .map(|(name, times)| format!("{name} {}", compact(*times)))
        .collect::<Vec<_>>()
        .join(", ");
    claim.measured(text, found.iter().all(|(_, times)| *times <= 8.0))
}
