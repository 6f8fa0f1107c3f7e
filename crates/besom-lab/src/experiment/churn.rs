//! Beyond the papers: a full broom filter whose keys come and go in five orders, with a query that adapts after each.
//!
//! Space may rise until the budget of adaptivity bits is used up, once; from then on neither space nor time may drift.

use besom::{Adaptive, BroomFilter, Filter, MemoryRemote, Table as Lines};

use super::{Experiment, Point, Points, Setting, Task, TaskError};
use crate::clock::Clock;
use crate::random::Random;
use crate::report::{Axis, Claim, Column, Line, Plot, Section, Table, compact};

/// The tables and plots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Churn;

const REPLACEMENTS: usize = 50;
const SAMPLES: usize = 25;
const EXPONENT: i32 = 8;
/// Bits per key that steady service may take, from this many keys on; below, constants weigh more.
const MOST_BITS: f64 = 14.5;
const MANY: usize = 20_000;
/// How much slower than in the second fifth of the time service may be in the last. In the first, the budget fills.
const DRIFT: f64 = 0.25;
const TABLES: [(&str, Lines); 2] = [("bins", Lines::Bins), ("quotient table", Lines::Quotient)];
const ORDERS: [(&str, Order); 5] = [
    ("random", Order::Random),
    ("first in, first out", Order::FirstInFirstOut),
    ("last in, first out", Order::LastInFirstOut),
    ("the same key", Order::TheSame),
    ("saw-tooth", Order::SawTooth),
];
/// What is shown over time.
const VALUES: [(&str, &str); 2] =
    [("bits", "bits per key"), ("microseconds", "microseconds per replacement and query")];

fn sizes(setting: &Setting) -> &'static [usize] {
    setting.pick(&[1_000], &[1_000, MANY, 1_000_000])
}

/// Which key goes next.
#[derive(Debug, Clone, Copy)]
enum Order {
    Random,
    FirstInFirstOut,
    LastInFirstOut,
    /// Each key comes again as soon as it has gone, 64 times.
    TheSame,
    /// A third of all keys go before as many come.
    SawTooth,
}

struct Service {
    filter: BroomFilter,
    remote: MemoryRemote,
    stored: Vec<u64>,
    random: Random,
}

impl Service {
    /// Even numbers are stored, odd ones are strangers.
    fn fresh(&mut self) -> u64 {
        self.random.next_u64() & !1
    }

    fn remove(&mut self, slot: usize) -> Result<(), TaskError> {
        if self.filter.remove(&self.stored[slot], &mut self.remote)? {
            return Ok(());
        }
        Err("a stored key was not there to be removed".into())
    }

    fn insert(&mut self, slot: usize, key: u64) -> Result<(), TaskError> {
        self.stored[slot] = key;
        self.filter.insert(&key, &mut self.remote)?;
        Ok(())
    }

    fn replace(&mut self, order: Order, round: usize) -> Result<(), TaskError> {
        let keys = self.stored.len();
        let slot = match order {
            Order::Random => self.random.below(keys as u64) as usize,
            Order::FirstInFirstOut => round % keys,
            Order::LastInFirstOut => keys - 1,
            Order::TheSame => round / 64 % keys,
            Order::SawTooth => return if round.is_multiple_of(keys / 3) { self.saw() } else { Ok(()) },
        };
        let key = if matches!(order, Order::TheSame) { self.stored[slot] } else { self.fresh() };
        self.remove(slot)?;
        self.insert(slot, key)
    }

    fn saw(&mut self) -> Result<(), TaskError> {
        let slots: Vec<usize> = (0..self.stored.len()).filter(|_| self.random.below(3) == 0).collect();
        slots.iter().try_for_each(|&slot| self.remove(slot))?;
        slots.iter().try_for_each(|&slot| {
            let key = self.fresh();
            self.insert(slot, key)
        })
    }

    fn query(&mut self) -> Result<(), TaskError> {
        let stranger = self.random.next_u64() | 1;
        if self.filter.contains(&stranger) && !self.filter.adapt(&stranger, &mut self.remote)?.is_fixed() {
            return Err("a false positive was not repaired".into());
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TaskError> {
        if !self.stored.iter().all(|key| self.filter.contains(key)) {
            return Err("a stored key was lost".into());
        }
        self.filter.verify()?;
        Ok(self.filter.verify_remote(&mut self.remote)?)
    }
}

fn measure(setting: &Setting, keys: usize, table: usize, order: usize) -> Result<Vec<Point>, TaskError> {
    let ((table_name, table), (name, order)) = (TABLES[table], ORDERS[order]);
    let builder = BroomFilter::builder().capacity(keys).table(table).seed(setting.seed("filter", 0));
    let filter = builder.false_positive_rate(0.5_f64.powi(EXPONENT)).build()?;
    let random = Random::new(setting.seed("churn", 0));
    let mut service = Service { filter, remote: MemoryRemote::new(), stored: vec![0; keys], random };
    for slot in 0..keys {
        let key = service.fresh();
        service.insert(slot, key)?;
    }
    let point = |service: &Service, replaced: f64| {
        let stats = service.filter.stats();
        let adaptivity = stats.adaptivity_bits as f64 / keys as f64;
        let point = Point::new(name, replaced, 0).in_panel(format!("{table_name}, {keys} keys"));
        point.with("bits", stats.bits_per_key()).with("adaptivity bits", adaptivity)
    };
    let mut points = vec![point(&service, 0.0)];
    // A saw goes through a third of the keys at once: every sample has as many of them.
    let rounds = keys / 3 * 3 * REPLACEMENTS;
    for sample in 1..=SAMPLES {
        let clock = Clock::start();
        for round in rounds * (sample - 1) / SAMPLES..rounds * sample / SAMPLES {
            service.replace(order, round)?;
            service.query()?;
        }
        let each = clock.elapsed().as_secs_f64() * 1e6 / (rounds / SAMPLES) as f64;
        let replaced = (REPLACEMENTS * sample / SAMPLES) as f64;
        points.push(point(&service, replaced).with("microseconds", each));
    }
    service.check()?;
    Ok(points)
}

impl Experiment for Churn {
    fn name(&self) -> &'static str {
        "besom-broom-churn"
    }

    fn title(&self) -> &'static str {
        "A full broom filter whose keys come and go"
    }

    fn tasks(&self, setting: &Setting) -> Vec<Task> {
        let mut tasks = Vec::new();
        for &keys in sizes(setting) {
            for (table, (table_name, _)) in TABLES.into_iter().enumerate() {
                for (order, (name, _)) in ORDERS.into_iter().enumerate() {
                    let setting = setting.clone();
                    let cost = (30 * REPLACEMENTS * keys) as f64;
                    let work = move || measure(&setting, keys, table, order);
                    tasks.push(Task::new(format!("{keys} keys, {table_name}, {name}"), cost, work));
                }
            }
        }
        tasks
    }

    fn report(&self, _: &Setting, points: &Points) -> Section {
        let mut section = Section::new().note(format!(
            "ε = 2^-{EXPONENT}, default load and budget. {REPLACEMENTS} replacements per key, each with one query for a stranger, \
             which is repaired if it is a false positive. A key that is refused or lost ends the run. Time is {}.",
            Clock::describe()
        ));
        for panel in points.panels() {
            for (value, label) in VALUES {
                let (x, y) = (Axis::linear("replacements per key"), Axis::linear(label).including(0.0));
                let id = format!("churn-{value}-{}", panel.replace([',', ' '], "-").replace("--", "-"));
                let mut plot = Plot::lines(id, format!("{label}: {panel}"), x, y);
                for name in points.series(panel) {
                    plot.line(Line::new(name, points.curve(panel, name, value)));
                }
                section = section.plot(plot);
            }
        }
        section.table(table(points)).claim(space_claim(points)).claim(time_claim(points))
    }
}

/// The values of a curve in order of time.
fn over_time(points: &Points, panel: &str, series: &str, value: &str) -> Vec<f64> {
    points.curve(panel, series, value).iter().map(|(_, summary)| summary.mean).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Service in each fifth of the time.
fn fifths(times: &[f64]) -> [f64; 5] {
    [0, 1, 2, 3, 4].map(|fifth| mean(&times[times.len() * fifth / 5..times.len() * (fifth + 1) / 5]))
}

fn table(points: &Points) -> Table {
    let columns = vec![
        Column::text("table"),
        Column::text("order"),
        Column::number("bits per key, filled"),
        Column::number("mean of the second half"),
        Column::number("most"),
        Column::number("adaptivity bits, most"),
        Column::number("µs, first fifth"),
        Column::number("second"),
        Column::number("last"),
    ];
    let mut table = Table::new("Space and time of service", columns);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    for panel in points.panels() {
        for name in points.series(panel) {
            let bits = over_time(points, panel, name, "bits");
            let adaptivity = over_time(points, panel, name, "adaptivity bits");
            let [first, second, .., last] = fifths(&over_time(points, panel, name, "microseconds"));
            let figures =
                [bits[0], mean(&bits[bits.len() / 2..]), most(&bits), most(&adaptivity), first, second, last];
            table.row([panel.to_owned(), name.to_owned()].into_iter().chain(figures.map(compact)));
        }
    }
    table
}

/// The largest of what `measure` says of every curve, with its place.
fn worst(
    points: &Points,
    value: &str,
    measure: impl Fn(&str, &[f64]) -> Option<f64>,
) -> Option<(f64, String)> {
    let mut worst: Option<(f64, String)> = None;
    for panel in points.panels() {
        for name in points.series(panel) {
            let Some(figure) = measure(panel, &over_time(points, panel, name, value)) else { continue };
            if worst.as_ref().is_none_or(|(most, _)| figure > *most) {
                worst = Some((figure, format!("{panel}, {name}")));
            }
        }
    }
    worst
}

fn space_claim(points: &Points) -> Claim {
    let claim =
        Claim::new(format!("steady service takes at most {MOST_BITS} bits per key from {MANY} keys on"));
    let many = |panel: &str| !panel.contains(", 1000 keys");
    let steady = |panel: &str, bits: &[f64]| many(panel).then(|| mean(&bits[bits.len() / 2..]));
    let most = |panel: &str, bits: &[f64]| many(panel).then(|| bits.iter().copied().fold(0.0, f64::max));
    match (worst(points, "bits", steady), worst(points, "bits", most)) {
        (Some((steady, place)), Some((most, at))) => claim.measured(
            format!("at most {} on average ({place}), {} at any time ({at})", compact(steady), compact(most)),
            steady <= MOST_BITS,
        ),
        _ => claim,
    }
}

fn time_claim(points: &Points) -> Claim {
    let claim = Claim::new(format!(
        "once the budget is used up, time does not drift: the last fifth is served at most {}% slower than the second",
        compact(100.0 * DRIFT)
    ));
    let slower = |than: usize| {
        move |_: &str, times: &[f64]| {
            let fifths = fifths(times);
            (times.len() == SAMPLES).then_some(fifths[4] / fifths[than] - 1.0)
        }
    };
    match (worst(points, "microseconds", slower(1)), worst(points, "microseconds", slower(0))) {
        (Some((drift, place)), Some((rise, at))) => claim.measured(
            format!(
                "at most {}% slower ({place}); than the first, in which the budget fills: {}% ({at})",
                compact(100.0 * drift),
                compact(100.0 * rise)
            ),
            drift <= DRIFT,
        ),
        _ => claim,
    }
}
