//! The list of everything that can be measured. A new filter is one more entry in [`all`].

mod besom;
mod limit;
mod others;

use ::besom::{
    AdaptiveBloomFilter, BinFilter, BlockedBloomFilter, BloomFilter, BroomFilter, Cascade, CuckooFilter,
    CuckooingFilter, CyclicFilter, ExtensionFilter, Ground, PartialKeyCuckooFilter, QuotientFilter,
    SwappingFilter, TelescopingFilter, TinySet, UncompressedTelescopingFilter, WhitelistFilter,
};

use self::besom::{adaptive, adaptive_but_for_few, adaptive_with_keys, plain};
use crate::subject::{Entry, Shape};

/// An entry by the way in which it is measured, its name, the type of the filter, and what else there is to know.
///
/// Filters with slots say `slots` after their type, and get the load of the shape, and `on` if their ground is forced; those of the cuckoo family `bins` and
/// then tables and slots of a bin: no shape of theirs can be filled further than 0.96, so a higher load is measured there.
macro_rules! entry {
    ($way:ident, $name:literal, $filter:ty $(, $remark:literal)?) => {
        entry!(@ $way, $name, $filter, "" $(, $remark)?;)
    };
    ($way:ident, $name:literal, $filter:ty, slots $(, $remark:literal)?) => {
        entry!(@ $way, $name, $filter, ", max_load(load)" $(, $remark)?; |s| max_load(s.load))
    };
    ($way:ident, $name:literal, $filter:ty, slots on $ground:ident $(, $remark:literal)?) => {
        entry!(
            @ $way, $name, $filter, concat!(", max_load(load), ground(", stringify!($ground), ")") $(, $remark)?;
            |s| max_load(s.load) ground(Ground::$ground)
        )
    };
    ($way:ident, $name:literal, $filter:ty, bins $(($tables:literal, $slots:literal))? $(, $remark:literal)?) => {
        entry!(
            @ $way, $name, $filter, ", max_load(load up to 0.96)" $(, $remark)?;
            |s| max_load(s.load.min(0.96)) $(shape($tables, $slots))?
        )
    };
    (
        @ $way:ident, $name:literal, $filter:ty, $load:expr $(, $remark:literal)?;
        $(|$shape:ident| $($call:ident($($value:expr),+))+)?
    ) => {
        $way(
            $name,
            concat!(
                "besom::", stringify!($filter), ": capacity(items), false_positive_rate(rate)", $load $(, "; ", $remark)?
            ),
            |shape: &Shape| {
                let builder = <$filter>::builder().capacity(shape.items).false_positive_rate(shape.rate);
                $(let $shape = shape; let builder = builder$(.$call($($value),+))+;)?
                builder.seed(shape.seed).build()
            },
        )
    };
}

/// Everything that can be measured, in the order of the reports.
///
/// Filters of this project are `plain` if they work alone, `adaptive` if they need a remote to repair false positives,
/// and `adaptive_with_keys` if they need the stored keys already while inserting.
pub(crate) fn all() -> Vec<Entry> {
    vec![
        limit::limit(),
        // The filters of this project.
        entry!(plain, "quotient", QuotientFilter, slots),
        entry!(plain, "bins", BinFilter, slots),
        entry!(adaptive, "telescoping", TelescopingFilter, slots),
        entry!(adaptive, "telescoping-uncompressed", UncompressedTelescopingFilter, slots),
        entry!(adaptive, "extension", ExtensionFilter, slots),
        entry!(adaptive, "extension-quotient", ExtensionFilter, slots on Quotient),
        entry!(adaptive, "extension-bins", ExtensionFilter, slots on Bins),
        entry!(
            adaptive_but_for_few,
            "broom",
            BroomFilter,
            slots,
            "an insertion that collides reads the remote, and is left out where that stores nothing"
        ),
        entry!(adaptive_but_for_few, "broom-quotient", BroomFilter, slots on Quotient, "as `broom`"),
        entry!(adaptive_but_for_few, "broom-bins", BroomFilter, slots on Bins, "as `broom`"),
        entry!(plain, "bloom", BloomFilter),
        entry!(plain, "blocked-bloom", BlockedBloomFilter),
        entry!(adaptive, "adaptive-bloom", AdaptiveBloomFilter),
        entry!(adaptive, "cascade", Cascade<QuotientFilter>, "level 0 filled to 95%"),
        entry!(plain, "whitelist", WhitelistFilter, "measured as it is built: no false positive is listed"),
        entry!(plain, "tinyset", TinySet, "blocks of 64 bytes"),
        entry!(plain, "cuckoo-partial", PartialKeyCuckooFilter, bins, "k = 2, b = 4"),
        entry!(adaptive_with_keys, "cuckoo", CuckooFilter, bins(2, 4), "k = 2, b = 4"),
        entry!(adaptive_with_keys, "cuckoo-4x1", CuckooFilter, bins(4, 1), "k = 4, b = 1"),
        entry!(adaptive_with_keys, "cuckooing", CuckooingFilter, bins(4, 1), "k = 4, b = 1"),
        entry!(adaptive_with_keys, "cyclic-1", CyclicFilter<1>, bins(4, 1), "k = 4, b = 1"),
        entry!(adaptive_with_keys, "cyclic-2", CyclicFilter<2>, bins(4, 1), "k = 4, b = 1"),
        entry!(adaptive_with_keys, "cyclic-3", CyclicFilter<3>, bins(4, 1), "k = 4, b = 1"),
        entry!(adaptive_with_keys, "swapping", SwappingFilter, bins(2, 4), "k = 2, b = 4"),
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
