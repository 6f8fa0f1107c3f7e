//! Traces: the stand-ins for the network traces of the papers, and real disk traces where they are at hand.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use besom::{KeyHasher, Xxh3};

use super::contest::Contest;
use super::{Point, Setting, TaskError};
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
    pub(super) fn size(&self) -> f64 {
        match self {
            Self::Flows { shape, .. } => 18.0 * f64::from(shape.flows),
            Self::File { path, .. } => path.metadata().map_or(1e6, |file| file.len() as f64),
        }
    }

    /// Its requests as numbers; keys of other lengths are hashed to 64 bits. A file is read once and kept.
    pub(super) fn load(&self, seed: u64) -> Result<Arc<[u64]>, TaskError> {
        match self {
            Self::Flows { shape, .. } => Ok(FlowTrace::new(*shape, seed).collect()),
            Self::File { path, .. } => {
                static FILES: OnceLock<Mutex<HashMap<PathBuf, Arc<[u64]>>>> = OnceLock::new();
                let mut files = FILES
                    .get_or_init(Mutex::default)
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                if let Some(trace) = files.get(path) {
                    return Ok(Arc::clone(trace));
                }
                let trace =
                    numbers(open(path)?.as_mut()).map_err(|error| format!("{}: {error}", path.display()))?;
                files.insert(path.clone(), Arc::clone(&trace));
                Ok(trace)
            }
        }
    }
}

fn numbers(stream: &mut dyn KeyStream) -> Result<Arc<[u64]>, TaskError> {
    let hash = Xxh3::with_seed(0_u64.into());
    let (mut key, mut numbers) = (Vec::new(), Vec::new());
    while stream.next_key(&mut key)? {
        let number = key.as_slice().try_into().map_or_else(|_| hash.digest(&key).hi, u64::from_le_bytes);
        numbers.push(number);
    }
    Ok(numbers.into())
}

/// The papers' protocol: of U distinct keys the first n = U/(1 + A/S) are stored, and every request for another
/// one is a query, in order.
pub(super) fn contest(
    source: &Source,
    filters: &[&'static str],
    spec: impl Fn(usize) -> Spec,
    place: (&str, f64, u32),
    seed: u64,
) -> Result<Vec<Point>, TaskError> {
    let (panel, ratio, run) = place;
    let trace = source.load(seed)?;
    let distinct = trace.iter().copied().collect::<HashSet<u64>>().len();
    let keys = ((distinct as f64 / (1.0 + ratio)) as usize).max(1);
    let mut contest = Contest::new(filters, &spec(keys))?;
    let mut stored = HashSet::with_capacity(keys);
    for &key in trace.iter() {
        if stored.len() == keys {
            break;
        }
        if stored.insert(key) {
            contest.store(key)?;
        }
    }
    for &key in trace.iter().filter(|key| !stored.contains(*key)) {
        contest.query(key)?;
    }
    contest.finish(panel, ratio, run)
}
