//! The extension filter: the broom filter's way of adapting, in the blocks of the telescoping filter (the paper's
//! exAF).

use std::marker::PhantomData;

use crate::coding::{Extension, Extensions};
use crate::hash_string::HashString;
use crate::quotient::{CodeShare, Probe, Table};
use crate::values::{
    CodedValues, Core, Doubt, Overflow, Parameters, Scheme, code_for, common_parameters, forward_to_core,
};
use crate::{BuildError, KeyHasher, Xxh3};

/// An extension filter: adapts by making a slot's fingerprint longer.
///
/// When a stored key is found to collide with a query, its fingerprint takes as many more of the key's hash bits
/// as tell the two apart, two on average. It never loses them again, so with [`Overflow::Spill`] a repaired false
/// positive stays away for as long as the stored key stays, and many that were never asked for go with it.
///
/// | | |
/// |---|---|
/// | space | 11.13 bits a slot at ε = 2^-8: 11.72 per key at load 0.95; for other ε about log2(1/ε) + 3.1 a slot |
/// | false positives | ε for any query that was not one before, less for slots that were repaired |
/// | room for repairs | about a third of the telescoping filter's: five slots in 46; see [`Overflow`] for what happens then |
/// | `contains` | a quotient filter's speed: extensions are decoded only after quotient and remainder matched |
/// | `insert`, `remove` | one group of changes to the remote; one list read if the key seems to be there already |
/// | `adapt` | one list read, nothing written |
///
/// **Set semantics**: inserting a key twice stores it once. **Growth** scans the remote once and keeps all repairs: a
/// fingerprint that gets one more bit from the larger table gives back one bit of its extension.
///
/// **Deletion by an attacker**: a removed key takes its repairs with it. Whoever can remove and insert a key that
/// collides with a query of theirs makes the same false positive again each time; where that is possible, use the
/// [`BroomFilter`](crate::BroomFilter), whose ghosts remember.
///
/// ```
/// use besom::{Adaptive, ExtensionFilter, Filter, MemoryRemote};
///
/// let mut remote = MemoryRemote::new();
/// let mut filter = ExtensionFilter::builder().capacity(1_000).seed(1_u64).build()?;
/// for key in 0..1_000_u32 {
///     filter.insert(&key, &mut remote)?;
/// }
/// let strangers: Vec<u32> = (1_000..50_000).filter(|key| filter.contains(key)).collect();
/// assert!((100..300).contains(&strangers.len()));
/// for key in &strangers {
///     filter.adapt(key, &mut remote)?;
/// }
/// assert!(strangers.iter().all(|key| !filter.contains(key)));
/// assert!((0..1_000_u32).all(|key| filter.contains(&key)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ExtensionFilter<H = Xxh3> {
    core: Core<Extending, H>,
}

impl ExtensionFilter<Xxh3> {
    /// Asks for a filter; see [`ExtensionFilterBuilder`].
    pub fn builder() -> ExtensionFilterBuilder<Xxh3> {
        ExtensionFilterBuilder { parameters: Parameters::default(), hasher: PhantomData }
    }

    /// A filter for so many keys, with a false-positive rate of 1/256.
    ///
    /// # Errors
    ///
    /// [`BuildError`] for capacity 0 and for more than memory holds.
    pub fn with_capacity(keys: usize) -> Result<Self, BuildError> {
        Self::builder().capacity(keys).build()
    }
}

forward_to_core!(ExtensionFilter, Extension);

impl<H: KeyHasher> ExtensionFilter<H> {
    /// How many keys have an extension of no bits, of one bit, of two bits and so on: how far repairs have gone. Walks the whole
    /// filter.
    ///
    /// ```
    /// use besom::{Adaptive, ExtensionFilter, Filter, MemoryRemote};
    ///
    /// let (mut filter, mut remote) = (ExtensionFilter::builder().capacity(100).seed(7_u64).build()?, MemoryRemote::new());
    /// (0..100_u64).try_for_each(|key| filter.insert(&key, &mut remote).map(drop))?;
    /// assert_eq!(filter.extension_lengths(), [100]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn extension_lengths(&self) -> Vec<usize> {
        self.core.histogram(|extension| extension.len() as usize)
    }
}

/// Asks for an [`ExtensionFilter`].
///
/// ```
/// use besom::{ExtensionFilter, Filter, Overflow};
///
/// let builder = ExtensionFilter::builder().capacity(10_000).overflow(Overflow::Reset);
/// let size = builder.size_in_bits()?;
/// let filter = builder.build()?;
/// assert_eq!((filter.capacity(), filter.stats().bits), (10_000, size));
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build is called"]
pub struct ExtensionFilterBuilder<H = Xxh3> {
    parameters: Parameters,
    hasher: PhantomData<H>,
}

/// How many repairs per key the code holds until one block in a hundred has outgrown it: the least of what was measured
/// for remainders of 4 to 16 bits (see the table in the design document).
const HOLDS: [(CodeShare, f64); 5] = [
    (CodeShare(2), 0.0003),
    (CodeShare(4), 0.007),
    (CodeShare(7), 0.017),
    (CodeShare(10), 0.048),
    (CodeShare(12), 0.055),
];

impl<H: KeyHasher> ExtensionFilterBuilder<H> {
    common_parameters!(coded: true, value_bits: 0);

    /// What happens to a block whose extensions outgrow their space; [`Overflow::Spill`] unless given.
    pub fn overflow(mut self, policy: Overflow) -> Self {
        self.parameters.overflow = policy;
        self
    }

    /// How many false positives the filter is going to repair for every key that it holds: lays out the blocks so that
    /// fewer than one in a hundred outgrows its code, with the fewest bits, if there is such a layout.
    ///
    /// | repairs per key, up to | code bits a slot |
    /// |---|---|
    /// | 0.0003 | 0.25 |
    /// | 0.007 | 0.5 |
    /// | 0.017 | 0.875 |
    /// | 0.048 | 1.25 |
    /// | 0.055 | 1.5 |
    ///
    /// Beyond that, and unless given, a slot has the papers' 0.875 bits, and blocks that outgrow them behave as
    /// [`overflow`](Self::overflow) says. With remainders of 8 bits (ε = 2^-8) this layout is the fastest.
    ///
    /// ```
    /// use besom::ExtensionFilter;
    ///
    /// let builder = ExtensionFilter::builder().capacity(100_000);
    /// let (usual, few) = (builder.size_in_bits()?, builder.clone().repairs_per_key(0.005).size_in_bits()?);
    /// assert!(few < usual);
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn repairs_per_key(mut self, repairs: f64) -> Self {
        self.parameters.code = code_for(repairs, &HOLDS);
        self
    }

    /// Another hash function.
    pub fn hasher<G: KeyHasher>(self) -> ExtensionFilterBuilder<G> {
        ExtensionFilterBuilder { parameters: self.parameters, hasher: PhantomData }
    }

    /// The filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn build(self) -> Result<ExtensionFilter<H>, BuildError> {
        Ok(ExtensionFilter { core: Extending::core(self.parameters)? })
    }
}

/// What an extension means: the bits that follow the remainder in the key's hash string.
#[derive(Debug, Clone, Copy)]
struct Extending {
    remainder_bits: u32,
}

impl Extending {
    /// The filter that the parameters ask for.
    fn core<H: KeyHasher>(parameters: Parameters) -> Result<Core<Self, H>, BuildError> {
        parameters.build(true, |table| {
            let values = CodedValues::new(parameters.overflow, table);
            Some((Self { remainder_bits: table.remainder_bits() }, values))
        })
    }

    /// The extension of so many bits that the key has.
    #[inline]
    fn extension<H: KeyHasher>(&self, len: u32, key: &HashString<'_, H>) -> Extension {
        Extension::new(key.bits(self.remainder_bits.into(), len), len)
    }
}

impl Scheme for Extending {
    type Store = CodedValues<Extensions>;

    const MOVES_REMAINDER: bool = false;

    fn for_remainder(remainder_bits: u32) -> Self {
        Self { remainder_bits }
    }

    #[inline(always)]
    fn remainder<H: KeyHasher>(&self, _: Extension, key: &HashString<'_, H>) -> u64 {
        key.bits(0, self.remainder_bits)
    }

    #[inline]
    fn accepts<H: KeyHasher>(&self, remainder: u64, value: Extension, key: &HashString<'_, H>) -> bool {
        remainder == self.remainder(value, key) && value == self.extension(value.len(), key)
    }

    fn next<H: KeyHasher>(
        &self,
        value: Extension,
        stored: &HashString<'_, H>,
        query: &HashString<'_, H>,
    ) -> Option<Extension> {
        let start = u64::from(self.remainder_bits);
        let end = start + u64::from(Extension::MAX_LEN);
        let place = stored.first_difference(query, start + u64::from(value.len()), end)?;
        Some(self.extension((place - start) as u32 + 1, stored))
    }

    /// The quotient has taken the string's first bit, so the remainder takes the extension's.
    fn doubled<H: KeyHasher>(&self, value: Extension, key: &HashString<'_, H>) -> Extension {
        self.extension(value.len().saturating_sub(1), key)
    }

    /// Extensions matter only where the remainder matches.
    fn probe(&self, _: &Table, _: &Self::Store) -> Probe {
        Probe::Matching
    }

    fn settle<H: KeyHasher>(
        &self,
        table: &Table,
        values: &Self::Store,
        Doubt { block, slots }: Doubt,
        key: &HashString<'_, H>,
    ) -> bool {
        values.any_in_block(table, block, slots, |_, extension| {
            extension == self.extension(extension.len(), key)
        })
    }
}

/// Bare cores for the tests that all schemes share.
#[cfg(test)]
pub(crate) mod testing {
    use super::Extending;
    use crate::KeyHasher;
    use crate::values::{Core, Parameters, Scheme};

    pub(crate) fn extension_core<H: KeyHasher>(parameters: Parameters) -> Core<impl Scheme, H> {
        Extending::core(parameters).unwrap()
    }
}
