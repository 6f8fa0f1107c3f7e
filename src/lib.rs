//! Membership filters that repair their false positives.
//!
//! A filter sits in memory in front of slow data (a disk, a database, an object store) and answers "certainly absent"
//! or "maybe present". An ordinary filter repeats each of its false positives forever. An **adaptive** filter repairs
//! every false positive that it is told of, so a repeated or hostile stream of queries cannot keep hitting the data
//! behind it.
//!
//! # Where to start
//!
//! - For a filter in front of a map or a store, use [`Guard`]. It asks, looks up and repairs by itself.
//! - For your own storage, use an [`ExtensionFilter`], keep its [`Remote`] beside your data, and call
//!   [`adapt`](Adaptive::adapt) when a look-up finds nothing.
//! - Without feedback, or if queries do not repeat, use a plain filter: [`BinFilter`].
//!
//! ```
//! use besom::{ExtensionFilter, Guard, MemoryDictionary};
//!
//! let filter = ExtensionFilter::builder().capacity(1000).build()?;
//! let mut guard = Guard::new(filter, MemoryDictionary::new());
//! guard.insert("alice", 1)?;
//! assert_eq!(guard.get("alice")?, Some(1));
//! assert_eq!(guard.get("mallory")?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which filter?
//!
//! | choose | when |
//! |---|---|
//! | [`ExtensionFilter`] | you want one: fast, adaptive, removes keys |
//! | [`TelescopingFilter`] | memory must be fixed, or repairs must take as little of it as possible |
//! | [`BroomFilter`] | attackers can also make you delete and insert keys |
//! | [`cuckoo`]: `CuckooingFilter`, `SwappingFilter`, `CyclicFilter` | your keys live in a store addressed by slot |
//! | [`cascade`]: `AdaptiveBloomFilter`, `Cascade` | you have a Bloom or a quotient filter and want it to adapt |
//! | [`whitelist`]: `WhitelistFilter` | you cannot learn which stored key collided |
//! | [`BinFilter`], [`bloom`], [`quotient`], [`tinyset`] | false positives do not repeat, or nobody reports them |
//! | [`exact`]: `ExactList` | both the keys and the non-keys are known, and nothing changes |
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | what a key is | [`Key`], [`KeyHasher`], [`Digest`], [`Seed`] |
//! | what a filter is | [`Filter`]; [`Insert`], [`Remove`], [`Merge`]; [`Adaptive`], [`Growable`] |
//! | the state beside the slow data | [`Remote`], [`Change`], [`MemoryRemote`], [`StoreIndex`] |
//! | filter and data together | [`Guard`], [`Dictionary`], [`MemoryDictionary`] |
//! | a filter that is shared by threads | [`Sharded`] |
//! | a filter that is chosen at run time | [`any`] |
//! | files, and filters that are opened in place | [`format`](mod@format), [`delta`] |
//! | operations in steps, for stores that are awaited | [`play`] |
//! | which instructions are used | [`isa`] |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `mmap` | filters that open a file in place, without reading it |
//! | `rayon` | filters that are built from many keys on all cores |
//! | `serde` | filters as values of serde: the bytes of their files |
//! | `game` | the adaptivity game and its adversaries |
//! | `testing` | remotes and dictionaries that count, fail, panic and lie; seeded randomness |
//!
//! # Promises
//!
//! A filter never answers "absent" for a stored key, after any sequence of operations and failures of the remote. Two
//! things that a caller can do break this promise, because the filter cannot notice them: [removing](Remove::remove) a
//! key that was never inserted from a filter without a remote, and telling a
//! [whitelist filter](whitelist::WhitelistFilter::adapt) that a stored key is absent.
//!
//! A failed operation leaves the filter as it was. The [`Remote`] may have made the change or not, and there is a
//! [way back](Adaptive#when-things-fail) for both. The hash of a key depends on its bytes and the seed alone, on every
//! platform and in every version.

pub mod any;
mod batch;
mod bins;
mod bits;
pub mod bloom;
pub mod broom;
pub mod builder;
pub mod cascade;
mod coding;
pub mod cuckoo;
pub mod delta;
mod digest_set;
mod error;
pub mod exact;
mod extension;
mod filter;
pub mod format;
#[cfg(any(test, feature = "game"))]
pub mod game;
mod guard;
mod hash;
mod hash_string;
mod homes;
mod key;
mod parallel;
pub mod play;
pub mod quotient;
mod remote;
mod roster;
mod scatter;
pub mod sharded;
pub mod telescoping;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tinyset;
mod values;
pub mod whitelist;

// What most programs need.
pub use bins::{BinFilter, BinFilterBuilder};
pub use broom::{BroomFilter, BroomFilterBuilder};
pub use error::{AdaptiveError, BuildError, BulkError, FullError, InvariantError, MergeError, RemoteResult};
pub use extension::{ExtensionFilter, ExtensionFilterBuilder};
pub use filter::{
    Adaptation, Adaptive, Authority, Filter, FilterStats, Growable, HashAddressed, Insert, InsertManyError,
    Inserter, Merge, RebuildError, RemovalDisabled, Remove, Settled,
};
pub use guard::{Dictionary, Guard, GuardError, GuardStats, MemoryDictionary};
pub use hash::{Digest, HashKind, IntegerHash, KeyHasher, Seed, SipHash, Xxh3};
pub use homes::Table;
pub use key::Key;
pub use remote::{Change, MemoryRemote, Remote, StoreIndex, Visit};
pub use sharded::Sharded;
pub use telescoping::{TelescopingFilter, TelescopingFilterBuilder};
pub use values::Overflow;

/// Which instructions the filters use, and how to choose others.
pub mod isa {
    pub use crate::bits::{Isa, IsaError};
}

// The filters of the other modules, for the modules of the crate.
pub(crate) use bloom::{BlockedBloomFilter, BloomFilter};
pub(crate) use cascade::{AdaptiveBloomFilter, Cascade};
pub(crate) use cuckoo::{CuckooFilter, CuckooingFilter, CyclicFilter, RemoteCuckooFilter, SwappingFilter};
pub(crate) use quotient::QuotientFilter;
pub(crate) use telescoping::UncompressedTelescopingFilter;
pub(crate) use tinyset::TinySet;
pub(crate) use whitelist::WhitelistFilter;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
