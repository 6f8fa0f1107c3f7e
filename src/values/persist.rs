//! Filters with values in files: the table, then what their store keeps beside it.
//!
//! ```text
//! parameters  quotients, remainder bits, blocks, growable, overflow (0 reset, 1 spill), code bits for 8 slots
//! section     repairs made, blocks reset
//! section     blocks of the table, codes included
//! coded:      adapted slots, highest rank, spilled blocks, their adapted slots
//!   section   for every spilled block: its number, and its adapted slots as bits
//!   section   the values of those slots
//! explicit:   adapted slots, largest value, words
//!   section   a byte for every slot
//! ```

use crate::KeyHasher;
use crate::bits::{AlignedWords, low_mask};
use crate::coding::Letters;
use crate::format::{Decoder, Encoder, FormatError, flag, in_range, number, unsound};
use crate::quotient::{CodeShare, Table};

use super::coded::CodedValues;
use super::explicit::ExplicitValues;
use super::side::Entry;
use super::{Core, Overflow, Scheme, ValueStore};

/// The most code that a table has: more than a block ever takes, so that files cannot ask for absurd shapes.
const MAX_CODE: u64 = 64;

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    pub(crate) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let [slots, bits, blocks] = self.table.measures();
        let spill = u64::from(self.values.overflow() == Overflow::Spill);
        let CodeShare(code) = self.table.code_share();
        let growable = self.growable.into();
        encoder.parameters(&[slots, bits, blocks, growable, spill, code.into()]);
        encoder.words(&[self.adaptations, self.resets])?;
        self.table.encode(encoder)?;
        self.values.encode(&self.table, encoder)
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [slots, bits, blocks, growable, spill, code] = decoder.parameters()?;
        let hasher = decoder.hasher()?;
        let (len, capacity) = (decoder.len()?, decoder.capacity()?);
        let [adaptations, resets] = decoder.counts(["repairs", "resets"])?;
        let codes = if S::Store::CODED { 1..=MAX_CODE } else { 0..=0 };
        let code = CodeShare(in_range("code bits for 8 slots", code, codes)?);
        let table = Table::decode(decoder, [slots, bits, blocks], code, len)?;
        in_range::<u64>("capacity", capacity as u64, 1..=table.slots())?;
        let overflow = if flag("overflow", spill)? { Overflow::Spill } else { Overflow::Reset };
        let values = S::Store::decode(&table, overflow, decoder)?;
        if values.overflow() != overflow {
            return Err(unsound("values that always fit, and a way to make them fit"));
        }
        let growable = flag("growable", growable)?;
        let core = Self::new(table, values, S::for_remainder(bits as u32), hasher, capacity);
        let mut core = Self { growable, adaptations, resets, ..core };
        core.choose_probe();
        Ok(core)
    }
}

impl<L: Letters> CodedValues<L> {
    pub(super) fn encode_values(&self, table: &Table, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let (mut places, mut values) = (Vec::new(), Vec::new());
        for block in self.side.blocks() {
            let flags = table.code(block) & low_mask(self.field.flags());
            let record = self.side.get(block, flags);
            places.extend([block as u64, record.slots()]);
            let letters = record.entries().map(|entry| L::from_rank(entry.number, entry.bits));
            values.extend(letters.map(L::number));
        }
        let blocks = self.side.len() as u64;
        encoder.words(&[self.adapted as u64, self.highest.into(), blocks, values.len() as u64])?;
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
        let mut store = Self::new(overflow, table);
        store.adapted = number("adapted slots", adapted)?;
        store.highest = in_range("the highest rank", highest, 0..=u16::MAX.into())?;
        store.fill_side(table, &places, &values)?;
        Ok(store)
    }

    /// Fills the side store: for every pair of a block and its slots as bits, so many of the values.
    fn fill_side(&mut self, table: &Table, places: &[u64], mut values: &[u64]) -> Result<(), FormatError> {
        let blocks = places.as_chunks::<2>().0;
        if !blocks.is_sorted_by(|[one, _], [other, _]| one < other) {
            return Err(unsound("the blocks of the side store are not in order"));
        }
        for &[block, slots] in blocks {
            in_range::<u64>("a block of the side store", block, 0..=table.blocks() as u64 - 1)?;
            in_range::<u64>("slots of the side store", slots, 1..=low_mask(table.slots_per_block()))?;
            let block = block as usize;
            if table.code(block) != self.field.of_slots(slots) {
                return Err(unsound(format!(
                    "block {block} is in the side store, but its code says otherwise"
                )));
            }
            let Some((these, rest)) = values.split_at_checked(slots.count_ones() as usize) else {
                return Err(unsound("fewer values in the side store than slots"));
            };
            self.side.set(block, table.blocks(), Some(&side_entries::<L>(slots, these)?));
            values = rest;
        }
        if values.is_empty() { Ok(()) } else { Err(unsound("more values in the side store than slots")) }
    }
}

/// The entries of these slots, which are bits, with these values.
fn side_entries<L: Letters>(slots: u64, values: &[u64]) -> Result<Vec<Entry>, FormatError> {
    let places = (0..64).filter(|slot| slots >> slot & 1 == 1);
    let entries = places.zip(values).map(|(slot, &value)| {
        let letter = L::letter(value).filter(|letter| *letter != L::Letter::default());
        let letter = letter.ok_or(FormatError::BadNumber { name: "a value of the side store", value })?;
        Ok(Entry { slot, number: L::rank(letter), bits: L::bits(letter) })
    });
    entries.collect()
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
