//! Filters on bins in files.
//!
//! ```text
//! parameters  bins, slots of a bin, bits of class and tag (or how many of them there are, if that is no power of two),
//!             load (as bits of floating point), doublings that are left
//! section     the lines of the first level
//! section     keys in the second level, bins that share one of its lines
//! section     the lines of the second level
//! section     keys in the rest, numbers that share a quotient, blocks
//! section     the blocks of the rest
//! ```

use crate::KeyHasher;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, in_range, number, unsound};
use crate::quotient;

use super::builder::LOADS;
use super::filter::BinFilter;
use super::layout::{CUTS, Shape};
use super::next::Next;
use super::rest::Rest;
use super::second::{Second, most_bins, own_shape};
use super::table::{LINE_BYTES, Table};

impl<H: KeyHasher> Persist for BinFilter<H> {
    const KIND: Kind = Kind::Bins;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let shape = self.table.shape();
        encoder.parameters(&[
            self.table.bins(),
            shape.slots.into(),
            shape.code(),
            self.load.to_bits(),
            self.doublings.into(),
        ]);
        self.table.encode(encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [bins, slots, code, load, doublings] = decoder.parameters()?;
        let shape = shape(slots, code)?;
        let (load, doublings) =
            (f64::from_bits(load), in_range("doublings left", doublings, 0..=u8::MAX.into())?);
        if !LOADS.contains(&load) || shape.after(doublings).is_none() {
            return Err(unsound(format!("{slots} slots at load {load} that double {doublings} times")));
        }
        let (hasher, len, capacity) = (decoder.hasher()?, decoder.len()?, decoder.capacity()?);
        let bins = in_range::<u64>("bins", bins, 1..=Table::MAX_BINS >> doublings)?;
        in_range::<u64>("capacity", capacity as u64, 1..=bins.saturating_mul(slots))?;
        let table = Table::decode(decoder, bins, shape, len)?;
        Ok(Self::from_parts(table, hasher, capacity, load, doublings))
    }
}

impl Shape {
    /// The cut of lines with this [code](Self::code) that has flags.
    pub(crate) fn flagged(code: u64) -> Result<Self, FormatError> {
        let cut = |cut: &&Self| cut.code() == code && cut.is_first_level(1);
        let found = CUTS.iter().find(cut).copied();
        found.ok_or(FormatError::BadNumber { name: "bits of class and tag", value: code })
    }
}

/// The cut with so many slots and this [code](Shape::code).
pub(super) fn shape(slots: u64, code: u64) -> Result<Shape, FormatError> {
    let cut = |cut: &&Shape| (u64::from(cut.slots), cut.code()) == (slots, code);
    let found = CUTS.iter().find(cut).copied();
    found
        .ok_or_else(|| unsound(format!("bins of {slots} slots with {code} bits, or kinds, of class and tag")))
}

impl Table {
    /// Reads a first level of so many bins, one at least and [`MAX_BINS`](Self::MAX_BINS) at most, with `len` items in
    /// all levels.
    pub(crate) fn decode(
        decoder: &mut Decoder<'_>,
        bins: u64,
        shape: Shape,
        len: usize,
    ) -> Result<Self, FormatError> {
        let words = decoder.bytes(bins * LINE_BYTES)?;
        let second = Second::decode(decoder, bins, shape)?;
        Ok(Self::from_parts(words, shape, len, Next::Second(Box::new(second))))
    }

    pub(crate) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        // Lines are bytes, in whichever order a machine has those of its words.
        encoder.bytes(self.bytes())?;
        match &self.next {
            Next::Second(second) => {
                encoder.words(&[second.len() as u64, second.group()])?;
                second.table().encode(encoder)
            }
            Next::Rest(rest) => {
                let [.., blocks] = rest.table().measures();
                encoder.words(&[rest.len() as u64, rest.width(), blocks])?;
                rest.table().encode(encoder)
            }
        }
    }
}

impl Second {
    /// The second level of a first one with so many bins of this shape.
    fn decode(decoder: &mut Decoder<'_>, bins: u64, shape: Shape) -> Result<Self, FormatError> {
        let [len, group] = decoder.counts(["keys in the second level", "bins that share a line"])?;
        let group = in_range("bins that share a line", group, 1..=most_bins(shape))?;
        let (own_bins, own_shape) = own_shape(bins, shape, group);
        let words = decoder.bytes(own_bins * LINE_BYTES)?;
        let rest = Rest::decode(decoder, own_bins, own_shape)?;
        let len = number("keys in the second level", len)?;
        Ok(Self::from_table(Table::from_parts(words, own_shape, len, Next::Rest(rest)), bins, shape, group))
    }
}

impl Rest {
    /// What is behind a second level of so many bins of this shape.
    fn decode(decoder: &mut Decoder<'_>, bins: u64, shape: Shape) -> Result<Self, FormatError> {
        let [len, width, blocks] =
            decoder.counts(["keys in the rest", "numbers that share a quotient", "blocks"])?;
        let Some([quotients, bits]) = Self::measures(bins, shape, width) else {
            return Err(FormatError::BadNumber { name: "numbers that share a quotient", value: width });
        };
        let len = number("keys in the rest", len)?;
        let table = quotient::Table::decode(decoder, [quotients, bits, blocks], false, len)?;
        Ok(Self::from_table(table, bins, shape, width))
    }
}
