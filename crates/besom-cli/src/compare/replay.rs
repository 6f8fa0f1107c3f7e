//! A filter in use: the queries are replayed in front of the store, then an attacker has a go.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use besom::{KeyHasher, Seed, Xxh3};
use besom_lab::stats::Spread;

use super::contender::{Contender, Entry, Needs, Plan};
use super::queries::{Chunk, Queries};
use super::store::Store;
use crate::error::{Failure, Outcome};
use crate::interrupt;
use crate::keys::KeySet;

/// What came of one filter.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) entry_name: &'static str,
    pub(crate) needs: Needs,
    /// One for each seed, in their order; never empty. The first one had the store behind it.
    pub(crate) runs: Vec<Run>,
}

/// What came of one filter with one seed.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    /// The rate that it was built for.
    pub(crate) rate: f64,
    /// At the end, with all repairs.
    pub(crate) bits_per_key: f64,
    /// What operations work in, whatever the size of the filter: no part of the bits per key.
    pub(crate) working_bits: usize,
    pub(crate) queries: u64,
    pub(crate) absent: u64,
    /// Look-ups of absent keys.
    pub(crate) false_positives: u64,
    /// False positives that had been false positives before.
    pub(crate) repeated: u64,
    /// Look-ups in the store.
    pub(crate) lookups: u64,
    /// Reads of the hash index, for repairs.
    pub(crate) remote_reads: u64,
    pub(crate) adaptations: u64,
    pub(crate) insert_time: Duration,
    pub(crate) time: Duration,
    /// Queries a second of the filter alone.
    pub(crate) filter_speed: f64,
    /// Useless look-ups up to this many queries.
    pub(crate) useless: Vec<(u64, u64)>,
    pub(crate) attack: Attack,
}

/// What an attacker got out of a filter.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attack {
    pub(crate) queries: u64,
    pub(crate) false_positives: u64,
}

impl Row {
    /// The run with the store behind the filter.
    pub(crate) fn first(&self) -> &Run {
        self.runs.first().expect("a row is made of a run")
    }

    /// Median and range of something over the seeds.
    pub(crate) fn spread(&self, of: impl Fn(&Run) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(of)).expect("a row is made of a run")
    }

    /// Useless reads over the seeds.
    pub(crate) fn useless(&self) -> Spread {
        self.spread(|run| run.useless_reads() as f64)
    }

    /// Reads of the hash index by repairs.
    pub(crate) fn repair_reads(&self) -> Spread {
        self.spread(|run| run.remote_reads as f64)
    }

    pub(crate) fn bits_per_key(&self) -> f64 {
        self.spread(|run| run.bits_per_key).median
    }

    /// The share of the attacker's queries that got through. `None` if nobody attacked.
    pub(crate) fn attacked(&self) -> Option<Spread> {
        let attacks = self.runs.iter().map(|run| run.attack).filter(|attack| attack.queries > 0);
        Spread::of(attacks.map(|attack| attack.false_positives as f64 / attack.queries as f64))
    }
}

impl Run {
    fn new(seed: u64, rate: f64, insert_time: Duration) -> Self {
        Self {
            seed,
            rate,
            bits_per_key: 0.0,
            working_bits: 0,
            queries: 0,
            absent: 0,
            false_positives: 0,
            repeated: 0,
            lookups: 0,
            remote_reads: 0,
            adaptations: 0,
            insert_time,
            time: Duration::ZERO,
            filter_speed: 0.0,
            useless: vec![(0, 0)],
            attack: Attack::default(),
        }
    }

    /// Reads that find nothing: look-ups of keys that are not there, and what repairs read beyond the first read of
    /// each. That one is for where the look-up just was; the others are elsewhere.
    pub(crate) fn useless_reads(&self) -> u64 {
        self.false_positives + self.remote_reads.saturating_sub(self.adaptations)
    }

    /// Everything that goes to the store: look-ups, and what repairs read there.
    pub(crate) fn store_reads(&self) -> u64 {
        self.lookups + self.remote_reads
    }

    pub(crate) fn working_kbit(&self) -> f64 {
        self.working_bits as f64 / 1000.0
    }

    pub(crate) fn queries_per_second(&self) -> f64 {
        self.queries as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

/// Where all filters are tried.
pub(crate) struct Arena<'a> {
    pub(super) keys: &'a KeySet,
    pub(super) stored: u32,
    pub(super) queries: &'a Queries,
    pub(super) store: &'a Store<'a>,
    pub(super) attack_queries: u64,
}

/// Points of the line over time.
const POINTS: u64 = 120;

impl Arena<'_> {
    /// Tries a filter. `None` if it was interrupted. `progress` hears of keys and queries that are done. Only a run
    /// that is timed has the store behind it: counts are the same without.
    pub(super) fn run(
        &self,
        entry: &Entry,
        plan: &Plan<'_>,
        timed: bool,
        progress: &mut dyn FnMut(&str, u64),
    ) -> Outcome<Option<Run>> {
        let (mut filter, rate) = entry.build(plan)?;
        let insert_time = self.fill(entry.name, filter.as_mut(), &mut |done| progress("filling", done))?;
        let before = filter.remote_reads();
        let mut run = Run::new(plan.seed, rate, insert_time);
        if !self.replay(entry.name, filter.as_mut(), timed, &mut run, progress)? {
            return Ok(None);
        }
        run.remote_reads = filter.remote_reads() - before;
        run.bits_per_key = filter.bits() as f64 / f64::from(self.stored);
        run.working_bits = filter.working_bits();
        if timed {
            run.filter_speed = self.speed(filter.as_ref())?;
        }
        run.attack = self.attack(entry.name, filter.as_mut(), plan.seed)?;
        Ok(Some(run))
    }

    fn fill(
        &self,
        name: &str,
        filter: &mut dyn Contender,
        progress: &mut dyn FnMut(u64),
    ) -> Outcome<Duration> {
        let failed = |problem: String| Failure::contender(name, problem);
        let start = Instant::now();
        while let Err(problem) = self.insert_all(filter, progress)? {
            if !filter.grow() {
                return Err(failed(problem));
            }
        }
        filter.seal().map_err(failed)?;
        Ok(start.elapsed())
    }

    /// Inserts all stored keys, or says why the filter did not take one.
    fn insert_all(
        &self,
        filter: &mut dyn Contender,
        progress: &mut dyn FnMut(u64),
    ) -> Outcome<Result<(), String>> {
        for (number, key) in self.keys.iter().take(self.stored as usize).enumerate() {
            if let Err(problem) = filter.insert(key) {
                return Ok(Err(problem));
            }
            if number % 4096 == 4095 {
                progress(4096);
                if interrupt::stopped() {
                    return Err(Failure::Interrupted);
                }
            }
        }
        Ok(Ok(()))
    }

    /// Replays all queries. `false` if it was interrupted.
    fn replay(
        &self,
        name: &str,
        filter: &mut dyn Contender,
        timed: bool,
        run: &mut Run,
        progress: &mut dyn FnMut(&str, u64),
    ) -> Outcome<bool> {
        let hash = Xxh3::with_seed(Seed::from(1_u64));
        let mut seen = HashSet::new();
        let step = self.queries.len().div_ceil(POINTS).max(1);
        let mut visit = |chunk: &Chunk| {
            let start = Instant::now();
            for (key, stored) in chunk.iter() {
                let found = |key: &[u8]| if timed { self.store.get(key) } else { Ok(stored) };
                if ask(filter, key, stored, run, found).map_err(|asked| asked.said_by(name, key))? {
                    run.repeated += u64::from(!seen.insert(hash.digest(key).lo));
                }
                if run.queries.is_multiple_of(step) {
                    run.useless.push((run.queries, run.false_positives));
                }
            }
            run.time += start.elapsed();
            progress("replaying", chunk.len() as u64);
            Ok(!interrupt::stopped())
        };
        self.queries.replay(&mut visit)?;
        if run.useless.last().is_none_or(|&(queries, _)| queries < run.queries) {
            run.useless.push((run.queries, run.false_positives));
        }
        Ok(run.queries == self.queries.len())
    }

    /// How fast the filter alone answers the first queries.
    fn speed(&self, filter: &dyn Contender) -> Outcome<f64> {
        let (mut queries, mut time) = (0, Duration::ZERO);
        self.queries.replay(&mut |chunk| {
            let start = Instant::now();
            let accepted = chunk.iter().filter(|(key, _)| filter.contains(key)).count();
            std::hint::black_box(accepted);
            time += start.elapsed();
            queries += chunk.len();
            Ok(queries < 1 << 19)
        })?;
        Ok(queries as f64 / time.as_secs_f64().max(1e-9))
    }

    /// An attacker who knows nothing but the answers: one query in ten is a new one, the others are those that got
    /// through before, again and again; what is rejected is forgotten.
    fn attack(&self, name: &str, filter: &mut dyn Contender, seed: u64) -> Outcome<Attack> {
        let mut attack = Attack { queries: self.attack_queries, false_positives: 0 };
        let (mut loot, mut turn) = (Vec::<Vec<u8>>::new(), 0_usize);
        let mut key = Vec::new();
        for query in 0..attack.queries {
            if query % 4096 == 0 && interrupt::stopped() {
                attack.queries = query;
                break;
            }
            let again = !query.is_multiple_of(10) && !loot.is_empty();
            if again {
                turn = (turn + 1) % loot.len();
                key.clone_from(&loot[turn]);
            } else {
                key = format!("attacker-{seed}-{query}").into_bytes();
            }
            if !filter.contains(&key) {
                if again {
                    loot.swap_remove(turn);
                }
                continue;
            }
            // What got through once and is asked again is known to be absent.
            if !again && self.keys.number(&key).is_some_and(|number| number < self.stored) {
                continue;
            }
            attack.false_positives += 1;
            filter.adapt(&key).map_err(|problem| Failure::contender(name, problem))?;
            if !again {
                loot.push(key.clone());
            }
        }
        Ok(attack)
    }
}

/// What can go wrong with a query.
enum Asked {
    FalseNegative,
    Filter(String),
    Store(Failure),
}

impl Asked {
    fn said_by(self, name: &str, key: &[u8]) -> Failure {
        match self {
            Self::FalseNegative => false_negative(name, key),
            Self::Filter(problem) => Failure::contender(name, problem),
            Self::Store(failure) => failure,
        }
    }
}

/// One query: what the filter does not reject is looked up; what is not there then is reported to the filter. Whether
/// that was so.
#[inline]
fn ask(
    filter: &mut dyn Contender,
    key: &[u8],
    stored: bool,
    run: &mut Run,
    find: impl FnOnce(&[u8]) -> Outcome<bool>,
) -> Result<bool, Asked> {
    run.queries += 1;
    run.absent += u64::from(!stored);
    if !filter.contains(key) {
        return if stored { Err(Asked::FalseNegative) } else { Ok(false) };
    }
    run.lookups += 1;
    if find(key).map_err(Asked::Store)? {
        return Ok(false);
    }
    run.false_positives += 1;
    run.adaptations += u64::from(filter.adapt(key).map_err(Asked::Filter)?);
    Ok(true)
}

pub(super) fn false_negative(name: &str, key: &[u8]) -> Failure {
    let key = String::from_utf8_lossy(key);
    Failure::contender(
        name,
        format!("it reported the stored key {key:?} absent, which no filter may; please report this"),
    )
}
