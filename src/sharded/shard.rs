//! One shard: a filter, who may ask it and who may change it.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Filter;
use crate::play::OwnedChange;

/// A filter behind its locks, on cache lines of its own (processors fetch them in pairs).
///
/// - `filter` is locked while words are read or changed, and never while anybody waits for anything else. A thread that
///   panics with the write lock held poisons it: the shard is **in doubt**, and nobody looks into it any more.
/// - `writers` is held throughout an operation with a remote, before `filter` and never while waiting for another shard's
///   (those who need several take them in ascending order). It guards nothing in memory, so that a panic under it means
///   nothing.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Shard<F> {
    filter: RwLock<F>,
    writers: Mutex<Doubts>,
}

/// The changes, with addresses as the filter knows them, that the remote has made or not and the filter has not followed.
pub(super) type Doubts = Vec<OwnedChange>;

impl<F> Shard<F> {
    pub(super) fn new(filter: F) -> Self {
        Self { filter: RwLock::new(filter), writers: Mutex::default() }
    }

    /// To ask the filter; `None` if it is in doubt.
    #[inline]
    pub(super) fn read(&self) -> Option<RwLockReadGuard<'_, F>> {
        self.filter.read().ok()
    }

    /// To change the filter in memory; `None` if it is in doubt.
    #[inline]
    pub(super) fn write(&self) -> Option<RwLockWriteGuard<'_, F>> {
        self.filter.write().ok()
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
        let mut guard = self.filter.write().unwrap_or_else(PoisonError::into_inner);
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
        let mut filter = self.filter.write().unwrap_or_else(PoisonError::into_inner);
        reset(&mut filter);
        if filter.verify().is_ok() {
            self.filter.clear_poison();
        }
    }
}
