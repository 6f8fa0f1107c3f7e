//! Extension filters on bins in files.
//!
//! ```text
//! parameters  bins, slots of a bin, bits of class and tag (or how many of them), growable
//! section     repairs made
//! sections    the bins, as for the plain filter, with their flags
//! sections    the side store of the extensions: words, and these words
//! section     extensions beyond its records
//! section     for each of these: bin, rank, number (in the order '', 0, 1, 00, …)
//! ```

use crate::KeyHasher;
use crate::format::{Decoder, Encoder, FormatError, flag, in_range, unsound};

use super::super::persist::shape;
use super::super::table::Table;
use super::super::values::Values;
use super::ExtendingBins;

impl<H: KeyHasher> ExtendingBins<H> {
    pub(crate) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let shape = self.table.shape();
        encoder.parameters(&[self.table.bins(), shape.slots.into(), shape.code(), self.growable.into()]);
        encoder.words(&[self.adaptations])?;
        self.table.encode(encoder)?;
        self.values.encode(self.table.bins(), encoder)
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [bins, slots, code, growable] = decoder.parameters()?;
        let shape = shape(slots, code)?;
        if shape.spare == 0 {
            return Err(unsound(format!("lines of {slots} slots, which have no room for flags")));
        }
        let (hasher, len, capacity) = (decoder.hasher()?, decoder.len()?, decoder.capacity()?);
        let bins = in_range::<u64>("bins", bins, 1..=Table::MAX_BINS)?;
        in_range::<u64>("capacity", capacity as u64, 1..=bins.saturating_mul(slots))?;
        let [adaptations] = decoder.counts(["repairs"])?;
        let table = Table::decode(decoder, bins, shape, len)?;
        let values = Values::decode(decoder, bins, slots as u32)?;
        let filter = Self::new(table, hasher, capacity, flag("growable", growable)?);
        Ok(Self { values, adaptations, ..filter })
    }
}
