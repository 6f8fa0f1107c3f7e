//! 004: which filter stands up to which adversary.

use besom::game::Rules;

use super::games::{Tally, play_all};
use super::space::{space_columns, working_text};
use super::{Experiment, Points, Setting, Task};
use crate::adversary::{Attack, gallery};
use crate::report::{Axis, Claim, Column, Plot, Section, Table, compact};
use crate::stats::at_least;
use crate::subject::{Entry, Spec, registry};

/// A table of all filters against all adversaries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sustained;

/// Games per task.
const BATCH: u32 = 20;
const EXPONENT: i32 = 6;
/// How often all that is said to be above ε may be so by chance.
const ERROR: f64 = 0.025;
/// What an adversary takes for the number of states where a filter has no small number of them.
const STATES: u32 = 4;

fn rules(setting: &Setting) -> Rules {
    Rules { capacity: setting.pick(1 << 11, 1 << 13), rate: 0.5_f64.powi(EXPONENT) }
}

/// How many batches of games a pair plays. Whether the unfixable-set attack, which wins one game in seven against
/// swapping, wins more often than 4ε shows in 200 games.
fn batches(setting: &Setting, attack: &Attack) -> u32 {
    let usual = setting.repetitions(4, 10);
    if attack.name == "unfixable-set" { usual.max(10) } else { usual }
}

/// About how many look-ups a game takes.
fn cost(attack: &Attack, rules: Rules, states: u32) -> f64 {
    let n = rules.capacity as f64;
    let lookups = match attack.name {
        "unfixable-set" => {
            let queries = crate::adversary::UnfixableSet::queries(rules, states) as f64;
            queries * f64::from(2 * states) + 30_000.0
        }
        "whittling-rounds" => 60.0 * n,
        "persistent-query" => 17.0 * n,
        "deletion-timing" => 30.0 * n,
        "query-mates" | "reversed-mates" => n / rules.rate,
        "gathering" => 5.0 * n / rules.rate,
        "side-inference" => 0.3 * n / rules.rate + 60.0 * n,
        _ => 5.0 * n,
    };
    // Insertion costs about ten look-ups.
    lookups + 10.0 * n
}

/// Who plays: all filters that adapt, and four that do not.
fn players() -> impl Iterator<Item = &'static Entry> {
    registry().iter().filter(|entry| {
        entry.adaptive || ["quotient", "cuckoo-remote", "bloom", "stacked"].contains(&entry.name)
    })
}

fn faces(entry: &Entry, attack: &Attack) -> bool {
    entry.removal || !attack.removes
}

impl Experiment for Sustained {
    fn name(&self) -> &'static str {
        "004-sustained-rates"
    }

    fn title(&self) -> &'static str {
        "Every filter against every adversary"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let rules = rules(setting);
        let mut tasks = Vec::new();
        for entry in players() {
            for attack in gallery().into_iter().filter(|attack| faces(entry, attack)) {
                for batch in 0..batches(setting, &attack) {
                    let setting = setting.clone();
                    let states = entry.states.unwrap_or(STATES);
                    let cost = f64::from(BATCH) * cost(&attack, rules, states);
                    tasks.push(Task::new(
                        format!("{}, {}, batch {batch}", entry.name, attack.name),
                        cost,
                        move || {
                            let seeds = (batch * BATCH..(batch + 1) * BATCH)
                                .map(|game| setting.seed(attack.name, game));
                            let place = (attack.name, entry.name, 0.0, batch);
                            let filter = |seed: u64| {
                                let spec = Spec::new(rules.capacity, !seed).rate(rules.rate);
                                Ok(entry.build(&spec)?)
                            };
                            let adversary = |seed| attack.against(rules, states, seed);
                            Ok(vec![play_all(place, rules, seeds, filter, adversary)?])
                        },
                    ));
                }
            }
        }
        tasks
    }

    fn report(&self, setting: &Setting, points: &Points) -> Section {
        let rules = rules(setting);
        Section::new()
            .note(format!(
                "n = {}, ε = 2^-{EXPONENT}, load 0.95, {} games each (at least 200 of the unfixable-set attack). An adversary wins if the key that it names at last \
                 is a false positive then. A filter with a sustained false-positive rate ε loses no more than ε of \
                 the games, whoever plays. Filters without a known number of states are attacked as if they had {STATES}.",
                rules.capacity,
                setting.repetitions(4, 10) * BATCH
            ))
            .plot(plot(points, rules))
            .table(wins_table(points))
            .table(forced_table(points))
            .claim(single_claim(points, rules))
            .claim(broom_claim(points, rules))
            .claim(plain_claim(points))
            .claim(unfixable_claim(points, rules))
            .claim(ghosts_claim(points, rules))
            .claim(timing_claim(points))
            .claim(telescoping_claim(points, rules))
    }
}

fn plot(points: &Points, rules: Rules) -> Plot {
    let mut plot = Plot::dots("wins", "How often the adversary wins", Axis::log("share of games won"));
    for entry in players() {
        for attack in gallery() {
            if let Some(tally) = Tally::of(points, attack.name, entry.name, 0.0) {
                plot.dot(entry.name, attack.name, tally.rate());
            }
        }
    }
    plot.reference("ε", rules.rate);
    plot
}

fn matrix(caption: &str, points: &Points, cell: impl Fn(&Tally) -> String) -> Table {
    let mut columns = vec![Column::text("filter")];
    columns.extend(space_columns());
    columns.extend(gallery().map(|attack| Column::number(attack.name)));
    let mut table = Table::new(caption, columns);
    for entry in players() {
        let tallies = gallery().map(|attack| Tally::of(points, attack.name, entry.name, 0.0));
        let sizes = |tally: &Tally| (tally.bits, tally.working);
        let Some((bits, working)) = tallies.iter().flatten().next().map(sizes) else { continue };
        let mut row = vec![entry.name.to_owned(), compact(bits), working_text(working)];
        row.extend(tallies.iter().map(|tally| tally.as_ref().map_or_else(|| "–".to_owned(), &cell)));
        table.row(row);
    }
    table
}

fn wins_table(points: &Points) -> Table {
    let cell = |tally: &Tally| {
        let rate = tally.rate();
        format!("{} [{}, {}]", compact(rate.mean), compact(rate.low), compact(rate.high))
    };
    matrix(
        "Share of games that the adversary wins, with 95% intervals (–: the filter offers no removal)",
        points,
        cell,
    )
}

fn forced_table(points: &Points) -> Table {
    let cell = |tally: &Tally| format!("{} of {}", compact(tally.forced), compact(tally.lookups));
    matrix("False positives forced: their share of the look-ups, and the look-ups of a game", points, cell)
}

/// Filters and adversaries with more wins than ε allows, among those wanted. Whoever looks at many finds some that
/// luck has favoured: all of them together err with the probability that one interval has.
fn above(points: &Points, rules: Rules, wanted: impl Fn(&Entry, &Attack) -> bool) -> (Vec<String>, usize) {
    let mut played = Vec::new();
    for entry in players() {
        for attack in gallery().iter().filter(|attack| wanted(entry, attack)) {
            let tally = Tally::of(points, attack.name, entry.name, 0.0);
            played.extend(tally.map(|tally| (entry.name, attack.name, tally)));
        }
    }
    let beyond = |tally: &Tally| at_least(tally.wins, tally.games, rules.rate) < ERROR / played.len() as f64;
    let losers = played.iter().filter(|(.., tally)| beyond(tally));
    let losers = losers
        .map(|(filter, attack, tally)| format!("{filter} to {attack} ({} of {})", tally.wins, tally.games));
    (losers.collect(), played.len())
}

fn none_above(
    claim: Claim,
    points: &Points,
    rules: Rules,
    wanted: impl Fn(&Entry, &Attack) -> bool,
) -> Claim {
    let (losers, played) = above(points, rules, wanted);
    match played {
        0 => claim,
        _ if losers.is_empty() => claim.measured(format!("none of {played} is above ε beyond chance"), true),
        _ => claim.measured(format!("above ε: {}", losers.join(", ")), false),
    }
}

fn single_claim(points: &Points, rules: Rules) -> Claim {
    let claim = Claim::new(
        "an adversary that never looks anything up wins with the static rate, at most ε, against all",
    );
    none_above(claim, points, rules, |_, attack| attack.name == "single-query")
}

fn broom_claim(points: &Points, rules: Rules) -> Claim {
    let claim = Claim::new("broom sustains ε against every adversary, the lower-bound attack among them");
    none_above(claim, points, rules, |entry, _| entry.name == "broom")
}

fn plain_claim(points: &Points) -> Claim {
    let claim = Claim::new("a filter that does not adapt loses to whoever repeats a false positive");
    let tallies: Vec<(&str, Tally)> = players()
        .filter(|entry| !entry.adaptive)
        .filter_map(|entry| Some((entry.name, Tally::of(points, "repeat-false-positives", entry.name, 0.0)?)))
        .collect();
    if tallies.is_empty() {
        return claim;
    }
    let text = tallies.iter().map(|(name, tally)| format!("{name} {} of {}", tally.wins, tally.games));
    let agrees = tallies.iter().all(|(_, tally)| tally.rate().mean > 0.95);
    claim.measured(text.collect::<Vec<_>>().join(", "), agrees)
}

fn unfixable_claim(points: &Points, rules: Rules) -> Claim {
    let claim = Claim::new(
        "the unfixable-set attack (003, Theorem 12) wins against the whole cuckoo family with constant probability \
         (lower end of the interval above 4ε), and no more than ε against broom",
    );
    let family = ["cuckooing", "cyclic-1", "cyclic-2", "cyclic-3", "swapping"];
    let tally = |name: &str| Tally::of(points, "unfixable-set", name, 0.0);
    let tallies: Vec<(&str, Tally)> =
        family.iter().chain(&["broom"]).filter_map(|name| Some((*name, tally(name)?))).collect();
    if tallies.is_empty() {
        return claim;
    }
    let text = tallies.iter().map(|(name, tally)| format!("{name} {} of {}", tally.wins, tally.games));
    let agrees = tallies.iter().all(|(name, tally)| match *name {
        "broom" => tally.rate().low <= rules.rate,
        _ => tally.rate().low > 4.0 * rules.rate,
    });
    claim.measured(text.collect::<Vec<_>>().join(", "), agrees)
}

/// Filters that keep a removed key's repairs.
fn remembers(entry: &Entry) -> bool {
    entry.name.starts_with("broom") || ["adaptive-bloom", "cascade"].contains(&entry.name)
}

fn ghosts_claim(points: &Points, rules: Rules) -> Claim {
    let claim = Claim::new(
        "the deletion timing attack wins against no filter that keeps a removed key's repairs: broom with its ghosts, and (ours) cascades",
    );
    none_above(claim, points, rules, |entry, attack| attack.name == "deletion-timing" && remembers(entry))
}

fn timing_claim(points: &Points) -> Claim {
    let claim = Claim::new(
        "without ghosts every look-up of the deletion timing attack is a false positive: it wins against the very table and \
         fingerprints of broom without them (extension-quotient, extension-bins), and against telescoping",
    );
    let tally =
        |entry: &'static Entry| Some((entry.name, Tally::of(points, "deletion-timing", entry.name, 0.0)?));
    let tallies: Vec<(&str, Tally)> = players()
        .filter(|entry| entry.adaptive && entry.removal && !remembers(entry))
        .filter_map(tally)
        .collect();
    if tallies.is_empty() {
        return claim;
    }
    let text = tallies.iter().map(|(name, tally)| format!("{name} {} of {}", tally.wins, tally.games));
    let forgetful = ["extension", "telescoping"];
    let agrees = tallies
        .iter()
        .filter(|(name, _)| forgetful.iter().any(|prefix| name.starts_with(prefix)))
        .all(|(_, tally)| tally.rate().mean > 0.95);
    claim.measured(text.collect::<Vec<_>>().join(", "), agrees)
}

fn telescoping_claim(points: &Points, rules: Rules) -> Claim {
    let claim = Claim::new("telescoping sustains ε while it has room (001, Theorem 1), whatever the queries");
    none_above(claim, points, rules, |entry, attack| entry.name == "telescoping" && !attack.removes)
}
