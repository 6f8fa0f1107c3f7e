//! The store of one writer.

use std::ops::{Bound, Deref, RangeBounds};
use std::sync::Arc;

use besom::{BuildError, Seed};
use slatedb::DbIterator;
use slatedb::bytes::Bytes;
use slatedb::object_store::ObjectStore;
use slatedb::object_store::path::Path;

use super::engine::{Slate, row, row_range};
use super::snapshot::{InBucket, Publisher};
use super::{SlateError, SlateFailure, SlateOptions};
use crate::engine::{KeyRange, Table};
use crate::guard::{Store, key_of};
use crate::{Layout, StoreError, StoreFilter};

/// A SlateDB database behind an adaptive filter: the only writer of a bucket. All of [`Store`]'s operations are its own.
///
/// [`get`](Store::get) asks the filter first; it awaits the database only if the filter says "maybe". When the database then
/// does not have the key, the filter is repaired. A handle is cheap to clone, and can be used by many tasks at once; each clone
/// is told once of commits that were [lost](StoreError::RolledBack).
///
/// ```
/// use std::sync::Arc;
/// use besom::TelescopingFilter;
/// use besom_store::slate::{SlateOptions, SlateStore};
/// use slatedb::object_store::memory::InMemory;
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let bucket = Arc::new(InMemory::new());
/// let make = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).growable().build();
/// let store = SlateStore::open("ages", bucket, make, SlateOptions::new()).await?;
/// store.insert(b"Ada", b"36").await?;
/// assert_eq!(store.get(b"Ada").await?.as_deref(), Some(&b"36"[..]));
/// assert_eq!(store.get(b"Charles").await?, None); // almost certainly without a look into the database
/// store.close().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Failures
///
/// As [`Store`] says, for dropped futures too. A bucket that fails is asked again for some seconds
/// ([`SlateOptions::max_retries`]); then the operation fails, and the next one opens the database again. Another writer that
/// opens the same database fences this one: from then on its operations fail with [`StoreError::Closed`], before the filter is
/// asked.
pub struct SlateStore<F: StoreFilter> {
    pub(super) store: Store<F, Slate>,
    pub(super) publisher: Arc<tokio::sync::Mutex<Publisher>>,
}

impl<F: StoreFilter> Clone for SlateStore<F> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), publisher: self.publisher.clone() }
    }
}

impl<F: StoreFilter> Deref for SlateStore<F> {
    type Target = Store<F, Slate>;

    fn deref(&self) -> &Store<F, Slate> {
        &self.store
    }
}

impl<F: StoreFilter> std::fmt::Debug for SlateStore<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlateStore").field("store", &self.store).finish_non_exhaustive()
    }
}

impl<F: StoreFilter> SlateStore<F> {
    /// Opens the database at this path of the bucket, or creates it, and becomes its writer.
    ///
    /// `make` makes a filter for at least this many keys with the seed that it is given. It is used if there is no snapshot of a
    /// state that the database has been in lately; then all keys are read.
    ///
    /// # Errors
    ///
    /// [`SlateError`] if the bucket or the database failed, it is not one of this crate, or its keys do not fit into the
    /// filter. A snapshot that cannot be read is no error; [`opening`](Store::opening) tells it.
    pub async fn open(
        path: impl Into<Path>,
        bucket: Arc<dyn ObjectStore>,
        make: impl Fn(usize, Seed) -> Result<F, BuildError> + Send + Sync + 'static,
        options: SlateOptions,
    ) -> Result<Self, SlateError> {
        let path = path.into();
        let (name, store_options) = (path.to_string(), options.store.clone());
        let engine = Slate::open(path, bucket, options).await.map_err(StoreError::Engine)?;
        let snapshots = InBucket(engine.clone());
        let opened = Store::open_with(engine.clone(), &name, Arc::new(make), store_options, snapshots).await;
        if opened.is_err() {
            // The first error counts.
            let _ = engine.close().await;
        }
        let this = Self { store: opened?, publisher: Arc::default() };
        let (store, publisher) = (this.store.downgrade(), this.publisher.clone());
        this.store.take_snapshots_with(move || {
            let Some(store) = store.upgrade() else { return };
            let this = Self { store, publisher: publisher.clone() };
            tokio::spawn(async move { this.store.snapshot_ended(this.publish().await.map(drop)) });
        });
        Ok(this)
    }

    /// All keys and values as they are now: in the order of keys in the ordered layout, in that of hashes in the hashed one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    pub async fn iter(&self) -> Result<Rows, SlateError> {
        self.rows(row_range(Table::Data, &KeyRange::default())).await
    }

    /// The keys in a range, with their values, in their order, as they are now.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotOrdered`] in the hashed layout, [`StoreError::Engine`] if the database failed.
    pub async fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<Rows, SlateError> {
        if self.layout() != Layout::Ordered {
            return Err(StoreError::NotOrdered);
        }
        self.rows(data_range(&range)).await
    }

    async fn rows(&self, range: std::ops::Range<Bytes>) -> Result<Rows, SlateError> {
        let view = self.store.view().await?;
        let found = match range.is_empty() {
            true => None,
            false => Some(view.0.scan(range).await.map_err(failed)?),
        };
        Ok(Rows { found, layout: self.layout() })
    }

    /// [`publish`](Self::publish): a snapshot of the filter, in the bucket.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn snapshot(&self) -> Result<(), SlateError> {
        self.publish().await.map(drop)
    }

    /// [`Store::backup`]: copies the store as it is now to another path or another bucket, while it is in use.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use besom::TelescopingFilter;
    /// # use besom_store::slate::{SlateOptions, SlateStore};
    /// # use slatedb::object_store::memory::InMemory;
    /// # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
    /// # let make = |keys: usize, seed| TelescopingFilter::builder().capacity(keys.max(1000)).seed(seed).growable().build();
    /// # let (bucket, elsewhere) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
    /// let store = SlateStore::open("ages", bucket, make, SlateOptions::new()).await?;
    /// store.insert(b"Ada", b"36").await?;
    /// store.backup("ages of today", elsewhere.clone()).await?;
    /// let copy = SlateStore::open("ages of today", elsewhere, make, SlateOptions::new()).await?;
    /// assert_eq!(copy.get(b"Ada").await?.as_deref(), Some(&b"36"[..]));
    /// # copy.close().await?;
    /// # store.close().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As there. There must be nothing at the path.
    pub async fn backup(
        &self,
        path: impl Into<Path>,
        bucket: Arc<dyn ObjectStore>,
    ) -> Result<(), SlateError> {
        let (path, options) = (path.into(), self.store.engine.options().clone());
        // To open a database that is there would fence its writer, this one perhaps.
        let there = bucket.list_with_delimiter(Some(&path)).await;
        let there = there.map_err(|error| StoreError::Engine(error.into()))?;
        if !(there.objects.is_empty() && there.common_prefixes.is_empty()) {
            return Err(StoreError::NotAStore {
                name: path.to_string(),
                what: "a backup needs an empty place",
            });
        }
        let target = Slate::open(path, bucket, options).await.map_err(StoreError::Engine)?;
        let copied = self.store.backup(&target).await;
        let closed = target.close().await.map_err(StoreError::Engine);
        copied.and(closed)
    }

    /// Publishes a snapshot, so that the next start needs no scan, and closes the database. From then on all operations fail with
    /// [`StoreError::Closed`].
    ///
    /// # Errors
    ///
    /// [`SlateError`] if one of the two failed. All that was acknowledged as durable is there. [`StoreError::RolledBack`] if the
    /// holder of this handle was not told of lost commits before; the store is closed then too.
    pub async fn close(&self) -> Result<(), SlateError> {
        let published = self.publish_silently().await;
        self.store.engine.close().await.map_err(StoreError::Engine)?;
        published?;
        self.store.tell_of_losses()
    }
}

pub(super) fn failed(error: slatedb::Error) -> SlateError {
    StoreError::Engine(SlateFailure::Database(error))
}

/// A range of keys as one of rows of an ordered store.
pub(super) fn data_range<K: AsRef<[u8]>>(range: &impl RangeBounds<K>) -> std::ops::Range<Bytes> {
    // The least key behind one is that key and a zero.
    let behind = |key: &K| [key.as_ref(), &[0]].concat();
    let all = row_range(Table::Data, &KeyRange::default());
    let start = match range.start_bound() {
        Bound::Unbounded => all.start,
        Bound::Included(key) => row(Table::Data, key.as_ref()),
        Bound::Excluded(key) => row(Table::Data, &behind(key)),
    };
    let end = match range.end_bound() {
        Bound::Unbounded => all.end,
        Bound::Included(key) => row(Table::Data, &behind(key)),
        Bound::Excluded(key) => row(Table::Data, key.as_ref()),
    };
    start..end
}

/// Keys and values, in the order of their rows.
pub struct Rows {
    pub(super) found: Option<DbIterator>,
    pub(super) layout: Layout,
}

impl Rows {
    /// The next key and its value.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, SlateError> {
        let Some(found) = &mut self.found else { return Ok(None) };
        let Some(row) = found.next().await.map_err(failed)? else { return Ok(None) };
        let key = key_of(self.layout, &row.key[1..]).map(|key| row.key.slice_ref(key));
        Ok(Some((key.unwrap_or_default(), row.value)))
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}
