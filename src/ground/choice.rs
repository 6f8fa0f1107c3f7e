//! Which ground a filter gets that asks for none.

use std::ops::RangeInclusive;

use crate::BuildError;

/// What a filter keeps its fingerprints in.
///
/// A builder [chooses](crate::ExtensionFilterBuilder::ground) one by rate and size unless it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ground {
    /// The quotient table: for every rate, size and load, and the only one for filters that shall forget
    /// ([`Overflow::Reset`](crate::Overflow::Reset)) or have room for repairs from the beginning.
    Quotient,
    /// Cache-line bins: faster, above all for insertions and batches. Every key belongs to one cache line, and what does
    /// not fit there to a small second level.
    ///
    /// At ε = 1/256 and load 0.95 a key takes 11.8 bits before repairs, instead of 11.7; rates above 1/160 cost as much as
    /// that one. Repairs take nothing until a bin has its first, and always lie beside the bins then: there is no
    /// [`Overflow::Reset`](crate::Overflow::Reset) on bins. Rates go down to 2^-16.
    Bins,
}

/// What a builder was asked for, as far as it decides on the ground.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wishes {
    /// The ground, if it was given.
    pub(crate) ground: Option<Ground>,
    pub(crate) capacity: usize,
    pub(crate) rate: f64,
    /// A call that only quotient tables can comply with, as errors name it.
    pub(crate) quotient_only: Option<&'static str>,
}

/// The rates that lines are cut for: above them a line has bits to spare, below them it has too few.
const RATES: RangeInclusive<f64> = 1.0 / 65_536.0..=1.0 / 80.0;

/// From this many keys on the fixed parts of bins, half a line on average and the second level, do not count.
const ENOUGH: usize = 10_000;

/// The ground that a filter gets:
///
/// - the one that was given, unless that contradicts another wish;
/// - the quotient table, if a wish needs it;
/// - bins, if the rate is one of those that lines are cut for and there are enough keys; otherwise the quotient table.
///
/// Nothing else counts, the machine least of all: the same builder chooses the same ground wherever it runs. What speaks for
/// these limits is measured in `docs/grounds.md`.
pub(crate) fn choose(wishes: Wishes) -> Result<Ground, BuildError> {
    match (wishes.ground, wishes.quotient_only) {
        (Some(Ground::Bins), Some(second)) => Err(BuildError::Conflict { first: "ground(Bins)", second }),
        (Some(ground), _) => Ok(ground),
        (None, Some(_)) => Ok(Ground::Quotient),
        (None, None) => {
            let bins = RATES.contains(&wishes.rate) && wishes.capacity >= ENOUGH;
            Ok(if bins { Ground::Bins } else { Ground::Quotient })
        }
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a ground that was given and is not taken, a wish that is dropped silently, a limit that lies elsewhere than the
    //! documentation says.
    use super::*;

    const MANY: Wishes = Wishes { ground: None, capacity: 10_000, rate: 1.0 / 256.0, quotient_only: None };

    #[test]
    fn a_ground_that_was_given_is_taken_or_contradicted() {
        for ground in [Ground::Quotient, Ground::Bins] {
            for (capacity, rate) in [(1, 0.5), (10_000, 1.0 / 256.0), (1 << 40, 1e-9)] {
                let wishes = Wishes { ground: Some(ground), capacity, rate, quotient_only: None };
                assert_eq!(choose(wishes), Ok(ground));
            }
        }
        let wishes = Wishes { quotient_only: Some("a call"), ..MANY };
        assert_eq!(choose(wishes), Ok(Ground::Quotient));
        assert_eq!(choose(Wishes { ground: Some(Ground::Quotient), ..wishes }), Ok(Ground::Quotient));
        let conflict = BuildError::Conflict { first: "ground(Bins)", second: "a call" };
        assert_eq!(choose(Wishes { ground: Some(Ground::Bins), ..wishes }), Err(conflict));
    }

    #[test]
    fn many_keys_at_the_rates_of_lines_stand_on_bins() {
        let at = |capacity, rate| choose(Wishes { capacity, rate, ..MANY }).unwrap();
        for rate in [1.0 / 80.0, 0.01, 1.0 / 256.0, 1e-3, 0.5_f64.powi(16)] {
            assert_eq!(at(10_000, rate), Ground::Bins, "{rate}");
            assert_eq!(at(usize::MAX, rate), Ground::Bins, "{rate}");
            assert_eq!(at(9_999, rate), Ground::Quotient, "{rate}");
        }
        for rate in [0.5, 1.0 / 79.0, 0.5_f64.powi(17), 0.0, f64::NAN] {
            assert_eq!(at(1_000_000, rate), Ground::Quotient, "{rate}");
        }
    }
}
