//! Insertion and removal: what is to change is worked out first, then the remote is told, then memory changes, which
//! cannot fail.

use crate::quotient::{Place, Shift};
use crate::{AdaptiveError, Change, Digest, FullError, KeyHasher, Remote};

use super::core::Core;
use super::grow::out_of_memory;
use super::plan::Plan;
use super::{Scheme, ValueOf, ValueStore, blocks_of};

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    #[inline]
    pub(crate) fn insert<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        let Place { quotient, fraction } = self.table.locate(digest.hi);
        if self.table.len() < self.capacity && self.values.are_initial_where_code_is_0() {
            // The table asks before it writes, in the middle of its one look at the block: two looks cost a fifth more. The
            // address is left to the closure, or every insertion would pay for storing it.
            let (addresses, mut written) = (&self.addresses, Ok(()));
            let mut push = || {
                written = remote.apply(&[Change::Push { address: addresses.of(quotient), key }]);
                written.is_ok()
            };
            // At the initial value every scheme has the same remainder.
            if self.table.insert_fresh(quotient, self.table.remainder_of(fraction), &mut push) {
                return written.map(|()| true).map_err(AdaptiveError::Remote);
            }
        }
        self.insert_anywhere(digest, key, remote)
    }

    /// [`insert`](Self::insert) for the keys that the block of their quotient does not suffice for.
    #[inline(never)]
    fn insert_anywhere<R: Remote>(
        &mut self,
        digest: Digest,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let quotient = self.table.locate(digest.hi).quotient;
        if self.contains_digest(digest) {
            let list = self.read_unchecked(self.addresses.of(quotient), remote)?;
            // A remote that stores nothing at all may be inserted into: one key more is never one too few.
            if list.keys.len() > 0 {
                self.check_list(&list)?;
            }
            if list.rank(key).is_some() {
                return Ok(false);
            }
        }
        if self.table.len() >= self.capacity {
            self.make_room(remote)?;
        }
        let place = self.table.locate(digest.hi);
        let shift = self.table.gap(place.quotient);
        if shift.end >= self.table.physical_slots() || self.moves_values(shift) {
            return self.insert_with_plan(place, shift, key, remote);
        }
        let address = self.addresses.of(place.quotient);
        remote.apply(&[Change::Push { address, key }]).map_err(AdaptiveError::Remote)?;
        self.table.insert_at(place.quotient, self.table.remainder_of(place.fraction), shift);
        Ok(true)
    }

    /// Whether an insertion changes more than remainders. A free slot has the initial value, and so has the new item.
    #[inline]
    fn moves_values(&self, shift: Shift) -> bool {
        shift.at != shift.end
            && !self.values.all_initial(&self.table, blocks_of(&self.table, shift.at, shift.end))
    }

    /// [`insert`](Self::insert) of a new key that makes values move, or the tail longer.
    #[cold]
    fn insert_with_plan<R: Remote>(
        &mut self,
        place: Place,
        shift: Shift,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let mut plan = Plan::insertion(&self.values, &self.table, shift);
        let moved = |slot: u64| Some(slot + u64::from((shift.at..shift.end).contains(&slot)));
        self.make_fit(&mut plan, remote, moved)?;
        let tail = self.table.longer_tail(shift.end).map_err(out_of_memory)?;
        let address = self.addresses.of(place.quotient);
        remote.apply(&[Change::Push { address, key }]).map_err(AdaptiveError::Remote)?;
        tail.into_iter().for_each(|tail| self.table.set_tail(tail));
        self.table.insert_at(place.quotient, self.table.remainder_of(place.fraction), shift);
        self.commit(&plan);
        Ok(true)
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
        let quotient = self.table.locate(digest.hi).quotient;
        let list = self.read(quotient, remote)?;
        let Some(rank) = list.rank(key) else { return Ok(false) };
        let in_run = self.members(&list, quotient).take_while(|&(other, _)| other < rank).count();
        let shift = self.table.removal(quotient, in_run);
        let plan = self.plan_removal(shift, remote)?;
        let remove = Change::Remove { address: list.address, rank, key };
        remote.apply(&[remove]).map_err(AdaptiveError::Remote)?;
        self.table.remove(quotient, in_run);
        if let Some(plan) = plan {
            self.commit(&plan);
        }
        Ok(true)
    }

    fn make_room<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        if self.growable {
            self.grow(remote)
        } else {
            Err(FullError { len: self.table.len(), capacity: self.capacity }.into())
        }
    }

    /// How values are going to change with a removal; `None` if they do not.
    fn plan_removal<R: Remote>(
        &self,
        shift: Shift,
        remote: &mut R,
    ) -> Result<Option<Plan<ValueOf<S>>>, AdaptiveError<R::Error>> {
        if self.values.all_initial(&self.table, blocks_of(&self.table, shift.at, shift.end)) {
            return Ok(None);
        }
        let mut plan = Plan::removal(&self.values, &self.table, shift);
        let moved = |slot: u64| match slot {
            slot if slot == shift.at => None,
            slot if slot > shift.at && slot <= shift.end => Some(slot - 1),
            slot => Some(slot),
        };
        self.make_fit(&mut plan, remote, moved)?;
        Ok(Some(plan))
    }

    /// Resets the blocks whose values do not fit. `moved` says where a slot's item is going to stand.
    fn make_fit<R: Remote>(
        &self,
        plan: &mut Plan<ValueOf<S>>,
        remote: &mut R,
        moved: impl Fn(u64) -> Option<u64>,
    ) -> Result<(), AdaptiveError<R::Error>> {
        if plan.overflowing(&self.values).is_none() {
            return Ok(());
        }
        let before = plan.snapshot();
        plan.reset_overflowing(&self.values);
        self.find_remainders(plan, &before, remote, moved)
    }

    /// Asks the remote for the keys of all slots in reset blocks whose value is not what it was `before`, and adds
    /// their new remainders to the plan.
    pub(super) fn find_remainders<R: Remote>(
        &self,
        plan: &mut Plan<ValueOf<S>>,
        before: &[ValueOf<S>],
        remote: &mut R,
        moved: impl Fn(u64) -> Option<u64>,
    ) -> Result<(), AdaptiveError<R::Error>> {
        if !S::MOVES_REMAINDER {
            return Ok(());
        }
        for block in plan.resets.clone() {
            let slots = plan.slots_of(block);
            // A slot more on either side: an insertion moves the last item of the block before this one here, a removal the
            // first one of the next.
            let (first, _) = self.table.block_of(slots.start.saturating_sub(1));
            for (quotient, run) in self.table.runs_from(first).take_while(|(_, run)| run.first <= slots.end) {
                let changed = |slot: &u64| slots.contains(slot) && plan.changed(before, *slot);
                let targets: Vec<Option<u64>> = run.slots().map(|slot| moved(slot).filter(changed)).collect();
                if targets.iter().all(Option::is_none) {
                    continue;
                }
                let list = self.read(quotient, remote)?;
                for (slot, (_, digest)) in targets.iter().zip(self.members(&list, quotient)) {
                    if let &Some(slot) = slot {
                        let remainder = self.scheme.remainder(plan.get(slot), &self.locate(digest).1);
                        plan.remainders.push((slot, remainder));
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a plan true. Returns how many blocks went to the side store.
    pub(super) fn commit(&mut self, plan: &Plan<ValueOf<S>>) -> usize {
        self.resets += plan.resets.len() as u64;
        let spills = plan.commit(&mut self.values, &mut self.table);
        self.choose_probe();
        spills
    }
}
