//! A filter as the runs of equal fingerprints, for deltas between two states of it.

use crate::KeyHasher;
use crate::coding::{Extensions, Letters};
use crate::format::{RunItem, Runs};

use super::super::line::Entry;
use super::ExtendingBins;
use super::grow::FillingBins;

impl<H: KeyHasher> ExtendingBins<H> {
    /// All items by their fingerprints, bin, class and tag, with their extensions.
    pub(crate) fn runs(&self) -> Runs {
        let entries = self.table.shape().entries();
        let mut items = Vec::with_capacity(self.table.len);
        for bin in 0..self.table.bins() {
            let of_bin = self.table.items_of(bin);
            let values = self.values.load(bin, of_bin.len());
            items.extend(of_bin.iter().zip(values).map(|(Entry(entry), value)| RunItem {
                place: bin * entries + u64::from(entry),
                rest: 0,
                value: Extensions::number(value),
            }));
        }
        Runs { bound: self.table.bins() * entries, bits: 0, counters: vec![self.adaptations], items }
    }

    /// The filter with these items in its bins.
    pub(crate) fn with_runs(&self, runs: &Runs) -> Option<Self> {
        let &[adaptations] = &runs.counters[..] else { return None };
        if runs.items.len() > self.capacity {
            return None;
        }
        let entries = self.table.shape().entries();
        let mut filling = FillingBins::new(self.table.bins(), self.table.shape(), self.capacity).ok()?;
        for of_bin in runs.items.chunk_by(|one, other| one.place / entries == other.place / entries) {
            let items = of_bin
                .iter()
                .map(|item| Some((Entry((item.place % entries) as u32), Extensions::letter(item.value)?)));
            filling.fill(of_bin[0].place / entries, items.collect::<Option<_>>()?)?;
        }
        let (table, values) = filling.into_parts();
        Some(Self { table, values, adaptations, hasher: self.hasher.clone(), ..*self })
    }
}
