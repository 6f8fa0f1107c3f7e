//! Everything that can be measured. The filters of this project come from its roster.

mod besom;
mod limit;
mod others;

use crate::subject::Entry;

/// Everything that can be measured, in the order of the reports: the machine's limit, the filters of this project,
/// those of others.
pub(crate) fn all() -> Vec<Entry> {
    let others = [
        others::qfilter(),
        others::qfilter_xxh3(),
        others::fastbloom(),
        others::fastbloom_xxh3(),
        others::xorf(),
        others::cuckoofilter(),
    ];
    std::iter::once(limit::limit()).chain(besom::all()).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::all;
    use crate::heap;
    use crate::keys::{Keys, Role};
    use crate::subject::Shape;

    #[test]
    fn names_are_unique_and_fit_for_a_command_line() {
        let entries = all();
        let names: HashSet<&str> = entries.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), entries.len());
        for name in names {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(!name.is_empty() && name.chars().all(plain), "{name}");
        }
    }

    /// What a filter says of its memory must be what the allocator says.
    #[test]
    fn the_memory_in_the_statistics_is_the_memory_in_use() {
        let keys = Keys::new(6);
        let shape = Shape { items: 100_000, load: 0.9, rate: 1.0 / 256.0, seed: 1 };
        let members = keys.range(Role::Member, 0, shape.items);
        let strangers = keys.range(Role::Stranger, 0, 100_000);
        for entry in all() {
            // What all filters of a process share, such as tables of constants, is made with the first one.
            drop((entry.build)(&shape).unwrap());
            let before = heap::live();
            let mut subject = (entry.build)(&shape).unwrap();
            subject.insert_all(&members).unwrap();
            subject.adapt_all(&strangers).unwrap();
            let held = 8.0 * (heap::live() - before - subject.foreign_bytes()) as f64;
            let Some(stats) = subject.stats() else { continue };
            // A Bloom filter counts no key that it accepted before.
            let counted = members.len() * 99 / 100..=members.len();
            assert!(counted.contains(&stats.items), "{}: {}", entry.name, stats.items);
            let admitted = stats.bits + stats.working_bits;
            let error = (admitted as f64 - held) / held;
            assert!(error.abs() < 0.02, "{} holds {held} bits and admits {admitted}", entry.name);
        }
    }

    #[test]
    fn every_subject_finds_all_members_and_few_strangers() {
        let keys = Keys::new(5);
        let shape = Shape { items: 10_000, load: 0.9, rate: 1.0 / 256.0, seed: 1 };
        let members = keys.range(Role::Member, 0, shape.items);
        let strangers = keys.range(Role::Stranger, 0, 100_000);
        for entry in all() {
            for build in entry.bare.iter().chain([&entry.build]) {
                let mut subject = build(&shape).unwrap();
                subject.insert_all(&members).unwrap();
                let (found, hits) = (subject.count(&members), subject.count(&strangers));
                if subject.is_filter() {
                    assert_eq!(found, members.len(), "{} loses keys", entry.name);
                    assert!(hits < 5_000, "{}: {hits} false positives of 100000", entry.name);
                }
                for (keys, single) in [(&members, found), (&strangers, hits)] {
                    let batched = subject.count_batched(keys).unwrap_or(single);
                    assert_eq!(batched, single, "{}: batched answers differ", entry.name);
                }
                // A repair may turn a stranger that was rejected before into a false positive, but rarely.
                let met = subject.adapt_all(&strangers).unwrap().hits;
                assert!(met <= hits + hits / 5, "{}: {met} false positives, not {hits}", entry.name);
                if subject.is_filter() {
                    assert_eq!(subject.count(&members), members.len(), "{} loses keys", entry.name);
                }
            }
        }
    }
}
