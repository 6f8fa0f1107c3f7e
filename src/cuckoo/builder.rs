//! How a filter of the family is asked for.

use std::marker::PhantomData;

use crate::{BuildError, KeyHasher, Seed, Xxh3};

use super::layout::{CuckooLayout, false_positive_rate};
use super::table::SlotTable;
use super::variant::{PartialKey, Variant};
use super::{AdaptiveCuckooFilter, AdaptiveVariant, PartialKeyCuckooFilter};

/// Builds a filter of the cuckoo family.
///
/// Only the capacity must be given. The size of a slot follows from the false-positive rate (1/256 unless
/// chosen), or from the memory per key, or is given itself; these three exclude each other.
///
/// ```
/// use besom::cuckoo::CuckooFilter;
/// use besom::Filter;
///
/// let builder = CuckooFilter::builder().capacity(1000).bits_per_key(12.0).four_by_one().seed(7_u64);
/// let bits = builder.size_in_bits()?; // known before anything is built
/// let filter = builder.build()?;
/// assert_eq!((filter.tables(), filter.slots_per_bin(), filter.slot_bits()), (4, 1, 11));
/// assert_eq!(filter.stats().bits, bits);
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build is called"]
pub struct CuckooFilterBuilder<V: Variant, H: KeyHasher = Xxh3> {
    capacity: usize,
    shape: (usize, usize),
    size: Size,
    /// The name of the method that set `size`, and of another one that tried to.
    size_given: Option<&'static str>,
    conflict: Option<&'static str>,
    max_load: Option<f64>,
    seed: Option<Seed>,
    target: PhantomData<(V, H)>,
}

/// What the size of a slot follows from.
#[derive(Debug, Clone, Copy)]
enum Size {
    Rate(f64),
    BitsPerKey(f64),
    Slot(u32),
}

/// Fingerprints, without selectors, have this many bits.
pub(super) const FINGERPRINT_BITS: std::ops::RangeInclusive<u32> = 2..=32;

impl<V: Variant> CuckooFilterBuilder<V> {
    pub(super) fn new() -> Self {
        Self {
            capacity: 0,
            shape: V::SHAPE,
            size: Size::Rate(1.0 / 256.0),
            size_given: None,
            conflict: None,
            max_load: None,
            seed: None,
            target: PhantomData,
        }
    }
}

impl<V: Variant, H: KeyHasher> CuckooFilterBuilder<V, H> {
    /// How many keys the filter is for. Any number from 1.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// The most false positives per query that the full filter may have before any repair.
    pub fn false_positive_rate(self, rate: f64) -> Self {
        self.size("false_positive_rate", Size::Rate(rate))
    }

    /// The most memory that the full filter may take, in bits per key.
    pub fn bits_per_key(self, bits: f64) -> Self {
        self.size("bits_per_key", Size::BitsPerKey(bits))
    }

    /// Bits of one slot: the fingerprint's, from 2 to 32, and the selector's where the variant has one.
    pub fn slot_bits(self, bits: u32) -> Self {
        self.size("slot_bits", Size::Slot(bits))
    }

    fn size(mut self, method: &'static str, size: Size) -> Self {
        match self.size_given {
            Some(given) if given != method => self.conflict = Some(method),
            _ => (self.size, self.size_given) = (size, Some(method)),
        }
        self
    }

    /// The share of the slots in use when the filter is full: 0.95 unless chosen, or less for shapes that
    /// cannot reach it.
    pub fn max_load(mut self, load: f64) -> Self {
        self.max_load = Some(load);
        self
    }

    /// k tables of bins of b slots, each from 1 (k from 2, and b from 2 in a swapping filter) to 8.
    ///
    /// A query looks at k bins, that is k places of memory, and at k·b slots; each of these is a chance for a
    /// false positive. More of either lets the table be filled further.
    pub fn shape(mut self, tables: usize, slots_per_bin: usize) -> Self {
        self.shape = (tables, slots_per_bin);
        self
    }

    /// Four tables of single slots: the fewest false positives for its size.
    pub fn four_by_one(self) -> Self {
        self.shape(4, 1)
    }

    /// Two tables of bins of four slots: the fewest places of memory to read.
    pub fn two_by_four(self) -> Self {
        self.shape(2, 4)
    }

    /// Sets the secret of the hash function; random unless given.
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.seed = Some(seed.into());
        self
    }

    /// Uses another hash function, such as [`SipHash`](crate::SipHash).
    pub fn hasher<G: KeyHasher>(self) -> CuckooFilterBuilder<V, G> {
        CuckooFilterBuilder {
            capacity: self.capacity,
            shape: self.shape,
            size: self.size,
            size_given: self.size_given,
            conflict: self.conflict,
            max_load: self.max_load,
            seed: self.seed,
            target: PhantomData,
        }
    }

    /// Returns the memory that the filter is going to take, in bits: what
    /// [`FilterStats::bits`](crate::FilterStats::bits) says of it.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if what was asked for cannot be met, with the range that can.
    pub fn size_in_bits(&self) -> Result<usize, BuildError> {
        let bytes = SlotTable::<V>::bytes(&self.layout()?);
        bytes.checked_mul(8).ok_or(BuildError::OutOfMemory { bytes })
    }

    fn parts(&self) -> Result<(SlotTable<V>, H, usize), BuildError> {
        let table = SlotTable::new(self.layout()?)?;
        Ok((table, H::with_seed(self.seed.unwrap_or_else(Seed::random)), self.capacity))
    }

    fn layout(&self) -> Result<CuckooLayout, BuildError> {
        if let (Some(first), Some(second)) = (self.size_given, self.conflict) {
            return Err(BuildError::Conflict { first, second });
        }
        if self.capacity == 0 {
            return Err(BuildError::ZeroCapacity);
        }
        let (tables, bin_slots) = self.shape;
        in_range("shape: tables", tables as f64, 2.0, CuckooLayout::MAX_TABLES as f64)?;
        in_range("shape: slots_per_bin", bin_slots as f64, V::MIN_BIN as f64, CuckooLayout::MAX_BIN as f64)?;
        let highest = CuckooLayout::highest_load(tables, bin_slots);
        let load = self.max_load.unwrap_or(highest.min(0.95));
        in_range("max_load", load, 0.01, highest)?;
        let mut layout = CuckooLayout::new(self.shape, self.capacity, load, 0)?;
        layout.width = self.fingerprint_bits(&layout)? + V::SELECTOR_BITS;
        Ok(layout)
    }

    fn fingerprint_bits(&self, layout: &CuckooLayout) -> Result<u32, BuildError> {
        let (least, most) = (least_fingerprint::<V>(layout), *FINGERPRINT_BITS.end());
        let load = self.capacity as f64 / layout.slots() as f64;
        match self.size {
            Size::Rate(rate) => {
                let rate_of = |bits| false_positive_rate(self.shape, load, bits);
                let met = (least..=most).find(|&bits| rate_of(bits) <= rate);
                // A rate of 1 needs no filter.
                let (min, max) = (rate_of(most), 1.0_f64.next_down());
                met.filter(|_| rate <= max).ok_or(BuildError::RateOutOfRange { rate, min, max })
            }
            Size::BitsPerKey(bits) => {
                let per_slot = 1.0 / load;
                let [min, max] = [least, most + 1].map(|bits| f64::from(bits + V::SELECTOR_BITS) * per_slot);
                in_range("bits_per_key", bits, min, max)?;
                // The sliver keeps a whole number of bits whole that went through the division and back.
                Ok(((bits / per_slot + 1e-9) as u32 - V::SELECTOR_BITS).min(most))
            }
            Size::Slot(bits) => {
                let [min, max] = [least, most].map(|bits| f64::from(bits + V::SELECTOR_BITS));
                in_range("slot_bits", f64::from(bits), min, max)?;
                Ok(bits - V::SELECTOR_BITS)
            }
        }
    }
}

impl<V: AdaptiveVariant, H: KeyHasher> CuckooFilterBuilder<V, H> {
    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if what was asked for cannot be met, with the range that can.
    pub fn build(self) -> Result<AdaptiveCuckooFilter<V, H>, BuildError> {
        let (table, hasher, capacity) = self.parts()?;
        Ok(AdaptiveCuckooFilter::from_parts(table, hasher, capacity))
    }
}

impl<H: KeyHasher> CuckooFilterBuilder<PartialKey, H> {
    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if what was asked for cannot be met, with the range that can.
    pub fn build(self) -> Result<PartialKeyCuckooFilter<H>, BuildError> {
        let (table, hasher, capacity) = self.parts()?;
        Ok(PartialKeyCuckooFilter::from_parts(table, hasher, capacity))
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

fn in_range(name: &'static str, value: f64, min: f64, max: f64) -> Result<(), BuildError> {
    // Written so that NaN is refused.
    if min <= value && value <= max { Ok(()) } else { Err(BuildError::OutOfRange { name, value, min, max }) }
}
