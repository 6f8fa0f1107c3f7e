//! What can be chosen when a store is opened, on every engine.

use std::fmt;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::guard::Listener;
use crate::snapshot::SnapshotRefused;
use crate::{Durability, Layout};

/// How a store is opened.
///
/// ```
/// use besom_store::{Durability, Layout, Options};
///
/// let options = Options::new()
///     .layout(Layout::Ordered)
///     .durability(Durability::Buffered)
///     .on_progress(|progress| eprintln!("{} of {} keys", progress.keys, progress.total));
/// # drop(options);
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) layout: Option<Layout>,
    pub(crate) durability: Durability,
    pub(crate) durable_every: u64,
    pub(crate) durable_within: Duration,
    pub(crate) snapshot_every: u64,
    pub(crate) snapshot_path: Option<PathBuf>,
    pub(crate) listener: Option<Listener>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            layout: None,
            durability: Durability::Durable,
            durable_every: u64::MAX,
            durable_within: Duration::MAX,
            snapshot_every: u64::MAX,
            snapshot_path: None,
            listener: None,
        }
    }
}

impl Options {
    /// Durable writes, and the layout that the store has.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the data of a new store lies; an existing one must have this layout. Without it, [`Layout::Hashed`] for a new
    /// store, and for an existing one whatever it has.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// The durability of writes that name none. [`Durability::Durable`] unless this says otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Makes one commit in this many durable, also where they are [buffered](Durability::Buffered): an error of the database takes
    /// back less than that.
    #[must_use]
    pub fn durable_every(mut self, commits: NonZeroU64) -> Self {
        self.durable_every = commits.get();
        self
    }

    /// Makes a commit durable if the last durable one is longer ago than this, also where it is
    /// [buffered](Durability::Buffered). Where nobody writes for that long, [flush](crate::Store::flush).
    #[must_use]
    pub fn durable_within(mut self, time: Duration) -> Self {
        self.durable_within = time;
        self
    }

    /// The file for [snapshots](crate::Store::snapshot) of the filter. Nobody else may change it while the store is open. A file
    /// that is no snapshot is never changed or removed.
    #[must_use]
    pub fn snapshot_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.snapshot_path = Some(path.into());
        self
    }

    /// Takes snapshots of the filter without being asked: one commit in this many, after the filter has grown, and when the store is
    /// closed. All but the last are taken in the background. One that fails is told by [`take_fault`](crate::Store::take_fault).
    ///
    /// Without this a store takes snapshots when it is told to. A [`Store`](crate::Store) on an engine of somebody else's takes them
    /// while a write waits, and none when it is closed.
    #[must_use]
    pub fn snapshot_every(mut self, commits: NonZeroU64) -> Self {
        self.snapshot_every = commits.get();
        self
    }

    /// Is told how far it is whenever the filter is built, every 16,384 keys and at the end.
    #[must_use]
    pub fn on_progress(mut self, listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layout, durability, durable_every, .. } = self;
        f.debug_struct("Options")
            .field("layout", layout)
            .field("durability", durability)
            .field("durable_every", durable_every)
            .finish_non_exhaustive()
    }
}

/// How far the building of a filter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Keys done.
    pub keys: u64,
    /// Keys in all.
    pub total: u64,
}

/// How a store came by its filter when it was opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Opening {
    /// The store had no keys.
    Empty,
    /// From a snapshot that matched.
    Snapshot,
    /// From a snapshot that was caught up with the writes since.
    CaughtUp {
        /// How many commits it was behind.
        commits: u64,
    },
    /// From all keys of the store.
    Built {
        /// How many.
        keys: u64,
        /// How long it took, in seconds.
        seconds: f64,
        /// What was wrong with the snapshot; `None` if there was none.
        refused: Option<SnapshotRefused>,
    },
}
