//! The local state of a broom filter: a table with the functions that its fingerprints are cut by, and what it may
//! spend.
//!
//! Everything here knows nothing of keys or of the remote.

use crate::{AdaptiveError, BuildError, InvariantError, KeyHasher};

use super::builder::Blueprint;
use super::columns::Columns;
use super::fingerprint::{Fingerprint, Remainders, TAIL_BITS};
use super::functions::Functions;
use super::table::BroomTable;

/// E at most. At rates below that, whoever wants mates has to ask 2^40 times for the first false positive of one key.
const MOST_EXTRA: u32 = 20;

/// The local state of a broom filter.
#[derive(Debug, Clone)]
pub(super) struct Local<G: BroomTable, H> {
    pub(super) functions: Functions<G::Columns, H>,
    pub(super) table: G,
    pub(super) remainders: Remainders,
    /// Which half of the addresses is the filter's: 0, or the bit that tells it.
    pub(super) half: u64,
    /// E: how many bits more than it needs a repair takes.
    pub(super) extra: u32,
    /// How many adaptivity bits there may be, those of ghosts included, before the frontier moves.
    pub(super) budget: usize,
    /// What tests switch off, to see that something breaks.
    #[cfg(test)]
    pub(super) switches: Switches,
}

#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Switches {
    pub(super) ghosts: bool,
    pub(super) frontier: bool,
}

impl<G: BroomTable, H: KeyHasher> Local<G, H> {
    /// An empty filter for so many keys whose functions begin with that of number `phase`.
    pub(super) fn new(
        blueprint: Blueprint<G::Cut>,
        capacity: usize,
        hasher: H,
        phase: u64,
    ) -> Result<Self, BuildError> {
        let columns = G::columns(blueprint, capacity)?;
        let table = G::new(blueprint, columns, capacity)?;
        Ok(Self::from_parts(blueprint, capacity, Functions::new(hasher, columns, phase), table))
    }

    /// A filter for so many keys that was there before.
    pub(super) fn from_parts(
        blueprint: Blueprint<G::Cut>,
        capacity: usize,
        functions: Functions<G::Columns, H>,
        table: G,
    ) -> Self {
        let remainders = G::remainders(blueprint.cut);
        Self {
            functions,
            table,
            remainders,
            half: 0,
            extra: (remainders.table_bits + remainders.rest_bits).min(MOST_EXTRA),
            budget: (blueprint.budget * capacity as f64) as usize,
            #[cfg(test)]
            switches: Switches { ghosts: true, frontier: true },
        }
    }

    /// How many quotients there are.
    pub(super) fn quotients(&self) -> u64 {
        self.functions.columns().quotients()
    }

    /// How many adaptivity bits a newcomer takes whom no stored fingerprint is a prefix of: as few as keep its
    /// own from being a prefix of a stored one (Invariant 7), and what the [ghosts](super::ghosts) ask for.
    pub(super) fn free_length(&self, key: &Fingerprint) -> u32 {
        let free = self.table.closest(key).map_or(0, |common| (common + 1).min(TAIL_BITS));
        free.max(self.table.ghost_length(key))
    }

    /// Adaptivity bits of stored keys and of ghosts.
    pub(super) fn adaptivity_bits(&self) -> usize {
        let ([_, bits], [_, ghost_bits]) = (self.table.string_counts(), self.table.ghost_counts());
        bits + ghost_bits
    }

    pub(super) fn out_of_memory<E>(&self) -> AdaptiveError<E> {
        AdaptiveError::OutOfMemory { bytes: self.table.memory_bits() / 8 }
    }

    /// Walks everything.
    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()?;
        self.verify_ghosts()
    }
}

/// The same functions with the frontier at the same place, the same fingerprints, the same ghosts.
impl<G: BroomTable, H: KeyHasher> PartialEq for Local<G, H> {
    fn eq(&self, other: &Self) -> bool {
        self.remainders == other.remainders
            && self.functions.hasher() == other.functions.hasher()
            && self.functions.position() == other.functions.position()
            && self.table == other.table
    }
}
