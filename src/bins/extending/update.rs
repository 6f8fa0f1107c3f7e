//! Insertion, and what a repair does to extensions.

use crate::coding::Extension;
use crate::homes::{insert_anywhere, insert_new, tell};
use crate::{AdaptiveError, Change, Digest, KeyHasher, Remote};

use super::super::next::Refused;
use super::super::table::Place;
use super::ExtendingBins;

impl<H: KeyHasher> ExtendingBins<H> {
    #[inline(always)]
    pub(crate) fn insert<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        let place = self.table.place(digest);
        if self.table.len < self.capacity {
            let mut written = Ok(());
            // The line asks before it changes, in the middle of the one look at it.
            let push = || {
                written = remote.apply(&[Change::Insert { address: digest.hi, key }]);
                written.is_ok()
            };
            match self.table.insert_new_inlined(place, push) {
                Some(true) => return written.map(|()| true).map_err(AdaptiveError::Remote),
                Some(false) => {}
                None => return self.insert_by_pointer(place, digest.hi, key, remote),
            }
        }
        self.insert_beyond(place, digest.hi, key, remote)
    }

    /// [`insert`](Self::insert) where one look at the line does not suffice. Most of these lines are full and nothing
    /// else. For the others the key is hashed once more: so the half of its digest that others do not need is computed
    /// here alone.
    #[inline(never)]
    fn insert_beyond<R: Remote>(
        &mut self,
        place: Place,
        address: u64,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        if self.table.len < self.capacity {
            let mut written = Ok(());
            let mut push = || {
                written = remote.apply(&[Change::Insert { address, key }]);
                written.is_ok()
            };
            if self.table.insert_new_full(place, &mut push) {
                return written.map(|()| true).map_err(AdaptiveError::Remote);
            }
        }
        insert_anywhere(self, self.hasher.digest(key), key, remote)
    }

    /// [`insert`](Self::insert) where no version for the processor is compiled into it. Apart from it, or the closure
    /// there would have to lie in memory.
    #[inline(never)]
    fn insert_by_pointer<R: Remote>(
        &mut self,
        place: Place,
        address: u64,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let mut written = Ok(());
        let mut push = || {
            written = remote.apply(&[Change::Insert { address, key }]);
            written.is_ok()
        };
        if self.table.insert_new(place, &mut push) {
            return written.map(|()| true).map_err(AdaptiveError::Remote);
        }
        self.insert_beyond(place, address, key, remote)
    }

    pub(crate) fn insert_new<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        insert_new(self, digest, key, remote)
    }

    /// Inserts an item without an extension, where there is room.
    #[inline]
    pub(super) fn insert_bare<R: Remote>(
        &mut self,
        digest: Digest,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let place = self.table.place(digest);
        let bytes = self.table.memory_bits() / 8;
        let adapted = self.table.has_flags(place.bin).then(|| self.with_new_item(place));
        let inserted = self.table.insert_for_now(place);
        let inserted = inserted.map_err(|Refused| AdaptiveError::OutOfMemory { bytes })?;
        tell(changes, remote)?;
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

    /// Makes the extensions of equal items, which hold these keys, longer until none of them is the query's, and says
    /// how many have changed. `None` if hash bits are equal as far as extensions go.
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
}
