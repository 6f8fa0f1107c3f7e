//! How a key is given a slot when all of its own are taken: the shortest chain of kicks that ends at an empty
//! slot, found breadth first before anything is changed.

use super::layout::CuckooLayout;

/// What a search moves about in.
pub(super) trait World {
    /// One key.
    type Item: Copy;
    /// Why a key could not be looked up.
    type Error;

    /// Whether nobody lies in the slot.
    fn is_vacant(&self, slot: usize) -> bool;

    /// Who lies in the slot, which is not vacant.
    fn item(&mut self, slot: usize) -> Result<Self::Item, Self::Error>;

    /// The first slot of the key's bin in a table.
    fn first_slot(&self, item: Self::Item, table: usize) -> usize;

    /// Whether the key may be put there.
    fn is_welcome(&self, _item: Self::Item, _slot: usize) -> bool {
        true
    }
}

/// One move of a chain: `item` goes to `slot`, whoever was there goes on by the next move.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move<I> {
    pub(super) slot: usize,
    pub(super) item: I,
}

/// This many slots are looked at before a search gives up. Each slot that is looked *behind* costs a read of the
/// remote, and a step leads to at least one slot, so this bounds the reads too. At 95% load the median search
/// sees some twenty slots; `tests/cuckoo/load.rs` counts the rehashes of filters that are filled, and so how seldom
/// this bound is met.
pub(super) const BUDGET: usize = 2048;

/// The search's memory. It is kept between searches, because to ask the allocator for it would take longer than
/// most searches do.
#[derive(Debug, Clone)]
pub(super) struct Search<I> {
    nodes: Vec<Node<I>>,
    /// The slots of the nodes. No slot twice, so no chain crosses itself.
    slots: Vec<usize>,
}

/// A move that the search considers, and the move that has to come before it.
#[derive(Debug, Clone, Copy)]
struct Node<I> {
    item: I,
    /// The table of the slot.
    table: u32,
    parent: u32,
}

/// The parent of a move that nothing has to come before.
const ROOT: u32 = u32::MAX;

/// What is kept of the memory between searches, in nodes.
const KEPT: usize = 64;

impl<I: Copy> Search<I> {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), slots: Vec::new() }
    }

    /// Looks for a shortest chain of moves by which `newcomer` gets into one of its bins in `tables`, among the
    /// first `budget` slots. If it finds one, [`moves`](Self::moves) has it.
    pub(super) fn run<W: World<Item = I>>(
        &mut self,
        world: &mut W,
        layout: &CuckooLayout,
        newcomer: I,
        tables: impl Iterator<Item = usize>,
        budget: usize,
    ) -> Result<bool, W::Error> {
        self.nodes.clear();
        self.slots.clear();
        for table in tables {
            if self.reach(world, layout, newcomer, table, ROOT) {
                return Ok(true);
            }
        }
        let mut next = 0;
        while next < self.nodes.len() && self.nodes.len() < budget {
            let from = self.nodes[next].table as usize;
            let item = world.item(self.slots[next])?;
            for table in (0..layout.tables).filter(|&table| table != from) {
                if self.reach(world, layout, item, table, next as u32) {
                    return Ok(true);
                }
            }
            next += 1;
        }
        Ok(false)
    }

    /// Adds the slots of the item's bin in a table. True if one of them is empty: it is the last node then.
    fn reach<W: World<Item = I>>(
        &mut self,
        world: &W,
        layout: &CuckooLayout,
        item: I,
        table: usize,
        parent: u32,
    ) -> bool {
        let first = world.first_slot(item, table);
        for slot in first..first + layout.bin_slots {
            if !world.is_welcome(item, slot) || self.slots.contains(&slot) {
                continue;
            }
            self.nodes.push(Node { item, table: table as u32, parent });
            self.slots.push(slot);
            if world.is_vacant(slot) {
                return true;
            }
        }
        false
    }

    /// The moves of the chain that was found, the last one first. They are to be made together.
    pub(super) fn moves(&self) -> impl Iterator<Item = Move<I>> {
        let last = self.nodes.len().checked_sub(1);
        let chain = std::iter::successors(last, |&at| {
            let parent = self.nodes[at].parent;
            (parent != ROOT).then_some(parent as usize)
        });
        chain.map(|at| Move { slot: self.slots[at], item: self.nodes[at].item })
    }

    /// Gives back what a large search took.
    pub(super) fn trim(&mut self) {
        self.nodes.clear();
        self.slots.clear();
        self.nodes.shrink_to(KEPT);
        self.slots.shrink_to(KEPT);
    }

    /// The memory in use, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<I>>() + self.slots.capacity() * size_of::<usize>()
    }
}
