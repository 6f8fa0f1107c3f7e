//! The local state of a broom filter: where fingerprints are found, where they go, and what they leave behind.
//!
//! Everything here knows nothing of keys or of the remote, and cannot fail: whoever wants to put a fingerprint
//! somewhere asks for a [`Site`] first.

use crate::bits::BitString;
use crate::quotient::{Place, Table};
use crate::{AdaptiveError, BuildError, InvariantError, KeyHasher, error::ensure};

use super::adaptivity::Adaptivity;
use super::backyard::BackYard;
use super::builder::Blueprint;
use super::elsewhere::Elsewhere;
use super::fingerprint::{Fingerprint, Remainders, Site, Spot, TAIL_BITS};
use super::functions::Functions;
use super::level::Level;

/// An address of the remote is a quotient below so many bits, and the generation of the filter above.
const QUOTIENT_BITS: u32 = 48;

/// Where the remote has the keys of a quotient, in a generation of the filter.
pub(super) fn address(generation: u16, quotient: u64) -> u64 {
    u64::from(generation) << QUOTIENT_BITS | quotient
}

/// Room for a newcomer.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) site: Site,
    /// The back yard as it was, if it had to grow.
    pub(super) outgrown: Option<BackYard>,
}

/// The local state of a broom filter.
#[derive(Debug, Clone)]
pub(super) struct Local<H> {
    pub(super) functions: Functions<H>,
    pub(super) primary: Level,
    pub(super) elsewhere: Elsewhere,
    pub(super) remainders: Remainders,
    /// How many adaptivity bits there may be, those of ghosts included, before the frontier moves.
    pub(super) budget: usize,
    /// The upper bits of all addresses: a filter that grows writes its lists anew beside the old ones.
    pub(super) generation: u16,
    /// How many quotients have their [flag](super::hints) set.
    pub(super) hinted: usize,
    /// What tests switch off, to see that something breaks.
    #[cfg(test)]
    pub(super) switches: Switches,
}

#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Switches {
    pub(super) ghosts: bool,
    pub(super) frontier: bool,
    /// The primary table takes every key. Off: seven in eight, whatever their quotients, as if the section were full for the
    /// others.
    pub(super) roomy: bool,
}

impl<H: KeyHasher> Local<H> {
    /// An empty filter for so many keys whose functions begin with that of number `phase`.
    pub(super) fn new(
        blueprint: Blueprint,
        capacity: usize,
        hasher: H,
        phase: u64,
    ) -> Result<Self, BuildError> {
        let slots = blueprint.slots(capacity)?;
        let Blueprint { remainders, load, .. } = blueprint;
        let primary = Level::new(slots, remainders.table_bits, remainders.rest_bits, true)?;
        let elsewhere = Elsewhere::new(&primary.table, remainders, load)?;
        let functions = Functions::new(hasher, slots, phase);
        Ok(Self::from_parts(blueprint, capacity, functions, primary, elsewhere))
    }

    /// A filter for so many keys that was there before.
    pub(super) fn from_parts(
        blueprint: Blueprint,
        capacity: usize,
        functions: Functions<H>,
        primary: Level,
        elsewhere: Elsewhere,
    ) -> Self {
        let Blueprint { remainders, budget, .. } = blueprint;
        Self {
            functions,
            primary,
            elsewhere,
            remainders,
            budget: (budget * capacity as f64) as usize,
            generation: 0,
            hinted: 0,
            #[cfg(test)]
            switches: Switches { ghosts: true, frontier: true, roomy: true },
        }
    }

    /// The memory that [`new`](Self::new) takes, in bits.
    pub(super) fn size_in_bits(slots: u64, remainders: Remainders, load: f64) -> usize {
        let primary = Level::size_in_bits(slots, remainders.table_bits, remainders.rest_bits, true);
        primary.saturating_add(Elsewhere::size_in_bits(slots, remainders, load))
    }

    /// The primary table, which queries go to first.
    #[inline(always)]
    pub(super) fn table(&self) -> &Table {
        &self.primary.table
    }

    pub(super) fn len(&self) -> usize {
        self.table().len() + self.elsewhere.len()
    }

    /// Where the remote has the keys of a quotient.
    pub(super) fn address(&self, quotient: u64) -> u64 {
        address(self.generation, quotient)
    }

    /// The quotient that an address stands for, which may be beyond the table if the remote made it up; `None` for
    /// the addresses of other generations.
    pub(super) fn quotient_at(&self, address: u64) -> Option<u64> {
        let generation = address >> QUOTIENT_BITS;
        (generation == u64::from(self.generation)).then_some(address & ((1 << QUOTIENT_BITS) - 1))
    }

    /// Where the stored fingerprint stands that is a prefix of this one. There is at most one on each level.
    pub(super) fn find(&self, key: &Fingerprint) -> Option<Spot> {
        let elsewhere = self.is_hinted(key.quotient());
        match &self.elsewhere {
            Elsewhere::BackYard(yard) => {
                let place = if elsewhere { yard.find(key.quotient(), key.digest) } else { None };
                place.map(Spot::BackYard).or_else(|| self.find_on(key, Site::Primary))
            }
            Elsewhere::Secondary(_) => self
                .find_on(key, Site::Primary)
                .or_else(|| if elsewhere { self.find_on(key, Site::Secondary) } else { None }),
        }
    }

    /// [`find`](Self::find) on one level only.
    #[inline]
    fn find_on(&self, key: &Fingerprint, site: Site) -> Option<Spot> {
        match (site, &self.elsewhere) {
            (Site::Primary, _) => self.primary.find(key.baseline, key.tail).map(Spot::Primary),
            (Site::Secondary, Elsewhere::Secondary(secondary)) => {
                secondary.level.find(secondary.baseline(key.baseline), key.tail).map(Spot::Secondary)
            }
            (Site::BackYard(place), Elsewhere::BackYard(_)) => Some(Spot::BackYard(place)),
            (Site::Secondary, Elsewhere::BackYard(_)) | (Site::BackYard(_), Elsewhere::Secondary(_)) => None,
        }
    }

    /// How many stored fingerprints are prefixes of this one: more than one if keys have the same digest, or if a key
    /// of the back yard, which stands for itself, matches one of the primary table too.
    pub(super) fn count_matches(&self, key: &Fingerprint) -> usize {
        let elsewhere = match &self.elsewhere {
            _ if !self.is_hinted(key.quotient()) => 0,
            Elsewhere::Secondary(secondary) => {
                secondary.level.count_matches(secondary.baseline(key.baseline), key.tail)
            }
            Elsewhere::BackYard(yard) => yard.count_matches(key.quotient(), key.digest),
        };
        self.primary.count_matches(key.baseline, key.tail) + elsewhere
    }

    /// How many keys of a quotient are stored.
    pub(super) fn stored_at(&self, quotient: u64) -> usize {
        let elsewhere = if self.is_hinted(quotient) { self.elsewhere.count(quotient) } else { 0 };
        self.table().run(quotient).map_or(0, |run| run.len()) + elsewhere
    }

    /// How many adaptivity bits a newcomer takes whom no stored fingerprint is a prefix of: as few as keep its
    /// own from being a prefix of a stored one (Invariant 7), and no fewer than a ghost that agrees with it.
    pub(super) fn free_length(&self, key: &Fingerprint) -> u32 {
        let mut closest = self.primary.closest(key.baseline, key.tail);
        if let Elsewhere::Secondary(secondary) = &self.elsewhere
            && self.is_hinted(key.quotient())
        {
            closest = closest.max(secondary.level.closest(secondary.baseline(key.baseline), key.tail));
        }
        let free = closest.map_or(0, |common| (common + 1).min(TAIL_BITS));
        free.max(self.longest_ghost(key))
    }

    /// Whether the block of a quotient has neither strings nor ghosts.
    pub(super) fn is_plain_at(&self, quotient: u64) -> bool {
        self.primary.strings.is_plain(self.table().block_of(quotient).0)
    }

    /// Inserts a newcomer if the block of its quotient alone can tell that this is all there is to do, and `agree`, which is
    /// asked then, says so. Whether it was asked.
    #[inline(always)]
    pub(super) fn insert_fresh(&mut self, place: Place, agree: &mut dyn FnMut() -> bool) -> bool {
        #[cfg(test)]
        if !self.switches.roomy && self.len().is_multiple_of(8) {
            return false;
        }
        self.baseline(place).is_some_and(|baseline| self.primary.insert_fresh(baseline, agree))
    }

    /// Where a newcomer can go, the primary table first. The memory for it is there then, and [`place`](Self::place) cannot
    /// fail as long as nothing else is placed.
    pub(super) fn make_room(&mut self, key: &Fingerprint) -> Result<Room, BuildError> {
        let quotient = key.quotient();
        let partial = self.remainders.rest_bits > 0 && self.primary.has_partial_collision(key.baseline);
        #[cfg(test)]
        let partial = partial || (!self.switches.roomy && self.len().is_multiple_of(8));
        if !partial && self.primary.make_room(quotient, self.primary.section_end(quotient)).is_some() {
            return Ok(Room { site: Site::Primary, outgrown: None });
        }
        match &mut self.elsewhere {
            Elsewhere::Secondary(secondary) => {
                secondary.make_room(key.baseline)?;
                Ok(Room { site: Site::Secondary, outgrown: None })
            }
            Elsewhere::BackYard(yard) => {
                let (place, outgrown) = yard.make_room(quotient)?;
                Ok(Room { site: Site::BackYard(place), outgrown })
            }
        }
    }

    /// Stores a fingerprint with so many adaptivity bits where [room](Self::make_room) was made for it, or where it was
    /// [taken](Self::take) from.
    #[inline]
    pub(super) fn place(&mut self, key: &Fingerprint, len: u32, site: Site) {
        let string = key.tail.prefix(len);
        match (site, &mut self.elsewhere) {
            (Site::Primary, _) => return self.primary.insert(key.baseline, string),
            (Site::Secondary, Elsewhere::Secondary(secondary)) => {
                let baseline = secondary.baseline(key.baseline);
                secondary.level.insert(baseline, string);
            }
            (Site::BackYard(place), Elsewhere::BackYard(yard)) => {
                yard.put(place, key.quotient(), key.digest);
            }
            (Site::Secondary, Elsewhere::BackYard(_)) | (Site::BackYard(_), Elsewhere::Secondary(_)) => {
                debug_assert!(false, "a filter has one level beside the primary one");
                return;
            }
        }
        self.set_hint(key.quotient(), true);
    }

    /// Takes the fingerprint of a stored key out, from where it stands; returns its adaptivity bits. Its hint stays.
    pub(super) fn take(&mut self, key: &Fingerprint, site: Site) -> BitString {
        match (self.find_on(key, site), &mut self.elsewhere) {
            (Some(Spot::Primary(slot)), _) => self.primary.remove(key.quotient(), slot),
            (Some(Spot::Secondary(slot)), Elsewhere::Secondary(secondary)) => {
                let quotient = secondary.baseline(key.baseline).quotient;
                secondary.level.remove(quotient, slot)
            }
            (Some(Spot::BackYard(place)), Elsewhere::BackYard(yard)) => {
                yard.take(place);
                BitString::EMPTY
            }
            _ => {
                debug_assert!(false, "a stored key matches its own fingerprint");
                BitString::EMPTY
            }
        }
    }

    /// Gives a stored key so many adaptivity bits, and returns how many it had. Those in the back yard need none.
    pub(super) fn set_length(&mut self, key: &Fingerprint, len: u32) -> u32 {
        let spot = self.find(key);
        let (slot, level) = match (spot, &mut self.elsewhere) {
            (Some(Spot::Primary(slot)), _) => (slot, &mut self.primary),
            (Some(Spot::Secondary(slot)), Elsewhere::Secondary(secondary)) => (slot, &mut secondary.level),
            _ => return 0,
        };
        let old = level.string(slot).len();
        level.set_string(slot, key.tail.prefix(len));
        old
    }

    /// Adaptivity bits of stored keys and of ghosts.
    pub(super) fn adaptivity_bits(&self) -> usize {
        let elsewhere = self.elsewhere.strings().map_or(0, Adaptivity::bits);
        self.primary.strings.bits() + elsewhere + self.primary.strings.ghost_bits()
    }

    /// Whether there are more adaptivity bits than there should be.
    pub(super) fn is_over_budget(&self) -> bool {
        self.adaptivity_bits() > self.budget
    }

    /// Stored keys that have adaptivity bits.
    pub(super) fn adapted_keys(&self) -> usize {
        let elsewhere = self.elsewhere.strings().map_or(0, Adaptivity::strings);
        self.primary.strings.strings() + elsewhere
    }

    /// All memory, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        self.primary.memory_bits() + self.elsewhere.memory_bits()
    }

    pub(super) fn out_of_memory<E>(&self) -> AdaptiveError<E> {
        AdaptiveError::OutOfMemory { bytes: self.memory_bits() / 8 }
    }

    /// Walks everything.
    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        self.primary.verify(true)?;
        self.elsewhere.verify(self.table().slots())?;
        self.verify_hints()?;
        self.verify_ghosts()?;
        if self.remainders.rest_bits > 0 {
            for (quotient, run) in self.table().runs() {
                let mut signatures: Vec<u64> = run.slots().map(|slot| self.table().remainder(slot)).collect();
                signatures.sort_unstable();
                let distinct = signatures.windows(2).all(|pair| pair[0] != pair[1]);
                ensure!(distinct, "two keys of quotient {quotient} have one signature");
            }
        }
        Ok(())
    }
}

/// The same functions with the frontier at the same place, the same fingerprints, the same ghosts.
impl<H: KeyHasher> PartialEq for Local<H> {
    fn eq(&self, other: &Self) -> bool {
        self.remainders == other.remainders
            && self.functions.hasher() == other.functions.hasher()
            && self.functions.position() == other.functions.position()
            && self.primary == other.primary
            && self.elsewhere == other.elsewhere
            && self.primary.strings.same_ghosts(&other.primary.strings)
    }
}
