//! Broom filters in files.
//!
//! ```text
//! parameters  quotients, remainder bits in the table, those beside it, load and budget (as bits of floating point), hash
//!             functions given up, steps of the frontier, address generation
//! section     repairs, growths, growable, quotients that are flagged, the last generation that was written under, lists
//!             left over (0 or 1), their generation and slots
//! primary     a level
//! elsewhere   a level; or keys of the back yard, its buckets, keys in its heap · the buckets · quotient and tag of each
//!             key in the heap
//!
//! level       keys, quotients, blocks, the longest shift, blocks with strings or ghosts, bytes of those · the blocks of the
//!             table · the remainders beside it, if there are any · number · 2^16 + bytes of each block with strings or
//!             ghosts · these bytes, one block after the other
//! ```

use crate::KeyHasher;
use crate::bits::PackedSlots;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, flag, in_range, number, unsound};
use crate::quotient::{Probe, Table};

use super::adaptivity::Adaptivity;
use super::backyard::BackYard;
use super::builder::{BUDGETS, Blueprint, LOADS, REMAINDER_BITS};
use super::elsewhere::Elsewhere;
use super::filter::BroomFilter;
use super::fingerprint::Remainders;
use super::functions::Functions;
use super::growth::Leftovers;
use super::level::Level;
use super::local::Local;
use super::secondary::Secondary;

/// More than any filter comes to, and few enough that no sum overflows.
const MAX_COUNT: u64 = 1 << 56;

/// Words of a bucket of the back yard.
const BUCKET: u64 = 8;

impl<H: KeyHasher> Persist for BroomFilter<H> {
    const KIND: Kind = Kind::Broom;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let (local, Blueprint { remainders, load, budget }) = (&self.local, self.blueprint);
        let (phase, frontier) = local.functions.position();
        encoder.parameters(&[
            local.table().slots(),
            remainders.table_bits.into(),
            remainders.rest_bits.into(),
            load.to_bits(),
            budget.to_bits(),
            phase,
            frontier,
            local.generation.into(),
        ]);
        let growable = self.growable.into();
        let counts = [self.adaptations, self.growths, growable, local.hinted as u64, self.generations.into()];
        encoder.words(&[&counts[..], &Leftovers::to_numbers(self.leftovers)].concat())?;
        local.primary.encode(encoder)?;
        local.elsewhere.encode(encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [slots, table_bits, rest_bits, load, budget, phase, frontier, generation] =
            decoder.parameters()?;
        let capacity = decoder.capacity()?;
        let generation_of = |value| in_range("address generation", value, 0..=u16::MAX.into());
        let blueprint = decode_blueprint([table_bits, rest_bits, load, budget])?;
        if blueprint.slots(capacity) != Ok(slots) {
            return Err(unsound(format!("{slots} slots for {capacity} keys at load {}", blueprint.load)));
        }
        let [adaptations, growths, growable, hinted, generations, leftovers @ ..] = decoder.numbers::<8>()?;
        let phase = in_range("hash functions given up", phase, 0..=MAX_COUNT)?;
        let mut local = Local::decode(decoder, blueprint, slots, (phase, frontier))?;
        local.generation = generation_of(generation)?;
        local.hinted = number("quotients that are flagged", hinted)?;
        Ok(Self {
            local,
            blueprint,
            capacity,
            growable: flag("growable", growable)?,
            adaptations: in_range("repairs", adaptations, 0..=MAX_COUNT)?,
            growths: in_range("growths", growths, 0..=MAX_COUNT)?,
            generations: generation_of(generations)?,
            leftovers: Leftovers::from_numbers(leftovers)?,
        })
    }
}

/// What stays the same when a filter grows, if a builder could have made it so.
fn decode_blueprint([table_bits, rest_bits, load, budget]: [u64; 4]) -> Result<Blueprint, FormatError> {
    let bits = table_bits.saturating_add(rest_bits);
    let range = u64::from(*REMAINDER_BITS.start())..=(*REMAINDER_BITS.end()).into();
    let remainders = Remainders::of(in_range("remainder bits", bits, range)?);
    let (load, budget) = (f64::from_bits(load), f64::from_bits(budget));
    if u64::from(remainders.table_bits) != table_bits || !LOADS.contains(&load) || !BUDGETS.contains(&budget)
    {
        return Err(unsound(format!(
            "remainders of {table_bits} and {rest_bits} bits at load {load} with a budget of {budget}"
        )));
    }
    Ok(Blueprint { remainders, load, budget })
}

impl<H: KeyHasher> Local<H> {
    fn decode(
        decoder: &mut Decoder<'_>,
        blueprint: Blueprint,
        slots: u64,
        (phase, frontier): (u64, u64),
    ) -> Result<Self, FormatError> {
        let capacity = decoder.capacity()?;
        let mut functions = Functions::new(decoder.hasher()?, slots, phase);
        let last = functions.walk() - 1;
        functions.set_position((phase, in_range("steps of the frontier", frontier, 0..=last)?));
        let Remainders { table_bits, rest_bits } = blueprint.remainders;
        let primary = Level::decode(decoder, true, rest_bits, |own| (own == slots).then_some(table_bits))?;
        let elsewhere = Elsewhere::decode(decoder, slots, blueprint.remainders)?;
        Ok(Self::from_parts(blueprint, capacity, functions, primary, elsewhere))
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
        let (mut sizes, mut codes) = (Vec::new(), Vec::new());
        for (block, code) in self.strings.codes() {
            sizes.push((block as u64) << 16 | code.len() as u64);
            codes.extend_from_slice(code);
        }
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
        let strings = decode_strings(decoder, &table, used, bytes)?;
        Ok(Self::from_parts(table, rest, strings, longest_shift))
    }
}

/// The remainders beside a table, of so many bits each.
fn decode_rest(decoder: &mut Decoder<'_>, table: &Table, bits: u32) -> Result<PackedSlots, FormatError> {
    let slots = number("slots", table.physical_slots())?;
    let bytes = PackedSlots::bytes(slots, bits).unwrap_or(usize::MAX);
    Ok(PackedSlots::from_words(decoder.bytes(bytes as u64)?, slots, bits))
}

/// The strings and ghosts of so many blocks of a table, in so many bytes.
fn decode_strings(
    decoder: &mut Decoder<'_>,
    table: &Table,
    used: u64,
    bytes: u64,
) -> Result<Adaptivity, FormatError> {
    let (sizes, codes) = (decoder.words(used)?, decoder.bytes(bytes)?);
    let mut codes = &codes.as_bytes()[..number("bytes of strings", bytes)?];
    let mut strings = Adaptivity::new(table.blocks(), table.slots_per_block())
        .map_err(|_| FormatError::OutOfMemory { bytes: table.memory_bits() / 8 })?;
    if !sizes.is_sorted_by(|one, other| one >> 16 < other >> 16) {
        return Err(unsound("the blocks that have strings are not in order"));
    }
    for &size in sizes.iter() {
        let block = in_range("a block that has strings", size >> 16, 0..=table.blocks() as u64 - 1)?;
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
