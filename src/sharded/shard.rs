//! One shard: a filter, who may ask it and who may change it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{
    Arc, LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

use crate::Filter;
use crate::play::OwnedChange;

/// A filter behind its locks, on cache lines of its own (processors fetch them in pairs).
///
/// - `filter` is locked while words are read or changed, and never while anybody waits for anything else. A thread that
///   panics with the write lock held poisons it: the shard is **in doubt**, and nobody looks into it any more.
/// - `writers` is held throughout an operation with a remote, before `filter` and never while waiting for another
///   shard's (those who need several take them in ascending order). It guards nothing in memory, so that a panic under
///   it means nothing.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shard<F> {
    filter: RwLock<F>,
    writers: Mutex<Doubts>,
    waiting: Waiting,
}

/// How many threads wait for the write lock of any shard. Whoever keeps read locks looks here whether to let go of
/// them: a hint, on which nothing else depends.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting(Arc<AtomicUsize>);

/// Whether somebody waits, of whom this is the number.
#[inline(always)]
pub(super) fn any_waiting(count: &AtomicUsize) -> bool {
    count.load(Ordering::Relaxed) != 0
}

impl Waiting {
    /// How many wait.
    pub(super) fn count(&self) -> &AtomicUsize {
        &self.0
    }

    /// Counts among those who wait until the value is dropped.
    fn one(&self) -> impl Drop {
        struct One<'w>(&'w AtomicUsize);
        impl Drop for One<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        One(&self.0)
    }
}

/// The changes, with addresses as the filter knows them, that the remote has made or not and the filter has not
/// followed.
pub(super) type Doubts = Vec<OwnedChange>;

impl<F> Shard<F> {
    pub(super) fn new(filter: F, waiting: &Waiting) -> Self {
        Self { filter: RwLock::new(filter), writers: Mutex::default(), waiting: waiting.clone() }
    }

    /// Waits for the write lock, and says so if it is not to be had at once.
    #[inline]
    fn lock(&self) -> LockResult<RwLockWriteGuard<'_, F>> {
        match self.filter.try_write() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
            Err(TryLockError::WouldBlock) => {
                let _one = self.waiting.one();
                self.filter.write()
            }
        }
    }

    /// To ask the filter; `None` if it is in doubt.
    #[inline]
    pub(super) fn read(&self) -> Option<RwLockReadGuard<'_, F>> {
        self.filter.read().ok()
    }

    /// To change the filter in memory; `None` if it is in doubt.
    #[inline]
    pub(super) fn write(&self) -> Option<RwLockWriteGuard<'_, F>> {
        self.lock().ok()
    }

    /// The filter, in doubt or not: for its parameters and counts alone.
    pub(super) fn parameters(&self) -> RwLockReadGuard<'_, F> {
        self.filter.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for one's turn to change filter and remote.
    pub(super) fn turn(&self) -> MutexGuard<'_, Doubts> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts another filter in the place of this one, and ends all doubt.
    pub(super) fn set(&self, filter: F) {
        let mut guard = self.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *guard, filter);
        drop(guard);
        self.filter.clear_poison();
        // Giving memory back takes time, and nobody waits for it here.
        drop(old);
    }

    /// Brings the filter back to a state that is sound, whatever state it is in.
    pub(super) fn reset(&self, reset: impl FnOnce(&mut F))
    where
        F: Filter,
    {
        let mut filter = self.lock().unwrap_or_else(PoisonError::into_inner);
        reset(&mut filter);
        if filter.verify().is_ok() {
            self.filter.clear_poison();
        }
    }
}
