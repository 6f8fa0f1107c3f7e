//! 004: what a budget of adaptivity bits makes of the broom filter, beside the extension filter that never forgets.

use std::collections::HashSet;

use besom::any::dyn_adaptive;
use besom::{BroomFilter, BuildError};

use super::contest::{Contest, list, rate_plot, rate_table, ratios};
use super::firehose::Firehose;
use super::space::{working_cell, working_column};
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::report::{Axis, Claim, Column, Section, Table, compact};
use crate::subject::{Spec, Subject};
use crate::workload::Uniform;

/// The Firehose active set with three budgets.
#[derive(Debug, Clone, Copy)]
pub(super) struct BroomBudget;

/// Adaptivity bits per key, and what the filters with them are called.
const BUDGETS: [(f64, &str); 3] = [(0.25, "broom, 0.25"), (0.5, "broom, 0.5"), (1.5, "broom, 1.5")];

/// What the frontier may let pass beyond the budget: half a bit per key, and the collisions of what it carries.
const MARGIN: f64 = 0.75;

/// The load of all filters, so that all of them have remainders of 8 bits and the same rate of fresh false positives.
const LOAD: f64 = 0.90;

fn broom(spec: &Spec, budget: f64) -> Result<Subject, BuildError> {
    let builder = BroomFilter::builder().capacity(spec.keys).max_load(spec.load).seed(spec.seed);
    let builder =
        builder.false_positive_rate(1.0 / 256.0).adaptivity_budget(budget).table(besom::Table::Quotient);
    builder.build().map(|filter| Subject::new(dyn_adaptive(filter)))
}

fn measure(setting: &Setting, ratio: f64, run: u32) -> Result<Vec<Point>, TaskError> {
    let stream = || Firehose::ActiveSet.stream(setting, run);
    let distinct = stream().collect::<HashSet<u64>>().len();
    let keys = ((distinct as f64 / ratio) as usize).max(1);
    let spec = Spec::new(keys, setting.seed("filter", run)).load(LOAD);
    let mut contest = Contest::new(&["extension-quotient"], &spec)?;
    for (budget, name) in BUDGETS {
        contest.add(name, broom(&spec, budget)?);
    }
    for key in Uniform::new(setting.seed("stored", run)).take(keys) {
        contest.store(key)?;
    }
    for key in stream() {
        contest.query(key)?;
    }
    contest.finish("", ratio, run)
}

impl Experiment for BroomBudget {
    fn name(&self) -> &'static str {
        "004-broom-budget"
    }

    fn title(&self) -> &'static str {
        "The broom filter's budget of adaptivity bits on the Firehose active set"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let cost = (BUDGETS.len() + 3) as f64 * Firehose::ActiveSet.queries(setting) as f64;
        let mut tasks = Vec::new();
        for ratio in Firehose::ActiveSet.ratios(setting) {
            for run in 0..setting.repetitions(2, 10) {
                let setting = setting.clone();
                tasks.push(Task::new(format!("A/S {ratio}, run {run}"), cost, move || {
                    measure(&setting, ratio, run)
                }));
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let x = Axis::log("A/S: unique queries per stored key");
        Section::new()
            .note(format!(
                "{} queries a run, remainders of 8 bits, load {LOAD} for every filter; \"broom, b\" reclaims adaptivity bits when it \
                 has more than b per key. Extension (spill) never forgets.",
                Firehose::ActiveSet.queries(setting)
            ))
            .plot(rate_plot(points, "", "rates", self.title(), x))
            .table(rate_table(points, "", "False-positive rates, mean and 95% interval over the runs", "A/S"))
            .table(adaptivity_table(points))
            .claim(memory_claim(points))
            .claim(budget_claim(points))
    }
}

fn adaptivity_table(points: &Points) -> Table {
    let xs = points.xs("");
    let mut columns = vec![Column::text("filter"), working_column()];
    columns.extend(xs.iter().map(|x| Column::number(format!("A/S {}", compact(*x)))));
    let mut table = Table::new("Adaptivity bits per key / all bits per key at the end", columns);
    for series in points.series("") {
        let mean = |x: f64, value: &str| points.mean("", series, x, value).map(compact).unwrap_or_default();
        let cells = xs.iter().map(|&x| format!("{} / {}", mean(x, "adaptivity bits"), mean(x, "bits")));
        table.row([series.to_owned(), working_cell(points, "", series)].into_iter().chain(cells));
    }
    table
}

/// Where all of a filter's bits are within its budget.
fn within(points: &Points, budget: f64, name: &str, x: f64) -> bool {
    points.mean("", name, x, "adaptivity bits").is_some_and(|bits| bits < 0.98 * budget)
}

fn memory_claim(points: &Points) -> Claim {
    let mut claim = Claim::new(
        "within its budget a broom filter remembers like an extension filter: at most 1.3 times its false positives, with no more \
         adaptivity bits",
    );
    let (mut texts, mut agrees) = (Vec::new(), true);
    for (budget, name) in BUDGETS {
        let inside = |x| within(points, budget, name, x);
        let rates = ratios(points, "", name, "extension-quotient", inside);
        let bits = |x, series| points.mean("", series, x, "adaptivity bits").unwrap_or(0.0);
        // The two meet other false positives, so a hundredth of a bit is chance.
        agrees &= rates
            .iter()
            .all(|&(x, ratio)| ratio <= 1.3 && bits(x, name) <= 1.05 * bits(x, "extension-quotient") + 0.01);
        texts.push(format!("{name}: {}", list(&rates)));
    }
    if !points.xs("").is_empty() {
        claim = claim.measured(format!("its rate over extension's, at A/S {}", texts.join("; ")), agrees);
    }
    claim
}

fn budget_claim(points: &Points) -> Claim {
    let claim = Claim::new(format!("the adaptivity bits stay below the budget and {MARGIN} per key"));
    let most = |name: &str| {
        let curve = points.curve("", name, "adaptivity bits");
        curve.iter().map(|(_, bits)| bits.mean).fold(0.0, f64::max)
    };
    if points.xs("").is_empty() {
        return claim;
    }
    let texts = BUDGETS.map(|(_, name)| format!("{name}: {}", compact(most(name))));
    let agrees = BUDGETS.iter().all(|&(budget, name)| most(name) <= budget + MARGIN);
    claim.measured(format!("the most bits per key at the end: {}", texts.join("; ")), agrees)
}
