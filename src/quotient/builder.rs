//! How a [`QuotientFilter`] is asked for.

use std::marker::PhantomData;

use crate::{BuildError, Key, KeyHasher, Seed, Xxh3};

use super::bulk;
use super::filter::QuotientFilter;
use super::geometry::Geometry;
use super::table::{Table, fraction_bits};

/// The load up to which a quotient table is filled unless the builder says otherwise.
pub(crate) const DEFAULT_LOAD: f64 = 0.95;

/// The false-positive rate unless the builder says otherwise.
pub(crate) const DEFAULT_RATE: f64 = 1.0 / 256.0;

/// The largest rate that can be asked for: above it a filter is hardly one.
const MAX_RATE: f64 = 0.5;

/// Asks for a [`QuotientFilter`].
///
/// ```
/// use besom::quotient::QuotientFilter;
/// use besom::Filter;
///
/// let builder = QuotientFilter::builder().capacity(10_000).false_positive_rate(0.001);
/// let size = builder.size_in_bits()?;
/// let filter = builder.build()?;
/// assert_eq!((filter.capacity(), filter.stats().bits), (10_000, size));
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build is called"]
pub struct QuotientFilterBuilder<H = Xxh3> {
    capacity: usize,
    max_capacity: Option<usize>,
    rate: f64,
    load: f64,
    seed: Option<Seed>,
    hasher: PhantomData<H>,
}

impl QuotientFilterBuilder<Xxh3> {
    pub(super) fn new() -> Self {
        let (rate, load) = (DEFAULT_RATE, DEFAULT_LOAD);
        Self { capacity: 0, max_capacity: None, rate, load, seed: None, hasher: PhantomData }
    }
}

impl<H: KeyHasher> QuotientFilterBuilder<H> {
    /// How many keys the filter shall hold. Any number, not only powers of two.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// Lets the filter grow on demand, by doubling, until it holds so many keys. It meets the requested rate all
    /// the way, and pays for that with one bit more per key for every doubling that is still to come.
    ///
    /// Adaptive filters have [`growable`](crate::ExtensionFilterBuilder::growable), without a limit, instead: they ask
    /// their remote for more of a key's hash. A plain filter has none to ask and has to keep the bits for its largest
    /// size from the beginning, so it must be told that size.
    ///
    /// ```
    /// use besom::quotient::QuotientFilter;
    /// use besom::{Filter, Insert};
    ///
    /// let mut filter = QuotientFilter::builder().capacity(100).growable_to(1000).build()?;
    /// (0..1000_u64).try_for_each(|key| filter.insert(&key).map(drop))?;
    /// assert!(filter.capacity() >= 1000 && filter.contains(&999_u64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn growable_to(mut self, keys: usize) -> Self {
        self.max_capacity = Some(keys);
        self
    }

    /// The largest share of other keys that may be taken for stored ones when the filter is full; 1/256 unless
    /// given. Remainders have whole bits, so the true rate can be as low as half of this.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// The share of the slots in use when the filter is full; 0.95 unless given. Less is faster and larger.
    pub fn max_load(mut self, load: f64) -> Self {
        self.load = load;
        self
    }

    /// The seed of the hash function; the operating system chooses one unless given.
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.seed = Some(seed.into());
        self
    }

    /// Another hash function.
    pub fn hasher<G: KeyHasher>(self) -> QuotientFilterBuilder<G> {
        let Self { capacity, max_capacity, rate, load, seed, .. } = self;
        QuotientFilterBuilder { capacity, max_capacity, rate, load, seed, hasher: PhantomData }
    }

    /// The filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn build(self) -> Result<QuotientFilter<H>, BuildError> {
        let (slots, bits, doublings) = self.shape()?;
        let table = Table::new(slots, bits, false)?;
        let hasher = H::with_seed(self.seed.unwrap_or_else(Seed::random));
        Ok(QuotientFilter::from_parts(table, hasher, self.capacity, doublings))
    }

    /// The filter of these keys, or one with room for more if a larger [`capacity`](Self::capacity) was asked for.
    ///
    /// Several times faster than inserting them one by one: they are sorted by place first, and the table is written in
    /// one pass; with the feature `rayon`, on all cores. Takes 8 bytes a key meanwhile, and hashes each twice.
    ///
    /// ```
    /// use besom::quotient::QuotientFilter;
    /// use besom::Filter;
    ///
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// let filter = QuotientFilter::builder().from_keys(&keys)?;
    /// assert_eq!((filter.len(), filter.capacity()), (10_000, 10_000));
    /// assert!(keys.iter().all(|key| filter.contains(key)));
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn from_keys<K: Key + Sync>(mut self, keys: &[K]) -> Result<QuotientFilter<H>, BuildError> {
        self.capacity = self.capacity.max(keys.len()).max(1);
        let (slots, bits, doublings) = self.shape()?;
        let hasher = H::with_seed(self.seed.unwrap_or_else(Seed::random));
        let hash = |number: usize| hasher.digest_key(&keys[number]).hi;
        let empty = Table::new(slots, bits, false)?;
        let table = bulk::fill(empty, keys.len(), hash, |_| (), |()| Ok::<_, BuildError>(()))?;
        Ok(QuotientFilter::from_parts(table, hasher, self.capacity, doublings))
    }

    /// The memory that the filter is going to take, known before it is built:
    /// [`FilterStats::bits`](crate::FilterStats::bits) of the empty filter. Keys do not add to it, but for a longer
    /// tail in rare cases; growth does.
    ///
    /// # Errors
    ///
    /// [`BuildError`] as [`build`](Self::build), except that no memory is asked for.
    pub fn size_in_bits(&self) -> Result<usize, BuildError> {
        let (slots, bits, _) = self.shape()?;
        Ok(Table::size(slots, bits, false).bits)
    }

    /// How many slots the filter has at first, how wide their remainders are, and how often it may double.
    fn shape(&self) -> Result<(u64, u32, u32), BuildError> {
        let slots = slots_for(self.capacity, self.load)?;
        let max_capacity = self.max_capacity.unwrap_or(self.capacity).max(self.capacity);
        let doublings = doublings_to(slots, slots_for(max_capacity, self.load)?);
        let last_bits = remainder_bits(self.rate, self.load)?;
        let bits = last_bits + doublings;
        if bits > *Geometry::REMAINDER_BITS.end() || bits > fraction_bits(slots) {
            let max = max_capacity >> (bits - fraction_bits(slots).min(*Geometry::REMAINDER_BITS.end()));
            return Err(BuildError::CapacityTooLarge { capacity: max_capacity, max });
        }
        Ok((slots, bits, doublings))
    }
}

/// How many slots so many keys need at this load.
pub(crate) fn slots_for(capacity: usize, load: f64) -> Result<u64, BuildError> {
    const MIN_LOAD: f64 = 0.01;
    const MAX_LOAD: f64 = 0.99;
    if !(MIN_LOAD..=MAX_LOAD).contains(&load) {
        return Err(BuildError::OutOfRange { name: "max_load", value: load, min: MIN_LOAD, max: MAX_LOAD });
    }
    if capacity == 0 {
        return Err(BuildError::ZeroCapacity);
    }
    let slots = (capacity as f64 / load).ceil();
    if slots > Geometry::MAX_SLOTS as f64 {
        let max = (Geometry::MAX_SLOTS as f64 * load) as usize;
        return Err(BuildError::CapacityTooLarge { capacity, max });
    }
    Ok(slots as u64)
}

/// How many times `slots` has to be doubled to reach `goal`.
pub(super) fn doublings_to(slots: u64, goal: u64) -> u32 {
    (0..64).find(|&doublings| slots << doublings >= goal).unwrap_or(64)
}

/// How many remainder bits meet a rate: a query meets `load` keys of its quotient on average, and each of them
/// takes it for itself with probability 2^−r.
pub(crate) fn remainder_bits(rate: f64, load: f64) -> Result<u32, BuildError> {
    let (least, most) = (*Geometry::REMAINDER_BITS.start(), *Geometry::REMAINDER_BITS.end());
    let rate_of = |bits: u32| load * 0.5_f64.powi(bits as i32);
    if !(rate_of(most)..=MAX_RATE).contains(&rate) {
        return Err(BuildError::RateOutOfRange { rate, min: rate_of(most), max: MAX_RATE });
    }
    Ok((least..=most).find(|&bits| rate_of(bits) <= rate).unwrap_or(most))
}
