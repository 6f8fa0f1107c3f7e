//! Attacks on filters. An adversary sees nothing but the answers of an oracle: see [`besom::game`], whose
//! adversaries play here too.
//!
//! | adversary | from | what it tries |
//! |---|---|---|
//! | [`SingleQuery`](besom::game::SingleQuery) | 004, Definition 2 | a key never asked before |
//! | [`RepeatFalsePositives`](besom::game::RepeatFalsePositives) | folklore | the false positives it has found, again and again |
//! | [`LowerBoundRounds`](besom::game::LowerBoundRounds) | 004, 6.1 | rounds that ask again what the round before got through |
//! | [`DeletionTiming`](besom::game::DeletionTiming) | 004, 4.3 | removes and inserts the key that a false positive collided with |
//! | [`QueryMates`](besom::game::QueryMates), and reversed | ours | two queries that hit one key, of which one is inserted; or the key itself |
//! | [`Gathering`](besom::game::Gathering) | ours | keys that have something in common under all hash functions |
//! | [`SideInference`](besom::game::SideInference) | ours | what got through, again before other keys |
//! | [`WhittlingRounds`] | 001, 6.1 | a set of queries, whittled down to those that keep getting through |
//! | [`PersistentQuery`] | 003, Theorems 9 and 10 | a key that collides with a stored key in each of its few states |
//! | [`UnfixableSet`] | 003, Theorem 12 | several keys, one for each state of a stored key |

mod gallery;
mod persistent;
mod play;
mod unfixable;
mod whittling;

pub use gallery::{Attack, gallery};
pub use persistent::PersistentQuery;
pub use play::play;
pub use unfixable::UnfixableSet;
pub use whittling::{LastRound, WhittlingRounds};

#[cfg(test)]
mod model;
