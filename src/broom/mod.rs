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
//! | 4.2 reclaiming bits | `functions`, `frontier` | two hash functions; each adaptation carries the next keys from the old to the new one |
//! | 4.3 deletions | `ghosts` | a removed key leaves its quotient and adaptivity bits behind until its hash function dies |
//! | 5.1, appendix A | `adaptivity` | the strings of adaptivity bits, packed in a few words per block |
//! | 5.2, 5.3 small remainders | `level`, `secondary`, `hints` | nothing leaves its section of the primary table; what does not fit goes to the secondary one |
//! | 5.4 large remainders | `level`, `backyard` | signatures searched first, the rest beside them, partial collisions in a back yard of whole hashes |
//! | Definition 1 | `transaction` | an operation changes filter and remote, or neither |
//!
//! Not of the paper: `lists` (what the remote says is checked), `resync` (the way back after a failure), `growth`.
//!
//! # Choices
//!
//! **The order of the frontier** is the order of the quotients under the function that is being left, in strides of
//! 64. It is a function of the key alone, the remote can walk it because quotients are its addresses, and the stride
//! keeps all parts of the table equally full: walking from left to right, the secondary table was full after
//! 130 000 replacements in a filter of 59 000 keys, with the strides it holds 2.1% of the keys after 5 million. The list of an address
//! has no order that matters: since no fingerprint is a prefix of another, the key of a slot is the only one of the
//! list whose hash begins with the slot's fingerprint. So a key moves in the table, between the levels and between the
//! functions without any rank to keep.
//!
//! **A hash function** is a random odd factor for the upper half of the digest. Both are computed for every query
//! and one is chosen without a branch; a second hash of the digest would cost more than the whole query.
//!
//! **c = 4** keys are carried by an adaptation (the paper asks for more than 2), or up to 12 looked at. Over 20·n
//! false positives on a full filter of 4096 keys the adaptivity bits stay at 0.37 to 0.53 per key; without the
//! frontier they are at 5.7 after the same queries and grow on.
//!
//! **Probe bound**: a section of 16 blocks, 736 slots with remainders of 8 bits. No insertion or removal touches
//! more. Measured over 10^7 insertions and removals at load 0.90, with 59 000 keys: 710 slots at most in the primary table, 47 in
//! the secondary, and 2.1% of the keys elsewhere at most. Sections of 4, 8, 16 and 32 blocks answer negative queries
//! equally fast within 2% (smaller ones keep runs at home, larger ones send fewer queries elsewhere).
//!
//! **Secondary level**: its hash is a permutation of the baseline fingerprint, so both levels hold one set of fingerprints:
//! it adds no false positives, and ghosts and repairs hold across levels. It has room for three times the keys that a
//! queue of the section's load would leave over, which is what stays there under churn.
//!
//! **Hints**: a flag per quotient, in the cache line that a query reads anyway, says whether a key is elsewhere: 1.1% of
//! the quotients at load 0.90 after insertions, 1.5% under churn.
//!
//! **Large remainders** begin at 12 bits (ε below 2^-11), with signatures of 8 bits: there the table of whole remainders
//! fits 36 slots into a line instead of 50, and the vector comparison of 8-bit lanes does not apply to it. That is
//! counted, not timed: the border may well lie a bit or two lower.
//!
//! **Growing and merging** read all keys and build the filter anew, list by list; see [`BroomFilter::merge`].

mod adaptivity;
mod backyard;
mod builder;
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
mod resync;
mod secondary;
#[cfg(test)]
mod tests;
mod transaction;

pub use builder::BroomFilterBuilder;
pub use filter::{BroomFilter, BroomLevels};
