//! All filters, with several seeds each, side by side on all cores.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::contender::{Entry, Plan};
use super::replay::{Arena, Row, Run};
use crate::error::{Failure, Outcome};
use crate::interrupt;
use crate::progress::Progress;

/// How many seeds, if nobody says: at least and at most.
const FEWEST: usize = 3;
const MOST: usize = 9;

/// How long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// So many seeds, however long it takes.
    pub(super) seeds: Option<usize>,
    /// When the last of them should be done, if their number is open.
    pub(super) end: Instant,
}

/// What came of it.
pub(super) struct Contest {
    pub(super) rows: Vec<Row>,
    /// Whether nobody interrupted.
    pub(super) complete: bool,
}

/// Tries every filter with every seed. A round is one seed for all filters; how many there are is decided when the first is over.
pub(super) fn hold(
    arena: &Arena<'_>,
    plan: &Plan<'_>,
    entries: &[Entry],
    limits: Limits,
    progress: &mut Progress,
) -> Outcome<Contest> {
    let work = f64::from(arena.stored) + arena.queries.len() as f64;
    let board = Mutex::new(Board {
        next: 0,
        rounds: limits.seeds,
        done: vec![Vec::new(); entries.len()],
        failure: None,
        progress,
        start: Instant::now(),
    });
    let take = || lock(&board).take(entries.len(), limits, work);
    let job = |round: usize, place: usize| {
        let entry = &entries[place];
        let plan = Plan { seed: plan.seed.wrapping_add(round as u64), ..*plan };
        let mut told = |what: &str, done: u64| lock(&board).progress.step(what, entry.name, done);
        let run = arena.run(entry, &plan, round == 0, &mut told);
        lock(&board).note(round, place, run);
    };
    let worker = || {
        while let Some((round, place)) = take() {
            job(round, place);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(worker)));
    });
    board.into_inner().unwrap_or_else(PoisonError::into_inner).end(entries)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the threads share.
struct Board<'p> {
    /// The next filter to try, counted through all rounds.
    next: usize,
    /// How many rounds there are, once that is known.
    rounds: Option<usize>,
    /// What came of every filter, with the round.
    done: Vec<Vec<(usize, Run)>>,
    failure: Option<Failure>,
    progress: &'p mut Progress,
    start: Instant,
}

impl Board<'_> {
    /// The round and the filter that come next, if any.
    fn take(&mut self, filters: usize, limits: Limits, work: f64) -> Option<(usize, usize)> {
        if self.failure.is_some() || interrupt::stopped() || filters == 0 {
            return None;
        }
        let (round, place) = (self.next / filters, self.next % filters);
        if round > 0 && self.rounds.is_none() {
            let rounds = affordable(self.start.elapsed(), limits.end);
            self.rounds = Some(rounds);
            self.progress.more(work * (filters * (rounds - FEWEST)) as f64);
        }
        if self.rounds.is_some_and(|rounds| round >= rounds) {
            return None;
        }
        self.next += 1;
        Some((round, place))
    }

    fn note(&mut self, round: usize, place: usize, run: Outcome<Option<Run>>) {
        match run {
            Ok(Some(run)) => self.done[place].push((round, run)),
            Ok(None) | Err(Failure::Interrupted) => {}
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn end(self, entries: &[Entry]) -> Outcome<Contest> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let rounds = self.rounds.unwrap_or(1);
        let complete = self.done.iter().all(|runs| runs.len() == rounds);
        let rows = entries.iter().zip(self.done).filter(|(_, runs)| !runs.is_empty());
        let rows = rows.map(|(entry, mut runs)| {
            runs.sort_unstable_by_key(|(round, _)| *round);
            let runs = runs.into_iter().map(|(_, run)| run).collect();
            Row { entry_name: entry.name, needs: entry.needs, runs }
        });
        Ok(Contest { rows: rows.collect(), complete })
    }
}

/// How many rounds there is time for, if one took so long. The first has the store behind it, so it is no shorter than the others.
fn affordable(round: Duration, end: Instant) -> usize {
    let left = end.saturating_duration_since(Instant::now()).as_secs_f64();
    let more = left / round.as_secs_f64().max(1e-3);
    (1 + more as usize).clamp(FEWEST, MOST)
}

/// How many rounds to reckon with before it is known.
pub(super) fn expected_rounds(limits: Limits) -> usize {
    limits.seeds.unwrap_or(FEWEST)
}
