//! What an operation is going to do to the values of some neighbouring blocks.
//!
//! Everything is worked out here first, reading the remote where that is needed, so that filter and remote change
//! only when nothing can fail any more.

use std::ops::RangeInclusive;

use crate::quotient::{Shift, Table};

use super::{ValueStore, blocks_of};

/// The new values of some neighbouring blocks.
#[derive(Debug)]
pub(super) struct Plan<V> {
    first_block: usize,
    per_block: usize,
    values: Vec<V>,
    /// Blocks whose values were forgotten.
    pub(super) resets: Vec<usize>,
    /// Remainders that change with the values, by the slot where they are going to stand.
    pub(super) remainders: Vec<(u64, u64)>,
}

impl<V: Copy + Default + PartialEq> Plan<V> {
    /// The values of these blocks as they are.
    pub(super) fn load<S>(store: &S, table: &Table, blocks: RangeInclusive<usize>) -> Self
    where
        S: ValueStore<Value = V>,
    {
        let (first_block, per_block) = (*blocks.start(), table.slots_per_block() as usize);
        let mut values = Vec::with_capacity((blocks.end() - first_block + 1) * per_block);
        for block in blocks {
            if block < table.blocks() {
                store.load(table, block, &mut values);
            } else {
                // An insertion may be about to make the tail longer.
                values.resize(values.len() + per_block, V::default());
            }
        }
        Self { first_block, per_block, values, resets: Vec::new(), remainders: Vec::new() }
    }

    /// The values after an insertion. `table` may have made it or not.
    pub(super) fn insertion<S>(store: &S, table: &Table, Shift { at, end }: Shift) -> Self
    where
        S: ValueStore<Value = V>,
    {
        let mut plan = Self::load(store, table, blocks_of(table, at, end));
        let (from, to) = (plan.index(at), plan.index(end));
        plan.values.copy_within(from..to, from + 1);
        plan.values[from] = V::default();
        plan
    }

    /// The values after a removal. `table` may have made it or not.
    pub(super) fn removal<S>(store: &S, table: &Table, Shift { at, end }: Shift) -> Self
    where
        S: ValueStore<Value = V>,
    {
        let mut plan = Self::load(store, table, blocks_of(table, at, end));
        let (from, to) = (plan.index(at), plan.index(end));
        plan.values.copy_within(from + 1..to + 1, from);
        plan.values[to] = V::default();
        plan
    }

    fn index(&self, slot: u64) -> usize {
        slot as usize - self.first_block * self.per_block
    }

    /// The value of a slot; the initial one for slots of other blocks.
    pub(super) fn get(&self, slot: u64) -> V {
        let first = (self.first_block * self.per_block) as u64;
        slot.checked_sub(first).and_then(|index| self.values.get(index as usize).copied()).unwrap_or_default()
    }

    /// Changes the value of a slot.
    pub(super) fn set(&mut self, slot: u64, value: V) {
        let index = self.index(slot);
        self.values[index] = value;
    }

    /// The slots of a block.
    pub(super) fn slots_of(&self, block: usize) -> std::ops::Range<u64> {
        (block * self.per_block) as u64..((block + 1) * self.per_block) as u64
    }

    fn blocks(&self) -> impl Iterator<Item = (usize, &[V])> {
        (self.first_block..).zip(self.values.chunks(self.per_block))
    }

    /// The first block whose values do not fit, and that has not been reset yet. One that has been may hold more than
    /// its code since, if a single repair takes so much: its values go to the side store.
    pub(super) fn overflowing<S: ValueStore<Value = V>>(&self, store: &S) -> Option<usize> {
        let mut blocks = self.blocks().filter(|(block, _)| !self.resets.contains(block));
        blocks.find(|(_, values)| !store.fits(values)).map(|(block, _)| block)
    }

    /// Forgets the values of a block.
    pub(super) fn reset(&mut self, block: usize) {
        let first = (block - self.first_block) * self.per_block;
        self.values[first..first + self.per_block].fill(V::default());
        self.resets.push(block);
    }

    /// Forgets the values of all blocks where they do not fit.
    pub(super) fn reset_overflowing<S: ValueStore<Value = V>>(&mut self, store: &S) {
        while let Some(block) = self.overflowing(store) {
            self.reset(block);
        }
    }

    /// Takes back what was reset since these values were taken.
    pub(super) fn restore(&mut self, values: Vec<V>) {
        self.values = values;
        self.resets.clear();
        self.remainders.clear();
    }

    /// All values, to be compared with [`changed`](Self::changed) later.
    pub(super) fn snapshot(&self) -> Vec<V> {
        self.values.clone()
    }

    /// Whether the slot's value is not what it was when `before` was taken.
    pub(super) fn changed(&self, before: &[V], slot: u64) -> bool {
        let first = (self.first_block * self.per_block) as u64;
        let index = slot.checked_sub(first).map(|index| index as usize);
        index.is_some_and(|index| index < before.len() && before[index] != self.values[index])
    }

    /// Makes it true. Returns how many blocks went to the side store.
    pub(super) fn commit<S>(&self, store: &mut S, table: &mut Table) -> usize
    where
        S: ValueStore<Value = V>,
    {
        for &(slot, remainder) in &self.remainders {
            table.set_remainder(slot, remainder);
        }
        self.blocks().filter(|(block, values)| store.store(table, *block, values)).count()
    }
}
