//! The telescoping filter with compressed selectors.

use crate::builder::{Build, Builder, built_by};
use crate::quotient::CodeShare;
use crate::values::{Core, Overflow, Parameters, ValueOptions, code_for, forward_to_core};
use crate::{BuildError, KeyHasher, Xxh3};

use super::selecting::Selecting;

/// A telescoping filter: adapts by moving a slot's remainder along its key's hash.
///
/// Every slot has a *selector*, 0 at first. When a stored key is found to collide with a query, its selector moves
/// on, and the slot holds the next chunk of the key's hash bits from then on: the collision is gone, and for any
/// other key the chance to collide is what it was. The selectors of a block share a code of less than a bit a
/// slot, which lies in the cache line of the block: a query reads one line, nearly always, and decodes only when
/// a remainder of the right run equals one of the query's chunks.
///
/// | | |
/// |---|---|
/// | space | 11.13 bits a slot at ε = 2^-8: 11.72 per key at load 0.95; for other ε about log2(1/ε) + 3.1 a slot |
/// | false positives | ε for any query that was not one before; a repaired one returns only if the selector of the same stored key moves on again, with probability ε each time |
/// | room for repairs | 0.15 repairs per key, that is 40n different queries, overflow one block in a hundred; see [`Overflow`] for what happens then |
/// | space after repairs | with [`Overflow::Spill`] at ε = 2^-8 about 13 bits per key after one repair per key, 17 after four |
/// | `contains` | no access to the remote |
/// | `insert`, `remove` | one group of changes to the remote; one range read if the key seems to be there already |
/// | `adapt` | one range read, nothing written |
///
/// **Set semantics**: inserting a key twice stores it once. **Growth** scans the remote once and keeps the
/// selectors: a repaired false positive returns with probability ε/2 at each doubling. The
/// [`ExtensionFilter`](crate::ExtensionFilter) keeps all of them.
///
/// **Deletion by an attacker**: a removed key takes its repairs with it. Anyone who can remove and insert a key that
/// collides with a query of theirs makes the same false positive again each time; where that is possible, use the
/// [`BroomFilter`](crate::BroomFilter), whose ghosts remember.
///
/// Adapting by hand, with one's own storage:
///
/// ```
/// use std::collections::BTreeMap;
/// use besom::{Adaptation, Adaptive, Filter, MemoryRemote, TelescopingFilter};
///
/// let mut storage: BTreeMap<String, u32> = BTreeMap::new(); // slow, in real life
/// let mut remote = MemoryRemote::new(); // which keys are behind which slots; lies beside the storage
/// let mut filter = TelescopingFilter::builder().capacity(1_000).seed(1_u64).build()?;
/// for number in 0..1_000 {
///     let key = format!("key {number}");
///     filter.insert(&key, &mut remote)?;
///     storage.insert(key, number);
/// }
///
/// let mut false_positives = 0;
/// for number in 0..10_000 {
///     let key = format!("absent {number}");
///     if filter.contains(&key) && !storage.contains_key(&key) {
///         false_positives += 1;
///         assert!(filter.adapt(&key, &mut remote)?.is_fixed());
///         assert!(!filter.contains(&key));
///     }
/// }
/// assert!((10..80).contains(&false_positives)); // 1/256 of them, once each
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TelescopingFilter<H = Xxh3> {
    core: Core<Selecting, H>,
}

crate::filter::debug_by_figures!([H: KeyHasher] TelescopingFilter<H>);

forward_to_core!(TelescopingFilter, Telescoping);

impl<H: KeyHasher> TelescopingFilter<H> {
    /// How many keys have selector 0, 1, 2 and so on: how far repairs have gone. Walks the whole filter.
    ///
    /// ```
    /// use besom::{Adaptive, Filter, MemoryRemote, TelescopingFilter};
    ///
    /// let (mut filter, mut remote) = (TelescopingFilter::builder().capacity(100).seed(7_u64).build()?, MemoryRemote::new());
    /// (0..100_u64).try_for_each(|key| filter.insert(&key, &mut remote).map(drop))?;
    /// assert_eq!(filter.selectors(), [100]);
    /// let stranger = (100_u64..).find(|key| filter.contains(key)).expect("a false positive");
    /// filter.adapt(&stranger, &mut remote)?;
    /// assert_eq!(filter.selectors().iter().sum::<usize>(), 100);
    /// assert!(filter.selectors().len() > 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn selectors(&self) -> Vec<usize> {
        self.core.histogram(usize::from)
    }
}

/// Builds a [`TelescopingFilter`]. Its [load](Builder::max_load) is 0.95 unless given.
///
/// ```
/// use besom::{Filter, Overflow, SipHash, TelescopingFilter};
///
/// let filter = TelescopingFilter::builder()
///     .capacity(10_000)
///     .false_positive_rate(0.001)
///     .overflow(Overflow::Reset)
///     .hasher::<SipHash>()
///     .build()?;
/// assert_eq!(filter.capacity(), 10_000);
/// # Ok::<(), besom::BuildError>(())
/// ```
pub type TelescopingFilterBuilder<H = Xxh3> = Builder<TelescopingFilter<H>>;

built_by!(TelescopingFilterBuilder, [] TelescopingFilter);

/// How many repairs per key the code holds until one block in a hundred has outgrown it: the least of what was measured
/// for remainders of 4 to 16 bits (see the table in the design document).
const HOLDS: [(CodeShare, f64); 5] = [
    (CodeShare(2), 0.004),
    (CodeShare(4), 0.03),
    (CodeShare(7), 0.11),
    (CodeShare(10), 0.22),
    (CodeShare(12), 0.25),
];

impl<H: KeyHasher> Build for TelescopingFilter<H> {
    type Options = ValueOptions;
    type With<G: KeyHasher> = TelescopingFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        Selecting::core(Parameters::of(builder, builder.options)).map(|core| Self { core })
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        Parameters::of(builder, builder.options).size_in_bits(true, 0)
    }
}

impl<H: KeyHasher> Builder<TelescopingFilter<H>> {
    /// Sets what happens to a block whose selectors outgrow their space; [`Overflow::Spill`] unless given.
    pub fn overflow(mut self, policy: Overflow) -> Self {
        self.options.overflow = policy;
        self
    }

    /// How many false positives the filter is going to repair for every key that it holds: lays out the blocks so that
    /// fewer than one in a hundred outgrows its code, with the fewest bits, if there is such a layout.
    ///
    /// | repairs per key, up to | code bits a slot |
    /// |---|---|
    /// | 0.004 | 0.25 |
    /// | 0.03 | 0.5 |
    /// | 0.11 | 0.875 |
    /// | 0.22 | 1.25 |
    /// | 0.25 | 1.5 |
    ///
    /// Beyond that, and unless given, a slot has the papers' 0.875 bits, and blocks that outgrow them behave as
    /// [`overflow`](Self::overflow) says. With remainders of 8 bits (ε = 2^-8) this layout is the fastest.
    ///
    /// ```
    /// use besom::TelescopingFilter;
    ///
    /// let builder = TelescopingFilter::builder().capacity(100_000);
    /// let (usual, few) = (builder.size_in_bits()?, builder.clone().repairs_per_key(0.02).size_in_bits()?);
    /// assert!(few < usual);
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn repairs_per_key(mut self, repairs: f64) -> Self {
        self.options.code = Some(code_for(repairs, &HOLDS));
        self
    }
}
