//! Adaptive filters of the library as subjects.

use besom::{Adaptation, Adaptive, Change, FilterStats, MemoryRemote, MissingEntry, Remote};

use super::{RemoteAccesses, Subject, SubjectError};

/// An adaptive filter with its remote.
#[derive(Debug)]
pub struct Adapting<F> {
    filter: F,
    remote: CountingRemote<LabRemote>,
}

impl<F: Adaptive> Adapting<F> {
    /// A filter without keys, and a remote in memory.
    pub fn new(filter: F) -> Self {
        Self::with_remote(filter, RemoteKind::Memory)
    }

    /// A filter without keys, and a remote of this kind.
    pub fn with_remote(filter: F, kind: RemoteKind) -> Self {
        let remote = match kind {
            RemoteKind::Memory => LabRemote::Memory(MemoryRemote::new()),
            RemoteKind::Nothing => LabRemote::Nothing,
        };
        Self { filter, remote: CountingRemote::new(remote) }
    }
}

/// What an adaptive filter's remote does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RemoteKind {
    /// It keeps the keys in memory.
    #[default]
    Memory,
    /// It stores nothing: to measure what an insertion costs the filter itself. Repairs and removals need more.
    Nothing,
}

#[derive(Debug)]
enum LabRemote {
    Memory(MemoryRemote),
    Nothing,
}

impl Remote for LabRemote {
    type Error = MissingEntry;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), MissingEntry> {
        match self {
            Self::Memory(remote) => remote.read(address, visit),
            Self::Nothing => Ok(()),
        }
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), MissingEntry> {
        match self {
            Self::Memory(remote) => remote.apply(changes),
            Self::Nothing => Ok(()),
        }
    }
}

impl<F: Adaptive + Send> Subject for Adapting<F> {
    fn insert(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        self.filter.insert(key, &mut self.remote).map_err(|error| SubjectError::Failed(error.to_string()))
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, SubjectError> {
        self.filter.remove(key, &mut self.remote).map_err(|error| SubjectError::Failed(error.to_string()))
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.filter.contains(key)
    }

    fn adapt(&mut self, key: &[u8]) -> Result<Adaptation, SubjectError> {
        self.filter.adapt(key, &mut self.remote).map_err(|error| SubjectError::Failed(error.to_string()))
    }

    fn stats(&self) -> FilterStats {
        self.filter.stats()
    }

    fn remote(&self) -> RemoteAccesses {
        self.remote.accesses()
    }
}

/// A remote that counts how often it is used.
#[derive(Debug, Clone, Default)]
pub struct CountingRemote<R> {
    remote: R,
    accesses: RemoteAccesses,
}

impl<R: Remote> CountingRemote<R> {
    /// Counts the uses of `remote` from now on.
    pub fn new(remote: R) -> Self {
        Self { remote, accesses: RemoteAccesses::default() }
    }

    /// The uses so far.
    pub fn accesses(&self) -> RemoteAccesses {
        self.accesses
    }
}

impl<R: Remote> Remote for CountingRemote<R> {
    type Error = R::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), R::Error> {
        self.accesses.reads += 1;
        self.remote.read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), R::Error> {
        self.accesses.writes += 1;
        self.accesses.changes += changes.len() as u64;
        self.remote.apply(changes)
    }
}
