//! Insertion and removal: what moves with the slots, worked out before the remote is told.

use crate::filter::out_of_memory;
use crate::homes::{insert_anywhere, insert_new, paired_in, tell};
use crate::quotient::{Place, Shift};
use crate::{AdaptiveError, Change, Digest, KeyHasher, Remote, RemoteResult};

use super::core::Core;
use super::plan::Plan;
use super::{Scheme, ValueOf, ValueStore, blocks_of};

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    #[inline]
    pub(crate) fn insert<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        let digest = self.hasher.digest(key);
        let Place { quotient, fraction } = self.table.locate(digest.hi);
        if self.table.len() < self.capacity && self.values.are_initial_where_code_is_0() {
            // The table asks before it writes, in the middle of its one look at the block: two looks cost a fifth more.
            let mut written = Ok(());
            let mut push = || {
                written = remote.apply(&[Change::Insert { address: digest.hi, key }]);
                written.is_ok()
            };
            // At the initial value every scheme has the same remainder.
            if self.table.insert_fresh(quotient, self.table.remainder_of(fraction), &mut push) {
                return written.map(|()| true).map_err(AdaptiveError::Remote);
            }
        }
        insert_anywhere(self, digest, key, remote)
    }

    pub(crate) fn insert_new<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<(), R> {
        let digest = self.hasher.digest(key);
        insert_new(self, digest, key, remote)
    }

    /// Puts a slot for a key at the end of its run, where there is room.
    #[inline]
    pub(super) fn insert_slot<R: Remote>(
        &mut self,
        digest: Digest,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let place = self.table.locate(digest.hi);
        let shift = self.table.gap(place.quotient);
        if shift.end >= self.table.physical_slots() || self.moves_values(shift) {
            return self.insert_with_plan(place, shift, changes, remote);
        }
        tell(changes, remote)?;
        self.table.insert_at(place.quotient, self.table.remainder_of(place.fraction), shift);
        Ok(())
    }

    /// Whether an insertion changes more than remainders. A free slot has the initial value, and so has the new item.
    #[inline]
    fn moves_values(&self, shift: Shift) -> bool {
        shift.at != shift.end
            && !self.values.all_initial(&self.table, blocks_of(&self.table, shift.at, shift.end))
    }

    /// [`insert_slot`](Self::insert_slot) for a key that makes values move, or the tail longer.
    #[cold]
    fn insert_with_plan<R: Remote>(
        &mut self,
        place: Place,
        shift: Shift,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let mut plan = Plan::insertion(&self.values, &self.table, shift);
        let moved = |slot: u64| Some(slot + u64::from((shift.at..shift.end).contains(&slot)));
        self.make_fit(&mut plan, remote, moved)?;
        let tail = self.table.longer_tail(shift.end).map_err(out_of_memory)?;
        tell(changes, remote)?;
        tail.into_iter().for_each(|tail| self.table.set_tail(tail));
        self.table.insert_at(place.quotient, self.table.remainder_of(place.fraction), shift);
        self.commit(&plan);
        Ok(())
    }

    /// Removes the slot of a run that this many come before.
    pub(super) fn remove_slot<R: Remote>(
        &mut self,
        quotient: u64,
        before: usize,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let shift = self.table.removal(quotient, before);
        let plan = self.plan_removal(shift, remote)?;
        tell(changes, remote)?;
        self.table.remove(quotient, before);
        if let Some(plan) = plan {
            self.commit(&plan);
        }
        Ok(())
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
    ) -> RemoteResult<(), R> {
        if plan.overflowing(&self.values).is_none() {
            return Ok(());
        }
        let before = plan.snapshot();
        plan.reset_overflowing(&self.values);
        match self.find_remainders(plan, &before, remote, moved) {
            // An item whose key is in question keeps its selector: the blocks go to the side store instead.
            Err(AdaptiveError::Inconsistent { .. }) => {
                plan.restore(before);
                Ok(())
            }
            found => found,
        }
    }

    /// Asks the remote for the keys of all slots in reset blocks whose value is not what it was `before`, and adds
    /// their new remainders to the plan.
    pub(super) fn find_remainders<R: Remote>(
        &self,
        plan: &mut Plan<ValueOf<S>>,
        before: &[ValueOf<S>],
        remote: &mut R,
        moved: impl Fn(u64) -> Option<u64>,
    ) -> RemoteResult<(), R> {
        if !S::MOVES_REMAINDER {
            return Ok(());
        }
        for block in plan.resets.clone() {
            let slots = plan.slots_of(block);
            // A slot more on either side: an insertion moves the last item of the block before this one here, a removal
            // the first one of the next.
            let (first, _) = self.table.block_of(slots.start.saturating_sub(1));
            for (quotient, run) in self.table.runs_from(first).take_while(|(_, run)| run.first <= slots.end) {
                let changed = |slot: &u64| slots.contains(slot) && plan.changed(before, *slot);
                let targets: Vec<Option<u64>> = run.slots().map(|slot| moved(slot).filter(changed)).collect();
                if targets.iter().all(Option::is_none) {
                    continue;
                }
                for (slot, digest) in targets.iter().zip(paired_in(self, quotient, remote)?) {
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
