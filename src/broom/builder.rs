//! How a [`BroomFilter`] is asked for.

use std::marker::PhantomData;

use crate::bins::Plan;
use crate::homes::{Wishes, choose};
use crate::{BuildError, KeyHasher, Seed, Table, Xxh3};

use super::columns::CROWDING;
use super::core::Core;
use super::filter::{BroomFilter, On};
use super::fingerprint::Remainders;
use super::on_bins::{BinCut, BroomBins};
use super::on_quotients::BroomQuotients;
use super::table;

/// The load up to which the filter is filled unless the builder says otherwise.
const DEFAULT_LOAD: f64 = 0.90;

/// Loads that can be asked for. Beyond, too many keys find no place in their section of the primary table.
pub(super) const LOADS: std::ops::RangeInclusive<f64> = 0.01..=0.95;

/// The adaptivity bits per key unless the builder says otherwise.
pub(super) const DEFAULT_BUDGET: f64 = 0.25;

/// Budgets that can be asked for.
pub(super) const BUDGETS: std::ops::RangeInclusive<f64> = 0.0..=32.0;

/// The false-positive rate unless the builder says otherwise.
const DEFAULT_RATE: f64 = 1.0 / 256.0;

/// Remainders of so many bits and more are large: they are cut into a signature and a rest. The module's
/// documentation says why here.
pub(super) const LARGE: u32 = 12;

/// The signature of a large remainder: as many bits as the fastest table has.
const SIGNATURE_BITS: u32 = 8;

/// Remainders that can be asked for.
pub(super) const REMAINDER_BITS: std::ops::RangeInclusive<u32> = 3..=48;

/// Asks for a [`BroomFilter`].
///
/// ```
/// use besom::{BroomFilter, Filter};
///
/// let builder = BroomFilter::builder().capacity(10_000).false_positive_rate(1e-6).seed(7_u64);
/// let bits = builder.size_in_bits()?;
/// let filter = builder.build()?;
/// assert_eq!((filter.capacity(), filter.stats().bits), (10_000, bits));
/// # Ok::<(), besom::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build is called"]
pub struct BroomFilterBuilder<H = Xxh3> {
    capacity: usize,
    growable: bool,
    rate: f64,
    load: f64,
    budget: f64,
    table: Option<Table>,
    seed: Option<Seed>,
    hasher: PhantomData<H>,
}

impl BroomFilterBuilder<Xxh3> {
    pub(super) fn new() -> Self {
        let (rate, load, budget) = (DEFAULT_RATE, DEFAULT_LOAD, DEFAULT_BUDGET);
        let (capacity, growable, table, seed) = (0, false, None, None);
        Self { capacity, growable, rate, load, budget, table, seed, hasher: PhantomData }
    }
}

impl<H: KeyHasher> BroomFilterBuilder<H> {
    /// How many keys the filter shall hold. Any number, not only powers of two.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }

    /// Lets a full filter double instead of refusing keys, as often as it takes, at the same rate and the same bits per
    /// key. Doubling reads every key from the remote and writes all of them again: it is the one operation that is not
    /// pauseless.
    ///
    /// Plain filters have [`growable_to`](crate::BinFilterBuilder::growable_to), with a limit, instead: without a
    /// remote to ask for more of a key's hash, they have to keep the bits for their largest size from the beginning.
    pub fn growable(mut self) -> Self {
        self.growable = true;
        self
    }

    /// The sustained false-positive rate of the full filter, also against adversaries; 1/256 unless given.
    /// Remainders have whole bits, so the true rate can be as low as half of this.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// The share of the slots in use when the filter is full, 0.95 at most (on bins 0.99); 0.90 unless given. The more,
    /// the more keys find no place in the primary table: one in 100 at 0.90, one in 40 at 0.95; on bins one in 50, and
    /// one in 28.
    pub fn max_load(mut self, load: f64) -> Self {
        self.load = load;
        self
    }

    /// How many adaptivity bits per key, those of removed keys included, the filter may have before it reclaims
    /// any; 0.25 unless given. A repair takes two of them on average, and log2(1/rate) more, so that no two queries are
    /// known to hit one key. Within the budget no repair is ever forgotten; beyond, with each new one the repairs of
    /// the next few keys are (12 at the default rate).
    ///
    /// With more than 2 the filter remembers longer, and so does an adversary, who has longer to find two queries that
    /// hit one key. At 8 bits a key, with thirty times the look-ups that it takes without the further bits, queries
    /// chosen that way were false positives at 0 to 0.5 times the rate (`broom::tests::attacks`).
    ///
    /// ```
    /// use besom::BroomFilter;
    ///
    /// let filter = BroomFilter::builder().capacity(10_000).adaptivity_budget(2.0).build()?;
    /// assert_eq!(filter.levels().budget, 20_000);
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn adaptivity_budget(mut self, bits_per_key: f64) -> Self {
        self.budget = bits_per_key;
        self
    }

    /// What the filter stands on. Unless given, bins for 10,000 keys and more at rates from 1/80 to 2^-16, as for
    /// [extension filters](crate::ExtensionFilterBuilder::table), and the quotient table for all others. Bins are
    /// faster, above all for insertions; rates above 1/170 cost as much as that one there, and loads go up to 0.99.
    ///
    /// ```
    /// use besom::{BroomFilter, Filter, Table};
    ///
    /// let builder = BroomFilter::builder().capacity(1_000_000).table(Table::Bins);
    /// let (bits, filter) = (builder.size_in_bits()?, builder.build()?);
    /// assert_eq!((filter.table(), filter.stats().bits), (Table::Bins, bits));
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn table(mut self, table: Table) -> Self {
        self.table = Some(table);
        self
    }

    /// The table that was asked for, or else that of rate and size.
    fn chosen_table(&self) -> Result<Table, BuildError> {
        let Self { table, capacity, rate, .. } = *self;
        choose(Wishes { table, capacity, rate, quotient_only: None })
    }

    /// The seed of the hash functions; the operating system chooses one unless given.
    pub fn seed(mut self, seed: impl Into<Seed>) -> Self {
        self.seed = Some(seed.into());
        self
    }

    /// Another hash function.
    pub fn hasher<G: KeyHasher>(self) -> BroomFilterBuilder<G> {
        let Self { capacity, growable, rate, load, budget, table, seed, .. } = self;
        BroomFilterBuilder { capacity, growable, rate, load, budget, table, seed, hasher: PhantomData }
    }

    /// The memory that the filter will take while it has neither repairs nor ghosts, in bits: the
    /// [`bits`](crate::FilterStats::bits) of its statistics.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build), for the parameters alone.
    pub fn size_in_bits(&self) -> Result<usize, BuildError> {
        match self.chosen_table()? {
            Table::Quotient => self.size_of::<BroomQuotients>(self.on_quotients()?),
            Table::Bins => self.size_of::<BroomBins>(self.on_bins()?),
        }
    }

    fn size_of<G: table::BroomTable>(&self, cut: G::Cut) -> Result<usize, BuildError> {
        let blueprint = self.blueprint(cut)?;
        Ok(G::size_in_bits(blueprint, G::columns(blueprint, self.capacity)?, self.capacity))
    }

    /// The filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn build(self) -> Result<BroomFilter<H>, BuildError> {
        let on = match self.chosen_table()? {
            Table::Quotient => On::Quotient(self.build_on(self.on_quotients()?)?),
            Table::Bins => On::Bins(self.build_on(self.on_bins()?)?),
        };
        Ok(BroomFilter { on })
    }

    fn build_on<G: table::BroomTable>(&self, cut: G::Cut) -> Result<Core<G, H>, BuildError> {
        let hasher = H::with_seed(self.seed.unwrap_or_else(Seed::random));
        Core::from_blueprint(self.blueprint(cut)?, self.capacity, self.growable, hasher, 0)
    }

    /// How fingerprints are cut on quotient tables.
    fn on_quotients(&self) -> Result<Remainders, BuildError> {
        remainder_bits(self.rate, self.load).map(Remainders::of)
    }

    /// How fingerprints are cut on bins, whose lines need a bit for flags at least.
    fn on_bins(&self) -> Result<BinCut, BuildError> {
        let Plan { shape, .. } = Plan::fixed(self.rate / CROWDING, self.load, self.capacity, 1)?;
        Ok(BinCut::of(shape))
    }

    fn blueprint<C>(&self, cut: C) -> Result<Blueprint<C>, BuildError> {
        if !BUDGETS.contains(&self.budget) {
            let (name, value) = ("adaptivity_budget", self.budget);
            return Err(BuildError::OutOfRange { name, value, min: *BUDGETS.start(), max: *BUDGETS.end() });
        }
        Ok(Blueprint { cut, load: self.load, budget: self.budget })
    }
}

impl Remainders {
    /// How remainders of so many bits are cut.
    pub(super) fn of(bits: u32) -> Self {
        let table_bits = if bits >= LARGE { SIGNATURE_BITS } else { bits };
        Self { table_bits, rest_bits: bits - table_bits }
    }
}

/// What stays the same when a filter grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Blueprint<C> {
    /// How fingerprints are cut.
    pub(super) cut: C,
    pub(super) load: f64,
    /// Adaptivity bits per key.
    pub(super) budget: f64,
}

/// How many remainder bits meet a rate: a query meets `load` keys of its quotient on average, and each of them
/// takes it for itself with probability 2^−r (Lemma 12); a little more while the frontier walks.
fn remainder_bits(rate: f64, load: f64) -> Result<u32, BuildError> {
    if !LOADS.contains(&load) {
        let (min, max) = (*LOADS.start(), *LOADS.end());
        return Err(BuildError::OutOfRange { name: "max_load", value: load, min, max });
    }
    let rate_of = |bits: u32| CROWDING * load * 0.5_f64.powi(bits as i32);
    let (min, max) = (rate_of(*REMAINDER_BITS.end()), 1.0);
    if !(min..max).contains(&rate) {
        return Err(BuildError::RateOutOfRange { rate, min, max });
    }
    Ok(REMAINDER_BITS.into_iter().find(|&bits| rate_of(bits) <= rate).unwrap_or(*REMAINDER_BITS.end()))
}
