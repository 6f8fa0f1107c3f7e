//! 002, Figures 10, 12 and 13: the false-positive rate over the space.

use super::tinyset::{Contender, Effort, measure};
use super::{Experiment, Point, Points, Setting, Task};
use crate::report::{Axis, Claim, Line, Plot, Section, compact};

/// One of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpaceFigure {
    /// Figure 10: by items per block.
    ItemsPerBlock,
    /// Figure 12: 40 items per block, beside rank-indexed hashing and a Bloom filter, and the analysis.
    Algorithms,
    /// Figure 13: blocks of fixed size beside access-efficient Bloom filters.
    Blocks,
}

const BITS: [f64; 9] = [6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0, 16.0, 19.0];

/// 40 items per block of 64 chains.
const FORTY: Contender = Contender::Items { items: 40.0, chains: 64, removal: false };

impl SpaceFigure {
    fn entries(self) -> Vec<(&'static str, Contender)> {
        match self {
            Self::ItemsPerBlock => vec![
                ("tinyset 16I", Contender::items(16)),
                ("tinyset 32I", Contender::items(32)),
                ("tinyset 64I", Contender::items(64)),
                ("tinyset 128I", Contender::items(128)),
            ],
            Self::Algorithms => vec![
                ("tinyset", FORTY),
                ("rank-indexed", Contender::Rank { counting: false, chains: 64 }),
                ("bloom", Contender::Bloom),
            ],
            Self::Blocks => vec![
                ("tinyset 64B", Contender::Block { bits: 512, chains: 64 }),
                ("tinyset 32B", Contender::Block { bits: 256, chains: 32 }),
                ("balanced-bloom", Contender::Balanced),
                ("blocked-bloom 32B", Contender::Blocked { probes: None }),
            ],
        }
    }
}

impl Experiment for SpaceFigure {
    fn name(&self) -> &'static str {
        match self {
            Self::ItemsPerBlock => "002-figure-10-items-per-block",
            Self::Algorithms => "002-figure-12-algorithms",
            Self::Blocks => "002-figure-13-blocks",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::ItemsPerBlock => "TinySet: rate over space by items per block",
            Self::Algorithms => "TinySet: rate over space beside other filters, and the analysis",
            Self::Blocks => "TinySet: rate over space in blocks of fixed size",
        }
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let (effort, mut tasks) = (Effort::new(setting), Vec::new());
        for (series, contender) in self.entries() {
            for bits in BITS {
                for run in 0..setting.repetitions(1, 5) {
                    let (effort, seed) =
                        (effort.for_rate(0.5_f64.powf(bits / 1.44)), setting.seed("curve", run));
                    let id = format!("{series}, {bits} bits, run {run}");
                    tasks.push(Task::new(id, effort.cost(), move || {
                        let measured = measure(contender, bits, effort, seed)?;
                        let mut point = Point::new(series, bits, run).with("rate", measured.rate);
                        if contender == FORTY {
                            let filter = contender.tinyset(effort.keys, bits, seed)?;
                            point = point.with("analysis", filter.expected_rate(effort.keys));
                        }
                        Ok(vec![point.with("bits", measured.bits)])
                    }));
                }
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let effort = Effort::new(setting);
        let note = format!("{} keys, {} queries for others.", effort.keys, effort.queries);
        let mut plot = Plot::lines(
            "rate",
            "False-positive rate over bits per item",
            Axis::linear("bits per item"),
            Axis::log("false-positive rate"),
        );
        for series in points.series("") {
            plot.line(Line::new(series, points.curve("", series, "rate")));
        }
        let analysis = points.curve("", "tinyset", "analysis");
        plot.line(Line::exact("analysis", analysis.into_iter().map(|(x, y)| (x, y.mean))));
        let claims = match self {
            Self::ItemsPerBlock => vec![larger_is_better(points)],
            Self::Algorithms => vec![
                analysis_claim(points, effort),
                break_even(points),
                at_nineteen(points, "bloom"),
                at_nineteen(points, "rank-indexed"),
            ],
            Self::Blocks => vec![access_efficient(points)],
        };
        claims.into_iter().fold(Section::new().note(note).plot(plot), Section::claim)
    }
}

fn rate(points: &Points, series: &str, bits: f64) -> Option<f64> {
    points.mean("", series, bits, "rate")
}

fn larger_is_better(points: &Points) -> Claim {
    let claim = Claim::new("the more items in a block, the lower the rate at the same space (at 12 bits)");
    let names = ["tinyset 16I", "tinyset 32I", "tinyset 64I", "tinyset 128I"];
    let rates: Option<Vec<f64>> = names.iter().map(|name| rate(points, name, 12.0)).collect();
    let Some(rates) = rates else { return claim };
    let text = rates.iter().map(|&rate| compact(rate)).collect::<Vec<_>>().join(", ");
    claim.measured(text, rates.is_sorted_by(|a, b| a > b))
}

fn analysis_claim(points: &Points, effort: Effort) -> Claim {
    let claim = Claim::new("the analysis is accurate (within 3% and three standard deviations)");
    let pairs = points.curve("", "tinyset", "rate").into_iter().zip(points.curve("", "tinyset", "analysis"));
    let pairs: Vec<(f64, f64, f64)> = pairs
        .map(|((_, rate), (_, analysis))| {
            let queries = (effort.queries * rate.runs) as f64;
            (rate.mean, analysis.mean, (analysis.mean / queries).sqrt())
        })
        .collect();
    let Some(worst) = pairs.iter().map(|(rate, analysis, _)| (rate / analysis - 1.0).abs()).reduce(f64::max)
    else {
        return claim;
    };
    let close = |&(rate, analysis, deviation): &(f64, f64, f64)| {
        (rate - analysis).abs() <= 0.03 * analysis + 3.0 * deviation
    };
    claim.measured(format!("at most {}% off", compact(100.0 * worst)), pairs.iter().all(close))
}

fn break_even(points: &Points) -> Claim {
    let claim = Claim::new("TinySet is better than a Bloom filter from 7.9 bits per item on, at the latest");
    let ahead = |bits| Some(rate(points, "bloom", bits)?.log2() - rate(points, "tinyset", bits)?.log2());
    let ahead: Option<Vec<f64>> = BITS.iter().map(|&bits| ahead(bits)).collect();
    let Some(ahead) = ahead else { return claim };
    let pairs = BITS.windows(2).zip(ahead.windows(2));
    let even = pairs.filter(|(_, ahead)| ahead[0] < 0.0 && ahead[1] >= 0.0);
    match even.map(|(bits, ahead)| bits[0] - ahead[0] * (bits[1] - bits[0]) / (ahead[1] - ahead[0])).next() {
        Some(even) => claim
            .measured(format!("{} bits", compact(even)), even <= 7.9)
            .because("the exact analysis puts the break-even point at 7.1 bits for this geometry"),
        None => claim.measured("at all sizes, or at none", false),
    }
}

fn at_nineteen(points: &Points, other: &str) -> Claim {
    let claim = Claim::new(format!(
        "at 19 bits per item TinySet is over 4 times more accurate than the best alternative (here than {other}: 3.5 times)"
    ));
    let (Some(tinyset), Some(other)) = (rate(points, "tinyset", 19.0), rate(points, other, 19.0)) else {
        return claim;
    };
    let ratio = other / tinyset;
    claim.measured(format!("{} times", compact(ratio)), ratio >= 3.5).if_not(
        "the paper's own Tables 1 and 3 leave 3.1 times at 19 bits; and the bins here have 64 chains where bins of 21 take what \
         Table 3 says (002-causes)",
    )
}

fn access_efficient(points: &Points) -> Claim {
    let claim = Claim::new(
        "at the end of the range TinySet 32B is about 9 times, TinySet 64B over 30 times more accurate than the best alternative \
         (here at 19 bits: at least 3 and 6 times)",
    );
    let names = ["tinyset 32B", "tinyset 64B", "balanced-bloom", "blocked-bloom 32B"];
    let [Some(small), Some(large), Some(balanced), Some(blocked)] =
        names.map(|name| rate(points, name, 19.0))
    else {
        return claim;
    };
    let best = balanced.min(blocked);
    let text = format!("{} and {} times", compact(best / small), compact(best / large));
    claim
        .measured(text, best / small >= 3.0 && best / large >= 6.0)
        .because("the range of the paper's figure is not printed; the ratio grows with the space")
}
