//! How a cascade is asked for.

use std::marker::PhantomData;

use super::filter::Cascade;
use super::level::LevelFilter;
use super::schedule::Schedule;
use super::sizes::Sizes;
use crate::bloom::size::check_rate;
use crate::{BuildError, KeyHasher, Seed, Xxh3};

/// Builds a [`Cascade`].
///
/// ```
/// use besom::cascade::{Cascade, Schedule};
/// use besom::quotient::QuotientFilter;
/// use besom::SipHash;
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
#[must_use = "a builder does nothing until build is called"]
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
    /// Sets how many keys the filter holds. Must be given.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// The sustained false-positive rate ε, from 2⁻⁵⁰ (or as far as the level's filter goes) to 1/2. 1/256 by default.
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

    /// Returns the memory that the filter will take before the first repair, in bits:
    /// [`FilterStats::bits`](crate::FilterStats::bits).
    ///
    /// # Errors
    ///
    /// [`BuildError`] if a parameter is out of range.
    pub fn size_in_bits(&self) -> Result<usize, BuildError> {
        self.sizes()?.bits::<F>()
    }

    /// Builds the empty filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if a parameter is out of range or the memory is not available.
    pub fn build(self) -> Result<Cascade<F, H>, BuildError> {
        let sizes = self.sizes()?;
        Cascade::new(sizes, self.capacity, H::with_seed(self.seed.unwrap_or_else(Seed::random)))
    }

    fn sizes(&self) -> Result<Sizes, BuildError> {
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
        Ok(Sizes::new(capacity, &self.schedule.rates(rate, levels), F::REMOVES))
    }
}
