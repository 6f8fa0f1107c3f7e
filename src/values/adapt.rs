//! Repairing a false positive.

use crate::hash_string::HashString;
use crate::quotient::Run;
use crate::{Adaptation, AdaptiveError, KeyHasher, Remote};

use super::core::{Core, List, check_len};
use super::plan::Plan;
use super::{Scheme, ValueOf, blocks_of};

/// Values at which no slot of the run accepts the query any more.
struct Repair<V> {
    plan: Plan<V>,
    before: Vec<V>,
    slots: usize,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    pub(crate) fn adapt<R: Remote>(
        &mut self,
        key: &[u8],
        remote: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>> {
        let digest = self.hasher.digest(key);
        if !self.contains_digest(digest) {
            return Ok(Adaptation::NotFalsePositive);
        }
        let (quotient, query) = self.locate(digest);
        let Some(run) = self.table.run(quotient) else { return Ok(Adaptation::NotFalsePositive) };
        let list = self.read(quotient, key, remote)?;
        check_len(quotient, run, list.digests.len())?;
        if list.rank.is_some() {
            return Ok(Adaptation::NotFalsePositive);
        }
        let Some(Repair { mut plan, before, slots }) = self.repair(run, &list, &query) else {
            return Ok(Adaptation::Unfixable);
        };
        // Reset blocks have slots of other quotients too.
        self.find_remainders(&mut plan, &before, remote, |_, run| run.len(), Some)?;
        self.find_own_remainders(&mut plan, &before, run, &list);
        let resets = plan.resets.len();
        let spills = self.commit(&plan);
        self.adaptations += 1;
        Ok(match (resets, spills) {
            (0, 0) => Adaptation::Fixed { slots },
            (0, _) => Adaptation::Spilled { slots, spills },
            _ => Adaptation::FixedAfterReset { slots, resets },
        })
    }

    /// Moves every slot of the run that accepts the query to a value at which it does not. `None` if hash bits
    /// are equal as far as values go, or if a block that forgot everything else still has no room for this.
    fn repair(&self, run: Run, list: &List, query: &HashString<'_, H>) -> Option<Repair<ValueOf<S>>> {
        let blocks = blocks_of(&self.table, run.first, run.last);
        let mut plan = Plan::load(&self.values, &self.table, blocks);
        let before = plan.snapshot();
        let mut moved = vec![false; run.len()];
        loop {
            for ((slot, &digest), moved) in run.slots().zip(&list.digests).zip(&mut moved) {
                let (value, stored) = (plan.get(slot), self.locate(digest).1);
                if self.scheme.accepts(self.scheme.remainder(value, &stored), value, query) {
                    plan.set(slot, self.scheme.next(value, &stored, query)?);
                    *moved = true;
                }
            }
            // After a reset, slots of the block may accept the query that did not before: once more.
            let Some(block) = plan.overflowing(&self.values) else { break };
            if plan.resets.contains(&block) {
                return None;
            }
            plan.reset(block);
        }
        let slots = moved.iter().filter(|&&moved| moved).count();
        Some(Repair { plan, before, slots })
    }

    /// The new remainders of the run whose keys are at hand.
    fn find_own_remainders(&self, plan: &mut Plan<ValueOf<S>>, before: &[ValueOf<S>], run: Run, list: &List) {
        if !S::MOVES_REMAINDER {
            return;
        }
        for (slot, &digest) in run.slots().zip(&list.digests) {
            if plan.changed(before, slot) {
                let remainder = self.scheme.remainder(plan.get(slot), &self.locate(digest).1);
                plan.remainders.push((slot, remainder));
            }
        }
    }
}
