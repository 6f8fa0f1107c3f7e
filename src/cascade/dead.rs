//! Which home cells of a level are dead.

use crate::format::{Decoder, Encoder, FormatError, in_range};
use crate::quotient::Table;
use crate::{BuildError, InvariantError};

/// A sparse set of cells, compressed: a dead cell takes about 4 + log₂(cells / capacity) bits.
///
/// The cells are cut into ranges of equal length, one per slot of a quotient table: the range is the quotient,
/// the place in the range the remainder. Nothing is lost, so the set is exact.
#[derive(Debug, Clone)]
pub(super) struct DeadCells {
    table: Table,
    /// How many cells a range has.
    range: u64,
    capacity: usize,
}

impl DeadCells {
    /// The share of the table's slots that are in use when the set is full.
    const LOAD: f64 = 0.9;

    /// How many cells so sparse a set must have at least for every one that can be dead.
    pub(super) const SPARSITY: u64 = 8;

    /// No cell of `cells` dead; `capacity` of them may be. At least eight cells for each of those.
    pub(super) fn new(cells: u64, capacity: usize) -> Result<Self, BuildError> {
        debug_assert!(capacity as u64 <= cells / Self::SPARSITY && capacity > 0);
        let range = Self::range(cells as f64, capacity as f64) as u64;
        Ok(Self { table: Table::new(cells.div_ceil(range), Self::bits(range), false)?, range, capacity })
    }

    /// The cells per range: as many as there are for each slot, if remainders are wide enough for that.
    fn range(cells: f64, capacity: f64) -> f64 {
        (cells * Self::LOAD / capacity).floor().clamp(4.0, (1_u64 << 32) as f64)
    }

    fn bits(range: u64) -> u32 {
        (range - 1).ilog2() + 1
    }

    /// The memory of a set with these parameters, in bits.
    pub(super) fn memory_for(cells: u64, capacity: usize) -> usize {
        let range = Self::range(cells as f64, capacity as f64) as u64;
        Table::size(cells.div_ceil(range), Self::bits(range), false).bits
    }

    /// The bits that each of `capacity` dead cells among `cells` takes.
    pub(super) fn bits_per_cell(cells: f64, capacity: f64) -> f64 {
        let range = Self::range(cells, capacity);
        (2.125 + f64::from(Self::bits(range as u64))) / Self::LOAD
    }

    /// Writes the set: how many blocks its table has and how many cells are dead, then the blocks.
    pub(super) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let [_, _, blocks] = self.table.measures();
        encoder.words(&[blocks, self.len() as u64])?;
        self.table.encode(encoder)
    }

    /// Reads a set that [`new`](Self::new) would make with these parameters.
    pub(super) fn decode(
        decoder: &mut Decoder<'_>,
        cells: u64,
        capacity: usize,
    ) -> Result<Self, FormatError> {
        let range = Self::range(cells as f64, capacity as f64) as u64;
        let [blocks, len] = decoder.numbers()?;
        let len = in_range("dead cells", len, 0..=capacity as u64)?;
        let measures = [cells.div_ceil(range), Self::bits(range).into(), blocks];
        Ok(Self { table: Table::decode(decoder, measures, false, len)?, range, capacity })
    }

    /// Whether a cell is dead.
    #[inline]
    pub(super) fn contains(&self, cell: u64) -> bool {
        self.table.len() > 0 && self.table.contains(cell / self.range, cell % self.range)
    }

    /// Marks a cell dead that is alive. `false`, and nothing is changed, if there is no room.
    pub(super) fn insert(&mut self, cell: u64) -> bool {
        debug_assert!(!self.contains(cell));
        !self.is_full() && self.table.insert(cell / self.range, cell % self.range).is_ok()
    }

    /// Whether no further cell can be marked dead.
    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// How many cells are dead.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// How many can be.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The memory in use, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        self.table.memory_bits()
    }

    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()
    }
}

/// The same cells are dead, in whatever order they died.
impl PartialEq for DeadCells {
    fn eq(&self, other: &Self) -> bool {
        let sizes = |set: &Self| (set.range, set.capacity, set.table.slots(), set.len());
        sizes(self) == sizes(other)
            && self.table.iter().all(|item| other.table.contains(item.quotient, item.remainder))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::testing::Random;

    #[test]
    fn exactly_the_cells_that_were_marked_are_dead() {
        let mut random = Random::new(23);
        for (cells, capacity) in [(32, 4), (100, 12), (1_000, 30), (1 << 20, 100), (1 << 38, 50)] {
            let mut dead = DeadCells::new(cells, capacity).unwrap();
            let mut model = HashSet::new();
            while !dead.is_full() {
                let cell = random.below(cells);
                if model.insert(cell) {
                    assert!(dead.insert(cell));
                }
                dead.verify().unwrap();
                for cell in model.iter().copied().chain((0..20).map(|_| random.below(cells))) {
                    assert_eq!(dead.contains(cell), model.contains(&cell), "cell {cell} of {cells}");
                }
            }
            assert_eq!((dead.len(), dead.capacity()), (capacity, capacity));
        }
    }

    #[test]
    fn the_set_is_as_small_as_it_says() {
        for (cells, capacity) in [(1 << 20, 1 << 10), (1 << 24, 1 << 17), (3_000_000, 1_000)] {
            let dead = DeadCells::new(cells, capacity).unwrap();
            assert_eq!(dead.memory_bits(), DeadCells::memory_for(cells, capacity));
            let said = DeadCells::bits_per_cell(cells as f64, capacity as f64) * capacity as f64;
            let slack = 1.10 * said + 2_000.0;
            assert!((dead.memory_bits() as f64) < slack, "{} bits, not {said}", dead.memory_bits());
        }
    }
}
