//! What whoever opens a store may choose.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use slatedb::config::{DbReaderOptions, Settings};
use slatedb::db_cache::DbCache;

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Durability {
    /// When it is in the bucket: after SlateDB's flush interval, or the next [`flush`](super::SlateStore::flush).
    #[default]
    Awaited,
    /// When it is in memory. [`flush`](super::SlateStore::flush) awaits all that came before; a crash loses what came behind
    /// the last flush, never parts of a write.
    Buffered,
}

/// How a [`SlateStore`](super::SlateStore) or a [`SlateReader`](super::SlateReader) is opened.
///
/// ```
/// use besom_store::slate::{Durability, SlateOptions};
///
/// let options = SlateOptions::new()
///     .durability(Durability::Buffered)
///     .on_progress(|keys| eprintln!("{keys} keys read"));
/// # drop(options);
/// ```
#[derive(Clone)]
pub struct SlateOptions {
    pub(super) settings: Settings,
    pub(super) reader: DbReaderOptions,
    pub(super) cache: Option<(Arc<dyn DbCache>, u64)>,
    pub(super) durability: Durability,
    pub(super) keep: usize,
    pub(super) progress: Option<Progress>,
}

pub(super) type Progress = Arc<dyn Fn(u64) + Send + Sync>;

impl SlateOptions {
    /// SlateDB's settings, with room for the tables that snapshots add at level 0.
    #[must_use]
    pub fn new() -> Self {
        // Every snapshot adds a table. With the 8 of the default writers were seen to wait for seconds.
        let settings = Settings { l0_max_ssts: 64, l0_max_ssts_per_key: 64, ..Settings::default() };
        let (reader, durability) = (DbReaderOptions::default(), Durability::Awaited);
        Self { settings, reader, cache: None, durability, keep: 2, progress: None }
    }

    /// SlateDB's own settings. A bucket that cannot replace an object on a condition (a local directory, say) needs
    /// `boundary_files_enabled = false` in those of the garbage collector.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// SlateDB's settings for readers.
    #[must_use]
    pub fn reader_settings(mut self, settings: DbReaderOptions) -> Self {
        self.reader = settings;
        self
    }

    /// SlateDB's cache, and the number of this database in it. Without this, every store and every view of a reader has one
    /// of its own, as SlateDB has it.
    #[must_use]
    pub fn cache(mut self, cache: Arc<dyn DbCache>, number: u64) -> Self {
        self.cache = Some((cache, number));
        self
    }

    /// When writes are acknowledged; [`Durability::Awaited`] unless this says otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How many snapshots stay in the bucket, each with the tables that it refers to; 2 unless this says otherwise. A reader
    /// whose snapshot is gone gets errors until it [follows](super::SlateReader::refresh).
    #[must_use]
    pub fn keep(mut self, snapshots: NonZeroUsize) -> Self {
        self.keep = snapshots.get();
        self
    }

    /// Calls this with the number of keys read so far, every few thousand keys, while a filter is built from a scan.
    #[must_use]
    pub fn on_progress(mut self, progress: impl Fn(u64) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }
}

impl Default for SlateOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SlateOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, reader, durability, keep, .. } = self;
        f.debug_struct("SlateOptions")
            .field("settings", settings)
            .field("reader", reader)
            .field("durability", durability)
            .field("keep", keep)
            .finish_non_exhaustive()
    }
}
