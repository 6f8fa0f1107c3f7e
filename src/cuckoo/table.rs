//! The table that the whole family shares: packed slots, an empty one being 0.

use std::marker::PhantomData;

use crate::bits::{PackedSlots, low_mask};
use crate::error::ensure;
use crate::{BuildError, InvariantError};

use super::layout::CuckooLayout;
use super::place::CuckooPlace;
use super::variant::{Variant, bin};

/// Slots of `width` bits:
///
/// ```text
/// | selector (0 to 3 bits) | fingerprint (never 0) |       or all bits 0: empty
/// ```
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SlotTable<V> {
    slots: PackedSlots,
    layout: CuckooLayout,
    lanes: Lanes,
    /// How many slots have a selector other than 0.
    selected: usize,
    variant: PhantomData<V>,
}

/// What a newcomer's bins look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// Whether one of the slots holds the newcomer's fingerprint.
    pub(super) hit: bool,
    /// An empty slot.
    pub(super) vacancy: Option<usize>,
}

/// A bin as one word, if it fits: the lowest and the highest bit of each slot's lane.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lanes {
    low: u64,
    /// 0 if bins are too wide for one word.
    high: u64,
}

impl Lanes {
    fn new(layout: &CuckooLayout, selectors: bool) -> Self {
        let width = layout.width;
        let bits = width * layout.bin_slots as u32;
        // A bin begins at a multiple of its width, so a bin of 8 bits' multiples begins at a byte.
        let before = 8 - (1 << bits.trailing_zeros().min(3));
        if selectors || bits + before > 64 {
            return Self { low: 0, high: 0 };
        }
        let low = (0..layout.bin_slots as u32).fold(0, |low, index| low | 1 << (index * width));
        Self { low, high: low << (width - 1) }
    }

    /// The highest bits of the lanes of `word` that are 0.
    #[inline(always)]
    fn zeros(self, word: u64) -> u64 {
        // The sum carries into the highest bit of a lane iff one of the lower ones is set, and never beyond.
        let lower = self.high - self.low;
        !(((word & lower) + lower) | word) & self.high
    }
}

impl<V: Variant> SlotTable<V> {
    pub(super) fn new(layout: CuckooLayout) -> Result<Self, BuildError> {
        let slots = PackedSlots::new(layout.slots(), layout.width)
            .ok_or_else(|| BuildError::OutOfMemory { bytes: Self::bytes(&layout) })?;
        Ok(Self::from_slots(slots, layout))
    }

    /// The table that these slots are; none has a selector other than 0.
    pub(super) fn from_slots(slots: PackedSlots, layout: CuckooLayout) -> Self {
        let lanes = Lanes::new(&layout, V::SELECTOR_BITS > 0);
        Self { slots, layout, lanes, selected: 0, variant: PhantomData }
    }

    /// Says how many slots have a selector other than 0, which [`verify`](Self::verify) holds against what they have.
    pub(super) fn set_selected(&mut self, selected: usize) {
        self.selected = selected;
    }

    /// All bytes of the slots.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.slots.as_bytes()
    }

    #[inline]
    pub(super) fn layout(&self) -> &CuckooLayout {
        &self.layout
    }

    /// How many bytes a table of this layout takes.
    pub(super) fn bytes(layout: &CuckooLayout) -> usize {
        PackedSlots::bytes(layout.slots(), layout.width).unwrap_or(usize::MAX)
    }

    /// Bytes in use.
    pub(super) fn memory(&self) -> usize {
        self.slots.memory()
    }

    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    /// Whether a slot that the key may lie in holds its fingerprint.
    #[inline]
    pub(super) fn contains(&self, place: CuckooPlace) -> bool {
        match self.layout.tables {
            2 => self.contains_in::<2>(place),
            4 => self.contains_in::<4>(place),
            tables => {
                let pattern = self.pattern(place);
                (0..tables).any(|table| self.bin_contains(place, table, pattern))
            }
        }
    }

    /// [`contains`](Self::contains) for a known number of tables, without a branch between them: the reads of
    /// all bins overlap.
    #[inline(always)]
    fn contains_in<const TABLES: usize>(&self, place: CuckooPlace) -> bool {
        let pattern = self.pattern(place);
        (0..TABLES).fold(false, |found, table| found | self.bin_contains(place, table, pattern))
    }

    /// The bin that is full of this key's fingerprints, for comparison with a real one.
    #[inline(always)]
    fn pattern(&self, place: CuckooPlace) -> u64 {
        if V::SELECTOR_BITS > 0 || self.lanes.high == 0 {
            0
        } else if V::BY_SLOT {
            let lane =
                |index| place.fingerprint(index, self.layout.width) << (index as u32 * self.layout.width);
            match self.layout.bin_slots {
                // Known at compile time, the lanes are made side by side.
                4 => lane(0) | lane(1) | lane(2) | lane(3),
                slots => (0..slots).fold(0, |pattern, index| pattern | lane(index)),
            }
        } else {
            place.fingerprint(0, self.layout.width) * self.lanes.low
        }
    }

    #[inline(always)]
    fn bin_contains(&self, place: CuckooPlace, table: usize, pattern: u64) -> bool {
        let first = self.first_slot(place, table);
        if V::SELECTOR_BITS == 0 && self.lanes.high != 0 {
            let word = self.slots.window(first * self.layout.width as usize);
            self.lanes.zeros(word ^ pattern) != 0
        } else {
            (0..self.layout.bin_slots).any(|index| self.matches(first + index, index, place))
        }
    }

    /// Whether slot `slot`, number `index` of a bin that the key may lie in, holds its fingerprint.
    #[inline(always)]
    fn matches(&self, slot: usize, index: usize, place: CuckooPlace) -> bool {
        let value = self.slots.get(slot);
        value == self.value(place, index, value >> self.fingerprint_bits())
    }

    /// What is written for this key into the slot number `index` of its bin.
    #[inline(always)]
    fn value(&self, place: CuckooPlace, index: usize, selector: u64) -> u64 {
        let bits = self.fingerprint_bits();
        let function = if V::BY_SLOT { index } else { selector as usize };
        selector << bits | place.fingerprint(function, bits)
    }

    #[inline(always)]
    fn fingerprint_bits(&self) -> u32 {
        self.layout.width - V::SELECTOR_BITS
    }

    /// The first slot of the key's bin in table `table`.
    #[inline]
    pub(super) fn first_slot(&self, place: CuckooPlace, table: usize) -> usize {
        self.layout.first_slot(table, bin::<V>(place, table, &self.layout))
    }

    /// Every slot that makes [`contains`](Self::contains) true.
    pub(super) fn hits(&self, place: CuckooPlace) -> Vec<usize> {
        let bins = (0..self.layout.tables).map(|table| self.first_slot(place, table));
        let slots =
            bins.flat_map(|first| (0..self.layout.bin_slots).map(move |index| (first + index, index)));
        slots.filter(|&(slot, index)| self.matches(slot, index, place)).map(|(slot, _)| slot).collect()
    }

    /// [`contains`](Self::contains) and [`vacancy`](Self::vacancy) from one reading of the bins, and for the
    /// usual shapes without a branch that depends on what is read: the address of the slot is then known as
    /// early as it can be.
    #[inline(always)]
    pub(super) fn look(&self, place: CuckooPlace) -> Look {
        match (self.layout.tables, self.layout.bin_slots) {
            (4, 1) => self.look_at_slots::<4>(place),
            (2, 1) => self.look_at_slots::<2>(place),
            (2, _) if self.lanes.high != 0 => self.look_at_two_bins(place),
            _ => Look { hit: self.contains(place), vacancy: self.vacancy(place) },
        }
    }

    #[inline(always)]
    fn look_at_slots<const TABLES: usize>(&self, place: CuckooPlace) -> Look {
        let slots: [usize; TABLES] = std::array::from_fn(|table| self.first_slot(place, table));
        let (mut hit, mut vacant) = (false, 0_u32);
        for (table, &slot) in slots.iter().enumerate() {
            let value = self.slots.get(slot);
            hit |= value == self.value(place, 0, value >> self.fingerprint_bits());
            vacant |= u32::from(value == 0) << table;
        }
        let first = slots[vacant.trailing_zeros() as usize % TABLES];
        Look { hit, vacancy: (vacant != 0).then_some(first) }
    }

    #[inline(always)]
    fn look_at_two_bins(&self, place: CuckooPlace) -> Look {
        let width = self.layout.width;
        let pattern = self.pattern(place);
        let firsts: [usize; 2] = std::array::from_fn(|table| self.first_slot(place, table));
        let bins = firsts.map(|first| self.slots.window(first * width as usize));
        let hits = bins.map(|bin| self.lanes.zeros(bin ^ pattern));
        let vacant = bins.map(|bin| self.lanes.zeros(bin));
        let emptier = usize::from(vacant[1].count_ones() > vacant[0].count_ones());
        let slot = firsts[emptier] + (vacant[emptier].trailing_zeros() / width) as usize;
        Look { hit: hits[0] | hits[1] != 0, vacancy: (vacant[emptier] != 0).then_some(slot) }
    }

    /// An empty slot that the key may lie in, of the bin that has the most of them: evenly filled bins fill up
    /// last. Single slots have nothing to balance, and the first empty one is taken; the later tables then stay
    /// emptier, and the first step of a chain is likely to end there.
    fn vacancy(&self, place: CuckooPlace) -> Option<usize> {
        let bins = (0..self.layout.tables).map(|table| self.first_slot(place, table));
        let vacant =
            |first: usize| (first..first + self.layout.bin_slots).filter(|&slot| self.is_vacant(slot));
        // Of bins with equally many, the first is wanted; `max_by_key` returns the last: so the other way round.
        let emptiest = bins.rev().max_by_key(|&first| vacant(first).count());
        emptiest.and_then(|first| vacant(first).next())
    }

    #[inline]
    pub(super) fn is_vacant(&self, slot: usize) -> bool {
        self.slots.get(slot) == 0
    }

    /// Whether two keys have the same fingerprint in `slot` with this selector.
    pub(super) fn agree(&self, a: CuckooPlace, b: CuckooPlace, slot: usize, selector: u64) -> bool {
        let index = self.index(slot);
        self.value(a, index, selector) == self.value(b, index, selector)
    }

    /// Whether a query for `query` could not be told from `stored`, if that lay in `slot`, a slot of one of its
    /// bins, with selector 0.
    pub(super) fn would_collide(&self, stored: CuckooPlace, query: CuckooPlace, slot: usize) -> bool {
        self.agree(stored, query, slot, 0) && self.is_candidate(slot, query)
    }

    /// Whether a query for `place` finds its fingerprint in `slot`.
    pub(super) fn holds(&self, slot: usize, place: CuckooPlace) -> bool {
        self.is_candidate(slot, place) && self.matches(slot, self.index(slot), place)
    }

    /// Whether the slot is one of those that the key may lie in.
    pub(super) fn is_candidate(&self, slot: usize, place: CuckooPlace) -> bool {
        (0..self.layout.tables).any(|table| self.is_in_bin(slot, self.first_slot(place, table)))
    }

    #[inline]
    fn is_in_bin(&self, slot: usize, first: usize) -> bool {
        slot.wrapping_sub(first) < self.layout.bin_slots
    }

    /// The number of a slot in its bin, or 0 where nothing depends on it.
    #[inline]
    fn index(&self, slot: usize) -> usize {
        if V::BY_SLOT { slot % self.layout.bin_slots } else { 0 }
    }

    /// Writes the fingerprint of a key, made with this selector's function, into a slot of one of its bins.
    pub(super) fn put(&mut self, slot: usize, place: CuckooPlace, selector: u64) {
        self.set(slot, self.value(place, self.index(slot), selector));
    }

    /// Empties a slot.
    pub(super) fn erase(&mut self, slot: usize) {
        self.set(slot, 0);
    }

    /// The raw bits of a slot.
    pub(super) fn get(&self, slot: usize) -> u64 {
        self.slots.get(slot)
    }

    /// Sets the raw bits of a slot.
    pub(super) fn set(&mut self, slot: usize, value: u64) {
        if V::SELECTOR_BITS > 0 {
            self.selected -= usize::from(self.selector(slot) != 0);
            self.selected += usize::from(value >> self.fingerprint_bits() != 0);
        }
        self.slots.set(slot, value);
    }

    /// Which fingerprint function slot `slot` uses.
    pub(super) fn selector(&self, slot: usize) -> u64 {
        self.slots.get(slot) >> self.fingerprint_bits()
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.selected = 0;
    }

    /// Asks the processor for the bins of a key.
    #[inline]
    pub(super) fn prefetch(&self, place: CuckooPlace) {
        match self.layout.tables {
            2 => self.prefetch_in(place, 2),
            4 => self.prefetch_in(place, 4),
            tables => self.prefetch_in(place, tables),
        }
    }

    /// [`prefetch`](Self::prefetch) for a number of tables that is known where this is inlined.
    #[inline(always)]
    fn prefetch_in(&self, place: CuckooPlace, tables: usize) {
        for table in 0..tables {
            self.slots.prefetch(self.first_slot(place, table));
        }
    }

    /// Walks all slots: `len` of them are occupied, none has a selector without a fingerprint.
    pub(super) fn verify(&self, len: usize) -> Result<(), InvariantError> {
        let fingerprint = low_mask(self.fingerprint_bits());
        let (mut occupied, mut selected) = (0, 0);
        for slot in 0..self.layout.slots() {
            let value = self.slots.get(slot);
            ensure!(value == 0 || value & fingerprint != 0, "slot {slot} has a selector but no fingerprint");
            occupied += usize::from(value != 0);
            selected += usize::from(self.selector(slot) != 0);
        }
        ensure!(occupied == len, "{occupied} slots are occupied, but {len} keys are counted");
        ensure!(selected == self.selected, "{selected} selectors in use, but {} counted", self.selected);
        Ok(())
    }
}
