//! New hash functions for all keys: what is done when no chain of kicks leads to an empty slot.
//!
//! The keys' bytes stay in the remote. Their digests are enough to find a slot for each; then the keys are copied
//! slot by slot to the other half of the [addresses](super::address), in groups, the filter changes over, and the
//! old pairs are removed.

use std::convert::Infallible;

use crate::filter::{Grouped, clear_range};
use crate::{AdaptiveError, Change, Digest, KeyHasher, Remote, RemoteResult};

use super::AdaptiveCuckooFilter;
use super::address::Addresses;
use super::place::CuckooPlace;
use super::search::{BUDGET, Search, World};
use super::table::SlotTable;
use super::variant::Variant;

/// How often other hash functions are tried. Up to the highest load that a builder grants, one try succeeds
/// with probability 0.7 at least, but for tables of a few slots.
const TRIES: u64 = 32;

impl<V: Variant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    /// Places all keys by new hash functions, so that none collides with `avoid` and one of the slots of `newcomer`
    /// stays empty. `false`, and nothing has changed, if they found no place in [`TRIES`] tries.
    ///
    /// After an error all keys are stored as before it, by the old hash functions or the new ones. Copies that were
    /// left over in the remote are [swept](Self::sweep) later.
    pub(super) fn rehash<R: Remote>(
        &mut self,
        newcomer: Option<Digest>,
        avoid: Option<Digest>,
        remote: &mut R,
    ) -> RemoteResult<bool, R> {
        remote.begin_groups().map_err(AdaptiveError::Remote)?;
        if self.littered {
            self.sweep(remote)?;
        }
        let digests = self.digests(newcomer, remote)?;
        for epoch in self.epoch + 1..=self.epoch + TRIES {
            let hash = |digest| place_in_epoch(&self.hasher, digest, epoch);
            let Some(owners) = seat(&self.table, &digests, &hash, avoid.map(hash))? else { continue };
            let seats = seats_of(&owners, digests.len())?;
            drop(owners);
            self.move_keys(epoch, &digests[..self.len], &seats, remote)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The digests of all keys in the order of their slots, and that of the newcomer behind them.
    fn digests<R: Remote>(&self, newcomer: Option<Digest>, remote: &mut R) -> RemoteResult<Vec<Digest>, R> {
        let mut digests = with_room_for(self.len + usize::from(newcomer.is_some()))?;
        self.scan_slots(self.addresses.all(), remote, |_, digest| digests.push(digest))?;
        digests.extend(newcomer);
        Ok(digests)
    }

    /// Copies all keys to where they are to lie, changes over, and removes the old pairs.
    fn move_keys<R: Remote>(
        &mut self,
        epoch: u64,
        digests: &[Digest],
        seats: &[usize],
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let mut table = empty_like(&self.table)?;
        for (&digest, &slot) in digests.iter().zip(seats) {
            table.put(slot, place_in_epoch(&self.hasher, digest, epoch), 0);
        }
        let to = self.addresses.other();
        self.littered = true;
        if let Err(error) = self.copy_keys(to, digests, seats, remote) {
            // Why it failed is what the caller must know; what cannot be swept now is swept later.
            let _ = self.sweep(remote);
            return Err(error);
        }
        (self.table, self.epoch, self.addresses) = (table, epoch, to);
        self.rebuilds += 1;
        self.resets += 1;
        self.sweep(remote)
    }

    /// Inserts every key at the address of its new slot. Holds a group of keys at a time.
    fn copy_keys<R: Remote>(
        &self,
        to: Addresses,
        digests: &[Digest],
        seats: &[usize],
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let mut remote = Grouped::new(remote);
        let occupied = (0..self.table.layout().slots()).filter(|&slot| !self.table.is_vacant(slot));
        for ((slot, &digest), &seat) in occupied.zip(digests).zip(seats) {
            let key: Box<[u8]> = self.read_slot(slot, &mut remote, |key, _| key.into())?;
            if self.hasher.digest(&key) != digest {
                // Not the key that the scan had here.
                let address = self.addresses.of(slot);
                return Err(AdaptiveError::Inconsistent { address, expected: 1, found: 0 });
            }
            let copy = Change::Insert { address: to.of(seat), key: &key };
            remote.apply(&[copy]).map_err(AdaptiveError::Remote)?;
        }
        remote.flush().map_err(AdaptiveError::Remote)
    }

    /// Removes everything outside the half of the addresses in use: copies of keys that a rehash has left there. All
    /// that the filter holds lies in the half in use, so nothing is lost.
    pub(super) fn sweep<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        for range in self.addresses.elsewhere() {
            clear_range(range, remote)?;
        }
        self.littered = false;
        Ok(())
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

fn with_room_for<T, E>(count: usize) -> Result<Vec<T>, AdaptiveError<E>> {
    let mut items = Vec::new();
    let bytes = count.saturating_mul(size_of::<T>());
    items.try_reserve_exact(count).map_err(|_| AdaptiveError::OutOfMemory { bytes })?;
    Ok(items)
}

/// The keys by number, being placed in an empty table.
struct Seating<'a, V, F> {
    table: &'a SlotTable<V>,
    digests: &'a [Digest],
    /// The hash function that is tried.
    hash: &'a F,
    /// Who lies in each slot, 0 for nobody, else the key's number plus 1.
    owners: Vec<usize>,
    /// A key that no stored key may collide with.
    avoid: Option<CuckooPlace>,
}

impl<V: Variant, F: Fn(Digest) -> CuckooPlace> World for Seating<'_, V, F> {
    type Item = usize;
    type Error = Infallible;

    fn is_vacant(&self, slot: usize) -> bool {
        self.owners[slot] == 0
    }

    fn item(&mut self, slot: usize) -> Result<usize, Infallible> {
        Ok(self.owners[slot] - 1)
    }

    fn first_slot(&self, item: usize, table: usize) -> usize {
        self.table.first_slot((self.hash)(self.digests[item]), table)
    }

    fn is_welcome(&self, item: usize, slot: usize) -> bool {
        let place = || (self.hash)(self.digests[item]);
        self.avoid.is_none_or(|avoid| !self.table.would_collide(place(), avoid, slot))
    }
}

/// Finds a slot for every key. `None` if some key found none.
fn seat<V: Variant, E>(
    table: &SlotTable<V>,
    digests: &[Digest],
    hash: &impl Fn(Digest) -> CuckooPlace,
    avoid: Option<CuckooPlace>,
) -> Result<Option<Vec<usize>>, AdaptiveError<E>> {
    let layout = table.layout();
    let mut owners = with_room_for(layout.slots())?;
    owners.resize(layout.slots(), 0);
    let mut seating = Seating { table, digests, hash, owners, avoid };
    let mut search = Search::new();
    for number in 0..digests.len() {
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

/// The slot of every key, by its number.
fn seats_of<E>(owners: &[usize], keys: usize) -> Result<Vec<usize>, AdaptiveError<E>> {
    let mut seats = with_room_for(keys)?;
    seats.resize(keys, 0);
    for (slot, owner) in owners.iter().enumerate() {
        if let Some(number) = owner.checked_sub(1) {
            seats[number] = slot;
        }
    }
    Ok(seats)
}
