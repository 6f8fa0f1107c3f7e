//! The broom filter: an adaptive filter whose false-positive rate holds against every adversary.
//!
//! After Bender, Farach-Colton, Goswami, Johnson and others, *Bloom Filters, Adaptivity, and the Dictionary Problem*
//! (2018), sections 4 and 5 and appendix A. A key's **fingerprint** is a prefix of its hash:
//!
//! ```text
//! | quotient | remainder: r bits | adaptivity bits: as few as possible |
//! ```
//!
//! No fingerprint is a prefix of another. So a query matches at most one stored key, and a false positive is
//! repaired by giving that key more adaptivity bits, which the [`Remote`](crate::Remote) tells.
//!
//! | part of the paper | file | what it does |
//! |---|---|---|
//! | 4.1 fingerprints | `fingerprint` | the invariant: on insertion the fingerprint that collides is extended, the newcomer takes the shortest free prefix |
//! | 4.2 reclaiming bits | `functions`, `frontier` | two hash functions; while bits are short, each adaptation carries the next keys from the old to the new one |
//! | 4.3 deletions | `ghosts` | a removed key leaves its quotient and adaptivity bits behind until its hash function dies; newcomers are told from it |
//! | 5.1 | `adaptivity`, `entries` | the strings of adaptivity bits and the ghosts, in a few bytes per block |
//! | 5.2, 5.3 small remainders | `level`, `secondary`, `hints` | nothing leaves its section of the primary table; what does not fit goes to the secondary one |
//! | 5.4 large remainders | `level`, `backyard` | signatures searched first, the rest beside them, partial collisions in a back yard of whole hashes |
//! | Definition 1 | `transaction` | an operation changes filter and remote, or neither |
//!
//! Not of the paper: `addresses`, `lists` (what the remote says is paired with what is stored), `settle` (the way back
//! after a failure), `growth`; and the second table. All of the above but the last two lines of section 5 is written
//! over a `table`: `on_quotients` is the paper's, whose levels these lines are, and `on_bins` has cache-line bins, with
//! `strings` beside them. `columns` says how each cuts a hash.
//!
//! # Choices
//!
//! **Nothing outlives a function** that decides where a key lies or whom it meets: quotient, remainder, adaptivity bits
//! and the order of the frontier all come from the product of the digest under the function. An earlier edition let the
//! frontier walk by a class, six bits that all functions shared; an adversary could collect the keys of one class
//! through the phases.
//!
//! **The order of the frontier** is that of the strata, classes and columns under the function that is being left. The
//! remote can walk it because quotients are its addresses. A stratum is two bits that nobody stores, so the frontier
//! comes to each address four times, and takes every fourth old key with it. That keeps all parts of the table equally
//! full: a random query finds 1.016 times the keys that it should at most, one that was a false positive before 1.031
//! times. The builder plans with 1 + 1/32. It costs four times the keys looked at for each that is carried.
//!
//! **Mates.** A repair takes E bits more than it needs, as many as the remainder has. So a second query that hits the
//! same key is as rare as a false positive of a false positive, and there are hardly two queries of which an adversary
//! knows that they share a baseline. Without that, he removes the key, inserts one of the two and asks about the other.
//! `docs/threat-model.md` has the argument.
//!
//! The list of an address has no order that matters: since no fingerprint is a prefix of another, the key of a slot is
//! the only one of the list whose hash begins with the slot's fingerprint. So a key moves in the table, between the
//! levels and between the functions without any rank to keep.
//!
//! **A hash function** is a random odd factor for the upper half of the digest, and a random summand. A query computes
//! both functions and chooses without a branch; a second hash of the digest would cost more than the whole query.
//!
//! **The budget**: a quarter of an adaptivity bit per key, those of ghosts included, unless the builder says otherwise.
//! Below it nothing is carried. Beyond, each operation that adds bits carries a key for each of them and two more (the
//! paper asks for more than 2), or as many as there are among six times as many; an eighth beyond it, twice as many.
//!
//! **Probe bound**: a section of 16 blocks, 736 slots with remainders of 8 bits. No insertion or removal touches
//! more. Measured over 10^7 insertions and removals at load 0.90, with 59 000 keys: 710 slots at most in the primary
//! table, 47 in the secondary, and 1.4% of the keys elsewhere at most. Sections of 4, 8, 16 and 32 blocks answer
//! negative queries equally fast within 2% (smaller ones keep runs at home, larger ones send fewer queries elsewhere).
//!
//! **Secondary level**: its hash is a permutation of the baseline fingerprint, so both levels hold one set of
//! fingerprints: it adds no false positives, and ghosts and repairs hold across levels. It has room for two and a half
//! times the keys that a queue of the section's load would leave over, which is what stays there under churn, and takes
//! more memory if need be.
//!
//! **Hints**: a flag per quotient, in the cache line that a query reads anyway, says whether a key is elsewhere, and
//! marks in which sixteen slots of the block there are adaptivity bits, and whether it has ghosts. So nearly every
//! answer comes from that line, and nearly every insertion is made in it.
//!
//! **Large remainders** begin at 12 bits (ε below 2^-11), with signatures of 8 bits: there the table of whole
//! remainders fits 36 slots into a line instead of 50, and the vector comparison of 8-bit lanes does not apply to it.
//! That is counted, not timed: the border may well lie a bit or two lower.
//!
//! **Bins** are searched as the plain filter's are. Their classes are those of the frontier.
//!
//! **Growing and merging** read all keys and build the filter anew, list by list; see [`BroomFilter::merge`].

mod adaptivity;
mod addresses;
mod backyard;
mod bin_checks;
mod builder;
mod columns;
mod core;
mod elsewhere;
mod entries;
mod filter;
mod fingerprint;
mod frontier;
mod functions;
mod ghosts;
mod growth;
mod hints;
mod level;
mod lists;
mod local;
mod on_bins;
mod on_quotients;
mod persist;
mod persist_bins;
mod persist_quotients;
mod roll;
mod secondary;
mod settle;
mod strings;
mod table;
#[cfg(test)]
mod tests;
mod transaction;

pub use builder::BroomFilterBuilder;
pub use filter::{BroomFilter, BroomLevels};
