//! One vocabulary for all filters.
//!
//! | trait | who implements it | what it has |
//! |---|---|---|
//! | [`Filter`] | every filter | queries, one by one and many at once; the promised rate; statistics; `verify` |
//! | [`Insert`] | filters that need no remote | insertion, `clear` |
//! | [`Remove`] | those of them that can | removal |
//! | [`Merge`] | those of them that can | the union of two filters |
//! | [`Adaptive`] | filters with a [`Remote`](crate::Remote) | insertion, removal, repair, and the way back after a failure |
//! | [`Growable`] | those of them that can | growth |
//! | [`HashAddressed`] | those of them whose keys never move in the remote | nothing more: the store can keep the addresses |

mod adaptive;
mod growable;
mod inserter;
mod merge;
mod plain;
mod query;
mod rebuild;
mod stats;

pub use adaptive::{Adaptive, Authority, HashAddressed, Settled};
pub use growable::Growable;
pub use inserter::Inserter;
pub(crate) use inserter::{SMALL, extend};
pub use merge::Merge;
pub use plain::{Insert, InsertManyError, RemovalDisabled, Remove};
pub(crate) use plain::{PART, insert_in_order, insert_in_parts, insert_one_by_one};
pub use query::Filter;
pub use rebuild::RebuildError;
pub(crate) use rebuild::{Grouped, clear_range, clear_remote, out_of_memory};
pub use stats::{Adaptation, FilterStats};
pub(crate) use stats::{collision_rate, debug_by_figures, describe};
