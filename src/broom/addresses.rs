//! Where the remote has keys: the *turn* of a quotient in the frontier's walk, and a bit that says which function.
//!
//! ```text
//! address = (class · columns + column) · 2 + parity of the function
//! ```
//!
//! So the keys of a quotient, of either function, are one range of two addresses, and the steps that the frontier makes
//! one after the other read ranges that follow each other: one read serves many steps.
//!
//! A key has one address at a time. When it is carried, that changes. A pair that is not at its key's present address
//! is *debris*: what a group that failed has left. Whoever reads a range passes over it.
//!
//! All addresses of a filter are in one of two *halves*. A growth writes those of the larger filter to the other half,
//! so that neither filter's pairs are ever taken for the other's.

use std::ops::RangeInclusive;

use crate::{Digest, KeyHasher};

use super::columns::Columns;
use super::fingerprint::Fingerprint;
use super::local::Local;
use super::table::BroomTable;

/// The bit that tells the halves. Above it there is room for the numbers of shards.
pub(super) const HALF: u64 = 1 << 51;

/// Where the keys of a class of a column begin in a half.
#[inline(always)]
pub(super) fn first<C: Columns>(half: u64, columns: C, (column, class): (u64, u32)) -> u64 {
    half | (u64::from(class) * columns.count() + column) << 1
}

impl<G: BroomTable, H: KeyHasher> Local<G, H> {
    /// Where the remote has a key.
    pub(super) fn address(&self, key: &Fingerprint) -> u64 {
        *self.addresses(key.quotient()).start() | key.function & 1
    }

    /// Where it has the keys of a quotient.
    pub(super) fn addresses(&self, quotient: u64) -> RangeInclusive<u64> {
        let columns = self.functions.columns();
        let first = first(self.half, columns, columns.split(quotient));
        first..=first + 1
    }

    /// All addresses that keys can have.
    pub(super) fn all_addresses(&self) -> RangeInclusive<u64> {
        self.half..=self.half + 2 * self.quotients() - 1
    }

    /// The half that a growth writes to.
    pub(super) fn other_half(&self) -> RangeInclusive<u64> {
        let other = self.half ^ HALF;
        other..=other + HALF - 1
    }

    /// The quotient whose keys are at an address; one beyond the table for addresses that no key has.
    pub(super) fn quotient_at(&self, address: u64) -> u64 {
        let columns = self.functions.columns();
        let number = (address ^ self.half) >> 1;
        let (class, column) = (number / columns.count(), number % columns.count());
        if class >= columns.classes() { u64::MAX } else { columns.join(column, class as u32) }
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
