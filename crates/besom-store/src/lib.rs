//! Key-value stores behind adaptive filters: the filter in memory, the data in a database, and no reverse map of its own.
//!
//! Most look-ups of keys that are not there never reach the disk, and the few that do are repaired, so that they do not come
//! again: not by chance, and not because somebody repeats what got through. [`RedbStore`] is such a store in a file, for one
//! process with many threads. It survives crashes at any moment. With the feature `slatedb` the module `slate` has the same on
//! object storage, for one writing process and any number of reading ones. Both are one guard, [`Store`], on two
//! [engines](engine); others can be written.
//!
//! ```text
//! get(key) ── filter: "absent" ──────────────────────────▶ None     (memory only)
//!                └─ "maybe" ── data ── there ────────────▶ Some(value)
//!                                └─ absent ── the home's range ── repair of the filter ──▶ None
//! insert(key, value) ── filter ── one commit: data, number of the commit
//! ```
//!
//! A repair needs to know which stored keys share a *home* in the filter with the key that got through. Those are the keys whose
//! hashes lie in one range, so a store whose rows are in the order of hashes reads them where it just looked: see [`Layout`].
//! `docs/operating.md` is for those who run a store, `docs/guarding-your-storage.md` for those who have storage of their own.

// What the tests here share with those of other crates names this one from outside.
#[cfg(test)]
extern crate self as besom_store;

mod batch;
mod disk;
pub mod engine;
mod error;
mod events;
mod guard;
mod memory;
mod metrics;
mod options;
mod record;
mod rows;
#[cfg(feature = "slatedb")]
pub mod slate;
mod snapshot;
#[cfg(feature = "serde")]
mod typed;
mod verify;
mod wait;

pub use ::redb;

pub use crate::disk::{Entries, Redb, RedbStore, RedbStoreBuilder, RedbView, Transaction};
pub use batch::Batch;
pub use engine::Durability;
pub use error::StoreError;
pub use guard::{Store, StoreFilter};
pub use memory::{MemoryEngine, MemoryView};
pub use metrics::Metrics;
pub use options::{Opening, Options, Progress};
pub use record::Position;
pub use rows::Layout;
pub use snapshot::SnapshotRefused;
#[cfg(feature = "serde")]
pub use typed::{Typed, TypedError};
pub use verify::VerifyError;
pub use wait::wait;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
