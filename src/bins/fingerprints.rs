//! A filter as the runs of equal fingerprints, for deltas between two states of it.

use crate::format::{HasRuns, RunItem, Runs};
use crate::{Filter, KeyHasher};

use super::filter::BinFilter;
use super::line::Entry;

impl<H: KeyHasher> HasRuns for BinFilter<H> {
    /// Fingerprints as numbers: bin, class and tag.
    fn runs(&self) -> Option<Runs> {
        let entries = self.table.shape().entries();
        let numbers = self.table.items().map(|(bin, Entry(entry))| bin * entries + u64::from(entry));
        let mut items: Vec<RunItem> = numbers.map(|place| RunItem { place, rest: 0, value: 0 }).collect();
        items.sort_unstable_by_key(|item| item.place);
        Some(Runs { bound: self.table.bins() * entries, bits: 0, counters: Vec::new(), items })
    }

    /// Removes and adds what is different.
    fn with_runs(&self, runs: &Runs) -> Option<Self> {
        let entries = self.table.shape().entries();
        let parts = |item: RunItem| (item.place / entries, Entry((item.place % entries) as u32));
        if runs.items.len() > self.capacity() || runs.items.iter().any(|item| item.value != 0) {
            return None;
        }
        let (mut filter, old) = (self.clone(), self.runs()?.items);
        let mut removed = without(&old, &runs.items).into_iter().map(parts);
        let gone = removed.all(|(bin, entry)| filter.table.remove_entry(bin, entry));
        let mut added = without(&runs.items, &old).into_iter().map(parts);
        (gone && added.all(|(bin, entry)| filter.table.insert_entry(bin, entry).is_ok())).then_some(filter)
    }
}

/// What is in the first of two ascending lists and not in the second, each as often as that.
fn without(list: &[RunItem], other: &[RunItem]) -> Vec<RunItem> {
    let mut other = other.iter().peekable();
    let mut rest = Vec::new();
    for &item in list {
        while other.next_if(|next| next.place < item.place).is_some() {}
        if other.next_if(|next| next.place == item.place).is_none() {
            rest.push(item);
        }
    }
    rest
}
