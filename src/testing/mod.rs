//! Tools for testing stores and filters: seeded randomness, remotes that count, remotes and dictionaries that fail
//! before, after or in the middle of acting, that panic, that lie, or that serve old views, and files that are damaged.
//!
//! This crate's own tests are built on them; anyone who implements [`Remote`](crate::Remote) or
//! [`Dictionary`](crate::Dictionary) for a store can use them too.

mod counting;
mod damage;
mod faults;
mod fuzz;
mod random;
mod stale;

pub use counting::{Accesses, CountingRemote, NullRemote};
pub use damage::Damage;
pub use faults::{Fault, FaultError, Faults, Faulty};
pub use fuzz::fuzz;
pub use random::Random;
pub use stale::StaleRemote;
