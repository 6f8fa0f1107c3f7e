//! What can be chosen when a store on object storage is opened.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use slatedb::config::{DbReaderOptions, Settings};
use slatedb::db_cache::DbCache;

use crate::Options;

/// How a [`SlateStore`](super::SlateStore) or a [`SlateReader`](super::SlateReader) is opened.
///
/// ```
/// use besom_store::slate::SlateOptions;
/// use besom_store::{Durability, Options};
///
/// let options = SlateOptions::new().store(Options::new().durability(Durability::Buffered)).max_retries(3);
/// # drop(options);
/// ```
#[derive(Clone)]
pub struct SlateOptions {
    pub(super) settings: Settings,
    pub(super) reader: DbReaderOptions,
    pub(super) cache: Option<(Arc<dyn DbCache>, u64)>,
    pub(super) keep: usize,
    pub(super) store: Options,
}

/// How often SlateDB repeats a request that failed: for some eight seconds.
const RETRIES: u32 = 10;

impl SlateOptions {
    /// SlateDB's settings, with room for the tables that snapshots add at level 0, and a bound on how often a request to the
    /// bucket is repeated: SlateDB alone repeats it forever, and anyone who waits for it waits forever.
    #[must_use]
    pub fn new() -> Self {
        // Every snapshot adds a table. With the 8 of the default writers were seen to wait for seconds.
        let settings = Settings {
            l0_max_ssts: 64,
            l0_max_ssts_per_key: 64,
            object_store_max_retries: Some(RETRIES),
            ..Settings::default()
        };
        let reader =
            DbReaderOptions { object_store_max_retries: Some(RETRIES), ..DbReaderOptions::default() };
        Self { settings, reader, cache: None, keep: 2, store: Options::new() }
    }

    /// What can be chosen for every store: layout, durability, who hears of progress.
    #[must_use]
    pub fn store(mut self, options: Options) -> Self {
        self.store = options;
        self
    }

    /// How often a request to the bucket is repeated before it fails, 10 times unless this says otherwise: after a tenth of a
    /// second, then twice as long each time up to a second. An operation that fails so names the bucket's error; the next one
    /// opens the database again.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        (self.settings.object_store_max_retries, self.reader.object_store_max_retries) =
            (Some(retries), Some(retries));
        self
    }

    /// SlateDB's own settings, all of them. A bucket that cannot replace an object on a condition (a local directory, say) needs
    /// `boundary_files_enabled = false` in those of the garbage collector. A default time to live is not applied: the rows of a
    /// store do not expire.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// SlateDB's settings for readers, all of them.
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

    /// How many snapshots stay in the bucket, each with the tables that it refers to; 2 unless this says otherwise. A reader
    /// whose snapshot is gone gets errors until it [follows](super::SlateReader::refresh).
    #[must_use]
    pub fn keep(mut self, snapshots: NonZeroUsize) -> Self {
        self.keep = snapshots.get();
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
        let Self { settings, reader, keep, store, .. } = self;
        f.debug_struct("SlateOptions")
            .field("settings", settings)
            .field("reader", reader)
            .field("keep", keep)
            .field("store", store)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    //! Catches: waiting without end by default, and rows that expire.
    use besom::TelescopingFilter;
    use slatedb::object_store::memory::InMemory;

    use super::*;
    use crate::engine::{Engine, Table, View};
    use crate::slate::SlateStore;
    use crate::slate::engine::row;

    #[test]
    fn requests_are_repeated_a_bounded_number_of_times() {
        for options in [SlateOptions::new(), SlateOptions::default(), SlateOptions::new().max_retries(3)] {
            let retries =
                [options.settings.object_store_max_retries, options.reader.object_store_max_retries];
            assert!(
                retries.iter().all(|retries| retries.is_some_and(|retries| retries <= 10)),
                "{retries:?}"
            );
        }
    }

    #[test]
    fn no_row_of_a_store_expires() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let make = |_, seed| TelescopingFilter::builder().capacity(100).seed(seed).build();
            let mut options = SlateOptions::new();
            options.settings.default_ttl_millis = Some(1);
            let store = SlateStore::open("db", Arc::new(InMemory::new()), make, options).await.unwrap();
            store.insert(b"key", b"value").await.unwrap();
            let view = store.engine.view().unwrap();
            let mut rows = Vec::new();
            for table in Table::ALL {
                let visit = &mut |key: &[u8], _: &[u8]| {
                    rows.push(row(table, key));
                    std::ops::ControlFlow::Continue(())
                };
                view.scan(table, Default::default(), true, visit).await.unwrap();
            }
            assert!(rows.len() > 2, "{rows:?}");
            for row in rows {
                let found = store.engine.db().get_key_value(&row).await.unwrap().unwrap();
                assert_eq!(found.expire_ts, None, "{row:?}");
            }
        });
    }
}
