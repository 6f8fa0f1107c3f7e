//! Filters shared by threads: they do what the filter inside does, nobody who asks waits for a remote, and a panic stays where
//! it happened.

mod panics;
mod play;
mod queries;
mod stress;
mod types;
mod waiting;

/// How many times a loop is to run: a fifth of the full number unless `BESOM_FULL` is set.
fn times(full: u64) -> u64 {
    if std::env::var_os("BESOM_FULL").is_some() { full } else { full.div_ceil(5) }
}

/// Calls a generic function for every adaptive family: `check(name, |capacity, seed| filter)`.
#[macro_export]
macro_rules! for_every_family {
    ($check:ident) => {
        for_every_family!(@ $check,
            "telescoping" besom::TelescopingFilter,
            "telescoping-reset" besom::TelescopingFilter => overflow(besom::Overflow::Reset),
            "telescoping, growing" besom::TelescopingFilter => growable(),
            "telescoping-uncompressed" besom::telescoping::UncompressedTelescopingFilter,
            "extension" besom::ExtensionFilter,
            "extension-bins" besom::ExtensionFilter => table(besom::Table::Bins),
            "extension-reset" besom::ExtensionFilter => overflow(besom::Overflow::Reset),
            "extension, growing" besom::ExtensionFilter => growable(),
            "cuckoo-remote" besom::cuckoo::RemoteCuckooFilter,
            "cuckooing" besom::cuckoo::CuckooingFilter,
            "cyclic-2" besom::cuckoo::CyclicFilter<2>,
            "swapping" besom::cuckoo::SwappingFilter,
            "adaptive-bloom" besom::cascade::AdaptiveBloomFilter,
            "broom" besom::BroomFilter,
            "cascade" besom::cascade::Cascade<besom::quotient::QuotientFilter>,
        );
    };
    (@ $check:ident, $($name:literal $filter:ty $(=> $call:ident($($value:expr)?))?,)*) => {$(
        $check($name, |capacity, seed| {
            <$filter>::builder().capacity(capacity)$(.$call($($value)?))?.false_positive_rate(0.1).seed(seed).build()
        });
    )*};
}
