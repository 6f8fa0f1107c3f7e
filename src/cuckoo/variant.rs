//! What the members of the family differ in, as far as the table is concerned.

use std::fmt::Debug;

use crate::format::Kind;

use super::layout::CuckooLayout;
use super::place::{CuckooPlace, scale};

/// A member of the cuckoo family, as a name to choose with: it has no value of interest.
///
/// [`Inert`], [`Cuckooing`], [`Cyclic`] and [`Swapping`] are all there are, but for that of the plain
/// [`CuckooFilter`](super::CuckooFilter).
pub trait Variant: sealed::Sealed + Debug + Clone + Copy + PartialEq + Send + Sync + 'static {
    /// Tables (k) and slots per bin (b), unless the builder is told otherwise.
    const SHAPE: (usize, usize);
    /// The smallest bin that the variant makes sense with.
    const MIN_BIN: usize = 1;
    /// Bits of every slot that say which fingerprint function its fingerprint was made with.
    const SELECTOR_BITS: u32 = 0;
    /// Whether each slot of a bin has a fingerprint function of its own.
    const BY_SLOT: bool = false;
    /// Whether the other bins of a key follow from one bin and the fingerprint.
    const PARTIAL_KEY: bool = false;
    /// How a false positive is repaired.
    const ON_FALSE_POSITIVE: OnFalsePositive = OnFalsePositive::Nothing;
}

/// A [`Variant`] whose keys lie in a remote.
pub trait AdaptiveVariant: Variant {
    /// What its filters are in files.
    const KIND: Kind;
}

impl AdaptiveVariant for Inert {
    const KIND: Kind = Kind::CuckooRemote;
}

impl AdaptiveVariant for Cuckooing {
    const KIND: Kind = Kind::Cuckooing;
}

impl<const S: u32> AdaptiveVariant for Cyclic<S> {
    const KIND: Kind = match S {
        1 => Kind::Cyclic1,
        2 => Kind::Cyclic2,
        _ => Kind::Cyclic3,
    };
}

impl AdaptiveVariant for Swapping {
    const KIND: Kind = Kind::Swapping;
}

/// How a [`Variant`] repairs a false positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFalsePositive {
    /// Not at all.
    Nothing,
    /// The colliding key moves on to its next table.
    NextTable,
    /// The slot of the colliding key takes its next fingerprint function.
    NextSelector,
    /// The colliding key swaps places with another slot of its bin.
    Swap,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Inert {}
    impl Sealed for super::Cuckooing {}
    impl<const S: u32> Sealed for super::Cyclic<S> {}
    impl Sealed for super::Swapping {}
    impl Sealed for super::PartialKey {}
}

/// The variant of [`RemoteCuckooFilter`](super::RemoteCuckooFilter): repairs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inert;

impl Variant for Inert {
    const SHAPE: (usize, usize) = (2, 4);
}

/// The variant of [`CuckooingFilter`](super::CuckooingFilter): a colliding key moves on to its next table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cuckooing;

impl Variant for Cuckooing {
    const SHAPE: (usize, usize) = (4, 1);
    const ON_FALSE_POSITIVE: OnFalsePositive = OnFalsePositive::NextTable;
}

/// The variant of [`CyclicFilter`](super::CyclicFilter): `S` selector bits a slot choose the fingerprint
/// function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cyclic<const S: u32>;

impl<const S: u32> Variant for Cyclic<S> {
    const SHAPE: (usize, usize) = (4, 1);
    const SELECTOR_BITS: u32 = {
        assert!(1 <= S && S <= 3, "a cyclic filter has 1, 2 or 3 selector bits");
        S
    };
    const ON_FALSE_POSITIVE: OnFalsePositive = OnFalsePositive::NextSelector;
}

/// The variant of [`SwappingFilter`](super::SwappingFilter): the fingerprint depends on the slot of the bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swapping;

impl Variant for Swapping {
    const SHAPE: (usize, usize) = (2, 4);
    const MIN_BIN: usize = 2;
    const BY_SLOT: bool = true;
    const ON_FALSE_POSITIVE: OnFalsePositive = OnFalsePositive::Swap;
}

/// The variant of [`CuckooFilter`](super::CuckooFilter): needs no remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartialKey;

impl Variant for PartialKey {
    const SHAPE: (usize, usize) = (2, 4);
    const PARTIAL_KEY: bool = true;
}

/// The bin of a key in table `table`.
#[inline]
pub(super) fn bin<V: Variant>(place: CuckooPlace, table: usize, layout: &CuckooLayout) -> usize {
    if V::PARTIAL_KEY {
        let stride = stride(place.fingerprint(0, layout.width), layout);
        partial_bin(place.bin(0, layout.bins), stride, table, layout)
    } else {
        place.bin(table, layout.bins)
    }
}

/// How far apart the bins of a key with this fingerprint lie in neighbouring tables, if partial keys are used.
#[inline]
pub(super) fn stride(fingerprint: u64, layout: &CuckooLayout) -> usize {
    // Two rounds, because consecutive fingerprints must not get consecutive strides.
    let word = (fingerprint.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ fingerprint << 32)
        .wrapping_mul(0xd6e8_feb8_6659_fd93);
    scale(word, layout.bins)
}

/// The bin in table `table`, `table` strides behind the bin in the first table, wrapping around.
#[inline]
pub(super) fn partial_bin(first: usize, stride: usize, table: usize, layout: &CuckooLayout) -> usize {
    // Each addition stays below twice the number of bins, so one subtraction wraps it.
    (0..table).fold(first, |bin, _| {
        let next = bin + stride;
        if next >= layout.bins { next - layout.bins } else { next }
    })
}

/// The bin in the first table of a key that lies in bin `bin` of table `table`: undoes [`partial_bin`].
pub(super) fn first_bin(bin: usize, stride: usize, table: usize, layout: &CuckooLayout) -> usize {
    (0..table).fold(bin, |bin, _| if bin >= stride { bin - stride } else { bin + layout.bins - stride })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn the_first_bin_is_found_from_every_other() {
        let mut random = Random::new(5);
        for bins in [1, 2, 3, 1000, 4097] {
            let layout = CuckooLayout { tables: 8, bin_slots: 1, bins, width: 8 };
            for _ in 0..500 {
                let stride = stride(1 + random.below(255), &layout);
                let first = random.below(bins as u64) as usize;
                for table in 0..8 {
                    let bin = partial_bin(first, stride, table, &layout);
                    assert!(bin < bins);
                    assert_eq!(first_bin(bin, stride, table, &layout), first);
                }
            }
        }
    }
}
