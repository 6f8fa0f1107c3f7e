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
//! | 4.3 deletions | `ghosts` | a removed key leaves its quotient and adaptivity bits behind until its hash function dies |
//! | 5.1 | `adaptivity`, `entries` | the strings of adaptivity bits and the ghosts, in a few bytes per block |
//! | 5.2, 5.3 small remainders | `level`, `secondary`, `hints` | nothing leaves its section of the primary table; what does not fit goes to the secondary one |
//! | 5.4 large remainders | `level`, `backyard` | signatures searched first, the rest beside them, partial collisions in a back yard of whole hashes |
//! | Definition 1 | `transaction` | an operation changes filter and remote, or neither |
//!
//! Not of the paper: `lists` (what the remote says is checked), `resync` (the way back after a failure), `growth`; and the second
//! ground. All of the above but the last two lines of section 5 is written over a `ground`: `on_quotients` is the paper's, whose
//! levels these lines are, and `on_bins` has cache-line bins, with `strings` beside them. `columns` says how each cuts a hash.
//!
//! # Choices
//!
//! **The order of the frontier** is that of the classes, which are six bits of the digest (fewer in tiny tables), the same
//! under every function, and within a class that of the quotients under the function that is being left. It is a function of the
//! key alone, and the remote can walk it because quotients are its addresses. Since a key that is carried stays in its class, all
//! parts of the table stay equally full: with the frontier at 0, ¼, ½ and ¾ of a phase the rate of false positives is 1.00, 1.01,
//! 1.01 and 1.01 times load · 2^−r (± 0.03). What it costs: a class is six bits that an adversary who learns them can use in
//! all phases. Whoever gathers keys of one class, which only false positives give away, and inserts them, makes that class
//! fuller than the others, and false positives more frequent there in proportion.
//!
//! The list of an address has no order that matters: since no fingerprint is a prefix of another, the key of a slot is the only
//! one of the list whose hash begins with the slot's fingerprint. So a key moves in the table, between the levels and
//! between the functions without any rank to keep.
//!
//! **A hash function** is a random odd factor for the upper half of the digest. The class says which of the two a key uses, so
//! a query computes one; a second hash of the digest would cost more than the whole query.
//!
//! **The budget**: half an adaptivity bit per key, those of ghosts included, unless the builder says otherwise. Below it nothing
//! is carried. Beyond, c = 4 keys are carried by each operation that adds bits (the paper asks for more than 2), or up to 12
//! looked at. Over 20·n false positives, fresh ones and repeated ones, with and without replacements, remainders of 4 bits, there were
//! at most 0.57, 1.02 and 2.01 bits per key with budgets of 0.5, 1 and 2, and 0.49 with none; without the frontier there
//! are more than 3, and they grow on.
//!
//! **Probe bound**: a section of 16 blocks, 736 slots with remainders of 8 bits. No insertion or removal touches
//! more. Measured over 10^7 insertions and removals at load 0.90, with 59 000 keys: 710 slots at most in the primary table, 47 in
//! the secondary, and 1.4% of the keys elsewhere at most. Sections of 4, 8, 16 and 32 blocks answer negative queries
//! equally fast within 2% (smaller ones keep runs at home, larger ones send fewer queries elsewhere).
//!
//! **Secondary level**: its hash is a permutation of the baseline fingerprint, so both levels hold one set of fingerprints:
//! it adds no false positives, and ghosts and repairs hold across levels. It has room for two and a half times the keys that a
//! queue of the section's load would leave over, which is what stays there under churn, and takes more memory if need be.
//!
//! **Hints**: a flag per quotient, in the cache line that a query reads anyway, says whether a key is elsewhere, and marks
//! in which sixteen slots of the block there are adaptivity bits, and whether it has ghosts. So nearly every answer comes from that line, and nearly every insertion
//! is made in it.
//!
//! **Large remainders** begin at 12 bits (ε below 2^-11), with signatures of 8 bits: there the table of whole remainders
//! fits 36 slots into a line instead of 50, and the vector comparison of 8-bit lanes does not apply to it. That is
//! counted, not timed: the border may well lie a bit or two lower.
//!
//! **Bins** are searched as the plain filter's are, and take their classes for the frontier's. A tag is cut from the product that
//! gives the bin, never from the digest itself: a class is six bits that stay, and there shall be no others.
//!
//! **Growing and merging** read all keys and build the filter anew, list by list; see [`BroomFilter::merge`].

mod adaptivity;
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
mod ground;
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
mod resync;
mod secondary;
mod strings;
#[cfg(test)]
mod tests;
mod transaction;

pub use builder::BroomFilterBuilder;
pub use filter::{BroomFilter, BroomLevels};
