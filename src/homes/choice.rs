//! Which table a filter gets that asks for none.

use std::ops::RangeInclusive;

use crate::BuildError;

/// What a filter keeps its fingerprints in.
///
/// A builder [chooses](crate::ExtensionFilterBuilder::table) one by rate and size unless it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Table {
    /// The quotient table: for every rate, size and load, and the only one for filters that shall forget
    /// ([`Overflow::Reset`](crate::Overflow::Reset)) or have room for repairs from the beginning.
    Quotient,
    /// Cache-line bins: faster, above all for insertions and batches. Every key belongs to one cache line, and what
    /// does not fit there to a small second level.
    ///
    /// At ε = 1/256 and load 0.95 a key takes 11.5 bits before repairs, instead of 11.7; rates above 1/120 cost as much
    /// as that one. Repairs take nothing until a bin has its first, and always lie beside the bins then: there is no
    /// [`Overflow::Reset`](crate::Overflow::Reset) on bins. Rates go down to 2^-16.
    Bins,
}

/// What a builder was asked for, as far as it decides on the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wishes {
    /// The table, if it was given.
    pub(crate) table: Option<Table>,
    pub(crate) capacity: usize,
    pub(crate) rate: f64,
    /// A call that only quotient tables can comply with, as errors name it.
    pub(crate) quotient_only: Option<&'static str>,
}

/// The rates that lines are cut for: above them a line has bits to spare, below them it has too few.
const RATES: RangeInclusive<f64> = 1.0 / 65_536.0..=1.0 / 80.0;

/// From this many keys on the fixed parts of bins, half a line on average and the second level, do not count.
const ENOUGH: usize = 10_000;

/// The table that a filter gets:
///
/// - the one that was given, unless that contradicts another wish;
/// - the quotient table, if a wish needs it;
/// - bins, if the rate is one of those that lines are cut for and there are enough keys; otherwise the quotient table.
///
/// Nothing else counts, the machine least of all: the same builder chooses the same table wherever it runs. What speaks
/// for these limits is measured in `docs/tables.md`.
pub(crate) fn choose(wishes: Wishes) -> Result<Table, BuildError> {
    match (wishes.table, wishes.quotient_only) {
        (Some(Table::Bins), Some(second)) => Err(BuildError::Conflict { first: "table(Bins)", second }),
        (Some(table), _) => Ok(table),
        (None, Some(_)) => Ok(Table::Quotient),
        (None, None) => {
            let bins = RATES.contains(&wishes.rate) && wishes.capacity >= ENOUGH;
            Ok(if bins { Table::Bins } else { Table::Quotient })
        }
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a table that was given and is not taken, a wish that is dropped silently, a limit that lies elsewhere
    //! than the documentation says.
    use super::*;

    const MANY: Wishes = Wishes { table: None, capacity: 10_000, rate: 1.0 / 256.0, quotient_only: None };

    #[test]
    fn a_table_that_was_given_is_taken_or_contradicted() {
        for table in [Table::Quotient, Table::Bins] {
            for (capacity, rate) in [(1, 0.5), (10_000, 1.0 / 256.0), (1 << 40, 1e-9)] {
                let wishes = Wishes { table: Some(table), capacity, rate, quotient_only: None };
                assert_eq!(choose(wishes), Ok(table));
            }
        }
        let wishes = Wishes { quotient_only: Some("a call"), ..MANY };
        assert_eq!(choose(wishes), Ok(Table::Quotient));
        assert_eq!(choose(Wishes { table: Some(Table::Quotient), ..wishes }), Ok(Table::Quotient));
        let conflict = BuildError::Conflict { first: "table(Bins)", second: "a call" };
        assert_eq!(choose(Wishes { table: Some(Table::Bins), ..wishes }), Err(conflict));
    }

    #[test]
    fn many_keys_at_the_rates_of_lines_stand_on_bins() {
        let at = |capacity, rate| choose(Wishes { capacity, rate, ..MANY }).unwrap();
        for rate in [1.0 / 80.0, 0.01, 1.0 / 256.0, 1e-3, 0.5_f64.powi(16)] {
            assert_eq!(at(10_000, rate), Table::Bins, "{rate}");
            assert_eq!(at(usize::MAX, rate), Table::Bins, "{rate}");
            assert_eq!(at(9_999, rate), Table::Quotient, "{rate}");
        }
        for rate in [0.5, 1.0 / 79.0, 0.5_f64.powi(17), 0.0, f64::NAN] {
            assert_eq!(at(1_000_000, rate), Table::Quotient, "{rate}");
        }
    }
}
