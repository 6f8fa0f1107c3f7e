//! Filters as runs of items, and what changed between two of them: what compact deltas are made of.
//!
//! ```text
//! counters          8 bytes each
//! places            of the runs that changed, by Rice's code
//! for each of them  0: one more item without a repair, at the end; its rest
//!                   1: the whole run; items in unary; for each its rest, and 0, or 1 and the value of its repair
//! ```

use xxhash_rust::xxh3::Xxh3Default;

use super::Persist;
use super::rice::{self, BitReader, BitWriter};

/// One item of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunItem {
    /// Items of one place are a run; their order is part of the filter.
    pub(crate) place: u64,
    /// What else there is to its fingerprint.
    pub(crate) rest: u64,
    /// Its repair; 0 if there is none.
    pub(crate) value: u64,
}

/// All items of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runs {
    /// Places are below this.
    pub(crate) bound: u64,
    /// The bits of a rest.
    pub(crate) bits: u32,
    /// Numbers that belong to the filter and not to an item.
    pub(crate) counters: Vec<u64>,
    /// By ascending places.
    pub(crate) items: Vec<RunItem>,
}

/// A filter that consists of runs.
pub(crate) trait HasRuns: Persist {
    /// All its items; `None` on a table that has none.
    fn runs(&self) -> Option<Runs>;

    /// The filter of the same measures with other items, within the bounds of its own. `None` if there is none.
    fn with_runs(&self, runs: &Runs) -> Option<Self>;
}

impl Runs {
    /// A checksum of everything.
    pub(crate) fn checksum(&self) -> u64 {
        let mut sum = Xxh3Default::new();
        let mut add = |number: u64| sum.update(&number.to_le_bytes());
        [self.bound, self.bits.into(), self.counters.len() as u64].into_iter().for_each(&mut add);
        self.counters.iter().copied().for_each(&mut add);
        for RunItem { place, rest, value } in &self.items {
            [*place, *rest, *value].into_iter().for_each(&mut add);
        }
        sum.digest()
    }

    /// What turns these runs into others; `None` if they are not of the same measures.
    pub(crate) fn difference(&self, new: &Self) -> Option<Vec<u8>> {
        let measures = |runs: &Self| (runs.bound, runs.bits, runs.counters.len());
        if measures(self) != measures(new) {
            return None;
        }
        let changed: Vec<_> = pairs(&self.items, &new.items).filter(|(old, new)| old != new).collect();
        let place =
            |&(old, new): &(&[RunItem], &[RunItem])| old.first().or(new.first()).map_or(0, |item| item.place);
        let mut writer = BitWriter::default();
        rice::write(&changed.iter().map(place).collect::<Vec<u64>>(), &mut writer);
        changed.iter().for_each(|(old, new)| self.put_run(old, new, &mut writer));
        let mut bytes = new.counters.iter().flat_map(|counter| counter.to_le_bytes()).collect::<Vec<u8>>();
        bytes.extend(writer.finish());
        Some(bytes)
    }

    fn put_run(&self, old: &[RunItem], new: &[RunItem], writer: &mut BitWriter) {
        if let Some((RunItem { rest, value: 0, .. }, before)) = new.split_last()
            && before == old
        {
            writer.put(0, 1);
            return writer.put_long(*rest, self.bits);
        }
        writer.put(1, 1);
        new.iter().for_each(|_| writer.put(1, 1));
        writer.put(0, 1);
        for RunItem { rest, value, .. } in new {
            writer.put_long(*rest, self.bits);
            writer.put((*value != 0).into(), 1);
            if *value != 0 {
                let bits = value.ilog2();
                writer.put(bits.into(), VALUE_BITS);
                writer.put_long(*value, bits);
            }
        }
    }

    /// The runs that a difference makes of these; `None` if it is none.
    pub(crate) fn changed(&self, bytes: &[u8]) -> Option<Self> {
        let (counters, bits) = bytes.split_at_checked(8 * self.counters.len())?;
        let counters = counters.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let mut reader = BitReader::new(bits);
        let places = rice::read(&mut reader, self.bound)?;
        if !places.is_sorted_by(|one, other| one < other) {
            return None;
        }
        let (mut items, mut old) = (Vec::with_capacity(self.items.len()), &self.items[..]);
        for place in places {
            let (before, rest) = old.split_at(old.partition_point(|item| item.place < place));
            let (run, behind) = rest.split_at(rest.partition_point(|item| item.place == place));
            items.extend_from_slice(before);
            self.take_run(place, run, &mut reader, &mut items)?;
            old = behind;
        }
        items.extend_from_slice(old);
        reader.is_at_end().then_some(Self { counters, items, ..*self })
    }

    fn take_run(
        &self,
        place: u64,
        old: &[RunItem],
        reader: &mut BitReader<'_>,
        items: &mut Vec<RunItem>,
    ) -> Option<()> {
        if reader.take(1)? == 0 {
            items.extend_from_slice(old);
            items.push(RunItem { place, rest: reader.take(self.bits)?, value: 0 });
            return Some(());
        }
        let mut len = 0;
        while reader.take(1)? == 1 {
            len += 1;
        }
        for _ in 0..len {
            let rest = reader.take(self.bits)?;
            let value = if reader.take(1)? == 0 {
                0
            } else {
                let bits = reader.take(VALUE_BITS)? as u32;
                1 << bits | reader.take(bits)?
            };
            items.push(RunItem { place, rest, value });
        }
        Some(())
    }
}

/// The bits that say how many bits a value has behind its first one.
const VALUE_BITS: u32 = 6;

/// The runs of two filters, by ascending places; an empty one where only the other has a run.
fn pairs<'i>(
    mut old: &'i [RunItem],
    mut new: &'i [RunItem],
) -> impl Iterator<Item = (&'i [RunItem], &'i [RunItem])> {
    std::iter::from_fn(move || {
        let place = old.first().into_iter().chain(new.first()).map(|item| item.place).min()?;
        let take = |items: &mut &'i [RunItem]| {
            // Runs are short.
            let len = items.iter().take_while(|item| item.place == place).count();
            let (run, rest) = items.split_at(len);
            *items = rest;
            run
        };
        Some((take(&mut old), take(&mut new)))
    })
}

#[cfg(test)]
mod tests {
    //! Catches: differences that lead elsewhere, that are larger than promised, arbitrary bytes that panic.
    use super::*;
    use crate::testing::Random;

    fn random_runs(random: &mut Random, count: u64) -> Runs {
        let bound = 1 + random.below(100);
        let item = |random: &mut Random| RunItem {
            place: random.below(bound),
            rest: random.below(16),
            value: if random.one_in(3) { random.next() >> random.below(64) } else { 0 },
        };
        let mut items: Vec<RunItem> = (0..count).map(|_| item(random)).collect();
        items.sort_by_key(|item| item.place);
        Runs { bound, bits: 4, counters: vec![random.next(), 7], items }
    }

    #[test]
    fn differences_lead_from_old_to_new() {
        let mut random = Random::new(11);
        for _ in 0..3000 {
            let count = random.below(100);
            let old = random_runs(&mut random, count);
            let mut new = old.clone();
            new.items.retain(|_| !random.one_in(10));
            for _ in 0..random.below(5) {
                let place = random.below(new.bound);
                let at = new.items.partition_point(|item| item.place <= place);
                new.items.insert(at, RunItem { place, rest: random.below(16), value: 0 });
            }
            new.counters[0] = random.next();
            let difference = old.difference(&new).unwrap();
            assert_eq!(old.changed(&difference), Some(new));
            // Damaged ones lead to runs in order, or nowhere; which ones is for checksums to say.
            let mut damaged = difference.clone();
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
            if let Some(runs) = old.changed(&damaged) {
                assert!(runs.items.is_sorted_by_key(|item| item.place));
                assert!(runs.items.iter().all(|item| item.place < runs.bound && item.rest < 16));
            }
        }
    }
}
