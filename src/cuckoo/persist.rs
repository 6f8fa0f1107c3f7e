//! Cuckoo filters in files: all slots as one section, and counts as another where keys lie in a remote.

use crate::KeyHasher;
use crate::bits::PackedSlots;
use crate::format::{Decoder, Encoder, FormatError, Kind, Persist, flag, in_range};

use super::builder::FINGERPRINT_BITS;
use super::filter::AdaptiveCuckooFilter;
use super::layout::CuckooLayout;
use super::plain::CuckooFilter;
use super::table::SlotTable;
use super::variant::{AdaptiveVariant, Variant};

impl<V: Variant> SlotTable<V> {
    /// The measures that [`decode`](Self::decode) takes: tables, slots of a bin, bins of a table, bits of a slot.
    fn measures(&self) -> [u64; 4] {
        let CuckooLayout { tables, bin_slots, bins, width } = *self.layout();
        [tables as u64, bin_slots as u64, bins as u64, width.into()]
    }

    /// Reads the slots of a table.
    fn decode(
        decoder: &mut Decoder<'_>,
        [tables, bin_slots, bins, width]: [u64; 4],
    ) -> Result<Self, FormatError> {
        let most_bins = CuckooLayout::MAX_BINS
            .min(usize::MAX as u64 / (CuckooLayout::MAX_TABLES * CuckooLayout::MAX_BIN) as u64);
        let narrowest = FINGERPRINT_BITS.start() + V::SELECTOR_BITS;
        let widest = FINGERPRINT_BITS.end() + V::SELECTOR_BITS;
        let layout = CuckooLayout {
            tables: in_range("tables", tables, 2..=CuckooLayout::MAX_TABLES as u64)?,
            bin_slots: in_range(
                "slots of a bin",
                bin_slots,
                V::MIN_BIN as u64..=CuckooLayout::MAX_BIN as u64,
            )?,
            bins: in_range("bins", bins, 1..=most_bins)?,
            width: in_range("slot bits", width, narrowest.into()..=widest.into())?,
        };
        let bytes = PackedSlots::bytes(layout.slots(), layout.width).unwrap_or(usize::MAX);
        let words = decoder.bytes(bytes as u64)?;
        let slots = PackedSlots::from_words(words, layout.slots(), layout.width);
        slots.verify()?;
        Ok(Self::from_slots(slots, layout))
    }
}

/// Parameters: tables, slots of a bin, bins of a table, bits of a slot.
impl<H: KeyHasher> Persist for CuckooFilter<H> {
    const KIND: Kind = Kind::Cuckoo;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        encoder.parameters(&self.table.measures());
        Ok(encoder.bytes(self.table.as_bytes())?)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let measures = decoder.parameters()?;
        let hasher = decoder.hasher()?;
        let (len, capacity) = (decoder.len()?, decoder.capacity()?);
        let table: SlotTable<_> = SlotTable::decode(decoder, measures)?;
        let _: u64 = in_range("capacity", capacity as u64, 1..=table.layout().slots() as u64)?;
        let mut filter = Self::from_parts(table, hasher, capacity);
        filter.len = len;
        Ok(filter)
    }
}

/// Parameters: tables, slots of a bin, bins of a table, bits of a slot, the number of the hash functions in use,
/// whether the second half of the addresses is, whether keys may lie at the other ones, slots whose selector is not 0.
impl<V: AdaptiveVariant, H: KeyHasher> Persist for AdaptiveCuckooFilter<V, H> {
    const KIND: Kind = V::KIND;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), FormatError> {
        let [tables, bin_slots, bins, width] = self.table.measures();
        let (second, selected) = (self.addresses.is_second(), self.table.selected() as u64);
        let state = [self.epoch, second.into(), self.littered.into(), selected];
        encoder.parameters(&[[tables, bin_slots, bins, width], state].concat());
        encoder.words(&[self.adaptations, self.resets, self.rebuilds])?;
        Ok(encoder.bytes(self.table.as_bytes())?)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, FormatError> {
        let [tables, bin_slots, bins, width, epoch, second, littered, selected] = decoder.parameters()?;
        let hasher = decoder.hasher()?;
        let (len, capacity) = (decoder.len()?, decoder.capacity()?);
        let [adaptations, resets, rebuilds] = decoder.counts(["repairs", "resets", "rebuilds"])?;
        let mut table: SlotTable<V> = SlotTable::decode(decoder, [tables, bin_slots, bins, width])?;
        let slots = table.layout().slots() as u64;
        in_range::<u64>("capacity", capacity as u64, 1..=slots)?;
        table.set_selected(in_range("selectors in use", selected, 0..=slots)?);
        let mut filter = Self::from_parts(table, hasher, capacity);
        if flag("the half of the addresses", second)? {
            filter.addresses = filter.addresses.other();
        }
        filter.epoch = in_range("hash functions", epoch, 0..=MAX_EPOCH)?;
        filter.littered = flag("keys left over", littered)?;
        (filter.len, filter.adaptations, filter.resets, filter.rebuilds) =
            (len, adaptations, resets, rebuilds);
        Ok(filter)
    }
}

/// More than any filter comes to, and few enough that no sum overflows.
const MAX_EPOCH: u64 = 1 << 56;
