//! Queries without a lock each: all shards stay locked until somebody wants to change one.

use std::sync::RwLockReadGuard;

use crate::{Digest, Filter, Key, KeyHasher};

use super::Sharded;
use super::shard::Shard;

/// Asks a [`Sharded`] filter at nearly the speed of the filter inside: see [`Sharded::reader`].
///
/// It holds the read locks of all shards. Before each query it looks, with an ordinary load, whether somebody waits to
/// change a shard; if so, it lets go of all of them, and the change is made first. So a change waits until the next
/// query of each reader, and is seen by the one after it.
///
/// **A reader that asks nothing keeps all changes waiting**: drop it when there is nothing more to ask. A thread that
/// has one must neither change the filter nor ask it by other means while others change it: it would wait for itself.
#[derive(Debug)]
pub struct Reader<'s, F: Filter> {
    shared: &'s Sharded<F>,
    /// One for each shard; `None` for one that is in doubt.
    guards: Vec<Option<RwLockReadGuard<'s, F>>>,
}

impl<'s, F: Filter> Reader<'s, F> {
    pub(super) fn new(shared: &'s Sharded<F>) -> Self {
        let mut reader = Self { shared, guards: Vec::with_capacity(shared.shards.len()) };
        reader.lock();
        reader
    }

    fn lock(&mut self) {
        self.guards.extend(self.shared.shards.iter().map(Shard::read));
    }

    /// Whether the filter may have the key, with all changes that were made before this call.
    #[inline]
    pub fn contains<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.contains_digest(self.shared.hasher.digest_key(key))
    }

    /// [`contains`](Self::contains) for those who have hashed already.
    #[inline]
    pub fn contains_digest(&mut self, digest: Digest) -> bool {
        if self.shared.waiting.any() {
            self.give_way();
        }
        let filter = &self.guards[self.shared.shard(digest)];
        filter.as_ref().is_none_or(|filter| filter.contains_digest(digest))
    }

    /// Lets those who wait change the filter: for whoever keeps a reader while there is nothing to ask.
    ///
    /// Locks prefer those who wait. Should this thread be faster than them nevertheless, it gives way at the next query
    /// again.
    #[cold]
    #[inline(never)]
    pub fn give_way(&mut self) {
        self.guards.clear();
        self.lock();
    }
}

#[cfg(test)]
mod tests {
    //! Catches: readers that keep changes waiting for ever, or miss what was changed.
    use std::sync::atomic::{AtomicU64, Ordering};

    use crate::{Filter, QuotientFilter, Sharded};

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
    fn a_shard_in_doubt_answers_maybe() {
        let filter = sharded(1, 100);
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            filter.change("key", |_: &mut QuotientFilter| -> bool { panic!("a bug") })
        }));
        assert!(died.is_err() && filter.reader().contains("anything"));
    }
}
