//! From what a filter is to hold to its geometry.

use super::TinySet;
use super::analysis::{BlockRates, Dimensions, smallest};
use super::geometry::{Geometry, MAX_BLOCK_BITS, MIN_BLOCK_BITS};
use super::table::Table;
use crate::builder::{Build, Builder, Options, built_by, in_range};
use crate::{BuildError, KeyHasher, Xxh3};

/// The smallest rate: remainders have 57 hash bits, and some of them go to collisions inside a block.
const MIN_RATE: f64 = 1e-15;

/// The largest rate for which TinySet makes sense.
const MAX_RATE: f64 = 0.5;

/// Blocks and chains are cut from 64 hash bits; this many blocks leave 24 of them for the chain.
const MAX_BLOCKS: usize = 1 << 40;

/// Builds a [`TinySet`].
///
/// Either by what it is to achieve: the smallest filter of the chosen block size that holds
/// [`capacity`](Builder::capacity) keys at a [`false_positive_rate`](Builder::false_positive_rate):
///
/// ```
/// use besom::tinyset::TinySet;
///
/// let filter = TinySet::builder().capacity(10_000).false_positive_rate(0.001).build()?;
/// assert!(filter.expected_rate(10_000) <= 0.001);
/// # Ok::<(), besom::BuildError>(())
/// ```
///
/// or by its geometry, with [`items_per_block`](Builder::items_per_block) in the place of the rate:
///
/// ```
/// use besom::tinyset::TinySet;
/// use besom::Filter;
///
/// let filter =
///     TinySet::builder().capacity(6_400).block_bits(832).chains(64).items_per_block(64.0).build()?;
/// assert_eq!((filter.blocks(), filter.stats().bits), (100, 83_200));
/// # Ok::<(), besom::BuildError>(())
/// ```
///
/// A `TinySet` takes more keys than its capacity; its rate then rises beyond the plan.
pub type TinySetBuilder<H = Xxh3> = Builder<TinySet<H>>;

built_by!(TinySetBuilder, [] TinySet);

/// What a `TinySet` can be asked for.
#[derive(Debug, Clone)]
pub struct TinySetOptions {
    items_per_block: Option<f64>,
    block_bits: u32,
    chains: Option<u32>,
    removal: bool,
}

impl Default for TinySetOptions {
    fn default() -> Self {
        Self { items_per_block: None, block_bits: 512, chains: None, removal: false }
    }
}

impl Options for TinySetOptions {}

impl<H: KeyHasher> Build for TinySet<H> {
    type Options = TinySetOptions;
    type With<G: KeyHasher> = TinySet<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let Dimensions { geometry, blocks } = builder.dimensions()?;
        let words = geometry.words(blocks).unwrap_or(usize::MAX);
        let out_of_memory = BuildError::OutOfMemory { bytes: words.saturating_mul(8) };
        let table = Table::new(geometry, blocks).ok_or(out_of_memory)?;
        Ok(Self { hasher: builder.hash_function(), table, capacity: builder.capacity })
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        let Dimensions { geometry, blocks } = builder.dimensions()?;
        Ok(geometry.words(blocks).unwrap_or(usize::MAX).saturating_mul(64))
    }
}

impl<H: KeyHasher> Builder<TinySet<H>> {
    /// Sets the average number of keys in a block, in the place of a rate.
    pub fn items_per_block(mut self, items: f64) -> Self {
        self.options.items_per_block = Some(items);
        self
    }

    /// Sets the size of a block in bits, from 32 to 4096; 512 unless given.
    ///
    /// Blocks of 512 and of 256 bits lie in one cache line each and are the fast ones. Blocks of other sizes are
    /// packed without gaps.
    pub fn block_bits(mut self, bits: u32) -> Self {
        self.options.block_bits = bits;
        self
    }

    /// Sets the number of chains in a block; the best one for the plan unless given.
    pub fn chains(mut self, chains: u32) -> Self {
        self.options.chains = Some(chains);
        self
    }

    /// Sets whether keys can be removed. Takes a counter in every block and half the effect of extra bits: some 0.4
    /// bits a key.
    pub fn removal(mut self, removal: bool) -> Self {
        self.options.removal = removal;
        self
    }

    fn dimensions(&self) -> Result<Dimensions, BuildError> {
        self.checked_capacity()?;
        let TinySetOptions { items_per_block, block_bits, chains, removal } = self.options;
        in_range("block_bits", f64::from(block_bits), MIN_BLOCK_BITS.into(), MAX_BLOCK_BITS.into())?;
        let max_chains = Geometry::max_chains(block_bits, removal);
        if let Some(chains) = chains {
            in_range("chains", f64::from(chains), 1.0, max_chains.into())?;
        }
        match (items_per_block, self.rate) {
            (Some(_), Some(_)) => {
                Err(BuildError::Conflict { first: "items_per_block", second: "false_positive_rate" })
            }
            (Some(items), None) => self.dimensions_by_geometry(items),
            (None, _) => self.dimensions_by_rate(self.rate()),
        }
    }

    /// The shapes to choose from: the one given, or every eighth number of chains; first those whose index is a
    /// word or less, the larger ones (with shorter chains) before the smaller.
    fn geometries(&self) -> impl Iterator<Item = Geometry> {
        let TinySetOptions { block_bits: bits, chains, removal, .. } = self.options;
        let max = Geometry::max_chains(bits, removal);
        let (first, last) = chains.map_or((8.min(max), max), |chains| (chains, chains));
        let mut chains: Vec<u32> = (first..=last).step_by(8).collect();
        chains.sort_by_key(|&chains| (chains > 64, chains.abs_diff(64)));
        chains.into_iter().filter_map(move |chains| Geometry::new(bits, chains, removal))
    }

    fn dimensions_by_rate(&self, rate: f64) -> Result<Dimensions, BuildError> {
        let refused = |min| BuildError::RateOutOfRange { rate, min, max: MAX_RATE };
        if !(MIN_RATE..=MAX_RATE).contains(&rate) {
            return Err(refused(MIN_RATE));
        }
        // A block for every hundredth of a key: anyone who needs more asks for the impossible.
        let max = self.capacity.saturating_mul(100).min(MAX_BLOCKS);
        if let Some(dimensions) = smallest(self.geometries(), self.capacity, rate, max) {
            return Ok(dimensions);
        }
        if max == MAX_BLOCKS {
            return Err(BuildError::CapacityTooLarge { capacity: self.capacity, max: MAX_BLOCKS });
        }
        let reached = self.geometries().map(|geometry| BlockRates::new(&geometry).mean(self.capacity, max));
        Err(refused(reached.fold(MAX_RATE, f64::min)))
    }

    fn dimensions_by_geometry(&self, items_per_block: f64) -> Result<Dimensions, BuildError> {
        let block_bits = self.options.block_bits;
        let most = block_bits.saturating_sub(1);
        in_range("items_per_block", items_per_block, 0.01, most.into())?;
        let blocks = (self.capacity as f64 / items_per_block).ceil() as usize;
        if blocks > MAX_BLOCKS {
            let max = (MAX_BLOCKS as f64 * items_per_block) as usize;
            return Err(BuildError::CapacityTooLarge { capacity: self.capacity, max });
        }
        let rate = |geometry: &Geometry| BlockRates::new(geometry).mean(self.capacity, blocks);
        let best = self.geometries().min_by(|one, other| rate(one).total_cmp(&rate(other)));
        let out_of_range =
            BuildError::OutOfRange { name: "block_bits", value: block_bits.into(), min: 32.0, max: 4096.0 };
        best.map(|geometry| Dimensions { geometry, blocks }).ok_or(out_of_range)
    }
}
