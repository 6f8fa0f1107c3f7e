//! Broom filters in files.
//!
//! ```text
//! parameters  of a quotient table: quotients, remainder bits in the table, those beside it
//!             of bins: bins, 0, bits of class and tag
//!             of both: load and budget (as bits of floating point), hash functions given up, steps of the frontier
//! section     repairs, growths, growable, quotients that are flagged (0 on bins), half of the addresses (0 or 1)
//!
//! of a quotient table
//! primary     a level
//! elsewhere   a level; or keys of the back yard, its buckets, keys in its heap · the buckets · quotient and tag of each
//!             key in the heap
//!
//! level       keys, quotients, blocks, the longest shift, blocks with strings or ghosts, bytes of those · the blocks of the
//!             table · the remainders beside it, if there are any · number · 2^16 + bytes of each block with strings or
//!             ghosts · these bytes, one block after the other
//!
//! of bins
//! sections    the bins, as for the plain filter, with their flags
//! section     strings, bins with ghosts, bytes of those
//! section     for every string: bin, rank, its bits from the lowest on and a one behind them, in two words
//! sections    number · 2^16 + bytes of each bin with ghosts · these bytes, one bin after the other
//! ```

use std::ops::RangeInclusive;

use crate::KeyHasher;
use crate::format::{Decoder, Encoder, FormatError, flag, in_range, number, unsound};

use super::adaptivity::Adaptivity;
use super::addresses::HALF;
use super::builder::{BUDGETS, Blueprint};
use super::core::Core;
use super::functions::Functions;
use super::local::Local;
use super::table::BroomTable;

/// More than any filter comes to, and few enough that no sum overflows.
pub(super) const MAX_COUNT: u64 = 1 << 56;

/// A table that can be written and read.
pub(super) trait Lasting: BroomTable {
    /// The loads that a builder can ask for.
    const LOADS: RangeInclusive<f64>;

    /// What names columns and cut.
    fn parameters(cut: Self::Cut, columns: Self::Columns) -> [u64; 3];

    /// The cut that may be named so. Whether it is, with the columns that the capacity asks for, is checked afterwards.
    fn cut(parameters: [u64; 3]) -> Result<Self::Cut, FormatError>;

    /// How many quotients are flagged, if that is counted.
    fn hinted(&self) -> u64;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError>;

    fn decode(
        decoder: &mut Decoder<'_>,
        blueprint: Blueprint<Self::Cut>,
        columns: Self::Columns,
        hinted: u64,
    ) -> Result<Self, FormatError>;
}

/// The table of the filter in a file: remainders always have bits in the table, and bins say 0 there.
pub(super) fn table_of(decoder: &Decoder<'_>) -> Result<crate::Table, FormatError> {
    let [_, table_bits, ..] = decoder.parameters::<7>()?;
    Ok(if table_bits == 0 { crate::Table::Bins } else { crate::Table::Quotient })
}

impl<G: Lasting, H: KeyHasher> Core<G, H> {
    pub(super) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let (local, Blueprint { cut, load, budget }) = (&self.local, self.blueprint);
        let [first, second, third] = G::parameters(cut, local.functions.columns());
        let (phase, frontier) = local.functions.position();
        let (load, budget) = (load.to_bits(), budget.to_bits());
        encoder.parameters(&[first, second, third, load, budget, phase, frontier]);
        let (growable, hinted) = (self.growable.into(), local.table.hinted());
        let half = u64::from(local.half > 0);
        encoder.words(&[self.adaptations, self.growths, growable, hinted, half])?;
        local.table.encode(encoder)
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [first, second, third, load, budget, phase, frontier] = decoder.parameters()?;
        let (capacity, parameters) = (decoder.capacity()?, [first, second, third]);
        let (load, budget) = (f64::from_bits(load), f64::from_bits(budget));
        if !G::LOADS.contains(&load) || !BUDGETS.contains(&budget) {
            return Err(unsound(format!("load {load} with a budget of {budget}")));
        }
        let blueprint = Blueprint { cut: G::cut(parameters)?, load, budget };
        let columns = G::columns(blueprint, capacity).ok();
        let columns = columns.filter(|&columns| G::parameters(blueprint.cut, columns) == parameters);
        let Some(columns) = columns else {
            return Err(unsound(format!("the table {parameters:?} for {capacity} keys at load {load}")));
        };
        let [adaptations, growths, growable, hinted, half] = decoder.numbers()?;
        let phase = in_range("hash functions given up", phase, 0..=MAX_COUNT)?;
        let mut functions = Functions::new(decoder.hasher()?, columns, phase);
        let last = functions.walk() - 1;
        functions.set_position((phase, in_range("steps of the frontier", frontier, 0..=last)?));
        let table = G::decode(decoder, blueprint, columns, hinted)?;
        let mut local = Local::from_parts(blueprint, capacity, functions, table);
        local.half = if flag("half of the addresses", half)? { HALF } else { 0 };
        Ok(Self {
            local,
            blueprint,
            capacity,
            growable: flag("growable", growable)?,
            adaptations: in_range("repairs", adaptations, 0..=MAX_COUNT)?,
            growths: in_range("growths", growths, 0..=MAX_COUNT)?,
        })
    }
}

/// Number and size of every block in use, and all codes.
pub(super) fn encode_codes(strings: &Adaptivity) -> (Vec<u64>, Vec<u8>) {
    let (mut sizes, mut codes) = (Vec::new(), Vec::new());
    for (block, code) in strings.codes() {
        sizes.push((block as u64) << 16 | code.len() as u64);
        codes.extend_from_slice(code);
    }
    (sizes, codes)
}

/// Fills an empty store for so many blocks: so many of them have codes, in so many bytes.
pub(super) fn decode_codes(
    decoder: &mut Decoder<'_>,
    mut strings: Adaptivity,
    blocks: u64,
    [used, bytes]: [u64; 2],
) -> Result<Adaptivity, FormatError> {
    let (sizes, codes) = (decoder.words(used)?, decoder.bytes(bytes)?);
    let mut codes = &codes.as_bytes()[..number("bytes of strings", bytes)?];
    if !sizes.is_sorted_by(|one, other| one >> 16 < other >> 16) {
        return Err(unsound("the blocks that have strings are not in order"));
    }
    for &size in sizes.iter() {
        let block = in_range("a block that has strings", size >> 16, 0..=blocks - 1)?;
        let Some((code, rest)) = codes.split_at_checked((size & 0xffff) as usize) else {
            return Err(unsound("fewer bytes of strings than the blocks have"));
        };
        if !strings.take_code(block, code) {
            return Err(unsound(format!("the strings of block {block} were never written")));
        }
        codes = rest;
    }
    if codes.is_empty() { Ok(strings) } else { Err(unsound("more bytes of strings than the blocks have")) }
}
