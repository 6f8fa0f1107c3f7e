//! The side store: the values of blocks that outgrew their codes, in the bits that they need.
//!
//! Each such block has a [record](record::Record). The records of 16 neighbouring blocks share one allocation, a
//! *group*, one behind the other without gaps:
//!
//! ```text
//! | end of record 0: 16 bits | … | end of record 15 | record 0 | record 1 | …
//! ```
//!
//! An end is counted from the first record on, in units of two bits. So a value is found in one look into the group,
//! the store spends 24 bits a block beside the values (a sixteenth of a pointer with its length, and an end), and there
//! is nothing to be tidied up: anyone who changes a record writes its group again, which is about a kilobyte.

mod persist;
mod record;

use crate::bits::{copy_bits, read_bits, write_bits};

use record::Draft;
pub(crate) use record::{Entry, Layout, Record};

/// Blocks whose records share an allocation.
const GROUP: usize = 16;

/// The width of an end.
const END_BITS: usize = 16;

/// What an end counts. A record is shorter than 2^13 bits (see [`record`]), so 16 of them end within 2^16 units.
const UNIT: usize = 2;

/// Where the records begin.
const RECORDS_AT: usize = GROUP * END_BITS;

/// Records by block; a block has one or none.
#[derive(Debug, Clone)]
pub(crate) struct SideStore {
    layout: Layout,
    /// Groups without records have no words. None are stored behind the last that has records.
    groups: Vec<Box<[u64]>>,
    /// The words of all groups.
    words: usize,
    /// How many blocks have records.
    len: usize,
}

impl SideStore {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, groups: Vec::new(), words: 0, len: 0 }
    }

    /// The same kind of store without records.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(self.layout)
    }

    /// What is the same for all its records.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How many blocks have records.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The memory in use, in bits.
    pub(crate) fn memory_bits(&self) -> usize {
        8 * self.groups.capacity() * size_of::<Box<[u64]>>() + 64 * self.words
    }

    /// Whether a block has a record.
    pub(crate) fn has(&self, block: usize) -> bool {
        let (start, end) = span(self.group(block), block % GROUP);
        start < end
    }

    /// The blocks that have records, ascending.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = usize> {
        (0..self.groups.len() * GROUP).filter(|&block| self.has(block))
    }

    /// The record of a block, which must have one. `flags` are those of its slots that the caller keeps: see
    /// [`Layout`].
    #[inline]
    pub(crate) fn get(&self, block: usize, flags: u64) -> Record<'_> {
        let group = self.group(block);
        let start = span(group, block % GROUP).0;
        Record::new(self.layout, group, RECORDS_AT + UNIT * start, flags)
    }

    /// Makes, changes or removes (`None`) the record of a block, in a table of this many blocks.
    pub(crate) fn set(&mut self, block: usize, blocks: usize, entries: Option<&[Entry]>) {
        if entries.is_none() && !self.has(block) {
            return;
        }
        let draft = entries.map(|entries| Draft::new(self.layout, entries)).unwrap_or_default();
        let number = block / GROUP;
        if number >= self.groups.len() {
            self.groups.reserve_exact(blocks.max(block + 1).div_ceil(GROUP) - self.groups.len());
            self.groups.resize_with(number + 1, Box::default);
        }
        self.len = self.len + usize::from(entries.is_some()) - usize::from(self.has(block));
        let group = with_record(&self.groups[number], block % GROUP, &draft);
        self.words = self.words + group.len() - self.groups[number].len();
        self.groups[number] = group;
        if self.len == 0 {
            *self = self.emptied();
        }
    }

    #[inline]
    fn group(&self, block: usize) -> &[u64] {
        self.groups.get(block / GROUP).map_or(&[], |group| group)
    }
}

/// Where a record of a group begins and ends, in units. All ends of a group without words are 0.
#[inline]
fn span(group: &[u64], index: usize) -> (usize, usize) {
    let end = |index: usize| read_bits(group, index * END_BITS, END_BITS as u32) as usize;
    (if index == 0 { 0 } else { end(index - 1) }, end(index))
}

/// A group in which one record is another one.
fn with_record(group: &[u64], index: usize, draft: &Draft) -> Box<[u64]> {
    let (start, old_end) = span(group, index);
    let last = span(group, GROUP - 1).1;
    let new_end = start + draft.len().div_ceil(UNIT);
    let units = last - old_end + new_end;
    if units == 0 {
        return Box::default();
    }
    let mut words = vec![0; (RECORDS_AT + UNIT * units).div_ceil(64)].into_boxed_slice();
    for other in 0..GROUP {
        let end = span(group, other).1;
        let end = if other < index { end } else { end - old_end + new_end };
        write_bits(&mut words, other * END_BITS, END_BITS as u32, end as u64);
    }
    let at = |units: usize| RECORDS_AT + UNIT * units;
    copy_bits(group, at(0), &mut words, at(0), UNIT * start);
    copy_bits(draft.words(), 0, &mut words, at(start), draft.len());
    copy_bits(group, at(old_end), &mut words, at(new_end), UNIT * (last - old_end));
    words
}

#[cfg(test)]
mod tests {
    //! Catches: records that run into each other, a record found in the wrong place, memory that is not given back,
    //! entries that come back changed.
    use std::collections::BTreeMap;

    use super::*;
    use crate::bits::low_mask;
    use crate::testing::Random;

    fn random_entries(random: &mut Random, layout: Layout) -> Vec<Entry> {
        let (rate, longest) = (1 + random.below(8), [3, 9, 30, 62][random.below(4) as usize]);
        let mut entries = Vec::new();
        for slot in 0..layout.slots {
            if !random.one_in(rate) {
                continue;
            }
            let (number, bits) = if layout.strings {
                let number = 1 + random.below(longest) as u32;
                (number, random.next() & low_mask(number))
            } else {
                (1 + (random.below(1 << 16) >> random.below(16)).min(65_534) as u32, 0)
            };
            entries.push(Entry { slot, number, bits });
        }
        entries
    }

    fn flags(layout: Layout, entries: &[Entry]) -> u64 {
        entries.iter().map(|entry| 1 << entry.slot).sum::<u64>() & low_mask(layout.flags)
    }

    fn check(store: &SideStore, model: &BTreeMap<usize, Vec<Entry>>, blocks: usize) {
        assert_eq!(store.len(), model.len());
        for block in 0..blocks {
            assert_eq!(store.has(block), model.contains_key(&block));
            let Some(entries) = model.get(&block) else { continue };
            let record = store.get(block, flags(store.layout, entries));
            assert_eq!(record.entries().collect::<Vec<_>>(), *entries);
            for slot in 0..store.layout.slots {
                let entry = entries.iter().find(|entry| entry.slot == slot);
                assert_eq!(record.get(slot), entry.map(|entry| (entry.number, entry.bits)), "slot {slot}");
            }
        }
    }

    #[test]
    fn every_record_is_what_was_written_last() {
        let mut random = Random::new(61);
        for strings in [false, true] {
            for (slots, flags) in [(46, 45), (63, 63), (63, 55), (7, 6), (32, 1), (63, 0), (27, 0)] {
                let layout = Layout { slots, flags, strings };
                let (mut store, mut model) = (SideStore::new(layout), BTreeMap::new());
                for _ in 0..600 {
                    let block = random.below(50) as usize;
                    let entries = random_entries(&mut random, layout);
                    if entries.is_empty() || random.one_in(4) {
                        store.set(block, 50, None);
                        model.remove(&block);
                    } else {
                        store.set(block, 50, Some(&entries));
                        model.insert(block, entries);
                    }
                    check(&store, &model, 50);
                }
                for block in 0..50 {
                    store.set(block, 50, None);
                }
                assert_eq!((store.memory_bits(), store.len()), (0, 0));
            }
        }
    }

    #[test]
    fn the_longest_records_fit_into_a_group() {
        for strings in [false, true] {
            let layout = Layout { slots: 63, flags: 0, strings };
            let (number, bits) = if strings { (62, low_mask(62)) } else { (65_535, 0) };
            // Short and long ones together are the worst for what they have in common.
            for shortest in [1, number] {
                let entries: Vec<Entry> = (0..63)
                    .map(|slot| match slot {
                        0 => Entry { slot, number: shortest, bits: bits & low_mask(shortest) },
                        _ => Entry { slot, number, bits },
                    })
                    .collect();
                assert!(Draft::new(layout, &entries).len() < 1 << 13);
                let mut store = SideStore::new(layout);
                let model: BTreeMap<_, _> = (0..GROUP).map(|block| (block, entries.clone())).collect();
                (0..GROUP).for_each(|block| store.set(block, GROUP, Some(&entries)));
                check(&store, &model, GROUP);
            }
        }
    }
}
