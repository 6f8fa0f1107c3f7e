//! The table of the paper: a primary quotient table, and what it cannot take elsewhere (sections 5.2 to 5.4).
//!
//! Whoever wants to put a fingerprint somewhere makes room for it first: the memory is there then, and nothing can
//! fail.

use crate::bits::BitString;
use crate::quotient::{Answer, Place, Table, slots_for};
use crate::{BuildError, Digest, InvariantError, Key, KeyHasher, batch, error::ensure};

use super::adaptivity::{self, Adaptivity};
use super::backyard::{BackYard, YardPlace};
use super::builder::Blueprint;
use super::columns::{STRATUM_BITS, Slots, fraction_bits, whole_columns};
use super::elsewhere::Elsewhere;
use super::fingerprint::{Baseline, Fingerprint, Remainders};
use super::functions::Step;
use super::level::Level;
use super::local::Local;
use super::table::{BroomTable, Levels, NoMemory, Room};

/// Where a stored fingerprint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    Primary(u64),
    Secondary(u64),
    BackYard(YardPlace),
}

/// Where a fingerprint can be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Site {
    Primary,
    Secondary,
    BackYard(YardPlace),
}

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct BroomQuotients {
    pub(super) primary: Level,
    pub(super) elsewhere: Elsewhere,
    pub(super) remainders: Remainders,
    /// How many quotients have their [flag](super::hints) set.
    pub(super) hinted: usize,
    /// The primary table takes every key. Off, in tests: seven in eight, whatever their quotients, as if the section
    /// were full for the others.
    #[cfg(test)]
    pub(super) roomy: bool,
}

impl BroomQuotients {
    /// A table that was there before.
    pub(super) fn from_parts(
        primary: Level,
        elsewhere: Elsewhere,
        remainders: Remainders,
        hinted: usize,
    ) -> Self {
        Self {
            primary,
            elsewhere,
            remainders,
            hinted,
            #[cfg(test)]
            roomy: true,
        }
    }

    /// The primary table, which queries go to first.
    #[inline(always)]
    pub(super) fn table(&self) -> &Table {
        &self.primary.table
    }

    /// Whether tests want the next key to find no room.
    #[cfg(test)]
    fn is_crowded(&self) -> bool {
        !self.roomy && self.len().is_multiple_of(8)
    }

    /// The baseline of a key that belongs to a place, if that is enough to tell: a very long remainder goes on in the
    /// other half of the digest.
    #[inline(always)]
    fn baseline(&self, place: Place) -> Option<Baseline> {
        let Remainders { table_bits, rest_bits } = self.remainders;
        let Place { quotient, fraction } = place;
        if rest_bits > 0 && table_bits + STRATUM_BITS + rest_bits > fraction_bits(self.table().slots()) {
            return None;
        }
        // In two steps, because there may be no rest.
        let rest = fraction << (table_bits + STRATUM_BITS) >> 1 >> (63 - rest_bits);
        Some(Baseline { quotient, remainder: self.table().remainder_of(fraction), rest })
    }

    /// [`find`](BroomTable::find) on one level only.
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

    /// What adaptivity bits and the other level say of a query that the primary table alone does not settle.
    #[cold]
    #[inline(never)]
    fn settle<H: KeyHasher>(local: &Local<Self, H>, answer: Answer, digest: Digest, place: Place) -> bool {
        let table = &local.table;
        if let Elsewhere::Secondary(secondary) = &table.elsewhere {
            // A fingerprint without adaptivity bits is a prefix of every query that has its baseline.
            if answer.slots().is_some_and(|slots| table.primary.any_bare(place.quotient, slots)) {
                return true;
            }
            // A flag is nearly always set for another remainder.
            let remainder = table.table().remainder_of(place.fraction);
            let baseline = Baseline { quotient: place.quotient, remainder, rest: 0 };
            if answer == Answer::ELSEWHERE && !secondary.may_contain(baseline) {
                return false;
            }
        }
        table.find(&local.fingerprint(digest)).is_some()
    }

    /// Where a newcomer can go, the primary table first. The memory for it is there then, and [`place`](Self::place)
    /// cannot fail as long as nothing else is placed.
    fn make_room(&mut self, key: &Fingerprint) -> Result<Room<Self>, NoMemory> {
        let quotient = key.quotient();
        let partial = self.remainders.rest_bits > 0 && self.primary.has_partial_collision(key.baseline);
        #[cfg(test)]
        let partial = partial || self.is_crowded();
        if !partial && self.primary.make_room(quotient, self.primary.section_end(quotient)).is_some() {
            return Ok(Room { site: Site::Primary, outgrown: None });
        }
        match &mut self.elsewhere {
            Elsewhere::Secondary(secondary) => {
                secondary.make_room(key.baseline).map_err(|_| NoMemory)?;
                Ok(Room { site: Site::Secondary, outgrown: None })
            }
            Elsewhere::BackYard(yard) => {
                let (place, outgrown) = yard.make_room(quotient).map_err(|_| NoMemory)?;
                Ok(Room { site: Site::BackYard(place), outgrown })
            }
        }
    }

    /// Stores a fingerprint with so many adaptivity bits where [room](Self::make_room) was made for it, or where it was
    /// [taken](BroomTable::take) from.
    #[inline]
    fn place(&mut self, key: &Fingerprint, len: u32, site: Site) {
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

    /// The block of a step's quotient, and the number of its ghosts there under a function.
    fn ghost_number(&self, Step { stratum, quotient }: Step, function: u64) -> (usize, u32) {
        let (block, in_block) = self.table().block_of(quotient);
        (block, adaptivity::ghost_number(in_block, stratum, function))
    }

    /// No two keys of a quotient have one signature.
    fn verify_signatures(&self) -> Result<(), InvariantError> {
        for (quotient, run) in self.table().runs() {
            let mut signatures: Vec<u64> = run.slots().map(|slot| self.table().remainder(slot)).collect();
            signatures.sort_unstable();
            let distinct = signatures.windows(2).all(|pair| pair[0] != pair[1]);
            ensure!(distinct, "two keys of quotient {quotient} have one signature");
        }
        Ok(())
    }
}

impl BroomTable for BroomQuotients {
    type Cut = Remainders;
    type Columns = Slots;
    type Spot = Spot;
    type Site = Site;
    type Outgrown = BackYard;

    fn columns(blueprint: Blueprint<Remainders>, capacity: usize) -> Result<Slots, BuildError> {
        let Blueprint { cut: Remainders { table_bits, .. }, load, .. } = blueprint;
        let (slots, most) = (whole_columns(slots_for(capacity, load)?), Slots::most(table_bits));
        // All bits in the table, and the stratum, come from the first hash word, behind the quotient.
        if slots > most {
            return Err(BuildError::CapacityTooLarge { capacity, max: (most as f64 * load) as usize });
        }
        Ok(Slots::new(slots, table_bits))
    }

    fn remainders(cut: Remainders) -> Remainders {
        cut
    }

    fn new(blueprint: Blueprint<Remainders>, columns: Slots, _: usize) -> Result<Self, BuildError> {
        let Blueprint { cut: remainders, load, .. } = blueprint;
        let primary = Level::new(columns.slots(), remainders.table_bits, remainders.rest_bits, true)?;
        let elsewhere = Elsewhere::new(&primary.table, remainders, load)?;
        Ok(Self::from_parts(primary, elsewhere, remainders, 0))
    }

    fn size_in_bits(blueprint: Blueprint<Remainders>, columns: Slots, _: usize) -> usize {
        let Blueprint { cut: remainders, load, .. } = blueprint;
        let Remainders { table_bits, rest_bits } = remainders;
        let primary = Level::size_in_bits(columns.slots(), table_bits, rest_bits, true);
        primary.saturating_add(Elsewhere::size_in_bits(columns.slots(), remainders, load))
    }

    #[inline]
    fn len(&self) -> usize {
        self.table().len() + self.elsewhere.len()
    }

    fn slots(&self) -> usize {
        self.table().slots() as usize
    }

    fn memory_bits(&self) -> usize {
        self.primary.memory_bits() + self.elsewhere.memory_bits()
    }

    #[inline(always)]
    fn prefetch(&self, place: Place) {
        self.table().prefetch(place.quotient);
    }

    #[inline(always)]
    fn contains<H: KeyHasher>(local: &Local<Self, H>, place: Place, digest: impl FnOnce() -> Digest) -> bool {
        let answer = local.table.table().answer(place);
        if answer == Answer::NO {
            return false;
        }
        // Where the block has no adaptivity bits, nothing but the rest of a large remainder can say otherwise.
        let settled = answer == Answer::YES && local.remainders.rest_bits == 0;
        settled || Self::settle(local, answer, digest(), place)
    }

    #[inline]
    fn contains_many<H: KeyHasher, K: Key>(local: &Local<Self, H>, keys: &[K], answers: &mut Vec<bool>) {
        let hasher = local.functions.hasher();
        let prepare = |key: &K| {
            let place = local.functions.place(hasher.digest_key(key));
            local.table.prefetch(place);
            place
        };
        batch::contains_many(keys, answers, prepare, |key, place| {
            Self::contains(local, place, || hasher.digest_key(key))
        });
    }

    fn find(&self, key: &Fingerprint) -> Option<Spot> {
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

    /// More than one, too, if a key of the back yard, which stands for itself, matches one of the primary table.
    fn count_matches(&self, key: &Fingerprint) -> usize {
        let elsewhere = match &self.elsewhere {
            _ if !self.is_hinted(key.quotient()) => 0,
            Elsewhere::Secondary(secondary) => {
                secondary.level.count_matches(secondary.baseline(key.baseline), key.tail)
            }
            Elsewhere::BackYard(yard) => yard.count_matches(key.quotient(), key.digest),
        };
        self.primary.count_matches(key.baseline, key.tail) + elsewhere
    }

    fn items_of(&self, quotient: u64) -> Vec<(Spot, Fingerprint)> {
        let primary = self.primary.items_of(quotient).into_iter();
        let primary = primary.map(|(slot, remainder, rest, string)| {
            (Spot::Primary(slot), Fingerprint::of_item(Baseline { quotient, remainder, rest }, string))
        });
        let elsewhere = if self.is_hinted(quotient) { self.elsewhere.items_of(quotient) } else { Vec::new() };
        primary.chain(elsewhere).collect()
    }

    fn stored_at(&self, quotient: u64) -> usize {
        let elsewhere = if self.is_hinted(quotient) { self.elsewhere.count(quotient) } else { 0 };
        self.table().run(quotient).map_or(0, |run| run.len()) + elsewhere
    }

    fn closest(&self, key: &Fingerprint) -> Option<u32> {
        let closest = self.primary.closest(key.baseline, key.tail);
        match &self.elsewhere {
            Elsewhere::Secondary(secondary) if self.is_hinted(key.quotient()) => {
                closest.max(secondary.level.closest(secondary.baseline(key.baseline), key.tail))
            }
            _ => closest,
        }
    }

    fn is_alone(&self, place: Place) -> bool {
        self.table().answer(place) == Answer::NO
            && self.primary.strings.is_plain(self.table().block_of(place.quotient).0)
    }

    /// The back yard has all bits that it uses.
    fn is_extensible(spot: Spot) -> bool {
        !matches!(spot, Spot::BackYard(_))
    }

    fn site(spot: Spot) -> Site {
        match spot {
            Spot::Primary(_) => Site::Primary,
            Spot::Secondary(_) => Site::Secondary,
            Spot::BackYard(place) => Site::BackYard(place),
        }
    }

    #[inline(always)]
    fn insert_fresh(&mut self, place: Place, mut agree: impl FnMut() -> bool) -> Option<bool> {
        Some(self.insert_fresh_by_pointer(place, &mut agree))
    }

    #[inline(always)]
    fn insert_fresh_by_pointer(&mut self, place: Place, agree: &mut dyn FnMut() -> bool) -> bool {
        #[cfg(test)]
        if self.is_crowded() {
            return false;
        }
        self.baseline(place).is_some_and(|baseline| self.primary.insert_fresh(baseline, agree))
    }

    /// Where they do not fit, they go elsewhere with all that is known of them.
    const PLACES_SAY_ALL: bool = false;

    fn insert_at(&mut self, _: Place, _: impl FnOnce() -> bool) -> Result<(), NoMemory> {
        debug_assert!(false, "places do not say all");
        Err(NoMemory)
    }

    fn insert_bare(&mut self, key: &Fingerprint, agree: impl FnOnce() -> bool) -> Result<(), NoMemory> {
        let Room { site, .. } = self.make_room(key)?;
        if agree() {
            self.place(key, 0, site);
        }
        Ok(())
    }

    fn put(&mut self, key: &Fingerprint, len: u32) -> Result<Room<Self>, NoMemory> {
        let room = self.make_room(key)?;
        self.place(key, len, room.site);
        Ok(room)
    }

    fn take(&mut self, key: &Fingerprint, site: Site) -> BitString {
        let bits = match (self.find_on(key, site), &mut self.elsewhere) {
            (Some(Spot::Primary(slot)), _) => return self.primary.remove(key.quotient(), slot),
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
        };
        self.refresh_hint(key.quotient());
        bits
    }

    fn restore(&mut self, key: &Fingerprint, len: u32, site: Site) {
        self.place(key, len, site);
    }

    fn shrink(&mut self, outgrown: BackYard) {
        self.elsewhere = Elsewhere::BackYard(outgrown);
    }

    /// Those in the back yard need none.
    fn set_length(&mut self, key: &Fingerprint, len: u32) -> u32 {
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

    fn ghost_length(&self, key: &Fingerprint) -> u32 {
        let (block, in_block) = self.table().block_of(key.quotient());
        self.primary.strings.ghost_length(block, in_block, key.tail)
    }

    fn add_ghost(&mut self, step: Step, function: u64, bits: BitString) {
        let (block, number) = self.ghost_number(step, function);
        self.primary.add_ghost(block, number, bits);
    }

    fn kill_ghosts(&mut self, step: Step, function: u64) -> Vec<BitString> {
        let (block, number) = self.ghost_number(step, function);
        self.primary.kill_ghosts(block, number)
    }

    fn ghosts(&self) -> Vec<(Step, u64)> {
        let ghosts = self.primary.strings.all_ghosts().map(|(block, number, _)| {
            let (in_block, stratum, parity) = adaptivity::ghost_of(number);
            (Step { stratum, quotient: self.table().first_slot(block) + u64::from(in_block) }, parity)
        });
        ghosts.collect()
    }

    fn ghost_counts(&self) -> [usize; 2] {
        [self.primary.strings.ghosts(), self.primary.strings.ghost_bits()]
    }

    #[inline]
    fn string_counts(&self) -> [usize; 2] {
        let counts = |strings: &Adaptivity| [strings.strings(), strings.bits()];
        let (primary, elsewhere) = (counts(&self.primary.strings), self.elsewhere.strings().map(counts));
        let elsewhere = elsewhere.unwrap_or_default();
        [primary[0] + elsewhere[0], primary[1] + elsewhere[1]]
    }

    fn levels(&self) -> Levels {
        Levels {
            primary: self.table().len(),
            elsewhere: self.elsewhere.len(),
            hinted: self.hinted_share(),
            bound: self.primary.bound(),
            longest_shift: self.primary.longest_shift,
            longest_secondary_shift: self.elsewhere.longest_shift(),
            large_remainders: self.primary.has_rest(),
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.primary.verify(true)?;
        self.elsewhere.verify(self.table().slots())?;
        self.verify_hints()?;
        if self.remainders.rest_bits > 0 { self.verify_signatures() } else { Ok(()) }
    }
}

/// The same fingerprints and ghosts.
impl PartialEq for BroomQuotients {
    fn eq(&self, other: &Self) -> bool {
        self.primary == other.primary
            && self.elsewhere == other.elsewhere
            && self.primary.strings.same_ghosts(&other.primary.strings)
    }
}
