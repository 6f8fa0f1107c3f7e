//! The lists of the remote: which address a home has, and whether a list holds the keys of its items.
//!
//! ```text
//! quotient tables   | generation: 16 bits | quotient without its last `kept` bits: 48 bits |
//! bins              | generation: 16 bits | bin without its last `kept` bits | class       |
//! ```
//!
//! A list is made under the quotient, or the bin, that its keys have at the time, and a table that doubles leaves it where it
//! is: the quotients get a bit more, the address keeps those that it was made with. After `kept` doublings the list has the
//! keys of 2^`kept` quotients, and the run of a quotient is that part of the list, in order, whose keys have this
//! quotient. When lists get long, all of them are written anew under another generation (see `renew`), so that old and
//! new ones never meet.

use std::ops::Range;

use crate::format::{FormatError, in_range};
use crate::{AdaptiveError, Digest, Remote};

use super::Listed;
use super::grow::MAX_KEPT;
use super::keys::{List, Visit, scan_lists};

/// Where the generation begins in an address. Quotients are below
/// [`Geometry::MAX_SLOTS`](crate::quotient::Geometry::MAX_SLOTS), and bins below 2^40 with classes of 6 bits.
const GENERATION_AT: u32 = 48;

/// How units, which are the quotients or the bins of a table, are made addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Addresses {
    generation: u16,
    /// How often the table has doubled since the lists were made.
    kept: u32,
}

impl Addresses {
    /// As they are written to files.
    pub(crate) fn to_numbers(self) -> [u64; 2] {
        [self.generation.into(), self.kept.into()]
    }

    /// As they were written.
    pub(crate) fn from_numbers([generation, kept]: [u64; 2]) -> Result<Self, FormatError> {
        let generation = in_range("address generation", generation, 0..=u16::MAX.into())?;
        Ok(Self::new(generation, in_range("kept doublings", kept, 0..=MAX_KEPT.into())?))
    }

    pub(super) fn new(generation: u16, kept: u32) -> Self {
        Self { generation, kept }
    }

    /// The generation of an address, and what is below it.
    pub(super) fn parts(address: u64) -> (u16, u64) {
        ((address >> GENERATION_AT) as u16, address & ((1 << GENERATION_AT) - 1))
    }

    /// The address of a unit.
    #[inline(always)]
    pub(crate) fn of(self, unit: u64) -> u64 {
        self.of_class(unit, 0, 0)
    }

    /// The address of a class, which has so many bits, of a unit.
    #[inline(always)]
    pub(crate) fn of_class(self, unit: u64, class: u32, class_bits: u32) -> u64 {
        u64::from(self.generation) << GENERATION_AT | unit >> self.kept << class_bits | u64::from(class)
    }

    /// The units that have this address, in a table of so many; none for addresses that no unit has.
    pub(crate) fn units(self, address: u64, units: u64) -> Range<u64> {
        self.class(address, 0, units).0
    }

    /// The units, of so many, and the class, which has so many bits, that have this address.
    pub(crate) fn class(self, address: u64, class_bits: u32, units: u64) -> (Range<u64>, u32) {
        let (_, below) = Self::parts(address);
        let (first, class) = (below >> class_bits << self.kept, below & ((1 << class_bits) - 1));
        let units = if self.is_stale(address) || first >= units {
            0..0
        } else {
            first..(first + (1 << self.kept)).min(units)
        };
        (units, class as u32)
    }

    /// Whether an address is one of another generation: what is there was left behind.
    pub(crate) fn is_stale(self, address: u64) -> bool {
        address >> GENERATION_AT != u64::from(self.generation)
    }

    /// How often the table has doubled since the lists were made.
    pub(crate) fn kept(self) -> u32 {
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
    pub(crate) fn fresh(self) -> Self {
        Self { kept: 0, ..self }
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

/// The address of the list where a key belongs.
pub(crate) fn address_of<G: Listed>(ground: &G, digest: Digest) -> u64 {
    ground.address(ground.home(digest))
}

/// The ranks in the list and the digests of the keys of one home, in order.
pub(crate) fn members_of<G: Listed>(
    ground: &G,
    list: &List,
    home: G::Home,
) -> impl Iterator<Item = (usize, Digest)> {
    let digests = list.digests.iter().copied().enumerate();
    digests.filter(move |&(_, digest)| ground.home(digest) == home)
}

/// The homes and the ranks of all keys of a list, by home, and those of one home in the order of the list.
pub(super) fn members<G: Listed>(ground: &G, list: &List) -> Vec<(G::Home, usize)> {
    let homes = list.digests.iter().map(|&digest| ground.home(digest));
    let mut members: Vec<(G::Home, usize)> = homes.zip(0..).collect();
    members.sort_unstable();
    members
}

/// Reads the list that has the keys of a home, and checks it.
pub(crate) fn read<G: Listed, R: Remote>(
    ground: &G,
    home: G::Home,
    remote: &mut R,
) -> Result<List, AdaptiveError<R::Error>> {
    let list = List::read(ground.address(home), ground.hasher(), remote)?;
    check(ground, &list)?;
    Ok(list)
}

/// Checks that a list has exactly the keys of its items, each once, and those of one home in their order.
pub(super) fn check<G: Listed, E>(ground: &G, list: &List) -> Result<(), AdaptiveError<E>> {
    let members = members(ground, list);
    let mut members = members.iter();
    let explained = ground.all_items(list.address, |home, item| {
        let key = members.next().filter(|member| member.0 == home);
        key.is_some_and(|&(_, rank)| ground.accepts(item, list.digests[rank]))
    });
    if explained && members.next().is_none() && !list.has_duplicates() {
        return Ok(());
    }
    Err(inconsistent(ground, list.address, list.keys.len()))
}

/// The error for a list that is not what the items say.
#[cold]
pub(super) fn inconsistent<G: Listed, E>(ground: &G, address: u64, found: usize) -> AdaptiveError<E> {
    AdaptiveError::Inconsistent { address, expected: expected_at(ground, address), found }
}

/// How many items the keys of a list have.
fn expected_at<G: Listed>(ground: &G, address: u64) -> usize {
    let mut items = 0;
    ground.all_items(address, |_, _| {
        items += 1;
        true
    });
    items
}

/// Calls `visit` with every list of a scan. All of them are checked, and every item must have its key in one of them.
pub(super) fn scan<G: Listed, R: Remote>(
    ground: &G,
    remote: &mut R,
    stale: Stale,
    visit: &mut Visit<'_, R::Error>,
) -> Result<(), AdaptiveError<R::Error>> {
    let mut expected = ground.expected_addresses().peekable();
    scan_lists(ground.hasher(), |address| expected_at(ground, address), remote, &mut |list| {
        if stale == Stale::Skipped && ground.addresses().is_stale(list.address) {
            return Ok(());
        }
        check(ground, list)?;
        // If one of them is missing, this stops there for good.
        while expected.next_if_eq(&list.address).is_some() {}
        visit(list)
    })?;
    expected.next().map_or(Ok(()), |missing| Err(inconsistent(ground, missing, 0)))
}

/// Checks that the remote has the keys of all items, and no others.
pub(crate) fn verify_remote<G: Listed, R: Remote>(
    ground: &G,
    remote: &mut R,
) -> Result<(), AdaptiveError<R::Error>> {
    scan(ground, remote, Stale::Refused, &mut |_| Ok(()))
}
