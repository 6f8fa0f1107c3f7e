//! How a [`BroomFilter`] is asked for.

use crate::bins::Plan;
use crate::builder::{Build, Builder, Options, Slotted, built_by, in_range};
use crate::homes::{Wishes, choose};
use crate::{BuildError, KeyHasher, Table, Xxh3};

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

/// Remainders of this many bits and more are large: they are cut into a signature and a rest. The module's
/// documentation says why here.
pub(super) const LARGE: u32 = 12;

/// The signature of a large remainder: as many bits as the fastest table has.
const SIGNATURE_BITS: u32 = 8;

/// Remainders that can be asked for.
pub(super) const REMAINDER_BITS: std::ops::RangeInclusive<u32> = 3..=48;

/// Builds a [`BroomFilter`].
///
/// Its [rate](Builder::false_positive_rate) is the sustained one of the full filter, also against adversaries.
///
/// Its [load](Builder::max_load) is 0.90 unless given, and at most 0.95, or 0.99 on bins. The larger the load, the more
/// keys find no place in the primary table: one in 100 at 0.90 and one in 40 at 0.95; on bins one in 50 and one in 28.
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
pub type BroomFilterBuilder<H = Xxh3> = Builder<BroomFilter<H>>;

built_by!(BroomFilterBuilder, [] BroomFilter);

/// What a broom filter can be asked for.
#[derive(Debug, Clone)]
pub struct BroomOptions {
    budget: f64,
    table: Option<Table>,
}

impl Default for BroomOptions {
    fn default() -> Self {
        Self { budget: DEFAULT_BUDGET, table: None }
    }
}

impl Options for BroomOptions {}

impl<H: KeyHasher> Slotted for BroomFilter<H> {}

impl<H: KeyHasher> Build for BroomFilter<H> {
    type Options = BroomOptions;
    type With<G: KeyHasher> = BroomFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let on = match builder.chosen_table()? {
            Table::Quotient => On::Quotient(builder.build_on(builder.on_quotients()?)?),
            Table::Bins => On::Bins(builder.build_on(builder.on_bins()?)?),
        };
        Ok(Self { on })
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        match builder.chosen_table()? {
            Table::Quotient => builder.size_of::<BroomQuotients>(builder.on_quotients()?),
            Table::Bins => builder.size_of::<BroomBins>(builder.on_bins()?),
        }
    }
}

impl<H: KeyHasher> Builder<BroomFilter<H>> {
    /// Sets how many adaptivity bits per key, those of removed keys included, the filter may have before it reclaims
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
        self.options.budget = bits_per_key;
        self
    }

    /// Sets which table the filter is built on. Unless given, bins for 10,000 keys and more at rates from 1/80 to 2^-16, as for
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
        self.options.table = Some(table);
        self
    }

    /// The table that was asked for, or else that of rate and size.
    fn chosen_table(&self) -> Result<Table, BuildError> {
        let (table, capacity, rate) = (self.options.table, self.capacity, self.rate());
        choose(Wishes { table, capacity, rate, quotient_only: None })
    }

    fn size_of<G: table::BroomTable>(&self, cut: G::Cut) -> Result<usize, BuildError> {
        let blueprint = self.blueprint(cut)?;
        Ok(G::size_in_bits(blueprint, G::columns(blueprint, self.capacity)?, self.capacity))
    }

    fn build_on<G: table::BroomTable>(&self, cut: G::Cut) -> Result<Core<G, H>, BuildError> {
        let hasher = self.hash_function();
        Core::from_blueprint(self.blueprint(cut)?, self.capacity, self.growable, hasher, 0)
    }

    /// How fingerprints are cut on quotient tables.
    fn on_quotients(&self) -> Result<Remainders, BuildError> {
        remainder_bits(self.rate(), self.load()).map(Remainders::of)
    }

    /// How fingerprints are cut on bins, whose lines need a bit for flags at least.
    fn on_bins(&self) -> Result<BinCut, BuildError> {
        let Plan { shape, .. } = Plan::fixed(self.rate() / CROWDING, self.load(), self.capacity, 1)?;
        Ok(BinCut::of(shape))
    }

    fn blueprint<C>(&self, cut: C) -> Result<Blueprint<C>, BuildError> {
        let (load, budget) = (self.load(), self.options.budget);
        in_range("adaptivity_budget", budget, *BUDGETS.start(), *BUDGETS.end())?;
        Ok(Blueprint { cut, load, budget })
    }

    fn load(&self) -> f64 {
        self.load.unwrap_or(DEFAULT_LOAD)
    }
}

impl Remainders {
    /// How remainders of this many bits are cut.
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
    in_range("max_load", load, *LOADS.start(), *LOADS.end())?;
    let rate_of = |bits: u32| CROWDING * load * 0.5_f64.powi(bits as i32);
    let (min, max) = (rate_of(*REMAINDER_BITS.end()), 1.0);
    if !(min..max).contains(&rate) {
        return Err(BuildError::RateOutOfRange { rate, min, max });
    }
    Ok(REMAINDER_BITS.into_iter().find(|&bits| rate_of(bits) <= rate).unwrap_or(*REMAINDER_BITS.end()))
}
