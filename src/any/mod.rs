//! Filters that are chosen at run time: by a name, by a line of a configuration, by what a file holds.
//!
//! - [`Config`] is a kind of filter and its parameters, and can be parsed: `extension:capacity=1000000,rate=1/1000`.
//! - [`AnyFilter`] is a filter of whatever kind. It is built from a [`Config`] or read from a file, can be written
//!   again, and works where any adaptive filter does: in a [`Guard`](crate::Guard), in [`Sharded`](crate::Sharded), in
//!   a store.
//! - [`DynFilter`] is the object-safe trait for filters of your own beside ours.
//! - [`AnyHasher`] is the bound for code that is generic over the hash function of an [`AnyFilter`].
//! - [`visit`] hands the type of a kind to generic code that has to be compiled for each filter.
//!
//! ```
//! use besom::any::{AnyFilter, Config};
//! use besom::format::{Persist, WriteOptions};
//! use besom::{Filter, Guard, MemoryDictionary};
//!
//! let config: Config = "extension:capacity=1000,rate=1/1000".parse()?;
//! let mut guard = Guard::new(AnyFilter::<besom::Xxh3>::build(&config)?, MemoryDictionary::new());
//! guard.insert("key", 1)?;
//! assert_eq!((guard.get("key")?, guard.get("other")?), (Some(1), None));
//!
//! let bytes = guard.filter().to_bytes(&WriteOptions::new())?;
//! let (read, _) = AnyFilter::<besom::Xxh3>::from_bytes(&bytes, &Default::default())?;
//! assert!(read.contains("key") && read.kind().name() == "extension");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All of it stands on one list of filters, `src/roster.rs`.

mod config;
mod dynamic;
mod filter;
mod object;
mod remote;
#[cfg(feature = "serde")]
mod serde;
#[cfg(test)]
mod tests;
mod visit;

pub use config::{Config, ConfigError};
pub use dynamic::{DynFilter, DynFilterError, dyn_adaptive, dyn_plain, dyn_removable};
pub use filter::{AnyFilter, AnyHasher};
pub use remote::{AnyRemote, AnyRemoteError};
pub use visit::{Abilities, Configured, Visit, visit};
