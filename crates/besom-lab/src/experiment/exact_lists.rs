//! Ours: exact lists beside the limit of any list.

use besom::exact::{ExactList, List, Lists, limit_bits};
use besom::format::{Persist, WriteOptions};
use besom::{Filter, Key};

use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::random;
use crate::report::{Claim, Column, Section, Table, compact};

/// The table.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExactLists;

/// Rejected keys for every accepted one; less than 1 if more are accepted.
const RATIOS: [f64; 6] = [0.1, 1.0, 10.0, 70.0, 110.0, 1000.0];

/// Keys of neither list that are asked for.
const UNKNOWN: u64 = 100_000;

/// What the two tables may take beyond r + 1 + k/2^r bits a key, header and all.
const OVERHEAD: f64 = 1.03;

fn shorter(setting: &Setting) -> u64 {
    setting.pick(10_000, 100_000)
}

/// Numbers of two lists: those from 0 on are accepted, those behind them rejected.
struct Numbers {
    yes: u64,
    no: u64,
    seed: u64,
}

impl Numbers {
    fn of(setting: &Setting, ratio: f64, run: u32) -> Self {
        let (shorter, longer) = (shorter(setting), shorter(setting) as f64 * ratio.max(1.0 / ratio));
        let seed = setting.seed("keys", run);
        if ratio < 1.0 {
            Self { yes: longer as u64, no: shorter, seed }
        } else {
            Self { yes: shorter, no: longer as u64, seed }
        }
    }

    /// The key of a number. Different numbers have different keys.
    fn key(&self, number: u64) -> u64 {
        random::mix(number ^ self.seed)
    }

    /// How many keys of a range the list answers in another way.
    fn wrong(&self, list: &ExactList, numbers: std::ops::Range<u64>, expected: bool) -> usize {
        numbers.filter(|&number| list.contains(&self.key(number)) != expected).count()
    }
}

impl Lists for Numbers {
    type Error = std::convert::Infallible;

    fn visit(&mut self, list: List, mut visit: impl FnMut(&[u8])) -> Result<(), Self::Error> {
        let numbers = if list == List::Yes { 0..self.yes } else { self.yes..self.yes + self.no };
        numbers.for_each(|number| self.key(number).with_bytes(&mut visit));
        Ok(())
    }

    fn count(&mut self, list: List) -> Result<u64, Self::Error> {
        Ok(if list == List::Yes { self.yes } else { self.no })
    }
}

fn measure(setting: &Setting, ratio: f64, run: u32) -> Result<Vec<Point>, TaskError> {
    let mut numbers = Numbers::of(setting, ratio, run);
    let list = ExactList::builder().seed(setting.seed("filter", run)).build_from(&mut numbers)?;
    let known = numbers.yes + numbers.no;
    let shorter = numbers.yes.min(numbers.no) as f64;
    let wrong = numbers.wrong(&list, 0..numbers.yes, true) + numbers.wrong(&list, numbers.yes..known, false);
    let unknown = numbers.wrong(&list, known..known + UNKNOWN, false);
    let bytes = list.to_bytes(&WriteOptions::new())?.len();
    Ok(vec![
        Point::new("exact", ratio, run)
            .with("bits", 8.0 * bytes as f64 / shorter)
            .with("limit", limit_bits(numbers.yes, numbers.no) / shorter)
            .with("formula", formula(ratio.max(1.0 / ratio)))
            .with("wrong", wrong as f64)
            .with("unknown", unknown as f64 / UNKNOWN as f64),
    ])
}

/// The smallest r + 1 + k/2^r.
fn formula(ratio: f64) -> f64 {
    (0..32).map(|r| f64::from(r) + 1.0 + ratio / 2.0_f64.powi(r)).fold(f64::INFINITY, f64::min)
}

impl Experiment for ExactLists {
    fn name(&self) -> &'static str {
        "besom-exact-lists"
    }

    fn title(&self) -> &'static str {
        "Exact lists near the limit"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let mut tasks = Vec::new();
        for ratio in RATIOS {
            for run in 0..setting.repetitions(1, 3) {
                let setting = setting.clone();
                let cost = 3.0 * shorter(&setting) as f64 * ratio.max(1.0 / ratio);
                tasks.push(Task::new(format!("1 : {ratio}, run {run}"), cost, move || {
                    measure(&setting, ratio, run)
                }));
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        Section::new()
            .note(format!(
                "{} keys in the shorter list, sizes of files in bits per key of that list. The limit is the binary logarithm of the \
                 number of ways to choose the accepted keys. `docs/exact-lists.md` has clubcard and the cascade beside it.",
                shorter(setting)
            ))
            .table(table(points))
            .claim(exact_claim(points))
            .claim(size_claim(points))
    }
}

fn table(points: &Points) -> Table {
    let mut columns = vec![Column::text("yes : no")];
    columns.extend(
        ["limit", "r + 1 + k/2^r", "exact list", "wrong answers", "unknown accepted"].map(Column::number),
    );
    let mut table = Table::new("Bits per key of the shorter list", columns);
    for ratio in points.xs("") {
        let cell = |value: &str| points.mean("", "exact", ratio, value).map(compact).unwrap_or_default();
        let ratio = if ratio < 1.0 { format!("{} : 1", 1.0 / ratio) } else { format!("1 : {ratio}") };
        table.row(vec![ratio, cell("limit"), cell("formula"), cell("bits"), cell("wrong"), cell("unknown")]);
    }
    table
}

fn exact_claim(points: &Points) -> Claim {
    let claim = Claim::new("no answer to a key of either list is wrong");
    let wrong: Vec<f64> =
        points.all().iter().filter_map(|point| point.values.get("wrong").copied()).collect();
    if wrong.is_empty() {
        return claim;
    }
    let sum: f64 = wrong.iter().sum();
    claim.measured(format!("{sum} wrong answers in {} lists", wrong.len()), sum == 0.0)
}

fn size_claim(points: &Points) -> Claim {
    let percent = compact(100.0 * (OVERHEAD - 1.0));
    let claim = Claim::new(format!(
        "a list takes at most {percent}% more than r + 1 + k/2^r bits a key, header and all"
    ));
    let above = |ratio: f64| {
        let value = |value: &str| points.mean("", "exact", ratio, value);
        Some((ratio, value("bits")? / value("formula")?))
    };
    let above: Vec<(f64, f64)> = points.xs("").into_iter().filter_map(above).collect();
    if above.is_empty() {
        return claim;
    }
    let text: Vec<String> = above.iter().map(|(ratio, above)| format!("{above:.4} at 1 : {ratio}")).collect();
    let agrees = above.iter().all(|(_, above)| *above <= OVERHEAD);
    claim
        .measured(text.join(", "), agrees)
        .if_not("short lists have a header of 128 bytes and whole cache lines")
}
