//! What the remote says is checked here: against the slot that it says it of, or against the whole table.

use std::ops::ControlFlow;

use crate::{AdaptiveError, Digest, Filter, KeyHasher, Remote};

use super::AdaptiveCuckooFilter;
use super::draft::{Draft, Resident};
use super::place::CuckooPlace;
use super::variant::Variant;

impl<V: Variant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    /// Reads the key of an occupied slot. The remote must have exactly one there, and it must be one that the
    /// filter could have put there: one of its bins, its fingerprint.
    pub(super) fn read_slot<T, R: Remote>(
        &self,
        slot: usize,
        remote: &mut R,
        visit: impl FnOnce(&[u8], CuckooPlace) -> T,
    ) -> Result<T, AdaptiveError<R::Error>> {
        let (mut visit, mut seen, mut found) = (Some(visit), None, 0);
        let address = self.addresses.of(slot);
        remote
            .read(address, &mut |key| {
                let place = self.place_of(self.hasher.digest(key));
                if let Some(visit) = visit.take_if(|_| self.table.holds(slot, place)) {
                    seen = Some(visit(key, place));
                }
                found += 1;
            })
            .map_err(AdaptiveError::Remote)?;
        // A single key that does not belong here counts as none.
        let found = if found == 1 && seen.is_none() { 0 } else { found };
        seen.filter(|_| found == 1).ok_or(AdaptiveError::Inconsistent { address, expected: 1, found })
    }

    /// Takes the key of an occupied slot into the draft. A key that the draft has from another slot cannot be this
    /// slot's too: whoever lies here would be lost if it were moved in the other's name.
    pub(super) fn read_occupant<R: Remote>(
        &self,
        slot: usize,
        draft: &mut Draft,
        remote: &mut R,
    ) -> Result<Resident, AdaptiveError<R::Error>> {
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
    ) -> Result<Option<usize>, AdaptiveError<R::Error>> {
        for slot in self.table.hits(place) {
            if self.read_slot(slot, remote, |stored, _| stored == key)? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Reads everything: every occupied slot has exactly its key, and no key lies anywhere else, or in two slots.
    pub(super) fn check_all<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        // Only a key that hits a second slot can lie there as well: one in so many, as false positives are.
        let mut doubtful: Vec<(u128, usize)> = Vec::new();
        let stale = self.scan_slots(remote, |slot, digest| {
            if self.table.hits(self.place_of(digest)).len() > 1 {
                doubtful.push((digest.to_u128(), slot));
            }
        })?;
        if let Some((address, found)) = stale {
            return Err(AdaptiveError::Inconsistent { address, expected: 0, found });
        }
        doubtful.sort_unstable();
        let same_digest = doubtful.chunk_by(|a, b| a.0 == b.0);
        same_digest.filter(|slots| slots.len() > 1).try_for_each(|slots| self.check_different(slots, remote))
    }

    fn check_different<R: Remote>(
        &self,
        slots: &[(u128, usize)],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let mut draft = Draft::default();
        slots.iter().try_for_each(|&(_, slot)| self.read_occupant(slot, &mut draft, remote).map(drop))
    }

    /// Calls `visit` for every occupied slot, in order, with the digest of its key, and checks on the way that each
    /// has exactly one. Returns the first address outside the half in use that has keys, and how many.
    pub(super) fn scan_slots<R: Remote>(
        &self,
        remote: &mut R,
        mut visit: impl FnMut(usize, Digest),
    ) -> Result<Option<(u64, usize)>, AdaptiveError<R::Error>> {
        let mut walk = Walk { filter: self, next: 0 };
        let (mut stale, mut mismatch): (Option<(u64, usize)>, _) = (None, None);
        let scanned = remote.scan(&mut |address, key| {
            let Some(slot) = self.addresses.slot(address) else {
                let (first, count) = stale.get_or_insert((address, 0));
                *count += usize::from(*first == address);
                return ControlFlow::Continue(());
            };
            match walk.step(slot, key) {
                Ok(digest) => {
                    visit(slot, digest);
                    ControlFlow::Continue(())
                }
                Err(found) => {
                    mismatch = Some(found);
                    ControlFlow::Break(())
                }
            }
        });
        scanned.map_err(AdaptiveError::Remote)?;
        match mismatch.or_else(|| walk.pass(self.table.layout().slots()).err()) {
            Some(Mismatch { slot, expected, found }) => {
                let address = self.addresses.of(slot);
                Err(AdaptiveError::Inconsistent { address, expected, found })
            }
            None => Ok(stale),
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
    expected: usize,
    found: usize,
}

impl<V: Variant, H: KeyHasher> Walk<'_, V, H> {
    /// The remote has this key for this slot, and nothing for those between the last one and this.
    fn step(&mut self, slot: usize, key: &[u8]) -> Result<Digest, Mismatch> {
        let table = &self.filter.table;
        if slot < self.next {
            // Named twice, or out of order, which comes to the same: it was passed as vacant.
            let expected = usize::from(!table.is_vacant(slot));
            return Err(Mismatch { slot, expected, found: 1 + expected });
        }
        self.pass(slot)?;
        if table.is_vacant(slot) {
            return Err(Mismatch { slot, expected: 0, found: 1 });
        }
        let digest = self.filter.digest(key);
        if !table.holds(slot, self.filter.place_of(digest)) {
            return Err(Mismatch { slot, expected: 1, found: 0 });
        }
        self.next = slot + 1;
        Ok(digest)
    }

    /// The remote has nothing for the slots before this one.
    fn pass(&mut self, slot: usize) -> Result<(), Mismatch> {
        match (self.next..slot).find(|&slot| !self.filter.table.is_vacant(slot)) {
            Some(slot) => Err(Mismatch { slot, expected: 1, found: 0 }),
            None => {
                self.next = slot;
                Ok(())
            }
        }
    }
}
