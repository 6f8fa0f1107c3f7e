//! Insertion, removal and repair: first the remote, then the filter, and an error or a panic leaves the filter as it was.

use crate::coding::Extension;
use crate::values::List;
use crate::{Adaptation, AdaptiveError, Change, Digest, FullError, KeyHasher, Remote};

use super::super::flagged::Items;
use super::super::next::Refused;
use super::super::table::Place;
use super::{Begins, ExtendingBins};

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
                written =
                    remote.apply(&[Change::Push { address: addresses.of_place(place, class_bits), key }]);
                written.is_ok()
            };
            match self.table.insert_new_inlined(place, push) {
                Some(true) => return written.map(|()| true).map_err(AdaptiveError::Remote),
                Some(false) => {}
                None => return self.insert_by_pointer(place, digest, key, remote),
            }
        }
        self.insert_anywhere(digest, key, remote)
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
        let (address, mut written) = (self.address(place), Ok(()));
        let mut push = || {
            written = remote.apply(&[Change::Push { address, key }]);
            written.is_ok()
        };
        if self.table.insert_new(place, &mut push) {
            return written.map(|()| true).map_err(AdaptiveError::Remote);
        }
        self.insert_anywhere(digest, key, remote)
    }

    /// [`insert`](Self::insert) for the keys that their line alone does not suffice for.
    #[inline(never)]
    fn insert_anywhere<R: Remote>(
        &mut self,
        digest: Digest,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        if self.contains_digest(digest) {
            let list = List::read(self.address(self.table.place(digest)), &self.hasher, remote)?;
            // A remote that stores nothing at all may be inserted into: one key more is never one too few.
            if list.keys.len() > 0 {
                self.check_list(&list)?;
            }
            if list.rank(key).is_some() {
                return Ok(false);
            }
        }
        if self.table.len >= self.capacity {
            if !self.growable {
                return Err(FullError { len: self.table.len, capacity: self.capacity }.into());
            }
            self.grow(remote)?;
        }
        let place = self.table.place(digest);
        let (address, bytes) = (self.address(place), self.table.memory_bits() / 8);
        let adapted = self.table.has_flags(place.bin).then(|| self.with_new_item(place));
        let inserted = self.table.insert_for_now(place);
        let inserted = inserted.map_err(|Refused| AdaptiveError::OutOfMemory { bytes })?;
        remote.apply(&[Change::Push { address, key }]).map_err(AdaptiveError::Remote)?;
        inserted.keep();
        if let Some(values) = adapted {
            self.store(place.bin, &self.table.items_of(place.bin), &values);
        }
        Ok(true)
    }

    /// The extensions of a bin after an insertion: the new item comes behind the equal ones.
    fn with_new_item(&self, place: Place) -> Vec<Extension> {
        let items = self.table.items_of(place.bin);
        let mut values = self.load(place.bin, &items);
        values.insert(items.equal(self.table.entry(place)).end, Extension::default());
        values
    }

    pub(crate) fn remove<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        if !self.contains_digest(digest) {
            return Ok(false);
        }
        let place = self.table.place(digest);
        let list = self.read(place, remote)?;
        let Some(rank) = list.rank(key) else { return Ok(false) };
        let adapted = self.table.has_flags(place.bin).then(|| {
            let items = self.table.items_of(place.bin);
            let before = self.stored_at(place, &list).iter().filter(|&&other| other < rank).count();
            let mut values = self.load(place.bin, &items);
            values.remove(items.equal(self.table.entry(place)).start + before);
            values
        });
        let change = Change::Remove { address: list.address, rank, key };
        remote.apply(&[change]).map_err(AdaptiveError::Remote)?;
        self.table.remove(place);
        if let Some(values) = adapted {
            self.store(place.bin, &self.table.items_of(place.bin), &values);
        }
        Ok(true)
    }

    /// The ranks in the list of the keys with the fingerprint of this place, in order.
    fn stored_at(&self, place: Place, list: &List) -> Vec<usize> {
        let item = (place.bin, self.table.entry(place));
        let members = self.members(list).into_iter().filter(|member| (member.bin, member.entry) == item);
        members.map(|member| member.rank).collect()
    }

    pub(crate) fn adapt<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        if !self.contains_digest(digest) {
            return Ok(Adaptation::NotFalsePositive);
        }
        let place = self.table.place(digest);
        let list = self.read(place, remote)?;
        if list.rank(key).is_some() {
            return Ok(Adaptation::NotFalsePositive);
        }
        let items = self.table.items_of(place.bin);
        let Some((values, slots)) = self.repaired(place, &items, &list, digest) else {
            return Ok(Adaptation::Unfixable);
        };
        self.store(place.bin, &items, &values);
        self.adaptations += 1;
        Ok(Adaptation::Fixed { slots })
    }

    /// The extensions of a bin with which no item accepts the query any more, and how many of them are others. `None` if hash
    /// bits are equal as far as extensions go.
    fn repaired(
        &self,
        place: Place,
        items: &Items,
        list: &List,
        query: Digest,
    ) -> Option<(Vec<Extension>, usize)> {
        let (query, mut longer) = (self.string(query), 0);
        let mut values = self.load(place.bin, items);
        let equal = &mut values[items.equal(self.table.entry(place))];
        for (value, rank) in equal.iter_mut().zip(self.stored_at(place, list)) {
            if value.begins(&query) {
                let stored = self.string(list.digests[rank]);
                let (start, end) = (value.len().into(), Extension::MAX_LEN.into());
                let len = stored.first_difference(&query, start, end)? as u32 + 1;
                *value = Extension::new(stored.bits(0, len), len);
                longer += 1;
            }
        }
        Some((values, longer))
    }
}
