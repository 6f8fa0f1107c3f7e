//! Every filter under one interface, so that experiments and adversaries need not know which one they face.
//!
//! A [`Subject`] is a filter with the remote it needs. A [`Trial`] adds the exact set of stored keys and plays
//! the user: it looks keys up, notices false positives and reports them to the filter. Filters are built by
//! [`find`] from the registry in [`registry()`], at equal space: see [`Spec`].

mod adaptive;
mod plain;
mod registry;
mod trial;

use besom::{Adaptation, FilterStats};
use thiserror::Error;

pub use adaptive::{Adapting, CountingRemote, RemoteKind};
pub use plain::{Plain, PlainFilter};
pub use registry::{Entry, build, find, registry};
pub use trial::{Answer, Counts, Trial};

/// How much space a filter of the registry gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Space {
    /// Bits per *slot*, metadata and adaptivity bits included: how the papers compare at equal space. With 11, a
    /// telescoping or extension filter has remainders of 8 bits, a swapping or cuckooing filter fingerprints of
    /// 11, a cyclic filter with s selector bits fingerprints of 11 − s.
    SlotBits(u32),
    /// As much as the filter needs for this false-positive rate.
    Rate(f64),
}

/// What a filter of the registry is built from. Filters that are compared get the same one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// How many keys will be stored.
    pub keys: usize,
    /// How much space they get.
    pub space: Space,
    /// The share of slots in use when all keys are stored.
    pub load: f64,
    /// The seed of the filter's hash function.
    pub seed: u64,
    /// What the remote of an adaptive filter does.
    pub remote: RemoteKind,
}

impl Spec {
    /// The papers' setting: 11 bits a slot at load 0.95.
    #[must_use]
    pub fn new(keys: usize, seed: u64) -> Self {
        Self { keys: keys.max(1), space: Space::SlotBits(11), load: 0.95, seed, remote: RemoteKind::Memory }
    }

    /// The same spec with other bits per slot.
    #[must_use]
    pub fn slot_bits(self, bits: u32) -> Self {
        Self { space: Space::SlotBits(bits), ..self }
    }

    /// The same spec with the space that a false-positive rate takes.
    #[must_use]
    pub fn rate(self, rate: f64) -> Self {
        Self { space: Space::Rate(rate), ..self }
    }

    /// The same spec with another load.
    #[must_use]
    pub fn load(self, load: f64) -> Self {
        Self { load, ..self }
    }
}

/// A filter and what belongs to it, behind an interface that is the same for all.
pub trait Subject: Send {
    /// Stores a key; `false` if the filter knew that it was stored.
    ///
    /// # Errors
    ///
    /// When there is no room.
    fn insert(&mut self, key: &[u8]) -> Result<bool, SubjectError>;

    /// Removes a stored key.
    ///
    /// # Errors
    ///
    /// When the filter cannot remove keys.
    fn remove(&mut self, key: &[u8]) -> Result<bool, SubjectError>;

    /// Whether the key may be stored.
    fn contains(&self, key: &[u8]) -> bool;

    /// Tells the filter that `key` was a false positive. A filter that does not adapt answers
    /// [`Adaptation::Unfixable`].
    ///
    /// # Errors
    ///
    /// When the filter failed.
    fn adapt(&mut self, key: &[u8]) -> Result<Adaptation, SubjectError>;

    /// The filter's own numbers.
    fn stats(&self) -> FilterStats;

    /// Accesses to the remote so far.
    fn remote(&self) -> RemoteAccesses;
}

/// How often a remote was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteAccesses {
    /// Lists read.
    pub reads: u64,
    /// Groups of changes made.
    pub writes: u64,
    /// Changes in these groups.
    pub changes: u64,
}

/// Why a subject could not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SubjectError {
    /// No filter of this name is registered.
    #[error("no filter is called {name}; `besom-lab list` shows those that are")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The filter could not be built.
    #[error("{name}: {reason}")]
    Build {
        /// The filter.
        name: &'static str,
        /// What its builder says.
        reason: String,
    },
    /// The filter failed.
    #[error("{0}")]
    Failed(String),
    /// The filter offers no removal.
    #[error("this filter cannot remove keys")]
    NoRemoval,
    /// A stored key was reported absent: the filter is broken.
    #[error("a stored key was reported absent: {key:02x?}")]
    FalseNegative {
        /// The key.
        key: Vec<u8>,
    },
}
