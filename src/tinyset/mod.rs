//! TinySet: a filter of one cache line per operation that adjusts itself to its load.
//!
//! After Einziger and Friedman, *TinySet: An Access Efficient Self Adjusting Bloom Filter Construction*. Every
//! block is a small hash table of chains without pointers; the remainders in it are as long as its load allows
//! and grow shorter with every insertion. See `geometry` for the layout of a block, `analysis` for the
//! false-positive rate.

mod analysis;
mod block;
mod builder;
mod cut;
mod geometry;
mod line;
mod machine;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
mod neon;
mod persist;
mod table;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use builder::TinySetBuilder;

use analysis::BlockRates;
use geometry::Place;
use table::Table;

use crate::{
    Digest, Filter, FilterStats, FullError, Insert, InvariantError, KeyHasher, RemovalDisabled, Remove, Xxh3,
};

/// A plain filter that touches one block per operation, takes fewer bits than a Bloom filter, and goes on
/// beyond its capacity at a rising false-positive rate.
///
/// At a false-positive rate of 0.1% it takes 12.8 bits a key (a Bloom filter 14.4). It never answers "absent"
/// for a key that was inserted and not removed. It keeps a multiset: a key that was inserted twice has to be
/// removed twice. Without removal (the default) nothing is ever taken out; see
/// [`TinySetBuilder::removal`].
///
/// ```
/// use besom::tinyset::TinySet;
/// use besom::{Filter, Insert};
///
/// let mut filter = TinySet::builder().capacity(1_000).false_positive_rate(0.001).build()?;
/// for user in 0..1_000_u64 {
///     filter.insert(&user)?;
/// }
/// assert!((0..1_000_u64).all(|user| filter.contains(&user)));
/// assert!((1_000..2_000_u64).filter(|user| filter.contains(user)).count() < 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct TinySet<H: KeyHasher = Xxh3> {
    hasher: H,
    table: Table,
    capacity: usize,
}

crate::filter::debug_by_figures!([H: KeyHasher] TinySet<H>);

impl<H: KeyHasher> TinySet<H> {
    /// The false-positive rate that is to be expected with `items` keys, computed exactly from the geometry.
    ///
    /// Valid for keys that were only inserted. After removals the rate is that of the items
    /// [kept and held](Self::held_places) together, or better.
    #[must_use]
    pub fn expected_rate(&self, items: usize) -> f64 {
        BlockRates::new(self.table.geometry()).mean(items, self.table.blocks())
    }

    /// How many places removed keys still hold: remainders are as short as if they were there. The next keys
    /// that are inserted into their blocks take them over.
    #[must_use]
    pub fn held_places(&self) -> usize {
        self.table.logical() - self.table.len()
    }

    /// How many blocks there are.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.table.blocks()
    }

    /// The size of a block in bits.
    #[must_use]
    pub fn block_bits(&self) -> u32 {
        self.table.geometry().bits
    }

    /// How many chains there are in a block.
    #[must_use]
    pub fn chains(&self) -> u32 {
        self.table.geometry().chains
    }
}

impl<H: KeyHasher> Filter for TinySet<H> {
    type Hasher = H;
    type Place = Place;

    #[inline]
    fn hasher(&self) -> &H {
        &self.hasher
    }

    #[inline]
    fn place(&self, digest: Digest) -> Place {
        self.table.place(digest)
    }

    #[inline]
    fn prefetch(&self, place: Place) {
        self.table.prefetch(place);
    }

    #[inline]
    fn contains_at(&self, place: Place, _: impl FnOnce() -> Digest) -> bool {
        self.table.contains(place)
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    /// Works out the mean over blocks with few and with many keys: some thousand operations.
    fn false_positive_rate(&self) -> f64 {
        self.expected_rate(self.capacity)
    }

    fn stats(&self) -> FilterStats {
        FilterStats {
            items: self.table.len(),
            slots: self.capacity,
            load: self.table.len() as f64 / self.capacity as f64,
            bits: self.table.bits(),
            ..FilterStats::default()
        }
    }

    fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()
    }
}

impl<H: KeyHasher> Insert for TinySet<H> {
    /// Rewrites one block. A key that is there already is inserted once more.
    ///
    /// Takes keys beyond the [`capacity`](Filter::capacity), too: the remainders of the blocks concerned grow shorter
    /// and the false-positive rate rises, as in a Bloom filter. It is full if the key's block has no bit left for
    /// another item: it then holds one item for every bit of its array, some ten times what it was planned for. A
    /// filter for more keys has room again; this one does not grow, and that a key can be lost so is why it does not
    /// implement [`Extend`].
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        let full = FullError { len: self.table.len(), capacity: self.capacity };
        self.table.insert(self.table.place(digest)).ok_or(full)
    }

    fn clear(&mut self) {
        self.table.clear();
    }
}

/// ```
/// use besom::tinyset::TinySet;
/// use besom::{Filter, Insert, Remove};
///
/// let mut filter = TinySet::builder().capacity(100).removal(true).build()?;
/// filter.insert("key")?;
/// assert!(filter.remove("key")?);
/// assert!(!filter.contains("key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<H: KeyHasher> Remove for TinySet<H> {
    /// Remainders do not grow long again: the block keeps the length that its largest number of items led to, until it
    /// is empty. [`RemovalDisabled`] if the filter was built without removal.
    fn remove_digest(&mut self, digest: Digest) -> Result<bool, RemovalDisabled> {
        if !self.table.geometry().removal() {
            return Err(RemovalDisabled);
        }
        let place = self.table.place(digest);
        Ok(self.table.remove(place))
    }
}
