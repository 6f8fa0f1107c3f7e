//! How a [`BinFilter`] is asked for.

use crate::builder::{Build, Builder, GrowableTo, Slotted, built_by, in_range};
use crate::{BuildError, Key, KeyHasher, Xxh3};

use super::filter::BinFilter;
use super::layout::Shape;
use super::table::Table;

/// The share of the bins' slots that the keys of a full filter would fill, unless the builder says otherwise.
const DEFAULT_LOAD: f64 = 0.90;

/// Loads that can be asked for.
pub(crate) const LOADS: std::ops::RangeInclusive<f64> = 0.01..=0.99;

/// More doublings than there are digits for.
const MAX_DOUBLINGS: u32 = 9;

/// Builds a [`BinFilter`].
///
/// Its [load](Builder::max_load), the share of the bins' slots that the keys of a full filter would fill, is 0.90
/// unless given. With 0.95, one query in twenty looks at the second level instead of one in fifty.
///
/// Lines are cut in some twenty ways for [rates](Builder::false_positive_rate) from 2^-16. Rates above 1/80 cost as
/// much memory as that one: there a [`QuotientFilter`](crate::QuotientFilter) is smaller. To be able to
/// [grow](Builder::growable_to) at all costs half a bit per key.
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
pub type BinFilterBuilder<H = Xxh3> = Builder<BinFilter<H>>;

built_by!(BinFilterBuilder, [] BinFilter);

impl<H: KeyHasher> Slotted for BinFilter<H> {}

impl<H: KeyHasher> GrowableTo for BinFilter<H> {}

impl<H: KeyHasher> Build for BinFilter<H> {
    type Options = ();
    type With<G: KeyHasher> = BinFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let (Plan { shape, bins, doublings }, load) = builder.plan()?;
        let table = Table::for_keys(bins, shape, builder.capacity)?;
        Ok(Self::from_parts(table, builder.hash_function(), builder.capacity, load, doublings))
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        let (Plan { shape, bins, .. }, _) = builder.plan()?;
        Ok(Table::size_for_keys(bins, shape, builder.capacity))
    }
}

impl<H: KeyHasher> Builder<BinFilter<H>> {
    /// Builds the filter of these keys, or one with room for more if a larger [`capacity`](Self::capacity) was asked for.
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
    pub fn from_keys<K: Key + Sync>(self, keys: &[K]) -> Result<BinFilter<H>, BuildError> {
        self.for_keys(keys).build()?.filled(keys)
    }

    /// The fewest doublings, and with them the fewest bits, that lead to what is asked for; and the load.
    fn plan(&self) -> Result<(Plan, f64), BuildError> {
        let (load, capacity, rate) = (self.load.unwrap_or(DEFAULT_LOAD), self.capacity, self.rate());
        // A rate that cannot be met without growth cannot be met at all.
        let fixed = Plan::fixed(rate, load, capacity, 0)?;
        let wanted = self.max_capacity.unwrap_or(capacity);
        if wanted <= capacity {
            return Ok((fixed, load));
        }
        let plan = |more| Plan::new(Shape::choose(rate, load, more)?, load, capacity, more);
        let plans = (1..MAX_DOUBLINGS).map_while(|more| plan(more).ok());
        let mut max = capacity;
        for plan in plans {
            max = plan.last_capacity(load);
            if max >= wanted {
                return Ok((plan, load));
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
    /// The plan of a filter that never doubles, with at least this many bits for flags in a line.
    pub(crate) fn fixed(rate: f64, load: f64, capacity: usize, spare: u32) -> Result<Self, BuildError> {
        in_range("max_load", load, *LOADS.start(), *LOADS.end())?;
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

/// How many keys fill this many bins to this load.
pub(super) fn capacity_of(bins: u64, slots: u32, load: f64) -> usize {
    (bins as f64 * f64::from(slots) * load) as usize
}
