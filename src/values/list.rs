//! The lists of the remote: which address a quotient has, and whether a list holds the keys of its slots.
//!
//! ```text
//!  address   | generation: 16 bits | quotient without its last `kept` bits: 48 bits |
//! ```
//!
//! A list is made under the quotient that its keys have at the time, and a table that doubles leaves it where it is: the
//! quotients get a bit more, the address keeps those that it was made with. After `kept` doublings the list has the
//! keys of 2^`kept` quotients, and the run of a quotient is that part of the list, in order, whose keys have this
//! quotient. When lists get long, all of them are written anew under another generation (see `renew`), so that old and
//! new ones never meet.

use std::ops::Range;

use crate::{AdaptiveError, Digest, KeyHasher, Remote};

use super::core::Core;
use super::keys::{List, Visit, scan_lists};
use super::{Scheme, ValueStore};

/// Where the generation begins in an address. A quotient is below [`Geometry::MAX_SLOTS`](crate::quotient::Geometry).
const GENERATION_AT: u32 = 48;

/// How quotients are made addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Addresses {
    generation: u16,
    /// How often the table has doubled since the lists were made.
    kept: u32,
}

impl Addresses {
    /// As they are written to files.
    pub(super) fn to_numbers(self) -> [u64; 2] {
        [self.generation.into(), self.kept.into()]
    }

    /// As they were written.
    pub(super) fn from_numbers(generation: u16, kept: u32) -> Self {
        Self { generation, kept }
    }

    /// The generation of an address, and what is below it.
    pub(super) fn parts(address: u64) -> (u16, u64) {
        ((address >> GENERATION_AT) as u16, address & ((1 << GENERATION_AT) - 1))
    }

    /// The address of a quotient.
    #[inline(always)]
    pub(super) fn of(self, quotient: u64) -> u64 {
        u64::from(self.generation) << GENERATION_AT | quotient >> self.kept
    }

    /// The quotients that have this address, in a table of so many slots; none for addresses that no quotient has.
    pub(super) fn quotients(self, address: u64, slots: u64) -> Range<u64> {
        let first = (address & ((1 << GENERATION_AT) - 1)) << self.kept;
        if self.is_stale(address) || first >= slots {
            return 0..0;
        }
        first..(first + (1 << self.kept)).min(slots)
    }

    /// Whether an address is one of another generation: what is there was left behind.
    pub(super) fn is_stale(self, address: u64) -> bool {
        address >> GENERATION_AT != u64::from(self.generation)
    }

    /// How often the table has doubled since the lists were made.
    pub(super) fn kept(self) -> u32 {
        self.kept
    }

    /// The addresses of the same lists after the table has doubled.
    pub(super) fn doubled(self) -> Self {
        Self { kept: self.kept + 1, ..self }
    }

    /// The addresses of lists that are all made anew.
    pub(super) fn renewed(self) -> Self {
        Self { generation: self.generation.wrapping_add(1), kept: 0 }
    }

    /// The addresses of the first lists in an empty remote.
    pub(super) fn fresh(self) -> Self {
        Self { kept: 0, ..self }
    }
}

/// What a scan does with lists of other generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stale {
    /// They are an error like any other list that no slot stands for.
    Refused,
    /// They are passed over.
    Skipped,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// The quotients whose keys are in the list at this address.
    pub(super) fn quotients_at(&self, address: u64) -> Range<u64> {
        self.addresses.quotients(address, self.table.slots())
    }

    /// The ranks in the list and the digests of the keys of one quotient, in order.
    pub(super) fn members(&self, list: &List, quotient: u64) -> impl Iterator<Item = (usize, Digest)> {
        let digests = list.digests.iter().copied().enumerate();
        digests.filter(move |(_, digest)| self.table.locate(digest.hi).quotient == quotient)
    }

    /// Reads the list that has the keys of a quotient, and checks it.
    pub(super) fn read<R: Remote>(
        &self,
        quotient: u64,
        remote: &mut R,
    ) -> Result<List, AdaptiveError<R::Error>> {
        let list = self.read_unchecked(self.addresses.of(quotient), remote)?;
        self.check_list(&list)?;
        Ok(list)
    }

    /// Reads a list as it is.
    pub(super) fn read_unchecked<R: Remote>(
        &self,
        address: u64,
        remote: &mut R,
    ) -> Result<List, AdaptiveError<R::Error>> {
        List::read(address, &self.hasher, remote)
    }

    /// Checks that a list has exactly the keys of its slots, each once and in their order.
    pub(super) fn check_list<E>(&self, list: &List) -> Result<(), AdaptiveError<E>> {
        let mut explained = 0;
        for quotient in self.quotients_at(list.address) {
            let mut members = self.members(list, quotient);
            let foreign = self.table.run(quotient).is_some_and(|run| {
                self.values.any(&self.table, run, |slot, value| {
                    explained += 1;
                    !members.next().is_some_and(|(_, digest)| {
                        self.scheme.accepts(self.table.remainder(slot), value, &self.locate(digest).1)
                    })
                })
            });
            if foreign {
                return Err(self.inconsistent(list.address, list.keys.len()));
            }
        }
        // With as many keys as slots, and one for each slot, no key is left over.
        if explained != list.keys.len() || list.has_duplicates() {
            return Err(self.inconsistent(list.address, list.keys.len()));
        }
        Ok(())
    }

    /// The error for a list that is not what the slots say.
    #[cold]
    pub(super) fn inconsistent<E>(&self, address: u64, found: usize) -> AdaptiveError<E> {
        AdaptiveError::Inconsistent { address, expected: self.expected_at(address), found }
    }

    /// How many slots the keys of a list have.
    pub(super) fn expected_at(&self, address: u64) -> usize {
        let runs = self.quotients_at(address).filter_map(|quotient| self.table.run(quotient));
        runs.map(|run| run.len()).sum()
    }

    /// Calls `visit` with every list of a scan. All of them are checked, and every slot must have its key in one of them.
    pub(super) fn scan<R: Remote>(
        &self,
        remote: &mut R,
        stale: Stale,
        visit: &mut Visit<'_, R::Error>,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let mut expected = self.table.runs().map(|(quotient, _)| self.addresses.of(quotient)).peekable();
        scan_lists(&self.hasher, |address| self.expected_at(address), remote, &mut |list| {
            if stale == Stale::Skipped && self.addresses.is_stale(list.address) {
                return Ok(());
            }
            self.check_list(list)?;
            // If one of them is missing, this stops there for good.
            while expected.next_if_eq(&list.address).is_some() {}
            visit(list)
        })?;
        expected.next().map_or(Ok(()), |missing| Err(self.inconsistent(missing, 0)))
    }

    /// Checks that the remote has the keys of all slots, and no others.
    pub(crate) fn verify_remote<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        self.scan(remote, Stale::Refused, &mut |_| Ok(()))
    }
}
