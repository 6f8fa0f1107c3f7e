//! `besom attack`: every filter against every adversary.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use besom::game::Rules;
use besom_lab::adversary::{Attack as Adversary, gallery, play};
use besom_lab::random;
use besom_lab::subject::{Entry, Spec, Trial, registry};
use clap::Args;
use serde::Serialize;

use crate::error::{Ending, Failure, Outcome};
use crate::interrupt;
use crate::output::{self, Paint};
use crate::progress::Progress;
use crate::table::{Align, Table};

/// Who plays against whom.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  besom attack
  besom attack --filters telescoping,broom --adversaries deletion-timing --games 50

An adversary sees only the answers of the filter. At the end it names a key that is not stored, and wins if the filter
accepts that key. A filter with a sustained false-positive rate e loses at most a share e of its games, against any
adversary.

Exit codes: 0 success, 2 usage error, 130 interrupted (the results so far are shown).")]
pub(crate) struct Attack {
    /// The filters, by name [default: all that adapt, and four that do not]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = filter)]
    filters: Vec<&'static str>,
    /// The adversaries, by name [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = adversary)]
    adversaries: Vec<&'static str>,
    /// How many games each adversary plays against each filter
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    games: u32,
    /// How many keys each filter holds
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = capacity)]
    keys: usize,
    /// The false-positive rate of all filters
    #[arg(long, value_name = "RATE", default_value_t = 1.0 / 64.0, value_parser = rate)]
    rate: f64,
    /// The seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn filter(text: &str) -> Result<&'static str, String> {
    let names = || registry().iter().map(|entry| entry.name);
    names().find(|name| *name == text).ok_or_else(|| {
        format!("no filter is called {text}; there are {}", names().collect::<Vec<_>>().join(", "))
    })
}

fn adversary(text: &str) -> Result<&'static str, String> {
    let names = gallery().map(|attack| attack.name);
    names
        .into_iter()
        .find(|name| *name == text)
        .ok_or_else(|| format!("no adversary is called {text}; there are {}", names.join(", ")))
}

fn capacity(text: &str) -> Result<usize, String> {
    let keys = text.parse().ok().filter(|keys| (16..=1 << 20).contains(keys));
    keys.ok_or_else(|| "not a number of keys from 16 to 1048576".into())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = crate::rate::rate(text)?;
    if (1e-6..=0.25).contains(&rate) { Ok(rate) } else { Err("not a rate from 1/1000000 to 1/4".into()) }
}

/// What came of the games of one pair.
#[derive(Debug, Clone, Copy, Serialize)]
struct Tally {
    filter: &'static str,
    adversary: &'static str,
    games: u32,
    won: u32,
    /// The share of games that the adversary won.
    sustained_rate: f64,
    /// The share of all look-ups of the games that were false positives.
    forced_rate: f64,
}

/// States that an adversary reckons with where a filter has no small number of them.
const STATES: u32 = 4;

impl Attack {
    pub(crate) fn run(&self) -> Outcome {
        interrupt::install();
        let pairs = self.pairs();
        if pairs.is_empty() {
            return Err(Failure::Usage(
                "none of these filters offers the removal that this adversary needs".into(),
            ));
        }
        let tallies = self.play_all(&pairs)?;
        if self.json {
            output::print_json(&tallies)?;
        } else {
            output::print(&self.render(&tallies, Paint::stdout()))?;
        }
        Ok(if tallies.len() == pairs.len() { Ending::Fine } else { Ending::Interrupted })
    }

    /// Who plays against whom: adversaries that remove keys only against filters that let them.
    fn pairs(&self) -> Vec<(&'static Entry, Adversary)> {
        let usual = |entry: &Entry| {
            entry.adaptive || ["quotient", "cuckoo", "bloom", "stacked"].contains(&entry.name)
        };
        let plays = |entry: &Entry| {
            if self.filters.is_empty() { usual(entry) } else { self.filters.contains(&entry.name) }
        };
        let attacks =
            |attack: &Adversary| self.adversaries.is_empty() || self.adversaries.contains(&attack.name);
        let filters = registry().iter().filter(|entry| plays(entry));
        let pairs = filters.flat_map(|entry| gallery().into_iter().map(move |attack| (entry, attack)));
        pairs.filter(|(entry, attack)| attacks(attack) && (entry.removal || !attack.removes)).collect()
    }

    /// Plays on all cores; fewer games than all if it was interrupted.
    fn play_all(&self, pairs: &[(&'static Entry, Adversary)]) -> Outcome<Vec<Tally>> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new((vec![None; pairs.len()], None::<Failure>, Progress::new(pairs.len() as f64)));
        let work = || {
            while let Some((entry, attack)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let place =
                    pairs.iter().position(|pair| (pair.0.name, pair.1.name) == (entry.name, attack.name));
                let outcome = self.play(entry, attack);
                let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                match (outcome, place) {
                    (Ok(Some(tally)), Some(place)) => done.0[place] = Some(tally),
                    (Err(failure), _) => done.1 = Some(failure),
                    _ => break,
                }
                done.2.begin_quietly(format!("{} against {}", attack.name, entry.name));
                done.2.advance(1.0);
                if done.1.is_some() {
                    break;
                }
            }
        };
        std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            (0..threads).for_each(|_| drop(scope.spawn(work)));
        });
        let (tallies, failure, _) = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.map_or_else(|| Ok(tallies.into_iter().flatten().collect()), Err)
    }

    /// All games of one pair; `None` if it was interrupted.
    fn play(&self, entry: &'static Entry, attack: &Adversary) -> Outcome<Option<Tally>> {
        let failed = |problem: String| Failure::contender(entry.name, problem);
        let rules = Rules { capacity: self.keys, rate: self.rate };
        let (mut won, mut lookups, mut forced) = (0, 0, 0);
        for game in 0..self.games {
            if interrupt::stopped() {
                return Ok(None);
            }
            let seed = random::derive(self.seed, attack.name, game);
            let spec = Spec::new(self.keys, !seed).rate(self.rate);
            let mut trial = Trial::new(entry.build(&spec).map_err(|error| failed(error.to_string()))?);
            let mut adversary = attack.against(rules, entry.states.unwrap_or(STATES), seed);
            let outcome =
                play(&mut trial, rules, adversary.as_mut()).map_err(|error| failed(error.to_string()))?;
            won += u32::from(outcome.won);
            lookups += outcome.lookups;
            forced += outcome.false_positives;
        }
        Ok(Some(Tally {
            filter: entry.name,
            adversary: attack.name,
            games: self.games,
            won,
            sustained_rate: f64::from(won) / f64::from(self.games),
            forced_rate: forced as f64 / lookups.max(1) as f64,
        }))
    }

    fn render(&self, tallies: &[Tally], paint: Paint) -> String {
        let (mut filters, mut adversaries) = (Vec::new(), Vec::new());
        for tally in tallies {
            if !filters.contains(&tally.filter) {
                filters.push(tally.filter);
            }
            if !adversaries.contains(&tally.adversary) {
                adversaries.push(tally.adversary);
            }
        }
        let mut columns = vec![("filter", Align::Left)];
        columns.extend(adversaries.iter().map(|name| (*name, Align::Right)));
        let mut table = Table::new(&columns);
        for filter in filters {
            let cell = |adversary: &&str| {
                let tally =
                    tallies.iter().find(|tally| tally.filter == filter && tally.adversary == *adversary);
                tally.map_or_else(|| "–".into(), |tally| self.cell(tally, paint))
            };
            table.row([filter.to_owned()].into_iter().chain(adversaries.iter().map(cell)).collect());
        }
        format!(
            "Games that the adversary won, of {} each; {} keys, filters built for a rate of {:.4}, which sustained means {:.1} games.\n\
             –: the filter offers no removal.\n\n{}",
            self.games,
            self.keys,
            self.rate,
            f64::from(self.games) * self.rate,
            table.render(paint)
        )
    }

    /// Red where chance does not explain it: more than four standard deviations above the rate.
    fn cell(&self, tally: &Tally, paint: Paint) -> String {
        let (games, won) = (f64::from(tally.games), f64::from(tally.won));
        let deviation = (games * self.rate * (1.0 - self.rate)).sqrt();
        let text = format!("{:.1}%", 100.0 * tally.sustained_rate);
        if won > games * self.rate + 4.0 * deviation + 1.0 { paint.red(&text) } else { paint.green(&text) }
    }
}
