//! How large the parts of a cascade are.

use super::dead::DeadCells;
use super::ledger::Ledger;
use super::level::{LevelFilter, bloom_size};
use crate::BuildError;
use crate::bloom::size::optimal_bits_per_key;

/// Home cells of level 0 per stored key; every level has as many times more as the one above it.
const CELLS: u64 = 16;

/// Stored keys per list.
///
/// A repair reads one list, and every list takes a byte of the filter: longer ones cost reading, shorter ones memory.
const KEYS_PER_LIST: u64 = 16;

/// The smallest number of cells that may die at a level, so that tiny filters are not rebuilt all the time.
const LEAST_DEAD: usize = 8;

/// The fewest lists: an error of the remote should not put a whole tiny filter in question.
const LEAST_LISTS: u64 = 8;

/// What two levels of whole blocks, and the structures that hold them, take beyond what they have to.
const ROUNDING_BITS: f64 = 10_240.0;

/// How large everything is; the same before and after a rebuild.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sizes {
    /// Lists. The home cells of every level are a multiple of this.
    pub(super) lists: u64,
    /// The levels that are filters, at least one.
    pub(super) levels: Vec<LevelSize>,
    /// How many digests the last level takes.
    pub(super) last: usize,
}

/// How large one level is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LevelSize {
    pub(super) rate: f64,
    /// How many keys the level takes.
    pub(super) keys: usize,
    /// Home cells.
    pub(super) cells: u64,
    /// How many of them may die.
    pub(super) dead: usize,
}

impl Sizes {
    /// The sizes of levels with these rates.
    ///
    /// A Bloom filter of n keys takes 1.4427·n·log₂(1/ε) bits; everything that repairs take is to stay within a share
    /// of 8ε + 0.5% on top of that, so that the whole takes at most (1 + 8ε)·1.45·n·log₂(1/ε), and the ledger's half a
    /// bit per key. If the filter cannot
    /// remove, a third of the share goes to room for the keys that have been removed, so that the filter keeps its rate
    /// while they are left behind.
    pub(super) fn new(capacity: usize, rates: &[f64], removes: bool) -> Self {
        let (keys, rate) = (capacity as f64, rates[0]);
        let least_keys = (capacity as u64).max(LEAST_DEAD as u64);
        let lists = (least_keys / KEYS_PER_LIST).max(LEAST_LISTS);
        let share = 8.0 * rate + 0.005;
        let garbage = if removes { 0.0 } else { (share / 3.0).min(0.05) };
        // What whole probes and whole blocks cost is not there for repairs.
        let (optimum, filter) = (optimal_bits_per_key(rate), bloom_size(1.0, rate).bits);
        let budget = ((1.0 + share) * optimum - (1.0 + garbage) * filter) * keys;
        let budget = budget - ROUNDING_BITS.min(budget * 2.0 / 3.0);
        let mut level = LevelSize {
            rate,
            keys: (keys * (1.0 + garbage)).floor() as usize,
            cells: lists * (least_keys * CELLS).div_ceil(lists),
            dead: dead_cells(keys, budget, rates),
        };
        let mut levels = vec![level];
        for &rate in &rates[1..] {
            level = LevelSize {
                rate,
                keys: moved_keys(keys, &level) as usize + LEAST_DEAD,
                cells: level.cells * CELLS,
                dead: (level.dead / 64).max(LEAST_DEAD),
            };
            levels.push(level);
        }
        // Besides the keys that are moved there: those that were removed from the last filter and came back.
        let last = moved_keys(keys, &level) as usize + level.dead.max(2 * LEAST_DEAD);
        Self { lists, levels, last }
    }

    /// The memory that the empty filter takes, in bits.
    pub(super) fn bits<F: LevelFilter>(&self) -> Result<usize, BuildError> {
        let mut bits = Ledger::bits(self.lists);
        for level in &self.levels {
            let filter = F::level_bits(level.keys, level.rate)?;
            bits = bits.saturating_add(filter).saturating_add(DeadCells::memory_for(level.cells, level.dead));
        }
        Ok(bits)
    }

    /// Refuses sizes for which there is no memory at once, before parts of it are taken one after the other.
    pub(super) fn check_memory<F: LevelFilter>(&self) -> Result<(), BuildError> {
        let bytes = self.bits::<F>()? / 8;
        let mut probe = Vec::<u8>::new();
        probe.try_reserve_exact(bytes).map_err(|_| BuildError::OutOfMemory { bytes })
    }
}

/// (1 + 1/log n) times the number of keys that are expected to be at home in the dead cells of a level.
fn moved_keys(keys: f64, level: &LevelSize) -> f64 {
    let expected = keys * level.dead as f64 / level.cells as f64;
    expected * (1.0 + 1.0 / keys.log2().max(1.0))
}

/// How many cells of level 0 can die within a budget of this many bits.
fn dead_cells(keys: f64, budget: f64, rates: &[f64]) -> usize {
    let cells = keys * CELLS as f64;
    let per_key = 1.1 / CELLS as f64;
    // A dead cell, its share of the keys in level 1 (or of the digests), and of the dead cells there.
    let next = rates.get(1).map_or(170.0, |&rate| 1.1 * optimal_bits_per_key(rate) + 10.0);
    // The denser the dead cells, the fewer bits each takes: a few rounds settle it.
    let mut dead = (budget / 16.0).max(0.0);
    for _ in 0..8 {
        dead = budget / (1.12 * DeadCells::bits_per_cell(cells, dead.max(1.0)) + per_key * next);
    }
    (dead as usize).min(keys as usize / 2).max(LEAST_DEAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cascade::Schedule;

    #[test]
    fn there_is_room_in_all_levels_and_homes_lie_in_one_list() {
        for capacity in [1, 2, 10, 1_000, 1 << 20, 1 << 44] {
            for rate in [0.5, 0.25, 0.01, 1.0 / 256.0, 1e-6, 1e-14] {
                for schedule in [Schedule::Squaring, Schedule::LogStar] {
                    for levels in 1..=4 {
                        let sizes = Sizes::new(capacity, &schedule.rates(rate, levels), false);
                        assert_eq!(sizes.levels.len(), levels);
                        assert!(sizes.levels[0].keys >= capacity);
                        for level in &sizes.levels {
                            assert!(level.keys > 0 && level.dead >= LEAST_DEAD);
                            assert!(level.dead as u64 <= level.cells / DeadCells::SPARSITY, "{level:?}");
                            assert_eq!(level.cells % sizes.lists, 0);
                        }
                    }
                }
            }
        }
    }
}
