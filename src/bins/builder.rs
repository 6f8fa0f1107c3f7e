//! How a [`BinFilter`] is asked for.

use std::marker::PhantomData;

use crate::quotient::DEFAULT_RATE;
use crate::{BuildError, Key, KeyHasher, Seed, Xxh3};

use super::filter::BinFilter;
use super::layout::Shape;
use super::table::Table;

/// The share of the bins' slots that the keys of a full filter would fill, unless the builder says otherwise.
const DEFAULT_LOAD: f64 = 0.90;

/// Loads that can be asked for.
pub(crate) const LOADS: std::ops::RangeInclusive<f64> = 0.01..=0.99;

/// More doublings than there are digits for.
const MAX_DOUBLINGS: u32 = 9;

/// Asks for a [`BinFilter`].
///
/// ```
/// use besom::{BinFilter, Filter};
///
/// let builder = BinFilter::builder().capacity(10_000).false_positive_rate(0.001);
/// let size = builder.size_in_bits()?;
/// let filter = builder.build()?;
/// assert_eq!((filter.capacity(), filter.stats().bits), (10_000, size));
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build is called"]
pub struct BinFilterBuilder<H = Xxh3> {
    capacity: usize,
    max_capacity: Option<usize>,
    rate: f64,
    load: f64,
    seed: Option<Seed>,
    hasher: PhantomData<H>,
}

impl BinFilterBuilder<Xxh3> {
    pub(super) fn new() -> Self {
        let (rate, load) = (DEFAULT_RATE, DEFAULT_LOAD);
        Self { capacity: 0, max_capacity: None, rate, load, seed: None, hasher: PhantomData }
    }
}

impl<H: KeyHasher> BinFilterBuilder<H> {
    /// How many keys the filter shall hold. Any number, not only powers of two.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// Lets the filter grow on demand, by doubling, until it holds so many keys. It meets the requested rate all
    /// the way, and pays for that with one bit more per key for every doubling that is still to come, and half a bit for
    /// being able to double at all.
    ///
    /// Adaptive filters have [`growable`](crate::ExtensionFilterBuilder::growable), without a limit, instead: they ask
    /// their remote for more of a key's hash. A plain filter has none to ask and has to keep the bits for its largest
    /// size from the beginning, so it must be told that size.
    ///
    /// ```
    /// use besom::{BinFilter, Filter, Insert};
    ///
    /// let mut filter = BinFilter::builder().capacity(100).growable_to(1000).build()?;
    /// (0..1000_u64).try_for_each(|key| filter.insert(&key).map(drop))?;
    /// assert!(filter.capacity() >= 1000 && filter.contains(&999_u64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn growable_to(mut self, keys: usize) -> Self {
        self.max_capacity = Some(keys);
        self
    }

    /// The largest share of other keys that may be taken for stored ones when the filter is full; 1/256 unless
    /// given. Lines are cut in some twenty ways, so the true rate can be as low as half of this;
    /// [`Filter::false_positive_rate`](crate::Filter::false_positive_rate) says what it is.
    ///
    /// Rates above 1/80 cost as much memory as that one: there a [`QuotientFilter`](crate::QuotientFilter) is smaller.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// The share of the bins' slots that the keys of a full filter would fill; 0.90 unless given. Less is faster and
    /// larger; with 0.95, one query in twenty looks at the second level instead of one in fifty.
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
    pub fn hasher<G: KeyHasher>(self) -> BinFilterBuilder<G> {
        let Self { capacity, max_capacity, rate, load, seed, .. } = self;
        BinFilterBuilder { capacity, max_capacity, rate, load, seed, hasher: PhantomData }
    }

    /// The filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn build(self) -> Result<BinFilter<H>, BuildError> {
        let Plan { shape, bins, doublings } = self.plan()?;
        let table = Table::for_keys(bins, shape, self.capacity)?;
        let hasher = H::with_seed(self.seed.unwrap_or_else(Seed::random));
        Ok(BinFilter::from_parts(table, hasher, self.capacity, self.load, doublings))
    }

    /// The filter of these keys, or one with room for more if a larger [`capacity`](Self::capacity) was asked for.
    ///
    /// Several times faster than inserting them one by one if the filter is larger than the processor's cache; with the
    /// feature `rayon`, on all cores. Several threads take 8 bytes a key meanwhile, one thread takes none.
    ///
    /// ```
    /// use besom::{BinFilter, Filter};
    ///
    /// let keys: Vec<u64> = (0..10_000).collect();
    /// let filter = BinFilter::builder().from_keys(&keys)?;
    /// assert_eq!((filter.len(), filter.capacity()), (10_000, 10_000));
    /// assert!(keys.iter().all(|key| filter.contains(key)));
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn from_keys<K: Key + Sync>(mut self, keys: &[K]) -> Result<BinFilter<H>, BuildError> {
        self.capacity = self.capacity.max(keys.len()).max(1);
        self.build()?.filled(keys)
    }

    /// The memory that the filter is going to take, known before it is built:
    /// [`FilterStats::bits`](crate::FilterStats::bits) of the empty filter. Keys do not add to it, but for a larger
    /// second level in rare cases; growth does.
    ///
    /// # Errors
    ///
    /// [`BuildError`] as [`build`](Self::build), except that no memory is asked for.
    pub fn size_in_bits(&self) -> Result<usize, BuildError> {
        let Plan { shape, bins, .. } = self.plan()?;
        Ok(Table::size_for_keys(bins, shape, self.capacity))
    }

    /// The fewest doublings, and with them the fewest bits, that lead to what is asked for.
    fn plan(&self) -> Result<Plan, BuildError> {
        let (load, capacity) = (self.load, self.capacity);
        // A rate that cannot be met without growth cannot be met at all.
        let fixed = Plan::fixed(self.rate, load, capacity, 0)?;
        let wanted = self.max_capacity.unwrap_or(capacity);
        if wanted <= capacity {
            return Ok(fixed);
        }
        let plan = |more| Plan::new(Shape::choose(self.rate, load, more)?, load, capacity, more);
        let plans = (1..MAX_DOUBLINGS).map_while(|more| plan(more).ok());
        let mut max = capacity;
        for plan in plans {
            max = plan.last_capacity(load);
            if max >= wanted {
                return Ok(plan);
            }
        }
        Err(BuildError::CapacityTooLarge { capacity: wanted, max })
    }
}

/// What a filter begins with.
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    pub(crate) bins: u64,
    doublings: u32,
}

impl Plan {
    /// The plan of a filter that never doubles, with so many bits for flags in a line at least.
    pub(crate) fn fixed(rate: f64, load: f64, capacity: usize, spare: u32) -> Result<Self, BuildError> {
        if !LOADS.contains(&load) {
            let (min, max) = (*LOADS.start(), *LOADS.end());
            return Err(BuildError::OutOfRange { name: "max_load", value: load, min, max });
        }
        if capacity == 0 {
            return Err(BuildError::ZeroCapacity);
        }
        Self::new(Shape::choose_with(rate, load, 0, spare)?, load, capacity, 0)
    }

    /// The plan of a filter whose lines are cut in this way.
    pub(crate) fn new(shape: Shape, load: f64, capacity: usize, doublings: u32) -> Result<Self, BuildError> {
        let per_bin = f64::from(shape.slots) * load;
        let bins = (capacity as f64 / per_bin).ceil();
        let most = (Table::MAX_BINS >> doublings) as f64;
        if bins > most {
            return Err(BuildError::CapacityTooLarge { capacity, max: (most * per_bin) as usize });
        }
        Ok(Self { shape, bins: bins as u64, doublings })
    }

    /// What the filter holds in the end.
    fn last_capacity(&self, load: f64) -> usize {
        let slots = self.shape.after(self.doublings).map_or(0, |last| last.slots);
        capacity_of(self.bins << self.doublings, slots, load)
    }
}

/// How many keys fill so many bins to this load.
pub(super) fn capacity_of(bins: u64, slots: u32, load: f64) -> usize {
    (bins as f64 * f64::from(slots) * load) as usize
}
