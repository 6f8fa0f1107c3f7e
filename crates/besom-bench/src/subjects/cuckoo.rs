//! The cuckoo family: all members with the slots that the shape asks for.

use besom::cuckoo::{AdaptiveCuckooFilter, AdaptiveVariant, Cuckooing, Cyclic, Plain, Swapping, Variant};
use besom::{CuckooFilterBuilder, PartialKeyCuckooFilter};

use super::besom::{adaptive_with_keys, plain};
use crate::subject::{Entry, Shape};

/// No preset can be filled further; a higher load is measured at this one.
const HIGHEST_LOAD: f64 = 0.96;

/// The plain filter that needs no remote.
pub(crate) fn partial() -> Entry {
    plain(
        "cuckoo-partial",
        "besom::PartialKeyCuckooFilter, k = 2, b = 4: capacity(items), max_load(load up to 0.96), \
         false_positive_rate(rate)",
        |s| configured(PartialKeyCuckooFilter::builder(), s).build(),
        PartialKeyCuckooFilter::insert::<u64>,
    )
}

/// The plain filter of four slots a bin.
pub(crate) fn two_by_four() -> Entry {
    entry::<Plain>("cuckoo", "besom::CuckooFilter, k = 2, b = 4, configured like cuckoo-partial", (2, 4))
}

/// The plain filter of one slot a bin.
pub(crate) fn four_by_one() -> Entry {
    entry::<Plain>("cuckoo-4x1", "besom::CuckooFilter, k = 4, b = 1, configured like cuckoo-partial", (4, 1))
}

/// The filter that moves keys to their next table.
pub(crate) fn cuckooing() -> Entry {
    entry::<Cuckooing>(
        "cuckooing",
        "besom::CuckooingFilter, k = 4, b = 1, configured like cuckoo-partial",
        (4, 1),
    )
}

/// The filter with `S` selector bits.
pub(crate) fn cyclic<const S: u32>() -> Entry {
    let name = ["cyclic-1", "cyclic-2", "cyclic-3"][S as usize - 1];
    entry::<Cyclic<S>>(name, "besom::CyclicFilter, k = 4, b = 1, configured like cuckoo-partial", (4, 1))
}

/// The filter that swaps keys within a bin.
pub(crate) fn swapping() -> Entry {
    entry::<Swapping>(
        "swapping",
        "besom::SwappingFilter, k = 2, b = 4, configured like cuckoo-partial",
        (2, 4),
    )
}

fn entry<V: AdaptiveVariant>(
    name: &'static str,
    note: &'static str,
    (tables, slots_per_bin): (usize, usize),
) -> Entry {
    adaptive_with_keys(name, note, move |shape| {
        configured(AdaptiveCuckooFilter::<V>::builder(), shape).shape(tables, slots_per_bin).build()
    })
}

fn configured<V: Variant>(builder: CuckooFilterBuilder<V>, shape: &Shape) -> CuckooFilterBuilder<V> {
    builder
        .capacity(shape.items)
        .max_load(shape.load.min(HIGHEST_LOAD))
        .false_positive_rate(shape.rate)
        .seed(shape.seed)
}
