//! Filters with values in files: the table, then what their store keeps beside it.
//!
//! ```text
//! parameters  quotients, remainder bits, blocks, growable, overflow (0 reset, 1 spill), address generation, kept doublings
//! section     repairs made, blocks reset
//! section     blocks of the table, codes included
//! coded:      adapted slots, highest rank, spilled blocks, their adapted slots
//!   section   for every spilled block: its number, and its adapted slots as bits
//!   section   the values of those slots
//! explicit:   adapted slots, largest value, words
//!   section   a byte for every slot
//! ```

use crate::KeyHasher;
use crate::bits::{AlignedWords, NumberMap, low_mask};
use crate::coding::Letters;
use crate::format::{Decoder, Encoder, FormatError, flag, in_range, number, unsound};
use crate::quotient::Table;

use super::coded::{CodedValues, SideEntry};
use super::explicit::ExplicitValues;
use super::grow::MAX_KEPT;
use super::list::Addresses;
use super::{Core, Overflow, Scheme, ValueStore};

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    pub(crate) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let [slots, bits, blocks] = self.table.measures();
        let spill = u64::from(self.values.overflow() == Overflow::Spill);
        let [generation, kept] = self.addresses.to_numbers();
        encoder.parameters(&[slots, bits, blocks, self.growable.into(), spill, generation, kept]);
        encoder.words(&[self.adaptations, self.resets])?;
        self.table.encode(encoder)?;
        self.values.encode(encoder)
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [slots, bits, blocks, growable, spill, generation, kept] = decoder.parameters()?;
        let hasher = decoder.hasher()?;
        let (len, capacity) = (decoder.len()?, decoder.capacity()?);
        let [adaptations, resets] = decoder.counts(["repairs", "resets"])?;
        let table = Table::decode(decoder, [slots, bits, blocks], S::Store::CODED, len)?;
        in_range::<u64>("capacity", capacity as u64, 1..=table.slots())?;
        let overflow = if flag("overflow", spill)? { Overflow::Spill } else { Overflow::Reset };
        let values = S::Store::decode(&table, overflow, decoder)?;
        if values.overflow() != overflow {
            return Err(unsound("values that always fit, and a way to make them fit"));
        }
        let generation = in_range("address generation", generation, 0..=u16::MAX.into())?;
        let addresses =
            Addresses::from_numbers(generation, in_range("kept doublings", kept, 0..=MAX_KEPT.into())?);
        let growable = flag("growable", growable)?;
        let core = Self::new(table, values, S::for_remainder(bits as u32), hasher, capacity);
        let mut core = Self { growable, addresses, adaptations, resets, ..core };
        core.choose_probe();
        Ok(core)
    }
}

impl<L: Letters> CodedValues<L> {
    pub(super) fn encode_values(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        // In order, so that equal filters have equal files.
        let mut blocks: Vec<(&u64, &Box<[SideEntry<L>]>)> = self.spilled.iter().collect();
        blocks.sort_unstable_by_key(|(block, _)| **block);
        let entries = blocks.iter().flat_map(|(_, entries)| entries.iter());
        let values: Vec<u64> = entries.map(|entry| L::number(entry.1)).collect();
        let slots = |entries: &[SideEntry<L>]| entries.iter().fold(0, |bits, entry| bits | 1 << entry.0);
        let places: Vec<u64> = blocks.iter().flat_map(|(block, entries)| [**block, slots(entries)]).collect();
        let sizes = [self.adapted as u64, self.highest.into(), blocks.len() as u64, values.len() as u64];
        encoder.words(&sizes)?;
        encoder.words(&places)?;
        Ok(encoder.words(&values)?)
    }

    pub(super) fn decode_values(
        table: &Table,
        overflow: Overflow,
        decoder: &mut Decoder<'_>,
    ) -> Result<Self, FormatError> {
        let [adapted, highest, blocks, entries] = decoder.numbers()?;
        let places = decoder.words(blocks.saturating_mul(2))?;
        let values = decoder.words(entries)?;
        let mut store = Self::new(L::for_remainder(table.remainder_bits()), overflow, table);
        store.adapted = number("adapted slots", adapted)?;
        store.highest = in_range("the highest rank", highest, 0..=u16::MAX.into())?;
        store.spilled = side_table::<L>(table, &places, &values)?;
        if overflow == Overflow::Reset && !store.spilled.is_empty() {
            return Err(unsound("a side table in a filter that spills nothing"));
        }
        Ok(store)
    }
}

/// The side table: for every pair of a block and its slots as bits, so many of the values.
fn side_table<L: Letters>(
    table: &Table,
    places: &[u64],
    mut values: &[u64],
) -> Result<NumberMap<Box<[SideEntry<L>]>>, FormatError> {
    let blocks = places.as_chunks::<2>().0;
    if !blocks.is_sorted_by(|[one, _], [other, _]| one < other) {
        return Err(unsound("the blocks of the side table are not in order"));
    }
    let mut spilled = NumberMap::default();
    let bytes = size_of_val(blocks);
    spilled.try_reserve(blocks.len()).map_err(|_| FormatError::OutOfMemory { bytes })?;
    for &[block, slots] in blocks {
        in_range::<u64>("a block of the side table", block, 0..=table.blocks() as u64 - 1)?;
        in_range::<u64>("slots of the side table", slots, 1..=low_mask(table.slots_per_block()))?;
        let Some((these, rest)) = values.split_at_checked(slots.count_ones() as usize) else {
            return Err(unsound("fewer values in the side table than slots"));
        };
        let places = (0..64_u8).filter(|slot| slots >> slot & 1 == 1);
        let letter = |&value: &u64| {
            let letter = L::letter(value).filter(|letter| *letter != L::Letter::default());
            letter.ok_or(FormatError::BadNumber { name: "a value of the side table", value })
        };
        let entries = places.zip(these).map(|(slot, value)| Ok((slot, letter(value)?)));
        spilled.insert(block, entries.collect::<Result<_, FormatError>>()?);
        values = rest;
    }
    if !values.is_empty() {
        return Err(unsound("more values in the side table than slots"));
    }
    Ok(spilled)
}

impl ExplicitValues {
    pub(super) fn encode_values(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let words = self.values.len() as u64;
        encoder.words(&[self.adapted as u64, self.largest.into(), words])?;
        Ok(encoder.bytes(self.values.as_bytes())?)
    }

    pub(super) fn decode_values(table: &Table, decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [adapted, largest, words] = decoder.numbers()?;
        let most = table.physical_slots().div_ceil(size_of::<u64>() as u64);
        let values: AlignedWords = decoder.bytes(in_range::<u64>("words of values", words, 0..=most)? * 8)?;
        let adapted = number("adapted slots", adapted)?;
        Ok(Self { values, adapted, largest: in_range("the largest value", largest, 0..=u8::MAX.into())? })
    }
}
