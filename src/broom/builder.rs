//! How a [`BroomFilter`] is asked for.

use std::marker::PhantomData;

use crate::quotient::fraction_bits;
use crate::{BuildError, KeyHasher, Seed, Xxh3};

use super::filter::BroomFilter;
use super::fingerprint::Shape;

/// The load up to which the filter is filled unless the builder says otherwise.
const DEFAULT_LOAD: f64 = 0.90;

/// Loads that can be asked for. Beyond, too many keys find no place in their section of the primary table.
const LOADS: std::ops::RangeInclusive<f64> = 0.01..=0.95;

/// The false-positive rate unless the builder says otherwise.
const DEFAULT_RATE: f64 = 1.0 / 256.0;

/// Remainders of so many bits and more are large: they are cut into a signature and a rest. See the module
/// documentation for the measurement behind it.
pub(super) const LARGE: u32 = 12;

/// The signature of a large remainder: as many bits as the fastest table has.
const SIGNATURE_BITS: u32 = 8;

/// Remainders that can be asked for.
const REMAINDER_BITS: std::ops::RangeInclusive<u32> = 3..=48;

/// Asks for a [`BroomFilter`].
///
/// ```
/// use besom::{BroomFilter, Filter};
///
/// let filter = BroomFilter::builder().capacity(10_000).false_positive_rate(1e-6).seed(7_u64).build()?;
/// assert_eq!(filter.capacity(), 10_000);
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build is called"]
pub struct BroomFilterBuilder<H = Xxh3> {
    capacity: usize,
    max_capacity: Option<usize>,
    rate: f64,
    load: f64,
    seed: Option<Seed>,
    hasher: PhantomData<H>,
}

impl BroomFilterBuilder<Xxh3> {
    pub(super) fn new() -> Self {
        let (rate, load) = (DEFAULT_RATE, DEFAULT_LOAD);
        Self { capacity: 0, max_capacity: None, rate, load, seed: None, hasher: PhantomData }
    }
}

impl<H: KeyHasher> BroomFilterBuilder<H> {
    /// How many keys the filter shall hold. Any number, not only powers of two.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// Lets the filter grow on demand, by doubling, until it holds so many keys. It meets the requested rate all
    /// the way. Growing reads every key from the remote and writes all of them back: it is the one operation
    /// that is not pauseless.
    pub fn growable_to(mut self, keys: usize) -> Self {
        self.max_capacity = Some(keys);
        self
    }

    /// The sustained false-positive rate of the full filter, against every adversary; 1/256 unless given.
    /// Remainders have whole bits, so the true rate can be as low as half of this.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// The share of the slots in use when the filter is full, 0.95 at most; 0.90 unless given. The more, the
    /// more keys find no place in the primary table: one in 100 at 0.90, one in 40 at 0.95.
    pub fn max_load(mut self, load: f64) -> Self {
        self.load = load;
        self
    }

    /// The seed of the hash functions; the operating system chooses one unless given.
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.seed = Some(seed.into());
        self
    }

    /// Another hash function.
    pub fn hasher<G: KeyHasher>(self) -> BroomFilterBuilder<G> {
        let Self { capacity, max_capacity, rate, load, seed, .. } = self;
        BroomFilterBuilder { capacity, max_capacity, rate, load, seed, hasher: PhantomData }
    }

    /// The filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn build(self) -> Result<BroomFilter<H>, BuildError> {
        let max_capacity = self.max_capacity.unwrap_or(self.capacity).max(self.capacity);
        let remainder_bits = remainder_bits(self.rate, self.load)?;
        let table_bits = if remainder_bits >= LARGE { SIGNATURE_BITS } else { remainder_bits };
        let plan = Plan { remainder_bits, table_bits, load: self.load };
        plan.shape(max_capacity)?;
        let hasher = H::with_seed(self.seed.unwrap_or_else(Seed::random));
        BroomFilter::from_plan(plan, self.capacity, max_capacity, hasher, 0)
    }
}

/// What stays the same when a filter grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    pub(super) remainder_bits: u32,
    /// As many of them as stand in the table: all of a small remainder, the signature of a large one.
    pub(super) table_bits: u32,
    pub(super) load: f64,
}

impl Plan {
    /// The shape of a filter for so many keys.
    pub(super) fn shape(self, capacity: usize) -> Result<Shape, BuildError> {
        let slots = crate::quotient::slots_for(capacity, self.load)?;
        let table_bits = self.table_bits;
        // All bits in the table come from the first hash word, behind the quotient.
        if table_bits > fraction_bits(slots) {
            let max = ((1_u64 << (64 - table_bits)) as f64 * self.load) as usize;
            return Err(BuildError::CapacityTooLarge { capacity, max });
        }
        Ok(Shape { slots, table_bits, rest_bits: self.remainder_bits - table_bits })
    }
}

/// How many remainder bits meet a rate: a query meets `load` keys of its quotient on average, and each of them
/// takes it for itself with probability 2^−r (Lemma 12).
fn remainder_bits(rate: f64, load: f64) -> Result<u32, BuildError> {
    if !LOADS.contains(&load) {
        let (min, max) = (*LOADS.start(), *LOADS.end());
        return Err(BuildError::OutOfRange { name: "max_load", value: load, min, max });
    }
    let rate_of = |bits: u32| load * 0.5_f64.powi(bits as i32);
    let (min, max) = (rate_of(*REMAINDER_BITS.end()), 1.0);
    if !(min..max).contains(&rate) {
        return Err(BuildError::RateOutOfRange { rate, min, max });
    }
    Ok(REMAINDER_BITS.into_iter().find(|&bits| rate_of(bits) <= rate).unwrap_or(*REMAINDER_BITS.end()))
}
