//! Every filter under one interface, so that experiments and adversaries need not know which one they face.
//!
//! A [`Subject`] is a filter with the remote it needs. A [`Trial`] adds the exact set of stored keys and plays
//! the user: it looks keys up, notices false positives and reports them to the filter. Filters are built by
//! [`find`] from the registry in [`registry()`], at equal space: see [`Spec`].

mod registry;
mod spec;
mod trial;

use std::fmt;

use besom::any::{AnyRemote, DynFilter, DynFilterError};
use besom::testing::{Accesses, CountingRemote};
use besom::{Adaptation, BuildError, FilterStats, MemoryRemote, Remote};
use thiserror::Error;

pub use registry::{Entry, build, config, find, registry};
pub use spec::{Space, Spec};
pub use trial::{Answer, Counts, Trial};

/// A filter together with a remote that counts how often it is used.
///
/// ```
/// use besom::TelescopingFilter;
/// use besom::any::dyn_adaptive;
/// use besom_lab::subject::Subject;
///
/// let mut subject: Subject = Subject::new(dyn_adaptive(TelescopingFilter::with_capacity(10)?));
/// subject.insert(b"key")?;
/// assert!(subject.contains(b"key"));
/// assert_eq!(subject.accesses().writes, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Subject<R = MemoryRemote> {
    filter: Box<dyn DynFilter>,
    remote: AnyRemote<CountingRemote<R>>,
}

impl<R: Remote + Default> Subject<R> {
    /// A filter without keys, and an empty remote.
    #[must_use]
    pub fn new(filter: Box<dyn DynFilter>) -> Self {
        Self { filter, remote: AnyRemote(CountingRemote::new(R::default())) }
    }
}

impl<R: Remote> Subject<R> {
    /// Stores a key.
    ///
    /// # Errors
    ///
    /// When there is no room.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool, DynFilterError> {
        self.filter.insert(key, &mut self.remote)
    }

    /// Removes a stored key.
    ///
    /// # Errors
    ///
    /// When the filter cannot remove keys.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, DynFilterError> {
        self.filter.remove(key, &mut self.remote)
    }

    /// Whether the key may be stored.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.filter.contains(key)
    }

    /// Tells the filter that `key` was a false positive. One that does not adapt answers [`Adaptation::Unfixable`].
    ///
    /// # Errors
    ///
    /// When the filter failed.
    pub fn adapt(&mut self, key: &[u8]) -> Result<Adaptation, DynFilterError> {
        self.filter.adapt(key, &mut self.remote)
    }

    /// The filter's own numbers.
    #[must_use]
    pub fn stats(&self) -> FilterStats {
        self.filter.stats()
    }

    /// Accesses to the remote so far.
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        self.remote.0.accesses()
    }
}

impl<R> fmt::Debug for Subject<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("stats", &self.filter.stats()).finish_non_exhaustive()
    }
}

/// Why a subject could not be had, or did not do what it was asked for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SubjectError {
    /// No filter of this name is registered.
    #[error("no filter is called {name}; `besom-lab list` shows those that are")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The filter could not be built.
    #[error("{name}: {source}")]
    Build {
        /// Builds the filter.
        name: &'static str,
        /// What its builder says.
        source: BuildError,
    },
    /// The filter failed.
    #[error(transparent)]
    Filter(#[from] DynFilterError),
    /// A stored key was reported absent: the filter is broken.
    #[error("a stored key was reported absent: {key:02x?}")]
    FalseNegative {
        /// The key.
        key: Vec<u8>,
    },
}
