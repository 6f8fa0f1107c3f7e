//! Membership filters that repair their false positives.
//!
//! A filter stands in memory in front of slow data (a disk, a database, an object store) and answers "certainly
//! absent" or "maybe present". An ordinary one repeats each of its false positives for ever; an **adaptive** one
//! repairs every false positive that it is told of, so that a repeated or hostile stream of queries cannot keep
//! hitting the data behind it.
//!
//! # Where to start
//!
//! - A filter in front of a map or a store: [`Guard`]. It asks, looks up and repairs by itself.
//! - Your own storage: pick an [`Adaptive`] filter ([`TelescopingFilter`] unless you know better), keep its
//!   [`Remote`] beside your data, and call [`adapt`](Adaptive::adapt) when a look-up came back empty.
//! - No feedback, or no repeated queries: a plain one, [`BinFilter`] or [`BlockedBloomFilter`].
//!
//! ```
//! use besom::{Guard, MemoryDictionary, TelescopingFilter};
//!
//! let filter = TelescopingFilter::builder().capacity(1000).build()?;
//! let mut guard = Guard::new(filter, MemoryDictionary::new());
//! guard.insert("alice", 1)?;
//! assert_eq!(guard.get("alice")?, Some(1));
//! assert_eq!(guard.get("mallory")?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | what a key is | [`Key`], [`KeyHasher`], [`Digest`], [`Seed`] |
//! | what a filter is | [`Filter`]; [`Insert`], [`Remove`]; [`Adaptive`], [`Growable`] |
//! | a filter that is chosen at run time | [`any`] |
//! | the state beside the slow data | [`Remote`], [`Change`], [`MemoryRemote`] |
//! | filter and data together | [`Guard`], [`Dictionary`], [`MemoryDictionary`] |
//! | on quotient tables | [`QuotientFilter`], [`TelescopingFilter`], [`BroomFilter`], small [`ExtensionFilter`]s |
//! | on cache-line bins | [`BinFilter`], and [`ExtensionFilter`] from 10,000 keys on ([`Ground`]) |
//! | on cuckoo tables | [`CuckooFilter`], [`CuckooingFilter`], [`CyclicFilter`], [`SwappingFilter`] |
//! | Bloom filters | [`BloomFilter`], [`BlockedBloomFilter`], [`AdaptiveBloomFilter`], [`Cascade`], [`WhitelistFilter`] |
//! | any of them, shared by threads | [`Sharded`] |
//! | operations in steps, for stores that are awaited | [`play`] |
//! | one small block per operation | [`TinySet`] |
//! | files, and filters that are opened in place | [`format`](mod@format) |
//! | exact lists: known keys that must be rejected; static filters | [`exact`] |
//! | attacking a filter | [`game`] |
//! | testing a store | [`testing`] |
//! | which instructions are used | [`Isa`] |
//!
//! # Which filter?
//!
//! | choose | when |
//! |---|---|
//! | [`TelescopingFilter`] | you want one: small, adaptive, of fixed memory if need be |
//! | [`ExtensionFilter`] | speed counts, or a repaired false positive must never come back |
//! | [`BroomFilter`] | the queries come from an attacker who also deletes |
//! | [`CuckooingFilter`], [`SwappingFilter`], [`CyclicFilter`] | your keys live in a store addressed by slot |
//! | [`AdaptiveBloomFilter`], [`Cascade`] | you have a Bloom filter or a quotient filter and want it to adapt |
//! | [`WhitelistFilter`] | there is no way to learn which key collided |
//! | [`BinFilter`], [`QuotientFilter`], [`BlockedBloomFilter`], [`TinySet`] | false positives do not repeat, or there is no feedback |
//!
//! # Promises
//!
//! A filter never answers "absent" for a stored key, after any sequence of operations, failures of the remote among them.
//! Two things that a caller can do are outside of this promise, because the filter has no means to notice them:
//! [removing](Remove::remove) a key that was never inserted from a filter without a remote, and
//! [telling](WhitelistFilter::adapt) a whitelist filter that a stored key is absent.
//!
//! A failed operation leaves the filter as it was; the [`Remote`] may have made the change or not, and there is a
//! [way back](Adaptive#when-things-fail) for both. The hash of a key depends on its bytes and the seed alone, on every platform
//! and in every version.

pub mod any;
mod batch;
mod bins;
mod bits;
mod bloom;
pub mod broom;
mod cascade;
mod coding;
pub mod cuckoo;
pub mod delta;
mod digest_set;
mod error;
pub mod exact;
mod extension;
mod filter;
pub mod format;
pub mod game;
mod ground;
mod guard;
mod hash;
mod hash_string;
mod key;
mod parallel;
pub mod play;
mod quotient;
mod remote;
mod roster;
mod sharded;
mod telescoping;
pub mod testing;
mod tinyset;
mod values;
mod whitelist;

pub use bins::{BinFilter, BinFilterBuilder};
pub use bits::{Isa, IsaError};
pub use bloom::{BlockedBloomFilter, BlockedBloomFilterBuilder, BloomFilter, BloomFilterBuilder};
pub use broom::{BroomFilter, BroomFilterBuilder, BroomLevels};
pub use cascade::{AdaptiveBloomFilter, Cascade, CascadeBuilder, LevelFilter, LevelStats, Schedule};
pub use cuckoo::{
    CuckooFilter, CuckooFilterBuilder, CuckooingFilter, CyclicFilter, PartialKeyCuckooFilter, SwappingFilter,
};
pub use error::{AdaptiveError, BuildError, BulkError, FullError, InvariantError, MergeError};
pub use extension::{ExtensionFilter, ExtensionFilterBuilder};
pub use filter::{
    Adaptation, Adaptive, Authority, Filter, FilterStats, Growable, HashAddressed, Insert, InsertManyError,
    RebuildError, RemovalDisabled, Remove, Settled,
};
pub use ground::Ground;
pub use guard::{Dictionary, Guard, GuardError, GuardStats, MemoryDictionary};
pub use hash::{Digest, HashKind, KeyHasher, Seed, SipHash, Xxh3};
pub use key::Key;
pub use quotient::{QuotientFilter, QuotientFilterBuilder};
pub use remote::{Change, MemoryRemote, Remote, StoreIndex, Visit};
pub use sharded::{Sharded, ShardedError, WithRemote};
pub use telescoping::{
    TelescopingFilter, TelescopingFilterBuilder, UncompressedTelescopingFilter,
    UncompressedTelescopingFilterBuilder,
};
pub use tinyset::{TinySet, TinySetBuilder};
pub use values::Overflow;
pub use whitelist::{WhitelistError, WhitelistFilter, WhitelistFilterBuilder};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
