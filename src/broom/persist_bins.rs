//! Bins with what lies beside them, in files; see [`persist`](super::persist).

use crate::bins::{self, Shape, Table};
use crate::bits::BitString;
use crate::format::{Decoder, Encoder, FormatError, in_range, unsound};

use super::builder::Blueprint;
use super::columns::{Bins, Columns};
use super::fingerprint::TAIL_BITS;
use super::on_bins::{BinCut, BroomBins};
use super::persist::{Lasting, decode_codes, encode_codes};
use super::strings::Strings;

impl Lasting for BroomBins {
    const LOADS: std::ops::RangeInclusive<f64> = bins::LOADS;

    fn parameters(cut: BinCut, columns: Bins) -> [u64; 3] {
        [columns.count(), 0, cut.shape.code()]
    }

    fn cut([_, _, code]: [u64; 3]) -> Result<BinCut, FormatError> {
        Shape::flagged(code).map(BinCut::of)
    }

    fn hinted(&self) -> u64 {
        0
    }

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        self.table.encode(encoder)?;
        let (sizes, codes) = encode_codes(&self.ghosts);
        encoder.words(&[self.strings.len() as u64, sizes.len() as u64, codes.len() as u64])?;
        let words = |(bin, rank, string): (u64, usize, BitString)| {
            let bits = string.bits() | 1 << string.len();
            [bin, rank as u64, bits as u64, (bits >> 64) as u64]
        };
        encoder.words(&self.strings.iter().flat_map(words).collect::<Vec<u64>>())?;
        encoder.words(&sizes)?;
        Ok(encoder.bytes(&codes)?)
    }

    fn decode(
        decoder: &mut Decoder<'_>,
        blueprint: Blueprint<BinCut>,
        columns: Bins,
        hinted: u64,
    ) -> Result<Self, FormatError> {
        in_range::<u64>("quotients that are flagged", hinted, 0..=0)?;
        let (bins, shape, len) = (columns.count(), blueprint.cut.shape, decoder.len()?);
        let table = Table::decode(decoder, bins, shape, len)?;
        let [strings, haunted, bytes] = decoder.counts(["strings", "bins with ghosts", "bytes of those"])?;
        let strings = strings_of(&decoder.words(4 * strings)?, bins, shape)?;
        let ghosts = Self::no_ghosts(bins, shape)
            .map_err(|_| FormatError::OutOfMemory { bytes: table.memory_bits() / 8 })?;
        let ghosts = decode_codes(decoder, ghosts, bins, [haunted, bytes])?;
        Ok(Self::from_parts(table, columns, strings, ghosts))
    }
}

/// The strings of so many bins, four words for each.
fn strings_of(words: &[u64], bins: u64, shape: Shape) -> Result<Strings, FormatError> {
    let (words, _) = words.as_chunks::<4>();
    if !words.is_sorted_by(|one, other| one[..2] < other[..2]) {
        return Err(unsound("the strings are not in order"));
    }
    let mut strings = Strings::new(bins, shape.slots);
    for of_bin in words.chunk_by(|one, other| one[0] == other[0]) {
        let bin = in_range::<u64>("the bin of a string", of_bin[0][0], 0..=bins - 1)?;
        let of_bin = of_bin.iter().map(|&[_, rank, low, high]| {
            Ok((in_range("a rank", rank, 0..=u32::MAX.into())?, string(low, high)?))
        });
        strings.set(bin, &of_bin.collect::<Result<Vec<_>, FormatError>>()?);
    }
    Ok(strings)
}

/// The string of these two words, which must not be the empty one.
fn string(low: u64, high: u64) -> Result<BitString, FormatError> {
    let bits = u128::from(high) << 64 | u128::from(low);
    match bits.checked_ilog2() {
        Some(len @ 1..=TAIL_BITS) => Ok(BitString::new(bits, len)),
        _ => Err(FormatError::BadNumber { name: "a string", value: low }),
    }
}
