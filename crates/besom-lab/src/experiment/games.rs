//! Games against adversaries, in numbers that add up.

use besom::game::{Adversary, Rules};

use super::{Point, Points, TaskError};
use crate::adversary::play;
use crate::stats::Summary;
use crate::subject::{Subject, Trial};

/// Plays some games, each with a filter and an adversary of its own, and sums up what happened.
pub(super) fn play_all(
    place: (&str, &str, f64, u32),
    rules: Rules,
    seeds: impl Iterator<Item = u64>,
    filter: impl Fn(u64) -> Result<Subject, TaskError>,
    adversary: impl Fn(u64) -> Box<dyn Adversary>,
) -> Result<Point, TaskError> {
    let (panel, series, x, run) = place;
    let (mut games, mut wins, mut lookups, mut forced, mut bits, mut working) =
        (0_u64, 0_u64, 0_u64, 0_u64, 0.0, 0_usize);
    for seed in seeds {
        let mut trial = Trial::new(filter(seed)?);
        let outcome = play(&mut trial, rules, adversary(seed).as_mut())
            .map_err(|error| format!("{series}: {error}"))?;
        games += 1;
        wins += u64::from(outcome.won);
        lookups += outcome.lookups;
        forced += outcome.false_positives;
        bits += trial.stats().bits_per_key();
        working = working.max(trial.stats().working_bits);
    }
    Ok(Point::new(series, x, run)
        .in_panel(panel)
        .with("games", games as f64)
        .with("wins", wins as f64)
        .with("lookups", lookups as f64)
        .with("false positives", forced as f64)
        .with("bits", bits / games.max(1) as f64)
        .with_working(working))
}

/// What the games of one place came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    pub(super) games: u64,
    pub(super) wins: u64,
    /// Look-ups per game.
    pub(super) lookups: f64,
    /// The share of look-ups that got through.
    pub(super) forced: f64,
    pub(super) bits: f64,
    /// What operations work in, in bits: not part of the bits per key.
    pub(super) working: f64,
}

impl Tally {
    /// The sum of all points of a series at one x, if there are any.
    pub(super) fn of(points: &Points, panel: &str, series: &str, x: f64) -> Option<Self> {
        let sum = |value: &str| points.values(panel, series, x, value).iter().sum::<f64>();
        let games = sum("games");
        (games > 0.0).then(|| Self {
            games: games as u64,
            wins: sum("wins") as u64,
            lookups: sum("lookups") / games,
            forced: sum("false positives") / sum("lookups").max(1.0),
            bits: points.mean(panel, series, x, "bits").unwrap_or_default(),
            working: points.mean(panel, series, x, "working").unwrap_or_default(),
        })
    }

    /// How often the adversary won, with an interval.
    pub(super) fn rate(&self) -> Summary {
        Summary::rate(self.wins, self.games)
    }
}
