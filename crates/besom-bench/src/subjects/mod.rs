//! The list of everything that can be measured. A new filter is one more entry in [`all`].

mod besom;
mod cuckoo;
mod limit;
mod others;

use ::besom::{
    AdaptiveBloomFilter, BlockedBloomFilter, BloomFilter, BroomFilter, Cascade, ExtensionFilter,
    QuotientFilter, TelescopingFilter, TinySet, UncompressedTelescopingFilter, WhitelistFilter,
};

use crate::subject::Entry;

/// Everything that can be measured, in the order of the reports.
///
/// Filters of this project are registered by [`besom::plain`] if they work alone, by [`besom::adaptive`] if they
/// need a remote to repair false positives, and by [`besom::adaptive_with_keys`] if they need the stored keys
/// already while inserting.
pub(crate) fn all() -> Vec<Entry> {
    vec![
        limit::limit(),
        // The filters of this project.
        besom::plain(
            "quotient",
            "besom::QuotientFilter: capacity(items), max_load(load), false_positive_rate(rate)",
            |s| {
                QuotientFilter::builder()
                    .capacity(s.items)
                    .max_load(s.load)
                    .false_positive_rate(s.rate)
                    .seed(s.seed)
                    .build()
            },
            QuotientFilter::insert::<u64>,
        ),
        besom::adaptive(
            "telescoping",
            "besom::TelescopingFilter: capacity(items), max_load(load), false_positive_rate(rate)",
            |s| {
                TelescopingFilter::builder()
                    .capacity(s.items)
                    .max_load(s.load)
                    .false_positive_rate(s.rate)
                    .seed(s.seed)
                    .build()
            },
        ),
        besom::adaptive(
            "telescoping-uncompressed",
            "besom::UncompressedTelescopingFilter: capacity(items), max_load(load), false_positive_rate(rate)",
            |s| {
                UncompressedTelescopingFilter::builder()
                    .capacity(s.items)
                    .max_load(s.load)
                    .false_positive_rate(s.rate)
                    .seed(s.seed)
                    .build()
            },
        ),
        besom::adaptive(
            "extension",
            "besom::ExtensionFilter: capacity(items), max_load(load), false_positive_rate(rate)",
            |s| {
                ExtensionFilter::builder()
                    .capacity(s.items)
                    .max_load(s.load)
                    .false_positive_rate(s.rate)
                    .seed(s.seed)
                    .build()
            },
        ),
        besom::adaptive_with_keys(
            "broom",
            "besom::BroomFilter: capacity(items), max_load(load), false_positive_rate(rate); an insertion that \
             collides reads the remote",
            |s| {
                BroomFilter::builder()
                    .capacity(s.items)
                    .max_load(s.load)
                    .false_positive_rate(s.rate)
                    .seed(s.seed)
                    .build()
            },
        ),
        besom::plain(
            "bloom",
            "besom::BloomFilter: capacity(items), false_positive_rate(rate)",
            |s| BloomFilter::builder().capacity(s.items).false_positive_rate(s.rate).seed(s.seed).build(),
            BloomFilter::insert::<u64>,
        ),
        besom::plain(
            "blocked-bloom",
            "besom::BlockedBloomFilter: capacity(items), false_positive_rate(rate)",
            |s| {
                BlockedBloomFilter::builder()
                    .capacity(s.items)
                    .false_positive_rate(s.rate)
                    .seed(s.seed)
                    .build()
            },
            BlockedBloomFilter::insert::<u64>,
        ),
        besom::adaptive(
            "adaptive-bloom",
            "besom::AdaptiveBloomFilter: capacity(items), false_positive_rate(rate)",
            |s| {
                AdaptiveBloomFilter::builder()
                    .capacity(s.items)
                    .false_positive_rate(s.rate)
                    .seed(s.seed)
                    .build()
            },
        ),
        besom::adaptive(
            "cascade",
            "besom::Cascade<QuotientFilter>: capacity(items), false_positive_rate(rate); level 0 filled to 95%",
            |s| {
                let builder = Cascade::<QuotientFilter>::builder().capacity(s.items);
                builder.false_positive_rate(s.rate).seed(s.seed).build()
            },
        ),
        besom::plain(
            "whitelist",
            "besom::WhitelistFilter: capacity(items), false_positive_rate(rate); adapts without a remote",
            |s| WhitelistFilter::builder().capacity(s.items).false_positive_rate(s.rate).seed(s.seed).build(),
            WhitelistFilter::insert::<u64>,
        ),
        besom::plain(
            "tinyset",
            "besom::TinySet: capacity(items), false_positive_rate(rate), blocks of 64 bytes",
            |s| TinySet::builder().capacity(s.items).false_positive_rate(s.rate).seed(s.seed).build(),
            TinySet::insert::<u64>,
        ),
        cuckoo::partial(),
        cuckoo::two_by_four(),
        cuckoo::four_by_one(),
        cuckoo::cuckooing(),
        cuckoo::cyclic::<1>(),
        cuckoo::cyclic::<2>(),
        cuckoo::cyclic::<3>(),
        cuckoo::swapping(),
        // The filters of others.
        others::qfilter(),
        others::qfilter_xxh3(),
        others::fastbloom(),
        others::fastbloom_xxh3(),
        others::xorf(),
        others::cuckoofilter(),
    ]
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
            assert_eq!(stats.items, members.len(), "{}", entry.name);
            let error = (stats.bits as f64 - held) / held;
            assert!(error.abs() < 0.02, "{} holds {held} bits and admits {}", entry.name, stats.bits);
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
                let met = subject.adapt_all(&strangers).unwrap();
                assert!(met <= hits + hits / 5, "{}: {met} false positives, not {hits}", entry.name);
                if subject.is_filter() {
                    assert_eq!(subject.count(&members), members.len(), "{} loses keys", entry.name);
                }
            }
        }
    }
}
