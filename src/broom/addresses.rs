//! Where the remote has keys: the *turn* of a quotient in the frontier's walk, and a bit that says which function.
//!
//! ```text
//! address = (class · columns + column) · 2 + parity of the function
//! ```
//!
//! So the keys of a quotient, of either function, are one range of two addresses, and the steps that the frontier makes one
//! after the other read ranges that follow each other: one read serves many steps.
//!
//! A key has one address at a time. When it is carried, and when the filter grows, that changes. A pair that is not at its key's
//! present address is *debris*: what a group that failed has left, or a growth. Whoever reads a range passes over it.

use std::ops::RangeInclusive;

use crate::{Digest, KeyHasher};

use super::columns::Columns;
use super::fingerprint::Fingerprint;
use super::ground::Ground;
use super::local::Local;

/// Where the keys of a quotient begin.
#[inline(always)]
pub(super) fn first<C: Columns>(columns: C, quotient: u64) -> u64 {
    let (class, column) = (quotient & ((1 << columns.class_bits()) - 1), quotient >> columns.class_bits());
    (class * columns.count() + column) << 1
}

/// The quotient whose keys an address is for, which is beyond the table if the remote made it up.
pub(super) fn quotient_at<C: Columns>(columns: C, address: u64) -> u64 {
    let (class, column) = ((address >> 1) / columns.count(), (address >> 1) % columns.count());
    if class >> columns.class_bits() > 0 { u64::MAX } else { column << columns.class_bits() | class }
}

impl<G: Ground, H: KeyHasher> Local<G, H> {
    /// Where the remote has a key.
    pub(super) fn address(&self, key: &Fingerprint) -> u64 {
        first(self.functions.columns(), key.quotient()) | key.function & 1
    }

    /// Where it has the keys of a quotient.
    pub(super) fn addresses(&self, quotient: u64) -> RangeInclusive<u64> {
        let first = first(self.functions.columns(), quotient);
        first..=first + 1
    }

    /// The last address that a key can have.
    pub(super) fn last_address(&self) -> u64 {
        2 * self.quotients() - 1
    }

    /// The quotient whose keys are at an address.
    pub(super) fn quotient_at(&self, address: u64) -> u64 {
        quotient_at(self.functions.columns(), address)
    }

    /// What a key is on its side of the frontier, if this is its address; else the pair is debris.
    pub(super) fn at_home(&self, address: u64, key: &[u8]) -> Option<Fingerprint> {
        let fingerprint = self.fingerprint(self.functions.hasher().digest(key));
        (self.address(&fingerprint) == address).then_some(fingerprint)
    }

    /// What an operation on a key reads.
    pub(super) fn home(&self, digest: Digest) -> RangeInclusive<u64> {
        let columns = self.functions.columns();
        self.addresses(columns.quotient(self.functions.place(digest)))
    }
}
