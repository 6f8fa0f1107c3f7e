//! How an [`ExtensionFilter`] is asked for.

use crate::bins::BinParameters;
use crate::builder::{Build, Builder, FromRemote, Options, Slotted, built_by};
use crate::homes::{Table, Wishes, choose, from_sorted};
use crate::quotient::CodeShare;
use crate::values::{Overflow, Parameters, ValueOptions, code_for};
use crate::{BuildError, Key, KeyHasher, Remote, RemoteResult, Xxh3};

use super::scheme::Extending;
use super::{ExtensionFilter, On};

/// Builds an [`ExtensionFilter`]. Its [load](Builder::max_load) is 0.95 unless given.
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
pub type ExtensionFilterBuilder<H = Xxh3> = Builder<ExtensionFilter<H>>;

built_by!(ExtensionFilterBuilder, [] ExtensionFilter);

/// What an extension filter can be asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExtensionOptions {
    values: ValueOptions,
    /// If it was given.
    table: Option<Table>,
}

impl Options for ExtensionOptions {}

/// How many repairs per key the code holds until one block in a hundred has outgrown it: the least of what was measured
/// for remainders of 4 to 16 bits (see the table in the design document).
const HOLDS: [(CodeShare, f64); 5] = [
    (CodeShare(2), 0.0003),
    (CodeShare(4), 0.007),
    (CodeShare(7), 0.017),
    (CodeShare(10), 0.048),
    (CodeShare(12), 0.055),
];

impl<H: KeyHasher> Slotted for ExtensionFilter<H> {}

impl<H: KeyHasher> Build for ExtensionFilter<H> {
    type Options = ExtensionOptions;
    type With<G: KeyHasher> = ExtensionFilter<G>;

    fn build(builder: &Builder<Self>) -> Result<Self, BuildError> {
        let parameters = builder.parameters();
        let on = match builder.chosen()? {
            Table::Quotient => On::Quotient(Extending::core(parameters)?),
            Table::Bins => On::Bins(on_bins(parameters).build(parameters.seed)?),
        };
        Ok(Self { on })
    }

    fn size_in_bits(builder: &Builder<Self>) -> Result<usize, BuildError> {
        match builder.chosen()? {
            Table::Quotient => builder.parameters().size_in_bits(true, 0),
            Table::Bins => on_bins(builder.parameters()).size_in_bits(),
        }
    }
}

impl<H: KeyHasher> FromRemote for ExtensionFilter<H> {
    fn filled<K, R>(self, keys: &[K], remote: &mut R) -> RemoteResult<Self, R>
    where
        K: Key + Sync,
        R: Remote,
    {
        let on = match self.on {
            On::Quotient(core) => On::Quotient(core.filled(keys, remote)?),
            On::Bins(bins) => On::Bins(bins.filled(keys, remote)?),
        };
        Ok(Self { on })
    }

    fn refilled<R: Remote>(self, remote: &mut R) -> RemoteResult<Self, R> {
        let on = match self.on {
            On::Quotient(core) => On::Quotient(from_sorted(core, remote)?),
            On::Bins(bins) => On::Bins(from_sorted(bins, remote)?),
        };
        Ok(Self { on })
    }
}

impl<H: KeyHasher> Builder<ExtensionFilter<H>> {
    /// Sets which table the filter is built on. Unless given, [bins](Table::Bins) for rates from 1/80 to 2^-16 and
    /// at least 10,000 keys, where they are faster and about as small; a [quotient table](Table::Quotient) for all
    /// others, and for filters with [`Overflow::Reset`] or [room for repairs](Self::repairs_per_key).
    ///
    /// [`ExtensionFilter::table`] says which one a filter has.
    ///
    /// ```
    /// use besom::{BuildError, ExtensionFilter, Table, Overflow};
    ///
    /// let builder = ExtensionFilter::builder().capacity(1_000_000).table(Table::Bins);
    /// assert_eq!(builder.clone().build()?.table(), Table::Bins);
    /// let contradiction = builder.overflow(Overflow::Reset).build();
    /// assert!(matches!(contradiction, Err(BuildError::Conflict { .. })));
    /// let small = ExtensionFilter::builder().capacity(100).build()?;
    /// assert_eq!(small.table(), Table::Quotient);
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn table(mut self, table: Table) -> Self {
        self.options.table = Some(table);
        self
    }

    /// Sets what happens to a block whose extensions outgrow their space; [`Overflow::Spill`] unless given. Only a
    /// [quotient table](Table::Quotient) has blocks that can be [reset](Overflow::Reset).
    pub fn overflow(mut self, policy: Overflow) -> Self {
        self.options.values.overflow = policy;
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
    /// [`overflow`](Self::overflow) says. With remainders of 8 bits (ε = 2^-8) this layout is the
    /// fastest. A filter that is asked for this stands on a [quotient table](Table::Quotient); bins have no code, and
    /// repairs take the room that they need.
    ///
    /// ```
    /// use besom::{ExtensionFilter, Table};
    ///
    /// let builder = ExtensionFilter::builder().capacity(100_000).table(Table::Quotient);
    /// let (usual, few) = (builder.size_in_bits()?, builder.clone().repairs_per_key(0.005).size_in_bits()?);
    /// assert!(few < usual);
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn repairs_per_key(mut self, repairs: f64) -> Self {
        self.options.values.code = Some(code_for(repairs, &HOLDS));
        self
    }

    fn parameters(&self) -> Parameters {
        Parameters::of(self, self.options.values)
    }

    /// The table that was given or is chosen. Repairs on bins lie beside them, so there is nothing that could be reset,
    /// and no room for them before they are made.
    fn chosen(&self) -> Result<Table, BuildError> {
        let ExtensionOptions { table, values: ValueOptions { overflow, code } } = self.options;
        let resets = (overflow == Overflow::Reset).then_some("overflow(Reset)");
        let quotient_only = resets.or(code.map(|_| "repairs_per_key"));
        choose(Wishes { table, capacity: self.capacity, rate: self.rate(), quotient_only })
    }
}

/// The parameters of a filter on bins.
fn on_bins(parameters: Parameters) -> BinParameters {
    let Parameters { capacity, rate, load, growable, .. } = parameters;
    BinParameters { capacity, rate, load, growable }
}
