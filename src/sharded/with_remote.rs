//! Shards of adaptive filters, and the remote that they share.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::MutexGuard;

use crate::filter::{Grouped, out_of_memory};
use crate::{
    Adaptation, Adaptive, AdaptiveError, Change, Filter, FullError, Growable, Key, RebuildError, Remote,
    Resync,
};

use super::operation::{Adapting, Clearing, Growing, Inserting, Operation, Removing, Resyncing, Verifying};
use super::replay::{Pause, RangeError, Ranged, Replay};
use super::shard::{Doubts, Shard};
use super::{Sharded, ShardedError, address};

/// A [`Sharded`] adaptive filter with one thread's way to the remote that all shards share.
///
/// Every thread has one of its own ([`Sharded::with_remote`]), with a remote that is a reference to the store: `&Store`, as
/// [`Remote`] describes, or `&Mutex<R>` of any other remote. Every shard has its own range of addresses there.
///
/// Queries are asked of the filter itself. They never wait for the remote, whatever is under way here: an operation locks
/// its shard only while it plans and while it changes words in memory. Operations of one shard wait for each other, and for
/// the remote; those of different shards do not.
///
/// **When the remote fails**, the filter is as it was, as [everywhere](Adaptive#when-things-fail), and the addresses that were
/// to change are remembered: [`settle`](Self::settle) brings filter and remote back into step there.
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
    /// Kept for its memory.
    replay: Replay,
}

/// What operations return.
type Outcome<T, R> = Result<T, ShardedError<AdaptiveError<<R as Remote>::Error>>>;

/// How often an operation is played before it is made on a copy of its shard. Each time it has seen one list more; chains of
/// kicks and steps of a frontier see some dozens.
const ROUNDS: usize = 64;

/// The same for one that may be growing: an insertion into a full filter that reads more than the lists of its key.
const ROUNDS_WHEN_FULL: usize = 4;

impl<F: Adaptive + Clone> Sharded<F> {
    /// The filter with a way to its remote, for one thread.
    pub fn with_remote<R: Remote>(&self, remote: R) -> WithRemote<'_, F, R> {
        WithRemote { filter: self, remote, replay: Replay::default() }
    }
}

impl<F: Adaptive + Clone, R: Remote> WithRemote<'_, F, R> {
    /// Inserts a key. `false` if it was there already.
    ///
    /// # Errors
    ///
    /// As [`Adaptive::insert`], and [`ShardedError::InDoubt`]; the filter is unchanged.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Outcome<bool, R> {
        key.with_bytes(|bytes| self.play(self.filter.shard_of(bytes), &Inserting(bytes)))
    }

    /// Removes a key. `false`, and nothing changes, if it was not there.
    ///
    /// # Errors
    ///
    /// As [`Adaptive::remove`], and [`ShardedError::InDoubt`]; the filter is unchanged.
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Outcome<bool, R> {
        key.with_bytes(|bytes| self.play(self.filter.shard_of(bytes), &Removing(bytes)))
    }

    /// Repairs the false positive `key`.
    ///
    /// # Errors
    ///
    /// As [`Adaptive::adapt`], and [`ShardedError::InDoubt`]; the filter is unchanged.
    pub fn adapt<K: Key + ?Sized>(&mut self, key: &K) -> Outcome<Adaptation, R> {
        key.with_bytes(|bytes| self.play(self.filter.shard_of(bytes), &Adapting(bytes)))
    }

    /// Brings filter and remote back into step at these addresses of the shared remote; see [`Adaptive::resync`].
    ///
    /// # Errors
    ///
    /// As [`Adaptive::resync`], and [`ShardedError::InDoubt`].
    pub fn resync(&mut self, addresses: &[u64]) -> Outcome<Resync, R> {
        let mut unexplained = 0;
        for shard in 0..self.filter.shards() {
            let own = addresses.iter().map(|&shared| address::own(shared));
            let own: Vec<u64> = own.filter(|&(of, _)| of == shard).map(|(_, own)| own).collect();
            if !own.is_empty() {
                let mut doubts = self.filter.shards[shard].turn();
                unexplained += self.resync_shard(shard, &own, &mut doubts)?;
            }
        }
        Ok(if unexplained == 0 { Resync::Agreed } else { Resync::InQuestion { slots: unexplained } })
    }

    /// Brings filter and remote back into step wherever an operation of any thread failed half-way. Costs nothing if none
    /// has. Addresses [in question](Resync::InQuestion) are not remembered any longer: their slots answer "maybe
    /// present" until the filter is rebuilt.
    ///
    /// # Errors
    ///
    /// As [`Adaptive::resync`], and [`ShardedError::InDoubt`]. What was not settled can be tried again.
    pub fn settle(&mut self) -> Outcome<Resync, R> {
        let mut unexplained = 0;
        for shard in 0..self.filter.shards() {
            let mut doubts = self.filter.shards[shard].turn();
            let mut own = doubts.clone();
            own.sort_unstable();
            own.dedup();
            if !own.is_empty() {
                unexplained += self.resync_shard(shard, &own, &mut doubts)?;
                doubts.clear();
            }
        }
        Ok(if unexplained == 0 { Resync::Agreed } else { Resync::InQuestion { slots: unexplained } })
    }

    /// The slots that stay unexplained.
    fn resync_shard(&mut self, shard: usize, own: &[u64], doubts: &mut Doubts) -> Outcome<usize, R> {
        match self.copied(shard, &Resyncing(own), false, doubts)? {
            Resync::Agreed => Ok(0),
            Resync::InQuestion { slots } => Ok(slots.max(1)),
        }
    }

    /// Removes all keys and repairs, from the remote as well; capacity and seed stay. Does not end doubt, as
    /// [`rebuild`](Self::rebuild) does.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError`] if the remote failed or memory is lacking, [`ShardedError::InDoubt`]. The remote may be empty then:
    /// clear again.
    pub fn clear(&mut self) -> Outcome<(), R> {
        let filter = self.filter;
        let mut turns: Vec<_> = filter.shards.iter().map(Shard::turn).collect();
        let mut in_doubt = (0..filter.shards()).filter(|&shard| filter.shards[shard].read().is_none());
        if let Some(shard) = in_doubt.next() {
            return Err(ShardedError::InDoubt { shard });
        }
        self.remote.apply(&[Change::Clear]).map_err(AdaptiveError::Remote)?;
        for (shard, doubts) in turns.iter_mut().enumerate() {
            self.copied(shard, &Clearing, true, doubts)?;
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
            self.copied(shard, &Verifying, false, &mut doubts)?;
        }
        let end = *address::range(self.filter.shards() - 1).end();
        let mut stray = None;
        if let Some(behind) = end.checked_add(1) {
            let first = &mut |address, _: &[u8]| {
                stray = Some(address);
                ControlFlow::Break(())
            };
            self.remote.scan_range(behind..=u64::MAX, first).map_err(AdaptiveError::Remote)?;
        }
        match stray {
            Some(address) => Err(AdaptiveError::Inconsistent { address, expected: 0, found: 1 }.into()),
            None => Ok(()),
        }
    }

    /// Becomes a filter of exactly the keys that `keys` hands to its visitor, and makes the remote hold exactly these: the
    /// way back that always leads home, out of every doubt. Queries are answered by the old filter until it is done.
    ///
    /// # Errors
    ///
    /// [`RebuildError`] as [`Adaptive::rebuild`]: the filter is unchanged then, but the remote may hold any part of the keys.
    pub fn rebuild<E: std::error::Error + 'static>(
        &mut self,
        keys: impl FnOnce(&mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), E>,
    ) -> Result<(), RebuildError<E, R::Error>> {
        let filter = self.filter;
        let mut turns: Vec<MutexGuard<'_, Doubts>> = filter.shards.iter().map(Shard::turn).collect();
        let fresh: Result<Vec<F>, _> =
            filter.shards.iter().map(|shard| shard.parameters().emptied()).collect();
        let mut fresh = fresh.map_err(out_of_memory)?;
        self.remote.apply(&[Change::Clear]).map_err(AdaptiveError::Remote)?;
        let (mut grouped, mut failed) = (Grouped::new(&mut self.remote), None);
        let scanned = keys(&mut |key| {
            let shard = filter.shard_of(key);
            let (remote, doubts) = (&mut grouped, &mut Doubts::new());
            let mut ranged = Ranged { remote, shard, doubts, busy: false, cleared: false };
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
        let before = doubts.len();
        self.replay.clear();
        for round in 1..=ROUNDS {
            let mut filter = part.write().ok_or(ShardedError::InDoubt { shard })?;
            let full = FullError { len: filter.len(), capacity: filter.capacity() };
            let played = operation.run(&mut *filter, &mut self.replay);
            drop(filter);
            let pause = match played {
                Ok(value) => {
                    doubts.truncate(before);
                    return Ok(value);
                }
                Err(AdaptiveError::Remote(pause)) => pause,
                Err(error) => return Err(shared_address(shard, error, |_| full.into()).into()),
            };
            if self.replay.applied {
                return Err(self.differs(shard).into());
            }
            let grows = O::GROWS && full.len >= full.capacity && round >= ROUNDS_WHEN_FULL;
            match pause {
                Pause::Read(own) if !grows => self.fetch(shard, own, full)?,
                Pause::Apply => self.apply(shard, &mut doubts, full)?,
                Pause::Read(_) | Pause::Beyond => break,
            }
        }
        self.copied(shard, operation, false, &mut doubts)
    }

    fn fetch(&mut self, shard: usize, own: u64, full: FullError) -> Result<(), AdaptiveError<R::Error>> {
        let shared = address::shared(shard, own).ok_or(full)?;
        self.replay.fetch(own, shared, &mut self.remote).map_err(AdaptiveError::Remote)
    }

    fn apply(
        &mut self,
        shard: usize,
        doubts: &mut Doubts,
        full: FullError,
    ) -> Result<(), AdaptiveError<R::Error>> {
        if self.replay.addresses().any(|own| address::shared(shard, own).is_none()) {
            return Err(full.into());
        }
        // Remembered until the operation is done, in case that the remote fails or panics.
        doubts.extend(self.replay.addresses());
        let shared = |own| address::shared(shard, own).unwrap_or(own);
        self.replay.apply(shared, &mut self.remote).map_err(AdaptiveError::Remote)
    }

    /// The remote has made changes that the filter does not stand by: it is not the filter that they were planned on, or it
    /// breaks a promise of its trait.
    #[cold]
    fn differs(&self, shard: usize) -> AdaptiveError<R::Error> {
        let address = self.replay.addresses().next().and_then(|own| address::shared(shard, own));
        AdaptiveError::Inconsistent { address: address.unwrap_or(0), expected: 0, found: 0 }
    }

    /// Does an operation on a copy of the shard, which takes its place afterwards. After an error as well: what the filter has
    /// to remember of it, such as lists that it left behind in the remote, is in the copy.
    fn copied<O: Operation<F>>(
        &mut self,
        shard: usize,
        operation: &O,
        cleared: bool,
        doubts: &mut Doubts,
    ) -> Outcome<O::Output, R> {
        let part = &self.filter.shards[shard];
        let mut copy = part.read().ok_or(ShardedError::InDoubt { shard })?.clone();
        let mut ranged = Ranged { remote: &mut self.remote, shard, doubts, busy: false, cleared };
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
    /// Doubles the capacity of every shard, one after the other. Queries are answered by the smaller one until the larger one
    /// is ready.
    ///
    /// # Errors
    ///
    /// As [`Growable::grow`], and [`ShardedError::InDoubt`]. Shards before the one that failed have grown.
    pub fn grow(&mut self) -> Outcome<(), R> {
        for shard in 0..self.filter.shards() {
            let mut doubts = self.filter.shards[shard].turn();
            self.copied(shard, &Growing, false, &mut doubts)?;
        }
        Ok(())
    }
}

/// The error of an operation with a part of the remote, as one of the shared remote.
fn translate<F: Filter, E: std::error::Error>(
    shard: usize,
    filter: &F,
    error: AdaptiveError<RangeError<E>>,
) -> AdaptiveError<E> {
    let full = FullError { len: filter.len(), capacity: filter.capacity() };
    shared_address(shard, error, |error| match error {
        RangeError::Remote(error) => AdaptiveError::Remote(error),
        RangeError::OutOfRange => full.into(),
    })
}

/// The same error with an address of the shared remote.
fn shared_address<P, E>(
    shard: usize,
    error: AdaptiveError<P>,
    remote: impl FnOnce(P) -> AdaptiveError<E>,
) -> AdaptiveError<E> {
    match error {
        AdaptiveError::Full(full) => AdaptiveError::Full(full),
        AdaptiveError::Remote(error) => remote(error),
        AdaptiveError::Inconsistent { address: own, expected, found } => {
            let address = address::shared(shard, own).unwrap_or(own);
            AdaptiveError::Inconsistent { address, expected, found }
        }
        AdaptiveError::OutOfMemory { bytes } => AdaptiveError::OutOfMemory { bytes },
    }
}
