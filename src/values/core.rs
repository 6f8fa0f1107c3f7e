//! The filter under every scheme: queries, insertion and removal.

use crate::hash_string::HashString;
use crate::quotient::{Answer, Place, Run, Shift, Table};
use crate::{
    AdaptiveError, BuildError, Change, Digest, FilterStats, FullError, InvariantError, KeyHasher, Remote,
    Resync, error::ensure,
};

use super::plan::Plan;
use super::{Scheme, ValueOf, ValueStore, blocks_of};

/// A quotient table whose slots have values.
#[derive(Debug, Clone)]
pub(crate) struct Core<S: Scheme, H> {
    pub(super) table: Table,
    pub(super) values: S::Store,
    pub(super) scheme: S,
    pub(super) hasher: H,
    pub(super) capacity: usize,
    pub(super) growable: bool,
    pub(super) adaptations: u64,
    pub(super) resets: u64,
}

/// The keys of one list of the remote.
pub(super) struct List {
    /// Their digests, by rank.
    pub(super) digests: Vec<Digest>,
    /// The rank of the key that was looked for.
    pub(super) rank: Option<usize>,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    pub(super) fn new(table: Table, values: S::Store, scheme: S, hasher: H, capacity: usize) -> Self {
        Self { table, values, scheme, hasher, capacity, growable: false, adaptations: 0, resets: 0 }
    }

    /// Where a key belongs, and its further hash bits.
    #[inline(always)]
    pub(super) fn locate(&self, digest: Digest) -> (u64, HashString<'_, H>) {
        let Place { quotient, fraction } = self.table.locate(digest.hi);
        (quotient, HashString::new(&self.hasher, digest, fraction, self.table.fraction_bits()))
    }

    #[inline(always)]
    pub(crate) fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_at(self.table.locate(digest.hi), || digest)
    }

    #[inline(always)]
    pub(crate) fn place(&self, digest: Digest) -> Place {
        self.table.locate(digest.hi)
    }

    #[inline]
    pub(crate) fn prefetch(&self, place: Place) {
        self.table.prefetch(place.quotient);
    }

    #[inline(always)]
    pub(crate) fn contains_at(&self, place: Place, digest: impl FnOnce() -> Digest) -> bool {
        // One branch, nearly never taken: yes or no is the value of the answer.
        let answer = self.table.answer(place);
        if answer > Answer::Yes {
            return self.settle(digest());
        }
        answer == Answer::Yes
    }

    /// Apart from its caller, which shall need few registers.
    #[cold]
    #[inline(never)]
    fn settle(&self, digest: Digest) -> bool {
        let (quotient, key) = self.locate(digest);
        self.scheme.settle(&self.table, &self.values, quotient, &key)
    }

    pub(crate) fn hasher(&self) -> &H {
        &self.hasher
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn stats(&self) -> FilterStats {
        let (items, slots) = (self.table.len(), self.table.slots() as usize);
        let code_bits = self.table.blocks() * self.table.code_bits() as usize;
        FilterStats {
            items,
            slots,
            load: items as f64 / slots as f64,
            bits: self.table.memory_bits() + self.values.memory_bits(),
            adaptations: self.adaptations,
            resets: self.resets,
            spills: self.values.spills(),
            adapted_slots: self.values.adapted(),
            adaptivity_bits: code_bits + self.values.memory_bits(),
            ..FilterStats::default()
        }
    }

    #[inline]
    pub(crate) fn insert<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        let Place { quotient, fraction } = self.table.locate(digest.hi);
        // At the initial value every scheme has the same remainder.
        let remainder = self.table.remainder_of(fraction);
        if self.table.len() < self.capacity && self.values.are_initial_where_code_is_0() {
            let mut written = Ok(());
            let mut push = || {
                written = remote.apply(&[Change::Push { address: quotient, key }]);
                written.is_ok()
            };
            if self.table.insert_fresh(quotient, remainder, &mut push) {
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
        let mut place = self.table.locate(digest.hi);
        if self.contains_digest(digest) && self.read(place.quotient, key, remote)?.rank.is_some() {
            return Ok(false);
        }
        if self.table.len() >= self.capacity {
            self.make_room(remote)?;
            place = self.table.locate(digest.hi);
        }
        let (quotient, remainder) = (place.quotient, self.table.remainder_of(place.fraction));
        let bytes = self.table.memory_bits() / 8;
        let shift =
            self.table.insert(quotient, remainder).map_err(|_| AdaptiveError::OutOfMemory { bytes })?;
        // A free slot has the initial value, and so has the new item: without a shift values stay as they are.
        let unmoved = shift.at == shift.end
            || self.values.all_initial(&self.table, blocks_of(&self.table, shift.at, shift.end));
        let push = [Change::Push { address: quotient, key }];
        let written = if unmoved {
            remote.apply(&push).map_err(AdaptiveError::Remote)
        } else {
            self.insert_values(quotient, shift, &push, remote)
        };
        self.inserted(quotient, written)
    }

    /// The table has the key of this quotient, and gives it back if anything else failed.
    #[inline]
    fn inserted<E>(
        &mut self,
        quotient: u64,
        written: Result<(), AdaptiveError<E>>,
    ) -> Result<bool, AdaptiveError<E>> {
        match written {
            Ok(()) => Ok(true),
            Err(error) => {
                self.take_back(quotient);
                Err(error)
            }
        }
    }

    /// Removes the last item of a run, which was just inserted, before its value moved anything.
    #[cold]
    fn take_back(&mut self, quotient: u64) {
        let last = self.table.run(quotient).map_or(0, |run| run.len() - 1);
        self.table.remove(quotient, last);
    }

    /// Moves values with an insertion that the table has just made, and tells the remote of it.
    #[inline(never)]
    fn insert_values<R: Remote>(
        &mut self,
        quotient: u64,
        shift: Shift,
        push: &[Change<'_>],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let mut plan = Plan::insertion(&self.values, &self.table, shift);
        // The remote does not have the new key yet. It is the last of its run.
        let list_len = |of: u64, run: Run| run.len() - usize::from(of == quotient);
        self.make_fit(&mut plan, remote, list_len, Some)?;
        remote.apply(push).map_err(AdaptiveError::Remote)?;
        self.commit(&plan);
        Ok(())
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
        let Some(run) = self.table.run(quotient) else { return Ok(false) };
        let list = self.read(quotient, key, remote)?;
        check_len(quotient, run, list.digests.len())?;
        let Some(rank) = list.rank else { return Ok(false) };
        let shift = self.table.removal(quotient, rank);
        let plan = self.plan_removal(shift, remote)?;
        remote.apply(&[Change::Remove { address: quotient, rank, key }]).map_err(AdaptiveError::Remote)?;
        self.table.remove(quotient, rank);
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

    /// Reads the list of a quotient, and looks for a key in it.
    pub(super) fn read<R: Remote>(
        &self,
        quotient: u64,
        key: &[u8],
        remote: &mut R,
    ) -> Result<List, AdaptiveError<R::Error>> {
        let mut list = List { digests: Vec::new(), rank: None };
        let mut visit = |stored: &[u8]| {
            if stored == key {
                list.rank = Some(list.digests.len());
            }
            list.digests.push(self.hasher.digest(stored));
        };
        remote.read(quotient, &mut visit).map_err(AdaptiveError::Remote)?;
        Ok(list)
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
        self.make_fit(&mut plan, remote, |_, run| run.len(), moved)?;
        Ok(Some(plan))
    }

    /// Resets the blocks whose values do not fit. `moved` says where a slot's item is going to stand.
    fn make_fit<R: Remote>(
        &self,
        plan: &mut Plan<ValueOf<S>>,
        remote: &mut R,
        list_len: impl Fn(u64, Run) -> usize,
        moved: impl Fn(u64) -> Option<u64>,
    ) -> Result<(), AdaptiveError<R::Error>> {
        if plan.overflowing(&self.values).is_none() {
            return Ok(());
        }
        let before = plan.snapshot();
        while let Some(block) = plan.overflowing(&self.values) {
            plan.reset(block);
        }
        self.find_remainders(plan, &before, remote, list_len, moved)
    }

    /// Asks the remote for the keys of all slots in reset blocks whose value is not what it was `before`, and adds
    /// their new remainders to the plan.
    pub(super) fn find_remainders<R: Remote>(
        &self,
        plan: &mut Plan<ValueOf<S>>,
        before: &[ValueOf<S>],
        remote: &mut R,
        list_len: impl Fn(u64, Run) -> usize,
        moved: impl Fn(u64) -> Option<u64>,
    ) -> Result<(), AdaptiveError<R::Error>> {
        if !S::MOVES_REMAINDER {
            return Ok(());
        }
        for block in plan.resets.clone() {
            let slots = plan.slots_of(block);
            // One slot more: a removal moves the next block's first item here.
            for (quotient, run) in self.table.runs_from(block).take_while(|(_, run)| run.first <= slots.end) {
                let changed = |slot: &u64| slots.contains(slot) && plan.changed(before, *slot);
                let targets: Vec<Option<u64>> = run.slots().map(|slot| moved(slot).filter(changed)).collect();
                if targets.iter().all(Option::is_none) {
                    continue;
                }
                let list = self.read(quotient, &[], remote)?;
                let expected = list_len(quotient, run);
                if list.digests.len() != expected {
                    let found = list.digests.len();
                    return Err(AdaptiveError::Inconsistent { address: quotient, expected, found });
                }
                for (slot, &digest) in targets.iter().zip(&list.digests) {
                    if let &Some(slot) = slot {
                        let remainder = self.scheme.remainder(plan.get(slot), &self.locate(digest).1);
                        plan.remainders.push((slot, remainder));
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a plan true. Returns how many blocks went to a side table.
    pub(super) fn commit(&mut self, plan: &Plan<ValueOf<S>>) -> usize {
        self.resets += plan.resets.len() as u64;
        let spills = plan.commit(&mut self.values, &mut self.table);
        self.choose_probe();
        spills
    }

    /// Values have changed: lets queries look for what the slots now hold.
    pub(super) fn choose_probe(&mut self) {
        self.table.set_probe(self.scheme.probe(&self.table, &self.values));
    }

    /// Removes all keys and repairs from filter and remote.
    pub(crate) fn clear<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        let bytes = self.table.physical_slots() as usize;
        let values = self.values.emptied(&self.table).ok_or(AdaptiveError::OutOfMemory { bytes })?;
        remote.apply(&[Change::Clear]).map_err(AdaptiveError::Remote)?;
        self.table.clear();
        self.values = values;
        self.choose_probe();
        Ok(())
    }

    pub(crate) fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()?;
        self.values.verify(&self.table)?;
        let (probe, needed) = (self.table.probe(), self.scheme.probe(&self.table, &self.values));
        ensure!(probe == needed, "queries look for {probe:?}, but values ask for {needed:?}");
        // Only slots in use have values.
        let mut in_use = 0;
        for (_, run) in self.table.runs() {
            self.values.any(&self.table, run, |_, value| {
                in_use += usize::from(value != ValueOf::<S>::default());
                false
            });
        }
        let adapted = self.values.adapted();
        ensure!(in_use == adapted, "{adapted} adapted slots, but {in_use} of them in use");
        Ok(())
    }

    pub(crate) fn verify_remote<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        for (quotient, run) in self.table.runs() {
            let mut digests = Vec::new();
            let read = remote.read(quotient, &mut |key| digests.push(self.hasher.digest(key)));
            read.map_err(AdaptiveError::Remote)?;
            if self.verify_list(quotient, run, &digests).is_err() {
                let (expected, found) = (run.len(), digests.len());
                return Err(AdaptiveError::Inconsistent { address: quotient, expected, found });
            }
        }
        Ok(())
    }

    pub(crate) fn resync<R: Remote>(
        &mut self,
        _addresses: &[u64],
        _remote: &mut R,
    ) -> Result<Resync, AdaptiveError<R::Error>> {
        Ok(Resync::InQuestion { slots: 1 })
    }

    /// An empty filter of the same parameters.
    pub(crate) fn emptied(&self) -> Result<Self, BuildError> {
        let (slots, bits) = (self.table.slots(), self.table.remainder_bits());
        let table = Table::new(slots, bits, self.table.code_bits() > 0)?;
        let bytes = table.physical_slots() as usize;
        let values = self.values.emptied(&table).ok_or(BuildError::OutOfMemory { bytes })?;
        let core = Self::new(table, values, self.scheme, self.hasher.clone(), self.capacity);
        Ok(Self { growable: self.growable, adaptations: self.adaptations, resets: self.resets, ..core })
    }

    fn verify_list(&self, quotient: u64, run: Run, digests: &[Digest]) -> Result<(), InvariantError> {
        let (keys, slots) = (digests.len(), run.len());
        ensure!(keys == slots, "the remote has {keys} keys at address {quotient}, the filter {slots}");
        let mut digests = digests.iter();
        let mut wrong = None;
        self.values.any(&self.table, run, |slot, value| {
            let located = digests.next().map(|&digest| self.locate(digest));
            let right = located.is_some_and(|(home, key)| {
                home == quotient && self.scheme.remainder(value, &key) == self.table.remainder(slot)
            });
            wrong = (!right).then_some(slot);
            !right
        });
        match wrong {
            Some(slot) => {
                Err(InvariantError::new(format!("slot {slot} does not hold its key of the remote")))
            }
            None => Ok(()),
        }
    }
}

/// A run has as many slots as the remote has keys.
pub(super) fn check_len<E>(quotient: u64, run: Run, found: usize) -> Result<(), AdaptiveError<E>> {
    let expected = run.len();
    if found == expected {
        Ok(())
    } else {
        Err(AdaptiveError::Inconsistent { address: quotient, expected, found })
    }
}
