//! Where fingerprints go that the primary level cannot take.

use crate::bits::BitString;
use crate::quotient::Table;
use crate::{BuildError, InvariantError, error::ensure};

use super::adaptivity::Adaptivity;
use super::backyard::{BackYard, YardSize};
use super::fingerprint::{Baseline, Fingerprint, Remainders};
use super::on_quotients::Spot;
use super::secondary::Secondary;

/// Everything beyond the primary level. It knows the quotients of its keys, as the primary table does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Elsewhere {
    /// Small remainders (5.3).
    Secondary(Box<Secondary>),
    /// Large remainders (5.4).
    BackYard(BackYard),
}

impl Elsewhere {
    pub(super) fn new(primary: &Table, remainders: Remainders, load: f64) -> Result<Self, BuildError> {
        let (slots, signature_bits) = (primary.slots(), remainders.table_bits);
        Ok(match remainders.rest_bits {
            0 => Self::Secondary(Box::new(Secondary::new(slots, remainders.table_bits, load)?)),
            _ => Self::BackYard(BackYard::new(YardSize { slots, load, signature_bits })?),
        })
    }

    /// The memory that [`new`](Self::new) takes, in bits.
    pub(super) fn size_in_bits(slots: u64, remainders: Remainders, load: f64) -> usize {
        match remainders.rest_bits {
            0 => Secondary::size_in_bits(slots, remainders.table_bits, load),
            _ => YardSize { slots, load, signature_bits: remainders.table_bits }.in_bits(),
        }
    }

    /// How many keys are here.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Secondary(secondary) => secondary.level.table.len(),
            Self::BackYard(yard) => yard.len(),
        }
    }

    /// How many keys of a quotient are here.
    pub(super) fn count(&self, quotient: u64) -> usize {
        match self {
            Self::Secondary(secondary) => secondary.count(quotient),
            Self::BackYard(yard) => yard.count(quotient),
        }
    }

    /// The fingerprints of a quotient.
    pub(super) fn items_of(&self, quotient: u64) -> Vec<(Spot, Fingerprint)> {
        let empty = |remainder| Baseline { quotient, remainder, rest: 0 };
        match self {
            Self::Secondary(secondary) => secondary
                .items_of(quotient)
                .into_iter()
                .map(|(slot, remainder, string)| {
                    (Spot::Secondary(slot), Fingerprint::of_item(empty(remainder), string))
                })
                .collect(),
            Self::BackYard(yard) => yard
                .places_of(quotient)
                .into_iter()
                .map(|(place, digest)| {
                    let item = Fingerprint::of_item(empty(0), BitString::EMPTY);
                    (Spot::BackYard(place), Fingerprint { digest, ..item })
                })
                .collect(),
        }
    }

    /// The quotients of all keys, in no order.
    pub(super) fn quotients(&self) -> Vec<u64> {
        match self {
            Self::Secondary(secondary) => secondary.homes().collect(),
            Self::BackYard(yard) => yard.iter().map(|(quotient, _)| quotient).collect(),
        }
    }

    /// The adaptivity bits of its keys. Keys of the back yard need none.
    pub(super) fn strings(&self) -> Option<&Adaptivity> {
        match self {
            Self::Secondary(secondary) => Some(&secondary.level.strings),
            Self::BackYard(_) => None,
        }
    }

    /// The most slots that one insertion or removal has moved or written here; 0 for the back yard.
    pub(super) fn longest_shift(&self) -> u64 {
        match self {
            Self::Secondary(secondary) => secondary.level.longest_shift,
            Self::BackYard(_) => 0,
        }
    }

    /// The memory in use, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        match self {
            Self::Secondary(secondary) => secondary.level.memory_bits(),
            Self::BackYard(yard) => yard.memory_bits(),
        }
    }

    /// Every key has a quotient below `slots`, and the counts are right.
    pub(super) fn verify(&self, slots: u64) -> Result<(), InvariantError> {
        if let Self::Secondary(secondary) = self {
            secondary.verify()?;
        }
        let quotients = self.quotients();
        ensure!(quotients.len() == self.len(), "{} keys elsewhere, {} counted", quotients.len(), self.len());
        for quotient in quotients {
            ensure!(quotient < slots, "a key elsewhere has quotient {quotient} of {slots}");
        }
        Ok(())
    }
}
