//! More bins while they are being filled, and what becomes of extensions there when they are twice as many.
//!
//! The first bit of a key's string becomes a bit of its fingerprint, which the table does not know; the keys do. An
//! extension gives that bit away and means the same as before, so every repair survives.

use crate::coding::Extension;
use crate::filter::out_of_memory;
use crate::homes::Filling;
use crate::{AdaptiveError, BuildError, Digest, KeyHasher};

use super::super::layout::Shape;
use super::super::line::Entry;
use super::super::table::Table;
use super::super::values::Values;
use super::{ExtendingBins, classes_with_values, string};

/// A larger table while it is being filled.
pub(crate) struct FillingBins {
    table: Table,
    values: Values,
    /// The keys of one bin with their extensions.
    group: Vec<(Entry, Extension)>,
    bin: u64,
}

impl FillingBins {
    /// An empty table for so many keys.
    pub(super) fn new(bins: u64, shape: Shape, capacity: usize) -> Result<Self, BuildError> {
        let table = Table::for_keys(bins, shape, capacity)?;
        Ok(Self { table, values: Values::new(shape.slots), group: Vec::new(), bin: 0 })
    }

    /// Fills the bin whose keys are all there, in order.
    fn store_group<E>(&mut self) -> Result<(), AdaptiveError<E>> {
        let (bin, table) = (self.bin, &mut self.table);
        if self.group.is_empty() {
            return Ok(());
        }
        let entries: Vec<Entry> = self.group.iter().map(|&(entry, _)| entry).collect();
        table.fill_bin(bin, &entries).map_err(out_of_memory)?;
        if self.group.iter().any(|(_, value)| value.len() > 0) {
            let values: Vec<Extension> = self.group.iter().map(|&(_, value)| value).collect();
            self.values.store(bin, table.bins(), &values);
            let items = table.items_of(bin);
            let classes = classes_with_values(&items, &values, |entry| table.class(entry));
            table.set_flags(bin, classes);
        }
        self.group.clear();
        Ok(())
    }

    /// Fills a bin with these items, in order, and bins in theirs. `None` if they are out of order, or there is no
    /// memory for them.
    pub(super) fn fill(&mut self, bin: u64, items: Vec<(Entry, Extension)>) -> Option<()> {
        if bin < self.bin || !items.is_sorted_by_key(|&(entry, _)| entry) {
            return None;
        }
        (self.bin, self.group) = (bin, items);
        self.store_group::<std::convert::Infallible>().ok()
    }

    /// The table, which is complete, and its extensions.
    pub(super) fn into_parts(self) -> (Table, Values) {
        (self.table, self.values)
    }
}

impl<H: KeyHasher> Filling<ExtendingBins<H>> for FillingBins {
    fn take<E>(
        &mut self,
        digest: Digest,
        item: Option<Extension>,
        filter: &ExtendingBins<H>,
    ) -> Result<(), AdaptiveError<E>> {
        let place = self.table.place(digest);
        if place.bin != self.bin {
            self.store_group()?;
            self.bin = place.bin;
        }
        let value = item.filter(|item| item.len() > 1).map_or(Extension::default(), |item| {
            let key = string(&filter.hasher, digest, self.table.bins(), self.table.shape());
            item.doubled(&key, 0)
        });
        self.group.push((self.table.entry(place), value));
        Ok(())
    }

    fn complete<E>(&mut self) -> Result<(), AdaptiveError<E>> {
        self.store_group()
    }
}
