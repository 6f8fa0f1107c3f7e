//! 001, the right of Figure 4: an adversary that whittles its queries down to those that keep getting through.

use besom::game::Rules;

use super::contest::{bits_table, rate_plot, rate_table};
use super::firehose::FILTERS;
use super::space::bits_range;
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::adversary::{WhittlingRounds, play};
use crate::report::{Axis, Claim, Section, compact};
use crate::subject::{Spec, Trial, build};

/// The plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adversarial;

fn keys(setting: &Setting) -> usize {
    setting.pick(1 << 13, 1 << 16)
}

fn rounds(setting: &Setting) -> u32 {
    setting.pick(20, 100)
}

fn ratios(setting: &Setting) -> Vec<f64> {
    setting.pick(
        vec![1.0, 5.0, 10.0, 20.0, 40.0, 80.0],
        vec![1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 80.0, 100.0],
    )
}

fn measure(setting: &Setting, filter: &'static str, ratio: f64, run: u32) -> Result<Vec<Point>, TaskError> {
    let keys = keys(setting);
    let mut trial = Trial::new(build(filter, &Spec::new(keys, setting.seed("filter", run)))?);
    let queries = (keys as f64 * ratio) as usize;
    let mut adversary = WhittlingRounds::new(setting.seed("adversary", run), queries, rounds(setting));
    let outcome = play(&mut trial, Rules { capacity: keys, rate: 1.0 / 256.0 }, &mut adversary)?;
    let last = adversary.last_round();
    let stats = trial.stats();
    Ok(vec![
        Point::new(filter, ratio, run)
            .with("rate", last.rate())
            .with("rounds", f64::from(last.rounds))
            .with("left", last.queries as f64 / keys as f64)
            .with("overall rate", outcome.false_positive_rate())
            .with("lookups", outcome.lookups as f64)
            .with("won", f64::from(u8::from(outcome.won)))
            .with_space(&stats)
            .with("resets", stats.resets as f64),
    ])
}

impl Experiment for Adversarial {
    fn name(&self) -> &'static str {
        "001-figure-4-adversarial"
    }

    fn title(&self) -> &'static str {
        "False positives on the adversarial stream"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let mut tasks = Vec::new();
        for filter in FILTERS {
            for ratio in ratios(setting) {
                for run in 0..setting.repetitions(3, 10) {
                    let setting = setting.clone();
                    let cost = 12.0 * ratio * keys(&setting) as f64;
                    tasks.push(Task::new(format!("{filter}, |Q|/|S| {ratio}, run {run}"), cost, move || {
                        measure(&setting, filter, ratio, run)
                    }));
                }
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let x = Axis::log("|Q|/|S|: queries of the adversary per stored key");
        let mut plot = rate_plot(points, "", "rates", "False-positive rate of the last round", x);
        plot.y = Axis::linear("false-positive rate of the last round").including(0.0);
        let section = Section::new()
            .note(format!(
                "{} stored keys, 11 bits a slot, load 0.95; rounds of ten passes over Q, at most {} rounds, until \
                 |Q| ≤ 0.01·|S|.",
                keys(setting),
                rounds(setting)
            ))
            .plot(plot)
            .table(rate_table(points, "", "False-positive rate of the last round", "|Q|/|S|"))
            .table(bits_table(points, "", "|Q|/|S|"));
        claims(section, points)
    }
}

fn claims(section: Section, points: &Points) -> Section {
    let line = |series: &str, wanted: &dyn Fn(f64) -> bool| -> Vec<(f64, f64)> {
        points
            .curve("", series, "rate")
            .iter()
            .map(|(x, y)| (*x, y.mean))
            .filter(|(x, _)| wanted(*x))
            .collect()
    };
    let text = |points: &[(f64, f64)]| {
        points
            .iter()
            .map(|(x, y)| format!("{} at {}", compact(*y), compact(*x)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut near_zero = Claim::new("telescoping stays near zero (below 0.1) up to |Q|/|S| ≈ 20");
    let low = line("telescoping-reset", &|x| x <= 20.0);
    if !low.is_empty() {
        near_zero = near_zero.measured(text(&low), low.iter().all(|(_, rate)| *rate < 0.1));
    }
    let mut beyond = Claim::new("beyond it the adversary forces false positives on telescoping");
    let high = line("telescoping-reset", &|x| x > 20.0);
    if !high.is_empty() {
        beyond = beyond.measured(text(&high), high.last().is_some_and(|(_, rate)| *rate > 0.1));
    }
    let mut ours =
        Claim::new("(ours) a telescoping filter that spills full blocks instead does not give way");
    let spilled = line("telescoping", &|_| true);
    if !spilled.is_empty() {
        let bits = bits_range(points, "", "telescoping");
        let agrees = spilled.iter().all(|(_, rate)| *rate < 0.1);
        ours = ours.measured(format!("{}; it takes {bits} bits a key", text(&spilled)), agrees);
    }
    let mut cyclic =
        Claim::new("cyclic s = 3 does well although it is not adaptive (below cyclic s = 1 everywhere)");
    let (three, one) = (line("cyclic-3", &|_| true), line("cyclic-1", &|_| true));
    if !three.is_empty() && !one.is_empty() {
        let agrees = three.iter().zip(&one).all(|((_, three), (_, one))| three <= one);
        cyclic = cyclic.measured(format!("s = 3: {}; s = 1: {}", text(&three), text(&one)), agrees);
    }
    section.claim(near_zero).claim(beyond).claim(ours).claim(cyclic)
}
