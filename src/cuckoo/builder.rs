//! How a filter of the family is asked for.

use crate::builder::{Build, Builder, Options, Slotted, built_by, in_range};
use crate::{BuildError, KeyHasher, Xxh3};

use super::layout::{CuckooLayout, false_positive_rate};
use super::table::SlotTable;
use super::variant::{PartialKey, Variant};
use super::{AdaptiveCuckooFilter, AdaptiveVariant, CuckooFilter};

/// Builds a filter of the cuckoo family that has a remote.
///
/// The size of a slot follows from the [false-positive rate](Builder::false_positive_rate), or from the [memory per
/// key](Builder::bits_per_key), or is [given](Builder::slot_bits) itself; these three exclude each other. The
/// [load](Builder::max_load) is 0.95 unless given, or less for shapes that cannot reach it.
///
/// ```
/// use besom::cuckoo::RemoteCuckooFilter;
/// use besom::Filter;
///
/// let builder = RemoteCuckooFilter::builder().capacity(1000).bits_per_key(12.0).four_by_one().seed(7_u64);
/// let bits = builder.size_in_bits()?; // known before anything is built
/// let filter = builder.build()?;
/// assert_eq!((filter.tables(), filter.slots_per_bin(), filter.slot_bits()), (4, 1, 11));
/// assert_eq!(filter.stats().bits, bits);
/// # Ok::<(), besom::BuildError>(())
/// ```
pub type AdaptiveCuckooFilterBuilder<V, H = Xxh3> = Builder<AdaptiveCuckooFilter<V, H>>;

built_by!(AdaptiveCuckooFilterBuilder, [V: AdaptiveVariant] AdaptiveCuckooFilter<V>);

/// Builds a [`CuckooFilter`]; see [`AdaptiveCuckooFilterBuilder`].
pub type CuckooFilterBuilder<H = Xxh3> = Builder<CuckooFilter<H>>;

built_by!(CuckooFilterBuilder, [] CuckooFilter);

/// What a filter of the family can be asked for.
#[derive(Debug, Clone, Default)]
pub struct CuckooOptions {
    shape: Option<(usize, usize)>,
    bits_per_key: Option<f64>,
    slot_bits: Option<u32>,
}

impl Options for CuckooOptions {}

/// Fingerprints, without selectors, have this many bits.
pub(super) const FINGERPRINT_BITS: std::ops::RangeInclusive<u32> = 2..=32;

impl<V: AdaptiveVariant, H: KeyHasher> Slotted for AdaptiveCuckooFilter<V, H> {}

impl<H: KeyHasher> Slotted for CuckooFilter<H> {}

impl<V: AdaptiveVariant, H: KeyHasher> Build for AdaptiveCuckooFilter<V, H> {
    type Options = CuckooOptions;
    type With<G: KeyHasher> = AdaptiveCuckooFilter<V, G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let table = SlotTable::new(builder.layout::<V>()?)?;
        Ok(Self::from_parts(table, builder.hash_function(), builder.capacity))
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        builder.size::<V>()
    }
}

impl<H: KeyHasher> Build for CuckooFilter<H> {
    type Options = CuckooOptions;
    type With<G: KeyHasher> = CuckooFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let table = SlotTable::new(builder.layout::<PartialKey>()?)?;
        Ok(Self::from_parts(table, builder.hash_function(), builder.capacity))
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        builder.size::<PartialKey>()
    }
}

impl<F: Build<Options = CuckooOptions>> Builder<F> {
    /// Sets the most memory that the full filter may take, in bits per key.
    pub fn bits_per_key(mut self, bits: f64) -> Self {
        self.options.bits_per_key = Some(bits);
        self
    }

    /// Sets the bits of one slot: the fingerprint's, from 2 to 32, and the selector's where the variant has one.
    pub fn slot_bits(mut self, bits: u32) -> Self {
        self.options.slot_bits = Some(bits);
        self
    }

    /// Chooses k tables of bins of b slots, each from 1 (k from 2, and b from 2 in a swapping filter) to 8.
    ///
    /// A query looks at k bins, that is k places of memory, and at k·b slots; each of these is a chance for a
    /// false positive. More of either lets the table be filled further.
    pub fn shape(mut self, tables: usize, slots_per_bin: usize) -> Self {
        self.options.shape = Some((tables, slots_per_bin));
        self
    }

    /// Chooses four tables of single slots: the fewest false positives for its size.
    pub fn four_by_one(self) -> Self {
        self.shape(4, 1)
    }

    /// Chooses two tables of bins of four slots: the fewest places of memory to read.
    pub fn two_by_four(self) -> Self {
        self.shape(2, 4)
    }

    fn size<V: Variant>(&self) -> Result<usize, BuildError> {
        let bytes = SlotTable::<V>::bytes(&self.layout::<V>()?);
        bytes.checked_mul(8).ok_or(BuildError::OutOfMemory { bytes })
    }

    fn layout<V: Variant>(&self) -> Result<CuckooLayout, BuildError> {
        let CuckooOptions { shape, bits_per_key, slot_bits } = self.options;
        let sizes = [
            self.rate.map(|_| "false_positive_rate"),
            slot_bits.map(|_| "slot_bits"),
            bits_per_key.map(|_| "bits_per_key"),
        ];
        let mut given = sizes.into_iter().flatten();
        if let (Some(first), Some(second)) = (given.next(), given.next()) {
            return Err(BuildError::Conflict { first, second });
        }
        let capacity = self.checked_capacity()?;
        let shape @ (tables, bin_slots) = shape.unwrap_or(V::SHAPE);
        in_range("shape: tables", tables as f64, 2.0, CuckooLayout::MAX_TABLES as f64)?;
        in_range("shape: slots_per_bin", bin_slots as f64, V::MIN_BIN as f64, CuckooLayout::MAX_BIN as f64)?;
        let highest = CuckooLayout::highest_load(tables, bin_slots);
        let load = self.load.unwrap_or(highest.min(0.95));
        in_range("max_load", load, 0.01, highest)?;
        let mut layout = CuckooLayout::new(shape, capacity, load, 0)?;
        layout.width = self.fingerprint_bits::<V>(&layout, shape)? + V::SELECTOR_BITS;
        Ok(layout)
    }

    fn fingerprint_bits<V: Variant>(
        &self,
        layout: &CuckooLayout,
        shape: (usize, usize),
    ) -> Result<u32, BuildError> {
        let (least, most) = (least_fingerprint::<V>(layout), *FINGERPRINT_BITS.end());
        let load = self.capacity as f64 / layout.slots() as f64;
        if let Some(bits) = self.options.bits_per_key {
            let per_slot = 1.0 / load;
            let [min, max] = [least, most + 1].map(|bits| f64::from(bits + V::SELECTOR_BITS) * per_slot);
            in_range("bits_per_key", bits, min, max)?;
            // The sliver keeps a whole number of bits whole that went through the division and back.
            return Ok(((bits / per_slot + 1e-9) as u32 - V::SELECTOR_BITS).min(most));
        }
        if let Some(bits) = self.options.slot_bits {
            let [min, max] = [least, most].map(|bits| f64::from(bits + V::SELECTOR_BITS));
            in_range("slot_bits", f64::from(bits), min, max)?;
            return Ok(bits - V::SELECTOR_BITS);
        }
        let (rate, rate_of) = (self.rate(), |bits| false_positive_rate(shape, load, bits));
        let met = (least..=most).find(|&bits| rate_of(bits) <= rate);
        // A rate of 1 needs no filter.
        let (min, max) = (rate_of(most), 1.0_f64.next_down());
        met.filter(|_| rate <= max).ok_or(BuildError::RateOutOfRange { rate, min, max })
    }
}

/// The shortest fingerprints that the variant works with.
///
/// With partial keys the fingerprint also chooses the other bin: too few of them, and a large table clogs long
/// before it is full.
fn least_fingerprint<V: Variant>(layout: &CuckooLayout) -> u32 {
    if V::PARTIAL_KEY {
        6.max(layout.bins.ilog2().div_ceil(layout.bin_slots as u32) + 2)
    } else {
        *FINGERPRINT_BITS.start()
    }
}
