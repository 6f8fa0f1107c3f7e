//! How a cascade is asked for.

use super::filter::Cascade;
use super::level::LevelFilter;
use super::schedule::Schedule;
use super::sizes::Sizes;
use crate::bloom::size::check_rate;
use crate::builder::{Build, Builder, Options, built_by, in_range};
use crate::{BuildError, KeyHasher, Xxh3};

/// Builds a [`Cascade`], at sustained rates from 2⁻⁵⁰ (or as far as the level's filter goes) to 1/2.
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
pub type CascadeBuilder<F, H = Xxh3> = Builder<Cascade<F, H>>;

built_by!(CascadeBuilder, [F: LevelFilter] Cascade<F>);

/// What a cascade can be asked for.
#[derive(Debug, Clone)]
pub struct CascadeOptions {
    levels: usize,
    schedule: Schedule,
}

impl Default for CascadeOptions {
    fn default() -> Self {
        Self { levels: 2, schedule: Schedule::default() }
    }
}

impl Options for CascadeOptions {}

impl<F: LevelFilter, H: KeyHasher> Build for Cascade<F, H> {
    type Options = CascadeOptions;
    type With<G: KeyHasher> = Cascade<F, G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        Self::new(builder.sizes()?, builder.capacity, builder.hash_function())
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        builder.sizes()?.bits::<F>()
    }
}

impl<F: LevelFilter, H: KeyHasher> Builder<Cascade<F, H>> {
    /// Sets how many levels are filters, from 1 to 4; behind them comes the one that stores whole digests. 2 by default.
    ///
    /// With one, repairs of repairs cost more memory; with three and more, a level is left without work for most
    /// rates: the paper's own rule, that the last level may hold one key in 3 log₂ n, is met by one level already
    /// if the rate is below 1/64.
    pub fn levels(mut self, filters: usize) -> Self {
        self.options.levels = filters;
        self
    }

    /// Sets how the rates fall from level to level. [`Schedule::Squaring`] by default.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.options.schedule = schedule;
        self
    }

    fn sizes(&self) -> Result<Sizes, BuildError> {
        const MAX_CAPACITY: usize = 1 << 44;
        let CascadeOptions { levels, schedule } = self.options;
        let rate = check_rate(self.rate())?;
        let capacity = self.checked_capacity()?;
        if capacity > MAX_CAPACITY {
            return Err(BuildError::CapacityTooLarge { capacity, max: MAX_CAPACITY });
        }
        in_range("levels", levels as f64, 1.0, 4.0)?;
        Ok(Sizes::new(capacity, &schedule.rates(rate, levels), F::REMOVES))
    }
}
