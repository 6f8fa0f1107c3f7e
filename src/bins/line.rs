//! One bin: an aligned line of tags and metadata.
//!
//! The items of a class stand side by side, a *run*; runs stand in the order of their classes from slot 0 on, without
//! gaps, and the tags of a run ascend. Bit c of the *occupied* bits says that class c has a run. The *borders* say
//! where runs begin and end: bit 0 is set, and bit j + 1 is if a run ends at slot j. So the run of a class lies between
//! the k-th border and the next, where k is how many classes before it have one; the highest border is the number of
//! items.
//!
//! Slots that are not in use are 0: equal items make equal lines, in whichever order they came and went.

use crate::bits::low_mask;
use crate::{InvariantError, error::ensure};

use super::layout::Layout;
use super::machine::{Machine, Search};

/// One bin. See the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(super) [u8; 64]);

/// The digits of a key's number behind its bin, as a fraction: of so many classes its class is the integer part of the
/// product, and what follows are the digits of the tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint(pub(super) u64);

/// What a line stores of a key, cut as it does: its class, and its tag in the leading digits of a word.
///
/// ```text
/// bit 63                                  0
///     | planes | byte 0 | byte 1 | …      |
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) class: usize,
    tag: u64,
}

/// Class and tag as a number, the class on top: the digits that a line stores. Items of a bin are ordered by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(pub(super) u32);

impl Fingerprint {
    /// A shift, where the number of classes is a power of two.
    #[inline(always)]
    pub(super) fn item<L: Layout>(self) -> Item {
        let product = u128::from(self.0) * u128::from(L::CLASSES);
        Item { class: (product >> 64) as usize, tag: product as u64 }
    }
}

impl Item {
    /// The `column`-th byte of the tag.
    #[inline(always)]
    fn byte<L: Layout>(self, column: u32) -> u8 {
        (self.tag >> (64 - L::PLANES - 8 * (column + 1))) as u8
    }

    /// The `plane`-th further bit of the tag.
    #[inline(always)]
    fn bit(self, plane: u32) -> u64 {
        self.tag >> (63 - plane) & 1
    }

    /// The same bit 64 times.
    #[inline(always)]
    fn bits(self, plane: u32) -> u64 {
        ((self.tag << plane).cast_signed() >> 63).cast_unsigned()
    }

    #[inline(always)]
    pub(super) fn entry<L: Layout>(self) -> Entry {
        Entry((self.class as u32) << L::TAG_BITS | (self.tag >> (64 - L::TAG_BITS)) as u32)
    }
}

impl Entry {
    #[inline(always)]
    pub(super) fn item<L: Layout>(self) -> Item {
        Item { class: (self.0 >> L::TAG_BITS) as usize, tag: u64::from(self.0) << (64 - L::TAG_BITS) }
    }
}

/// The place of a class in a line: its borders as single bits, the same one twice if it has no run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// The border before it.
    pub(super) first: u64,
    /// The border behind it.
    pub(super) last: u64,
}

impl Run {
    /// Its slots as bits.
    #[inline(always)]
    pub(super) fn slots(self) -> u64 {
        self.last.wrapping_sub(self.first)
    }
}

/// What is known of an item after its line was read. Words rather than bits: three bits would be packed into one
/// register and taken apart again on their way to where they are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// The slots that hold it, as bits.
    pub(crate) slots: u64,
    /// The flag of its class; 0 if it is not set.
    pub(crate) flag: u64,
    /// Whether items like it may lie beyond the line.
    pub(crate) beyond: bool,
}

impl Found {
    /// Whether it is in the line.
    #[inline(always)]
    pub(crate) fn is_here(self) -> bool {
        self.slots != 0
    }

    /// Whether it can only be beyond the line.
    #[inline(always)]
    pub(crate) fn is_only_beyond(self) -> bool {
        self.beyond & (self.slots == 0)
    }

    /// Whether it is in the line and its flag is set.
    #[inline(always)]
    pub(crate) fn is_flagged(self) -> bool {
        (self.slots != 0) & (self.flag != 0)
    }
}

/// Everything of a line but the bytes of the tags.
#[derive(Clone, Copy)]
struct Meta {
    /// The further bits of all tags.
    planes: [u64; 8],
    borders: u64,
    /// What is above the borders in their word.
    above: u64,
    occupied: u64,
}

/// Where a plane begins: the byte, and the bit in it.
#[inline(always)]
fn plane_at<L: Layout>(plane: u32) -> (usize, u32) {
    let bit = L::PLANES_AT + plane * L::SLOTS;
    ((bit / 8) as usize, bit % 8)
}

impl Line {
    /// A bin without items.
    pub(super) fn empty<L: Layout>() -> Self {
        let mut line = Self([0; 64]);
        line.0[L::BORDERS_AT as usize] = 1;
        line
    }

    /// The 8 bytes from this one on.
    #[inline(always)]
    fn word(&self, byte: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[byte..byte + 8]);
        u64::from_le_bytes(word)
    }

    /// The eight bytes from this one on, or the last ones.
    #[inline(always)]
    pub(super) fn window(&self, byte: u32) -> &[u8; 8] {
        let byte = (byte as usize).min(56);
        self.0[byte..].first_chunk().unwrap_or(&[0; 8])
    }

    #[inline(always)]
    fn set_word(&mut self, byte: usize, word: u64) {
        self.0[byte..byte + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// Which classes have a run.
    #[inline(always)]
    pub(super) fn occupied<L: Layout>(&self) -> u64 {
        self.word(56) >> (64 - L::CLASSES)
    }

    /// The borders, and whatever lies above them: nothing that looks for the k-th border finds that.
    #[inline(always)]
    fn borders_and_above<L: Layout>(&self) -> u64 {
        self.word(L::BORDERS_AT as usize)
    }

    #[inline(always)]
    pub(super) fn borders<L: Layout>(&self) -> u64 {
        self.borders_and_above::<L>() & L::BORDERS
    }

    /// The `plane`-th further bit of all tags, and whatever lies above.
    #[inline(always)]
    fn plane_and_above<L: Layout>(&self, plane: u32) -> u64 {
        let (byte, shift) = plane_at::<L>(plane);
        self.word(byte) >> shift
    }

    /// Everything but the bytes of the tags.
    #[inline(always)]
    fn meta<L: Layout>(&self) -> Meta {
        let mut planes = [0; 8];
        let mut plane = 0;
        while plane < L::PLANES {
            planes[plane as usize] = self.plane_and_above::<L>(plane) & low_mask(L::SLOTS);
            plane += 1;
        }
        let borders = self.borders_and_above::<L>();
        let (borders, above) = (borders & L::BORDERS, borders & !L::BORDERS);
        Meta { planes, borders, above, occupied: self.occupied::<L>() }
    }

    /// Writes everything but the bytes of the tags, and leaves the spare bits as they are.
    ///
    /// From the bottom to the top, a word for each field: what a word has too much is overwritten by the next one. So
    /// nothing is read in between, which would have to wait for what was written.
    #[inline(always)]
    fn set_meta<L: Layout>(&mut self, meta: Meta) {
        let mut plane = 0;
        while plane < L::PLANES {
            let (byte, shift) = plane_at::<L>(plane);
            // The byte where a plane begins has the end of the one before it.
            let before = if plane == 0 { 0 } else { meta.planes[plane as usize - 1] >> (L::SLOTS - shift) };
            self.set_word(byte, before | meta.planes[plane as usize] << shift);
            plane += 1;
        }
        let borders = meta.above | meta.borders;
        self.set_word(L::BORDERS_AT as usize, borders);
        // Below the classes the last word has the end of the borders, and the spare bits.
        let mut last = meta.occupied << (64 - L::CLASSES);
        if L::CLASSES < 64 {
            last |= borders >> (448 - 8 * L::BORDERS_AT) & low_mask(64 - L::CLASSES);
        }
        self.set_word(56, last);
    }

    /// Whether no further item fits.
    #[inline(always)]
    pub(super) fn is_full<L: Layout>(&self) -> bool {
        self.borders_and_above::<L>() & L::FULL != 0
    }

    /// How many items there are.
    #[inline(always)]
    pub(super) fn len<L: Layout>(&self) -> u32 {
        63 - self.borders::<L>().leading_zeros()
    }

    /// The run of a class.
    #[inline(always)]
    pub(super) fn run<L: Layout, M: Search>(&self, machine: M, class: usize) -> Run {
        machine.run::<L>(self.word(56), self.borders_and_above::<L>(), class)
    }

    /// Which slots of a run hold the tag.
    #[inline(always)]
    pub(super) fn matches<L: Layout, M: Search>(&self, machine: M, item: Item, run: Run) -> u64 {
        let mut matches = machine.equal(self, 0, item.byte::<L>(0), run);
        if L::BYTES == 2 {
            matches &= machine.equal(self, L::SLOTS, item.byte::<L>(1), run);
        }
        let mut plane = 0;
        while plane < L::PLANES {
            matches &= !(self.plane_and_above::<L>(plane) ^ item.bits(plane));
            plane += 1;
        }
        matches
    }

    /// Whether the item is here; and whether its run ends with a full bin, so that items like it may be in the second
    /// level.
    #[inline(always)]
    pub(super) fn find<L: Layout, M: Search>(&self, machine: M, item: Item) -> (bool, bool) {
        let run = self.run::<L, M>(machine, item.class);
        (self.matches::<L, M>(machine, item, run) != 0, run.last == L::FULL)
    }

    /// Which flags are set, where they stand in the word that begins with the borders.
    #[inline(always)]
    pub(super) fn flags<L: Layout>(&self) -> u64 {
        self.borders_and_above::<L>() & L::FLAGS
    }

    /// Sets the flags of these classes, which are bits, and no others.
    pub(super) fn set_flags<L: Layout>(&mut self, classes: u64) {
        let flags = (0..64).filter(|class| classes >> class & 1 == 1).map(|class| L::FLAG_OF[class]);
        let word = self.borders_and_above::<L>() & !L::FLAGS;
        self.set_word(L::BORDERS_AT as usize, flags.fold(word, |word, flag| word | flag));
    }

    /// Looks for an item: where it is, whether items like it may be in the second level, and the flag of its class.
    #[inline(always)]
    pub(super) fn find_flagged<L: Layout, M: Search>(&self, machine: M, item: Item) -> Found {
        let class = item.class;
        let borders = self.borders_and_above::<L>();
        let run = machine.run::<L>(self.word(56), borders, class);
        Found {
            slots: self.matches::<L, M>(machine, item, run),
            flag: borders & L::FLAG_OF[class % 64],
            beyond: run.last == L::FULL,
        }
    }

    /// Which slots of a run hold a smaller tag, and which hold the same.
    #[inline(always)]
    fn compare<L: Layout, M: Machine>(&self, machine: M, item: Item, run: Run) -> (u64, u64) {
        let (mut less, mut equal) = (0, run.slots());
        let mut plane = 0;
        while plane < L::PLANES {
            let (stored, wanted) = (self.plane_and_above::<L>(plane), item.bits(plane));
            less |= equal & wanted & !stored;
            equal &= !(stored ^ wanted);
            plane += 1;
        }
        let mut column = 0;
        while column < L::BYTES {
            let (byte, first) = (item.byte::<L>(column), column * L::SLOTS);
            less |= equal & machine.less(self, first, byte, run);
            equal &= machine.equal(self, first, byte, run);
            column += 1;
        }
        (less, equal)
    }

    /// Inserts an item, unless the bin is full: `None` then, and nothing changes. Else whether no item was equal.
    #[inline(always)]
    pub(super) fn insert<L: Layout, M: Machine>(&mut self, machine: M, item: Item) -> Option<bool> {
        if self.is_full::<L>() {
            return None;
        }
        Some(self.squeeze_in::<L, M>(machine, item, self.meta::<L>(), |_| true))
    }

    /// Inserts an item into a bin that has room and no flags, if none is equal and `admit`, which is asked at the last
    /// moment, agrees. Whether it came so far that `admit` was asked; if not, nothing changes.
    #[inline(always)]
    pub(super) fn insert_new<L: Layout, M: Machine>(
        &mut self,
        machine: M,
        item: Item,
        admit: impl FnOnce() -> bool,
    ) -> bool {
        if self.borders_and_above::<L>() & (L::FULL | L::FLAGS) != 0 {
            return false;
        }
        let mut asked = false;
        self.squeeze_in::<L, M>(machine, item, self.meta::<L>(), |new| {
            asked = new;
            new && admit()
        });
        asked
    }

    /// Inserts an item into a full bin in the place of the last one, which must not be less. Whether no item was equal.
    #[inline(always)]
    pub(super) fn replace_last<L: Layout, M: Machine>(&mut self, machine: M, item: Item) -> bool {
        let mut meta = self.meta::<L>();
        // Without the last item; if it was a run of its own, without that.
        let single = meta.borders >> (L::SLOTS - 1) & 1;
        meta.occupied ^= single << self.last_class::<L>();
        meta.borders = meta.borders ^ L::FULL | L::FULL >> 1;
        self.squeeze_in::<L, M>(machine, item, meta, |_| true)
    }

    /// Inserts an item between those that `meta` describes; what was in the last slot is dropped. `admit` learns
    /// whether no item is equal, which is returned too, and may still prevent it.
    #[inline(always)]
    fn squeeze_in<L: Layout, M: Machine>(
        &mut self,
        machine: M,
        item: Item,
        mut meta: Meta,
        admit: impl FnOnce(bool) -> bool,
    ) -> bool {
        let class = item.class;
        let run = machine.run::<L>(meta.occupied << (64 - L::CLASSES), meta.borders, class);
        let (less, equal) = self.compare::<L, M>(machine, item, run);
        let new = equal == 0;
        if !admit(new) {
            return new;
        }
        let at = machine.count(run.first.wrapping_sub(1) | less);
        let mut plane = 0;
        while plane < L::PLANES {
            let bits = &mut meta.planes[plane as usize];
            let above = *bits & u64::MAX << at;
            *bits = *bits ^ above | above << 1 & low_mask(L::SLOTS) | item.bit(plane) << at;
            plane += 1;
        }
        // The borders behind the run move up. A new run begins at the one that they had in common, which stays.
        let moving = meta.borders & run.last.wrapping_neg();
        let kept = meta.borders & (run.last << 1 >> (meta.occupied >> class & 1)).wrapping_sub(1);
        meta.borders = kept | moving << 1;
        meta.occupied |= 1 << class;
        let mut column = 0;
        while column < L::BYTES {
            let first = column * L::SLOTS;
            machine.open(self, first + at, first + L::SLOTS, item.byte::<L>(column));
            column += 1;
        }
        self.set_meta::<L>(meta);
        new
    }

    /// Removes an item that is equal; `false`, and nothing changes, if there is none.
    #[inline(always)]
    pub(super) fn remove<L: Layout, M: Machine>(&mut self, machine: M, item: Item) -> bool {
        let class = item.class;
        let run = self.run::<L, M>(machine, class);
        let found = self.matches::<L, M>(machine, item, run);
        if found == 0 {
            return false;
        }
        let at = found.trailing_zeros();
        let mut meta = self.meta::<L>();
        let mut plane = 0;
        while plane < L::PLANES {
            let bits = &mut meta.planes[plane as usize];
            let above = u64::MAX << at;
            *bits = *bits & !above | *bits >> 1 & above;
            plane += 1;
        }
        // The borders behind the item move down. If it was a run of its own, its two borders become one.
        let moving = meta.borders & run.last.wrapping_neg();
        meta.borders = meta.borders ^ moving | moving >> 1;
        meta.occupied ^= u64::from(run.last == run.first << 1) << class;
        let mut column = 0;
        while column < L::BYTES {
            let first = column * L::SLOTS;
            machine.close(self, first + at, first + L::SLOTS);
            column += 1;
        }
        self.set_meta::<L>(meta);
        true
    }

    /// The smallest item of the same class that is not less than this one; and whether there may be others beyond the
    /// bin.
    #[inline(always)]
    pub(super) fn ceiling<L: Layout, M: Machine>(&self, machine: M, item: Item) -> (Option<Entry>, bool) {
        let class = item.class;
        let run = self.run::<L, M>(machine, class);
        let (less, _) = self.compare::<L, M>(machine, item, run);
        // Tags ascend: what is not less follows behind what is.
        let rest = run.slots() & !less;
        let found = (rest != 0).then(|| self.entry::<L>(rest.trailing_zeros(), class as u32));
        (found, run.last == L::FULL)
    }

    /// The class of the last run; 0 if there is none.
    #[inline(always)]
    pub(super) fn last_class<L: Layout>(&self) -> u32 {
        63 - (self.occupied::<L>() | 1).leading_zeros()
    }

    /// The item in a slot that belongs to this class.
    #[inline(always)]
    pub(super) fn entry<L: Layout>(&self, slot: u32, class: u32) -> Entry {
        let mut entry = class;
        for plane in 0..L::PLANES {
            entry = entry << 1 | (self.plane_and_above::<L>(plane) >> slot & 1) as u32;
        }
        for column in 0..L::BYTES {
            entry = entry << 8 | u32::from(self.0[(column * L::SLOTS + slot) as usize]);
        }
        Entry(entry)
    }

    /// The last item of a full bin.
    #[inline(always)]
    pub(super) fn last<L: Layout>(&self) -> Entry {
        self.entry::<L>(L::SLOTS - 1, self.last_class::<L>())
    }

    /// Makes this a bin of these items, which ascend and fit.
    pub(super) fn write<L: Layout>(&mut self, entries: &[Entry]) {
        debug_assert!(entries.len() <= L::SLOTS as usize && entries.is_sorted());
        *self = Self([0; 64]);
        let mut meta = Meta { planes: [0; 8], borders: 1, above: 0, occupied: 0 };
        let mut class_before = 0;
        for (&Entry(entry), slot) in entries.iter().zip(0..L::SLOTS) {
            let class = entry >> L::TAG_BITS;
            meta.occupied |= 1 << class;
            meta.borders |= u64::from(class != class_before) << slot;
            class_before = class;
            for plane in 0..L::PLANES {
                let bit = entry >> (L::TAG_BITS - 1 - plane) & 1;
                meta.planes[plane as usize] |= u64::from(bit) << slot;
            }
            for column in 0..L::BYTES {
                self.0[(column * L::SLOTS + slot) as usize] = (entry >> (8 * (L::BYTES - 1 - column))) as u8;
            }
        }
        meta.borders |= 1 << entries.len();
        self.set_meta::<L>(meta);
    }

    /// Appends all items, in order.
    pub(super) fn entries<L: Layout>(&self, entries: &mut Vec<Entry>) {
        let (mut occupied, mut behind) = (self.occupied::<L>(), self.borders::<L>() >> 1);
        let mut slot = 0;
        while occupied != 0 && slot < L::SLOTS {
            entries.push(self.entry::<L>(slot, occupied.trailing_zeros()));
            if behind & 1 == 1 {
                occupied &= occupied - 1;
            }
            behind >>= 1;
            slot += 1;
        }
    }

    /// Checks everything that the other functions rely on.
    pub(super) fn verify<L: Layout>(&self) -> Result<(), InvariantError> {
        let (borders, runs) = (self.borders::<L>(), self.occupied::<L>().count_ones());
        ensure!(borders & 1 == 1, "there is no border before the first run");
        ensure!(borders.count_ones() == runs + 1, "{runs} runs between borders {borders:#b}");
        let mut entries = Vec::new();
        self.entries::<L>(&mut entries);
        ensure!(entries.len() == self.len::<L>() as usize, "{} items in the runs", entries.len());
        ensure!(entries.is_sorted(), "the items {entries:?} are not in order");
        for slot in self.len::<L>()..L::SLOTS {
            ensure!(self.entry::<L>(slot, 0) == Entry(0), "slot {slot} is in no run but not empty");
        }
        Ok(())
    }
}
