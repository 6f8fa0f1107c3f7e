//! A filter as the runs of its quotients, for deltas between two states of it.

use crate::KeyHasher;
use crate::format::{RunItem, Runs};
use crate::quotient::Appender;

use super::core::Core;
use super::plan::Plan;
use super::{Scheme, ValueOf, ValueStore};

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// All items by their quotients, with their values.
    pub(crate) fn runs(&self) -> Runs {
        let mut items = Vec::with_capacity(self.table.len());
        for (place, run) in self.table.runs() {
            self.values.any(&self.table, run, |slot, value| {
                items.push(RunItem {
                    place,
                    rest: self.table.remainder(slot),
                    value: S::Store::number(value),
                });
                false
            });
        }
        let counters = vec![self.adaptations, self.resets, self.values.highest_ever()];
        Runs { bound: self.table.slots(), bits: self.table.remainder_bits(), counters, items }
    }

    /// The filter with these items in its table.
    pub(crate) fn with_runs(&self, runs: &Runs) -> Option<Self> {
        let &[adaptations, resets, highest] = &runs.counters[..] else { return None };
        let mut core = self.emptied().ok().filter(|_| runs.items.len() <= self.capacity)?;
        let mut appender = Appender::new(core.table);
        let mut repaired: Vec<(u64, ValueOf<S>)> = Vec::new();
        for item in &runs.items {
            let slot = appender.append(item.place, item.rest).ok()?;
            let value = S::Store::value(item.value)?;
            repaired.extend((value != ValueOf::<S>::default()).then_some((slot, value)));
        }
        core.table = appender.finish();
        let per_block = u64::from(core.table.slots_per_block());
        for repaired in repaired.chunk_by(|one, other| one.0 / per_block == other.0 / per_block) {
            let block = (repaired[0].0 / per_block) as usize;
            let mut plan = Plan::load(&core.values, &core.table, block..=block);
            repaired.iter().for_each(|&(slot, value)| plan.set(slot, value));
            if plan.overflowing(&core.values).is_some() {
                return None;
            }
            plan.commit(&mut core.values, &mut core.table);
        }
        if !core.values.raise(highest) {
            return None;
        }
        core.choose_probe();
        Some(Self { adaptations, resets, ..core })
    }
}
