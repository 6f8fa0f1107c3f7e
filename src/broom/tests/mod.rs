//! The broom filter as a whole.

mod attacks;
mod churn;
mod faults;
mod frontier;
mod games;
mod growth;
mod model;
mod rate;
mod settle;
mod space;
mod vocabulary;
mod work;

use std::convert::Infallible;
use std::ops::RangeInclusive;

use crate::bins::Shape;
use crate::testing::{FaultError, Faults, Faulty};
use crate::{AdaptiveError, Change, Filter, KeyHasher, MemoryRemote, Remote, Visit, Xxh3};

use super::builder::{Blueprint, DEFAULT_BUDGET};
use super::core::Core;
use super::fingerprint::{Fingerprint, Remainders};
use super::on_bins::{BinCut, BroomBins};
use super::on_quotients::BroomQuotients;
use super::table::BroomTable;
use super::transaction::atomically;

type FaultyRemote = Faulty<MemoryRemote>;
type Error = AdaptiveError<FaultError<Infallible>>;

/// A table as the tests need it.
trait Tested: BroomTable {
    const GROUND: crate::Table;

    /// Lets many keys go elsewhere that would have had room.
    fn crowd(&mut self);

    /// What games are played with, whose rate is [`RATE`](Self::RATE) at most.
    fn for_games() -> Blueprint<Self::Cut>;

    const RATE: f64;

    /// What the memory is for, in bits.
    fn parts(&self) -> [(&'static str, usize); 3];
}

impl Tested for BroomQuotients {
    const GROUND: crate::Table = crate::Table::Quotient;

    fn crowd(&mut self) {
        self.roomy = false;
    }

    fn for_games() -> Blueprint<Remainders> {
        Blueprint { budget: DEFAULT_BUDGET, ..small(6, 0.9) }
    }

    const RATE: f64 = 1.0 / 64.0;

    fn parts(&self) -> [(&'static str, usize); 3] {
        let strings = self.primary.strings.memory_bits();
        let elsewhere = self.elsewhere.memory_bits();
        [
            ("primary", self.primary.memory_bits() - strings),
            ("strings and ghosts", strings),
            ("elsewhere", elsewhere),
        ]
    }
}

impl Tested for BroomBins {
    const GROUND: crate::Table = crate::Table::Bins;

    /// Nothing to do: lines overflow at every load.
    fn crowd(&mut self) {}

    fn for_games() -> Blueprint<BinCut> {
        Blueprint { budget: DEFAULT_BUDGET, ..bins(6, 0.9) }
    }

    const RATE: f64 = 0.9 / 64.0;

    fn parts(&self) -> [(&'static str, usize); 3] {
        let (strings, ghosts) = (self.strings.memory_bits(), self.ghosts.memory_bits());
        [("bins", self.table.memory_bits()), ("strings", strings), ("ghosts", ghosts)]
    }
}

/// Bins of 50 slots and classes with tags of so many bits, so that many are equal. The frontier moves with every adaptivity bit.
/// With a load beyond 1, many keys lie beyond their lines.
fn bins(tag_bits: u32, load: f64) -> Blueprint<BinCut> {
    let shape = Shape::flagged(50 << 8).unwrap();
    Blueprint { cut: BinCut { shape, tag_bits }, load, budget: 0.0 }
}

/// The same with 32 classes.
fn coarse_bins(tag_bits: u32, load: f64) -> Blueprint<BinCut> {
    let shape = Shape::flagged(13).unwrap();
    Blueprint { cut: BinCut { shape, tag_bits }, load, budget: 0.0 }
}

/// Small remainders of so many bits. The frontier moves with every adaptivity bit.
fn small(table_bits: u32, load: f64) -> Blueprint<Remainders> {
    large(table_bits, 0, load)
}

/// Remainders cut into signature and rest. The frontier moves with every adaptivity bit.
fn large(table_bits: u32, rest_bits: u32, load: f64) -> Blueprint<Remainders> {
    Blueprint { cut: Remainders { table_bits, rest_bits }, load, budget: 0.0 }
}

/// A filter whose remainders are cut as the test wants.
fn filter<G: BroomTable>(blueprint: Blueprint<G::Cut>, capacity: usize, seed: u64) -> Core<G, Xxh3> {
    let hasher = Xxh3::with_seed(seed.into());
    Core::from_blueprint(blueprint, capacity, false, hasher, 0).unwrap()
}

impl<G: BroomTable, H: KeyHasher> Core<G, H> {
    /// What a key is to the filter at present.
    fn fingerprint_of(&self, key: &[u8]) -> Fingerprint {
        self.local.fingerprint(self.digest(key))
    }

    /// Carries the next keys, whether bits are short or not.
    fn push_frontier<R: Remote>(&mut self, remote: &mut R) {
        atomically(&mut self.local, remote, |steps| steps.advance(12).map(drop)).unwrap();
    }

    /// The stored key that a query collides with, with what both are under their functions.
    fn collision<R: Remote>(
        &self,
        query: &[u8],
        remote: &mut R,
    ) -> Option<(Fingerprint, G::Spot, Vec<u8>, Fingerprint)> {
        let fingerprint = self.fingerprint_of(query);
        let spot = self.local.table.find(&fingerprint)?;
        let home = self.local.home_of(fingerprint.quotient(), None, remote).ok()?;
        let stored = home.stored.into_iter().find(|stored| stored.spot == spot)?;
        Some((fingerprint, spot, stored.key, stored.fingerprint))
    }
}

/// A remote that remembers which addresses the groups of changes named, as whoever wants to settle them must.
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
    type Error = FaultError<Infallible>;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Self::Error> {
        self.remote.range(addresses, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        self.touched.extend(changes.iter().map(|change| match *change {
            Change::Insert { address, .. } | Change::Remove { address, .. } => address,
        }));
        self.remote.apply(changes)
    }
}
