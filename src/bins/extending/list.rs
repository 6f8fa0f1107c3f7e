//! The lists of the remote: which address a key has, and whether a list holds the keys of its items.
//!
//! ```text
//! address   | generation: 16 bits | bin without its last `kept` bits | class |
//! ```
//!
//! The keys of a run, which is a class of a bin, are in one list, those of equal fingerprints in the order of their ranks. As
//! on quotient tables, a list stays where it is when the table doubles, and then has the keys of several bins; when lists
//! get long, all of them are written anew under another generation (see `grow`).

use std::ops::Range;

use crate::values::{List, Visit, scan_lists};
use crate::{AdaptiveError, Digest, KeyHasher, Remote};

use super::super::line::Entry;
use super::super::table::Place;
use super::{Begins, ExtendingBins};

/// Where the generation begins in an address: above the 40 bits of a bin and the 6 of a class.
const GENERATION_AT: u32 = 48;

/// How runs are made addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Addresses {
    pub(super) generation: u16,
    /// How often the table has doubled since the lists were made.
    pub(super) kept: u32,
}

impl Addresses {
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

    /// The address of a run.
    #[inline(always)]
    pub(super) fn of(self, bin: u64, class: u32, class_bits: u32) -> u64 {
        u64::from(self.generation) << GENERATION_AT | bin >> self.kept << class_bits | u64::from(class)
    }

    /// The address of a place.
    #[inline(always)]
    pub(super) fn of_place(self, place: Place, class_bits: u32) -> u64 {
        self.of(place.bin, (place.print.0 >> (64 - class_bits)) as u32, class_bits)
    }

    /// The bins and the class whose runs have this address, in a table of so many bins; no bins for addresses that no run has.
    pub(super) fn runs(self, address: u64, bins: u64, class_bits: u32) -> (Range<u64>, u32) {
        let run = address & ((1 << GENERATION_AT) - 1);
        let (first, class) = (run >> class_bits << self.kept, (run & ((1 << class_bits) - 1)) as u32);
        if self.is_stale(address) || first >= bins {
            return (0..0, class);
        }
        (first..(first + (1 << self.kept)).min(bins), class)
    }

    /// Whether an address is one of another generation: what is there was left behind.
    pub(super) fn is_stale(self, address: u64) -> bool {
        address >> GENERATION_AT != u64::from(self.generation)
    }
}

/// What a scan does with lists of other generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stale {
    /// They are an error like any other list that no item stands for.
    Refused,
    /// They are passed over.
    Skipped,
}

/// A key of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    pub(super) bin: u64,
    pub(super) entry: Entry,
    /// Its rank in the list.
    pub(super) rank: usize,
}

impl<H: KeyHasher> ExtendingBins<H> {
    /// The address of a place.
    #[inline(always)]
    pub(super) fn address(&self, place: Place) -> u64 {
        self.addresses.of_place(place, self.table.shape().class_bits)
    }

    /// The address of a key's list.
    pub(crate) fn address_of(&self, digest: Digest) -> u64 {
        self.address(self.table.place(digest))
    }

    /// The bin and the class and tag of a key.
    pub(super) fn item(&self, digest: Digest) -> (u64, Entry) {
        let place = self.table.place(digest);
        (place.bin, self.table.entry(place))
    }

    /// The bins and the class whose keys are in the list at this address.
    pub(super) fn runs_at(&self, address: u64) -> (Range<u64>, u32) {
        self.addresses.runs(address, self.table.bins(), self.table.shape().class_bits)
    }

    /// The keys of a list by their items; those of equal items in the order of the list.
    pub(super) fn members(&self, list: &List) -> Vec<Member> {
        let mut members: Vec<Member> = (0..)
            .zip(&list.digests)
            .map(|(rank, &digest)| {
                let (bin, entry) = self.item(digest);
                Member { bin, entry, rank }
            })
            .collect();
        members.sort_unstable();
        members
    }

    /// Reads the list that has the keys of a place, and checks it.
    pub(super) fn read<R: Remote>(
        &self,
        place: Place,
        remote: &mut R,
    ) -> Result<List, AdaptiveError<R::Error>> {
        let list = List::read(self.address(place), &self.hasher, remote)?;
        self.check_list(&list)?;
        Ok(list)
    }

    /// Checks that a list has exactly the keys of its items, each once, and those of equal ones in order.
    pub(super) fn check_list<E>(&self, list: &List) -> Result<(), AdaptiveError<E>> {
        if self.explains(list, &self.members(list)) && !list.has_duplicates() {
            return Ok(());
        }
        Err(self.inconsistent(list.address, list.keys.len()))
    }

    /// Whether every item of the list's runs has its key among the members, and no member is left over.
    fn explains(&self, list: &List, members: &[Member]) -> bool {
        let (bins, class) = self.runs_at(list.address);
        let mut members = members.iter();
        for bin in bins {
            let items = self.table.items_of(bin);
            for rank in items.of_class(class, self.table.shape().tag_bits()) {
                let explained = members.next().is_some_and(|member| {
                    (member.bin, member.entry) == (bin, items.get(rank))
                        && self.values.get(bin, rank).begins(&self.string(list.digests[member.rank]))
                });
                if !explained {
                    return false;
                }
            }
        }
        members.next().is_none()
    }

    /// The error for a list that is not what the items say.
    #[cold]
    pub(super) fn inconsistent<E>(&self, address: u64, found: usize) -> AdaptiveError<E> {
        AdaptiveError::Inconsistent { address, expected: self.expected_at(address), found }
    }

    /// How many items the keys of a list have.
    fn expected_at(&self, address: u64) -> usize {
        let (bins, class) = self.runs_at(address);
        let tag_bits = self.table.shape().tag_bits();
        bins.map(|bin| self.table.items_of(bin).of_class(class, tag_bits).len()).sum()
    }

    /// The addresses that must have a list, ascending.
    pub(super) fn expected_addresses(&self) -> impl Iterator<Item = u64> {
        let (kept, class_bits) = (self.addresses.kept, self.table.shape().class_bits);
        (0..self.table.bins()).step_by(1 << kept).flat_map(move |first| {
            let bins = first..(first + (1 << kept)).min(self.table.bins());
            let items = bins.flat_map(|bin| self.table.items_of(bin).iter().collect::<Vec<_>>());
            let classes = items.fold(0_u64, |classes, entry| classes | 1 << self.table.class(entry));
            let present = (0..1_u32 << class_bits).filter(move |class| classes >> class & 1 == 1);
            present.map(move |class| self.addresses.of(first, class, class_bits))
        })
    }

    /// Calls `visit` with every list of a scan. All of them are checked, and every item must have its key in one of them.
    pub(super) fn scan<R: Remote>(
        &self,
        remote: &mut R,
        stale: Stale,
        visit: &mut Visit<'_, R::Error>,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let mut expected = self.expected_addresses().peekable();
        scan_lists(&self.hasher, |address| self.expected_at(address), remote, &mut |list| {
            if stale == Stale::Skipped && self.addresses.is_stale(list.address) {
                return Ok(());
            }
            self.check_list(list)?;
            // If one of them is missing, this stops there for good.
            expected.next_if_eq(&list.address);
            visit(list)
        })?;
        expected.next().map_or(Ok(()), |missing| Err(self.inconsistent(missing, 0)))
    }

    /// Checks that the remote has the keys of all items, and no others.
    pub(crate) fn verify_remote<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        self.scan(remote, Stale::Refused, &mut |_| Ok(()))
    }
}
