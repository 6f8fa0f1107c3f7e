//! A copy of the filter in which some runs have other keys: what the way back after a failure needs.
//!
//! The runs are written anew in the order of their keys: a key that has had a slot keeps the value of that slot, one that
//! the filter did not know gets the initial one. Blocks that forget their values on the way have the remainders of their keys
//! made anew, as in any other operation.

use std::collections::BTreeSet;

use crate::filter::out_of_memory;
use crate::ground::{Agreed, members_of, read};
use crate::{AdaptiveError, FullError, KeyHasher, Remote};

use super::core::Core;
use super::plan::Plan;
use super::{Scheme, ValueOf, ValueStore, blocks_of};

/// A copy of the filter on its way to agreement.
struct Copied<S: Scheme, H> {
    core: Core<S, H>,
    /// Blocks that have forgotten their values on the way.
    resets: BTreeSet<usize>,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// A copy in which the runs of these quotients have slots for these keys.
    pub(super) fn with_keys<R: Remote>(
        &self,
        agreed: &Agreed<Self>,
        remote: &mut R,
    ) -> Result<Self, AdaptiveError<R::Error>> {
        let mut copied = Copied { core: self.clone(), resets: BTreeSet::new() };
        copied.make_slots(agreed)?;
        copied.set_values(agreed);
        copied.set_remainders(agreed);
        copied.set_other_remainders(self, agreed, remote)?;
        copied.core.resets += copied.resets.len() as u64;
        copied.core.choose_probe();
        Ok(copied.core)
    }
}

impl<S: Scheme, H: KeyHasher> Copied<S, H> {
    /// Makes every run as long as it is going to be.
    fn make_slots<E>(&mut self, agreed: &Agreed<Core<S, H>>) -> Result<(), AdaptiveError<E>> {
        let core = &mut self.core;
        let len = core.table.len();
        for (&quotient, keys) in agreed {
            for _ in core.table.run(quotient).map_or(0, |run| run.len())..keys.len() {
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
    fn set_values(&mut self, agreed: &Agreed<Core<S, H>>) {
        let core = &mut self.core;
        for (&quotient, keys) in agreed {
            let Some(run) = core.table.run(quotient) else { continue };
            let blocks = blocks_of(&core.table, run.first, run.last);
            let mut plan = Plan::load(&core.values, &core.table, blocks);
            for (slot, key) in run.slots().zip(keys) {
                plan.set(slot, key.item.map_or(ValueOf::<S>::default(), |item| item.value));
            }
            commit(core, plan, &mut self.resets);
        }
    }

    /// Gives the slots the remainders that their keys have under their values.
    fn set_remainders(&mut self, agreed: &Agreed<Core<S, H>>) {
        let core = &mut self.core;
        for (&quotient, keys) in agreed {
            let Some(run) = core.table.run(quotient) else { continue };
            let (mut remainders, mut keys) = (Vec::with_capacity(run.len()), keys.iter());
            core.values.any(&core.table, run, |slot, value| {
                let remainder = |digest| core.scheme.remainder(value, &core.locate(digest).1);
                remainders.extend(keys.next().map(|key| (slot, remainder(key.digest))));
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
        agreed: &Agreed<Core<S, H>>,
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
                if agreed.contains_key(&quotient) {
                    continue;
                }
                let list = read(original, quotient, remote)?;
                let keys = run.slots().zip(members_of(original, &list, quotient));
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
