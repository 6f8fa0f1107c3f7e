//! How a key is given a slot when all of its own are taken: the shortest chain of kicks that ends at an empty
//! slot, found breadth first before anything is changed.

use super::shape::Shape;

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

/// So many slots are looked at before a search gives up. Each slot that is looked *behind* costs a read of the
/// remote, and a step leads to at least one slot, so this bounds the reads too. At 95% load the median search
/// sees some twenty slots; see `tests/cuckoo_load.rs` for how seldom this bound is met.
pub(super) const BUDGET: usize = 2048;

/// A move that the search considers, and the move that has to come before it.
struct Node<I> {
    item: I,
    /// The table of the slot.
    table: u32,
    parent: u32,
}

/// The parent of a move that nothing has to come before.
const ROOT: u32 = u32::MAX;

struct Search<'w, W: World> {
    world: &'w mut W,
    nodes: Vec<Node<W::Item>>,
    /// The slots of the nodes. No slot twice, so no chain crosses itself.
    slots: Vec<usize>,
}

/// Moves to be made together, first move first.
pub(super) type Chain<I> = Vec<Move<I>>;

/// A shortest chain of moves, first move first, by which `newcomer` gets into one of its bins in `tables`.
/// `None` if there is none among the first `budget` slots.
pub(super) fn find_chain<W: World>(
    world: &mut W,
    shape: &Shape,
    newcomer: W::Item,
    tables: impl Iterator<Item = usize>,
    budget: usize,
) -> Result<Option<Chain<W::Item>>, W::Error> {
    let mut search = Search { world, nodes: Vec::with_capacity(32), slots: Vec::with_capacity(32) };
    for table in tables {
        if search.reach(shape, newcomer, table, ROOT) {
            return Ok(Some(search.chain()));
        }
    }
    let mut next = 0;
    while next < search.nodes.len() && search.nodes.len() < budget {
        let from = search.nodes[next].table as usize;
        let item = search.world.item(search.slots[next])?;
        for table in (0..shape.tables).filter(|&table| table != from) {
            if search.reach(shape, item, table, next as u32) {
                return Ok(Some(search.chain()));
            }
        }
        next += 1;
    }
    Ok(None)
}

impl<W: World> Search<'_, W> {
    /// Adds the slots of the item's bin in a table. True if one of them is empty: it is the last node then.
    fn reach(&mut self, shape: &Shape, item: W::Item, table: usize, parent: u32) -> bool {
        let first = self.world.first_slot(item, table);
        for slot in first..first + shape.bin_slots {
            if !self.world.is_welcome(item, slot) || self.slots.contains(&slot) {
                continue;
            }
            self.nodes.push(Node { item, table: table as u32, parent });
            self.slots.push(slot);
            if self.world.is_vacant(slot) {
                return true;
            }
        }
        false
    }

    /// The moves that lead to the last node.
    fn chain(&self) -> Chain<W::Item> {
        let mut moves = Vec::new();
        let mut at = self.nodes.len() - 1;
        while let Some(node) = self.nodes.get(at) {
            moves.push(Move { slot: self.slots[at], item: node.item });
            at = node.parent as usize;
        }
        moves.reverse();
        moves
    }
}
