//! The measurement: who is measured when, on which keys, and what becomes of the times.
//!
//! ```text
//! for each size
//!     for each repeat, with keys of its own
//!         for each filter: fill it, timed; let it adapt; weigh it
//!         a few times: for each filter: positive, negative and batched queries, timed
//! ```
//!
//! So the measurements that are compared with each other lie close together in time, whatever else the machine
//! does meanwhile. The filters of one repeat are in memory together; their remotes are not.

use std::hint::black_box;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use besom::FilterStats;

use crate::heap;
use crate::keys::{Keys, Role, Zipf};
use crate::subject::{Adapting, Build, Entry, Failure, Shape, Subject};

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) entries: Vec<Entry>,
    pub(crate) cases: Vec<Case>,
    pub(crate) repeat: u32,
    /// How many adapting queries precede the measured ones.
    pub(crate) adapt_queries: u64,
    /// The filter that ratios refer to.
    pub(crate) baseline: String,
    pub(crate) seed: u64,
    pub(crate) effort: Effort,
}

/// One size at which all filters are measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// The size as it was asked for, if it was asked for in slots.
    pub(crate) log2_slots: Option<u32>,
    pub(crate) shape: Shape,
    /// The share of the planned keys that are present when queries are measured.
    pub(crate) fill: f64,
    /// Insertion is timed from this number of keys …
    pub(crate) from: usize,
    /// … to this one, which is larger.
    pub(crate) to: usize,
}

/// How long to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Different keys per query measurement.
    pub(crate) queries: usize,
    /// Measurements are repeated until they took so long in sum.
    pub(crate) at_least: Duration,
    /// How often queries are measured in a repeat.
    pub(crate) visits: u32,
}

/// Untimed operations before each timed measurement.
const WARM_UP: usize = 1 << 14;

/// Repeats take their keys from ranges this far apart.
const KEYS_PER_REPEAT: u64 = 1 << 44;

/// What came out for one filter at one size.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) filter: &'static str,
    pub(crate) case: Case,
    /// The figures, or nothing if the filter could not be measured.
    pub(crate) figures: Option<Figures>,
    /// Why not.
    pub(crate) error: Option<String>,
}

/// The measured values; speeds in million operations a second.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    /// Insertion into the filter alone, or with a remote that stores nothing; `None` for filters that cannot insert
    /// without the stored keys.
    pub(crate) insert: Option<Spread>,
    /// Insertion with a [`MemoryRemote`](besom::MemoryRemote), for adaptive filters.
    pub(crate) insert_with_remote: Option<Spread>,
    pub(crate) positive: Spread,
    pub(crate) negative: Spread,
    pub(crate) batch_negative: Option<Spread>,
    /// False positives among fresh non-members, over all repeats.
    pub(crate) fpr: Option<f64>,
    /// False positives among the adapting queries, over all repeats.
    pub(crate) adapting_fpr: Option<f64>,
    /// Repairs with a [`MemoryRemote`](besom::MemoryRemote), for filters that adapt.
    pub(crate) repair: Option<Spread>,
    /// The memory for keys and repairs, as the allocator counts it.
    pub(crate) bits_per_key: f64,
    /// What the filter said of itself in the last repeat.
    pub(crate) stats: Option<FilterStats>,
}

/// A value over the repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let upper = values.len() / 2;
        let lower = (values.len() - 1) / 2;
        Some(Self { median: f64::midpoint(values[lower], values[upper]), min, max })
    }

    /// The whole range as a share of the median.
    pub(crate) fn relative(&self) -> f64 {
        (self.max - self.min) / self.median
    }
}

/// What came out for one filter so far.
#[derive(Default)]
struct Samples {
    fills: Vec<Fill>,
    queries: Vec<Queries>,
}

/// What one filling of a filter showed.
struct Fill {
    insert: Option<f64>,
    insert_with_remote: Option<f64>,
    adapting_fpr: Option<f64>,
    repair: Option<f64>,
    bits_per_key: f64,
    stats: Option<FilterStats>,
}

/// What one visit to a filled filter showed.
struct Queries {
    positive: f64,
    negative: f64,
    batch_negative: Option<f64>,
    fpr: Option<f64>,
}

/// Measures everything. A filter that fails gets a row that says why and does not disturb the others.
pub(crate) fn run(plan: &Plan) -> Vec<Row> {
    let mut progress = Progress::new(plan);
    let mut rows = Vec::new();
    for case in &plan.cases {
        let mut samples: Vec<Result<Samples, Failure>> =
            plan.entries.iter().map(|_| Ok(Samples::default())).collect();
        for repeat in 0..plan.repeat {
            Trial::new(plan, *case, repeat).run(plan, &mut samples, &mut progress);
        }
        rows.extend(plan.entries.iter().zip(samples).map(|(entry, samples)| Row::new(entry, *case, samples)));
    }
    progress.finish();
    rows
}

impl Row {
    fn new(entry: &Entry, case: Case, samples: Result<Samples, Failure>) -> Self {
        let (figures, error) = match samples {
            Ok(samples) => (Figures::of(&samples), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self { filter: entry.name, case, figures, error }
    }
}

impl Figures {
    fn of(Samples { fills, queries }: &Samples) -> Option<Self> {
        let fill = |value: fn(&Fill) -> Option<f64>| Spread::of(fills.iter().filter_map(value));
        let query = |value: fn(&Queries) -> Option<f64>| Spread::of(queries.iter().filter_map(value));
        Some(Self {
            insert: fill(|fill| fill.insert),
            insert_with_remote: fill(|fill| fill.insert_with_remote),
            positive: query(|query| Some(query.positive))?,
            negative: query(|query| Some(query.negative))?,
            batch_negative: query(|query| query.batch_negative),
            fpr: mean(queries.iter().filter_map(|query| query.fpr)),
            adapting_fpr: mean(fills.iter().filter_map(|fill| fill.adapting_fpr)),
            repair: fill(|fill| fill.repair),
            bits_per_key: fill(|fill| Some(fill.bits_per_key))?.median,
            stats: fills.last().and_then(|fill| fill.stats),
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// One repeat at one size: the same keys for all filters.
struct Trial {
    case: Case,
    effort: Effort,
    adapt_queries: u64,
    keys: Keys,
    repeat: u64,
    strangers: Vec<u64>,
    /// The filters, each once: another order in each repeat, so that nobody always comes after the same one.
    order: Vec<usize>,
}

impl Trial {
    fn new(plan: &Plan, mut case: Case, repeat: u32) -> Self {
        let (keys, repeat) = (Keys::new(plan.seed), u64::from(repeat));
        case.shape.seed = plan.seed.wrapping_add(repeat);
        let mut order: Vec<usize> = (0..plan.entries.len()).collect();
        keys.choices(repeat).shuffle(&mut order);
        Self {
            case,
            effort: plan.effort,
            adapt_queries: plan.adapt_queries,
            keys,
            repeat,
            strangers: keys.range(Role::Stranger, repeat * KEYS_PER_REPEAT, plan.effort.queries + WARM_UP),
            order,
        }
    }

    /// Fills all filters, then asks all of them. A failure takes the place of the filter's samples.
    fn run(&self, plan: &Plan, samples: &mut [Result<Samples, Failure>], progress: &mut Progress) {
        let mut ready = Vec::new();
        for &index in &self.order {
            let entry = &plan.entries[index];
            progress.step(entry.name, &self.case);
            let Ok(done) = &mut samples[index] else { continue };
            match self.prepare(entry) {
                Ok((fill, filled)) => {
                    done.fills.push(fill);
                    ready.push((index, filled));
                }
                Err(error) => samples[index] = Err(error),
            }
        }
        for _ in 0..self.effort.visits {
            for (index, filled) in &ready {
                progress.step(plan.entries[*index].name, &self.case);
                let Ok(done) = &mut samples[*index] else { continue };
                match self.ask(filled) {
                    Ok(queries) => done.queries.push(queries),
                    Err(error) => samples[*index] = Err(error),
                }
            }
        }
    }

    /// Fills a filter and lets it adapt.
    fn prepare(&self, entry: &Entry) -> Result<(Fill, Filled), Failure> {
        let bare = entry.bare.as_ref().map(|bare| self.fill(bare)).transpose()?.map(|filled| filled.mops);
        let mut filled = self.fill(&entry.build)?;
        let subject = &mut *filled.subject;
        let adapting = self.adapt(subject)?;
        let queried = self.adapt_queries > 0 && subject.is_filter();
        let stats = subject.stats();
        let bytes = heap::live() - filled.heap_before - subject.foreign_bytes();
        let working_bits = stats.map_or(0, |stats| stats.working_bits);
        let fill = Fill {
            insert: if entry.remote { bare } else { Some(filled.mops) },
            insert_with_remote: entry.remote.then_some(filled.mops),
            adapting_fpr: queried.then(|| adapting.hits as f64 / self.adapt_queries as f64),
            repair: (adapting.repairs > 0).then(|| mops(adapting.repairs, adapting.time)),
            bits_per_key: (bytes as f64 * 8.0 - working_bits as f64) / self.case.to as f64,
            stats,
        };
        subject.settle();
        Ok((fill, filled))
    }

    /// Measures queries. Since the last visit to this filter others were busy, so it is brought back into the cache
    /// first, as far as it fits.
    fn ask(&self, filled: &Filled) -> Result<Queries, Failure> {
        let subject = black_box(&*filled.subject);
        let queries = self.effort.queries;
        let members = self.sample_of(filled.first_member);
        black_box(subject.count(&members));
        let (positive, found) = self.time(&members, |keys| subject.count(keys));
        if subject.is_filter() && found != queries {
            let lost = queries - found;
            return Err(format!("lost keys: {lost} of {queries} queries for stored keys failed").into());
        }
        let (negative, hits) = self.time(&self.strangers, |keys| subject.count(keys));
        let has_batches = subject.count_batched(&[]).is_some();
        let batch_negative = has_batches
            .then(|| self.time(&self.strangers, |keys| subject.count_batched(keys).unwrap_or_default()));
        if batch_negative.is_some_and(|(_, batched)| batched != hits) {
            return Err("batched queries give other answers than single ones".into());
        }
        Ok(Queries {
            positive,
            negative,
            batch_negative: batch_negative.map(|(mops, _)| mops),
            fpr: subject.is_filter().then(|| hits as f64 / queries as f64),
        })
    }

    /// Fills fresh filters until it took long enough, with other keys each time, lest the processor learns them.
    fn fill(&self, build: &Build) -> Result<Filled, Failure> {
        let Case { shape, from, to, .. } = self.case;
        self.warm_up(build)?;
        let (mut time, mut inserted) = (Duration::ZERO, 0);
        let mut first_member = self.repeat * KEYS_PER_REPEAT;
        loop {
            let heap_before = heap::live();
            let members = self.keys.range(Role::Member, first_member, to);
            let mut subject = build(&shape)?;
            if from > 0 {
                subject.insert_all(&members[..from])?;
            }
            let start = Instant::now();
            black_box(&mut *subject).insert_all(black_box(&members[from..]))?;
            time += start.elapsed();
            inserted += to - from;
            if time >= self.effort.at_least {
                return Ok(Filled { subject, first_member, mops: mops(inserted, time), heap_before });
            }
            first_member += to as u64;
        }
    }

    /// Brings the code of a filter into the cache and the branch predictor up to date with it.
    fn warm_up(&self, build: &Build) -> Result<(), Failure> {
        let shape = Shape { items: self.case.shape.items.min(WARM_UP), ..self.case.shape };
        let keys = self.keys.range(
            Role::Stranger,
            (self.repeat + 1) * KEYS_PER_REPEAT - WARM_UP as u64,
            shape.items,
        );
        let mut subject = build(&shape)?;
        subject.insert_all(&keys)?;
        black_box(subject.count(&keys));
        Ok(())
    }

    /// As many members as there are queries, chosen at random from those that follow the first.
    fn sample_of(&self, first_member: u64) -> Vec<u64> {
        let mut random = self.keys.choices(1 << 32 | self.repeat);
        let member = |_| self.keys.key(Role::Member, first_member + random.below(self.case.to as u64));
        (0..self.effort.queries + WARM_UP).map(member).collect()
    }

    /// Asks for all keys, as often as it takes: the speed, and how many keys of one pass were found.
    fn time(&self, keys: &[u64], count: impl Fn(&[u64]) -> usize) -> (f64, usize) {
        let (keys, warm_up) = keys.split_at(self.effort.queries);
        black_box(count(warm_up));
        let (mut time, mut passes) = (Duration::ZERO, 0);
        loop {
            let start = Instant::now();
            let found = black_box(count(black_box(keys)));
            time += start.elapsed();
            passes += 1;
            if time >= self.effort.at_least {
                return (mops(passes * keys.len(), time), found);
            }
        }
    }

    /// Lets the filter adapt to a stream of queries.
    fn adapt(&self, subject: &mut dyn Subject) -> Result<Adapting, Failure> {
        const CHUNK: u64 = 1 << 20;
        let zipf = Zipf::new(10 * self.case.to as u64);
        let mut random = self.keys.choices(2 << 32 | self.repeat);
        let (mut left, mut adapting) = (self.adapt_queries, Adapting::default());
        while left > 0 {
            let count = left.min(CHUNK);
            let rank =
                |_| self.keys.key(Role::Regular, self.repeat * KEYS_PER_REPEAT + zipf.draw(&mut random));
            let chunk: Vec<u64> = (0..count).map(rank).collect();
            adapting += subject.adapt_all(&chunk)?;
            left -= count;
        }
        Ok(adapting)
    }
}

/// A filled filter.
struct Filled {
    subject: Box<dyn Subject>,
    /// The number of the first key in it; the others follow.
    first_member: u64,
    /// How fast it got there.
    mops: f64,
    /// The heap without the filter.
    heap_before: isize,
}

fn mops(operations: usize, time: Duration) -> f64 {
    // A clock that stands still must not lead to an infinity, which JSON cannot express.
    operations as f64 / time.as_secs_f64().max(1e-9) / 1e6
}

/// Says on a terminal what is being done.
struct Progress {
    shown: bool,
    done: usize,
    total: usize,
}

impl Progress {
    fn new(plan: &Plan) -> Self {
        let rounds = plan.repeat as usize * (1 + plan.effort.visits as usize);
        let total = plan.cases.len() * plan.entries.len() * rounds;
        Self { shown: stderr().is_terminal(), done: 0, total }
    }

    fn step(&mut self, filter: &str, case: &Case) {
        if self.shown {
            let share = (100 * self.done / self.total.max(1)).min(99);
            eprint!("\r\x1b[K{share:2}%  {} keys, {filter}", case.to);
            // Progress that cannot be shown is no reason to stop.
            let _ = stderr().flush();
        }
        self.done += 1;
    }

    fn finish(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(Spread::of([9.0, 1.0, 4.0]), Some(Spread { median: 4.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of([4.0, 1.0, 9.0, 2.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread { median: 4.0, min: 3.0, max: 5.0 }.relative(), 0.5);
    }

    #[test]
    fn a_standing_clock_gives_a_finite_speed() {
        assert!(mops(1, Duration::ZERO).is_finite());
        assert_eq!(mops(2_000_000, Duration::from_secs(1)), 2.0);
    }

    /// Says yes to everything, unless one of its faults is switched on.
    #[derive(Clone, Default)]
    struct Fickle {
        fails: bool,
        forgets: bool,
        /// How many keys fewer a batch finds than single queries do.
        short_in_batches: Option<usize>,
        /// Bytes of the filter, of what it works in, and of its remote.
        bytes: [usize; 3],
        memory: Vec<Vec<u8>>,
    }

    impl Subject for Fickle {
        fn insert_all(&mut self, _: &[u64]) -> Result<(), Failure> {
            if self.fails { Err("no room".into()) } else { Ok(()) }
        }

        fn count(&self, keys: &[u64]) -> usize {
            keys.len() - usize::from(self.forgets)
        }

        fn count_batched(&self, keys: &[u64]) -> Option<usize> {
            self.short_in_batches.map(|short| keys.len().saturating_sub(short))
        }

        fn foreign_bytes(&self) -> isize {
            self.memory[2].len() as isize
        }

        fn stats(&self) -> Option<FilterStats> {
            let mut stats = FilterStats::default();
            (stats.bits, stats.working_bits) = (8 * self.bytes[0], 8 * self.bytes[1]);
            Some(stats)
        }
    }

    fn entry(name: &'static str, fickle: Fickle) -> Entry {
        let build: Build = Box::new(move |_| {
            let memory = fickle.bytes.iter().map(|&bytes| vec![0; bytes]).collect();
            Ok(Box::new(Fickle { memory, ..fickle.clone() }))
        });
        Entry { name, note: String::new(), build, remote: false, bare: None }
    }

    fn plan(tested: Entry) -> Plan {
        let shape = Shape { items: 10, load: 0.9, rate: 0.01, seed: 1 };
        Plan {
            entries: vec![tested, entry("sound", Fickle::default())],
            cases: vec![Case { log2_slots: None, shape, fill: 1.0, from: 0, to: 10 }],
            repeat: 2,
            adapt_queries: 100,
            baseline: "sound".into(),
            seed: 1,
            effort: Effort { queries: 100, at_least: Duration::from_micros(1), visits: 2 },
        }
    }

    #[test]
    fn a_filter_that_fails_says_so_and_leaves_the_others_alone() {
        let faults = [
            (Fickle { fails: true, ..Fickle::default() }, "no room"),
            (Fickle { forgets: true, ..Fickle::default() }, "lost keys: 1 of 100"),
            (Fickle { short_in_batches: Some(1), ..Fickle::default() }, "batched queries give other answers"),
        ];
        for (fault, reason) in faults {
            let rows = run(&plan(entry("tested", fault)));
            assert!(rows[0].figures.is_none());
            assert!(rows[0].error.as_ref().unwrap().contains(reason), "{:?}", rows[0].error);
            let figures = rows[1].figures.as_ref().unwrap();
            assert_eq!((figures.fpr, figures.adapting_fpr), (Some(1.0), Some(1.0)));
            assert_eq!(figures.batch_negative, None);
        }
    }

    #[test]
    fn batches_that_answer_alike_are_measured() {
        let rows = run(&plan(entry("tested", Fickle { short_in_batches: Some(0), ..Fickle::default() })));
        assert!(rows[0].figures.as_ref().unwrap().batch_negative.is_some(), "{:?}", rows[0].error);
    }

    /// Neither the remote's memory nor what operations work in is the filter's.
    #[test]
    fn the_memory_of_a_filter_is_what_its_keys_take() {
        let bits_per_key = |bytes: [usize; 3]| {
            let rows = run(&plan(entry("tested", Fickle { bytes, ..Fickle::default() })));
            rows[0].figures.as_ref().unwrap().bits_per_key
        };
        let struct_alone = bits_per_key([0; 3]);
        assert_eq!(bits_per_key([1_000, 0, 0]), struct_alone + 800.0);
        assert_eq!(bits_per_key([1_000, 500, 0]), struct_alone + 800.0);
        assert_eq!(bits_per_key([1_000, 500, 9_000]), struct_alone + 800.0);
    }

    /// The speed of insertion with a remote never stands for that without one.
    #[test]
    fn insertion_with_and_without_a_remote_are_apart() {
        let with = |remote, bare: bool| {
            let bare = bare.then(|| entry("", Fickle::default()).build);
            let rows = run(&plan(Entry { remote, bare, ..entry("tested", Fickle::default()) }));
            let figures = rows[0].figures.clone().unwrap();
            (figures.insert.is_some(), figures.insert_with_remote.is_some())
        };
        assert_eq!(with(false, false), (true, false), "a plain filter");
        assert_eq!(with(true, true), (true, true), "an adaptive one");
        assert_eq!(with(true, false), (false, true), "one that needs the stored keys");
    }
}
