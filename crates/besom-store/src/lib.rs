//! Key-value stores behind adaptive filters: the filter in memory, data and reverse map in one database.
//!
//! Most look-ups of keys that are not there never reach the disk, and the few that do are repaired, so that they do not come
//! again: not by chance, and not because somebody repeats what got through. [`RedbStore`] is such a store in a file, for one
//! process with many threads. It survives crashes at any moment. With the feature `slatedb` the module `slate` has the same on
//! object storage, for one writing process and any number of reading ones.
//!
//! ```text
//! get(key) ── filter: "absent" ──────────────────────────▶ None     (memory only)
//!                └─ "maybe" ── data ── there ────────────▶ Some(value)
//!                                └─ absent ── lists ── repair of the filter ──▶ None
//! insert(key, value) ── one transaction: data, lists, number of the commit ── filter
//! ```
//!
//! The filter's *lists* say which stored keys stand behind which part of it; they are its [`Remote`](besom::Remote). Here they are
//! in the same database as the data, and change in the same transaction. `docs/operating.md` is for those who run a store,
//! `docs/guarding-your-storage.md` for those who have storage of their own.

mod batch;
mod builder;
mod engine;
mod error;
mod events;
mod guard;
mod metrics;
mod redb;
#[cfg(feature = "slatedb")]
pub mod slate;
mod snapshot;
mod store;
mod verify;

pub use ::redb::Durability;

pub use crate::redb::{Entries, Layout};
pub use batch::Batch;
pub use builder::RedbStoreBuilder;
pub use error::StoreError;
pub use metrics::Metrics;
pub use snapshot::SnapshotRefused;
pub use store::{Opening, Progress, RedbStore, StoreFilter};
pub use verify::VerifyError;
