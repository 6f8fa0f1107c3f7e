//! A filter in front of a dictionary: look-ups of absent keys stay away from it, and every one that did not is
//! repaired on the spot.

mod dictionary;
mod doubts;
mod stats;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use thiserror::Error;

use crate::play::OwnedChange;
use crate::{
    Adaptation, Adaptive, AdaptiveError, Authority, Change, Key, KeyHasher, MemoryRemote, RebuildError,
    Remote, RemoteResult, Settled,
};

pub use dictionary::{Dictionary, MemoryDictionary};
use doubts::{Doubts, Watched};
pub use stats::GuardStats;

/// An operation of a [`Guard`] failed, in the filter (or its remote) or in the dictionary.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum GuardError<R, D> {
    /// The filter is full, or its remote failed.
    #[error(transparent)]
    Filter(AdaptiveError<R>),
    /// The dictionary failed; its error is inside.
    #[error("the dictionary failed: {0}")]
    Dictionary(#[source] D),
}

type Errors<R, D> = GuardError<<R as Remote>::Error, <D as Dictionary>::Error>;

/// One unexplained item in this many keys makes the guard build its filter again by itself.
const REBUILD_SHARE: usize = 64;

/// An adaptive filter, its remote and a dictionary, kept in step.
///
/// [`get`](Self::get) asks the filter first and goes to the dictionary only if it says "maybe". When the
/// dictionary then does not have the key, the filter is repaired, so that the same question does not get
/// through again.
///
/// ```
/// use besom::{Guard, MemoryDictionary, TelescopingFilter};
///
/// let filter = TelescopingFilter::with_capacity(1_000)?;
/// let mut ages = Guard::new(filter, MemoryDictionary::new());
/// ages.insert("Ada", 36)?;
/// ages.insert("Grace", 85)?;
///
/// assert_eq!(ages.get("Ada")?, Some(36));
/// assert_eq!(ages.get("Charles")?, None); // almost certainly without a look into the dictionary
/// assert_eq!(ages.remove("Ada")?, Some(36));
/// assert_eq!(ages.get("Ada")?, None);
///
/// let stats = ages.stats();
/// assert_eq!((stats.queries, stats.true_positives), (3, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Failures
///
/// The filter holds every key that the dictionary may have: a key enters the filter before the dictionary and leaves it
/// after the dictionary has confirmed that it is gone. An error of either store is taken for what it is, "done or not
/// done". So whatever fails, at whatever moment, no stored key is ever rejected; a key that is left behind in the
/// filter costs look-ups in vain, no more.
///
/// The next operation that writes or meets a false positive takes back a group of changes that the remote made or not.
/// No repair and no removal is made before that, because what they read may not be what the filter knows of. A key that
/// the dictionary took or not stays in the filter: one answer of a dictionary that has just failed is no reason to take
/// it out. Where the remote does not explain the filter, nothing is taken out of the filter on its word; it is built
/// again from a [scan](Dictionary::scan) of the dictionary, as soon as one item in 64 is concerned (so that the scans
/// are paid for by the failures). [`restore`](Self::restore) does it at once.
///
/// A failure on the filter's side never fails an operation that has its answer: [`stats`](Self::stats) counts it and
/// [`take_fault`](Self::take_fault) tells it.
#[derive(Debug, Clone)]
pub struct Guard<F, D, R: Remote = MemoryRemote> {
    filter: F,
    dictionary: D,
    remote: R,
    stats: GuardStats,
    doubts: Doubts,
    /// Keys in the filter, since the last scan, that the dictionary has denied or given up.
    suspects: usize,
    /// Operations to wait before the next attempt to build the filter again, and how long to wait after it.
    patience: Patience,
    fault: Option<AdaptiveError<R::Error>>,
}

/// Attempts that fail are made less and less often.
#[derive(Debug, Clone, Copy, Default)]
struct Patience {
    left: u64,
    next: u64,
}

impl Patience {
    /// Whether it is time for an attempt.
    fn is_over(&mut self) -> bool {
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.next = (2 * self.next).clamp(1, 1 << 16);
        self.left = self.next;
        true
    }
}

impl<F: Adaptive, D: Dictionary> Guard<F, D> {
    /// Guards a dictionary with a filter, both without keys, and keeps the remote in memory.
    pub fn new(filter: F, dictionary: D) -> Self {
        Self::with_remote(filter, dictionary, MemoryRemote::new())
    }
}

impl<F: Adaptive, D: Dictionary, R: Remote> Guard<F, D, R> {
    /// Guards a dictionary with a filter that holds the same keys, and the remote that the filter was built with.
    pub fn with_remote(filter: F, dictionary: D, remote: R) -> Self {
        Self {
            filter,
            dictionary,
            remote,
            stats: GuardStats::default(),
            doubts: Doubts::default(),
            suspects: 0,
            patience: Patience::default(),
            fault: None,
        }
    }

    /// Guards a dictionary that has keys already: reads all of them, into the filter and the remote, which need not be
    /// empty. The remote is used while the dictionary is being scanned; if both share a connection, it must bear that.
    ///
    /// # Errors
    ///
    /// [`RebuildError`] if the dictionary or the remote failed, or its keys do not fit.
    pub fn over(filter: F, dictionary: D, remote: R) -> Result<Self, RebuildError<D::Error, R::Error>> {
        let mut guard = Self::with_remote(filter, dictionary, remote);
        guard.rebuild()?;
        Ok(guard)
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// [`GuardError::Dictionary`] if it failed.
    pub fn get<K: Key + ?Sized>(&mut self, key: &K) -> Result<Option<D::Value>, Errors<R, D>> {
        if !self.contains(key) {
            self.stats.queries += 1;
            self.stats.negatives += 1;
            return Ok(None);
        }
        let found = key.with_bytes(|bytes| self.dictionary.get(bytes)).map_err(GuardError::Dictionary)?;
        self.stats.queries += 1;
        if found.is_some() {
            self.stats.true_positives += 1;
            return Ok(found);
        }
        self.stats.false_positives += 1;
        if !self.settle() {
            // What a repair would read may lack a key that is there.
            self.stats.failed_repairs += 1;
            return Ok(None);
        }
        match self.watched_for(0, |filter, remote| filter.adapt(key, remote)) {
            // The filter stores the key itself, or cannot tell it from one that it stores. Either the dictionary is
            // mistaken, or an insertion failed half-way: one answer is no reason to take a key out of the filter.
            Ok(Adaptation::NotFalsePositive | Adaptation::Unfixable) => {
                self.stats.denied += 1;
                self.suspects += 1;
            }
            Ok(_) => {}
            Err(error) => {
                self.stats.failed_repairs += 1;
                self.note(error);
            }
        }
        Ok(None)
    }

    /// Stores a value, and returns the one that was there before.
    ///
    /// # Errors
    ///
    /// [`GuardError::Filter`] if the filter is full or its remote failed: the key has the value that it had before.
    /// [`GuardError::Dictionary`] if that failed: the key has the value that it had before, or the new one.
    pub fn insert<K: Key + ?Sized>(
        &mut self,
        key: &K,
        value: D::Value,
    ) -> Result<Option<D::Value>, Errors<R, D>> {
        self.settle();
        key.with_bytes(|bytes| {
            let entered = self.enter(bytes).map_err(GuardError::Filter)?;
            // Counted first, in case that the dictionary fails or panics.
            self.suspects += 1;
            let stored = self.dictionary.insert(bytes, value).map_err(GuardError::Dictionary)?;
            // A key that was there already and entered all the same is in the filter twice: the remote did not show it.
            if !(entered && stored.is_some()) {
                self.suspects -= 1;
            }
            Ok(stored)
        })
    }

    /// Makes sure that the filter holds a key. Tries again after a way back was found.
    fn enter(&mut self, key: &[u8]) -> RemoteResult<bool, R> {
        let result = self.watched_for(1, |filter, remote| filter.insert(key, remote));
        let again = match &result {
            // Keys that failures left behind may be what the filter is full of.
            Err(AdaptiveError::Full(_)) if self.suspects > 0 || self.doubts.unexplained > 0 => {
                self.rebuild().is_ok()
            }
            Err(AdaptiveError::Inconsistent { address, .. }) => {
                self.doubts.ask(*address);
                self.settle()
            }
            _ => false,
        };
        if again { self.watched_for(1, |filter, remote| filter.insert(key, remote)) } else { result }
    }

    /// Removes a key, and returns its value if it was there.
    ///
    /// # Errors
    ///
    /// [`GuardError::Dictionary`] if that failed, and the key may be there or not.
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<Option<D::Value>, Errors<R, D>> {
        if !self.contains(key) {
            return Ok(None);
        }
        // Not later: a filter that is built again without the key has no item of it to give up.
        let settled = self.settle();
        key.with_bytes(|bytes| {
            // Counted first, in case that anything fails or panics.
            self.suspects += 1;
            let removed = self.dictionary.remove(bytes).map_err(GuardError::Dictionary)?;
            // Whether it had a value or not, it has none now. Which item goes may depend on keys that are in question.
            if settled && self.leave(bytes, removed.is_some()) {
                self.suspects -= 1;
            } else {
                self.stats.failed_removals += 1;
            }
            Ok(removed)
        })
    }

    /// Takes a key out of the filter that the dictionary does not have any more. `stored` says that it had it, and so
    /// the filter. Whether the filter does not have it any more either.
    fn leave(&mut self, key: &[u8], stored: bool) -> bool {
        let left = self.watched(|filter, remote| match stored {
            true => filter.remove_stored(key, remote),
            false => filter.remove(key, remote),
        });
        match left {
            Ok(left) => left || !stored,
            Err(error) => {
                self.note(error);
                false
            }
        }
    }

    /// Whether the key may be stored, by the filter's word alone. `false` is certain.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.filter.contains(key)
    }

    /// Brings filter, remote and dictionary into step: where an operation failed, if that is enough, else by building
    /// filter and remote again from a scan of the dictionary.
    ///
    /// Costs nothing if no operation has failed.
    ///
    /// # Errors
    ///
    /// [`RebuildError`] if the dictionary or the remote failed, or its keys do not fit. The filter still holds every
    /// key that the dictionary has.
    pub fn restore(&mut self) -> Result<(), RebuildError<D::Error, R::Error>> {
        self.find_out();
        while self.look_at_one() {}
        let settled = self.doubts.are_settled() && self.doubts.unexplained == 0;
        if self.suspects == 0 && settled { Ok(()) } else { self.rebuild() }
    }

    /// Checks that filter, remote and dictionary hold the same keys, by one scan of the remote and one of the
    /// dictionary.
    ///
    /// [`restore`](Self::restore) mends what failed. A remote that answers wrongly and reports no error leaves surplus
    /// pairs and items that no later answer contradicts: they cost reads, and lose no key. This finds them, and
    /// [`rebuild`](Self::rebuild) clears them away.
    ///
    /// ```
    /// use besom::{Guard, MemoryDictionary, MemoryRemote, TelescopingFilter};
    ///
    /// let mut ages = Guard::new(TelescopingFilter::with_capacity(1_000)?, MemoryDictionary::new());
    /// ages.insert("Ada", 36)?;
    /// ages.verify()?;
    /// *ages.remote_mut() = MemoryRemote::new(); // what somebody else did to it
    /// assert!(ages.verify().is_err());
    /// ages.rebuild()?;
    /// ages.verify()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`GuardError::Filter`] with [`AdaptiveError::Inconsistent`] if they differ; what remote or dictionary reported.
    pub fn verify(&mut self) -> Result<(), Errors<R, D>> {
        self.filter.verify_remote(&mut self.remote).map_err(GuardError::Filter)?;
        let (mut keys, mut rejected) = (0, None);
        let (dictionary, filter) = (&mut self.dictionary, &self.filter);
        let visit = &mut |key: &[u8]| {
            keys += 1;
            if !filter.contains(key) {
                rejected = Some(filter.hasher().digest(key).hi);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        dictionary.scan(visit).map_err(GuardError::Dictionary)?;
        match rejected {
            None if keys == self.filter.len() => Ok(()),
            address => Err(GuardError::Filter(AdaptiveError::Inconsistent {
                address: address.unwrap_or(0),
                expected: self.filter.len(),
                found: keys,
            })),
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> GuardStats {
        GuardStats {
            in_question: self.doubts.count(),
            slots_in_question: self.doubts.unexplained,
            ..self.stats
        }
    }

    /// The last failure on the filter's side that did not fail an operation, for a log.
    pub fn take_fault(&mut self) -> Option<AdaptiveError<R::Error>> {
        self.fault.take()
    }

    /// Builds the filter.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// The dictionary.
    pub fn dictionary(&self) -> &D {
        &self.dictionary
    }

    /// The remote.
    pub fn remote(&self) -> &R {
        &self.remote
    }

    /// The dictionary, to be configured or maintained. A key that is stored there behind the guard's back is rejected
    /// like any other that the filter does not hold, until the filter is built again.
    pub fn dictionary_mut(&mut self) -> &mut D {
        &mut self.dictionary
    }

    /// The remote, to be configured or maintained; its lists are the filter's.
    pub fn remote_mut(&mut self) -> &mut R {
        &mut self.remote
    }

    /// Takes the guard apart into filter, dictionary and remote.
    pub fn into_parts(self) -> (F, D, R) {
        (self.filter, self.dictionary, self.remote)
    }

    /// Lets the filter work with the remote, under watch.
    fn watched<T>(
        &mut self,
        work: impl FnOnce(&mut F, &mut Watched<'_, R>) -> RemoteResult<T, R>,
    ) -> RemoteResult<T, R> {
        let (remote, stats, doubts) = (&mut self.remote, &mut self.stats, &mut self.doubts);
        work(&mut self.filter, &mut Watched { remote, stats, doubts })
    }

    /// The same for work that gives the filter this many keys at most. More are rows that it found and took in: the
    /// dictionary may have none of them.
    fn watched_for<T>(
        &mut self,
        most: usize,
        work: impl FnOnce(&mut F, &mut Watched<'_, R>) -> RemoteResult<T, R>,
    ) -> RemoteResult<T, R> {
        let before = self.filter.len();
        let result = self.watched(work);
        self.suspects += self.filter.len().saturating_sub(before + most);
        result
    }

    /// Remembers a failure that fails no operation.
    fn note(&mut self, error: AdaptiveError<R::Error>) {
        if let AdaptiveError::Inconsistent { address, .. } = error {
            self.doubts.ask(address);
        }
        self.fault = Some(error);
    }

    /// Takes a way back, if one is needed and it is time for it. Whether filter, remote and dictionary agree now, as
    /// far as is known.
    #[inline]
    fn settle(&mut self) -> bool {
        self.doubts.are_settled() || self.settle_some()
    }

    #[cold]
    fn settle_some(&mut self) -> bool {
        if self.find_out() {
            self.look_at_one();
        }
        let many = self.doubts.unexplained * REBUILD_SHARE > self.filter.len();
        if (many || self.doubts.lost) && self.patience.is_over() {
            // What failed is in the statistics and tried again later.
            let _ = self.rebuild();
        }
        self.doubts.are_settled()
    }

    /// Takes back what the remote was told and may have done or not, while the filter has not followed. Whether that is
    /// known now.
    fn find_out(&mut self) -> bool {
        if self.doubts.lost {
            return false;
        }
        let back = self.doubts.way_back();
        if !back.is_empty() {
            let changes: Vec<Change<'_>> = back.iter().map(OwnedChange::as_change).collect();
            self.stats.remote_writes += 1;
            if let Err(error) = self.remote.apply(&changes) {
                self.fault = Some(AdaptiveError::Remote(error));
                return false;
            }
            self.doubts.forget_pairs();
            self.stats.resyncs += 1;
        }
        true
    }

    /// Settles one home where the filter has met keys of others. Whether there was one.
    fn look_at_one(&mut self) -> bool {
        let Some(address) = self.doubts.next_address().filter(|_| !self.doubts.lost) else { return false };
        let settle = |filter: &mut F, remote: &mut Watched<'_, R>| {
            // What the remote lacks the dictionary may have.
            filter.settle(address..=address, Authority::Partial, remote)
        };
        match self.watched_for(0, settle) {
            Ok(Settled::Agreed) => self.stats.resyncs += 1,
            Ok(Settled::InQuestion { slots }) => self.doubts.unexplained += slots.max(1),
            Err(error) => {
                self.fault = Some(error);
                return false;
            }
        }
        self.doubts.forget_address(address);
        true
    }

    /// Builds filter and remote again from a scan of the dictionary. Repairs are forgotten.
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    pub fn rebuild(&mut self) -> Result<(), RebuildError<D::Error, R::Error>> {
        self.doubts.lost = true;
        let (dictionary, remote, stats) = (&mut self.dictionary, &mut self.remote, &mut self.stats);
        let mut watched = Watched { remote, stats, doubts: &mut self.doubts };
        self.filter.rebuild(|visit| dictionary.scan(visit), &mut watched)?;
        self.doubts = Doubts::default();
        self.stats.rebuilds += 1;
        (self.suspects, self.patience) = (0, Patience::default());
        Ok(())
    }
}
