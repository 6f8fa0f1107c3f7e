//! Shards of filters that need no remote.

use crate::{Digest, Filter, FullError, Insert, Key, KeyHasher, RemovalDisabled, Remove};

use super::{Sharded, ShardedError};

/// Keys that are hashed and given to their shards at a time.
const PART: usize = 1 << 16;

impl<F: Filter> Sharded<F> {
    /// Lets `change` change the filter of a key's shard in memory: for whatever a filter does beyond the methods here,
    /// such as the repairs of a [`WhitelistFilter`](crate::WhitelistFilter). Others who want that shard wait; if
    /// `change` panics, the shard is in doubt. Not for adaptive filters, whose remote it knows nothing of.
    ///
    /// # Errors
    ///
    /// [`ShardedError::InDoubt`].
    ///
    /// ```
    /// use besom::sharded::ShardedError;
    /// use besom::whitelist::WhitelistFilter;
    /// use besom::{Filter, Sharded};
    ///
    /// let filter = Sharded::build(4, 1000, |capacity, seed| {
    ///     WhitelistFilter::builder().capacity(capacity).seed(seed).build()
    /// })?;
    /// filter.insert("key")?;
    /// filter.change("absent", |shard| shard.adapt("absent"))??;
    /// # assert!(filter.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn change<K: Key + ?Sized, T>(
        &self,
        key: &K,
        change: impl FnOnce(&mut F) -> T,
    ) -> Result<T, ShardedError<std::convert::Infallible>> {
        self.change_shard(self.shard_of(key), change)
    }

    /// Changes the filter of a shard in memory.
    #[inline]
    fn change_shard<T, E>(
        &self,
        shard: usize,
        change: impl FnOnce(&mut F) -> T,
    ) -> Result<T, ShardedError<E>> {
        let mut filter = self.shards[shard].write().ok_or(ShardedError::InDoubt { shard })?;
        Ok(change(&mut filter))
    }
}

impl<F: Insert> Sharded<F> {
    /// Inserts a key. `false` if the filter accepted it before already.
    ///
    /// # Errors
    ///
    /// [`FullError`] if its shard is full, which with the room that [`build`](Self::build) gives comes when the filter
    /// is; [`ShardedError::InDoubt`].
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> Result<bool, ShardedError<FullError>> {
        self.insert_digest(self.hasher.digest_key(key))
    }

    /// [`insert`](Self::insert) for those who have hashed already.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_digest(&self, digest: Digest) -> Result<bool, ShardedError<FullError>> {
        Ok(self.change_shard(self.shard(digest), |filter| filter.insert_digest(digest))??)
    }

    /// Inserts a key unless the filter accepts it already; see [`Insert::insert_unique`]. Of all threads that insert
    /// the same key one gets `true`.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    ///
    /// ```
    /// use besom::{BinFilter, Filter, Sharded};
    ///
    /// let seen = Sharded::build(4, 1_000, |capacity, seed| BinFilter::builder().capacity(capacity).seed(seed).build())?;
    /// let first = std::thread::scope(|scope| {
    ///     let threads = [(); 4].map(|()| scope.spawn(|| seen.insert_unique("https://example.org")));
    ///     threads.map(|thread| thread.join().unwrap().unwrap())
    /// });
    /// assert_eq!((first.iter().filter(|&&first| first).count(), seen.len()), (1, 1));
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_unique<K: Key + ?Sized>(&self, key: &K) -> Result<bool, ShardedError<FullError>> {
        let digest = self.hasher.digest_key(key);
        Ok(self.change_shard(self.shard(digest), |filter| filter.insert_unique_digest(digest))??)
    }

    /// Inserts many keys, and says how many of them the filter did not accept before. Every shard is locked once for
    /// some ten thousand keys, which is several times faster than one by one.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert). Any part of the keys may be in then; all of them can be inserted again where a key
    /// that is there twice does no harm.
    pub fn insert_many<K: Key>(&self, keys: &[K]) -> Result<usize, ShardedError<FullError>> {
        let mut fresh = 0;
        let mut parts = vec![Vec::new(); self.shards.len()];
        for keys in keys.chunks(PART.max(64 * self.shards.len())) {
            for key in keys {
                let digest = self.hasher.digest_key(key);
                parts[self.shard(digest)].push(digest);
            }
            for (shard, digests) in parts.iter_mut().enumerate() {
                let inserted = self.change_shard(shard, |filter| filter.insert_digests(digests))?;
                fresh += inserted.map_err(|error| error.full)?;
                digests.clear();
            }
        }
        Ok(fresh)
    }

    /// Removes all keys; capacity and hash function stay. Ends all doubt that it can end: a shard that is not sound
    /// even then stays in doubt.
    pub fn clear(&self) {
        for shard in &self.shards {
            shard.reset(Insert::clear);
        }
    }
}

impl<F: Remove> Sharded<F> {
    /// Removes a key, once if it was inserted several times. `false`, and nothing changes, if the filter rejects it.
    /// [Only what was inserted](Remove::remove) may be removed.
    ///
    /// # Errors
    ///
    /// [`RemovalDisabled`], or [`ShardedError::InDoubt`].
    pub fn remove<K: Key + ?Sized>(&self, key: &K) -> Result<bool, ShardedError<RemovalDisabled>> {
        let digest = self.hasher.digest_key(key);
        Ok(self.change_shard(self.shard(digest), |filter| filter.remove_digest(digest))??)
    }
}
