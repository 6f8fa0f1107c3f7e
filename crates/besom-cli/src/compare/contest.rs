//! All filters, with several seeds each, side by side on all cores; and beside them the best of ours in the product.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::contender::{Entry, Plan};
use super::product::{self, Product};
use super::replay::{Arena, Row, Run};
use super::verdict::in_contest;
use crate::error::{Failure, Outcome};
use crate::interrupt;
use crate::progress::Progress;

/// How many seeds, if nobody says: at least and at most.
const FEWEST: usize = 3;
const MOST: usize = 9;

/// How long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// This many seeds, however long it takes.
    pub(super) seeds: Option<usize>,
    /// When the last of them should be done, if their number is open.
    pub(super) end: Instant,
    /// Whether the best is tried in the product as well.
    pub(super) product: bool,
}

/// What came of it.
pub(super) struct Contest {
    pub(super) rows: Vec<Row>,
    /// What the product made of the filter that was the best with the first seed, of those that it takes.
    pub(super) product: Option<Product>,
    /// Whether nobody interrupted.
    pub(super) complete: bool,
}

/// Tries every filter with every seed. A round is one seed for all filters; how many there are is decided when the
/// first is over.
pub(super) fn hold(
    arena: &Arena<'_>,
    plan: &Plan<'_>,
    entries: &[Entry],
    limits: Limits,
    progress: &mut Progress,
) -> Outcome<Contest> {
    let board = Mutex::new(Board {
        next: 0,
        rounds: limits.seeds,
        done: vec![Vec::new(); entries.len()],
        product: if limits.product { Pending::Wanted } else { Pending::Done(None) },
        failure: None,
        progress,
        start: Instant::now(),
    });
    let work = f64::from(arena.stored) + arena.queries.len() as f64;
    let worker = || {
        loop {
            let job = lock(&board).take(entries, plan, limits, work);
            let told = |what: &str, name: &str, done: u64| lock(&board).progress.step(what, name, done);
            match job {
                Some(Job::Run(round, place)) => {
                    let (entry, seed) = (&entries[place], plan.seed.wrapping_add(round as u64));
                    let mut told = |what: &str, done: u64| told(what, entry.name, done);
                    let run = arena.run(entry, &Plan { seed, ..*plan }, round == 0, &mut told);
                    lock(&board).note(round, place, run);
                }
                Some(Job::Product(row)) => {
                    let mut told = |what: &str, done: u64| told(what, row.entry_name, done);
                    let product = arena.in_product(&row, plan, &mut told);
                    lock(&board).note_product(product);
                }
                None => break,
            }
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

/// A piece of work.
enum Job {
    /// The round, and the place of the filter.
    Run(usize, usize),
    /// This filter in the product.
    Product(Box<Row>),
}

/// How far the product is.
enum Pending {
    Wanted,
    Taken,
    Done(Option<Product>),
}

/// What the threads share.
struct Board<'p> {
    /// The next filter to try, counted through all rounds.
    next: usize,
    /// How many rounds there are, once that is known.
    rounds: Option<usize>,
    /// What came of every filter, with the round.
    done: Vec<Vec<(usize, Run)>>,
    product: Pending,
    failure: Option<Failure>,
    progress: &'p mut Progress,
    start: Instant,
}

impl Board<'_> {
    /// What comes next, if anything does.
    fn take(&mut self, entries: &[Entry], plan: &Plan<'_>, limits: Limits, work: f64) -> Option<Job> {
        let filters = entries.len();
        if self.failure.is_some() || interrupt::stopped() || filters == 0 {
            return None;
        }
        if let Some(best) = self.best_of_first_round(entries, plan) {
            return Some(Job::Product(Box::new(best)));
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
        Some(Job::Run(round, place))
    }

    /// The filter that the product takes, once, as soon as all were tried with the first seed.
    fn best_of_first_round(&mut self, entries: &[Entry], plan: &Plan<'_>) -> Option<Row> {
        let first =
            |runs: &Vec<(usize, Run)>| runs.iter().find(|(round, _)| *round == 0).map(|(_, run)| run.clone());
        if !matches!(self.product, Pending::Wanted) || !self.done.iter().all(|runs| first(runs).is_some()) {
            return None;
        }
        let rows: Vec<Row> = entries
            .iter()
            .zip(&self.done)
            .filter_map(|(entry, runs)| Some(row(entry, vec![first(runs)?])))
            .collect();
        let best = product::choose(rows.iter().filter(|row| in_contest(row, plan))).cloned();
        self.product = if best.is_some() { Pending::Taken } else { Pending::Done(None) };
        best
    }

    fn note(&mut self, round: usize, place: usize, run: Outcome<Option<Run>>) {
        match run {
            Ok(Some(run)) => self.done[place].push((round, run)),
            Ok(None) | Err(Failure::Interrupted) => {}
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn note_product(&mut self, product: Outcome<Option<Product>>) {
        match product {
            Ok(Some(product)) => self.product = Pending::Done(Some(product)),
            Ok(None) | Err(Failure::Interrupted) => {}
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn end(self, entries: &[Entry]) -> Outcome<Contest> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let rounds = self.rounds.unwrap_or(1);
        let all = self.done.iter().all(|runs| runs.len() == rounds);
        let (product, settled) = match self.product {
            Pending::Done(product) => (product, true),
            Pending::Wanted | Pending::Taken => (None, false),
        };
        let rows = entries.iter().zip(self.done).filter(|(_, runs)| !runs.is_empty());
        let rows = rows.map(|(entry, mut runs)| {
            runs.sort_unstable_by_key(|(round, _)| *round);
            row(entry, runs.into_iter().map(|(_, run)| run).collect())
        });
        Ok(Contest { rows: rows.collect(), product, complete: all && settled })
    }
}

fn row(entry: &Entry, runs: Vec<Run>) -> Row {
    Row { entry_name: entry.name, needs: entry.needs, runs }
}

/// How many rounds there is time for, if one took so long. The first has the store behind it, so it is no shorter than
/// the others.
fn affordable(round: Duration, end: Instant) -> usize {
    let left = end.saturating_duration_since(Instant::now()).as_secs_f64();
    let more = left / round.as_secs_f64().max(1e-3);
    (1 + more as usize).clamp(FEWEST, MOST)
}

/// How many rounds to reckon with before it is known.
pub(super) fn expected_rounds(limits: Limits) -> usize {
    limits.seeds.unwrap_or(FEWEST)
}
