//! Insertion, and what removal, repair and the way back do to a bin.

use std::collections::{BTreeMap, BTreeSet};

use crate::coding::Extension;
use crate::ground::{Agreed, insert_anywhere};
use crate::{AdaptiveError, Change, Digest, FullError, KeyHasher, Remote};

use super::super::line::Entry;
use super::super::next::Refused;
use super::super::table::Place;
use super::ExtendingBins;
use super::listed::address_of_place;

impl<H: KeyHasher> ExtendingBins<H> {
    #[inline(always)]
    pub(crate) fn insert<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        if self.table.len < self.capacity {
            let place = self.table.place(digest);
            let (addresses, class_bits) = (self.addresses, self.table.shape().class_bits);
            let mut written = Ok(());
            // The line asks before it changes, in the middle of the one look at it.
            let push = || {
                written = remote
                    .apply(&[Change::Push { address: address_of_place(addresses, place, class_bits), key }]);
                written.is_ok()
            };
            match self.table.insert_new_inlined(place, push) {
                Some(true) => return written.map(|()| true).map_err(AdaptiveError::Remote),
                Some(false) => {}
                None => return self.insert_by_pointer(place, digest, key, remote),
            }
        }
        insert_anywhere(self, digest, key, remote)
    }

    /// [`insert`](Self::insert) where no version for the processor is compiled into it. Apart from it, or the closure there
    /// would have to lie in memory.
    #[inline(never)]
    fn insert_by_pointer<R: Remote>(
        &mut self,
        place: Place,
        digest: Digest,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let (address, mut written) = (self.address_of_place(place), Ok(()));
        let mut push = || {
            written = remote.apply(&[Change::Push { address, key }]);
            written.is_ok()
        };
        if self.table.insert_new(place, &mut push) {
            return written.map(|()| true).map_err(AdaptiveError::Remote);
        }
        insert_anywhere(self, digest, key, remote)
    }

    /// Inserts a key that is not stored, where there is room.
    #[inline]
    pub(super) fn insert_new<R: Remote>(
        &mut self,
        digest: Digest,
        key: &[u8],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let place = self.table.place(digest);
        let (address, bytes) = (self.address_of_place(place), self.table.memory_bits() / 8);
        let adapted = self.table.has_flags(place.bin).then(|| self.with_new_item(place));
        let inserted = self.table.insert_for_now(place);
        let inserted = inserted.map_err(|Refused| AdaptiveError::OutOfMemory { bytes })?;
        remote.apply(&[Change::Push { address, key }]).map_err(AdaptiveError::Remote)?;
        inserted.keep();
        if let Some(values) = adapted {
            self.store(place.bin, &self.table.items_of(place.bin), &values);
        }
        Ok(())
    }

    /// The extensions of a bin after an insertion: the new item comes behind the equal ones.
    fn with_new_item(&self, place: Place) -> Vec<Extension> {
        let items = self.table.items_of(place.bin);
        let mut values = self.load(place.bin, &items);
        values.insert(items.equal(self.table.entry(place)).end, Extension::default());
        values
    }

    /// Makes the extensions of equal items, which hold these keys, longer until none of them is the query's, and says how many
    /// have changed. `None` if hash bits are equal as far as extensions go.
    pub(super) fn lengthen(
        &self,
        equal: &mut [Extension],
        stored: &[Digest],
        query: Digest,
    ) -> Option<usize> {
        let (query, mut longer) = (self.string(query), 0);
        for (value, &digest) in equal.iter_mut().zip(stored) {
            if value.begins(&query, 0) {
                *value = value.against(&query, &self.string(digest), 0)?;
                longer += 1;
            }
        }
        Some(longer)
    }

    /// Makes the items of these homes as many as there are keys for them, and gives them the extensions that these keys have had.
    /// There are not fewer than there are items.
    pub(super) fn take_in<E>(&mut self, agreed: &Agreed<Self>) -> Result<(), AdaptiveError<E>> {
        let (len, bytes) = (self.table.len, self.table.memory_bits() / 8);
        let bins: BTreeSet<u64> = agreed.keys().map(|&(bin, _)| bin).collect();
        for bin in bins {
            let items = self.table.items_of(bin);
            let mut stored: BTreeMap<Entry, Vec<Extension>> = BTreeMap::new();
            for (entry, value) in items.iter().zip(self.load(bin, &items)) {
                stored.entry(entry).or_default().push(value);
            }
            for (&(_, entry), keys) in agreed.range((bin, Entry(0))..=(bin, Entry(u32::MAX))) {
                for _ in items.equal(entry).len()..keys.len() {
                    // A filter that can grow does so at the next insertion.
                    if self.table.len >= self.capacity && !self.growable {
                        return Err(FullError { len, capacity: self.capacity }.into());
                    }
                    let inserted = self.table.insert_entry(bin, entry);
                    inserted.map_err(|Refused| AdaptiveError::OutOfMemory { bytes })?;
                }
                stored.insert(entry, keys.iter().map(|key| key.item.unwrap_or_default()).collect());
            }
            let values: Vec<Extension> = stored.into_values().flatten().collect();
            self.store(bin, &self.table.items_of(bin), &values);
        }
        Ok(())
    }
}
