//! Insertion, removal and the frame of a repair. Each plans first, then has the remote make one group of changes,
//! and changes the table after that.

use crate::{Adaptation, AdaptiveError, Change, Digest, FullError, KeyHasher, Remote, RemoteResult};

use super::AdaptiveCuckooFilter;
use super::draft::{Draft, Resident};
use super::filter::Scratch;
use super::place::CuckooPlace;
use super::repair::{Outcome, Repair};
use super::search::World;
use super::variant::{AdaptiveVariant, Variant};

impl<V: Variant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    pub(super) fn insert_key<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        let place = self.place_of(self.hasher.digest(key));
        if self.table.look(place).hit && self.find(key, place, remote)?.is_some() {
            return Ok(false);
        }
        self.insert_new_key(key, remote)?;
        Ok(true)
    }

    /// Inserts a key that is not stored.
    pub(super) fn insert_new_key<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<(), R> {
        if self.len >= self.capacity {
            return Err(self.full().into());
        }
        let place = self.place_of(self.hasher.digest(key));
        if let Some(slot) = self.table.look(place).vacancy {
            self.insert_into(slot, key, place, remote)?;
        } else {
            self.insert_by_chain(key, place, remote)?;
        }
        self.len += 1;
        Ok(())
    }

    /// Inserts a key into an empty slot of its own.
    #[inline(always)]
    fn insert_into<R: Remote>(
        &mut self,
        slot: usize,
        key: &[u8],
        place: CuckooPlace,
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let insertion = [Change::Insert { address: self.addresses.of(slot), key }];
        remote.apply(&insertion).map_err(AdaptiveError::Remote)?;
        self.table.put(slot, place, 0);
        Ok(())
    }

    /// Makes room for a key whose slots are all taken.
    ///
    /// A panic of the remote loses the scratch memory, and nothing else.
    #[inline(never)]
    fn insert_by_chain<R: Remote>(
        &mut self,
        key: &[u8],
        place: CuckooPlace,
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let mut scratch = std::mem::replace(&mut self.scratch, Scratch::new());
        let result = self.insert_by_chain_with(&mut scratch, key, place, remote);
        scratch.trim();
        self.scratch = scratch;
        result
    }

    fn insert_by_chain_with<R: Remote>(
        &mut self,
        scratch: &mut Scratch,
        key: &[u8],
        place: CuckooPlace,
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let newcomer = scratch.draft.resident(key, place);
        if self.plan_chain(newcomer, 0..self.table.layout().tables, None, scratch, remote)? {
            return scratch.draft.commit(&mut self.table, self.addresses, remote);
        }
        let digest = self.hasher.digest(key);
        if !self.rehash(Some(digest), None, remote)? {
            return Err(self.full().into());
        }
        // One of its slots was kept free, so that the key itself goes to the remote in a group of its own, as always.
        let place = self.place_of(digest);
        let slot = self.table.look(place).vacancy.ok_or_else(|| self.full())?;
        self.insert_into(slot, key, place, remote)
    }

    /// Plans the moves that get `newcomer` into one of its bins in `tables`. `false`, and no plan, if no chain
    /// was found. No moved key is going to collide with `avoid`.
    pub(super) fn plan_chain<R: Remote>(
        &self,
        newcomer: Resident,
        tables: impl Iterator<Item = usize>,
        avoid: Option<CuckooPlace>,
        scratch: &mut Scratch,
        remote: &mut R,
    ) -> RemoteResult<bool, R> {
        let Scratch { draft, search } = scratch;
        let mut live = Live { filter: self, draft, remote, avoid };
        let found = search.run(&mut live, self.table.layout(), newcomer, tables, self.budget)?;
        if found {
            search.moves().for_each(|step| draft.put(step.slot, Some(step.item)));
        }
        Ok(found)
    }

    pub(super) fn remove_key<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        let place = self.place_of(self.hasher.digest(key));
        let Some(slot) = self.find(key, place, remote)? else { return Ok(false) };
        let change = [Change::Remove { address: self.addresses.of(slot), key }];
        remote.apply(&change).map_err(AdaptiveError::Remote)?;
        self.table.erase(slot);
        self.len -= 1;
        Ok(true)
    }

    pub(super) fn full(&self) -> FullError {
        FullError { len: self.len, capacity: self.capacity }
    }
}

impl<V: AdaptiveVariant, H: KeyHasher> AdaptiveCuckooFilter<V, H> {
    pub(super) fn adapt_key<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R> {
        let digest = self.hasher.digest(key);
        let query = self.place_of(digest);
        let mut scratch = Scratch::new();
        let mut collisions = Vec::new();
        for slot in self.table.hits(query) {
            let resident = self.read_occupant(slot, &mut scratch.draft, remote)?;
            if scratch.draft.key(resident) == key {
                return Ok(Adaptation::NotFalsePositive);
            }
            collisions.push((slot, resident));
        }
        if collisions.is_empty() {
            return Ok(Adaptation::NotFalsePositive);
        }
        if collisions.iter().any(|(_, resident)| resident.place == query) {
            return Ok(Adaptation::Unfixable);
        }
        let repair = Repair { filter: self, query, collisions: &collisions };
        let outcome = repair.plan(&mut scratch, remote)?;
        self.carry_out(outcome, &scratch.draft, digest, remote)
    }

    fn carry_out<R: Remote>(
        &mut self,
        outcome: Outcome,
        draft: &Draft,
        query: Digest,
        remote: &mut R,
    ) -> RemoteResult<Adaptation, R> {
        let adaptation = match outcome {
            Outcome::Fixed => {
                draft.commit(&mut self.table, self.addresses, remote)?;
                Adaptation::Fixed { slots: draft.len() }
            }
            Outcome::Rebuild if self.rehash(None, Some(query), remote)? => {
                Adaptation::FixedAfterReset { slots: self.len, resets: 1 }
            }
            Outcome::Rebuild => Adaptation::Unfixable,
            Outcome::Unfixable => {
                draft.commit(&mut self.table, self.addresses, remote)?;
                Adaptation::Unfixable
            }
        };
        self.adaptations += u64::from(adaptation.is_fixed());
        Ok(adaptation)
    }
}

/// The filter as it would be after the draft, with the keys in the remote.
struct Live<'a, V: Variant, H: KeyHasher, R> {
    filter: &'a AdaptiveCuckooFilter<V, H>,
    draft: &'a mut Draft,
    remote: &'a mut R,
    avoid: Option<CuckooPlace>,
}

impl<V: Variant, H: KeyHasher, R: Remote> World for Live<'_, V, H, R> {
    type Item = Resident;
    type Error = AdaptiveError<R::Error>;

    #[inline]
    fn is_vacant(&self, slot: usize) -> bool {
        match self.draft.planned(slot) {
            Some(resident) => resident.is_none(),
            None => self.filter.table.is_vacant(slot),
        }
    }

    fn item(&mut self, slot: usize) -> Result<Resident, Self::Error> {
        match self.draft.planned(slot) {
            Some(Some(resident)) => Ok(resident),
            _ => match self.draft.occupant(slot) {
                Some(resident) => Ok(resident),
                None => self.filter.read_occupant(slot, self.draft, self.remote),
            },
        }
    }

    #[inline]
    fn first_slot(&self, item: Resident, table: usize) -> usize {
        self.filter.table.first_slot(item.place, table)
    }

    #[inline]
    fn is_welcome(&self, item: Resident, slot: usize) -> bool {
        self.avoid.is_none_or(|avoid| !self.filter.table.would_collide(item.place, avoid, slot))
    }
}
