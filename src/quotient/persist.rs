//! Quotient tables in files: the table's measures, and its blocks as one section.

use crate::KeyHasher;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, in_range};

use super::filter::QuotientFilter;
use super::geometry::{CodeShare, Geometry, Shape};
use super::table::{Table, blocks_for, fraction_bits};

impl Table {
    /// The measures that [`decode`](Self::decode) takes: quotients, the width of a remainder, blocks.
    pub(crate) fn measures(&self) -> [u64; 3] {
        [self.slots, self.remainder_bits().into(), self.blocks as u64]
    }

    /// Writes the blocks.
    pub(crate) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        Ok(encoder.words(&self.words)?)
    }

    /// Reads the blocks of a table of `len` items.
    pub(crate) fn decode(
        decoder: &mut Decoder<'_>,
        [slots, remainder_bits, blocks]: [u64; 3],
        code: impl Into<CodeShare>,
        len: usize,
    ) -> Result<Self, FormatError> {
        let slots: u64 = in_range("slots", slots, 1..=Geometry::MAX_SLOTS)?;
        let widest = (*Geometry::REMAINDER_BITS.end()).min(fraction_bits(slots));
        let bits = in_range(
            "remainder bits",
            remainder_bits,
            u64::from(*Geometry::REMAINDER_BITS.start())..=widest.into(),
        )?;
        let shape = Geometry::new(bits, code.into());
        let fewest = blocks_for(slots, shape) as u64;
        let most = (Geometry::MAX_SLOTS / u64::from(shape.slots())).max(fewest);
        let blocks: u64 = in_range("blocks", blocks, fewest..=most)?;
        let words = decoder.words(blocks.saturating_mul(shape.words() as u64))?;
        Ok(Self::from_words(words, shape, slots, len))
    }
}

/// Parameters: quotients, remainder bits, blocks, doublings that are left.
impl<H: KeyHasher> Persist for QuotientFilter<H> {
    const KIND: Kind = Kind::Quotient;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let [slots, bits, blocks] = self.table.measures();
        encoder.parameters(&[slots, bits, blocks, self.doublings.into()]);
        self.table.encode(encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [slots, bits, blocks, doublings] = decoder.parameters()?;
        let hasher = decoder.hasher()?;
        let (len, capacity) = (decoder.len()?, decoder.capacity()?);
        let table = Table::decode(decoder, [slots, bits, blocks], false, len)?;
        // Each doubling takes a bit from the remainders.
        let spare = table.remainder_bits() - *Geometry::REMAINDER_BITS.start();
        let doublings = in_range("doublings left", doublings, 0..=spare.into())?;
        let _: u64 = in_range("capacity", capacity as u64, 1..=table.slots())?;
        let _: u64 = in_range("slots", table.slots(), 1..=Geometry::MAX_SLOTS >> doublings)?;
        Ok(Self::from_parts(table, hasher, capacity, doublings))
    }
}
