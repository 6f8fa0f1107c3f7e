//! One filter for many threads: parts that are locked one by one.
//!
//! A key belongs to the shard that some of its hash bits name. Its filter is behind a `RwLock` of `std`: small, fair
//! enough, without a dependency, and its poisoning is just what is wanted here. Operations without a remote take the
//! write lock and are done. Those with one never wait for it under the lock: [`play`](crate::play) says how. What needs
//! all of the remote, or changes much of it (growth, a rehash), is done on a copy of the shard, which takes its place
//! afterwards.

mod address;
mod error;
mod persist;
mod plain;
mod ranged;
mod reader;
mod shard;
mod with_remote;

use crate::{BuildError, Digest, Filter, FilterStats, InvariantError, Key, KeyHasher, Seed, batch};

pub use error::ShardedError;
pub use reader::Reader;
pub use with_remote::WithRemote;

use address::MAX_SHARDS;
use shard::{Shard, Waiting};

/// Any filter, shared by many threads: everything is done through `&self`.
///
/// | | waits for |
/// |---|---|
/// | a query | a thread that is changing words of the same shard in memory; never for the remote |
/// | a change without a remote | queries and changes of the same shard |
/// | a change with a [remote](Self::with_remote) | other such changes of the same shard, and as a change without a remote while it changes memory |
///
/// **Rate and space** are those of the filter inside. Keys are given to shards by a product of [`Digest::hi`] in
/// which all of its bits have a part: in a shard, the bits that decide on false positives are as random as ever. Keys do not fall evenly, so every shard gets a little more room than its share, about 6 standard
/// deviations.
///
/// **How many shards?** Some for each thread: 16 on a small machine, 256 on a large one. Up to 4096.
///
/// **Panics.** A thread that panics while it changes a shard in memory (a bug in a filter or in a hash function) leaves
/// that shard *in doubt*: it answers "maybe present" to every query, and changes are refused with
/// [`ShardedError::InDoubt`], until it is cleared, rebuilt or [replaced](Self::replace). The other shards go on. A
/// remote that panics does no such thing.
///
/// Batches pay: [`contains_many`](Filter::contains_many) and [`insert_many`](Self::insert_many) lock every shard once
/// for many keys. A filter that does not change any more needs none of this: an `Arc` of it is asked by any number of
/// threads.
///
/// ```
/// use besom::quotient::QuotientFilter;
/// use besom::{Filter, Sharded};
///
/// let filter = Sharded::build(16, 10_000, |capacity, seed| {
///     QuotientFilter::builder().capacity(capacity).seed(seed).build()
/// })?;
/// std::thread::scope(|scope| {
///     for thread in 0..4_u64 {
///         let filter = &filter;
///         scope.spawn(move || (thread * 2_500..(thread + 1) * 2_500).for_each(|key| drop(filter.insert(&key))));
///     }
/// });
/// assert_eq!(filter.len(), 10_000);
/// assert!((0..10_000_u64).all(|key| filter.contains(&key)));
/// # Ok::<(), besom::BuildError>(())
/// ```
pub struct Sharded<F: Filter> {
    shards: Box<[Shard<F>]>,
    /// That of every shard.
    hasher: F::Hasher,
    /// Those who wait to change a shard.
    waiting: Waiting,
}

crate::filter::debug_by_figures!([F: Filter] Sharded<F>);

/// One of so many shards, by a product in which all of these bits have a part; 0 of none. No bit is the same for all
/// keys of a shard: remainders, selectors' chunks and extensions that are cut from `bits` stay as random as ever.
#[inline(always)]
fn one_of(shards: usize, bits: u64) -> usize {
    /// Odd, and without a pattern: the golden ratio.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    ((u128::from(bits.wrapping_mul(SPREAD)) * shards as u128) >> 64) as usize
}

/// How many keys each of so many shards must have room for, so that none of them is full before they have this many
/// together: the mean and 6 standard deviations, and a few for small numbers.
fn share(capacity: usize, shards: usize) -> usize {
    if shards <= 1 {
        return capacity;
    }
    let mean = capacity as f64 / shards as f64;
    (mean + 6.0 * mean.sqrt()).ceil() as usize + 8
}

impl<F: Filter> Sharded<F> {
    /// A filter for so many keys in so many shards. `make` gets the capacity of a shard and the seed, and makes its
    /// filter.
    ///
    /// # Errors
    ///
    /// What `make` says; [`BuildError::OutOfRange`] for no shards or more than 4096; [`BuildError::SeedsDiffer`] if the
    /// filters do not have one seed.
    pub fn build(
        shards: usize,
        capacity: usize,
        mut make: impl FnMut(usize, Seed) -> Result<F, BuildError>,
    ) -> Result<Self, BuildError> {
        if !(1..=MAX_SHARDS).contains(&shards) {
            let (value, max) = (shards as f64, MAX_SHARDS as f64);
            return Err(BuildError::OutOfRange { name: "shards", value, min: 1.0, max });
        }
        if capacity == 0 {
            return Err(BuildError::ZeroCapacity);
        }
        let seed = Seed::random();
        let filters: Result<Vec<F>, BuildError> =
            (0..shards).map(|_| make(share(capacity, shards), seed)).collect();
        Self::from_filters(filters?)
    }

    /// The filter of these shards.
    fn from_filters(filters: Vec<F>) -> Result<Self, BuildError> {
        let hasher = filters.first().ok_or(BuildError::ZeroCapacity)?.hasher().clone();
        if filters.iter().any(|filter| *filter.hasher() != hasher) {
            return Err(BuildError::SeedsDiffer);
        }
        let waiting = Waiting::default();
        let shards = filters.into_iter().map(|filter| Shard::new(filter, &waiting)).collect();
        Ok(Self { shards, hasher, waiting })
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The shard of a key.
    pub fn shard_of<K: Key + ?Sized>(&self, key: &K) -> usize {
        self.shard(self.hasher.digest_key(key))
    }

    /// The shard of a digest.
    #[inline]
    fn shard(&self, digest: Digest) -> usize {
        one_of(self.shards.len(), digest.hi)
    }

    /// Returns a handle for one thread that asks without locking a shard for each query: at nearly the speed of the
    /// filter inside. Changes wait until its next query.
    ///
    /// ```
    /// use besom::Sharded;
    /// use besom::quotient::QuotientFilter;
    ///
    /// let filter = Sharded::build(16, 1000, |capacity, seed| {
    ///     QuotientFilter::builder().capacity(capacity).seed(seed).build()
    /// })?;
    /// filter.insert("here")?;
    /// let mut reader = filter.reader();
    /// assert!(reader.contains("here"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reader(&self) -> Reader<'_, F> {
        Reader::new(self)
    }

    /// Lets `look` look at the filter of a shard: for whatever a filter says beyond [`Filter`]. Nobody can change the
    /// shard meanwhile, so `look` must not wait for anybody, nor ask this filter for anything else.
    ///
    /// # Errors
    ///
    /// [`ShardedError::InDoubt`].
    ///
    /// # Panics
    ///
    /// If there is no such shard.
    pub fn look<T, E>(&self, shard: usize, look: impl FnOnce(&F) -> T) -> Result<T, ShardedError<E>> {
        let filter = self.shards[shard].read().ok_or(ShardedError::InDoubt { shard })?;
        Ok(look(&filter))
    }

    /// Puts another filter in the place of a shard, in doubt or not, and returns nothing of the old one. Keys that the
    /// new one lacks are gone; where there is a remote, it must agree with the new one.
    ///
    /// # Errors
    ///
    /// [`BuildError::SeedsDiffer`] if the filter has another seed than the others.
    ///
    /// # Panics
    ///
    /// If there is no such shard.
    pub fn replace(&self, shard: usize, filter: F) -> Result<(), BuildError> {
        if *filter.hasher() != self.hasher {
            return Err(BuildError::SeedsDiffer);
        }
        let mut doubts = self.shards[shard].turn();
        self.shards[shard].set(filter);
        doubts.clear();
        Ok(())
    }

    /// The shards that are in doubt.
    pub fn in_doubt(&self) -> Vec<usize> {
        (0..self.shards.len()).filter(|&shard| self.shards[shard].read().is_none()).collect()
    }

    /// Asks about a part of a batch, under the locks of all shards.
    fn extend_answers(&self, digests: &[Digest], answers: &mut Vec<bool>) {
        let guards: Vec<_> = self.shards.iter().map(Shard::read).collect();
        let prepare = |&digest: &Digest| {
            let shard = self.shard(digest);
            let place = guards[shard].as_ref().map(|filter| {
                let place = filter.place(digest);
                filter.prefetch(place);
                place
            });
            (shard as u32, place)
        };
        batch::extend_many(digests, answers, prepare, |&digest, (shard, place)| {
            match (&guards[shard as usize], place) {
                (Some(filter), Some(place)) => filter.contains_at(place, || digest),
                _ => true,
            }
        });
    }
}

impl<F: Filter + Clone> Sharded<F> {
    /// A copy, shard by shard: changes that are made meanwhile are in it or not.
    ///
    /// # Errors
    ///
    /// [`ShardedError::InDoubt`].
    pub fn snapshot<E>(&self) -> Result<Self, ShardedError<E>> {
        let waiting = Waiting::default();
        let copy = |shard: usize| self.look(shard, |filter: &F| Shard::new(filter.clone(), &waiting));
        let shards: Result<Box<[_]>, _> = (0..self.shards.len()).map(copy).collect();
        Ok(Self { shards: shards?, hasher: self.hasher.clone(), waiting })
    }
}

/// Every method is for any number of threads. Counts of several shards are not of one moment while others change them.
impl<F: Filter> Filter for Sharded<F> {
    type Hasher = F::Hasher;
    /// What a shard makes of it can change until it is asked.
    type Place = Digest;

    #[inline]
    fn hasher(&self) -> &F::Hasher {
        &self.hasher
    }

    #[inline]
    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    #[inline]
    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.shards[self.shard(digest)].read().is_none_or(|filter| filter.contains_digest(digest))
    }

    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.parameters().len()).sum()
    }

    fn capacity(&self) -> usize {
        self.shards.iter().map(|shard| shard.parameters().capacity()).sum()
    }

    /// The highest rate of a shard. Looks at every shard.
    fn false_positive_rate(&self) -> f64 {
        self.shards.iter().map(|shard| shard.parameters().false_positive_rate()).fold(0.0, f64::max)
    }

    fn stats(&self) -> FilterStats {
        self.shards.iter().fold(FilterStats::default(), |sum, shard| sum.and(&shard.parameters().stats()))
    }

    fn verify(&self) -> Result<(), InvariantError> {
        for (number, shard) in self.shards.iter().enumerate() {
            let filter = shard.read();
            filter
                .ok_or_else(|| InvariantError::new(format!("shard {number} is in doubt")))?
                .verify()
                .map_err(|InvariantError(what)| InvariantError::new(format!("shard {number}: {what}")))?;
        }
        Ok(())
    }

    /// Locks all shards for a part of the keys at a time, so that a change waits for a thousand queries at the most, or
    /// for sixteen of each shard.
    fn contains_many<K: Key>(&self, keys: &[K], answers: &mut Vec<bool>) {
        let part = (16 * self.shards.len()).max(1024);
        answers.clear();
        answers.reserve(keys.len());
        // Not for fewer keys than there are locks.
        if keys.len() < self.shards.len() {
            answers.extend(keys.iter().map(|key| self.contains(key)));
            return;
        }
        let mut digests = Vec::with_capacity(part.min(keys.len()));
        for keys in keys.chunks(part) {
            digests.clear();
            digests.extend(keys.iter().map(|key| self.hasher.digest_key(key)));
            self.extend_answers(&digests, answers);
        }
    }
}
