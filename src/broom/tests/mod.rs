//! The broom filter as a whole.

mod churn;
mod faults;
mod frontier;
mod games;
mod growth;
mod model;
mod rate;
mod resync;
mod space;
mod vocabulary;
mod work;

use std::ops::ControlFlow;

use crate::testing::{FaultError, Faults, Faulty};
use crate::{AdaptiveError, Change, Filter, KeyHasher, MemoryRemote, MissingEntry, Remote, Xxh3};

use super::builder::Blueprint;
use super::filter::BroomFilter;
use super::fingerprint::{Fingerprint, Remainders, Spot};
use super::transaction::atomically;

type FaultyRemote = Faulty<MemoryRemote>;
type Error = AdaptiveError<FaultError<MissingEntry>>;

/// Small remainders of so many bits. The frontier moves with every adaptivity bit.
fn small(table_bits: u32, load: f64) -> Blueprint {
    large(table_bits, 0, load)
}

/// Remainders cut into signature and rest. The frontier moves with every adaptivity bit.
fn large(table_bits: u32, rest_bits: u32, load: f64) -> Blueprint {
    Blueprint { remainders: Remainders { table_bits, rest_bits }, load, budget: 0.0 }
}

/// A filter whose remainders are cut as the test wants.
fn filter(blueprint: Blueprint, capacity: usize, seed: u64) -> BroomFilter<Xxh3> {
    let hasher = Xxh3::with_seed(seed.into());
    BroomFilter::from_blueprint(blueprint, capacity, false, hasher, 0).unwrap()
}

impl<H: KeyHasher> BroomFilter<H> {
    /// What a key is to the filter at present.
    fn fingerprint_of(&self, key: &[u8]) -> Fingerprint {
        self.local.fingerprint(self.digest(key))
    }

    /// Carries the next keys, whether bits are short or not.
    fn push_frontier<R: Remote>(&mut self, remote: &mut R) {
        atomically(&mut self.local, remote, |steps| steps.advance().map(drop)).unwrap();
    }

    /// The stored key that a query collides with, with what both are under their functions.
    fn collision<R: Remote>(
        &self,
        query: &[u8],
        remote: &mut R,
    ) -> Option<(Fingerprint, Spot, Vec<u8>, Fingerprint)> {
        let fingerprint = self.fingerprint_of(query);
        let spot = self.local.find(&fingerprint)?;
        let list = self.local.list(fingerprint.quotient(), remote).ok()?;
        let stored = list.into_iter().find(|stored| stored.spot == spot)?;
        Some((fingerprint, spot, stored.key, stored.fingerprint))
    }
}

/// A remote that remembers which addresses the groups of changes named, as whoever wants to resync must.
struct Recording {
    remote: FaultyRemote,
    touched: Vec<u64>,
}

impl Recording {
    fn new(faults: Faults) -> Self {
        Self { remote: Faulty::new(MemoryRemote::new(), faults), touched: Vec::new() }
    }
}

impl Remote for Recording {
    type Error = FaultError<MissingEntry>;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        self.remote.read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        self.touched.extend(changes.iter().filter_map(|change| match *change {
            Change::Push { address, .. }
            | Change::Remove { address, .. }
            | Change::Replace { address, .. } => Some(address),
            Change::Clear => None,
        }));
        self.remote.apply(changes)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Self::Error> {
        self.remote.scan(visit)
    }
}
