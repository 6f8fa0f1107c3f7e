//! What the remote says is checked here: against the slot that it says it of, or against the whole table.

use std::ops::{ControlFlow, Range, RangeInclusive};

use crate::{AdaptiveError, Digest, KeyHasher, Remote, RemoteResult};

use super::AdaptiveCuckooFilter;
use super::draft::{Draft, Resident};
use super::place::CuckooPlace;
use super::variant::Variant;

impl<V: Variant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    /// Calls `visit` with the pairs of some slots, in order.
    pub(super) fn visit_slots<R: Remote>(
        &self,
        slots: Range<usize>,
        remote: &mut R,
        mut visit: impl FnMut(usize, &[u8]),
    ) -> RemoteResult<(), R> {
        let addresses = self.addresses.of(slots.start)..=self.addresses.of(slots.end - 1);
        let visited = remote.range(addresses, &mut |address, key| {
            self.addresses.slot(address).into_iter().for_each(|slot| visit(slot, key));
            ControlFlow::Continue(())
        });
        visited.map_err(AdaptiveError::Remote)
    }

    /// Reads the key of an occupied slot. The remote must have exactly one there that the filter could have put there:
    /// one of its bins, its fingerprint. Others are debris.
    pub(super) fn read_slot<T, R: Remote>(
        &self,
        slot: usize,
        remote: &mut R,
        visit: impl FnOnce(&[u8], CuckooPlace) -> T,
    ) -> RemoteResult<T, R> {
        let (mut visit, mut seen, mut found) = (Some(visit), None, 0);
        self.visit_slots(slot..slot + 1, remote, |_, key| {
            let place = self.place_of(self.hasher.digest(key));
            if self.table.holds(slot, place) {
                found += 1;
                seen = visit.take().map(|visit| visit(key, place)).or(seen.take());
            }
        })?;
        let address = self.addresses.of(slot);
        seen.filter(|_| found == 1).ok_or(AdaptiveError::Inconsistent { address, expected: 1, found })
    }

    /// Takes the key of an occupied slot into the draft. A key that the draft has from another slot cannot be this
    /// slot's too: the key that lies here would be lost if it were moved in the other's name.
    pub(super) fn read_occupant<R: Remote>(
        &self,
        slot: usize,
        draft: &mut Draft,
        remote: &mut R,
    ) -> RemoteResult<Resident, R> {
        let resident = self.read_slot(slot, remote, |key, place| draft.resident(key, place))?;
        if draft.is_elsewhere(slot, resident) {
            let address = self.addresses.of(slot);
            return Err(AdaptiveError::Inconsistent { address, expected: 1, found: 0 });
        }
        draft.set_occupant(slot, resident);
        Ok(resident)
    }

    /// The slot in which the remote has exactly this key.
    pub(super) fn find<R: Remote>(
        &self,
        key: &[u8],
        place: CuckooPlace,
        remote: &mut R,
    ) -> RemoteResult<Option<usize>, R> {
        for slot in self.table.hits(place) {
            if self.read_slot(slot, remote, |stored, _| stored == key)? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Reads everything: every occupied slot has exactly its key, and no key lies anywhere else, or in two slots.
    pub(super) fn check_all<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        // Only a key that hits a second slot can lie there as well: one in this many, as false positives are.
        let mut doubtful: Vec<(u128, usize)> = Vec::new();
        let debris = self.scan_slots(0..=u64::MAX, remote, |slot, digest| {
            if self.table.hits(self.place_of(digest)).len() > 1 {
                doubtful.push((digest.to_u128(), slot));
            }
        })?;
        if let Some(address) = debris {
            return Err(AdaptiveError::Inconsistent { address, expected: 0, found: 1 });
        }
        doubtful.sort_unstable();
        let same_digest = doubtful.chunk_by(|a, b| a.0 == b.0);
        same_digest.filter(|slots| slots.len() > 1).try_for_each(|slots| self.check_different(slots, remote))
    }

    fn check_different<R: Remote>(&self, slots: &[(u128, usize)], remote: &mut R) -> RemoteResult<(), R> {
        let mut draft = Draft::default();
        slots.iter().try_for_each(|&(_, slot)| self.read_occupant(slot, &mut draft, remote).map(drop))
    }

    /// Calls `visit` for every occupied slot, in order, with the digest of its key, and checks on the way that each has
    /// exactly one. Returns the address of the first pair in the range that belongs to no slot.
    pub(super) fn scan_slots<R: Remote>(
        &self,
        addresses: RangeInclusive<u64>,
        remote: &mut R,
        mut visit: impl FnMut(usize, Digest),
    ) -> RemoteResult<Option<u64>, R> {
        let mut walk = Walk { filter: self, next: 0 };
        let (mut debris, mut mismatch) = (None, None);
        let scanned = remote.range(addresses, &mut |address, key| {
            match walk.step(self.addresses.slot(address), key) {
                Ok(Some((slot, digest))) => visit(slot, digest),
                Ok(None) => debris = debris.or(Some(address)),
                Err(found) => {
                    mismatch = Some(found);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        scanned.map_err(AdaptiveError::Remote)?;
        match mismatch.or_else(|| walk.pass(self.table.layout().slots()).err()) {
            Some(Mismatch { slot, found }) => {
                let (address, expected) = (self.addresses.of(slot), 1);
                Err(AdaptiveError::Inconsistent { address, expected, found })
            }
            None => Ok(debris),
        }
    }
}

/// A walk along all slots, beside a scan of the remote.
struct Walk<'a, V: Variant, H: KeyHasher> {
    filter: &'a AdaptiveCuckooFilter<V, H>,
    /// All slots before this one agree with the remote.
    next: usize,
}

/// A slot of which the remote says something else than the table.
struct Mismatch {
    slot: usize,
    found: usize,
}

impl<V: Variant, H: KeyHasher> Walk<'_, V, H> {
    /// The remote has this key for this slot, and none that fits for those between the last one and this. `None` if it
    /// is debris.
    fn step(&mut self, slot: Option<usize>, key: &[u8]) -> Result<Option<(usize, Digest)>, Mismatch> {
        let (table, digest) = (&self.filter.table, self.filter.hasher.digest(key));
        let Some(slot) = slot.filter(|&slot| table.holds(slot, self.filter.place_of(digest))) else {
            return Ok(None);
        };
        if slot < self.next {
            // Named twice, or out of order, which comes to the same.
            return Err(Mismatch { slot, found: 2 });
        }
        self.pass(slot)?;
        self.next = slot + 1;
        Ok(Some((slot, digest)))
    }

    /// The remote has nothing that fits for the slots before this one.
    fn pass(&mut self, slot: usize) -> Result<(), Mismatch> {
        match (self.next..slot).find(|&slot| !self.filter.table.is_vacant(slot)) {
            Some(slot) => Err(Mismatch { slot, found: 0 }),
            None => {
                self.next = slot;
                Ok(())
            }
        }
    }
}
