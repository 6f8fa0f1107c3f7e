//! A small value for every slot of a quotient table: what makes a slot's fingerprint adapt.
//!
//! The telescoping filter's value is a selector, the extension filter's an extension. Both are 0 (empty) at
//! first, rarely anything else, and change only when a false positive is repaired. This module has what the
//! filters share:
//!
//! - [`ValueStore`]: where the values of a block are kept. [`CodedValues`] compresses them in the block's own code
//!   and knows what to do when they do not fit ([`Overflow`]); [`ExplicitValues`] has a byte for each.
//! - [`Scheme`]: what a value means: which keys a slot accepts, and which value comes next.
//! - [`Core`]: the table with its values, the same for every scheme, and what insertion, removal, repair, growth and
//!   the way back after a failure do to it. What they have in common with those on other tables is in
//!   [`table`](crate::homes).

mod adapt;
mod bulk;
mod coded;
mod core;
mod explicit;
mod grow;
mod homed;
mod parameters;
mod persist;
mod plan;
mod runs;
mod side;
#[cfg(test)]
mod tests;
mod update;

use std::fmt;
use std::ops::RangeInclusive;

use crate::format::{Decoder, Encoder, FormatError};
use crate::hash_string::HashString;
use crate::quotient::{Probe, Run, Table};
use crate::{InvariantError, KeyHasher};

pub(crate) use self::core::Core;
pub(crate) use coded::CodedValues;
pub(crate) use explicit::ExplicitValues;
pub(crate) use parameters::{Parameters, ValueOptions, code_for, forward_to_core};
pub(crate) use side::{Entry, Layout, SideStore};

/// What a filter does with a block whose values no longer fit into the space that they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// Forget the repairs of the block, then make the new one: the papers' way. Memory is fixed (but for the rare block
    /// in which a single repair takes more than there is, which goes to the side store as with `Spill`), and false
    /// positives that were repaired can come back.
    Reset,
    /// Move the values of the block to a side store: nothing is forgotten, and memory grows by the bits that the values
    /// need, which [`FilterStats::bits`](crate::FilterStats::bits) includes.
    #[default]
    Spill,
}

/// Where the values of all slots are kept. A fresh store has the initial value everywhere.
pub(crate) trait ValueStore: Clone + fmt::Debug {
    /// The value of one slot; the default is the initial one.
    type Value: Copy + Default + PartialEq + fmt::Debug;

    /// Whether its table has codes.
    const CODED: bool;

    /// A value as a number, 0 for the initial one. It never changes, since files have it.
    fn number(value: Self::Value) -> u64;

    /// The value of a number; `None` for numbers that are no value's.
    fn value(number: u64) -> Option<Self::Value>;

    /// A number that is at least what every value, past or present, ranks.
    fn highest_ever(&self) -> u64;

    /// Raises this number. `false` if none can be so high.
    fn raise(&mut self, highest: u64) -> bool;

    /// Whether all values of these blocks are initial. Cheap: says so of code 0 without decoding.
    fn all_initial(&self, table: &Table, blocks: RangeInclusive<usize>) -> bool;

    /// Whether a block whose code is 0 has initial values only.
    fn are_initial_where_code_is_0(&self) -> bool;

    /// Calls `visit` with each slot of a run and its value until it says `true`; whether it did.
    fn any(&self, table: &Table, run: Run, visit: impl FnMut(u64, Self::Value) -> bool) -> bool;

    /// Appends the values of all slots of a block.
    fn load(&self, table: &Table, block: usize, values: &mut Vec<Self::Value>);

    /// Whether a block can have these values without anything being forgotten.
    fn fits(&self, values: &[Self::Value]) -> bool;

    /// Sets the values of all slots of a block, which must fit. Whether the block has now left its code for a
    /// side store.
    fn store(&mut self, table: &mut Table, block: usize, values: &[Self::Value]) -> bool;

    /// A fresh store of the same kind for another table; `None` if the memory is not available.
    fn emptied(&self, table: &Table) -> Option<Self>;

    /// What it does with values that do not fit.
    fn overflow(&self) -> Overflow;

    /// How many slots have a value that is not initial.
    fn adapted(&self) -> usize;

    /// How many blocks are in the side store.
    fn spills(&self) -> usize;

    /// The memory of the store outside of the table, in bits.
    fn memory_bits(&self) -> usize;

    /// Checks what can be checked without the remote.
    fn verify(&self, table: &Table) -> Result<(), InvariantError>;

    /// Writes what is not in the table.
    fn encode(&self, table: &Table, encoder: &mut Encoder<'_>) -> Result<(), FormatError>;

    /// Reads what is not in the table.
    fn decode(table: &Table, overflow: Overflow, decoder: &mut Decoder<'_>) -> Result<Self, FormatError>;
}

/// The value of a scheme.
pub(crate) type ValueOf<S> = <<S as Scheme>::Store as ValueStore>::Value;

/// What the value of a slot means.
pub(crate) trait Scheme: Copy + fmt::Debug {
    /// Where its values are kept.
    type Store: ValueStore;

    /// Whether the remainder of a slot changes with its value.
    const MOVES_REMAINDER: bool;

    /// The scheme for remainders of this many bits.
    fn for_remainder(bits: u32) -> Self;

    /// The remainder of a slot that holds `key` and has this value.
    fn remainder<H: KeyHasher>(&self, value: ValueOf<Self>, key: &HashString<'_, H>) -> u64;

    /// Whether a slot with this remainder and this value takes `key` for the one it holds.
    fn accepts<H: KeyHasher>(&self, remainder: u64, value: ValueOf<Self>, key: &HashString<'_, H>) -> bool;

    /// The next value after this one with which a slot that holds `stored` does not accept `query`; `None` if
    /// their hash bits agree as far as values go.
    fn next<H: KeyHasher>(
        &self,
        value: ValueOf<Self>,
        stored: &HashString<'_, H>,
        query: &HashString<'_, H>,
    ) -> Option<ValueOf<Self>>;

    /// The value that keeps the slot's repairs after the table has doubled, where `key` has lost its first bit.
    fn doubled<H: KeyHasher>(&self, value: ValueOf<Self>, key: &HashString<'_, H>) -> ValueOf<Self>;

    /// How much of a key's hash a value asks for: of two values that one key has, where remainders stay, the greater
    /// accepts less.
    fn strictness(value: ValueOf<Self>) -> u32;

    /// How much the remainders can tell while the slots have these values.
    fn probe(&self, table: &Table, values: &Self::Store) -> Probe;

    /// Whether some slot of these accepts the key, by remainders and values.
    fn settle<H: KeyHasher>(
        &self,
        table: &Table,
        values: &Self::Store,
        doubt: Doubt,
        key: &HashString<'_, H>,
    ) -> bool;
}

/// Slots of a run, which lies in one block: what remainders have left of it, and only values can tell whether they hold
/// a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubt {
    pub(crate) block: usize,
    /// As bits of the block.
    pub(crate) slots: u64,
}

/// The blocks of a span of slots.
fn blocks_of(table: &Table, first: u64, last: u64) -> RangeInclusive<usize> {
    table.block_of(first).0..=table.block_of(last).0
}

/// What filters on other tables need for the tests that they share with those here.
#[cfg(test)]
pub(crate) mod testing {
    pub(crate) use super::tests::{Tested, forward_to_filter};
}
