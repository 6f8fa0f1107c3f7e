//! A value that threads share, with or without the interpreter lock.
//!
//! Two locks are dangerous together. The rule here: **nobody waits for a value while holding the interpreter lock**.
//! Where the value is not free at once, the interpreter is released first. So whoever holds the value may call Python.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, TryLockError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::DamagedError;

/// A value behind a lock that does not deadlock with the interpreter's.
pub(crate) struct Shared<T> {
    lock: RwLock<T>,
    /// The thread that is changing the value, or 0.
    owner: AtomicUsize,
    /// The process that has looked whether the lock is free, by its number of [`FORKS`].
    process: AtomicUsize,
    /// Somebody who has stayed behind in another process is reading the value, forever.
    is_read_forever: AtomicBool,
}

/// How often this process and those before it were forked.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// To be called in every process that was forked off another one. The threads of that one are not in it, but the locks
/// that they held are.
#[pyfunction]
pub(crate) fn _forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A number of the running thread that no other has at the same time, and that is not 0.
fn this_thread() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

impl<T: Send + Sync> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            lock: RwLock::new(value),
            owner: AtomicUsize::new(0),
            process: AtomicUsize::new(FORKS.load(Ordering::Relaxed)),
            is_read_forever: AtomicBool::new(false),
        }
    }

    /// Whoever waits for a thread that is not there waits forever: refuses what would.
    #[inline]
    fn enter(&self, is_change: bool) -> PyResult<()> {
        if self.process.load(Ordering::Relaxed) != FORKS.load(Ordering::Relaxed) {
            self.enter_process()?;
        }
        if is_change && self.is_read_forever.load(Ordering::Relaxed) {
            return Err(left_behind());
        }
        Ok(())
    }

    /// Sees whether the lock is free where nobody of this process has used it yet.
    #[cold]
    fn enter_process(&self) -> PyResult<()> {
        static ONE_BY_ONE: Mutex<()> = Mutex::new(());
        let _guard = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let process = FORKS.load(Ordering::Relaxed);
        if self.process.load(Ordering::Relaxed) == process {
            return Ok(());
        }
        if let Err(TryLockError::WouldBlock) = self.lock.try_write() {
            if let Err(TryLockError::WouldBlock) = self.lock.try_read() {
                return Err(left_behind());
            }
            self.is_read_forever.store(true, Ordering::Relaxed);
        }
        self.process.store(process, Ordering::Relaxed);
        Ok(())
    }

    /// Looks at the value. `look` must not call Python.
    #[inline]
    pub(crate) fn read<R: Send>(&self, py: Python<'_>, look: impl FnOnce(&T) -> R + Send) -> PyResult<R> {
        self.enter(false)?;
        match self.lock.try_read() {
            Ok(value) => guarded(|| look(&value)),
            Err(TryLockError::Poisoned(value)) => guarded(|| look(&value.into_inner())),
            Err(TryLockError::WouldBlock) => {
                self.refuse_owner()?;
                py.detach(|| self.read_detached(look))
            }
        }
    }

    /// [`read`](Self::read) for threads that do not hold the interpreter lock.
    pub(crate) fn read_detached<R>(&self, look: impl FnOnce(&T) -> R) -> PyResult<R> {
        self.enter(false)?;
        self.refuse_owner()?;
        let value = self.lock.read().unwrap_or_else(PoisonError::into_inner);
        guarded(|| look(&value))
    }

    /// Changes the value. `change` may call Python, which may not come back to the value.
    pub(crate) fn write<R: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut T) -> R + Send,
    ) -> PyResult<R> {
        self.enter(true)?;
        match self.lock.try_write() {
            Ok(mut value) => self.owned(|| change(&mut value)),
            Err(TryLockError::Poisoned(value)) => self.owned(|| change(&mut value.into_inner())),
            Err(TryLockError::WouldBlock) => {
                self.refuse_owner()?;
                py.detach(|| self.write_detached(change))
            }
        }
    }

    /// [`write`](Self::write) for threads that do not hold the interpreter lock.
    pub(crate) fn write_detached<R>(&self, change: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        self.enter(true)?;
        self.refuse_owner()?;
        let mut value = self.lock.write().unwrap_or_else(PoisonError::into_inner);
        self.owned(|| change(&mut value))
    }

    /// Does some work as the thread that is changing the value.
    fn owned<R>(&self, work: impl FnOnce() -> R) -> PyResult<R> {
        self.owner.store(this_thread(), Ordering::Relaxed);
        let result = guarded(work);
        self.owner.store(0, Ordering::Relaxed);
        result
    }

    /// A thread that is changing the value would wait for itself.
    fn refuse_owner(&self) -> PyResult<()> {
        // Only the thread itself writes its own number, so no order is needed.
        if self.owner.load(Ordering::Relaxed) != this_thread() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "the mapping or index behind this object uses the object while it is being asked; let it use what is behind it only",
        ))
    }
}

#[cold]
fn left_behind() -> PyErr {
    PyRuntimeError::new_err(
        "another thread was using this object when this process was forked off, and holds it forever; fork before threads \
         use it, or start processes with \"spawn\" or \"forkserver\"",
    )
}

/// Turns a panic into an exception. A filter that was opened on a file without a check is the only known cause: its
/// bytes are whatever the file has.
#[inline]
pub(crate) fn guarded<R>(work: impl FnOnce() -> R) -> PyResult<R> {
    // A panic leaves memory safe, and operations change a filter last: see `Persist::open`.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        DamagedError::new_err(
            "the filter is damaged: it holds what no filter of its kind does; check its file with besom.check(path), and \
             build it again from its keys",
        )
    })
}
