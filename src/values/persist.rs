//! Filters with values in files: the table, then what their store keeps beside it.
//!
//! ```text
//! parameters  quotients, remainder bits, blocks, growable, overflow (0 reset, 1 spill), code bits for 8 slots
//! section     repairs made, blocks reset
//! section     blocks of the table, codes included
//! coded:      adapted slots, highest rank
//!   sections  the side store: words, and these words
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
use super::side::SideStore;
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
        encoder.words(&[self.adapted as u64, self.highest.into()])?;
        self.side.encode(table.blocks(), encoder)
    }

    pub(super) fn decode_values(
        table: &Table,
        overflow: Overflow,
        decoder: &mut Decoder<'_>,
    ) -> Result<Self, FormatError> {
        let [adapted, highest] = decoder.numbers()?;
        let mut store = Self::new(overflow, table);
        store.adapted = number("adapted slots", adapted)?;
        store.highest = in_range("the highest rank", highest, 0..=u16::MAX.into())?;
        let (field, blocks) = (store.field, table.blocks());
        let flags = |block: usize| table.code(block) & low_mask(field.flags());
        store.side = SideStore::decode(decoder, *store.side.layout(), blocks, flags)?;
        for block in store.side.blocks() {
            let slots = store.side.get(block, flags(block)).slots();
            if table.code(block) != field.of_slots(slots) {
                return Err(unsound(format!(
                    "block {block} is in the side store, but its code says otherwise"
                )));
            }
        }
        Ok(store)
    }
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
