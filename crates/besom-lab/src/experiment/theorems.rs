//! 003, Theorems 1, 9, 10 and 12 in numbers.

use besom::any::dyn_adaptive;
use besom::cuckoo::{CuckooingFilter, CyclicFilter, SwappingFilter};
use besom::game::Rules;

use super::games::{Tally, play_all};
use super::space::{space_columns, working_text};
use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::adversary::{PersistentQuery, UnfixableSet};
use crate::random::Random;
use crate::report::{Axis, Claim, Column, Line, Plot, Section, Table, compact, with_interval};
use crate::subject::{Spec, Subject, build, find};
use crate::workload::Uniform;

/// The table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theorems;

/// Fingerprints of the first theorem's filter: short ones, so that there is something to count, and usual ones.
const SHORT: u32 = 3;
const USUAL: u32 = 8;
const BATCH: u32 = 20;

/// What is asked over and over in the first theorem.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Support {
    /// One key, n times.
    Single,
    /// n/10 keys, n times in all.
    Tenth,
    /// The same with fingerprints of usual length.
    TenthUsual,
    /// 1/ε² keys of a cyclic filter with s = 1, n times in all: what the theorem's filter is better than.
    CyclicPairs,
}

impl Support {
    const ALL: [Self; 4] = [Self::Single, Self::Tenth, Self::TenthUsual, Self::CyclicPairs];

    fn name(self) -> &'static str {
        match self {
            Self::Single => "cuckooing, one key",
            Self::Tenth => "cuckooing, n/10 keys",
            Self::TenthUsual => "cuckooing, n/10, f = 8",
            Self::CyclicPairs => "cyclic-1, 1/ε² keys",
        }
    }

    fn size(self, n: usize) -> usize {
        match self {
            Self::Single => 1,
            Self::Tenth | Self::TenthUsual => n / 10,
            Self::CyclicPairs => 1 << (2 * SHORT),
        }
    }

    fn fingerprint(self) -> u32 {
        if self == Self::TenthUsual { USUAL } else { SHORT }
    }

    /// The probability that a fresh query is a false positive: k tables at half load for the theorem's filter.
    fn epsilon(self) -> f64 {
        0.5_f64.powi(self.fingerprint() as i32)
    }

    fn filter(self, n: usize, seed: u64) -> Result<Subject, TaskError> {
        let filter = match self {
            // k = 2 tables of N = n slots.
            Self::Single | Self::Tenth | Self::TenthUsual => {
                let builder = CuckooingFilter::builder().capacity(n).shape(2, 1).max_load(0.5);
                builder.slot_bits(self.fingerprint()).seed(seed).build().map(dyn_adaptive)
            }
            Self::CyclicPairs => {
                let builder = CyclicFilter::<1>::builder().capacity(n).slot_bits(SHORT + 1);
                builder.seed(seed).build().map(dyn_adaptive)
            }
        };
        Ok(Subject::new(filter?))
    }

    fn measure(self, n: usize, seed: u64) -> Result<(u64, u64), TaskError> {
        let mut filter = self.filter(n, seed)?;
        for key in Uniform::new(seed).take(n) {
            filter.insert(&key.to_le_bytes())?;
        }
        let queries: Vec<u64> = Uniform::new(!seed).take(self.size(n)).collect();
        let mut random = Random::new(seed);
        let (mut false_positives, mut asked) = (0, vec![false; queries.len()]);
        for _ in 0..n {
            let index = random.below(queries.len() as u64) as usize;
            asked[index] = true;
            let key = queries[index].to_le_bytes();
            if filter.contains(&key) {
                false_positives += 1;
                filter.adapt(&key)?;
            }
        }
        Ok((false_positives, asked.iter().filter(|asked| **asked).count() as u64))
    }
}

fn sizes(setting: &Setting) -> Vec<u32> {
    setting.pick(vec![10, 12, 14, 16], vec![10, 12, 14, 16, 18])
}

fn trials(setting: &Setting) -> u32 {
    setting.pick(100, 200)
}

fn first_theorem(setting: &Setting) -> Vec<Task> {
    let mut tasks = Vec::new();
    for support in Support::ALL {
        for exponent in sizes(setting) {
            let (setting, n) = (setting.clone(), 1_usize << exponent);
            let cost = f64::from(trials(&setting)) * 8.0 * n as f64;
            tasks.push(Task::new(
                format!("theorem 1, {}, n = 2^{exponent}", support.name()),
                cost,
                move || {
                    let mut points = Vec::new();
                    for trial in 0..trials(&setting) {
                        let (found, asked) = support.measure(n, setting.seed("theorem 1", trial))?;
                        let point = Point::new(support.name(), n as f64, trial).in_panel("theorem 1");
                        points.push(point.with("false positives", found as f64).with("asked", asked as f64));
                    }
                    Ok(points)
                },
            ));
        }
    }
    tasks
}

/// Theorems 9 and 10: filters, states, fingerprint bits.
fn persistent_cases(setting: &Setting) -> Vec<(&'static str, u32, u32)> {
    let quick = vec![
        ("cyclic-1", 2, 3),
        ("cyclic-1", 2, 5),
        ("cyclic-2", 4, 2),
        ("swapping", 4, 2),
        ("swapping", 4, 3),
    ];
    let full = [quick.clone(), vec![("cyclic-1", 2, 7), ("cyclic-2", 4, 3), ("swapping", 4, 4)]].concat();
    setting.pick(quick, full)
}

fn short_filter(name: &str, fingerprint: u32, keys: usize, seed: u64) -> Result<Subject, TaskError> {
    macro_rules! filter {
        ($filter:ty, $slot_bits:expr) => {
            <$filter>::builder().capacity(keys).slot_bits($slot_bits).seed(seed).build().map(dyn_adaptive)
        };
    }
    let filter = match name {
        "cyclic-1" => filter!(CyclicFilter<1>, fingerprint + 1),
        "cyclic-2" => filter!(CyclicFilter<2>, fingerprint + 2),
        _ => filter!(SwappingFilter, fingerprint),
    };
    Ok(Subject::new(filter?))
}

/// As many candidates as the proofs take: they allow any constant.
const CANDIDATES: f64 = 3.0;
/// How often a key must get through to be believed, in states: the first few times may be due to other stored keys.
const PATIENCE: u32 = 4;

fn persistent(setting: &Setting) -> Vec<Task> {
    let keys = 1000;
    let mut tasks = Vec::new();
    for (name, states, fingerprint) in persistent_cases(setting) {
        let candidates = PersistentQuery::candidates(CANDIDATES, 0.5_f64.powi(fingerprint as i32), states);
        for batch in 0..setting.repetitions(2, 10) {
            let setting = setting.clone();
            let cost = f64::from(BATCH) * (1.5 * candidates as f64 + 20_000.0);
            tasks.push(Task::new(format!("{name}, f = {fingerprint}, batch {batch}"), cost, move || {
                let rules = Rules { capacity: keys, rate: 0.5_f64.powi(fingerprint as i32) };
                let seeds = (batch * BATCH..(batch + 1) * BATCH).map(|game| setting.seed("persistent", game));
                let place = ("theorems 9 and 10", name, f64::from(fingerprint), batch);
                let filter = |seed: u64| short_filter(name, fingerprint, keys, !seed);
                let adversary =
                    |seed| Box::new(PersistentQuery::new(seed, PATIENCE * states, candidates)) as Box<_>;
                Ok(vec![play_all(place, rules, seeds, filter, adversary)?])
            }));
        }
    }
    tasks
}

/// Theorem 12: who is attacked.
const ATTACKED: [&str; 9] = [
    "cuckooing",
    "cyclic-1",
    "cyclic-2",
    "swapping",
    "telescoping-reset",
    "telescoping",
    "extension",
    "adaptive-bloom",
    "broom",
];
const RATE_EXPONENT: i32 = 6;

fn unfixable(setting: &Setting) -> Vec<Task> {
    let mut tasks = Vec::new();
    for entry in ATTACKED.iter().filter_map(|name| find(name).ok()) {
        for exponent in setting.pick(vec![10, 12], vec![10, 12, 14]) {
            let rules = Rules { capacity: 1 << exponent, rate: 0.5_f64.powi(RATE_EXPONENT) };
            let states = entry.states.unwrap_or(4);
            let lookups = f64::from(2 * states) * UnfixableSet::queries(rules, states) as f64;
            for batch in 0..setting.repetitions(2, 10) {
                let (setting, cost) = (setting.clone(), f64::from(BATCH) * (lookups + 40_000.0));
                tasks.push(Task::new(
                    format!("theorem 12, {}, n = 2^{exponent}, batch {batch}", entry.name),
                    cost,
                    move || {
                        let seeds =
                            (batch * BATCH..(batch + 1) * BATCH).map(|game| setting.seed("unfixable", game));
                        let place = ("theorem 12", entry.name, rules.capacity as f64, batch);
                        let filter = |seed: u64| {
                            Ok(build(entry.name, &Spec::new(rules.capacity, !seed).rate(rules.rate))?)
                        };
                        let adversary = |seed| Box::new(UnfixableSet::new(seed, states)) as Box<_>;
                        Ok(vec![play_all(place, rules, seeds, filter, adversary)?])
                    },
                ));
            }
        }
    }
    tasks
}

impl Experiment for Theorems {
    fn name(&self) -> &'static str {
        "003-theorems"
    }

    fn title(&self) -> &'static str {
        "Support optimality and the attacks on the cuckoo family, in numbers"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        [first_theorem(setting), persistent(setting), unfixable(setting)].into_iter().flatten().collect()
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let section = Section::new()
            .note(format!(
                "Theorem 1: k = 2, b = 1, N = n, {SHORT}-bit fingerprints, n queries, {} trials. Theorems 9 and 10: n = 1000, \
                 load 0.95; {CANDIDATES}/ε^states candidates at most, each believed after {PATIENCE}·states hits. Theorem 12: ε = \
                 2^-{RATE_EXPONENT} for the whole filter, load 0.95. Win rates with Wilson's 95% intervals.",
                trials(setting)
            ))
            .plot(first_plot(points))
            .table(first_table(points))
            .table(games_table(points, "theorems 9 and 10", "f", "Theorems 9 and 10: a key that is never fixed"))
            .table(games_table(points, "theorem 12", "n", "Theorem 12: mutually unfixable sets"));
        section
            .claim(single_claim(points))
            .claim(support_claim(points))
            .claim(cyclic_claim(points))
            .claim(persistent_claim(
                points,
                "Theorem 9: a cyclic filter loses with constant probability in Θ(2^s/ε^(2^s)) look-ups",
                "cyclic",
            ))
            .claim(persistent_claim(
                points,
                "Theorem 10: a swapping filter loses with constant probability in Θ(b/ε^b) look-ups",
                "swapping",
            ))
            .claim(unfixable_claim(points))
            .claim(broom_claim(points))
    }
}

fn first_plot(points: &Points) -> Plot {
    let mut plot = Plot::lines(
        "theorem-1",
        "Theorem 1: false positives in n queries",
        Axis::log("n: stored keys, and queries"),
        Axis::log("false positives, mean"),
    );
    for support in Support::ALL {
        plot.line(Line::new(support.name(), points.curve("theorem 1", support.name(), "false positives")));
    }
    plot
}

fn first_table(points: &Points) -> Table {
    let columns = vec![
        Column::text("filter and support"),
        Column::number("n"),
        Column::number("|Q|"),
        Column::number("ε|Q|"),
        Column::number("false positives"),
    ];
    let mut table = Table::new(
        format!("Theorem 1: false positives in n queries, ε = 2^-{SHORT} unless f is given"),
        columns,
    );
    for support in Support::ALL {
        for (n, found) in points.curve("theorem 1", support.name(), "false positives") {
            let asked = points.mean("theorem 1", support.name(), n, "asked").unwrap_or_default();
            let expected = asked * support.epsilon();
            table.row([
                support.name().to_owned(),
                compact(n),
                compact(asked),
                compact(expected),
                with_interval(&found),
            ]);
        }
    }
    table
}

fn games_table(points: &Points, panel: &str, x: &str, caption: &str) -> Table {
    let mut columns = vec![Column::text("filter"), Column::number(x)];
    columns.extend(space_columns());
    columns.extend(["games", "won", "share won", "look-ups a game"].map(Column::number));
    let mut table = Table::new(caption, columns);
    for series in points.series(panel) {
        for at in points.xs(panel) {
            let Some(tally) = Tally::of(points, panel, series, at) else { continue };
            let rate = tally.rate();
            table.row([
                series.to_owned(),
                compact(at),
                compact(tally.bits),
                working_text(tally.working),
                tally.games.to_string(),
                tally.wins.to_string(),
                format!("{} [{}, {}]", compact(rate.mean), compact(rate.low), compact(rate.high)),
                compact(tally.lookups),
            ]);
        }
    }
    table
}

fn single_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "Theorem 1: one key asked n times is a false positive O(log⁴ n) times for cuckooing; here a constant (≤ 5) at every n",
    );
    let curve = points.curve("theorem 1", Support::Single.name(), "false positives");
    if curve.is_empty() {
        return claim;
    }
    let text = curve.iter().map(|(n, found)| format!("{} at n = {}", compact(found.mean), compact(*n)));
    let agrees = curve.iter().all(|(_, found)| found.mean <= 5.0);
    claim.measured(text.collect::<Vec<_>>().join(", "), agrees)
}

fn support_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "Theorem 1: ε|Q| + O(ε²|Q| + log⁴ n) false positives over n queries of support Q (here: with a constant of 1)",
    );
    let (mut texts, mut agrees) = (Vec::new(), true);
    for support in [Support::Tenth, Support::TenthUsual] {
        for (n, found) in points.curve("theorem 1", support.name(), "false positives") {
            let asked = points.mean("theorem 1", support.name(), n, "asked").unwrap_or_default();
            let expected = support.epsilon() * asked;
            let text =
                format!("f = {}: {} for {}", support.fingerprint(), compact(found.mean), compact(expected));
            texts.push(text);
            agrees &= found.mean <= expected + support.epsilon() * expected + n.log2().powi(4);
        }
    }
    if texts.is_empty() {
        return claim;
    }
    claim.measured(format!("false positives for ε|Q|: {}", texts.join(", ")), agrees).because(
        "with N = n the table is at the threshold of cuckoo hashing, where kicks are long and bring keys back; log⁴ n \
         is larger than n here, so the bound says little at these sizes",
    )
}

fn cyclic_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "a support of 1/ε^(2^s) keys costs a cyclic filter Ω(n) false positives (here: more than n/100, growing with n)",
    );
    let curve = points.curve("theorem 1", Support::CyclicPairs.name(), "false positives");
    if curve.is_empty() {
        return claim;
    }
    let text = curve.iter().map(|(n, found)| format!("{}·n at n = {}", compact(found.mean / n), compact(*n)));
    let agrees = curve.iter().all(|(n, found)| found.mean > n / 100.0);
    claim.measured(text.collect::<Vec<_>>().join(", "), agrees)
}

fn persistent_claim(points: &Points, statement: &str, family: &str) -> Claim {
    let claim = Claim::new(format!("{statement} (here: in a quarter of the games at least)"));
    let panel = "theorems 9 and 10";
    let (mut texts, mut agrees) = (Vec::new(), true);
    for series in points.series(panel).into_iter().filter(|series| series.starts_with(family)) {
        for f in points.xs(panel) {
            if let Some(tally) = Tally::of(points, panel, series, f) {
                let rate = tally.rate();
                texts.push(format!(
                    "{series}, f = {f}: {} after {} look-ups",
                    compact(rate.mean),
                    compact(tally.lookups)
                ));
                agrees &= rate.mean >= 0.25;
            }
        }
    }
    if texts.is_empty() { claim } else { claim.measured(texts.join("; "), agrees) }
}

fn unfixable_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "Theorem 12: the unfixable-set attack wins against cuckooing, cyclic and swapping with constant probability (here: 0.1 at least)",
    );
    let (text, low) = unfixable_wins(points, &["cuckooing", "cyclic-1", "cyclic-2", "swapping"]);
    if text.is_empty() { claim } else { claim.measured(text, low.is_some_and(|low| low >= 0.1)) }
}

fn broom_claim(points: &Points) -> Claim {
    let claim = Claim::new("the same attack wins no more than ε against broom, whose fingerprints grow");
    let xs = points.xs("theorem 12");
    let tallies: Vec<Tally> =
        xs.into_iter().filter_map(|n| Tally::of(points, "theorem 12", "broom", n)).collect();
    let (text, _) = unfixable_wins(points, &["broom"]);
    if tallies.is_empty() {
        return claim;
    }
    claim.measured(text, tallies.iter().all(|tally| tally.rate().low <= 0.5_f64.powi(RATE_EXPONENT)))
}

/// The wins of the attack in words, and the smallest rate among them.
fn unfixable_wins(points: &Points, names: &[&str]) -> (String, Option<f64>) {
    let (mut texts, mut low) = (Vec::new(), None::<f64>);
    for name in names {
        for n in points.xs("theorem 12") {
            if let Some(tally) = Tally::of(points, "theorem 12", name, n) {
                let rate = tally.rate().mean;
                texts.push(format!("{name}, n = {}: {} of {}", compact(n), tally.wins, tally.games));
                low = Some(low.map_or(rate, |low| low.min(rate)));
            }
        }
    }
    (texts.join("; "), low)
}
