//! The cuckoo family from outside: the load it reaches, its false positives before and after repairs, and what
//! its papers say of them.
//!
//! Everything is seeded. `BESOM_FULL=1 cargo test --release --test all cuckoo:: -- --nocapture` runs the large sizes,
//! too, and prints the figures.

mod load;
mod rates;
mod support;
mod trace;

use besom::cuckoo::AdaptiveCuckooFilterBuilder;
use besom::cuckoo::{AdaptiveCuckooFilter, AdaptiveVariant};
use besom::{Adaptive, Filter, Key, MemoryRemote};

/// Whether the large sizes are wanted.
fn is_full() -> bool {
    std::env::var_os("BESOM_FULL").is_some_and(|value| value == "1")
}

/// A filter with the remote that it was filled with.
struct Stored<V: AdaptiveVariant> {
    filter: AdaptiveCuckooFilter<V>,
    remote: MemoryRemote,
}

impl<V: AdaptiveVariant> Stored<V> {
    /// Builds the filter and inserts all keys.
    fn new<K: Key>(builder: AdaptiveCuckooFilterBuilder<V>, keys: impl IntoIterator<Item = K>) -> Self {
        let (mut filter, mut remote) = (builder.build().unwrap(), MemoryRemote::new());
        for key in keys {
            assert!(filter.insert(&key, &mut remote).unwrap(), "the keys are different");
        }
        Self { filter, remote }
    }

    /// Asks for a key that is not stored and repairs the false positive, if it is one.
    fn is_false_positive<K: Key>(&mut self, key: &K) -> bool {
        let accepted = self.filter.contains(key);
        if accepted {
            self.filter.adapt(key, &mut self.remote).unwrap();
        }
        accepted
    }
}

/// Every filter of the family can be shared between threads.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<besom::cuckoo::RemoteCuckooFilter>();
    is_shared::<besom::cuckoo::CuckooingFilter>();
    is_shared::<besom::cuckoo::CyclicFilter<2>>();
    is_shared::<besom::cuckoo::SwappingFilter>();
    is_shared::<besom::cuckoo::CuckooFilter>();
    is_shared::<AdaptiveCuckooFilterBuilder<besom::cuckoo::Inert>>();
};
