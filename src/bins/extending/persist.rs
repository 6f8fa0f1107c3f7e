//! Extension filters on bins in files.
//!
//! ```text
//! parameters  bins, slots of a bin, bits of class and tag, growable
//! section     repairs made
//! sections    the bins, as for the plain filter, with their flags
//! section     extensions
//! section     for every extension: bin, rank, number (in the order '', 0, 1, 00, …)
//! ```

use crate::KeyHasher;
use crate::coding::{Extension, Extensions, Letters};
use crate::format::{Decoder, Encoder, FormatError, flag, in_range, unsound};

use super::super::persist::shape;
use super::super::table::Table;
use super::super::values::Values;
use super::ExtendingBins;

impl<H: KeyHasher> ExtendingBins<H> {
    pub(crate) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let shape = self.table.shape();
        encoder.parameters(&[
            self.table.bins(),
            shape.slots.into(),
            shape.entry_bits().into(),
            self.growable.into(),
        ]);
        encoder.words(&[self.adaptations])?;
        self.table.encode(encoder)?;
        encoder.words(&[self.values.adapted() as u64])?;
        let numbers = |(bin, rank, value)| [bin, rank as u64, Extensions::number(value)];
        let words: Vec<u64> = self.values.iter().flat_map(numbers).collect();
        Ok(encoder.words(&words)?)
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [bins, slots, entry_bits, growable] = decoder.parameters()?;
        let shape = shape(slots, entry_bits)?;
        if shape.spare == 0 {
            return Err(unsound(format!("lines of {slots} slots, which have no room for flags")));
        }
        let (hasher, len, capacity) = (decoder.hasher()?, decoder.len()?, decoder.capacity()?);
        let bins = in_range::<u64>("bins", bins, 1..=Table::MAX_BINS)?;
        in_range::<u64>("capacity", capacity as u64, 1..=bins.saturating_mul(slots))?;
        let [adaptations] = decoder.counts(["repairs"])?;
        let table = Table::decode(decoder, bins, shape, len)?;
        let [extensions] = decoder.numbers()?;
        let words = decoder.words(extensions.saturating_mul(3))?;
        let values = values(&words, bins, slots as u32)?;
        let filter = Self::new(table, hasher, capacity, flag("growable", growable)?);
        Ok(Self { values, adaptations, ..filter })
    }
}

/// The extensions of so many bins of so many slots, three words for each.
fn values(words: &[u64], bins: u64, slots: u32) -> Result<Values, FormatError> {
    let (extensions, _) = words.as_chunks::<3>();
    if !extensions.is_sorted_by(|one, other| one[..2] < other[..2]) {
        return Err(unsound("the extensions are not in order"));
    }
    let mut values = Values::new(slots);
    for of_bin in extensions.chunk_by(|one, other| one[0] == other[0]) {
        let bin = in_range::<u64>("the bin of an extension", of_bin[0][0], 0..=bins - 1)?;
        let of_bin = of_bin.iter().map(|&[_, rank, number]| {
            Ok((in_range("a rank", rank, 0..=u32::MAX.into())?, extension(number)?))
        });
        values.set(bin, bins, &of_bin.collect::<Result<Vec<_>, FormatError>>()?);
    }
    Ok(values)
}

/// The extension of a number, which must not be the empty one.
fn extension(number: u64) -> Result<Extension, FormatError> {
    let found = Extensions::letter(number).filter(|&value| value != Extension::default());
    found.ok_or(FormatError::BadNumber { name: "an extension", value: number })
}
