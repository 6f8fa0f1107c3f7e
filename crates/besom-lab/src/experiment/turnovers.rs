//! Beyond the papers: a year in a minute. Every key is replaced a hundred times, false positives are repaired all the
//! time, the filter grows twice; its space and its speed must not drift.

use std::collections::VecDeque;
use std::time::Instant;

use besom::{Adaptive, BroomFilter, ExtensionFilter, MemoryRemote, TelescopingFilter};

use super::space::{working_cell, working_column};
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::random::Random;
use crate::report::{Axis, Claim, Column, Line, Plot, Section, Table, compact};

/// The tables and plots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turnovers;

const TURNOVERS: usize = 100;
/// After this many the number of keys doubles, and with it the filter.
const DOUBLINGS: [usize; 2] = [30, 60];
/// Steady from here on after each doubling: repairs come and go with their keys.
const SETTLED: usize = 8;
const EXPONENT: i32 = 4;
const LOAD: f64 = 0.95;
/// Queries for strangers, for every key that is replaced. One in 16 or fewer is repaired.
const QUERIES: usize = 24;
const FILTERS: [&str; 3] = ["telescoping", "extension", "broom"];
/// What is shown over time.
const VALUES: [(&str, &str); 5] = [
    ("bits", "bits per key"),
    ("spilled", "blocks in the side store per thousand keys"),
    ("positive", "positive queries, million a second"),
    ("negative", "negative queries, million a second"),
    ("repairs", "repairs, thousand a second"),
];

fn keys(setting: &Setting) -> usize {
    setting.pick(1 << 12, 1 << 15)
}

/// The filter, its remote, and the keys that are stored, the oldest first.
struct Service<F> {
    filter: F,
    remote: MemoryRemote,
    stored: VecDeque<u64>,
    random: Random,
    /// Repairs since the last report, and the seconds that they took.
    repairs: u64,
    seconds: f64,
}

impl<F: Adaptive> Service<F> {
    fn insert(&mut self) -> Result<(), TaskError> {
        // Even numbers are stored, odd ones are strangers.
        let key = self.random.next_u64() & !1;
        if self.filter.insert(&key, &mut self.remote)? {
            self.stored.push_back(key);
        }
        Ok(())
    }

    fn replace_one(&mut self) -> Result<(), TaskError> {
        if let Some(key) = self.stored.pop_front()
            && !self.filter.remove(&key, &mut self.remote)?
        {
            return Err("a stored key was not there to be removed".into());
        }
        self.insert()?;
        for _ in 0..QUERIES {
            let stranger = self.random.next_u64() | 1;
            if self.filter.contains(&stranger) {
                let start = Instant::now();
                self.repairs += u64::from(self.filter.adapt(&stranger, &mut self.remote)?.is_fixed());
                self.seconds += start.elapsed().as_secs_f64();
            }
        }
        Ok(())
    }

    /// Million queries a second.
    fn speed(&self, keys: &[u64], expected: Option<usize>) -> Result<f64, TaskError> {
        let start = Instant::now();
        let found = keys.iter().filter(|key| self.filter.contains(*key)).count();
        let seconds = start.elapsed().as_secs_f64();
        if expected.is_some_and(|expected| expected != found) {
            return Err("a stored key was lost".into());
        }
        Ok(keys.len() as f64 / seconds / 1e6)
    }

    fn point(&mut self, filter: &str, turnover: usize, run: u32) -> Result<Point, TaskError> {
        let stored: Vec<u64> = self.stored.iter().copied().collect();
        let strangers: Vec<u64> = (0..stored.len()).map(|_| self.random.next_u64() | 1).collect();
        let (positive, negative) = (self.speed(&stored, Some(stored.len()))?, self.speed(&strangers, None)?);
        let stats = self.filter.stats();
        let (repairs, seconds) = (std::mem::take(&mut self.repairs), std::mem::take(&mut self.seconds));
        let speed = if repairs == 0 { 0.0 } else { repairs as f64 / seconds / 1e3 };
        Ok(Point::new(filter, turnover as f64, run)
            .with_space(&stats)
            .with("spilled", 1_000.0 * stats.spills as f64 / stats.items as f64)
            .with("positive", positive)
            .with("negative", negative)
            .with("repairs", speed)
            .with("repairs per key", repairs as f64 / stats.items as f64))
    }
}

fn measure<F: Adaptive>(filter: F, name: &str, setting: &Setting, run: u32) -> Result<Vec<Point>, TaskError> {
    let (remote, random) = (MemoryRemote::new(), Random::new(setting.seed("turnovers", run)));
    let mut service = Service { filter, remote, stored: VecDeque::new(), random, repairs: 0, seconds: 0.0 };
    while service.stored.len() < keys(setting) {
        service.insert()?;
    }
    let mut points = vec![service.point(name, 0, run)?];
    for turnover in 1..=TURNOVERS {
        if DOUBLINGS.contains(&turnover) {
            let more = service.stored.len();
            (0..more).try_for_each(|_| service.insert())?;
        }
        for _ in 0..service.stored.len() {
            service.replace_one()?;
        }
        points.push(service.point(name, turnover, run)?);
    }
    service.filter.verify()?;
    service.filter.verify_remote(&mut service.remote)?;
    Ok(points)
}

fn run(setting: &Setting, filter: &'static str, run: u32) -> Result<Vec<Point>, TaskError> {
    macro_rules! build {
        ($filter:ident) => {{
            let builder = $filter::builder().capacity(keys(setting)).max_load(LOAD).growable();
            builder.false_positive_rate(0.5_f64.powi(EXPONENT)).seed(setting.seed("filter", run)).build()?
        }};
    }
    match filter {
        "telescoping" => measure(build!(TelescopingFilter), filter, setting, run),
        "broom" => measure(build!(BroomFilter), filter, setting, run),
        _ => measure(build!(ExtensionFilter), filter, setting, run),
    }
}

impl Experiment for Turnovers {
    fn name(&self) -> &'static str {
        "besom-year-in-a-minute"
    }

    fn title(&self) -> &'static str {
        "A year in a minute"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let cost = 2.5 * (TURNOVERS * (QUERIES + 40) * keys(setting)) as f64;
        let mut tasks = Vec::new();
        for filter in FILTERS {
            for repetition in 0..setting.repetitions(1, 3) {
                let setting = setting.clone();
                let work = move || run(&setting, filter, repetition);
                tasks.push(Task::new(format!("{filter}, run {repetition}"), cost, work).timed());
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let mut section = Section::new().note(format!(
            "{} keys, ε = 2^-{EXPONENT}, load {LOAD}, growable, spill. In each turnover every key is removed and replaced, \
             with {QUERIES} queries for strangers after each; at {DOUBLINGS:?} the number of keys doubles.",
            keys(setting)
        ));
        for (value, label) in VALUES {
            let y = Axis::linear(label).including(0.0);
            let mut plot = Plot::lines(format!("turnovers-{value}"), label, Axis::linear("turnovers"), y);
            for name in points.series("") {
                plot.line(Line::new(name, points.curve("", name, value)));
            }
            section = section.plot(plot);
        }
        section
            .table(table(points))
            .claim(flat_claim(points, "bits", 0.02))
            .claim(flat_claim(points, "positive", 0.35))
    }
}

fn table(points: &Points) -> Table {
    let mut columns = vec![Column::text("filter"), Column::number("turnovers")];
    columns.extend(VALUES.map(|(_, label)| Column::number(label)));
    columns.extend([Column::number("repairs per key in the last turnover"), working_column()]);
    let mut table = Table::new("Space and speed over time", columns);
    for name in points.series("") {
        for turnover in (0..=TURNOVERS).step_by(10) {
            let cell =
                |value: &str| points.mean("", name, turnover as f64, value).map(compact).unwrap_or_default();
            let mut row = vec![name.to_owned(), turnover.to_string()];
            row.extend(VALUES.map(|(value, _)| cell(value)));
            row.extend([cell("repairs per key"), working_cell(points, "", name)]);
            table.row(row);
        }
    }
    table
}

/// Between the times when the filter is settled the largest value is at most so much above the smallest.
fn flat_claim(points: &Points, value: &str, drift: f64) -> Claim {
    let claim = Claim::new(format!(
        "{value} stay flat: from {SETTLED} turnovers on within {}%",
        compact(100.0 * drift)
    ));
    let mut worst: Option<(f64, String)> = None;
    for name in points.series("") {
        let curve = points.curve("", name, value);
        let settled = |turnover: f64| {
            let since = DOUBLINGS.iter().map(|&doubling| doubling as f64).filter(|&at| at <= turnover);
            turnover - since.fold(0.0, f64::max) >= SETTLED as f64
        };
        // The first and the last third, so that noise of single measurements does not count.
        let means: Vec<f64> =
            curve.iter().filter(|(turnover, _)| settled(*turnover)).map(|(_, value)| value.mean).collect();
        let third = means.len() / 3;
        if third == 0 {
            continue;
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (first, last) = (mean(&means[..third]), mean(&means[means.len() - third..]));
        let change = (last / first - 1.0).abs();
        if worst.as_ref().is_none_or(|(most, _)| change > *most) {
            worst = Some((change, format!("{name}: {} at first, {} at last", compact(first), compact(last))));
        }
    }
    match worst {
        Some((change, text)) => claim.measured(text, change <= drift).if_not(
            "four times as many keys are in another cache at the end, and the machine may have been busy",
        ),
        None => claim,
    }
}
