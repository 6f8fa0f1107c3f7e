//! Bloom filters: the classic one, the one that touches a single cache line, and how large they must be.
//!
//! | | cache lines per query | bits per key at 1/256 | adapts |
//! |---|---|---|---|
//! | [`BloomFilter`] | up to k, 2.7 on average if the key is absent | 11.6 | no |
//! | [`BlockedBloomFilter`] | 1 | 12.9 | no |
//!
//! Both hash a key once: everything is cut from its 128-bit digest.

mod blocked;
mod builder;
mod half;
mod line;
mod merge;
mod persist;
mod plain;
pub(crate) mod size;

pub use blocked::BlockedBloomFilter;
pub use builder::{BlockedBloomFilterBuilder, BloomFilterBuilder};
pub use plain::BloomFilter;

/// Ends the program as the standard library's collections do when they cannot grow.
fn out_of_memory() -> ! {
    std::alloc::handle_alloc_error(std::alloc::Layout::new::<u64>())
}

/// What both filters have in common: they count a key only if it sets a bit, and are equal if their bits are.
macro_rules! counted_by_bits {
    ($filter:ident) => {
        impl<H: KeyHasher> $filter<H> {
            /// Inserts a key that counts even if it is accepted already: for levels of a cascade, which count keys
            /// themselves.
            pub(crate) fn insert_counted(&mut self, digest: Digest) -> Result<(), FullError> {
                if self.len >= self.capacity {
                    return Err(FullError { len: self.len, capacity: self.capacity });
                }
                let fresh = self.set(digest);
                self.len += usize::from(!fresh);
                Ok(())
            }

            /// A full filter takes what it accepts already: no bit changes.
            #[cold]
            fn insert_full(&self, digest: Digest) -> Result<bool, FullError> {
                let full = FullError { len: self.len, capacity: self.capacity };
                if self.contains_digest(digest) { Ok(false) } else { Err(full) }
            }
        }

        impl<H: KeyHasher> Insert for $filter<H> {
            /// Full at its capacity: with more keys, its false-positive rate would be higher than promised. A key that
            /// the filter accepts already, because it was inserted before or by chance, does not count.
            #[inline(always)]
            fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
                if self.len >= self.capacity {
                    return self.insert_full(digest);
                }
                Ok(self.set(digest))
            }

            fn clear(&mut self) {
                self.words.fill(0);
                self.len = 0;
            }
        }

        /// Equal in parameters, hash function and bits. How many keys were counted depends on their order, and does
        /// not matter.
        impl<H: KeyHasher> PartialEq for $filter<H> {
            fn eq(&self, other: &Self) -> bool {
                let parameters = |filter: &Self| (filter.probes, filter.capacity);
                parameters(self) == parameters(other)
                    && self.hasher == other.hasher
                    && self.words == other.words
            }
        }

        /// Inserts all keys, even beyond the capacity: none is lost, but the false-positive rate then rises above the
        /// one that was asked for. [`insert`](Insert::insert) refuses instead.
        impl<H: KeyHasher, K: Key> Extend<K> for $filter<H> {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                crate::filter::extend(self, keys, |filter, digest| {
                    filter.set(digest);
                });
            }
        }

        /// A filter with exactly the capacity of the keys, a rate of 1/256 and a random seed. Like all collections of
        /// the standard library it aborts the program if it cannot allocate the memory; builders return an error.
        impl<K: Key> FromIterator<K> for $filter {
            fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
                let keys: Vec<K> = keys.into_iter().collect();
                let empty = Self::with_capacity(keys.len().max(1));
                let mut filter = empty.unwrap_or_else(|_| super::out_of_memory());
                filter.extend(keys);
                filter
            }
        }
    };
}
use counted_by_bits;
