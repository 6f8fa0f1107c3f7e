//! 003, Figures 1 to 4: the cuckoo family on traces, with fingerprints of 8, 12 and 16 bits.

use super::contest::{against_best, rate_plot, rate_table, ratios};
use super::trace::{Panel, Source, tasks};
use super::{Experiment, Points, Setting, Task};
use crate::report::{Axis, Claim, Line, Plot, Section, compact};

/// The four figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct SupportTraces;

const FILTERS: [&str; 6] = ["cuckoo-remote", "cuckooing", "cyclic-1", "cyclic-2", "cyclic-3", "swapping"];
const OTHERS: [&str; 5] = ["cuckoo-remote", "cyclic-1", "cyclic-2", "cyclic-3", "swapping"];
const FINGERPRINTS: [u32; 3] = [8, 12, 16];

/// Long fingerprints need long traces, or there is nothing to count.
fn flows(setting: &Setting, fingerprint: u32) -> u32 {
    let quick = if fingerprint > 12 { 240_000 } else { 60_000 };
    setting.pick(quick, 1_000_000)
}

fn ratios_of(setting: &Setting) -> Vec<f64> {
    setting.pick(
        vec![1.0, 10.0, 50.0],
        vec![1.0, 3.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0],
    )
}

fn panel(source: &Source, fingerprint: u32) -> String {
    format!("{}, f = {fingerprint}", source.name())
}

impl Experiment for SupportTraces {
    fn name(&self) -> &'static str {
        "003-figures-1-to-4-traces"
    }

    fn title(&self) -> &'static str {
        "The cuckoo family on traces"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let panels: Vec<Panel> = FINGERPRINTS
            .into_iter()
            .flat_map(|slot_bits| {
                let sources = Source::all(setting, flows(setting, slot_bits)).into_iter();
                sources.map(move |source| Panel {
                    name: panel(&source, slot_bits),
                    source,
                    filters: &FILTERS,
                    slot_bits,
                })
            })
            .collect();
        tasks(setting, &panels, &ratios_of(setting))
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let mut section = Section::new().note(
            "Figure 1: f = 8 on every trace, and the rates of swapping and cyclic s = 1 over cuckooing's. Figures 2, 3 \
             and 4: each trace with f = 8, 12 and 16. f is the bits of a slot, selector bits included; load 0.95; n = U/(1 + A/S) \
             of U distinct keys are stored, every later request for another key is a query. flows A, B and C are \
             synthetic and stand in for Chicago A, Chicago B and San Jose.",
        );
        section = section.plot(normalised(setting, points));
        for fingerprint in FINGERPRINTS {
            for source in Source::all(setting, flows(setting, fingerprint)) {
                let panel = panel(&source, fingerprint);
                let id =
                    panel.to_lowercase().replace([' ', ',', '='], "-").replace("--", "-").replace("--", "-");
                let x = Axis::log("A/S: distinct queried keys per stored key");
                section = section
                    .plot(rate_plot(points, &panel, &id, &format!("The cuckoo family on {panel}"), x))
                    .table(rate_table(points, &panel, &panel, "A/S"));
            }
        }
        for fingerprint in FINGERPRINTS {
            section = section.claim(best(setting, points, fingerprint));
        }
        section.claim(factor(setting, points)).claim(trend(setting, points))
    }
}

/// The bottom right of Figure 1.
fn normalised(setting: &Setting, points: &Points) -> Plot {
    let x = Axis::log("A/S: distinct queried keys per stored key");
    let y = Axis::linear("false positives over cuckooing's").including(1.0);
    let mut plot = Plot::lines("normalised", "The two best others over cuckooing", x, y);
    for rival in ["swapping", "cyclic-1"] {
        for fingerprint in FINGERPRINTS {
            for source in Source::all(setting, flows(setting, fingerprint)) {
                let ratios = ratios(points, &panel(&source, fingerprint), rival, "cuckooing", |_| true);
                let finite = ratios.into_iter().filter(|(_, ratio)| ratio.is_finite());
                plot.line(Line::exact(format!("{rival}, {}, {fingerprint}", source.name()), finite));
            }
        }
    }
    plot.reference("cuckooing", 1.0);
    plot
}

fn best(setting: &Setting, points: &Points, fingerprint: u32) -> Claim {
    let claim = Claim::new(format!(
        "f = {fingerprint}: cuckooing is at least as good as every other, on every trace and at every A/S"
    ));
    let sources = Source::all(setting, flows(setting, fingerprint));
    let comparisons: Vec<_> = sources
        .iter()
        .flat_map(|source| {
            let found = against_best(points, &panel(source, fingerprint), "cuckooing", &OTHERS, |_| true);
            found.into_iter().map(|comparison| (source.name(), comparison))
        })
        .collect();
    if comparisons.is_empty() {
        return claim;
    }
    let clear = comparisons.iter().filter(|(_, c)| c.ratio <= 1.0 && !c.tied).count();
    let lost: Vec<String> = comparisons
        .iter()
        .filter(|(_, c)| !c.holds())
        .map(|(name, c)| format!("{name} at {}: {} over {}", compact(c.x), compact(c.ratio), c.rival))
        .collect();
    let text = format!(
        "best beyond its interval in {clear} of {} cases, otherwise level; worse in {}{}",
        comparisons.len(),
        lost.len(),
        if lost.is_empty() { String::new() } else { format!(" ({})", lost.join(", ")) }
    );
    claim.measured(text, lost.is_empty())
}

/// All ratios of swapping and cyclic-1 over cuckooing for one fingerprint size.
fn all_ratios(
    setting: &Setting,
    points: &Points,
    fingerprint: u32,
    wanted: impl Fn(f64) -> bool + Copy,
) -> Vec<f64> {
    let sources = Source::all(setting, flows(setting, fingerprint));
    let of = |source: &Source, rival| ratios(points, &panel(source, fingerprint), rival, "cuckooing", wanted);
    let both = sources.iter().flat_map(|source| [of(source, "swapping"), of(source, "cyclic-1")].concat());
    both.map(|(_, ratio)| ratio).filter(|ratio| ratio.is_finite()).collect()
}

fn factor(setting: &Setting, points: &Points) -> Claim {
    let claim = Claim::new("cuckooing is better than swapping and cyclic s = 1 by up to a factor of about 2");
    let ratios: Vec<f64> =
        FINGERPRINTS.into_iter().flat_map(|f| all_ratios(setting, points, f, |_| true)).collect();
    if ratios.is_empty() {
        return claim;
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let above = ratios.iter().filter(|ratio| **ratio > 1.5).count();
    let text = format!("mean ratio {}; above 1.5 in {above} of {} cases", compact(mean), ratios.len());
    claim.measured(text, (1.3..=2.6).contains(&mean) && above * 2 >= ratios.len())
}

fn trend(setting: &Setting, points: &Points) -> Claim {
    let claim = Claim::new("the advantage grows with f (f = 12 and 16 against f = 8)");
    let mean = |f: u32| {
        let ratios = all_ratios(setting, points, f, |_| true);
        (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
    };
    match FINGERPRINTS.map(mean) {
        [Some(eight), Some(twelve), Some(sixteen)] => {
            let text = format!(
                "mean ratio {} at f = 8, {} at 12, {} at 16",
                compact(eight),
                compact(twelve),
                compact(sixteen)
            );
            claim.measured(text, twelve >= eight && sixteen >= eight)
        }
        _ => claim,
    }
}
