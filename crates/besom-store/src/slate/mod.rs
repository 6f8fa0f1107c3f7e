//! A guarded database on object storage: SlateDB behind an adaptive filter, in any bucket that the crate `object_store`
//! speaks to.
//!
//! | | |
//! |---|---|
//! | the one writer of a database | [`SlateStore`] |
//! | any number of readers beside it, in other processes or on other machines | [`SlateReader`] |
//! | more than one writer: which database a key belongs to | [`shard_of`] |
//! | several operations in one | [`SlateBatch`] |
//! | what can be chosen | [`SlateOptions`], [`Durability`] |
//! | what is counted | [`SlateMetrics`] |
//!
//! The operations are those of every guard, but they are awaited. Nothing is awaited where the filter settles the matter:
//! only a possible positive waits for the bucket. `docs/object-storage.md` describes what is in the bucket, what it costs,
//! and how to go from one writer to many.

pub use slatedb;

mod batch;
mod bridge;
mod doubts;
mod error;
mod lists;
mod metrics;
mod options;
mod reader;
mod repair;
mod replay;
mod rows;
mod settle;
mod shard;
mod shared;
mod snapshot;
mod store;
mod write;

pub use batch::SlateBatch;
pub use error::SlateError;
pub use metrics::SlateMetrics;
pub use options::{Durability, SlateOptions};
pub use reader::SlateReader;
pub use rows::Position;
pub use shard::shard_of;
pub use shared::SlateFilter;
pub use snapshot::Published;
pub use store::{Origin, Rows, SlateStore};
