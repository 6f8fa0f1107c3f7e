//! More bins while they are being filled, and what becomes of extensions there when they are twice as many.
//!
//! The first bit of a key's string becomes a bit of its fingerprint, which the table does not know; the keys do. An extension
//! gives that bit away and means the same as before, so every repair survives.

use crate::coding::Extension;
use crate::ground::{Addresses, Filling, Moved};
use crate::{AdaptiveError, BuildError, Digest, KeyHasher};

use super::super::layout::Shape;
use super::super::line::Entry;
use super::super::next::Refused;
use super::super::table::Table;
use super::super::values::Values;
use super::listed::item;
use super::{ExtendingBins, classes_with_values, string};

/// A larger table while it is being filled.
pub(crate) struct FillingBins {
    table: Table,
    values: Values,
    /// The keys of one bin with their extensions. Lists come in the order of bins.
    group: Vec<(Entry, Extension)>,
    bin: u64,
}

impl FillingBins {
    /// An empty table for so many keys.
    pub(super) fn new(bins: u64, shape: Shape, capacity: usize) -> Result<Self, BuildError> {
        let table = Table::for_keys(bins, shape, capacity)?;
        Ok(Self { table, values: Values::new(shape.slots), group: Vec::new(), bin: 0 })
    }

    /// Fills the bin whose keys are all there. Of equal items those that came first stay first.
    fn store_group<E>(&mut self) -> Result<(), AdaptiveError<E>> {
        self.group.sort_by_key(|&(entry, _)| entry);
        let (bin, bytes, table) = (self.bin, self.table.memory_bits() / 8, &mut self.table);
        for &(entry, _) in &self.group {
            let inserted = table.insert_entry(bin, entry);
            inserted.map_err(|Refused| AdaptiveError::OutOfMemory { bytes })?;
        }
        let values: Vec<Extension> = self.group.iter().map(|&(_, value)| value).collect();
        if values.iter().any(|value| value.len() > 0) {
            self.values.store(bin, table.bins(), &values);
            let items = table.items_of(bin);
            let classes = classes_with_values(&items, &values, |entry| table.class(entry));
            table.set_flags(bin, classes);
        }
        self.group.clear();
        Ok(())
    }

    /// The table, which is complete, and its extensions.
    pub(super) fn into_parts(self) -> (Table, Values) {
        (self.table, self.values)
    }
}

impl<H: KeyHasher> Filling<ExtendingBins<H>> for FillingBins {
    fn home(&self, digest: Digest) -> (u64, Entry) {
        item(&self.table, digest)
    }

    fn address(&self, (bin, entry): (u64, Entry), addresses: Addresses) -> u64 {
        addresses.of(bin << self.table.shape().class_bits | u64::from(self.table.class(entry)))
    }

    fn take<E>(
        &mut self,
        moved: &[Moved<ExtendingBins<H>>],
        filter: &ExtendingBins<H>,
    ) -> Result<(), AdaptiveError<E>> {
        for &Moved { home: (bin, entry), digest, item } in moved {
            if bin != self.bin {
                self.store_group()?;
                self.bin = bin;
            }
            let key = string(&filter.hasher, digest, self.table.bins(), self.table.shape());
            let value = item.doubled(&key, 0);
            debug_assert!(value.begins(&key, 0));
            self.group.push((entry, value));
        }
        Ok(())
    }

    fn complete<E>(&mut self, _: &ExtendingBins<H>) -> Result<(), AdaptiveError<E>> {
        self.store_group()
    }
}
