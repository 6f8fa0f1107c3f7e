//! How a [`QuotientFilter`] is asked for.

use crate::builder::{Build, Builder, GrowableTo, Slotted, built_by, in_range};
use crate::{BuildError, Key, KeyHasher, Xxh3};

use super::bulk;
use super::filter::QuotientFilter;
use super::geometry::Geometry;
use super::table::{Table, fraction_bits};

/// The load up to which a quotient table is filled unless the builder says otherwise.
pub(crate) const DEFAULT_LOAD: f64 = 0.95;

/// The largest rate that can be asked for: above it a filter is hardly one.
const MAX_RATE: f64 = 0.5;

/// Builds a [`QuotientFilter`]. Its [load](Builder::max_load) is 0.95 unless given.
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
pub type QuotientFilterBuilder<H = Xxh3> = Builder<QuotientFilter<H>>;

built_by!(QuotientFilterBuilder, [] QuotientFilter);

impl<H: KeyHasher> Slotted for QuotientFilter<H> {}

impl<H: KeyHasher> GrowableTo for QuotientFilter<H> {}

impl<H: KeyHasher> Build for QuotientFilter<H> {
    type Options = ();
    type With<G: KeyHasher> = QuotientFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let (slots, bits, doublings) = builder.shape()?;
        let table = Table::new(slots, bits, false)?;
        Ok(Self::from_parts(table, builder.hash_function(), builder.capacity, doublings))
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        let (slots, bits, _) = builder.shape()?;
        Ok(Table::size(slots, bits, false).bits)
    }
}

impl<H: KeyHasher> Builder<QuotientFilter<H>> {
    /// Builds the filter of these keys, or one with room for more if a larger [`capacity`](Self::capacity) was asked
    /// for.
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
    pub fn from_keys<K: Key + Sync>(self, keys: &[K]) -> Result<QuotientFilter<H>, BuildError> {
        let this = self.for_keys(keys);
        let (slots, bits, doublings) = this.shape()?;
        let hasher = this.hash_function();
        let hash = |number: usize| hasher.digest_key(&keys[number]).hi;
        let empty = Table::new(slots, bits, false)?;
        let table = bulk::fill(empty, keys.len(), hash, |_| (), |(), _| Ok::<_, BuildError>(()))?;
        Ok(QuotientFilter::from_parts(table, hasher, this.capacity, doublings))
    }

    /// How many slots the filter has at first, how wide their remainders are, and how often it may double.
    fn shape(&self) -> Result<(u64, u32, u32), BuildError> {
        let load = self.load.unwrap_or(DEFAULT_LOAD);
        let slots = slots_for(self.capacity, load)?;
        let max_capacity = self.max_capacity.unwrap_or(self.capacity).max(self.capacity);
        let doublings = doublings_to(slots, slots_for(max_capacity, load)?);
        let last_bits = remainder_bits(self.rate(), load)?;
        let bits = last_bits + doublings;
        if bits > *Geometry::REMAINDER_BITS.end() || bits > fraction_bits(slots) {
            let max = max_capacity >> (bits - fraction_bits(slots).min(*Geometry::REMAINDER_BITS.end()));
            return Err(BuildError::CapacityTooLarge { capacity: max_capacity, max });
        }
        Ok((slots, bits, doublings))
    }
}

/// How many slots this many keys need at this load.
pub(crate) fn slots_for(capacity: usize, load: f64) -> Result<u64, BuildError> {
    in_range("max_load", load, 0.01, 0.99)?;
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
