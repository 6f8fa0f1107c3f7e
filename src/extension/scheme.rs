//! Extensions as the values of a quotient table's slots.

use crate::coding::{Extension, Extensions};
use crate::hash_string::HashString;
use crate::quotient::{Probe, Table};
use crate::values::{CodedValues, Core, Doubt, Parameters, Scheme};
use crate::{BuildError, KeyHasher};

/// What an extension means: the bits that follow the remainder in the key's hash string.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extending {
    remainder_bits: u32,
}

impl Extending {
    /// The filter that the parameters ask for.
    pub(super) fn core<H: KeyHasher>(parameters: Parameters) -> Result<Core<Self, H>, BuildError> {
        parameters.build(true, |table| {
            let values = CodedValues::new(parameters.overflow, table);
            Some((Self { remainder_bits: table.remainder_bits() }, values))
        })
    }
}

impl Scheme for Extending {
    type Store = CodedValues<Extensions>;

    const MOVES_REMAINDER: bool = false;

    fn for_remainder(remainder_bits: u32) -> Self {
        Self { remainder_bits }
    }

    #[inline(always)]
    fn remainder<H: KeyHasher>(&self, _: Extension, key: &HashString<'_, H>) -> u64 {
        key.bits(0, self.remainder_bits)
    }

    #[inline]
    fn accepts<H: KeyHasher>(&self, remainder: u64, value: Extension, key: &HashString<'_, H>) -> bool {
        remainder == self.remainder(value, key) && value.begins(key, self.remainder_bits)
    }

    fn next<H: KeyHasher>(
        &self,
        value: Extension,
        stored: &HashString<'_, H>,
        query: &HashString<'_, H>,
    ) -> Option<Extension> {
        value.against(query, stored, self.remainder_bits)
    }

    /// The quotient has taken the string's first bit, so the remainder takes the extension's.
    fn doubled<H: KeyHasher>(&self, value: Extension, key: &HashString<'_, H>) -> Extension {
        value.doubled(key, self.remainder_bits)
    }

    fn strictness(value: Extension) -> u32 {
        value.len()
    }

    /// Extensions matter only where the remainder matches.
    fn probe(&self, _: &Table, _: &Self::Store) -> Probe {
        Probe::Matching
    }

    fn settle<H: KeyHasher>(
        &self,
        table: &Table,
        values: &Self::Store,
        Doubt { block, slots }: Doubt,
        key: &HashString<'_, H>,
    ) -> bool {
        values.any_in_block(table, block, slots, |_, extension| extension.begins(key, self.remainder_bits))
    }
}
