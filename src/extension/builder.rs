//! How an [`ExtensionFilter`] is asked for.

use std::marker::PhantomData;

use crate::bins::BinParameters;
use crate::homes::{Table, Wishes, choose, from_sorted};
use crate::quotient::CodeShare;
use crate::values::{Overflow, Parameters, code_for, common_parameters};
use crate::{BuildError, BulkError, Key, KeyHasher, Remote, Xxh3};

use super::scheme::Extending;
use super::{ExtensionFilter, On};

/// Builds a [`ExtensionFilter`].
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
    /// If it was given.
    table: Option<Table>,
    /// Whether room for repairs was asked for, which blocks with codes have.
    with_room: bool,
    hasher: PhantomData<H>,
}

impl ExtensionFilterBuilder<Xxh3> {
    pub(super) fn new() -> Self {
        Self { parameters: Parameters::default(), table: None, with_room: false, hasher: PhantomData }
    }
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
    common_parameters!();

    /// Returns which table the filter is built on. Unless given, [bins](Table::Bins) for rates from 1/80 to 2^-16 and
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
        self.table = Some(table);
        self
    }

    /// What happens to a block whose extensions outgrow their space; [`Overflow::Spill`] unless given. Only a
    /// [quotient table](Table::Quotient) has blocks that can be [reset](Overflow::Reset).
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
        self.parameters.code = code_for(repairs, &HOLDS);
        self.with_room = true;
        self
    }

    /// Uses another hash function.
    pub fn hasher<G: KeyHasher>(self) -> ExtensionFilterBuilder<G> {
        let Self { parameters, table, with_room, .. } = self;
        ExtensionFilterBuilder { parameters, table, with_room, hasher: PhantomData }
    }

    /// Builds the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter cannot be met, and what can.
    pub fn build(self) -> Result<ExtensionFilter<H>, BuildError> {
        let on = match self.chosen()? {
            Table::Quotient => On::Quotient(Extending::core(self.parameters)?),
            Table::Bins => On::Bins(self.on_bins().build(self.parameters.seed)?),
        };
        Ok(ExtensionFilter { on })
    }

    /// Builds the filter of these keys, each of which counts once, or one with room for more if a larger
    /// [`capacity`](Self::capacity) was asked for. The remote is emptied first and then has them.
    ///
    /// Several times faster than inserting them one by one: they are sorted by place first, and table and remote are
    /// written in one pass; with the feature `rayon`, on all cores. Takes 16 bytes a key meanwhile. Where the
    /// table is to be chosen, this many keys count as capacity.
    ///
    /// # Errors
    ///
    /// [`BulkError`] says what cannot be met, or how the remote failed. It may have any part of the keys then: clear
    /// it, or do this again.
    pub fn from_keys<K, R>(
        mut self,
        keys: &[K],
        remote: &mut R,
    ) -> Result<ExtensionFilter<H>, BulkError<R::Error>>
    where
        K: Key + Sync,
        R: Remote,
    {
        self.parameters.capacity = self.parameters.capacity.max(keys.len()).max(1);
        match self.build()?.on {
            On::Quotient(core) => Ok(ExtensionFilter { on: On::Quotient(core.filled(keys, remote)?) }),
            On::Bins(bins) => Ok(ExtensionFilter { on: On::Bins(bins.filled(keys, remote)?) }),
        }
    }

    /// Builds the filter of all keys that a remote has: the way back when its file is lost. Repairs are forgotten. One
    /// sequential pass over the remote, which is only read; two if there are more keys than the capacity and the filter
    /// is [growable](Self::growable). No memory but the filter's.
    ///
    /// The seed must be the one that the addresses were made with; the other parameters may be others.
    ///
    /// # Errors
    ///
    /// [`BulkError`] if the remote failed, has more keys than the filter is for, or has keys at addresses that are not
    /// theirs.
    pub fn from_sorted<R: Remote>(self, remote: &mut R) -> Result<ExtensionFilter<H>, BulkError<R::Error>> {
        let on = match self.build()?.on {
            On::Quotient(core) => On::Quotient(from_sorted(core, remote)?),
            On::Bins(bins) => On::Bins(from_sorted(bins, remote)?),
        };
        Ok(ExtensionFilter { on })
    }

    /// Returns the memory that the filter is going to take, known before it is built:
    /// [`FilterStats::bits`](crate::FilterStats::bits) of the empty filter. Keys do not add to it, but for a longer
    /// tail or a larger second level in rare cases; repairs do where a side store takes them, and growth does.
    ///
    /// # Errors
    ///
    /// [`BuildError`] as [`build`](Self::build), except that no memory is asked for.
    pub fn size_in_bits(&self) -> Result<usize, BuildError> {
        match self.chosen()? {
            Table::Quotient => self.parameters.size_in_bits(true, 0),
            Table::Bins => self.on_bins().size_in_bits(),
        }
    }

    /// The table that was given or is chosen. Repairs on bins lie beside them, so there is nothing that could be reset,
    /// and no room for them before they are made.
    fn chosen(&self) -> Result<Table, BuildError> {
        let Parameters { capacity, rate, overflow, .. } = self.parameters;
        let resets = (overflow == Overflow::Reset).then_some("overflow(Reset)");
        let quotient_only = resets.or(self.with_room.then_some("repairs_per_key"));
        choose(Wishes { table: self.table, capacity, rate, quotient_only })
    }

    /// The parameters of a filter on bins.
    fn on_bins(&self) -> BinParameters {
        let Parameters { capacity, rate, load, growable, .. } = self.parameters;
        BinParameters { capacity, rate, load, growable }
    }
}
