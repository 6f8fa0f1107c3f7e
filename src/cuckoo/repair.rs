//! How each variant repairs a false positive: it plans on a draft and says what it came to. Nothing is changed
//! here.

use crate::{AdaptiveError, Digest, KeyHasher, Remote, RemoteResult};

use super::AdaptiveCuckooFilter;
use super::draft::{Draft, Resident};
use super::filter::Scratch;
use super::place::{CuckooPlace, scale};
use super::variant::{OnFalsePositive, Variant};

/// A false positive: the query and everyone it collides with.
pub(super) struct Repair<'a, V: Variant, H: KeyHasher> {
    pub(super) filter: &'a AdaptiveCuckooFilter<V, H>,
    pub(super) query: CuckooPlace,
    /// Never empty. No resident has the place of the query.
    pub(super) collisions: &'a [(usize, Resident)],
}

/// What a repair came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With the draft carried out, the filter rejects the query.
    Fixed,
    /// Only with new hash functions the filter may come to reject the query. The draft is void.
    Rebuild,
    /// The filter cannot reject the query. The draft is worth carrying out all the same.
    Unfixable,
}

impl<V: Variant, H: KeyHasher> Repair<'_, V, H> {
    /// Plans changes after which no stored key collides with the query.
    pub(super) fn plan<R: Remote>(&self, scratch: &mut Scratch, remote: &mut R) -> RemoteResult<Outcome, R> {
        match V::ON_FALSE_POSITIVE {
            OnFalsePositive::Nothing => Ok(Outcome::Unfixable),
            OnFalsePositive::NextTable => self.move_on(scratch, remote),
            OnFalsePositive::NextSelector => Ok(self.select_on(&mut scratch.draft)),
            OnFalsePositive::Swap => self.swap(&mut scratch.draft, remote),
        }
    }

    /// Each colliding key goes to its next table, by a chain like that of an insertion; no key of the chain
    /// comes to collide with the query. If there is no chain, the tables after the next one are tried.
    fn move_on<R: Remote>(&self, scratch: &mut Scratch, remote: &mut R) -> RemoteResult<Outcome, R> {
        for &(slot, resident) in self.collisions {
            // A chain of this repair may have moved it already, to where it does not collide.
            let is_moved = scratch.draft.planned(slot).is_some();
            if !is_moved && !self.move_one(slot, resident, scratch, remote)? {
                return Ok(Outcome::Rebuild);
            }
        }
        Ok(Outcome::Fixed)
    }

    fn move_one<R: Remote>(
        &self,
        slot: usize,
        resident: Resident,
        scratch: &mut Scratch,
        remote: &mut R,
    ) -> RemoteResult<bool, R> {
        let layout = self.filter.table.layout();
        let (home, _) = layout.bin_of(slot);
        scratch.draft.put(slot, None);
        for step in 1..layout.tables {
            let next = std::iter::once((home + step) % layout.tables);
            if self.filter.plan_chain(resident, next, Some(self.query), scratch, remote)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The selector of each colliding slot advances to the next that tells its key from the query. Nobody
    /// moves, so the remote has nothing to change.
    fn select_on(&self, draft: &mut Draft) -> Outcome {
        let table = &self.filter.table;
        let selectors = 1 << V::SELECTOR_BITS;
        let mut outcome = Outcome::Fixed;
        for &(slot, resident) in self.collisions {
            let mut others = (1..selectors).map(|step| (table.selector(slot) + step) % selectors);
            match others.find(|&selector| !table.agree(resident.place, self.query, slot, selector)) {
                Some(selector) => draft.select(slot, resident, selector),
                None => outcome = Outcome::Unfixable,
            }
        }
        outcome
    }

    /// Each colliding key swaps places with a random other slot of its bin, again and again until nobody in
    /// the bin collides.
    fn swap<R: Remote>(&self, draft: &mut Draft, remote: &mut R) -> RemoteResult<Outcome, R> {
        let bin_slots = self.filter.table.layout().bin_slots;
        let first_slots = self.collisions.iter().map(|(slot, _)| slot / bin_slots * bin_slots);
        let mut bins: Vec<usize> = first_slots.collect();
        bins.dedup();
        let mut outcome = Outcome::Fixed;
        for first in bins {
            let before = self.bin(first, draft, remote)?;
            match self.reorder(first, &before) {
                Some(order) => plan_order(first, &order, &before, draft),
                None => outcome = Outcome::Unfixable,
            }
        }
        Ok(outcome)
    }

    /// Who lies in the slots of the bin that begins at slot `first`.
    fn bin<R: Remote>(
        &self,
        first: usize,
        draft: &mut Draft,
        remote: &mut R,
    ) -> Result<Vec<Option<Resident>>, AdaptiveError<R::Error>> {
        let slots = first..first + self.filter.table.layout().bin_slots;
        slots
            .map(|slot| match self.collisions.iter().find(|(colliding, _)| *colliding == slot) {
                Some(&(_, resident)) => Ok(Some(resident)),
                None if self.filter.table.is_vacant(slot) => Ok(None),
                None => self.filter.read_occupant(slot, draft, remote).map(Some),
            })
            .collect()
    }

    /// An order of a bin's keys in which none collides with the query: for each slot, who is to lie there, by
    /// the number of the slot that it lies in now.
    fn reorder(&self, first: usize, before: &[Option<Resident>]) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..before.len()).collect();
        for swap in 0..SWAPS {
            let colliding = order.iter().enumerate().position(|(index, &who)| {
                let table = &self.filter.table;
                before[who].is_some_and(|resident| table.agree(resident.place, self.query, first + index, 0))
            });
            let Some(index) = colliding else { return Some(order) };
            let step = 1 + self.chance(first, swap, before.len() - 1);
            order.swap(index, (index + step) % before.len());
        }
        None
    }

    /// A number below `bound` that nobody outside can foresee: the keyed hash of where and how often.
    fn chance(&self, slot: usize, swap: u64, bound: usize) -> usize {
        let event = Digest { hi: self.filter.adaptations, lo: slot as u64 };
        scale(self.filter.hasher.rehash(event, swap).hi, bound)
    }
}

/// This many swaps are tried before a bin is given up. Each ends the collision with probability 1 − 2^−f or so:
/// all fail only if hardly any order of the bin's keys rejects the query.
const SWAPS: u64 = 64;

fn plan_order(first: usize, order: &[usize], before: &[Option<Resident>], draft: &mut Draft) {
    for (index, &who) in order.iter().enumerate() {
        let vacant_as_before = before[who].is_none() && before[index].is_none();
        if index != who && !vacant_as_before {
            draft.put(first + index, before[who]);
        }
    }
}
