//! [`TinySet`] in files: all blocks as one section.

use crate::KeyHasher;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, flag, in_range, number};

use super::TinySet;
use super::geometry::{Geometry, MAX_BLOCK_BITS, MIN_BLOCK_BITS};
use super::table::Table;

/// Parameters: the bits of a block, chains, whether keys can be removed, blocks, the sum of the logical counts.
impl<H: KeyHasher> Persist for TinySet<H> {
    const KIND: Kind = Kind::TinySet;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let (table, Geometry { bits, chains, .. }) = (&self.table, *self.table.geometry());
        let removal = table.geometry().removal();
        let (blocks, logical) = (table.blocks() as u64, table.logical() as u64);
        encoder.parameters(&[bits.into(), chains.into(), removal.into(), blocks, logical]);
        Ok(encoder.words(table.words())?)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [bits, chains, removal, blocks, logical] = decoder.parameters()?;
        let hasher = decoder.hasher()?;
        let (len, capacity) = (decoder.len()?, decoder.capacity()?);
        let bits: u32 = in_range("block bits", bits, MIN_BLOCK_BITS.into()..=MAX_BLOCK_BITS.into())?;
        let removal = flag("removal", removal)?;
        let most = Geometry::max_chains(bits, removal);
        let chains = in_range("chains", chains, 1..=most.into())?;
        let geometry = Geometry::new(bits, chains, removal);
        let geometry = geometry.ok_or(FormatError::BadNumber { name: "chains", value: chains.into() })?;
        let blocks: usize = in_range("blocks", blocks, 1..=MAX_BLOCKS)?;
        let words = geometry.words(blocks).unwrap_or(usize::MAX);
        let words = decoder.words(words as u64)?;
        let table = Table::from_words(geometry, words, blocks, len, number("places", logical)?);
        Ok(Self { hasher, table, capacity })
    }
}

/// As many as there is memory for, and few enough that no sum overflows.
const MAX_BLOCKS: u64 = 1 << 48;
