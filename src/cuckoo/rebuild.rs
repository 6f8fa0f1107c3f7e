//! New hash functions for all keys: what is done when no chain of kicks leads to an empty slot.

use std::convert::Infallible;

use crate::{AdaptiveError, Change, Digest, KeyHasher, Remote};

use super::AdaptiveCuckooFilter;
use super::layout::CuckooLayout;
use super::place::CuckooPlace;
use super::search::{BUDGET, Search, World};
use super::table::SlotTable;
use super::variant::Variant;

/// How often other hash functions are tried. Up to the highest load that a builder grants, one try succeeds
/// with probability 0.7 at least, but for tables of a few slots.
const TRIES: u64 = 32;

/// All keys of a filter, read from its remote.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    /// Where each key ends; it begins where the one before it ends.
    ends: Vec<usize>,
    digests: Vec<Digest>,
}

impl Keys {
    fn push<H: KeyHasher>(&mut self, key: &[u8], hasher: &H) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.digests.push(hasher.digest(key));
    }

    fn key(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }
}

/// The keys by number, being placed in an empty table.
struct Seating<'a, V> {
    table: &'a SlotTable<V>,
    places: &'a [CuckooPlace],
    /// Who lies in each slot, 0 for nobody, else the key's number plus 1.
    owners: Vec<usize>,
    /// A key that no stored key may collide with.
    avoid: Option<CuckooPlace>,
}

impl<V: Variant> World for Seating<'_, V> {
    type Item = usize;
    type Error = Infallible;

    fn is_vacant(&self, slot: usize) -> bool {
        self.owners[slot] == 0
    }

    fn item(&mut self, slot: usize) -> Result<usize, Infallible> {
        Ok(self.owners[slot] - 1)
    }

    fn first_slot(&self, item: usize, table: usize) -> usize {
        self.table.first_slot(self.places[item], table)
    }

    fn is_welcome(&self, item: usize, slot: usize) -> bool {
        self.avoid.is_none_or(|avoid| !self.table.would_collide(self.places[item], avoid, slot))
    }
}

impl<V: Variant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    /// Places all keys, and `newcomer` with them, by new hash functions, so that none collides with `avoid`.
    ///
    /// `false`, and nothing has changed, if they found no place in [`TRIES`] tries.
    pub(super) fn rehash_all<R: Remote>(
        &mut self,
        newcomer: Option<&[u8]>,
        avoid: Option<Digest>,
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let keys = self.all_keys(newcomer, remote)?;
        for epoch in self.epoch + 1..=self.epoch + TRIES {
            let places: Vec<CuckooPlace> =
                keys.digests.iter().map(|&digest| place_in_epoch(&self.hasher, digest, epoch)).collect();
            let avoid = avoid.map(|digest| place_in_epoch(&self.hasher, digest, epoch));
            let Some(owners) = seat(&self.table, &places, avoid)? else { continue };
            let table = self.retable(&owners, &places)?;
            let pushes = owners.iter().enumerate().filter_map(|(slot, owner)| {
                let key = keys.key(owner.checked_sub(1)?);
                Some(Change::Push { address: slot as u64, key })
            });
            let changes: Vec<Change<'_>> = std::iter::once(Change::Clear).chain(pushes).collect();
            remote.apply(&changes).map_err(AdaptiveError::Remote)?;
            self.table = table;
            self.epoch = epoch;
            self.rebuilds += 1;
            return Ok(true);
        }
        Ok(false)
    }

    fn all_keys<R: Remote>(
        &self,
        newcomer: Option<&[u8]>,
        remote: &mut R,
    ) -> Result<Keys, AdaptiveError<R::Error>> {
        let mut keys = Keys::default();
        let count = self.len + usize::from(newcomer.is_some());
        let bytes = count * (size_of::<usize>() + size_of::<Digest>());
        let reserved =
            keys.ends.try_reserve_exact(count).and_then(|()| keys.digests.try_reserve_exact(count));
        reserved.map_err(|_| AdaptiveError::OutOfMemory { bytes })?;
        for slot in (0..self.table.layout().slots()).filter(|&slot| !self.table.is_vacant(slot)) {
            self.read_slot(slot, remote, |key, _| keys.push(key, &self.hasher))?;
        }
        if let Some(key) = newcomer {
            keys.push(key, &self.hasher);
        }
        Ok(keys)
    }

    /// A table with every key in the slot that it owns.
    fn retable<E>(&self, owners: &[usize], places: &[CuckooPlace]) -> Result<SlotTable<V>, AdaptiveError<E>> {
        let mut table = empty_like(&self.table)?;
        for (slot, owner) in owners.iter().enumerate() {
            if let Some(number) = owner.checked_sub(1) {
                table.put(slot, places[number], 0);
            }
        }
        Ok(table)
    }
}

/// The place of a key under hash function number `epoch`. The digest itself is number 0.
#[inline]
pub(super) fn place_in_epoch<H: KeyHasher>(hasher: &H, digest: Digest, epoch: u64) -> CuckooPlace {
    CuckooPlace::new(if epoch == 0 { digest } else { hasher.rehash(digest, epoch) })
}

fn empty_like<V: Variant, E>(table: &SlotTable<V>) -> Result<SlotTable<V>, AdaptiveError<E>> {
    SlotTable::new(*table.layout()).map_err(|_| AdaptiveError::OutOfMemory { bytes: table.memory() })
}

/// Finds a slot for every place. `None` if some key found none.
fn seat<V: Variant, E>(
    table: &SlotTable<V>,
    places: &[CuckooPlace],
    avoid: Option<CuckooPlace>,
) -> Result<Option<Vec<usize>>, AdaptiveError<E>> {
    let layout: &CuckooLayout = table.layout();
    let mut owners: Vec<usize> = Vec::new();
    let bytes = layout.slots() * size_of::<usize>();
    owners.try_reserve_exact(layout.slots()).map_err(|_| AdaptiveError::OutOfMemory { bytes })?;
    owners.resize(layout.slots(), 0);
    let mut seating = Seating { table, places, owners, avoid };
    let mut search = Search::new();
    for number in 0..places.len() {
        let Ok(found) = search.run(&mut seating, layout, number, 0..layout.tables, BUDGET);
        if !found {
            return Ok(None);
        }
        for step in search.moves() {
            seating.owners[step.slot] = step.item + 1;
        }
    }
    Ok(Some(seating.owners))
}
