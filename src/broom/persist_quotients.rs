//! Quotient tables with what lies elsewhere, in files; see [`persist`](super::persist).

use crate::bits::PackedSlots;
use crate::format::{Decoder, Encoder, FormatError, in_range, number};
use crate::quotient::{Probe, Table};

use super::adaptivity::Adaptivity;
use super::backyard::BackYard;
use super::builder::{Blueprint, LOADS, REMAINDER_BITS};
use super::columns::Slots;
use super::elsewhere::Elsewhere;
use super::fingerprint::Remainders;
use super::level::Level;
use super::on_quotients::BroomQuotients;
use super::persist::{Lasting, MAX_COUNT, decode_codes, encode_codes};
use super::secondary::Secondary;

/// Words of a bucket of the back yard.
const BUCKET: u64 = 8;

impl Lasting for BroomQuotients {
    const LOADS: std::ops::RangeInclusive<f64> = LOADS;

    fn parameters(Remainders { table_bits, rest_bits }: Remainders, columns: Slots) -> [u64; 3] {
        [columns.slots(), table_bits.into(), rest_bits.into()]
    }

    fn cut([_, table_bits, rest_bits]: [u64; 3]) -> Result<Remainders, FormatError> {
        let bits = table_bits.saturating_add(rest_bits);
        let range = u64::from(*REMAINDER_BITS.start())..=(*REMAINDER_BITS.end()).into();
        Ok(Remainders::of(in_range("remainder bits", bits, range)?))
    }

    fn hinted(&self) -> u64 {
        self.hinted as u64
    }

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        self.primary.encode(encoder)?;
        self.elsewhere.encode(encoder)
    }

    fn decode(
        decoder: &mut Decoder<'_>,
        blueprint: Blueprint<Remainders>,
        columns: Slots,
        hinted: u64,
    ) -> Result<Self, FormatError> {
        let (remainders, slots) = (blueprint.cut, columns.slots());
        let Remainders { table_bits, rest_bits } = remainders;
        let primary = Level::decode(decoder, true, rest_bits, |own| (own == slots).then_some(table_bits))?;
        let elsewhere = Elsewhere::decode(decoder, slots, remainders)?;
        let hinted = number("quotients that are flagged", hinted)?;
        Ok(Self::from_parts(primary, elsewhere, remainders, hinted))
    }
}

impl Elsewhere {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        match self {
            Self::Secondary(secondary) => secondary.level.encode(encoder),
            Self::BackYard(yard) => {
                let (words, heap) = (yard.as_words(), yard.heap());
                encoder.words(&[yard.len() as u64, words.len() as u64 / BUCKET, heap.len() as u64])?;
                encoder.words(words)?;
                let heap: Vec<u64> = heap.iter().flat_map(|&(quotient, tag)| [quotient, tag]).collect();
                Ok(encoder.words(&heap)?)
            }
        }
    }

    fn decode(decoder: &mut Decoder<'_>, slots: u64, remainders: Remainders) -> Result<Self, FormatError> {
        let Remainders { table_bits, rest_bits } = remainders;
        if rest_bits == 0 {
            let sizes = Secondary::sizes(slots, table_bits);
            let level = Level::decode(decoder, false, 0, |own| {
                sizes.contains(&own).then(|| Secondary::remainder_bits(slots, table_bits, own))
            })?;
            return Ok(Self::Secondary(Box::new(Secondary::from_level(level, slots, table_bits))));
        }
        let [keys, buckets, heap] =
            decoder.counts(["keys of the back yard", "its buckets", "keys in its heap"])?;
        in_range::<u64>("buckets", buckets, BackYard::fewest_buckets(slots)..=MAX_COUNT)?;
        let words = decoder.words(BUCKET * buckets)?;
        let heap =
            decoder.words(2 * heap)?.as_chunks().0.iter().map(|&[quotient, tag]| (quotient, tag)).collect();
        Ok(Self::BackYard(BackYard::from_parts(words, heap, number("keys of the back yard", keys)?)))
    }
}

impl Level {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let (table, [slots, _, blocks]) = (&self.table, self.table.measures());
        let (sizes, codes) = encode_codes(&self.strings);
        let (used, bytes) = (sizes.len() as u64, codes.len() as u64);
        encoder.words(&[table.len() as u64, slots, blocks, self.longest_shift, used, bytes])?;
        table.encode(encoder)?;
        if let Some(rest) = self.rest() {
            encoder.bytes(rest.as_bytes())?;
        }
        encoder.words(&sizes)?;
        Ok(encoder.bytes(&codes)?)
    }

    /// `bits_for` says how wide the remainders of a level of so many quotients are, if there can be one.
    fn decode(
        decoder: &mut Decoder<'_>,
        primary: bool,
        rest_bits: u32,
        bits_for: impl FnOnce(u64) -> Option<u32>,
    ) -> Result<Self, FormatError> {
        let [len, slots, blocks, longest_shift, used, bytes] = decoder.counts([
            "keys",
            "quotients",
            "blocks",
            "longest shift",
            "blocks in use",
            "bytes of them",
        ])?;
        let Some(bits) = bits_for(slots) else {
            return Err(FormatError::BadNumber { name: "quotients of a level", value: slots });
        };
        let len = number("keys of a level", len)?;
        let mut table = Table::decode(decoder, [slots, bits.into(), blocks], primary, len)?;
        if primary {
            table.set_probe(Probe::Flagged);
        }
        let rest = match rest_bits {
            0 => None,
            _ => Some(decode_rest(decoder, &table, rest_bits)?),
        };
        let strings = Adaptivity::new(table.blocks(), table.slots_per_block())
            .map_err(|_| FormatError::OutOfMemory { bytes: table.memory_bits() / 8 })?;
        let strings = decode_codes(decoder, strings, table.blocks() as u64, [used, bytes])?;
        Ok(Self::from_parts(table, rest, strings, longest_shift))
    }
}

/// The remainders beside a table, of so many bits each.
fn decode_rest(decoder: &mut Decoder<'_>, table: &Table, bits: u32) -> Result<PackedSlots, FormatError> {
    let slots = number("slots", table.physical_slots())?;
    let bytes = PackedSlots::bytes(slots, bits).unwrap_or(usize::MAX);
    Ok(PackedSlots::from_words(decoder.bytes(bytes as u64)?, slots, bits))
}
