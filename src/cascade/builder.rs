//! How a cascade is asked for, and how large its parts are.

use std::marker::PhantomData;

use super::dead::DeadCells;
use super::filter::Cascade;
use super::level::LevelFilter;
use super::schedule::Schedule;
use super::state::{CELLS, LevelPlan, Plan};
use crate::bloom::size::{self, check_rate, optimal_bits_per_key};
use crate::{BuildError, KeyHasher, Seed, Xxh3};

/// Builds a [`Cascade`].
///
/// ```
/// use besom::{Cascade, QuotientFilter, Schedule, SipHash};
///
/// let filter = Cascade::<QuotientFilter>::builder()
///     .capacity(10_000)
///     .false_positive_rate(0.01)
///     .schedule(Schedule::LogStar)
///     .hasher::<SipHash>()
///     .build()?;
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct CascadeBuilder<F, H = Xxh3> {
    capacity: usize,
    rate: f64,
    levels: usize,
    schedule: Schedule,
    seed: Option<Seed>,
    parts: PhantomData<(F, H)>,
}

impl<F: LevelFilter> CascadeBuilder<F> {
    pub(super) fn new() -> Self {
        Self {
            capacity: 0,
            rate: 1.0 / 256.0,
            levels: 2,
            schedule: Schedule::default(),
            seed: None,
            parts: PhantomData,
        }
    }
}

impl<F: LevelFilter, H: KeyHasher> CascadeBuilder<F, H> {
    /// How many keys the filter shall hold. Must be given.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// The sustained false-positive rate ε, from 2⁻⁵⁰ to 1/2 or as far as the level's filter goes. 1/256 by default.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// How many levels are filters, from 1 to 4; behind them comes the one that stores whole digests. 2 by default.
    ///
    /// With one, repairs of repairs cost more memory; with three and more, a level is left without work for most
    /// rates: the paper's own rule, that the last level may hold one key in 3 log₂ n, is met by one level already
    /// if the rate is below 1/64.
    pub fn levels(mut self, filters: usize) -> Self {
        self.levels = filters;
        self
    }

    /// How the rates fall from level to level. [`Schedule::Squaring`] by default.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Makes the hash functions, and so the filter, repeatable. From the operating system by default.
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.seed = Some(seed.into());
        self
    }

    /// Hashes keys with another function than [`Xxh3`].
    pub fn hasher<G: KeyHasher>(self) -> CascadeBuilder<F, G> {
        let Self { capacity, rate, levels, schedule, seed, .. } = self;
        CascadeBuilder { capacity, rate, levels, schedule, seed, parts: PhantomData }
    }

    /// The empty filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if a parameter is out of range or the memory not to be had.
    pub fn build(self) -> Result<Cascade<F, H>, BuildError> {
        let plan = self.plan()?;
        Cascade::new(plan, self.capacity, H::with_seed(self.seed.unwrap_or_else(Seed::random)))
    }

    fn plan(&self) -> Result<Plan, BuildError> {
        const LEVELS: std::ops::RangeInclusive<usize> = 1..=4;
        const MAX_CAPACITY: usize = 1 << 44;
        let &Self { capacity, levels, .. } = self;
        let rate = check_rate(self.rate)?;
        if capacity == 0 {
            return Err(BuildError::ZeroCapacity);
        }
        if capacity > MAX_CAPACITY {
            return Err(BuildError::CapacityTooLarge { capacity, max: MAX_CAPACITY });
        }
        if !LEVELS.contains(&levels) {
            let (min, max) = (*LEVELS.start() as f64, *LEVELS.end() as f64);
            return Err(BuildError::OutOfRange { name: "levels", value: levels as f64, min, max });
        }
        Ok(plan(capacity, &self.schedule.rates(rate, levels), F::REMOVES))
    }
}

/// The smallest number of cells that may die at a level, so that tiny filters are not rebuilt all the time.
const LEAST_DEAD: usize = 8;

/// What two levels of whole blocks, and the structures that hold them, take beyond what they have to.
const ROUNDING_BITS: f64 = 10_240.0;

/// How large the levels with these rates are.
///
/// A Bloom filter of n keys takes 1.4427·n·log₂(1/ε) bits; everything that repairs take is to stay within a share
/// of 8ε + 0.5% on top of that, so that the whole takes at most (1 + 8ε)·1.45·n·log₂(1/ε). If the filter cannot
/// remove, a third of the share goes to room for the keys that have been removed, so that the filter keeps its rate
/// while they are left behind.
fn plan(capacity: usize, rates: &[f64], removes: bool) -> Plan {
    let (keys, rate) = (capacity as f64, rates[0]);
    let lists = (capacity as u64).max(LEAST_DEAD as u64);
    let share = 8.0 * rate + 0.005;
    let garbage = if removes { 0.0 } else { (share / 3.0).min(0.05) };
    // What whole probes and whole blocks cost is not there for repairs.
    let (optimum, filter) = (optimal_bits_per_key(rate), size::level(1.0, rate).bits);
    let budget = ((1.0 + share) * optimum - (1.0 + garbage) * filter) * keys;
    let budget = budget - ROUNDING_BITS.min(budget * 2.0 / 3.0);
    let mut level = LevelPlan {
        rate,
        keys: (keys * (1.0 + garbage)).floor() as usize,
        cells: lists * CELLS,
        dead: dead_cells(keys, budget, rates),
    };
    let mut levels = vec![level];
    for &rate in &rates[1..] {
        level = LevelPlan {
            rate,
            keys: moved_keys(keys, &level) as usize + LEAST_DEAD,
            cells: level.cells * CELLS,
            dead: (level.dead / 64).max(LEAST_DEAD),
        };
        levels.push(level);
    }
    // Besides the keys that are moved there: those that were removed from the last filter and came back.
    let last = moved_keys(keys, &level) as usize + level.dead.max(2 * LEAST_DEAD);
    Plan { lists, levels, last }
}

/// (1 + 1/log n) times the number of keys that are expected to be at home in the dead cells of a level.
fn moved_keys(keys: f64, level: &LevelPlan) -> f64 {
    let expected = keys * level.dead as f64 / level.cells as f64;
    expected * (1.0 + 1.0 / keys.log2().max(1.0))
}

/// How many cells of level 0 can die within a budget of so many bits.
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

    #[test]
    fn every_plan_has_room_in_all_levels() {
        for capacity in [1, 2, 10, 1_000, 1 << 20, 1 << 44] {
            for rate in [0.5, 0.25, 0.01, 1.0 / 256.0, 1e-6, 1e-14] {
                for schedule in [Schedule::Squaring, Schedule::LogStar] {
                    for levels in 1..=4 {
                        let plan = plan(capacity, &schedule.rates(rate, levels), false);
                        assert_eq!(plan.levels.len(), levels);
                        assert!(plan.lists >= capacity as u64 && plan.levels[0].keys >= capacity);
                        for level in &plan.levels {
                            assert!(level.keys > 0 && level.dead >= LEAST_DEAD);
                            assert!(level.dead as u64 <= level.cells / DeadCells::SPARSITY, "{level:?}");
                        }
                    }
                }
            }
        }
    }
}
