//! Bloom filters in files: all their words as one section.

use crate::KeyHasher;
use crate::bits::Isa;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, in_range, unsound};

use super::line::{LANES, Probes};
use super::{BlockedBloomFilter, BloomFilter};

/// More than any rate that can be asked for needs, so that no file can make a query endless.
const MAX_PROBES: u64 = 64;

/// Parameters: words, probes.
impl<H: KeyHasher> Persist for BloomFilter<H> {
    const KIND: Kind = Kind::Bloom;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        encoder.parameters(&[self.words.len() as u64, self.probes.into()]);
        Ok(encoder.words(&self.words)?)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [words, probes] = decoder.parameters()?;
        let hasher = decoder.hasher()?;
        let (len, capacity) = (decoder.len()?, decoder.capacity()?);
        let probes = in_range("probes", probes, 1..=MAX_PROBES)?;
        let words = decoder.words(in_range("words", words, 1..=u64::MAX)?)?;
        Ok(Self { hasher, words, probes, len, capacity })
    }
}

/// Parameters: words, probes, whether a key's bits lie in half a line.
impl<H: KeyHasher> Persist for BlockedBloomFilter<H> {
    const KIND: Kind = Kind::BlockedBloom;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let half = u64::from(self.probes == Probes::Half);
        encoder.parameters(&[self.words.len() as u64, self.probes.count().into(), half]);
        Ok(encoder.words(&self.words)?)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [words, probes, half] = decoder.parameters()?;
        let hasher = decoder.hasher()?;
        let (len, capacity) = (decoder.len()?, decoder.capacity()?);
        let count: u32 = in_range("probes", probes, 1..=MAX_PROBES)?;
        let is_half: u64 = in_range("whether bits lie in half a line", half, 0..=1)?;
        let mut layouts = if is_half == 1 { &[Probes::Half][..] } else { &Probes::LINES }.iter().copied();
        let probes = layouts.find(|probes| probes.count() == count);
        let probes = probes.ok_or(FormatError::BadNumber { name: "probes", value: count.into() })?;
        if words == 0 || !words.is_multiple_of(LANES as u64) {
            return Err(unsound(format!("{words} words are no whole lines of {LANES}")));
        }
        let words = decoder.words(words)?;
        Ok(Self { hasher, words, probes, isa: Isa::active(), len, capacity })
    }
}
