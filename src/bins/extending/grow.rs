//! Growth: twice the bins, filled again from the keys of the remote.
//!
//! The first bit of a key's string becomes a bit of its fingerprint, which the table does not know; the keys do. An extension
//! gives that bit away and means the same as before, so every repair survives. As on quotient tables, lists stay where
//! they are, and every fourth doubling writes them anew: to lists of the next generation, a few hundred keys in a group, then
//! the filter changes over, then the old lists are removed. A failure before that leaves filter and old lists as they were,
//! and keys in lists that nobody uses, which do no harm and are removed by the next renewal.

use crate::coding::Extension;
use crate::filter::out_of_memory;
use crate::values::{Group, List, MAX_KEPT, sweep};
use crate::{AdaptiveError, Digest, FullError, KeyHasher, Remote};

use super::super::line::Entry;
use super::super::next::Refused;
use super::super::table::Table;
use super::super::values::Values;
use super::list::{Addresses, Stale};
use super::{Begins, ExtendingBins, classes_with_values, string};

/// A filter of twice the size while it is being filled.
struct Doubling<'f, H> {
    filter: &'f ExtendingBins<H>,
    table: Table,
    values: Values,
    /// The keys of the old bins from `first` on that share their lists, with their new bins and their extensions.
    group: Vec<(u64, Entry, Extension)>,
    first: u64,
}

impl<H: KeyHasher> ExtendingBins<H> {
    /// Doubles bins and capacity; on an error the filter is as it was.
    pub(crate) fn grow<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        let full = FullError { len: self.table.len, capacity: self.capacity };
        if self.table.bins() > Table::MAX_BINS / 2 {
            return Err(full.into());
        }
        let capacity = self.capacity.checked_mul(2).ok_or(full)?;
        if self.addresses.kept < MAX_KEPT {
            let mut doubling = Doubling::new(self, capacity)?;
            self.scan(remote, Stale::Skipped, &mut |list| doubling.take(list))?;
            let doubled = doubling.finish()?;
            self.become_doubled(doubled, self.addresses.doubled(), capacity);
            return Ok(());
        }
        self.grow_and_renew(capacity, remote)
    }

    fn become_doubled(&mut self, (table, values): (Table, Values), addresses: Addresses, capacity: usize) {
        (self.table, self.values) = (table, values);
        (self.addresses, self.capacity) = (addresses, capacity);
    }

    /// [`grow`](Self::grow) with lists under new addresses.
    fn grow_and_renew<R: Remote>(
        &mut self,
        capacity: usize,
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        self.sweep(remote)?;
        let (addresses, class_bits) = (self.addresses.renewed(), self.table.shape().class_bits);
        let (mut doubling, mut group) = (Doubling::new(self, capacity)?, Group::default());
        for address in self.expected_addresses() {
            let list = List::read(address, &self.hasher, remote)?;
            self.check_list(&list)?;
            doubling.take(&list)?;
            for (key, &digest) in list.keys.iter().zip(&list.digests) {
                let (bin, entry) = doubling.item(digest);
                group.push(addresses.of(bin, self.table.class(entry), class_bits), key, remote)?;
            }
        }
        group.finish(remote)?;
        let doubled = doubling.finish()?;
        self.become_doubled(doubled, addresses, capacity);
        // The filter has grown, whatever comes of this. What cannot be removed now is when lists are renewed again.
        let _ = self.sweep(remote);
        Ok(())
    }

    /// Removes all lists of other generations.
    fn sweep<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        // In portions of a few bits per key, so that neither memory nor the number of scans gets large.
        let stale = |address| self.addresses.is_stale(address);
        sweep(&stale, self.capacity / 16, &self.hasher, remote)
    }
}

impl<'f, H: KeyHasher> Doubling<'f, H> {
    /// An empty table of twice the bins, for so many keys.
    fn new<E>(filter: &'f ExtendingBins<H>, capacity: usize) -> Result<Self, AdaptiveError<E>> {
        let (bins, shape) = (2 * filter.table.bins(), filter.table.shape());
        let table = Table::for_keys(bins, shape, capacity).map_err(out_of_memory)?;
        Ok(Self { filter, table, values: Values::new(shape.slots), group: Vec::new(), first: 0 })
    }

    /// The new bin of a key, and its class and tag.
    fn item(&self, digest: Digest) -> (u64, Entry) {
        let place = self.table.place(digest);
        (place.bin, self.table.entry(place))
    }

    /// Takes the keys of a list, which was checked. Lists come in the order of their addresses.
    fn take<E>(&mut self, list: &List) -> Result<(), AdaptiveError<E>> {
        let filter = self.filter;
        let (bins, class) = filter.runs_at(list.address);
        if bins.start != self.first {
            self.store_group()?;
            self.first = bins.start;
        }
        let mut members = filter.members(list).into_iter();
        for bin in bins {
            let ranks = filter.table.items_of(bin).of_class(class, filter.table.shape().tag_bits());
            for (rank, member) in ranks.zip(&mut members) {
                let digest = list.digests[member.rank];
                let value = self.shortened(filter.values.get(bin, rank), digest);
                let (bin, entry) = self.item(digest);
                self.group.push((bin, entry, value));
            }
        }
        Ok(())
    }

    /// An extension without the bit that the fingerprint has taken.
    fn shortened(&self, value: Extension, digest: Digest) -> Extension {
        let len = value.len().saturating_sub(1);
        let key = string(&self.filter.hasher, digest, self.table.bins(), self.table.shape());
        let value = Extension::new(key.bits(0, len), len);
        debug_assert!(value.begins(&key));
        value
    }

    /// Fills the bins whose keys are all there. Of equal items those that came first stay first.
    fn store_group<E>(&mut self) -> Result<(), AdaptiveError<E>> {
        self.group.sort_by_key(|&(bin, entry, _)| (bin, entry));
        let (table, bytes) = (&mut self.table, self.filter.table.memory_bits() / 4);
        for of_bin in self.group.chunk_by(|one, other| one.0 == other.0) {
            let bin = of_bin[0].0;
            for &(_, entry, _) in of_bin {
                let inserted = table.insert_entry(bin, entry);
                inserted.map_err(|Refused| AdaptiveError::OutOfMemory { bytes })?;
            }
            let values: Vec<Extension> = of_bin.iter().map(|&(_, _, value)| value).collect();
            if values.iter().any(|value| value.len() > 0) {
                self.values.store(bin, table.bins(), &values);
                let items = table.items_of(bin);
                let classes = classes_with_values(&items, &values, |entry| table.class(entry));
                table.set_flags(bin, classes);
            }
        }
        self.group.clear();
        Ok(())
    }

    fn finish<E>(mut self) -> Result<(Table, Values), AdaptiveError<E>> {
        self.store_group()?;
        Ok((self.table, self.values))
    }
}
