//! The question that the telescoping paper cites from Bender and others: is a plain filter with a cache of recent
//! false positives as good as an adaptive filter of the same size?

use super::contest::{Contest, first_time_claim, rate_plot, rate_table, ratios};
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::report::{Axis, Claim, Section, compact};
use crate::subject::Spec;
use crate::workload::{Uniform, Zipf};

/// The comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheQuestion;

const FILTERS: [&str; 15] = [
    "quotient",
    "quotient-cache",
    "telescoping-reset",
    "telescoping",
    "extension-reset",
    "extension-quotient",
    "broom-quotient",
    "cuckooing",
    "swapping",
    "cyclic-1",
    "cyclic-2",
    "cyclic-3",
    "adaptive-bloom",
    "cascade",
    "whitelist",
];

fn keys(setting: &Setting) -> usize {
    setting.pick(1 << 14, 1 << 20)
}

fn queries(setting: &Setting) -> usize {
    setting.pick(1_000_000, 50_000_000)
}

const UNIVERSE: u64 = 10;
const EXPONENTS: [f64; 5] = [0.6, 0.8, 1.0, 1.2, 1.4];

fn measure(setting: &Setting, exponent: f64, run: u32) -> Result<Vec<Point>, TaskError> {
    let keys = keys(setting);
    let mut contest = Contest::new(&FILTERS, &Spec::new(keys, setting.seed("filter", run)))?;
    for key in Uniform::new(setting.seed("stored", run)).take(keys) {
        contest.store(key)?;
    }
    let stream = Zipf::new(UNIVERSE * keys as u64, exponent, setting.seed("queries", run))?;
    for key in stream.take(queries(setting)) {
        contest.query(key)?;
    }
    contest.finish("", exponent, run)
}

impl Experiment for CacheQuestion {
    fn name(&self) -> &'static str {
        "001-cache-question"
    }

    fn title(&self) -> &'static str {
        "A plain filter with a cache of false positives, against adaptive filters of the same size"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let cost = (FILTERS.len() + 2) as f64 * queries(setting) as f64;
        let mut tasks = Vec::new();
        for exponent in EXPONENTS {
            for run in 0..setting.repetitions(3, 10) {
                let setting = setting.clone();
                tasks.push(Task::new(format!("Zipf {exponent}, run {run}"), cost, move || {
                    measure(&setting, exponent, run)
                }));
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let section = Section::new()
            .note(format!(
                "{} stored keys, {} Zipf queries over {UNIVERSE} absent keys per stored one, 11 bits a slot at load 0.95. \
                 quotient-cache has 8-bit remainders like telescoping; the bits that this spends on selectors hold whole keys \
                 of 64 bits (clock eviction; the cache's own links are not counted).",
                keys(setting),
                queries(setting)
            ))
            .plot(rate_plot(points, "", "rates", "Zipf queries, equal space", Axis::linear("Zipf exponent s")))
            .table(rate_table(points, "", "False-positive rates", "s ="));
        let adaptive = ["broom-quotient", "extension-quotient", "telescoping", "cuckooing"];
        let section = adaptive.into_iter().fold(section, |section, name| section.claim(claim(points, name)));
        section.claim(first_time_claim(
            points,
            "(cause) from s = 1.2 on the cached filter is level with telescoping, since nearly all false positives are first ones, \
             which neither a cache nor a repair prevents",
            ("telescoping", "quotient-cache"),
            |s| s >= 1.2,
        ))
    }
}

fn claim(points: &Points, name: &str) -> Claim {
    let claim = Claim::new(format!(
        "{name} has fewer false positives on Zipf queries than a filter with a cache of the same size"
    ));
    let ratios = ratios(points, "", name, "quotient-cache", |_| true);
    if ratios.is_empty() {
        return claim;
    }
    let text = ratios.iter().map(|(s, ratio)| format!("{} at s = {}", compact(*ratio), compact(*s)));
    let text = format!("its rate over the cached filter's: {}", text.collect::<Vec<_>>().join(", "));
    claim.measured(text, ratios.iter().all(|(_, ratio)| *ratio < 1.0))
}
