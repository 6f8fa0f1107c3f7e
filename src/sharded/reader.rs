//! Queries without a lock each: all shards stay locked until somebody wants to change one.

use std::ptr::NonNull;
use std::sync::RwLockReadGuard;
use std::sync::atomic::AtomicUsize;

use crate::{Digest, Filter, Key, KeyHasher};

use super::shard::{Shard, any_waiting};
use super::{Sharded, one_of};

/// Asks a [`Sharded`] filter at nearly the speed of the filter inside: see [`Sharded::reader`].
///
/// It holds the read locks of all shards. Before each query it looks, with an ordinary load, whether somebody waits to
/// change a shard; if so, it lets go of all of them, and the change is made first. So a change waits until the next
/// query of each reader, and is seen by the one after it.
///
/// **A reader that asks nothing keeps all changes waiting**: drop it when there is nothing more to ask. A thread that
/// has one must neither change the filter nor ask it by other means while others change it: it would wait for itself.
///
/// If a shard is in doubt when the locks are taken, the reader takes none and locks a shard for each query, until
/// [`give_way`](Self::give_way) is called or there is a new reader.
#[derive(Debug)]
pub struct Reader<'s, F: Filter> {
    shared: &'s Sharded<F>,
    hasher: F::Hasher,
    waiting: &'s AtomicUsize,
    /// What `guards` lead to, in their order. Or none: there is one test for both.
    filters: Vec<NonNull<F>>,
    /// One for each shard, or none at all.
    guards: Vec<RwLockReadGuard<'s, F>>,
}

impl<'s, F: Filter> Reader<'s, F> {
    pub(super) fn new(shared: &'s Sharded<F>) -> Self {
        let (hasher, waiting) = (shared.hasher.clone(), shared.waiting.count());
        let mut reader = Self { shared, hasher, waiting, filters: Vec::new(), guards: Vec::new() };
        reader.lock();
        reader
    }

    fn lock(&mut self) {
        let guards: Option<Vec<_>> = self.shared.shards.iter().map(Shard::read).collect();
        self.guards = guards.unwrap_or_default();
        self.filters.extend(self.guards.iter().map(|filter| NonNull::from(&**filter)));
    }

    /// Whether the filter may have the key, with all changes that were made before this call.
    #[inline]
    pub fn contains<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.contains_digest(self.hasher.digest_key(key))
    }

    /// [`contains`](Self::contains) for those who have hashed already.
    #[inline]
    pub fn contains_digest(&mut self, digest: Digest) -> bool {
        if any_waiting(self.waiting) {
            self.give_way();
        }
        match self.filters.get(one_of(self.filters.len(), digest.hi)) {
            // SAFETY: the pointer is what a guard of `guards` led to. Guards stay where they are until `give_way` takes
            // them and all pointers away, or both are dropped; until then the filter is neither moved nor changed.
            Some(filter) => unsafe { filter.as_ref() }.contains_digest(digest),
            None => self.contains_by_lock(digest),
        }
    }

    #[cold]
    #[inline(never)]
    fn contains_by_lock(&self, digest: Digest) -> bool {
        self.shared.contains_digest(digest)
    }

    /// Lets those who wait change the filter: for whoever keeps a reader while there is nothing to ask.
    ///
    /// Locks prefer those who wait. Should this thread be faster than them nevertheless, it gives way at the next query
    /// again.
    #[cold]
    #[inline(never)]
    pub fn give_way(&mut self) {
        self.filters.clear();
        self.guards.clear();
        self.lock();
    }
}

#[cfg(test)]
mod tests {
    //! Catches: readers that keep changes waiting for ever, or miss what was changed.
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::one_of;
    use crate::{Filter, KeyHasher, QuotientFilter, Sharded};

    fn sharded(shards: usize, capacity: usize) -> Sharded<QuotientFilter> {
        Sharded::build(shards, capacity, |capacity, _| {
            QuotientFilter::builder().capacity(capacity).seed(1_u64).build()
        })
        .unwrap()
    }

    #[test]
    fn readers_give_way_and_see_every_key_that_was_inserted_before() {
        const KEYS: u64 = 4_000;
        for shards in [1, 4] {
            let (filter, inserted) = (sharded(shards, KEYS as usize), AtomicU64::new(0));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for key in 0..KEYS {
                        filter.insert(&key).unwrap();
                        inserted.store(key + 1, Ordering::Release);
                    }
                });
                for seed in 1..=2_u64 {
                    let (filter, inserted) = (&filter, &inserted);
                    scope.spawn(move || {
                        let (mut reader, mut random) = (filter.reader(), crate::testing::Random::new(seed));
                        loop {
                            let known = inserted.load(Ordering::Acquire);
                            let key = random.below(known.max(1));
                            assert!(reader.contains(&key) || known == 0, "{key} of {known}");
                            if known == KEYS {
                                break;
                            }
                        }
                    });
                }
            });
            assert_eq!(filter.len(), KEYS as usize);
        }
    }

    #[test]
    fn readers_answer_as_the_filter_does() {
        let filter = sharded(8, 1_000);
        filter.insert_many(&(0..1_000_u64).collect::<Vec<_>>()).unwrap();
        let mut reader = filter.reader();
        assert!((0..20_000_u64).all(|key| reader.contains(&key) == filter.contains(&key)));
        reader.give_way();
        assert!(reader.contains(&5_u64));
        drop(reader);
        filter.clear();
        assert!(!filter.reader().contains(&5_u64));
    }

    #[test]
    fn all_of_the_upper_half_names_the_shard_and_no_bit_of_it_is_given_away() {
        assert_eq!([0, 1, 3, 4096].map(|shards| one_of(shards, u64::MAX)), [0, 0, 1, 1564]);
        let filter = sharded(7, 100);
        let hi = |key: u64| filter.hasher().digest_key(&key).hi;
        assert!((0..100).all(|key| filter.shard_of(&key) == one_of(7, hi(key))));
        // Among the keys of one of 256 shards, every byte of the digest is still one of 256.
        let mates: Vec<u64> = (0..1 << 20).map(hi).filter(|&hi| one_of(256, hi) == 0).collect();
        for byte in 0..8 {
            let values: std::collections::HashSet<u8> =
                mates.iter().map(|hi| hi.to_le_bytes()[byte]).collect();
            assert_eq!(values.len(), 256, "byte {byte} of {} keys", mates.len());
        }
    }

    #[test]
    fn a_shard_in_doubt_answers_maybe() {
        let filter = sharded(1, 100);
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            filter.change("key", |_: &mut QuotientFilter| -> bool { panic!("a bug") })
        }));
        assert!(died.is_err() && filter.reader().contains("anything"));
        // It holds no lock, until it looks again.
        let mut reader = filter.reader();
        filter.clear();
        assert!(reader.guards.is_empty() && !reader.contains("anything"));
        reader.give_way();
        assert!(reader.guards.len() == 1 && !reader.contains("anything"));
    }
}
