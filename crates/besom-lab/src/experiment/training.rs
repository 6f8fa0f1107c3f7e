//! What "How to Train Your Filter" (arXiv 2602.13484) compares: filters that are trained, filters that adapt and
//! filters that do neither; on workloads that are known beforehand, that drift, and that an adversary bends.
//!
//! Learned filters are left out: they need features of keys, and these workloads have none.

use besom::any::dyn_plain;

use super::contest::{Contest, list, rate_plot, rate_table, ratios};
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::comparison::{Sample, StackedFilter};
use crate::random::{Random, mix};
use crate::report::{Axis, Claim, Section};
use crate::subject::{Spec, Subject, build};
use crate::workload::{Uniform, Zipf};

/// The comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Training;

const FILTERS: [&str; 7] =
    ["bloom", "quotient", "bloom+cache", "telescoping", "extension-quotient", "broom-quotient", "cuckooing"];
/// Those that adapt with a hash index.
const ADAPTIVE: [&str; 4] = ["telescoping", "extension-quotient", "broom-quotient", "cuckooing"];

/// Absent keys for each stored one.
const UNIVERSE: u64 = 10;
/// The panels, and where on their axes points lie.
const STATIC: (&str, [f64; 5]) = ("static", [0.0, 0.5, 1.0, 1.5, 2.0]);
const DRIFTING: (&str, [f64; 5]) = ("drifting", [0.0, 0.25, 0.5, 0.75, 1.0]);
const ADVERSARIAL: (&str, [f64; 5]) = ("adversarial", [0.0, 0.01, 0.1, 0.3, 0.9]);
/// Queries that a stacked filter is trained on, for each that is measured.
const KNOWLEDGE: (&str, [f64; 4]) = ("knowledge", [0.01, 0.1, 1.0, 4.0]);
const SKEWED: f64 = 1.5;

fn keys(setting: &Setting) -> usize {
    setting.pick(1 << 14, 1 << 20)
}

fn queries(setting: &Setting) -> usize {
    setting.pick(400_000, 20_000_000)
}

fn spec(setting: &Setting, run: u32) -> Spec {
    Spec::new(keys(setting), setting.seed("filter", run))
}

/// What is asked for before filters are built: as many queries as there are to come, divided by ten.
fn zipf(setting: &Setting, exponent: f64, run: u32) -> Result<Zipf, TaskError> {
    Ok(Zipf::new(UNIVERSE * keys(setting) as u64, exponent, setting.seed("queries", run))?)
}

/// A stacked filter in the same space, trained on some queries.
fn stacked(spec: &Spec, sample: impl Iterator<Item = u64>) -> Result<Subject, TaskError> {
    let sample: Vec<[u8; 8]> = sample.map(u64::to_le_bytes).collect();
    let sample = Sample::of(sample.iter().map(<[u8; 8]>::as_slice));
    let bits = 11.0 / spec.load * spec.keys as f64;
    Ok(Subject::new(dyn_plain(StackedFilter::new(spec.keys, bits, &sample, spec.seed)?)))
}

/// Zipf's law, known beforehand; then, after so much drift, that share of the keys is another.
fn stream(
    setting: &Setting,
    panel: &str,
    exponent: f64,
    drift: f64,
    run: u32,
) -> Result<Vec<Point>, TaskError> {
    let spec = spec(setting, run);
    let mut zipf = zipf(setting, exponent, run)?;
    let mut contest = Contest::new(&FILTERS, &spec)?;
    contest.add("stacked", stacked(&spec, zipf.by_ref().take(queries(setting) / 10))?);
    for key in Uniform::new(setting.seed("stored", run)).take(spec.keys) {
        contest.store(key)?;
    }
    let gone = (drift * 2_f64.powi(64)) as u64;
    for key in zipf.take(queries(setting)) {
        let replaced = mix(key ^ 0x6472_6966) < gone;
        contest.query(if replaced { mix(!key) } else { key })?;
    }
    contest.finish(panel, if panel == STATIC.0 { exponent } else { drift }, run)
}

/// Stacked filters that know ever more of a workload of Zipf 1.5: this many queries for each that is measured, drawn
/// from the same law, or the measured ones themselves.
fn knowledge(setting: &Setting, sample: f64, run: u32) -> Result<Vec<Point>, TaskError> {
    let spec = spec(setting, run);
    let (queries, zipf) = (queries(setting), || zipf(setting, SKEWED, run));
    let trained = || Ok::<_, TaskError>(zipf()?.skip(queries).take((sample * queries as f64) as usize));
    let mut contest = Contest::new(&["bloom"], &spec)?;
    contest.add("stacked", stacked(&spec, trained()?)?);
    contest.add("stacked, told", stacked(&spec, zipf()?.take((sample.min(1.0) * queries as f64) as usize))?);
    for key in Uniform::new(setting.seed("stored", run)).take(spec.keys) {
        contest.store(key)?;
    }
    for key in zipf()?.take(queries) {
        contest.query(key)?;
    }
    contest.finish(KNOWLEDGE.0, sample, run)
}

/// An adversary has this share of the queries, and repeats what got through.
fn adversarial(setting: &Setting, share: f64, run: u32) -> Result<Vec<Point>, TaskError> {
    let spec = spec(setting, run);
    let mut points = Vec::new();
    for name in FILTERS.into_iter().chain(["stacked"]) {
        let mut zipf = zipf(setting, 1.0, run)?;
        let trained = stacked(&spec, zipf.by_ref().take(queries(setting) / 10))?;
        let mut subject = if name == "stacked" { trained } else { build(name, &spec)? };
        for key in Uniform::new(setting.seed("stored", run)).take(spec.keys) {
            subject.insert(&key.to_le_bytes())?;
        }
        let rate =
            attacked(&mut subject, zipf, share, queries(setting) as u64 / 4, setting.seed("adversary", run))?;
        points.push(Point::new(name, share, run).in_panel(ADVERSARIAL.0).with("rate", rate));
    }
    Ok(points)
}

/// The share of all queries that are false positives.
fn attacked(
    subject: &mut Subject,
    mut stream: Zipf,
    share: f64,
    queries: u64,
    seed: u64,
) -> Result<f64, TaskError> {
    let (mut random, mut loot, mut wrong) = (Random::new(seed), Vec::<u64>::new(), 0_u64);
    for _ in 0..queries {
        let again = random.unit() < share && !loot.is_empty();
        let place = if again { random.below(loot.len() as u64) as usize } else { 0 };
        let key = if again { loot[place] } else { stream.next().unwrap_or_default() };
        if subject.contains(&key.to_le_bytes()) {
            wrong += 1;
            subject.adapt(&key.to_le_bytes())?;
            if !again {
                loot.push(key);
            }
        } else if again {
            loot.swap_remove(place);
        }
    }
    Ok(wrong as f64 / queries.max(1) as f64)
}

impl Experiment for Training {
    fn name(&self) -> &'static str {
        "train-your-filter"
    }

    fn title(&self) -> &'static str {
        "Trained, adaptive and plain filters: known, drifting and adversarial workloads"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let cost = (FILTERS.len() + 3) as f64 * queries(setting) as f64;
        let mut tasks = Vec::new();
        for run in 0..setting.repetitions(3, 10) {
            for sample in KNOWLEDGE.1 {
                let (setting, cost) = (setting.clone(), cost / 2.0);
                let work = move || knowledge(&setting, sample, run);
                tasks.push(Task::new(format!("knowledge {sample}, run {run}"), cost, work));
            }
        }
        for run in 0..setting.repetitions(3, 10) {
            for s in STATIC.1 {
                let setting = setting.clone();
                let work = move || stream(&setting, STATIC.0, s, 0.0, run);
                tasks.push(Task::new(format!("static, Zipf {s}, run {run}"), cost, work));
            }
            for drift in DRIFTING.1 {
                let setting = setting.clone();
                let work = move || stream(&setting, DRIFTING.0, 1.0, drift, run);
                tasks.push(Task::new(format!("drift {drift}, run {run}"), cost, work));
            }
            for share in ADVERSARIAL.1 {
                let setting = setting.clone();
                let work = move || adversarial(&setting, share, run);
                tasks.push(Task::new(format!("adversary {share}, run {run}"), cost / 2.0, work));
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let note = format!(
            "{} stored keys, {} queries over {UNIVERSE} absent keys per stored one (a quarter of them against the adversary), 11 bits a slot \
             at load 0.95 or as many bits without slots. Stacked filters are trained on a tenth as many queries of the same law, none of \
             which is measured; adaptive ones start without repairs. Drifting and adversarial: Zipf 1.",
            keys(setting),
            queries(setting)
        );
        let plot =
            |panel: &str, title: &str, x: &str| rate_plot(points, panel, panel, title, Axis::linear(x));
        Section::new()
            .note(note)
            .plot(plot(STATIC.0, "A workload that is known beforehand", "Zipf exponent s"))
            .plot(plot(DRIFTING.0, "After training, some keys become others", "share of keys that drifted"))
            .plot(plot(
                ADVERSARIAL.0,
                "An adversary repeats what got through",
                "share of queries that are his",
            ))
            .table(rate_table(points, STATIC.0, "False-positive rates, known beforehand", "s ="))
            .table(rate_table(points, DRIFTING.0, "False-positive rates after drift", "drift"))
            .table(rate_table(points, ADVERSARIAL.0, "False-positive rates with an adversary", "share"))
            .table(rate_table(
                points,
                KNOWLEDGE.0,
                "False-positive rates on Zipf 1.5 by what is known: queries of the same law for each that is measured (told: that share \
                 of the measured queries themselves)",
                "queries",
            ))
            .claim(stacked_claim(points))
            .claim(knowledge_claim(points))
            .claim(drift_claim(points))
            .claim(adversary_claim(points))
            .claim(cache_claim(points))
    }
}

fn stacked_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "stacked filters have up to 10^3 times lower rates than plain ones on skewed workloads that are known beforehand (here: at \
         least 10 times from Zipf 1.5 on, and never more than a plain one)",
    );
    let ratios = ratios(points, STATIC.0, "bloom", "stacked", |_| true);
    if ratios.is_empty() {
        return claim;
    }
    let agrees = ratios.iter().all(|&(s, ratio)| ratio > if s >= 1.5 { 10.0 } else { 0.8 });
    claim.measured(format!("bloom over stacked: {}", list(&ratios)), agrees)
}

fn knowledge_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "(cause) the gain of a stacked filter grows with what it knows of the workload: on Zipf 1.5, 10 times and more where it is told all \
         queries to come",
    );
    let over = |name: &str| ratios(points, KNOWLEDGE.0, "bloom", name, |_| true);
    let (drawn, told) = (over("stacked"), over("stacked, told"));
    let (Some(least), Some(most)) = (drawn.first(), told.iter().find(|(x, _)| *x == 1.0)) else {
        return claim;
    };
    let text = format!(
        "bloom over stacked, by queries known for each measured: {}; told: {}",
        list(&drawn),
        list(&told)
    );
    claim.measured(text, most.1 >= 10.0 && most.1 > least.1)
}

fn drift_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "a workload that drifts takes the gain of stacked filters away, and leaves that of adaptive ones (here: fully drifted, stacked is within \
         a factor of 2 of bloom, and adaptive filters within 1.5 of what they had)",
    );
    let at = |name: &str, drift: f64| points.mean(DRIFTING.0, name, drift, "rate");
    let (Some(bloom), Some(stacked)) = (at("bloom", 1.0), at("stacked", 1.0)) else { return claim };
    let kept: Vec<(&str, f64)> =
        ADAPTIVE.into_iter().filter_map(|name| Some((name, at(name, 1.0)? / at(name, 0.0)?))).collect();
    let text: Vec<String> = kept.iter().map(|(name, ratio)| format!("{name} {ratio:.2}")).collect();
    let agrees = bloom / stacked < 2.0 && kept.iter().all(|(_, ratio)| *ratio < 1.5);
    let text =
        format!("bloom over stacked {:.2}; after drift over before: {}", bloom / stacked, text.join(", "));
    claim.measured(text, agrees)
}

fn adversary_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "adaptive filters have up to 10^3 times lower rates under an adversary (here: against one with 90% of the queries, at least 100 times \
         lower than plain and stacked ones)",
    );
    let at = |name: &str| points.mean(ADVERSARIAL.0, name, 0.9, "rate");
    let (Some(bloom), Some(stacked)) = (at("bloom"), at("stacked")) else { return claim };
    let ratios: Vec<(&str, f64)> =
        ADAPTIVE.into_iter().filter_map(|name| Some((name, bloom.min(stacked) / at(name)?))).collect();
    let text: Vec<String> = ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.0}")).collect();
    claim.measured(
        format!("the better of bloom and stacked over {}", text.join(", ")),
        ratios.iter().all(|(_, ratio)| *ratio >= 100.0),
    )
}

fn cache_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "(ours) every adaptive filter has at most 0.8 of the false positives of a Bloom filter with a cache, where queries are less skewed than \
         Zipf 1",
    );
    let worst = |s: f64| {
        let cached = points.mean(STATIC.0, "bloom+cache", s, "rate")?;
        ADAPTIVE
            .into_iter()
            .filter_map(|name| Some((s, points.mean(STATIC.0, name, s, "rate")? / cached)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let ratios: Vec<(f64, f64)> = [0.5, 1.0].into_iter().filter_map(worst).collect();
    if ratios.is_empty() {
        return claim;
    }
    claim.measured(format!("the worst of them over bloom+cache: {}", list(&ratios)), ratios[0].1 <= 0.8)
}
