//! Beyond the papers: the space of telescoping and extension filters over the repairs that they have made, beside the
//! entropy of what they have to remember.

mod strangers;

use std::collections::BTreeMap;

use besom::{Adaptive, ExtensionFilter, MemoryRemote, Overflow, TelescopingFilter};

use self::strangers::{Chosen, Cut, Kind, Strangers};
use super::space::{working_cell, working_column};
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::report::{Axis, Claim, Column, Line, Plot, Section, Table, compact};

/// The table and the plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct RepairedSpace;

/// Where the numbers are taken: repairs per stored key.
const STOPS: [f64; 7] = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];
const REMAINDERS: [u32; 4] = [4, 8, 12, 16];
const LOAD: f64 = 0.95;
/// What a filter with remainders of 8 bits may take after four repairs per key.
const LIMITS: [(Kind, f64); 3] = [(Kind::Telescoping, 20.0), (Kind::Extension, 24.0), (Kind::OnBins, 26.0)];
const KINDS: [Kind; 3] = [Kind::Telescoping, Kind::Extension, Kind::OnBins];

/// How lines are cut that meet the rate of remainders of this many bits: slots of a bin, classes, bits of a tag.
const LINES: [(u32, [u32; 3]); 4] =
    [(4, [53, 24, 8]), (8, [50, 50, 8]), (12, [34, 64, 12]), (16, [27, 64, 15])];

fn line(remainder: u32) -> [u32; 3] {
    LINES.iter().find(|(other, _)| *other == remainder).map_or([50, 50, 8], |(_, line)| *line)
}

fn log2_slots(setting: &Setting) -> u32 {
    setting.pick(14, 16)
}

/// What a filter can do with values that do not fit. Bins have nothing that could be reset.
fn policies(kind: Kind) -> &'static [(&'static str, Overflow)] {
    match kind {
        Kind::OnBins => &[("spill", Overflow::Spill)],
        _ => &[("spill", Overflow::Spill), ("reset", Overflow::Reset)],
    }
}

/// How many keys fill a table of this kind, and how it cuts their hashes: its quotients, or its bins, are a power of
/// two.
fn shape(setting: &Setting, kind: Kind, remainder: u32) -> (usize, Cut) {
    let log2 = log2_slots(setting);
    let (cut, slots) = match kind {
        Kind::OnBins => {
            let ([slots, classes, tag_bits], home) = (line(remainder), log2 - 5);
            (
                Cut { home, behind: tag_bits, fingerprints: u64::from(classes) << (home + tag_bits) },
                slots << home,
            )
        }
        _ => (Cut { home: log2, behind: remainder, fingerprints: 1 << (log2 + remainder) }, 1 << log2),
    };
    ((LOAD * f64::from(slots)) as usize, cut)
}

fn series(kind: Kind, policy: &str) -> String {
    format!("{} {policy}", kind.name())
}

fn panel(remainder: u32) -> String {
    format!("r = {remainder}")
}

/// The entropy of numbers, in bits.
fn entropy(values: impl Iterator<Item = u32>) -> f64 {
    let mut counts = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_insert(0.0) += 1.0);
    let total: f64 = counts.values().sum();
    counts.values().map(|count| -count / total * (count / total).log2()).sum()
}

/// Fills a filter and repairs false positives, which come to its slots as random queries do.
fn measure<F: Adaptive<Hasher = Chosen>>(
    mut filter: F,
    kind: Kind,
    cut: Cut,
    seed: u64,
    point: impl Fn(f64) -> Point,
) -> Result<Vec<Point>, TaskError> {
    let keys = filter.capacity();
    let mut strangers = Strangers::new(kind, cut, keys, seed);
    let mut remote = MemoryRemote::new();
    for key in strangers.stored() {
        filter.insert(key, &mut remote)?;
    }
    if !strangers.are_met(|key| filter.contains(key)) {
        return Err(format!("{} cuts hashes otherwise than the experiment thinks", kind.name()).into());
    }
    let (mut points, mut repairs) = (Vec::new(), 0_u64);
    for stop in STOPS {
        while (repairs as f64) < stop * keys as f64 {
            let met = strangers.next(|key| filter.contains(key));
            repairs += u64::from(filter.adapt(&met, &mut remote)?.is_fixed());
        }
        filter.verify()?;
        let stats = filter.stats();
        // An extension is its length and as many bits.
        let values = strangers.values();
        let strings = if kind.extends() { values.iter().sum::<u32>() } else { 0 };
        points.push(
            point(stop)
                .with_space(&stats)
                .with("entropy", entropy(values.iter().copied()) + f64::from(strings) / keys as f64)
                .with("resets", stats.resets as f64)
                .with("spilled", stats.spills as f64),
        );
    }
    Ok(points)
}

fn run(
    setting: &Setting,
    kind: Kind,
    policy: &'static (&'static str, Overflow),
    remainder: u32,
    run: u32,
) -> Result<Vec<Point>, TaskError> {
    let (capacity, cut) = shape(setting, kind, remainder);
    let rate = LOAD * 0.5_f64.powf(f64::from(remainder)) * 1.000_1;
    let seed = setting.seed("strangers", run);
    let point = |stop| Point::new(series(kind, policy.0), stop, run).in_panel(panel(remainder));
    macro_rules! build {
        ($filter:ident $(, $table:ident)?) => {{
            let builder = $filter::builder().capacity(capacity).max_load(LOAD).overflow(policy.1);
            $(let builder = builder.table(besom::Table::$table);)?
            builder.false_positive_rate(rate).seed(seed).hasher::<Chosen>().build()?
        }};
    }
    match kind {
        Kind::Telescoping => measure(build!(TelescopingFilter), kind, cut, seed, point),
        Kind::Extension => measure(build!(ExtensionFilter, Quotient), kind, cut, seed, point),
        Kind::OnBins => measure(build!(ExtensionFilter, Bins), kind, cut, seed, point),
    }
}

impl Experiment for RepairedSpace {
    fn name(&self) -> &'static str {
        "besom-space-over-repairs"
    }

    fn title(&self) -> &'static str {
        "Space over repairs"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let cost = 100.0 * f64::from(1_u32 << log2_slots(setting));
        let mut tasks = Vec::new();
        for remainder in REMAINDERS {
            for kind in KINDS {
                for policy in policies(kind) {
                    for repetition in 0..setting.repetitions(1, 3) {
                        let (setting, name) = (setting.clone(), series(kind, policy.0));
                        let id = format!("{name}, r = {remainder}, run {repetition}");
                        let work = move || run(&setting, kind, policy, remainder, repetition);
                        tasks.push(Task::new(id, cost, work));
                    }
                }
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let mut section = Section::new().note(format!(
            "2^{} slots, about as many on bins, load {LOAD}; false positives as random queries make them (every slot alike in the telescoping \
             filter, one with an extension of ℓ bits 2^-ℓ times as often in the extension filter), made from the stored \
             keys under a hash function that can be inverted, so that nobody has to wait for them.",
            log2_slots(setting)
        ));
        for remainder in REMAINDERS {
            section = section.plot(plot(points, remainder));
        }
        section
            .table(bits_table(points))
            .table(table(
                points,
                "entropy",
                "Entropy of the values per key, in bits; with resets of those that would be there",
            ))
            .table(table(points, "resets", "Blocks that have forgotten their values"))
            .claim(limit_claim(points))
            .claim(entropy_claim(points))
    }
}

fn plot(points: &Points, remainder: u32) -> Plot {
    let panel = panel(remainder);
    let y = Axis::linear("bits per key").including(0.0);
    let title = format!("Space over repairs, remainders of {remainder} bits");
    let mut plot =
        Plot::lines(format!("space-{remainder}"), title, Axis::linear("repairs per stored key"), y);
    for name in points.series(&panel) {
        plot.line(Line::new(name, points.curve(&panel, name, "bits")));
    }
    for kind in KINDS {
        let name = series(kind, "spill");
        let Some(fresh) = points.mean(&panel, &name, 0.0, "bits") else { continue };
        let curve = points.curve(&panel, &name, "entropy");
        let line = curve.iter().map(|(stop, entropy)| (*stop, fresh + entropy.mean));
        plot.line(Line::exact(format!("{}: fresh + entropy", kind.name()), line));
    }
    plot
}

/// The bits per key, and what operations work in beside them.
fn bits_table(points: &Points) -> Table {
    let mut table = table(points, "bits", "Bits per key after so many repairs per key");
    table.columns.push(working_column());
    let places = REMAINDERS.map(panel);
    let rows =
        places.iter().flat_map(|panel| points.series(panel).into_iter().map(move |name| (panel, name)));
    for (row, (panel, name)) in table.rows.iter_mut().zip(rows) {
        row.push(working_cell(points, panel, name));
    }
    table
}

fn table(points: &Points, value: &str, caption: &str) -> Table {
    let mut columns = vec![Column::text("r"), Column::text("filter")];
    columns.extend(STOPS.iter().map(|stop| Column::number(format!("after {}", compact(*stop)))));
    let mut table = Table::new(caption, columns);
    for remainder in REMAINDERS {
        let panel = panel(remainder);
        for name in points.series(&panel) {
            let cell = |stop: &f64| points.mean(&panel, name, *stop, value).map(compact).unwrap_or_default();
            let mut row = vec![remainder.to_string(), name.to_owned()];
            row.extend(STOPS.iter().map(cell));
            table.row(row);
        }
    }
    table
}

fn limit_claim(points: &Points) -> Claim {
    let limits = LIMITS.map(|(kind, limit)| format!("{} {limit}", kind.name())).join(", ");
    let claim =
        Claim::new(format!("bits per key after 4 repairs per key with spill at r = 8, at most: {limits}"));
    let bits = LIMITS.map(|(kind, limit)| {
        Some((kind, limit, points.mean(&panel(8), &series(kind, "spill"), 4.0, "bits")?))
    });
    let bits: Vec<(Kind, f64, f64)> = bits.into_iter().flatten().collect();
    if bits.len() < LIMITS.len() {
        return claim;
    }
    let text = bits.iter().map(|(kind, _, bits)| format!("{} {}", kind.name(), compact(*bits)));
    let text = text.collect::<Vec<_>>().join(", ");
    claim.measured(text, bits.iter().all(|(_, limit, bits)| bits <= limit))
}

fn entropy_claim(points: &Points) -> Claim {
    let claim =
        Claim::new("with spill never more than the fresh filter, one bit per key and twice the entropy");
    let mut worst: Option<(f64, String)> = None;
    for remainder in REMAINDERS {
        for kind in KINDS {
            let (panel, name) = (panel(remainder), series(kind, "spill"));
            let at = |stop: f64, value: &str| points.mean(&panel, &name, stop, value);
            for stop in STOPS {
                let (Some(fresh), Some(bits), Some(entropy)) =
                    (at(0.0, "bits"), at(stop, "bits"), at(stop, "entropy"))
                else {
                    continue;
                };
                let left = fresh + 1.0 + 2.0 * entropy - bits;
                if worst.as_ref().is_none_or(|(least, _)| left < *least) {
                    worst = Some((left, format!("{name}, {panel}, after {} repairs", compact(stop))));
                }
            }
        }
    }
    match worst {
        Some((left, place)) => {
            claim.measured(format!("closest at {place}: {} bits a key to spare", compact(left)), left >= 0.0)
        }
        None => claim,
    }
}
