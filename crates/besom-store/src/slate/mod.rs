//! A guarded database on object storage: SlateDB behind an adaptive filter, in any bucket that the crate `object_store`
//! speaks to.
//!
//! | | |
//! |---|---|
//! | the one writer of a database | [`SlateStore`] |
//! | any number of readers beside it, in other processes or on other machines | [`SlateReader`] |
//! | more than one writer: which database a key belongs to | [`shard_of`] |
//! | what can be chosen | [`SlateOptions`] |
//!
//! The operations are those of every [`Store`](crate::Store), and are awaited. Nothing is awaited where the filter settles the
//! matter: only a possible positive waits for the bucket. `docs/object-storage.md` describes what is in the bucket, what it
//! costs, and how to go from one writer to many.

pub use slatedb;

mod engine;
mod options;
mod prefixes;
mod reader;
mod shard;
mod snapshot;
mod store;

pub use engine::{Slate, SlateFailure, SlateView};
pub use options::SlateOptions;
pub use reader::SlateReader;
pub use shard::shard_of;
pub use snapshot::Published;
pub use store::{Rows, SlateStore};

/// An operation of a [`SlateStore`] or a [`SlateReader`] failed.
pub type SlateError = crate::StoreError<SlateFailure>;
