//! Shards of adaptive filters, and the remote that they share.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::MutexGuard;

use crate::filter::{Grouped, clear_remote, out_of_memory};
use crate::play::{Adapt, Insert, InsertNew, Operation, OwnedChange, Play, Remove, Settle, Step};
use crate::{
    Adaptation, Adaptive, AdaptiveError, Authority, Change, Filter, FullError, Growable, Key, RebuildError,
    Remote, Settled,
};

use super::ranged::{RangeError, Ranged};
use super::shard::{Doubts, Shard};
use super::{Sharded, ShardedError, address, ranged};

/// A [`Sharded`] adaptive filter with one thread's way to the remote that all shards share.
///
/// Every thread has one of its own ([`Sharded::with_remote`]), with a remote that is a reference to the store:
/// `&Store`, as [`Remote`] describes, or `&Mutex<R>` of any other remote. Every shard has its own range of addresses
/// there: its number in the upper 12 bits, then the upper 52 bits of the address that a filter alone would use. For
/// filters that are [addressed by hash](crate::HashAddressed) that is a function of the key's digest,
/// [`Sharded::address`], for ever.
///
/// Queries are asked of the filter itself. They never wait for the remote, whatever is under way here: an operation
/// locks its shard only while it plans and while it changes words in memory. Operations of one shard wait for each
/// other, and for the remote; those of different shards do not.
///
/// **When the remote fails**, the filter is as it was, as [everywhere](Adaptive#when-things-fail), and the group that
/// it made or not is taken back before anything else is done with that shard; [`settle`](Self::settle) does that at
/// once.
///
/// ```
/// use std::sync::Mutex;
/// use besom::{Filter, MemoryRemote, Sharded, TelescopingFilter};
///
/// let store = Mutex::new(MemoryRemote::new());
/// let filter = Sharded::build(16, 10_000, |capacity, seed| {
///     TelescopingFilter::builder().capacity(capacity).seed(seed).build()
/// })?;
/// std::thread::scope(|scope| {
///     for thread in 0..4_u64 {
///         let (filter, store) = (&filter, &store);
///         scope.spawn(move || {
///             let mut mine = filter.with_remote(store);
///             (thread * 2_500..(thread + 1) * 2_500).for_each(|key| assert!(mine.insert(&key).unwrap()));
///         });
///     }
/// });
/// let mut mine = filter.with_remote(&store);
/// for stranger in (1 << 40)..(1_u64 << 40) + 10_000 {
///     if filter.contains(&stranger) {
///         assert!(mine.adapt(&stranger)?.is_fixed());
///         assert!(!filter.contains(&stranger));
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WithRemote<'f, F: Filter, R> {
    filter: &'f Sharded<F>,
    remote: R,
    /// Whether addresses are hashes of keys, in every shard alike.
    by_hash: bool,
    /// Kept for its memory.
    play: Play,
}

/// What operations return.
type Outcome<T, R> = Result<T, ShardedError<AdaptiveError<<R as Remote>::Error>>>;

/// How often an operation is played before it is made on a copy of its shard. Each time it has seen one range more;
/// chains of kicks and steps of a frontier see some dozens.
const ROUNDS: usize = 64;

/// Pairs that one range may have before the operation is made on a copy, which reads as it goes.
const MAX_PAIRS: usize = 4096;

impl<F: Adaptive + Clone> Sharded<F> {
    /// The filter with a way to its remote, for one thread.
    pub fn with_remote<R: Remote>(&self, remote: R) -> WithRemote<'_, F, R> {
        WithRemote { filter: self, remote, by_hash: self.by_hash(), play: Play::new() }
    }

    /// The address of a key in the shared remote, for ever, if the filter is [addressed by hash](crate::HashAddressed):
    /// what a store that keeps the addresses itself puts into its column.
    ///
    /// ```
    /// use besom::{Sharded, TelescopingFilter};
    ///
    /// let filter = Sharded::build(16, 1000, |capacity, seed| {
    ///     TelescopingFilter::builder().capacity(capacity).seed(seed).build()
    /// })?;
    /// let address = filter.address("key").unwrap();
    /// assert_eq!((address >> 52) as usize, filter.shard_of("key"));
    /// # Ok::<(), besom::BuildError>(())
    /// ```
    pub fn address<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        let digest = crate::KeyHasher::digest_key(&self.hasher, key);
        address::shared(self.shard(digest), digest.hi, true).filter(|_| self.by_hash())
    }

    fn by_hash(&self) -> bool {
        F::HASH_ADDRESSED || self.shards.first().is_some_and(|shard| shard.parameters().is_hash_addressed())
    }
}

impl<F: Adaptive + Clone, R: Remote> WithRemote<'_, F, R> {
    /// Inserts a key. `false` if it was there already.
    ///
    /// # Errors
    ///
    /// As [`Adaptive::insert`], and [`ShardedError::InDoubt`]; the filter is unchanged.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Outcome<bool, R> {
        key.with_bytes(|bytes| self.play(self.filter.shard_of(bytes), &Insert(bytes)))
    }

    /// Inserts a key that the caller knows is not stored; see [`Adaptive::insert_new`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_new<K: Key + ?Sized>(&mut self, key: &K) -> Outcome<(), R> {
        key.with_bytes(|bytes| self.play(self.filter.shard_of(bytes), &InsertNew(bytes)))
    }

    /// Removes a key. `false`, and nothing changes, if it was not there.
    ///
    /// # Errors
    ///
    /// As [`Adaptive::remove`], and [`ShardedError::InDoubt`]; the filter is unchanged.
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Outcome<bool, R> {
        key.with_bytes(|bytes| self.play(self.filter.shard_of(bytes), &Remove(bytes)))
    }

    /// Repairs the false positive `key`.
    ///
    /// # Errors
    ///
    /// As [`Adaptive::adapt`], and [`ShardedError::InDoubt`]; the filter is unchanged.
    pub fn adapt<K: Key + ?Sized>(&mut self, key: &K) -> Outcome<Adaptation, R> {
        key.with_bytes(|bytes| self.play(self.filter.shard_of(bytes), &Adapt(bytes)))
    }

    /// Takes back all groups that the remote has made or not, of any thread, so that filter and remote agree where an
    /// operation failed half-way. Costs nothing if none has.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Remote`] if it fails still. It can be tried again.
    pub fn settle(&mut self) -> Outcome<(), R> {
        for shard in 0..self.filter.shards() {
            let mut doubts = self.filter.shards[shard].turn();
            self.take_back(shard, &mut doubts)?;
        }
        Ok(())
    }

    /// Brings a shard and its part of the remote together, home by home; see [`Adaptive::settle`].
    ///
    /// # Errors
    ///
    /// As [`Adaptive::settle`], and [`ShardedError::InDoubt`].
    ///
    /// # Panics
    ///
    /// If there is no such shard.
    pub fn settle_shard(&mut self, shard: usize, authority: Authority) -> Outcome<Settled, R> {
        let mut doubts = self.filter.shards[shard].turn();
        self.take_back(shard, &mut doubts)?;
        self.copied(shard, &Settle { range: 0..=u64::MAX, authority }, &mut doubts)
    }

    /// Makes the remote what it was before a group that it made or not. The filter knows nothing of that group, and
    /// once the way back is acknowledged it never takes effect.
    fn take_back(&mut self, shard: usize, doubts: &mut Doubts) -> Outcome<(), R> {
        if doubts.is_empty() {
            return Ok(());
        }
        let by_hash = self.by_hash;
        let shared = |own| address::shared(shard, own, by_hash).unwrap_or(own);
        let back = |change: &OwnedChange| OwnedChange {
            address: shared(change.address),
            inserts: !change.inserts,
            key: change.key.clone(),
        };
        let group: Vec<OwnedChange> = doubts.iter().map(back).collect();
        let group: Vec<Change<'_>> = group.iter().map(OwnedChange::as_change).collect();
        self.remote.apply(&group).map_err(AdaptiveError::Remote)?;
        doubts.clear();
        Ok(())
    }

    /// Removes all keys and repairs, from the remote as well; capacity and seed stay. Does not end doubt, as
    /// [`rebuild`](Self::rebuild) does.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] if the remote failed or memory is lacking, [`ShardedError::InDoubt`]. The remote may be empty
    /// then: clear again.
    pub fn clear(&mut self) -> Outcome<(), R> {
        let filter = self.filter;
        let mut turns: Vec<_> = filter.shards.iter().map(Shard::turn).collect();
        let mut in_doubt = (0..filter.shards()).filter(|&shard| filter.shards[shard].read().is_none());
        if let Some(shard) = in_doubt.next() {
            return Err(ShardedError::InDoubt { shard });
        }
        for (shard, doubts) in turns.iter_mut().enumerate() {
            self.copied(shard, &Clearing, doubts)?;
            doubts.clear();
        }
        Ok(())
    }

    /// Checks that filter and remote hold the same keys. Scans the whole remote, on a copy of a shard at a time.
    ///
    /// # Errors
    ///
    /// As [`Adaptive::verify_remote`], and [`ShardedError::InDoubt`].
    pub fn verify_remote(&mut self) -> Outcome<(), R> {
        for shard in 0..self.filter.shards() {
            let mut doubts = self.filter.shards[shard].turn();
            self.copied(shard, &Verifying, &mut doubts)?;
        }
        let end = *address::range(self.filter.shards() - 1).end();
        let mut stray = None;
        if let Some(behind) = end.checked_add(1) {
            let first = &mut |address, _: &[u8]| {
                stray = Some(address);
                ControlFlow::Break(())
            };
            self.remote.range(behind..=u64::MAX, first).map_err(AdaptiveError::Remote)?;
        }
        match stray {
            Some(address) => Err(AdaptiveError::Inconsistent { address, expected: 0, found: 1 }.into()),
            None => Ok(()),
        }
    }

    /// Becomes a filter of exactly the keys that `keys` hands to its visitor, and makes the remote hold exactly these:
    /// the way back that always leads home, out of every doubt. Queries are answered by the old filter until it is
    /// done.
    ///
    /// # Errors
    ///
    /// [`RebuildError`] as [`Adaptive::rebuild`]: the filter is unchanged then, but the remote may hold any part of the
    /// keys.
    pub fn rebuild<E: std::error::Error + 'static>(
        &mut self,
        keys: impl FnOnce(&mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), E>,
    ) -> Result<(), RebuildError<E, R::Error>> {
        let (filter, by_hash) = (self.filter, self.by_hash);
        let mut turns: Vec<MutexGuard<'_, Doubts>> = filter.shards.iter().map(Shard::turn).collect();
        let fresh: Result<Vec<F>, _> =
            filter.shards.iter().map(|shard| shard.parameters().emptied()).collect();
        let mut fresh = fresh.map_err(out_of_memory)?;
        clear_remote(&mut self.remote)?;
        let (mut grouped, mut failed) = (Grouped::new(&mut self.remote), None);
        let scanned = keys(&mut |key| {
            let shard = filter.shard_of(key);
            let (remote, doubts) = (&mut grouped, &mut Doubts::new());
            let hasher = by_hash.then_some(&filter.hasher);
            let mut ranged = Ranged { remote, shard, hasher, doubts, busy: false };
            match fresh[shard].insert(key, &mut ranged) {
                Ok(_) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(translate(shard, &fresh[shard], error));
                    ControlFlow::Break(())
                }
            }
        });
        scanned.map_err(RebuildError::Keys)?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        grouped.flush().map_err(AdaptiveError::Remote)?;
        for ((shard, fresh), doubts) in filter.shards.iter().zip(fresh).zip(&mut turns) {
            shard.set(fresh);
            doubts.clear();
        }
        Ok(())
    }

    /// The filter.
    pub fn filter(&self) -> &Sharded<F> {
        self.filter
    }

    /// The remote.
    pub fn remote_mut(&mut self) -> &mut R {
        &mut self.remote
    }

    /// Plays an operation until it is done.
    fn play<O: Operation<F>>(&mut self, shard: usize, operation: &O) -> Outcome<O::Output, R> {
        let part = &self.filter.shards[shard];
        let mut doubts = part.turn();
        self.take_back(shard, &mut doubts)?;
        self.play.clear();
        for _ in 0..ROUNDS {
            let mut filter = part.write().ok_or(ShardedError::InDoubt { shard })?;
            let full = FullError { len: filter.len(), capacity: filter.capacity() };
            let step = self.play.step(&mut *filter, operation);
            drop(filter);
            match step {
                Ok(Step::Done(output)) => {
                    doubts.clear();
                    return Ok(output);
                }
                Ok(Step::Needs(own)) => {
                    if !self.fetch(shard, own, &mut doubts, full)? {
                        break;
                    }
                }
                Ok(Step::Commit) => self.commit(shard, &mut doubts, full)?,
                Ok(Step::Beyond) => break,
                Err(error) => {
                    return Err(shared_address(shard, self.by_hash, error, |never| match never {}).into());
                }
            }
        }
        let output = self.copied(shard, operation, &mut doubts)?;
        doubts.clear();
        Ok(output)
    }

    /// Reads a range. `false` if it has too many pairs.
    fn fetch(
        &mut self,
        shard: usize,
        own: std::ops::RangeInclusive<u64>,
        doubts: &mut Doubts,
        full: FullError,
    ) -> Result<bool, AdaptiveError<R::Error>> {
        let hasher = self.by_hash.then_some(&self.filter.hasher);
        let mut ranged = Ranged { remote: &mut self.remote, shard, hasher, doubts, busy: false };
        self.play.evidence().read(own, MAX_PAIRS, &mut ranged).map_err(|error| of_range(error, full))
    }

    /// Has the remote make the group. It is in doubt until the filter has followed.
    fn commit(
        &mut self,
        shard: usize,
        doubts: &mut Doubts,
        full: FullError,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let group = self.play.group();
        let by_hash = self.by_hash;
        let translated: Option<Vec<_>> =
            group.iter().map(|change| ranged::translated(shard, change, by_hash)).collect();
        let translated = translated.ok_or(full)?;
        doubts.extend(group.iter().map(OwnedChange::from));
        self.remote.apply(&translated).map_err(AdaptiveError::Remote)?;
        self.play.committed();
        Ok(())
    }

    /// Does an operation on a copy of the shard, which takes its place afterwards. After an error as well: what the
    /// filter has to remember of it, such as pairs that it left behind in the remote, is in the copy.
    fn copied<O: Operation<F>>(
        &mut self,
        shard: usize,
        operation: &O,
        doubts: &mut Doubts,
    ) -> Outcome<O::Output, R> {
        let part = &self.filter.shards[shard];
        let mut copy = part.read().ok_or(ShardedError::InDoubt { shard })?.clone();
        let hasher = self.by_hash.then_some(&self.filter.hasher);
        let mut ranged = Ranged { remote: &mut self.remote, shard, hasher, doubts, busy: false };
        // The copy is used after a panic only if it came from the remote, which filters are prepared for.
        let outcome = catch_unwind(AssertUnwindSafe(|| operation.run(&mut copy, &mut ranged)));
        let from_remote = ranged.busy;
        match outcome {
            Ok(outcome) => {
                let outcome = outcome.map_err(|error| translate(shard, &copy, error));
                part.set(copy);
                Ok(outcome?)
            }
            Err(panic) => {
                if from_remote {
                    part.set(copy);
                }
                resume_unwind(panic)
            }
        }
    }
}

impl<F: Growable + Clone, R: Remote> WithRemote<'_, F, R> {
    /// Doubles the capacity of every shard, one after the other. Queries are answered by the smaller one until the
    /// larger one is ready.
    ///
    /// # Errors
    ///
    /// As [`Growable::grow`], and [`ShardedError::InDoubt`]. Shards before the one that failed have grown.
    pub fn grow(&mut self) -> Outcome<(), R> {
        for shard in 0..self.filter.shards() {
            let mut doubts = self.filter.shards[shard].turn();
            self.take_back(shard, &mut doubts)?;
            self.copied(shard, &Growing, &mut doubts)?;
        }
        Ok(())
    }
}

/// Operations that no step by step playing is of use for.
macro_rules! whole {
    ($($name:ident: $bound:ident, $method:ident;)+) => {$(
        struct $name;

        impl<F: $bound> Operation<F> for $name {
            type Output = ();

            fn run<R: Remote>(&self, filter: &mut F, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
                filter.$method(remote)
            }
        }
    )+};
}

whole! {
    Clearing: Adaptive, clear;
    Verifying: Adaptive, verify_remote;
    Growing: Growable, grow;
}

/// The error of a part of the remote, as one of the shared remote.
fn of_range<E: std::error::Error>(error: RangeError<E>, full: FullError) -> AdaptiveError<E> {
    match error {
        RangeError::Remote(error) => AdaptiveError::Remote(error),
        RangeError::OutOfRange => full.into(),
    }
}

/// The error of an operation with a part of the remote, as one of the shared remote.
fn translate<F: Adaptive, E: std::error::Error>(
    shard: usize,
    filter: &F,
    error: AdaptiveError<RangeError<E>>,
) -> AdaptiveError<E> {
    let full = FullError { len: filter.len(), capacity: filter.capacity() };
    shared_address(shard, filter.is_hash_addressed(), error, |error| of_range(error, full))
}

/// The same error with an address of the shared remote.
fn shared_address<P, E>(
    shard: usize,
    by_hash: bool,
    error: AdaptiveError<P>,
    remote: impl FnOnce(P) -> AdaptiveError<E>,
) -> AdaptiveError<E> {
    match error {
        AdaptiveError::Inconsistent { address: own, expected, found } => {
            let address = address::shared(shard, own, by_hash).unwrap_or(own);
            AdaptiveError::Inconsistent { address, expected, found }
        }
        error => error.map_remote(remote),
    }
}
