//! A filter as the runs of its quotients, for deltas between two states of it.

use crate::format::{HasRuns, RunItem, Runs};
use crate::{Filter, KeyHasher};

use super::filter::QuotientFilter;
use super::sorted::{Appender, Item};

impl<H: KeyHasher> HasRuns for QuotientFilter<H> {
    fn runs(&self) -> Option<Runs> {
        let item = |Item { quotient, remainder, .. }| RunItem { place: quotient, rest: remainder, value: 0 };
        let (bound, bits) = (self.table.slots(), self.table.remainder_bits());
        Some(Runs { bound, bits, counters: Vec::new(), items: self.table.iter().map(item).collect() })
    }

    fn with_runs(&self, runs: &Runs) -> Option<Self> {
        if runs.items.len() > self.capacity() || runs.items.iter().any(|item| item.value != 0) {
            return None;
        }
        let mut table = Appender::new(self.table.like(self.table.slots()).ok()?);
        for item in &runs.items {
            table.append(item.place, item.rest).ok()?;
        }
        let mut filter = self.clone();
        filter.table = table.finish();
        Some(filter)
    }
}
