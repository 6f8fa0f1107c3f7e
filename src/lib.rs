//! Adaptive membership filters.
//!
//! A filter stands in memory in front of slow data and answers "certainly absent" or "maybe present". An
//! ordinary one repeats each of its false positives for ever; an *adaptive* one repairs every false positive
//! that it is told of.

mod batch;
mod bits;
mod bloom;
pub mod broom;
mod cascade;
mod coding;
pub mod cuckoo;
mod digest_set;
mod error;
mod extension;
mod filter;
pub mod game;
mod guard;
mod hash;
mod hash_string;
mod key;
mod quotient;
mod remote;
mod telescoping;
#[cfg(test)]
mod testing;
mod tinyset;
mod values;
mod whitelist;

pub use bloom::{AdaptiveBloomFilter, BlockedBloomFilter, BloomBuilder, BloomFilter};
pub use broom::{BroomFilter, BroomFilterBuilder, BroomLevels};
pub use cascade::{Cascade, CascadeBuilder, LevelFilter, LevelStats, Schedule};
pub use cuckoo::{
    CuckooBuilder, CuckooFilter, CuckooingFilter, CyclicFilter, PartialKeyCuckooFilter, SwappingFilter,
};
pub use error::{AdaptiveError, BuildError, FullError, InvariantError, MergeError};
pub use extension::{ExtensionFilter, ExtensionFilterBuilder};
pub use filter::{Adaptation, Adaptive, Filter, FilterStats};
pub use guard::{Dictionary, Guard, GuardError, GuardStats, MemoryDictionary};
pub use hash::{Digest, KeyHasher, Seed, SipHash, Xxh3};
pub use key::Key;
pub use quotient::{QuotientFilter, QuotientFilterBuilder};
pub use remote::{Change, MemoryRemote, MissingEntry, Remote};
pub use telescoping::{
    TelescopingFilter, TelescopingFilterBuilder, UncompressedTelescopingFilter,
    UncompressedTelescopingFilterBuilder,
};
pub use tinyset::{RemovalDisabled, TinySet, TinySetBuilder};
pub use values::Overflow;
pub use whitelist::{WhitelistError, WhitelistFilter, WhitelistFilterBuilder};
