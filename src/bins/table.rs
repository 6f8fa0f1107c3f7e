//! Bins, and the next level behind them: a multiset of (bin, class, tag).
//!
//! Of the items of a bin, the line holds the smallest by class and tag, as many as fit, and the next level the rest. So
//! a query needs the next level only if its run ends with a full bin, and equal contents make equal bins, in whichever
//! order they came and went. A removal from a full bin pulls the smallest item of the next level back.

use crate::bits::{AlignedWords, Isa, prefetch};
use crate::filter::collision_rate;
use crate::{BuildError, Digest, InvariantError, error::ensure};

use super::ahead::Doubts;
#[cfg(target_arch = "x86_64")]
use super::layout::{CentiCut, DefaultCut, MilliCut};
use super::layout::{Layout, Shape};
use super::line::{Entry, Fingerprint, Item, Line};
#[cfg(target_arch = "x86_64")]
use super::machine::inlined::Inlined;
use super::machine::{Machine, Search};
use super::next::{Next, Refused};
use super::operations::{Batch, Operations};
use super::second::Second;

/// How many places the operations on many keys take at once: the machine is chosen once for so many.
pub(crate) const STEP: usize = 16;

/// The bytes of a line.
pub(super) const LINE_BYTES: u64 = 64;

/// A compact multiset of (bin, class, tag). See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// `bins` lines of 8 words.
    words: AlignedWords,
    bins: u64,
    /// Items in both levels.
    pub(crate) len: usize,
    pub(super) operations: &'static Operations,
    /// The machine for operations that are compiled into their callers, if there is one for the layout.
    #[cfg(target_arch = "x86_64")]
    pub(super) inlined: Option<Inlined>,
    shape: Shape,
    pub(super) next: Next,
}

/// Where a key belongs, and what is stored of it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub(crate) bin: u64,
    pub(super) print: Fingerprint,
}

impl Place {
    /// The place in a bin of a key whose number goes on with these digits behind the bin: first the class, then the
    /// tag.
    #[inline(always)]
    pub(crate) fn new(bin: u64, digits: u64) -> Self {
        Self { bin, print: Fingerprint(digits) }
    }

    /// The class, as one of so many.
    #[inline(always)]
    pub(crate) fn class(self, classes: u64) -> u64 {
        ((u128::from(self.print.0) * u128::from(classes)) >> 64) as u64
    }

    /// As two numbers, the first of them the bin.
    #[inline(always)]
    pub(crate) fn to_words(self) -> [u64; 2] {
        [self.bin, self.print.0]
    }

    /// From the two numbers.
    #[inline(always)]
    pub(crate) fn from_words([bin, print]: [u64; 2]) -> Self {
        Self { bin, print: Fingerprint(print) }
    }
}

impl Table {
    /// The most bins: of 64 digits, their numbers leave 24 for class and tag, which have 22 at most.
    pub(crate) const MAX_BINS: u64 = 1 << 40;

    /// An empty table.
    pub(super) fn new(bins: u64, shape: Shape, next: Next) -> Result<Self, BuildError> {
        debug_assert!((1..=Self::MAX_BINS).contains(&bins));
        let bytes = bins as usize * size_of::<Line>();
        let words = AlignedWords::zeroed(bytes / 8).ok_or(BuildError::OutOfMemory { bytes })?;
        let mut table = Self::from_parts(words, shape, 0, next);
        let empty = (table.operations.empty)();
        table.lines_mut().fill(empty);
        Ok(table)
    }

    /// An empty table of so many bins that is to hold so many keys.
    pub(crate) fn for_keys(bins: u64, shape: Shape, keys: usize) -> Result<Self, BuildError> {
        Self::new(bins, shape, Next::for_keys(bins, shape, keys)?)
    }

    /// The memory that [`for_keys`](Self::for_keys) takes, in bits.
    pub(crate) fn size_for_keys(bins: u64, shape: Shape, keys: usize) -> usize {
        Self::line_bits(bins) + Second::size_in_bits(bins, shape, keys)
    }

    /// A table of so many items that was there before: these are its lines, one at least.
    pub(super) fn from_parts(words: AlignedWords, shape: Shape, len: usize, next: Next) -> Self {
        let isa = Isa::active();
        Self {
            bins: words.len() as u64 * 8 / LINE_BYTES,
            words,
            len,
            operations: Operations::choose(isa, shape),
            #[cfg(target_arch = "x86_64")]
            inlined: Inlined::choose(isa, shape),
            shape,
            next,
        }
    }

    /// The bytes of all lines.
    pub(super) fn bytes(&self) -> &[u8] {
        self.words.as_bytes()
    }

    /// The same table worked on with another instruction set, for tests that compare them.
    #[cfg(test)]
    pub(super) fn with_isa(mut self, isa: Isa) -> Self {
        self.operations = Operations::choose(isa, self.shape);
        #[cfg(target_arch = "x86_64")]
        {
            self.inlined = Inlined::choose(isa, self.shape);
        }
        self.next = self.next.with_isa(isa);
        self
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn bins(&self) -> u64 {
        self.bins
    }

    /// How often another key has bin, class and tag of one of so many keys.
    pub(super) fn collision_rate(&self, keys: usize) -> f64 {
        collision_rate(keys, self.bins * u64::from(self.shape.classes), self.shape.tag_bits())
    }

    /// The memory of so many bins without the next level, in bits.
    pub(super) fn line_bits(bins: u64) -> usize {
        bins as usize * 8 * size_of::<Line>()
    }

    /// The memory of all levels, in bits.
    pub(crate) fn memory_bits(&self) -> usize {
        self.words.len() * 64 + self.next.memory_bits()
    }

    #[inline(always)]
    pub(super) fn lines(&self) -> &[Line] {
        // SAFETY: there are 8 words for each bin, at least one bin, and the words are aligned to lines. A line is 64
        // bytes without padding, in which every value is allowed.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bins as usize) }
    }

    #[inline(always)]
    pub(super) fn lines_mut(&mut self) -> &mut [Line] {
        // SAFETY: as in `lines`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.bins as usize) }
    }

    #[inline(always)]
    pub(crate) fn line(&self, bin: u64) -> &Line {
        &self.lines()[bin as usize]
    }

    #[inline(always)]
    pub(super) fn line_mut(&mut self, bin: u64) -> &mut Line {
        &mut self.lines_mut()[bin as usize]
    }

    /// Where a key belongs: the upper half of its digest times the number of bins is a fixed-point number, whose
    /// integer part is the bin; class and tag are the first digits of the fraction.
    #[inline(always)]
    pub(super) fn place(&self, digest: Digest) -> Place {
        self.place_of(digest.hi)
    }

    /// Where a key with this upper half belongs.
    #[inline(always)]
    pub(super) fn place_of(&self, hi: u64) -> Place {
        let product = u128::from(hi) * u128::from(self.bins);
        Place::new((product >> 64) as u64, product as u64)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, bin: u64) {
        prefetch(self.lines().as_ptr().wrapping_add(bin as usize));
    }

    #[inline(always)]
    pub(crate) fn contains(&self, place: Place) -> bool {
        self.contains_in(self.line(place.bin), place)
    }

    /// Whether the item of a digest is stored.
    #[inline(always)]
    pub(super) fn contains_digest(&self, digest: Digest) -> bool {
        let (place, line) = self.place_and_line(digest);
        self.contains_in(line, place)
    }

    /// Where a key belongs, and the line of that bin.
    #[inline(always)]
    pub(super) fn place_and_line(&self, digest: Digest) -> (Place, &Line) {
        let place = self.place(digest);
        // SAFETY: a place of this table names one of its bins: a number below 2^64 times theirs, divided by 2^64.
        (place, unsafe { self.lines().get_unchecked(place.bin as usize) })
    }

    /// Whether the item is stored, whose bin is this line.
    #[inline(always)]
    fn contains_in(&self, line: &Line, place: Place) -> bool {
        #[cfg(target_arch = "x86_64")]
        if let Some(machine) = self.inlined {
            let (found, beyond) = match machine {
                Inlined::Default(machine) => {
                    line.find::<DefaultCut, _>(machine, place.print.item::<DefaultCut>())
                }
                Inlined::Centi(machine) => line.find::<CentiCut, _>(machine, place.print.item::<CentiCut>()),
                Inlined::Milli(machine) => line.find::<MilliCut, _>(machine, place.print.item::<MilliCut>()),
                Inlined::DefaultBmi2(machine) => {
                    line.find::<DefaultCut, _>(machine, place.print.item::<DefaultCut>())
                }
                _ => (false, true),
            };
            // If it may be beyond, the line is looked at once more: asking the second level from here, in each
            // version, makes all queries slower.
            if !beyond {
                return found;
            }
        }
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.contains)(self, line, place) }
    }

    /// The same with the instructions of one machine, all levels included.
    #[inline(always)]
    pub(super) fn find_in<L: Layout, M: Search>(&self, machine: M, line: &Line, place: Place) -> bool {
        let item = place.print.item::<L>();
        let (found, beyond) = line.find::<L, M>(machine, item);
        if beyond { found || self.overflown(place.bin, item.entry::<L>()) } else { found }
    }

    /// One answer for each place, as far as the bins have it; those that the next level has to be asked for are noted.
    #[inline(always)]
    pub(super) fn contains_many(&self, places: &[Place], answers: &mut [bool], doubts: &mut Doubts) {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.contains_many)(self, places, answers, doubts) }
    }

    /// How many equal items there are.
    pub(super) fn count(&self, place: Place) -> usize {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.count)(self, place.bin, place.print) }
    }

    /// Inserts an item: whether none was equal. Fails only if the next level lacks memory; nothing changes then.
    #[inline(always)]
    pub(crate) fn insert(&mut self, place: Place) -> Result<bool, Refused> {
        #[cfg(target_arch = "x86_64")]
        if let Some(machine) = self.inlined {
            let line = self.line_mut(place.bin);
            let inserted = match machine {
                Inlined::Default(machine) => {
                    line.insert::<DefaultCut, _>(machine, place.print.item::<DefaultCut>())
                }
                Inlined::Centi(machine) => {
                    line.insert::<CentiCut, _>(machine, place.print.item::<CentiCut>())
                }
                Inlined::Milli(machine) => {
                    line.insert::<MilliCut, _>(machine, place.print.item::<MilliCut>())
                }
                _ => None,
            };
            if let Some(new) = inserted {
                self.len += 1;
                return Ok(new);
            }
        }
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert)(self, place.bin, place.print) }
    }

    /// Inserts many items, in order.
    #[inline(always)]
    pub(super) fn insert_many(&mut self, places: &[Place]) -> Batch {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert_many)(self, places) }
    }

    pub(super) fn contains_entry(&self, bin: u64, entry: Entry) -> bool {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.contains_entry)(self, bin, entry) }
    }

    pub(super) fn count_entry(&self, bin: u64, entry: Entry) -> usize {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.count_entry)(self, bin, entry) }
    }

    /// Inserts an item that is known by its class and tag.
    pub(super) fn insert_entry(&mut self, bin: u64, entry: Entry) -> Result<bool, Refused> {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert_entry)(self, bin, entry) }
    }

    /// Removes an item that is known by its class and tag.
    pub(super) fn remove_entry(&mut self, bin: u64, entry: Entry) -> bool {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.remove_entry)(self, bin, entry) }
    }

    /// Removes an item; `false`, and nothing changes, if there is none.
    #[inline(always)]
    pub(crate) fn remove(&mut self, place: Place) -> bool {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.remove)(self, place.bin, place.print) }
    }

    /// Whether the next level has this item.
    #[cold]
    #[inline(never)]
    pub(super) fn overflown(&self, bin: u64, entry: Entry) -> bool {
        self.next.contains(bin, entry)
    }

    /// Inserts an item where its bin is full: the largest of all goes to the next level.
    #[inline(always)]
    pub(super) fn insert_full<L: Layout, M: Machine>(
        &mut self,
        machine: M,
        bin: u64,
        item: Item,
    ) -> Result<bool, Refused> {
        let line = self.line(bin);
        let (entry, last) = (item.entry::<L>(), line.last::<L>());
        let new = if entry < last {
            self.next.insert(bin, last)?;
            // No item beyond the bin is as small as this.
            self.line_mut(bin).replace_last::<L, M>(machine, item)
        } else {
            let (found, _) = line.find::<L, M>(machine, item);
            self.next.insert(bin, entry)? && !found
        };
        self.len += 1;
        Ok(new)
    }

    /// Inserts an item where its bin is full and has no flags, if none is equal and `admit` agrees, which is asked when
    /// there is room for it. Whether it was asked; if not, nothing has changed.
    #[inline(always)]
    pub(super) fn insert_into_full<L: Layout, M: Machine>(
        &mut self,
        machine: M,
        bin: u64,
        item: Item,
        admit: &mut dyn FnMut() -> bool,
    ) -> bool {
        let line = self.line(bin);
        if !line.is_full::<L>() || line.flags::<L>() != 0 {
            return false;
        }
        let (entry, last) = (item.entry::<L>(), line.last::<L>());
        // What is beyond the line is not less than its last item, so one that is less can only have equals in the line.
        if entry == last || entry < last && line.find::<L, M>(machine, item).0 {
            return false;
        }
        let Some(guest) = self.next.invite(bin, entry.max(last), entry < last) else { return false };
        if admit() {
            guest.keep();
            if entry < last {
                self.line_mut(bin).replace_last::<L, M>(machine, item);
            }
            self.len += 1;
        }
        true
    }

    /// Removes an item from wherever it is.
    #[inline(always)]
    pub(super) fn remove_item<L: Layout, M: Machine>(&mut self, machine: M, bin: u64, item: Item) -> bool {
        let line = self.line_mut(bin);
        let (full, last_class) = (line.is_full::<L>(), line.last_class::<L>());
        let removed = if line.remove::<L, M>(machine, item) {
            if full {
                self.pull_back::<L, M>(machine, bin, last_class);
            }
            true
        } else {
            full && item.class as u32 >= last_class && self.next.remove(bin, item.entry::<L>())
        };
        self.len -= usize::from(removed);
        removed
    }

    /// Moves the smallest item that a bin has in the next level into the line, where a slot has become free. Without
    /// this, a bin that was full once would send ever more items away. None of them has a class below `from`.
    fn pull_back<L: Layout, M: Machine>(&mut self, machine: M, bin: u64, from: u32) {
        if self.next.len() == 0 {
            return;
        }
        let firsts = (from..L::CLASSES).map(|class| Entry(class << L::TAG_BITS));
        if let Some(entry) = firsts.into_iter().find_map(|first| self.next.ceiling(bin, first)) {
            self.next.remove(bin, entry);
            self.line_mut(bin).insert::<L, M>(machine, entry.item::<L>());
        }
    }

    /// The smallest item of the same bin and class that is not less than this one.
    pub(super) fn ceiling(&self, bin: u64, entry: Entry) -> Option<Entry> {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.ceiling)(self, bin, entry) }
    }

    /// How many items lie beyond the lines.
    pub(crate) fn items_elsewhere(&self) -> usize {
        self.next.len()
    }

    /// While it is held, no level beyond the lines moves to more memory than it has: what was removed finds the room
    /// that it has left, and cannot be refused, if all that was inserted since is removed first. Makes what room is due
    /// before.
    pub(crate) fn hold(&mut self, held: bool) {
        self.next.hold(held);
    }

    pub(super) fn clear(&mut self) {
        let empty = (self.operations.empty)();
        self.lines_mut().fill(empty);
        self.next.clear();
        self.len = 0;
    }

    /// All items, as bin and entry; those of a bin in order, but for those beyond it, which come last.
    pub(super) fn items(&self) -> impl Iterator<Item = (u64, Entry)> {
        let bins =
            (0..self.bins).flat_map(|bin| self.entries(bin).into_iter().map(move |entry| (bin, entry)));
        bins.chain(self.next.items())
    }

    /// The items of a bin in the line, in order.
    pub(crate) fn entries(&self, bin: u64) -> Vec<Entry> {
        let mut entries = Vec::new();
        (self.operations.entries)(self.line(bin), &mut entries);
        entries
    }

    /// Checks everything that the other functions rely on. Walks the whole table.
    pub(crate) fn verify(&self) -> Result<(), InvariantError> {
        let mut items = self.next.len();
        for (line, bin) in self.lines().iter().zip(0_u64..) {
            let checked = (self.operations.verify)(line);
            checked.map_err(|error| InvariantError::new(format!("bin {bin}: {}", error.0)))?;
            items += self.entries(bin).len();
        }
        ensure!(items == self.len, "{items} items in the bins, {} counted", self.len);
        self.next.verify()?;
        for (bin, entry) in self.next.items() {
            let entries = self.entries(bin);
            ensure!(
                entries.len() == self.shape.slots as usize,
                "bin {bin} has items beyond it but only {} itself",
                entries.len()
            );
            ensure!(entries.iter().all(|&here| here <= entry), "bin {bin} holds more than {entry:?}");
        }
        Ok(())
    }
}

/// Equal items in equal bins, whatever room the next level has.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |next: &Next| {
            let mut items: Vec<(u64, Entry)> = next.items().collect();
            items.sort_unstable();
            items
        };
        self.shape == other.shape
            && self.len == other.len
            && self.words == other.words
            && sorted(&self.next) == sorted(&other.next)
    }
}
