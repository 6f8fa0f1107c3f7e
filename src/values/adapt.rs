//! Repairing a false positive.

use crate::{Adaptation, Digest, KeyHasher, Remote, RemoteResult};

use super::core::Core;
use super::plan::Plan;
use super::{Scheme, ValueOf, blocks_of};

/// Values at which no slot accepts the query any more.
struct Repair<V> {
    plan: Plan<V>,
    before: Vec<V>,
    slots: usize,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// Gives the slots of a home, which hold these keys, values at which none of them accepts the query.
    pub(super) fn repair_slots<R: Remote>(
        &mut self,
        stored: &[(u64, Digest)],
        query: Digest,
        remote: &mut R,
    ) -> RemoteResult<Adaptation, R> {
        let Some(Repair { mut plan, before, slots }) = self.plan_repair(stored, query) else {
            return Ok(Adaptation::Unfixable);
        };
        // Reset blocks have slots of other quotients too.
        self.find_remainders(&mut plan, &before, remote, Some)?;
        self.find_own_remainders(&mut plan, &before, stored);
        let resets = plan.resets.len();
        let spills = self.commit(&plan);
        self.adaptations += 1;
        Ok(match (resets, spills) {
            (0, 0) => Adaptation::Fixed { slots },
            (0, _) => Adaptation::Spilled { slots, spills },
            _ => Adaptation::FixedAfterReset { slots, resets },
        })
    }

    /// Moves every slot that accepts the query to a value at which it does not. `None` if hash bits are equal as far as
    /// values go.
    fn plan_repair(&self, stored: &[(u64, Digest)], query: Digest) -> Option<Repair<ValueOf<S>>> {
        let query = &self.locate(query).1;
        let (first, last) = (stored.first()?.0, stored.last()?.0);
        let blocks = blocks_of(&self.table, first, last);
        let mut plan = Plan::load(&self.values, &self.table, blocks);
        let before = plan.snapshot();
        let mut moved = vec![false; stored.len()];
        loop {
            for (&(slot, digest), moved) in stored.iter().zip(&mut moved) {
                let (value, key) = (plan.get(slot), self.locate(digest).1);
                if self.scheme.accepts(self.scheme.remainder(value, &key), value, query) {
                    plan.set(slot, self.scheme.next(value, &key, query)?);
                    *moved = true;
                }
            }
            // After a reset, slots of the block may accept the query that did not before: once more.
            let Some(block) = plan.overflowing(&self.values) else { break };
            plan.reset(block);
        }
        let slots = moved.iter().filter(|&&moved| moved).count();
        Some(Repair { plan, before, slots })
    }

    /// The new remainders of the slots whose keys are at hand.
    fn find_own_remainders(
        &self,
        plan: &mut Plan<ValueOf<S>>,
        before: &[ValueOf<S>],
        stored: &[(u64, Digest)],
    ) {
        if !S::MOVES_REMAINDER {
            return;
        }
        for &(slot, digest) in stored {
            if plan.changed(before, slot) {
                let remainder = self.scheme.remainder(plan.get(slot), &self.locate(digest).1);
                plan.remainders.push((slot, remainder));
            }
        }
    }
}
