//! Cache-line bins as the table: class and tag of a fingerprint stand in the line of its bin or beyond it, and
//! everything else beside the bins.
//!
//! Of equal fingerprints, those that differ in their adaptivity bits alone, none comes before the other: a string is
//! known by the [rank](crate::bins) of its fingerprint, and ranks follow the table. So a key that is taken back may
//! come behind its equals, which means nothing.
//!
//! The *flag* of a class, in the spare bits of the line, is set if one of its fingerprints has adaptivity bits or if it
//! has a ghost. So a query that finds a fingerprint and no flag is done after one line, and an insertion into a line
//! without flags has nothing to follow.

use std::convert::Infallible;

use crate::bins::{Ahead, Doubts, Found, Place, Plan, Refused, STEP, Shape, Table};
use crate::bits::BitString;
use crate::{BuildError, Digest, InvariantError, Key, KeyHasher, error::ensure};

use super::adaptivity::{self, Adaptivity};
use super::builder::Blueprint;
use super::columns::{Bins, Columns};
use super::fingerprint::{Baseline, Fingerprint, Remainders};
use super::functions::Step;
use super::lists::Claims;
use super::local::Local;
use super::roll::Roll;
use super::strings::Strings;
use super::table::{BroomTable, Levels, NoMemory, Room};

/// How fingerprints are cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BinCut {
    pub(super) shape: Shape,
    /// The width of a tag: that of the lines, but in tests that want many equal ones.
    pub(super) tag_bits: u32,
}

impl BinCut {
    pub(super) fn of(shape: Shape) -> Self {
        Self { shape, tag_bits: shape.tag_bits() }
    }
}

/// Where a stored fingerprint stands: its rank in its bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    bin: u64,
    rank: usize,
}

/// So many keys of a class are no crowd.
const FEW: usize = 8;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct BroomBins {
    pub(super) table: Table,
    columns: Bins,
    pub(super) strings: Strings,
    /// Ghosts alone, by bin and class.
    pub(super) ghosts: Adaptivity,
}

impl BroomBins {
    /// A table that was there before.
    pub(super) fn from_parts(table: Table, columns: Bins, strings: Strings, ghosts: Adaptivity) -> Self {
        Self { table, columns, strings, ghosts }
    }

    /// No ghosts, for so many bins of this shape.
    pub(super) fn no_ghosts(bins: u64, shape: Shape) -> Result<Adaptivity, BuildError> {
        Adaptivity::new(bins as usize, shape.classes)
    }

    /// Where a fingerprint belongs.
    fn place(&self, Baseline { quotient, remainder, .. }: Baseline) -> Place {
        let (bin, class) = self.columns.split(quotient);
        self.columns.place_of(bin, class, remainder)
    }

    /// The number of a step's ghosts in its bin under a function, and the bin.
    fn ghost_number(&self, Step { stratum, quotient }: Step, function: u64) -> (usize, u32) {
        let (bin, class) = self.columns.split(quotient);
        (bin as usize, adaptivity::ghost_number(class, stratum, function))
    }

    /// The ranks of the fingerprints with this baseline.
    fn ranks(&self, place: Place) -> std::ops::Range<usize> {
        let Found { slots, beyond, .. } = self.table.find_flagged(place);
        if beyond && self.table.contains_beyond(place) {
            return self.table.ranks_of(place);
        }
        let first = slots.trailing_zeros() as usize;
        first..first + slots.count_ones() as usize
    }

    /// The ranks with this baseline whose strings are prefixes of the query.
    fn matches(&self, key: &Fingerprint) -> impl Iterator<Item = usize> {
        let (place, tail) = (self.place(key.baseline), key.tail);
        self.ranks(place).filter(move |&rank| self.strings.get(place.bin, rank).is_prefix_of(tail))
    }

    /// Whether an item beyond the line is a prefix of the key, where the line has none like it.
    #[cold]
    #[inline(never)]
    fn settle_beyond<H: KeyHasher>(local: &Local<Self, H>, digest: Digest) -> bool {
        let (table, place) = (&local.table, local.functions.place(digest));
        if !table.table.contains_beyond(place) {
            return false;
        }
        // What is there without a string is a prefix of every key with its baseline, and most have none.
        table.table.find_flagged(place).flag == 0
            || table.strings.are_empty_from(place.bin, table.table.shape().slots as usize)
            || table.matches(&local.fingerprint(digest)).next().is_some()
    }

    /// Whether an item is a prefix of the key, where the line has items like it whose class is flagged. Apart from its
    /// caller, which shall need few registers: where the key belongs is worked out again.
    #[cold]
    #[inline(never)]
    fn settle<H: KeyHasher>(local: &Local<Self, H>, digest: Digest) -> bool {
        Self::settled(local, digest)
    }

    #[inline]
    fn settled<H: KeyHasher>(local: &Local<Self, H>, digest: Digest) -> bool {
        let (table, place) = (&local.table, local.functions.place(digest));
        let Found { slots, flag, beyond } = table.table.find_flagged(place);
        if slots != 0 && flag == 0 {
            return true;
        }
        if slots != 0 && table.strings.any_empty(place.bin, slots) {
            return true;
        }
        let overflown = beyond && table.table.contains_beyond(place);
        if flag == 0 || (slots == 0 && !overflown) {
            return overflown;
        }
        if overflown && table.strings.are_empty_from(place.bin, table.table.shape().slots as usize) {
            return true;
        }
        table.matches(&local.fingerprint(digest)).next().is_some()
    }

    /// The answer to a query of which this was found: two branches, both seldom taken, and none on the match.
    #[inline(always)]
    fn answer<H: KeyHasher>(local: &Local<Self, H>, found: Found, digest: impl FnOnce() -> Digest) -> bool {
        if found.is_only_beyond() {
            return Self::settle_beyond(local, digest());
        }
        if found.is_flagged() {
            return Self::settle(local, digest());
        }
        found.is_here()
    }

    /// All fingerprints of a quotient.
    fn roll(&self, quotient: u64) -> Roll {
        let (bin, class) = self.columns.split(quotient);
        let (items, mut strings) =
            (self.table.items_of(bin), self.strings.of_bin(bin).into_iter().peekable());
        Roll::new(items.iter().enumerate().filter_map(|(rank, item)| {
            let string = strings.next_if(|entry| entry.0 == rank).map_or(BitString::EMPTY, |entry| entry.1);
            (self.table.class(item) == class).then_some((item, string, rank))
        }))
    }

    /// The classes of a bin that have strings or ghosts, as bits.
    pub(super) fn adapted_classes(&self, bin: u64) -> u64 {
        let ghosts = self.ghosts.ghosts_of(bin as usize);
        let haunted = ghosts.fold(0, |classes, (number, _)| classes | 1_u64 << adaptivity::home_of(number));
        let strings = self.strings.of_bin(bin);
        let Some(&(last, _)) = strings.last() else { return haunted };
        let mut entries = self.table.entries(bin);
        if last >= entries.len() {
            entries = self.table.items_of(bin).iter().collect();
        }
        let class = |rank: usize| entries.get(rank).map_or(0, |&entry| 1 << self.table.class(entry));
        strings.iter().fold(haunted, |classes, &(rank, _)| classes | class(rank))
    }

    /// Sets the flags of a bin in which strings or ghosts have come or gone.
    fn refresh_flags(&mut self, bin: u64) {
        self.table.set_flags(bin, self.adapted_classes(bin));
    }

    /// Follows the insertion of a fingerprint, which came at this rank.
    fn follow(&mut self, bin: u64, rank: usize, string: BitString) {
        if self.table.has_flags(bin) || !string.is_empty() {
            self.strings.insert(bin, rank, string);
        }
        if !string.is_empty() {
            self.refresh_flags(bin);
        }
    }

    /// The rank that a newcomer gets, if ranks matter in its bin: that behind its equals.
    fn new_rank(&self, place: Place, string: BitString) -> usize {
        let matters = self.table.has_flags(place.bin) || !string.is_empty();
        if matters { self.table.ranks_of(place).end } else { 0 }
    }
}

impl BroomTable for BroomBins {
    type Cut = BinCut;
    type Columns = Bins;
    type Spot = Spot;
    /// The table decides what goes beyond the lines.
    type Site = ();
    type Outgrown = Infallible;

    fn columns(blueprint: Blueprint<BinCut>, capacity: usize) -> Result<Bins, BuildError> {
        if capacity == 0 {
            return Err(BuildError::ZeroCapacity);
        }
        let Blueprint { cut: BinCut { shape, tag_bits }, load, .. } = blueprint;
        let Plan { bins, .. } = Plan::new(shape, load, capacity, 0)?;
        let most = Bins::most(shape.classes, tag_bits);
        if bins > most {
            let max = (most as f64 * load * f64::from(shape.slots)) as usize;
            return Err(BuildError::CapacityTooLarge { capacity, max });
        }
        Ok(Bins::new(bins, shape.classes, tag_bits))
    }

    fn remainders(BinCut { tag_bits, .. }: BinCut) -> Remainders {
        Remainders { table_bits: tag_bits, rest_bits: 0 }
    }

    fn new(blueprint: Blueprint<BinCut>, columns: Bins, capacity: usize) -> Result<Self, BuildError> {
        let (shape, bins) = (blueprint.cut.shape, columns.count());
        let table = Table::for_keys(bins, shape, capacity)?;
        let (strings, ghosts) = (Strings::new(bins, shape.slots), Self::no_ghosts(bins, shape)?);
        Ok(Self::from_parts(table, columns, strings, ghosts))
    }

    fn size_in_bits(blueprint: Blueprint<BinCut>, columns: Bins, capacity: usize) -> usize {
        let bins = columns.count();
        Table::size_for_keys(bins, blueprint.cut.shape, capacity) + Adaptivity::size_in_bits(bins as usize)
    }

    #[inline]
    fn len(&self) -> usize {
        self.table.len
    }

    fn slots(&self) -> usize {
        self.table.bins() as usize * self.table.shape().slots as usize
    }

    fn memory_bits(&self) -> usize {
        self.table.memory_bits() + self.strings.memory_bits() + self.ghosts.memory_bits()
    }

    #[inline(always)]
    fn prefetch(&self, place: Place) {
        self.table.prefetch(place.bin);
    }

    #[inline(always)]
    fn contains<H: KeyHasher>(local: &Local<Self, H>, place: Place, digest: impl FnOnce() -> Digest) -> bool {
        let table = &local.table.table;
        table.ask_flagged(table.line(place.bin), place, |found| Self::answer(local, found, digest))
    }

    /// The machine is chosen once for a batch, and what one line does not settle is settled at its end.
    #[inline]
    fn contains_many<H: KeyHasher, K: Key>(local: &Local<Self, H>, keys: &[K], answers: &mut Vec<bool>) {
        let (table, functions) = (&local.table.table, &local.functions);
        answers.clear();
        answers.resize(keys.len(), false);
        for (keys, answers) in keys.chunks(Doubts::MOST).zip(answers.chunks_mut(Doubts::MOST)) {
            let locate = |_: &Table, key: &K| functions.place(functions.hasher().digest_key(key));
            let (mut ahead, mut doubts) = (Ahead::new(keys, table, locate), Doubts::new());
            for answers in answers.chunks_mut(STEP) {
                table.find_many_flagged(ahead.next(table), answers, &mut doubts);
            }
            for query in doubts.iter() {
                let digest = functions.hasher().digest_key(&keys[query]);
                answers[query] = Self::settled(local, digest);
            }
        }
    }

    fn find(&self, key: &Fingerprint) -> Option<Spot> {
        let (bin, _) = self.columns.split(key.quotient());
        self.matches(key).next().map(|rank| Spot { bin, rank })
    }

    fn count_matches(&self, key: &Fingerprint) -> usize {
        self.matches(key).count()
    }

    /// Few keys are looked for one by one, a crowd in an ordered list of all that the class has.
    fn claim_all(&self, keys: &[Fingerprint]) -> Vec<Option<Spot>> {
        let Some(first) = keys.first().filter(|_| keys.len() > FEW) else {
            let mut claims = Claims::new();
            return keys.iter().map(|key| claims.claim(self, key)).collect();
        };
        let ((bin, _), mut roll) = (self.columns.split(first.quotient()), self.roll(first.quotient()));
        let item = |key: &Fingerprint| self.table.entry(self.place(key.baseline));
        keys.iter().map(|key| roll.claim(item(key), key.tail).map(|rank| Spot { bin, rank })).collect()
    }

    fn items_of(&self, quotient: u64) -> Vec<(Spot, Fingerprint)> {
        let (bin, _) = self.columns.split(quotient);
        let items = self.roll(quotient).into_entries().map(|(item, string, rank)| {
            let remainder = self.table.tag(item) >> (self.table.shape().tag_bits() - self.columns.tag_bits());
            let baseline = Baseline { quotient, remainder, rest: 0 };
            (Spot { bin, rank }, Fingerprint::of_item(baseline, string))
        });
        items.collect()
    }

    fn stored_at(&self, quotient: u64) -> usize {
        let (bin, class) = self.columns.split(quotient);
        self.table.count_class(bin, class)
    }

    fn closest(&self, key: &Fingerprint) -> Option<u32> {
        let place = self.place(key.baseline);
        self.ranks(place).map(|rank| self.strings.get(place.bin, rank).common(key.tail)).max()
    }

    fn is_alone(&self, place: Place) -> bool {
        let Found { slots, flag, beyond } = self.table.find_flagged(place);
        slots == 0 && flag == 0 && !(beyond && self.table.contains_beyond(place))
    }

    fn is_extensible(_: Spot) -> bool {
        true
    }

    fn site(_: Spot) {}

    #[inline(always)]
    fn insert_fresh(&mut self, place: Place, agree: impl FnMut() -> bool) -> Option<bool> {
        self.table.insert_new_inlined(place, agree)
    }

    fn insert_fresh_by_pointer(&mut self, place: Place, agree: &mut dyn FnMut() -> bool) -> bool {
        self.table.insert_new(place, agree)
    }

    fn insert_fresh_full(&mut self, place: Place, agree: &mut dyn FnMut() -> bool) -> bool {
        self.table.insert_new_full(place, agree)
    }

    const PLACES_SAY_ALL: bool = true;

    fn insert_bare(&mut self, key: &Fingerprint, agree: impl FnOnce() -> bool) -> Result<(), NoMemory> {
        self.insert_at(self.place(key.baseline), agree)
    }

    fn insert_at(&mut self, place: Place, agree: impl FnOnce() -> bool) -> Result<(), NoMemory> {
        let rank = self.new_rank(place, BitString::EMPTY);
        let inserted = self.table.insert_for_now(place).map_err(|Refused| NoMemory)?;
        if agree() {
            inserted.keep();
            self.follow(place.bin, rank, BitString::EMPTY);
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.table.hold(true);
    }

    fn end(&mut self) {
        self.table.hold(false);
    }

    fn put(&mut self, key: &Fingerprint, len: u32) -> Result<Room<Self>, NoMemory> {
        let (place, string) = (self.place(key.baseline), key.tail.prefix(len));
        let rank = self.new_rank(place, string);
        self.table.insert(place).map_err(|Refused| NoMemory)?;
        self.follow(place.bin, rank, string);
        Ok(Room { site: (), outgrown: None })
    }

    fn take(&mut self, key: &Fingerprint, (): ()) -> BitString {
        let Some(Spot { bin, rank }) = self.find(key) else {
            debug_assert!(false, "a stored key matches its own fingerprint");
            return BitString::EMPTY;
        };
        let string =
            if self.table.has_flags(bin) { self.strings.remove(bin, rank) } else { BitString::EMPTY };
        self.table.remove(self.place(key.baseline));
        if !string.is_empty() {
            self.refresh_flags(bin);
        }
        string
    }

    fn restore(&mut self, key: &Fingerprint, len: u32, (): ()) {
        #[cfg(not(test))]
        let restored = self.put(key, len);
        #[cfg(test)]
        let restored = crate::bins::testing::fault::spare(|| self.put(key, len));
        debug_assert!(restored.is_ok(), "what was taken finds the room that it has left");
    }

    fn shrink(&mut self, outgrown: Infallible) {
        match outgrown {}
    }

    fn set_length(&mut self, key: &Fingerprint, len: u32) -> u32 {
        let Some(Spot { bin, rank }) = self.find(key) else { return 0 };
        let old = self.strings.replace(bin, rank, key.tail.prefix(len));
        self.refresh_flags(bin);
        old.len()
    }

    fn ghost_length(&self, key: &Fingerprint) -> u32 {
        let (bin, class) = self.columns.split(key.quotient());
        self.ghosts.ghost_length(bin as usize, class, key.tail)
    }

    fn add_ghost(&mut self, step: Step, function: u64, bits: BitString) {
        let (bin, number) = self.ghost_number(step, function);
        if !bits.is_empty() {
            self.ghosts.add_ghost(bin, number, bits);
            self.refresh_flags(bin as u64);
        }
    }

    fn kill_ghosts(&mut self, step: Step, function: u64) -> Vec<BitString> {
        let (bin, number) = self.ghost_number(step, function);
        let dead = self.ghosts.kill_ghosts(bin, number);
        if !dead.is_empty() {
            self.refresh_flags(bin as u64);
        }
        dead
    }

    fn ghosts(&self) -> Vec<(Step, u64)> {
        let ghosts = self.ghosts.all_ghosts().map(|(bin, number, _)| {
            let (class, stratum, parity) = adaptivity::ghost_of(number);
            (Step { stratum, quotient: self.columns.join(bin as u64, class) }, parity)
        });
        ghosts.collect()
    }

    fn ghost_counts(&self) -> [usize; 2] {
        [self.ghosts.ghosts(), self.ghosts.ghost_bits()]
    }

    fn string_counts(&self) -> [usize; 2] {
        [self.strings.len(), self.strings.bits()]
    }

    fn levels(&self) -> Levels {
        let (elsewhere, slots) = (self.table.items_elsewhere(), self.table.shape().slots);
        // The last class of a full line, and those behind it, may go on beyond the line.
        let classes = self.columns.classes();
        let lines = (0..self.table.bins()).map(|bin| self.table.entries(bin));
        let full = lines.filter(|entries| entries.len() == slots as usize);
        let last = full.filter_map(|entries| entries.last().map(|&entry| u64::from(self.table.class(entry))));
        let hinted: u64 = last.map(|class| classes - class).sum();
        Levels {
            primary: self.table.len - elsewhere,
            elsewhere,
            hinted: hinted as f64 / self.columns.quotients() as f64,
            bound: slots.into(),
            longest_shift: slots.into(),
            longest_secondary_shift: 0,
            large_remainders: false,
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()?;
        self.ghosts.verify_codes()?;
        ensure!(self.ghosts.strings() == 0, "{} strings among the ghosts", self.ghosts.strings());
        let mut bits = 0;
        for bin in 0..self.table.bins() {
            bits += self.verify_bin(bin)?;
        }
        ensure!(bits == self.strings.bits(), "{bits} adaptivity bits, {} counted", self.strings.bits());
        let strings = self.strings.iter().count();
        ensure!(strings == self.strings.len(), "{strings} strings, {} counted", self.strings.len());
        Ok(())
    }
}
