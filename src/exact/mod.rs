//! Exact lists: right answers for every key of two lists.
//!
//! Revoked certificates among all certificates, dangerous addresses among those that are visited, forbidden names among
//! those that are known: there is a list of keys that must be accepted and a list of keys that must be rejected, both
//! known when the list is built. There are two ways to build one:
//!
//! | | [`ExactList`] | [`exclude`] |
//! |---|---|---|
//! | size | about r + 1 + k/2^r bits an accepted key, for k rejected ones each | an adaptive filter's, and its repairs |
//! | changes | built again | insertions, removals, repairs |
//! | other keys | up to half of them accepted, or the share that is asked for | the filter's rate, repaired when told |
//!
//! Where groups of keys differ in their share of accepted ones, [`ExactGroups`] gives each a list of its own.
//!
//! Both can be [saved](crate::format::Persist), handed out and opened in a memory map; those who ask them need neither
//! list nor remote. Without keys to reject, [`ExactList`] is a filter for data that does not change: 8.025 bits a key
//! at a rate of 1/256 with 10^6 keys, where the limit is 8.

mod builder;
mod exclude;
mod groups;
mod list;
mod lists;
mod persist;
mod plan;
mod ribbon;
mod sorted;
#[cfg(test)]
mod tests;

pub use builder::{ExactListBuilder, ExactListError};
pub use exclude::{ExcludeError, Exclusion, exclude};
pub use groups::ExactGroups;
pub use list::ExactList;
pub use lists::{List, Lists};
pub use plan::limit_bits;
