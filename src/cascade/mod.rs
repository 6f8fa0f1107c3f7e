//! Any filter made adaptive by levels.
//!
//! A cascade is a chain of filters B₀, B₁, … with ever lower false-positive rates, and a last level that stores
//! whole digests. All keys are in B₀. A false positive is repaired by marking *dead* the cell that it hashes to,
//! and by inserting the stored keys of that cell, if there are any, one level down:
//!
//! ```text
//!   query ─▶ B₀ rejects ─▶ absent
//!            B₀ accepts, its cell is alive ─▶ present
//!            B₀ accepts, its cell is dead ─▶ ask B₁ ─▶ … ─▶ ask the digests
//! ```
//!
//! This is section 5 of Bender, Farach-Colton, Goswami, Johnson, McCauley and Singh, *Bloom Filters, Adaptivity,
//! and the Dictionary Problem* (2018), with some changes.
//!
//! **Home cells.** The paper marks the cell of one of the query's probes, chosen at random (for filters that store
//! fingerprints: the fingerprint). Then a repair moves 1.4 keys on average, the remote needs an entry per probe,
//! and moving a key means writing to it. Here every key has a *home cell* by a hash function of its own that sets
//! no bit, sixteen cells per stored key; only homes die. A repair then moves one key in sixteen cases, B₁ and
//! all below are twenty times smaller, and because a home is a range of hashes, and the home cells of level i + 1
//! divide those of level i, all keys of a home at any level have neighbouring addresses: some 256 home cells of level
//! 0, and the 16 keys that are at home there, make one *list*. **Repairs and rebuilds only read the remote.** And since
//! homes say nothing about Bᵢ, any filter can be a level, not only those that store fingerprints losslessly.
//!
//! **Checks.** A home that dies takes every key along that is not moved down: a list that lacks one would lose it.
//! A cascade has no slot per key to hold a list against, so it remembers a small sum for every list. What the remote
//! returns must have its address, be accepted, and have the right sum.
//!
//! **Late keys.** A key that is inserted when its home is dead already goes one level down too, and so on;
//! the paper does not say so, and without it the key would be lost.
//!
//! **Removal.** Where the filter can remove (the quotient filter), a removed key leaves no trace. Where it cannot
//! (Bloom filters), a removed key is a false positive like any other and is repaired at once; its bits stay until
//! the next rebuild.
//!
//! **Rebuilds.** Dead cells and moved keys have a budget. When it is spent (or when too many removed keys are left
//! behind), the filter is rebuilt from the remote with fresh hash functions. Repairs are then forgotten, and a
//! query that was repaired is a false positive again with probability ε, like one that was never made: the
//! *sustained* false-positive rate is ε, in constant space, forever.

mod adaptive_bloom;
mod builder;
mod dead;
mod filter;
mod ledger;
mod level;
mod levels;
mod operations;
mod persist;
mod schedule;
mod settle;
mod sizes;
#[cfg(test)]
mod tests;

pub use adaptive_bloom::AdaptiveBloomFilter;
pub use builder::CascadeBuilder;
pub use filter::Cascade;
pub use level::{LevelFilter, LevelStats};
pub use schedule::Schedule;
