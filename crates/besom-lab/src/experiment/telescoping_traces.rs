//! 001, Figure 3 and the left of Figure 4: false positives on traces.

use super::contest::{Comparison, against_best, describe, list, rate_plot, rate_table, ratios};
use super::firehose::FILTERS;
use super::trace::{Panel, Source, tasks};
use super::{Experiment, Points, Setting, Task};
use crate::report::{Axis, Claim, Section};

/// The three plots, and one more for each real trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct TelescopingTraces;

fn flows(setting: &Setting) -> u32 {
    setting.pick(60_000, 1_000_000)
}

fn ratios_of(setting: &Setting) -> Vec<f64> {
    setting.pick(
        vec![1.0, 5.0, 20.0, 60.0],
        vec![1.0, 3.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0],
    )
}

impl Experiment for TelescopingTraces {
    fn name(&self) -> &'static str {
        "001-figures-3-4-traces"
    }

    fn title(&self) -> &'static str {
        "False positives on traces"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let panel = |source: Source| {
            let name = source.name().to_owned();
            Panel { name, source, filters: &FILTERS, slot_bits: 11 }
        };
        let panels: Vec<Panel> = Source::all(setting, flows(setting)).into_iter().map(panel).collect();
        tasks(setting, &panels, &ratios_of(setting))
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let mut section = Section::new().note(format!(
            "The papers' traces (CAIDA 2014) may not be passed on: flows A, B and C are synthetic ({} flows, \
             rank-size exponents 1.00, 1.05, 1.08) and stand in for Chicago A, Chicago B (Figure 3) and San Jose \
             (Figure 4, left). OLTP and P3 are disk traces (Megiddo and Modha, FAST 2003), used when present. \
             11 bits a slot, load 0.95.",
            flows(setting)
        ));
        for source in Source::all(setting, flows(setting)) {
            let panel = source.name();
            let id = panel.to_lowercase().replace(' ', "-");
            let title = format!("False positives on {panel}");
            let x = Axis::log("A/S: distinct queried keys per stored key");
            section = section
                .plot(rate_plot(points, panel, &id, &title, x))
                .table(rate_table(points, panel, &title, "A/S"));
        }
        for source in Source::all(setting, flows(setting)) {
            section = claims(section, points, source.name());
        }
        section
    }
}

fn claims(section: Section, points: &Points, panel: &str) -> Section {
    let others = ["telescoping-reset", "extension-reset", "swapping", "cyclic-1", "cyclic-2", "cyclic-3"];
    let mut best = Claim::new(format!("{panel}: cuckooing is the best, it spends no bits on adaptivity"));
    let comparisons = against_best(points, panel, "cuckooing", &others, |_| true);
    if !comparisons.is_empty() {
        let text = format!("its rate over the best other's, at A/S {}", describe(&comparisons));
        best = best.measured(text, comparisons.iter().all(Comparison::holds));
    }
    let mut alike = Claim::new(format!(
        "{panel}: telescoping ≈ extension ≈ swapping ≈ cyclic s = 1 (within a factor of 2 of each other)"
    ));
    let pairs: Vec<(&str, Vec<(f64, f64)>)> = ["extension-reset", "swapping", "cyclic-1"]
        .map(|rival| (rival, ratios(points, panel, rival, "telescoping-reset", |_| true)))
        .into();
    if pairs.iter().any(|(_, ratios)| !ratios.is_empty()) {
        let agrees =
            pairs.iter().flat_map(|(_, ratios)| ratios).all(|(_, ratio)| (0.5..=2.0).contains(ratio));
        let text = pairs.iter().map(|(rival, ratios)| format!("{rival}: {}", list(ratios)));
        let text = text.collect::<Vec<_>>().join("; ");
        alike = alike.measured(format!("over telescoping's, at A/S … {text}"), agrees);
    }
    section.claim(best).claim(alike)
}
