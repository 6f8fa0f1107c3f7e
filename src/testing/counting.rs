//! Remotes that count, and one that stores nothing.

use std::convert::Infallible;
use std::ops::RangeInclusive;

use crate::{Change, Remote, Visit};

/// How often a remote was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accesses {
    /// Ranges read.
    pub reads: u64,
    /// Pairs that were visited.
    pub pairs: u64,
    /// Groups of changes made.
    pub writes: u64,
    /// Changes in these groups.
    pub changes: u64,
}

/// A remote that counts how often it is used.
///
/// ```
/// use besom::testing::CountingRemote;
/// use besom::{Adaptive, ExtensionFilter, MemoryRemote};
///
/// let mut remote = CountingRemote::new(MemoryRemote::new());
/// ExtensionFilter::with_capacity(10)?.insert("key", &mut remote)?;
/// assert_eq!((remote.accesses().reads, remote.accesses().writes), (0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct CountingRemote<R> {
    /// What is counted.
    pub inner: R,
    accesses: Accesses,
}

impl<R> CountingRemote<R> {
    /// Counts the uses of `inner` from now on.
    pub fn new(inner: R) -> Self {
        Self { inner, accesses: Accesses::default() }
    }

    /// The uses so far.
    pub fn accesses(&self) -> Accesses {
        self.accesses
    }

    /// The uses since this was asked last.
    pub fn take_accesses(&mut self) -> Accesses {
        std::mem::take(&mut self.accesses)
    }
}

impl<R: Remote> Remote for CountingRemote<R> {
    type Error = R::Error;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), R::Error> {
        let Self { inner, accesses } = self;
        accesses.reads += 1;
        inner.range(addresses, &mut |address, key| {
            accesses.pairs += 1;
            visit(address, key)
        })
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        self.accesses.writes += 1;
        self.accesses.changes += changes.len() as u64;
        self.inner.apply(changes)
    }
}

/// A remote that stores nothing: to measure what an insertion costs the filter itself. Repairs and removals need more.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullRemote;

impl Remote for NullRemote {
    type Error = Infallible;

    fn range(&mut self, _: RangeInclusive<u64>, _: &mut Visit<'_>) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline]
    fn apply(&mut self, _: &[Change<'_>]) -> Result<(), Infallible> {
        Ok(())
    }
}
