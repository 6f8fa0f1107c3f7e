//! The adaptivity bits of all slots of a table (section 5.1 of the paper).
//!
//! Adaptivity bits are stored apart from the rest of the fingerprints: a query comes here only after quotient and
//! remainder have matched. Each block of the table has the strings of its slots in a few words (Lemma 29), and
//! sixteen blocks form a *section*, whose words lie together. While a section has no adaptivity bits it is one null
//! pointer. Which blocks have any is kept apart from all that, small enough for the nearest cache: most queries that
//! come here need no more.
//!
//! ```text
//! in_use     | 0 | 0 | 0100100000000000 | 0 | …     one bit for each block
//! sections   | · | · | ● | · | …                    one pointer for 16 blocks
//!                      └▶ sizes: 16 bytes, the words of each block's half (0: all its strings are empty)
//!                         words: | bits, marks of block 0 | bits, marks of block 1 | …
//! ```

use crate::bits::{BitString, Strings, StringsMut, low_mask};
use crate::quotient::{Shift, Table};
use crate::{BuildError, InvariantError, error::ensure};

/// Blocks of a section.
pub(super) const SECTION: usize = 16;

/// A string for every slot of a table; see the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Adaptivity {
    /// For each section which of its blocks have adaptivity bits.
    in_use: Vec<u16>,
    sections: Vec<Option<Box<Section>>>,
    slots_per_block: usize,
    /// The length of all strings together.
    bits: usize,
    /// How many strings are not empty.
    strings: usize,
}

#[derive(Debug, Clone, Default)]
struct Section {
    /// The number of words of bits, and as many of marks, of each block.
    sizes: [u8; SECTION],
    words: Vec<u64>,
}

impl Section {
    /// Where the words of a block lie.
    #[inline]
    fn range(&self, block: usize) -> std::ops::Range<usize> {
        let start = 2 * self.sizes[..block].iter().map(|&size| usize::from(size)).sum::<usize>();
        start..start + 2 * usize::from(self.sizes[block])
    }

    /// The strings of a block, unless all of them are empty.
    #[inline]
    fn strings(&self, block: usize) -> Option<Strings<'_>> {
        let range = self.range(block);
        (!range.is_empty()).then(|| Strings::new(&self.words[range]))
    }

    /// Gives a block halves of `size` words and keeps its strings; from size 0, all strings are empty.
    fn resize(&mut self, block: usize, size: usize, slots: usize) {
        let (range, old) = (self.range(block), usize::from(self.sizes[block]));
        let kept = old.min(size);
        let mut words = vec![0; 2 * size];
        words[..kept].copy_from_slice(&self.words[range.start..][..kept]);
        words[size..][..kept].copy_from_slice(&self.words[range.start + old..][..kept]);
        if old == 0 {
            words[size] = low_mask(slots as u32);
        }
        self.words.splice(range, words);
        self.sizes[block] = size as u8;
    }
}

impl Adaptivity {
    /// Empty strings for all slots of a table of so many blocks.
    pub(super) fn new(blocks: usize, slots_per_block: usize) -> Result<Self, BuildError> {
        let mut empty =
            Self { in_use: Vec::new(), sections: Vec::new(), slots_per_block, bits: 0, strings: 0 };
        let sections = blocks.div_ceil(SECTION);
        let bytes = Self::size_in_bits(blocks) / 8;
        empty.in_use.try_reserve_exact(sections).map_err(|_| BuildError::OutOfMemory { bytes })?;
        empty.sections.try_reserve_exact(sections).map_err(|_| BuildError::OutOfMemory { bytes })?;
        empty.resize(sections);
        Ok(empty)
    }

    /// The memory that [`new`](Self::new) takes, in bits.
    pub(super) fn size_in_bits(blocks: usize) -> usize {
        blocks.div_ceil(SECTION) * (size_of::<Option<Box<Section>>>() + size_of::<u16>()) * 8
    }

    fn resize(&mut self, sections: usize) {
        self.in_use.resize(sections, 0);
        self.sections.resize_with(sections, || None);
    }

    /// The length of all strings together.
    pub(super) fn bits(&self) -> usize {
        self.bits
    }

    /// How many strings are not empty.
    pub(super) fn strings(&self) -> usize {
        self.strings
    }

    /// The memory in use, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        let section = |section: &Section| size_of::<Section>() + section.words.capacity() * 8;
        let heap: usize = self.sections.iter().flatten().map(|boxed| section(boxed)).sum();
        let pointers = self.sections.capacity() * size_of::<Option<Box<Section>>>();
        (heap + pointers + self.in_use.capacity() * size_of::<u16>()) * 8
    }

    /// Whether a block has no adaptivity bits.
    #[inline]
    pub(super) fn is_plain(&self, block: usize) -> bool {
        self.in_use.get(block / SECTION).is_none_or(|in_use| in_use >> (block % SECTION) & 1 == 0)
    }

    /// The string of a slot.
    #[inline]
    pub(super) fn get(&self, block: usize, slot: u32) -> BitString {
        let section = self.sections.get(block / SECTION).and_then(Option::as_ref);
        let strings = section.and_then(|section| section.strings(block % SECTION));
        strings.map_or(BitString::EMPTY, |strings| strings.get(slot as usize))
    }

    /// The slots of a block, of those in `slots`, whose strings are prefixes of the query: bit i for `slots.start + i`.
    pub(super) fn prefixes(&self, block: usize, slots: std::ops::Range<u32>, query: BitString) -> u64 {
        let section = self.sections.get(block / SECTION).and_then(Option::as_ref);
        match section.and_then(|section| section.strings(block % SECTION)) {
            None => low_mask(slots.len() as u32),
            Some(strings) => strings.prefixes(slots.start as usize..slots.end as usize, query),
        }
    }

    /// Changes the string of a slot.
    pub(super) fn set(&mut self, block: usize, slot: u32, string: BitString) {
        let old = self.get(block, slot);
        if old == string {
            return;
        }
        self.count(old, string);
        self.make_room(block, (string.len() as usize).saturating_sub(old.len() as usize));
        self.change(block, |strings| strings.set(slot as usize, string));
        self.tidy(block);
    }

    /// Follows an insertion into the table; the new slot gets `string`.
    pub(super) fn insert(&mut self, table: &Table, shift: Shift, string: BitString) {
        self.count(BitString::EMPTY, string);
        let ((first, at), (last, end)) = (table.block_of(shift.at), table.block_of(shift.end));
        let mut carried = string;
        for block in first..=last {
            let from = if block == first { at } else { 0 };
            let to = if block == last { end } else { self.slots_per_block as u32 - 1 };
            carried = self.rotate(block, to, from, carried);
        }
        debug_assert!(carried.is_empty(), "the slot that was free had no string");
    }

    /// Follows a removal from the table; returns the string of the slot that is gone.
    pub(super) fn remove(&mut self, table: &Table, shift: Shift) -> BitString {
        let ((first, at), (last, end)) = (table.block_of(shift.at), table.block_of(shift.end));
        let mut carried = BitString::EMPTY;
        for block in (first..=last).rev() {
            let from = if block == first { at } else { 0 };
            let to = if block == last { end } else { self.slots_per_block as u32 - 1 };
            carried = self.rotate(block, from, to, carried);
        }
        self.count(carried, BitString::EMPTY);
        carried
    }

    /// Takes the string of one slot of a block out and puts another one in at a second slot; those between move.
    fn rotate(&mut self, block: usize, out: u32, into: u32, string: BitString) -> BitString {
        if string.is_empty() && self.is_plain(block) {
            return string;
        }
        self.make_room(block, string.len() as usize);
        let mut removed = BitString::EMPTY;
        self.change(block, |strings| {
            removed = strings.remove(out as usize);
            strings.insert(into as usize, string);
        });
        if !removed.is_empty() {
            self.tidy(block);
        }
        removed
    }

    fn count(&mut self, old: BitString, new: BitString) {
        self.bits = self.bits - old.len() as usize + new.len() as usize;
        self.strings = self.strings - usize::from(!old.is_empty()) + usize::from(!new.is_empty());
    }

    /// Sees to it that the strings of a block have room for so many bits more.
    fn make_room(&mut self, block: usize, bits: usize) {
        let slots = self.slots_per_block;
        if block / SECTION >= self.sections.len() {
            // The tail of the table has grown.
            self.resize(block / SECTION + 1);
        }
        let section = self.sections[block / SECTION].get_or_insert_default();
        let used = section.strings(block % SECTION).map_or(slots, Strings::used);
        let size = (used + bits).div_ceil(64);
        if size > usize::from(section.sizes[block % SECTION]) {
            section.resize(block % SECTION, size, slots);
            self.in_use[block / SECTION] |= 1 << (block % SECTION);
        }
    }

    fn change(&mut self, block: usize, change: impl FnOnce(&mut StringsMut<'_>)) {
        if let Some(section) = &mut self.sections[block / SECTION] {
            let range = section.range(block % SECTION);
            change(&mut StringsMut::new(&mut section.words[range]));
        }
    }

    /// Gives words back that the strings of a block no longer need.
    fn tidy(&mut self, block: usize) {
        let slots = self.slots_per_block;
        let Some(section) = &mut self.sections[block / SECTION] else { return };
        let used = section.strings(block % SECTION).map_or(slots, Strings::used);
        let size = if used == slots { 0 } else { used.div_ceil(64) };
        // One word of slack, so that a string that comes and goes does not move the section's words each time.
        if size == 0 || size + 1 < usize::from(section.sizes[block % SECTION]) {
            section.resize(block % SECTION, size, slots);
        }
        if size == 0 {
            self.in_use[block / SECTION] &= !(1 << (block % SECTION));
        }
        if section.words.is_empty() {
            self.sections[block / SECTION] = None;
        }
    }

    /// Every block has one string per slot, unused slots have empty ones, and the counts are right.
    pub(super) fn verify(&self, table: &Table) -> Result<(), InvariantError> {
        let (mut bits, mut strings) = (0, 0);
        for item in table.iter() {
            let (block, slot) = table.block_of(item.slot);
            let string = self.get(block, slot);
            bits += string.len() as usize;
            strings += usize::from(!string.is_empty());
        }
        ensure!(bits == self.bits, "{bits} adaptivity bits at the items, {} counted", self.bits);
        ensure!(strings == self.strings, "{strings} strings at the items, {} counted", self.strings);
        for (section, &in_use) in self.sections.iter().zip(&self.in_use) {
            let sizes = section.as_ref().map_or([0; SECTION], |section| section.sizes);
            let found =
                (0..SECTION).filter(|&block| sizes[block] > 0).fold(0, |bits, block| bits | 1 << block);
            ensure!(found == in_use, "blocks {found:#b} of a section have words, {in_use:#b} are in use");
        }
        let mut all = 0;
        for section in self.sections.iter().flatten() {
            for strings in (0..SECTION).filter_map(|block| section.strings(block)) {
                ensure!(
                    strings.count() == self.slots_per_block,
                    "{} strings for {} slots",
                    strings.count(),
                    self.slots_per_block
                );
                all += strings.used() - strings.count();
            }
        }
        ensure!(all == self.bits, "{all} adaptivity bits in all blocks, {bits} of them at items");
        Ok(())
    }
}
