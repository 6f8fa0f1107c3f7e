//! Filters side by side: the same keys stored, the same queries asked, every false positive reported.

use std::collections::HashSet;

use super::space::{space_cells, space_columns, working_cell, working_column};
use super::{Point, Points, TaskError};
use crate::report::{Axis, Claim, Column, Line, Plot, Table, compact, with_interval};
use crate::stats::Summary;
use crate::subject::{Spec, Subject, SubjectError, build};

/// Some filters of the registry in one stream of queries.
pub(super) struct Contest {
    contestants: Vec<Contestant>,
    stored: Vec<u64>,
    queries: u64,
}

struct Contestant {
    name: &'static str,
    subject: Subject,
    false_positives: u64,
    /// The keys that were false positives.
    met: HashSet<u64>,
}

impl Contestant {
    fn new(name: &'static str, subject: Subject) -> Self {
        Self { name, subject, false_positives: 0, met: HashSet::new() }
    }
}

impl Contest {
    /// Builds the filters of these names from one spec.
    pub(super) fn new(names: &[&'static str], spec: &Spec) -> Result<Self, SubjectError> {
        let build = |&name: &&'static str| build(name, spec).map(|subject| Contestant::new(name, subject));
        let contestants = names.iter().map(build).collect::<Result<_, _>>()?;
        Ok(Self { contestants, stored: Vec::with_capacity(spec.keys), queries: 0 })
    }

    /// One more filter, before anything is stored.
    pub(super) fn add(&mut self, name: &'static str, subject: Subject) {
        self.contestants.push(Contestant::new(name, subject));
    }

    /// Stores a key in all filters.
    pub(super) fn store(&mut self, key: u64) -> Result<(), TaskError> {
        for Contestant { name, subject, .. } in &mut self.contestants {
            let stored = subject.insert(&key.to_le_bytes());
            stored.map_err(|error| format!("{name}: {error}"))?;
        }
        self.stored.push(key);
        Ok(())
    }

    /// Asks all filters about a key that is not stored.
    #[inline]
    pub(super) fn query(&mut self, key: u64) -> Result<(), SubjectError> {
        self.queries += 1;
        let bytes = key.to_le_bytes();
        for contestant in &mut self.contestants {
            if contestant.subject.contains(&bytes) {
                contestant.false_positives += 1;
                contestant.met.insert(key);
                contestant.subject.adapt(&bytes)?;
            }
        }
        Ok(())
    }

    /// The points of this contest at `x`: rate (all, and keys that are false positives for the first time), bits a
    /// key, and what it cost to adapt.
    ///
    /// Fails if a filter has lost a stored key meanwhile.
    pub(super) fn finish(self, panel: &str, x: f64, run: u32) -> Result<Vec<Point>, TaskError> {
        let mut points = Vec::new();
        for Contestant { name, subject, false_positives, met } in self.contestants {
            if let Some(lost) = self.stored.iter().find(|key| !subject.contains(&key.to_le_bytes())) {
                let key = lost.to_le_bytes().to_vec();
                return Err(format!("{name}: {}", SubjectError::FalseNegative { key }).into());
            }
            let stats = subject.stats();
            points.push(
                Point::new(name, x, run)
                    .in_panel(panel)
                    .with("rate", false_positives as f64 / self.queries.max(1) as f64)
                    .with("first", met.len() as f64 / self.queries.max(1) as f64)
                    .with("false positives", false_positives as f64)
                    .with("queries", self.queries as f64)
                    .with("keys", self.stored.len() as f64)
                    .with_space(&stats)
                    .with("adaptivity bits", stats.adaptivity_bits as f64 / stats.items.max(1) as f64)
                    .with("resets", stats.resets as f64)
                    .with("spills", stats.spills as f64)
                    .with("rebuilds", stats.rebuilds as f64),
            );
        }
        Ok(points)
    }
}

/// A plot of false-positive rates, one line per filter.
pub(super) fn rate_plot(points: &Points, panel: &str, id: &str, title: &str, x: Axis) -> Plot {
    let mut plot = Plot::lines(id, title, x, Axis::log("false-positive rate"));
    for series in points.series(panel) {
        plot.line(Line::new(series, rates(points, panel, series)));
    }
    plot
}

/// A series of rates, its intervals cut to what a rate can be.
fn rates(points: &Points, panel: &str, series: &str) -> Vec<(f64, Summary)> {
    let cut = |rate: Summary| Summary { low: rate.low.max(0.0), high: rate.high.min(1.0), ..rate };
    points.curve(panel, series, "rate").into_iter().map(|(x, rate)| (x, cut(rate))).collect()
}

/// A table of false-positive rates: one row per filter, with what it takes.
pub(super) fn rate_table(points: &Points, panel: &str, caption: &str, x: &str) -> Table {
    let xs = points.xs(panel);
    let mut columns = vec![Column::text("filter")];
    columns.extend(space_columns());
    columns.extend(xs.iter().map(|value| Column::number(format!("{x} {}", compact(*value)))));
    let mut table = Table::new(caption, columns);
    for series in points.series(panel) {
        let mut row = vec![series.to_owned()];
        row.extend(space_cells(points, panel, series));
        row.extend(xs.iter().map(|&x| {
            points.summary(panel, series, x, "rate").map_or_else(String::new, |rate| with_interval(&rate))
        }));
        table.row(row);
    }
    table
}

/// A table of the bits per key behind those rates, for filters whose memory grows as they adapt.
pub(super) fn bits_table(points: &Points, panel: &str, x: &str) -> Table {
    let xs = points.xs(panel);
    let mut columns = vec![Column::text("filter"), working_column()];
    columns.extend(xs.iter().map(|value| Column::number(format!("{x} {}", compact(*value)))));
    let mut table = Table::new("Bits a key at the end of the run, side tables included", columns);
    for series in points.series(panel) {
        let cell = |x: f64| points.mean(panel, series, x, "bits").map(compact).unwrap_or_default();
        let beside = [series.to_owned(), working_cell(points, panel, series)];
        table.row(beside.into_iter().chain(xs.iter().map(|x| cell(*x))));
    }
    table
}

/// At each x of a panel that `wanted` accepts: the mean of one series over the smallest mean of the `rivals`, and
/// whether their intervals leave it open which is smaller.
pub(super) fn against_best(
    points: &Points,
    panel: &str,
    series: &str,
    rivals: &[&str],
    wanted: impl Fn(f64) -> bool,
) -> Vec<Comparison> {
    let compare = |x: f64| {
        let own = points.summary(panel, series, x, "rate")?;
        let rivals = rivals.iter().filter(|rival| **rival != series);
        let (rival, best) = rivals
            .filter_map(|rival| Some((*rival, points.summary(panel, rival, x, "rate")?)))
            .min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))?;
        let ratio = own.mean / best.mean;
        let tied = own.low <= best.high && best.low <= own.high;
        Some(Comparison { x, ratio, rival: rival.to_owned(), tied })
    };
    points.xs(panel).into_iter().filter(|x| wanted(*x)).filter_map(compare).collect()
}

/// One series against the best of its rivals at one x.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    pub(super) x: f64,
    /// Its mean over the best rival's: below 1, it wins.
    pub(super) ratio: f64,
    pub(super) rival: String,
    /// Whether the confidence intervals overlap.
    pub(super) tied: bool,
}

impl Comparison {
    /// Whether it is the best; or as good as level with the best, within a tenth and with overlapping intervals.
    /// (Few runs have wide intervals: overlap alone would excuse everything.)
    pub(super) fn holds(&self) -> bool {
        self.ratio <= 1.0 || (self.tied && self.ratio <= 1.1)
    }
}

/// `1: 0.62 (swapping), 20: 1.1 (cyclic-2, intervals overlap)`.
pub(super) fn describe(comparisons: &[Comparison]) -> String {
    let each = comparisons.iter().map(|Comparison { x, ratio, rival, tied }| {
        let remark = if *tied { ", intervals overlap" } else { "" };
        format!("{}: {} ({rival}{remark})", compact(*x), compact(*ratio))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The ratios of two series' means at each x that `wanted` accepts.
pub(super) fn ratios(
    points: &Points,
    panel: &str,
    upper: &str,
    lower: &str,
    wanted: impl Fn(f64) -> bool,
) -> Vec<(f64, f64)> {
    quotients(points, panel, (upper, "rate"), (lower, "rate"), wanted)
}

/// The quotients of the means of any two values of two series.
pub(super) fn quotients(
    points: &Points,
    panel: &str,
    upper: (&str, &str),
    lower: (&str, &str),
    wanted: impl Fn(f64) -> bool,
) -> Vec<(f64, f64)> {
    let mean = |(series, value): (&str, &str), x: f64| points.mean(panel, series, x, value);
    let quotient = |x: f64| Some((x, mean(upper, x)? / mean(lower, x)?));
    points.xs(panel).into_iter().filter(|x| wanted(*x)).filter_map(quotient).collect()
}

/// A claim of ours about the cause of a disagreement: two series have the same rate of keys that are false positives
/// for the first time (within 7% or their intervals), which is all that they can differ by where few come again.
pub(super) fn first_time_claim(
    points: &Points,
    statement: &str,
    pair: (&str, &str),
    wanted: impl Fn(f64) -> bool + Copy,
) -> Claim {
    let claim = Claim::new(statement);
    let firsts = quotients(points, "", (pair.0, "first"), (pair.1, "first"), wanted);
    if firsts.is_empty() {
        return claim;
    }
    let share = |series| quotients(points, "", (series, "first"), (series, "rate"), wanted);
    let overlap = |x: f64| {
        let of = |series| points.summary("", series, x, "first");
        of(pair.0).zip(of(pair.1)).is_some_and(|(a, b)| a.low <= b.high && b.low <= a.high)
    };
    let agrees = firsts.iter().all(|&(x, ratio)| (ratio - 1.0).abs() <= 0.07 || overlap(x));
    let text = format!(
        "first-time rate over {}'s: {}; first-time share of all its false positives: {}; of {}'s: {}",
        pair.1,
        list(&firsts),
        list(&share(pair.0)),
        pair.1,
        list(&share(pair.1))
    );
    claim.measured(text, agrees)
}

/// `0.62 at 1, 0.7 at 20`.
pub(super) fn list(ratios: &[(f64, f64)]) -> String {
    let each = ratios.iter().map(|(x, ratio)| format!("{} at {}", compact(*ratio), compact(*x)));
    each.collect::<Vec<_>>().join(", ")
}
