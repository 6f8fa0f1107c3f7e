//! The way back for a few addresses: makes filter and lists agree where a failed operation may have changed one of them.
//!
//! The keys of the lists are matched with the slots. If every slot has a key, the runs are written anew in the order of
//! the lists: a key that was matched keeps the value of its slot, one that the filter did not know gets the initial one.
//! In the lists, keys that stand twice or do not belong there are removed, and keys that were found elsewhere only are
//! pushed; the pushes come first, so that a group which was made by half loses nothing. All of this happens to a copy of
//! the filter, which takes its place when the remote has been told.

use std::collections::{BTreeMap, BTreeSet};

use crate::{AdaptiveError, Change, Digest, FullError, KeyHasher, Remote, Resync};

use super::core::Core;
use super::grow::out_of_memory;
use super::keys::List;
use super::matching::match_slots;
use super::plan::Plan;
use super::{Scheme, ValueOf, ValueStore, blocks_of};

/// Keys that belong elsewhere are followed to their own lists so often. What is still not at home then was never written
/// by this filter.
const ROUNDS: usize = 4;

type Lists = BTreeMap<u64, List>;

/// A key that the run of a quotient is going to have.
struct Member<'l> {
    key: &'l [u8],
    digest: Digest,
    /// Whether its own list has it.
    listed: bool,
    /// Whether it was seen in lists of another generation only.
    stale: bool,
}

/// The keys of each quotient in question, in the order that its run is going to have.
type Members<'l> = BTreeMap<u64, Vec<Member<'l>>>;

/// A copy of the filter on its way to agreement.
struct Copied<S: Scheme, H> {
    core: Core<S, H>,
    /// Blocks that have forgotten their values on the way.
    resets: BTreeSet<usize>,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    pub(crate) fn resync<R: Remote>(
        &mut self,
        addresses: &[u64],
        remote: &mut R,
    ) -> Result<Resync, AdaptiveError<R::Error>> {
        let lists = self.gather(addresses, remote)?;
        if lists.values().all(|list| self.check_list::<R::Error>(list).is_ok()) {
            return Ok(Resync::Agreed);
        }
        let mut members = self.sort_out(&lists);
        let mut values = BTreeMap::new();
        let mut unexplained = 0;
        for (&quotient, members) in &mut members {
            let (kept, missing) = self.explain(quotient, members);
            values.insert(quotient, kept);
            unexplained += missing;
        }
        if unexplained > 0 {
            return Ok(Resync::InQuestion { slots: unexplained });
        }
        let mut copied = Copied { core: self.clone(), resets: BTreeSet::new() };
        copied.make_slots(&members)?;
        copied.set_values(&values);
        copied.set_remainders(&members);
        copied.set_other_remainders(self, &members, remote)?;
        let changes = self.corrections(&lists, &members);
        if !changes.is_empty() {
            remote.apply(&changes).map_err(AdaptiveError::Remote)?;
        }
        copied.core.resets += copied.resets.len() as u64;
        *self = copied.core;
        self.choose_probe();
        Ok(Resync::Agreed)
    }

    /// Reads these lists, and those that their keys belong to.
    fn gather<R: Remote>(&self, addresses: &[u64], remote: &mut R) -> Result<Lists, AdaptiveError<R::Error>> {
        let (mut lists, mut wanted) = (Lists::new(), addresses.to_vec());
        for _ in 0..ROUNDS {
            let mut homes = Vec::new();
            for address in wanted {
                if lists.contains_key(&address) {
                    continue;
                }
                let list = self.read_unchecked(address, remote)?;
                homes.extend(list.digests.iter().map(|&digest| self.home(digest).1));
                lists.insert(address, list);
            }
            wanted = homes;
        }
        match wanted.into_iter().find(|address| !lists.contains_key(address)) {
            Some(address) => Err(self.inconsistent(address, 0)),
            None => Ok(lists),
        }
    }

    /// The quotient and the address of a key.
    fn home(&self, digest: Digest) -> (u64, u64) {
        let quotient = self.table.locate(digest.hi).quotient;
        (quotient, self.addresses.of(quotient))
    }

    /// The keys of every quotient that has one of these addresses: first those of its own list, in order, then the others.
    fn sort_out<'l>(&self, lists: &'l Lists) -> Members<'l> {
        let quotients = lists.keys().flat_map(|&address| self.quotients_at(address));
        let mut members: Members<'l> = quotients.map(|quotient| (quotient, Vec::new())).collect();
        for at_home in [true, false] {
            for list in lists.values() {
                for (key, &digest) in list.keys.iter().zip(&list.digests) {
                    let (quotient, home) = self.home(digest);
                    if (home == list.address) != at_home {
                        continue;
                    }
                    let stale = self.addresses.is_stale(list.address);
                    let members = members.entry(quotient).or_default();
                    match members.iter_mut().find(|member| member.key == key) {
                        Some(member) => member.stale &= stale,
                        None => members.push(Member { key, digest, listed: at_home, stale }),
                    }
                }
            }
        }
        members
    }

    /// Finds a key for every slot of a run. Keeps the keys that the run is going to have, returns their values, and how
    /// many slots have no key.
    fn explain(&self, quotient: u64, members: &mut Vec<Member<'_>>) -> (Vec<ValueOf<S>>, usize) {
        let mut slots = Vec::new();
        if let Some(run) = self.table.run(quotient) {
            self.values.any(&self.table, run, |slot, value| {
                slots.push((self.table.remainder(slot), value));
                false
            });
        }
        let matched = match_slots(slots.len(), members.len(), |slot, member| {
            let ((remainder, value), digest) = (slots[slot], members[member].digest);
            self.scheme.accepts(remainder, value, &self.locate(digest).1)
        });
        let mut slot_of = vec![None; members.len()];
        for (slot, &member) in matched.iter().enumerate() {
            member.into_iter().for_each(|member| slot_of[member] = Some(slot));
        }
        let needed = |index: usize, member: &Member<'_>| slot_of[index].is_some() || !member.stale;
        let kept = members.iter().enumerate().filter(|&(index, member)| needed(index, member));
        let values =
            kept.map(|(index, _)| slot_of[index].map_or(ValueOf::<S>::default(), |slot| slots[slot].1));
        let values = values.collect();
        let mut index = 0..;
        members.retain(|member| index.next().is_some_and(|index| needed(index, member)));
        (values, matched.iter().filter(|member| member.is_none()).count())
    }

    /// What is to change in the lists.
    fn corrections<'l>(&self, lists: &'l Lists, members: &Members<'l>) -> Vec<Change<'l>> {
        let mut changes = Vec::new();
        for (&quotient, members) in members {
            let address = self.addresses.of(quotient);
            let unlisted = members.iter().filter(|member| !member.listed);
            changes.extend(unlisted.map(|member| Change::Push { address, key: member.key }));
        }
        for (&address, list) in lists {
            // The last rank first, so that the others stay right. Of a key that stands twice the first one stays.
            for rank in (0..list.keys.len()).rev() {
                let key = list.keys.get(rank);
                if self.home(list.digests[rank]).1 != address || list.rank(key) != Some(rank) {
                    changes.push(Change::Remove { address, rank, key });
                }
            }
        }
        changes
    }
}

impl<S: Scheme, H: KeyHasher> Copied<S, H> {
    /// Makes every run as long as it is going to be.
    fn make_slots<E>(&mut self, members: &Members<'_>) -> Result<(), AdaptiveError<E>> {
        let core = &mut self.core;
        let len = core.table.len();
        for (&quotient, members) in members {
            for _ in core.table.run(quotient).map_or(0, |run| run.len())..members.len() {
                // A filter that can grow does so at the next insertion.
                if core.table.len() >= core.capacity && !core.growable {
                    return Err(FullError { len, capacity: core.capacity }.into());
                }
                let shift = core.table.gap(quotient);
                let tail = core.table.longer_tail(shift.end).map_err(out_of_memory)?;
                tail.into_iter().for_each(|tail| core.table.set_tail(tail));
                // The remainder comes when values are settled.
                core.table.insert_at(quotient, 0, shift);
                let plan = Plan::insertion(&core.values, &core.table, shift);
                commit(core, plan, &mut self.resets);
            }
        }
        Ok(())
    }

    /// Gives the slots the values that their keys have.
    fn set_values(&mut self, values: &BTreeMap<u64, Vec<ValueOf<S>>>) {
        let core = &mut self.core;
        for (&quotient, values) in values {
            let Some(run) = core.table.run(quotient) else { continue };
            let blocks = blocks_of(&core.table, run.first, run.last);
            let mut plan = Plan::load(&core.values, &core.table, blocks);
            run.slots().zip(values).for_each(|(slot, &value)| plan.set(slot, value));
            commit(core, plan, &mut self.resets);
        }
    }

    /// Gives the slots the remainders that their keys have under their values.
    fn set_remainders(&mut self, members: &Members<'_>) {
        let core = &mut self.core;
        for (&quotient, members) in members {
            let Some(run) = core.table.run(quotient) else { continue };
            let (mut remainders, mut members) = (Vec::with_capacity(run.len()), members.iter());
            core.values.any(&core.table, run, |slot, value| {
                let member = members.next();
                remainders.extend(
                    member.map(|member| (slot, core.scheme.remainder(value, &core.locate(member.digest).1))),
                );
                false
            });
            for (slot, remainder) in remainders {
                core.table.set_remainder(slot, remainder);
            }
        }
    }

    /// The same for the other slots of blocks that have forgotten their values. `original` is the filter as it was, which
    /// agrees with the lists of these slots.
    fn set_other_remainders<R: Remote>(
        &mut self,
        original: &Core<S, H>,
        members: &Members<'_>,
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        if !S::MOVES_REMAINDER {
            return Ok(());
        }
        let mut remainders = Vec::new();
        for &block in &self.resets {
            let core = &self.core;
            let end = core.table.first_slot(block + 1);
            let slots = core.table.first_slot(block)..end;
            for (quotient, run) in core.table.runs_from(block).take_while(|(_, run)| run.first < end) {
                if members.contains_key(&quotient) {
                    continue;
                }
                let list = original.read(quotient, remote)?;
                let keys = run.slots().zip(original.members(&list, quotient));
                remainders.extend(keys.filter(|(slot, _)| slots.contains(slot)).map(
                    |(slot, (_, digest))| {
                        (slot, core.scheme.remainder(ValueOf::<S>::default(), &core.locate(digest).1))
                    },
                ));
            }
        }
        for (slot, remainder) in remainders {
            self.core.table.set_remainder(slot, remainder);
        }
        Ok(())
    }
}

/// Makes a plan true; blocks whose values do not fit forget them.
fn commit<S: Scheme, H>(core: &mut Core<S, H>, mut plan: Plan<ValueOf<S>>, resets: &mut BTreeSet<usize>) {
    plan.reset_overflowing(&core.values);
    resets.extend(plan.resets.iter().copied());
    plan.commit(&mut core.values, &mut core.table);
}
