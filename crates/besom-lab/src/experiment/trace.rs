//! Traces: the stand-ins for the network traces of the papers, and real disk traces where they are at hand.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use besom::{KeyHasher, Xxh3};

use super::contest::Contest;
use super::{Point, Setting, Task, TaskError};
use crate::subject::Spec;
use crate::workload::{FlowShape, FlowTrace, KeyStream, open};

/// Where a trace comes from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    /// A synthetic flow trace.
    Flows { name: &'static str, shape: FlowShape },
    /// A disk trace.
    File { name: &'static str, path: PathBuf },
}

impl Source {
    /// The traces of a run: three synthetic ones in place of Chicago A, Chicago B and San Jose, then the real ones
    /// that are there.
    pub(super) fn all(setting: &Setting, flows: u32) -> Vec<Self> {
        let synthetic = [("flows A", 1.0), ("flows B", 1.05), ("flows C", 1.08)];
        let synthetic =
            synthetic.map(|(name, alpha)| Self::Flows { name, shape: FlowShape { flows, alpha } });
        let real = [("OLTP", "OLTP.lis.zst"), ("P3", "P3.lis.zst")];
        let real =
            real.into_iter().filter_map(|(name, file)| Some(Self::File { name, path: setting.trace(file)? }));
        synthetic.into_iter().chain(real).collect()
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Flows { name, .. } | Self::File { name, .. } => name,
        }
    }

    /// About how many requests it has, without reading it.
    fn size(&self) -> f64 {
        match self {
            Self::Flows { shape, .. } => 18.0 * f64::from(shape.flows),
            Self::File { path, .. } => path.metadata().map_or(1e6, |file| file.len() as f64),
        }
    }

    /// How often a figure is drawn from it: only the seeds of filters differ where the trace is a file.
    fn runs(&self, setting: &Setting) -> u32 {
        let quick = if matches!(self, Self::Flows { .. }) { 4 } else { 3 };
        setting.repetitions(quick, 10)
    }

    /// Its requests. The last few traces are kept, since every ratio and fingerprint asks for the same ones.
    fn load(&self, seed: u64) -> Result<Arc<Trace>, TaskError> {
        static KEPT: Mutex<VecDeque<(Source, u64, Arc<Trace>)>> = Mutex::new(VecDeque::new());
        let seed = if matches!(self, Self::Flows { .. }) { seed } else { 0 };
        // Whoever waits here most likely waits for the trace that is being made.
        let mut kept = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((.., trace)) = kept.iter().find(|(source, of, _)| source == self && *of == seed) {
            return Ok(Arc::clone(trace));
        }
        let trace = Arc::new(match self {
            Self::Flows { shape, .. } => Trace::of(FlowTrace::new(*shape, seed)),
            Self::File { path, .. } => {
                let numbers = numbers(open(path)?.as_mut());
                Trace::of(numbers.map_err(|error| format!("{}: {error}", path.display()))?)
            }
        });
        kept.push_back((self.clone(), seed, Arc::clone(&trace)));
        if kept.len() > KEPT_TRACES {
            kept.pop_front();
        }
        Ok(trace)
    }
}

/// How many traces are kept: one for each of a few threads that are at the border between two of them.
const KEPT_TRACES: usize = 3;

/// Requests, each by the number of its key.
struct Trace {
    /// In the order in which they are first asked for.
    keys: Vec<u64>,
    requests: Vec<u32>,
}

impl Trace {
    fn of(requests: impl IntoIterator<Item = u64>) -> Self {
        let (mut numbers, mut keys) = (HashMap::<u64, u32>::new(), Vec::new());
        let number = |key: u64| {
            *numbers.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            })
        };
        let requests = requests.into_iter().map(number).collect();
        Self { keys, requests }
    }
}

/// Keys of other lengths than 8 bytes are hashed to 64 bits.
fn numbers(stream: &mut dyn KeyStream) -> Result<Vec<u64>, TaskError> {
    let hash = Xxh3::with_seed(0_u64.into());
    let (mut key, mut numbers) = (Vec::new(), Vec::new());
    while stream.next_key(&mut key)? {
        let number = key.as_slice().try_into().map_or_else(|_| hash.digest(&key).hi, u64::from_le_bytes);
        numbers.push(number);
    }
    Ok(numbers)
}

/// One panel of a figure: filters of one spec on one trace, over A/S.
pub(super) struct Panel {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) filters: &'static [&'static str],
    pub(super) slot_bits: u32,
}

/// The tasks of panels: those of one trace after another, so that few traces are kept.
pub(super) fn tasks(setting: &Setting, panels: &[Panel], ratios: &[f64]) -> Vec<Task> {
    let mut places: Vec<(&Panel, u32, f64)> = Vec::new();
    for panel in panels {
        let runs = 0..panel.source.runs(setting);
        places.extend(runs.flat_map(|run| ratios.iter().map(move |&ratio| (panel, run, ratio))));
    }
    places.sort_by_key(|(panel, run, _)| (panel.source.name(), *run));
    let task = |(panel, run, ratio): (&Panel, u32, f64)| {
        let Panel { name, source, filters, slot_bits } = panel;
        let (name, source, filters) = (name.clone(), source.clone(), *filters);
        let (filter, trace) = (setting.seed("filter", run), setting.seed("trace", run));
        let slot_bits = *slot_bits;
        let cost = (filters.len() + 2) as f64 * source.size();
        Task::new(format!("{name}, A/S {ratio}, run {run}"), cost, move || {
            let spec = |keys| Spec::new(keys, filter).slot_bits(slot_bits);
            contest(&*source.load(trace)?, filters, spec, (&name, ratio, run))
        })
    };
    places.into_iter().map(task).collect()
}

/// The papers' protocol: of U distinct keys the first n = U/(1 + A/S) are stored, and every request for another
/// one is a query, in order.
fn contest(
    trace: &Trace,
    filters: &[&'static str],
    spec: impl Fn(usize) -> Spec,
    (panel, ratio, run): (&str, f64, u32),
) -> Result<Vec<Point>, TaskError> {
    let stored = ((trace.keys.len() as f64 / (1.0 + ratio)) as usize).max(1);
    let mut contest = Contest::new(filters, &spec(stored))?;
    for &key in &trace.keys[..stored] {
        contest.store(key)?;
    }
    for &number in trace.requests.iter().filter(|number| **number as usize >= stored) {
        contest.query(trace.keys[number as usize])?;
    }
    contest.finish(panel, ratio, run)
}
