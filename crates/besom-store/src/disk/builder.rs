//! What can be chosen when a store in a file is opened.

use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::redb::{Builder, Error};
use besom::{BuildError, Seed};

use super::engine::{Opener, Redb};
use super::file::open_or_make;
use super::store::RedbStore;
use crate::guard::{Maker, Outcome, Store};
use crate::snapshot::{SnapshotFile, is_same_file};
use crate::{Durability, Layout, Options, Progress, StoreError, StoreFilter, wait};

/// Chooses how a [`RedbStore`] is opened.
///
/// ```no_run
/// use besom::ExtensionFilter;
/// use besom_store::{Durability, Layout, RedbStore};
///
/// let store = RedbStore::builder()
///     .layout(Layout::Ordered)
///     .cache_size(256 << 20)
///     .durability(Durability::Buffered)
///     .on_progress(|progress| eprintln!("{} of {} keys", progress.keys, progress.total))
///     .open("sessions.redb", |keys, seed| {
///         ExtensionFilter::builder().capacity(keys.max(1000)).seed(seed).growable().build()
///     })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is opened before open is called"]
pub struct RedbStoreBuilder {
    pub(super) options: Options,
    create: bool,
    cache_size: Option<usize>,
    adopting: Option<String>,
}

impl Default for RedbStoreBuilder {
    fn default() -> Self {
        let options = Options::default();
        Self { options, create: true, cache_size: None, adopting: None }
    }
}

impl RedbStoreBuilder {
    /// [`Options::layout`].
    pub fn layout(mut self, layout: Layout) -> Self {
        self.options = self.options.layout(layout);
        self
    }

    /// Whether a store is made if there is none; it is unless this says otherwise.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The memory that redb may use to keep pages in, in bytes. Its own choice is 1 GiB.
    pub fn cache_size(mut self, bytes: usize) -> Self {
        self.cache_size = Some(bytes);
        self
    }

    /// [`Options::durability`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options = self.options.durability(durability);
        self
    }

    /// [`Options::durable_every`].
    pub fn durable_every(mut self, commits: NonZeroU64) -> Self {
        self.options = self.options.durable_every(commits);
        self
    }

    /// [`Options::durable_within`].
    pub fn durable_within(mut self, time: Duration) -> Self {
        self.options = self.options.durable_within(time);
        self
    }

    /// [`Options::snapshot_every`].
    pub fn snapshot_every(mut self, commits: NonZeroU64) -> Self {
        self.options = self.options.snapshot_every(commits);
        self
    }

    /// The store takes over a table.
    pub(super) fn adopting(mut self, table: &str) -> Self {
        self.adopting = Some(table.to_owned());
        self
    }

    /// The file for [snapshots](RedbStore::snapshot) of the filter. Unless given, the store's name with `.besom` behind it. Nobody
    /// else may change the file while the store is open. A file that is no snapshot is never changed or removed.
    pub fn snapshot_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.options = self.options.snapshot_path(path);
        self
    }

    /// [`Options::on_progress`].
    pub fn on_progress(mut self, listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.options = self.options.on_progress(listener);
        self
    }

    /// Opens the store. `make` makes a filter for at least this many keys with the seed that it is given, when none could be loaded.
    ///
    /// A new store is made beside its file, as `….new-` and two numbers, and put into its place when it is whole. What a killed
    /// process leaves behind there goes with the next opening.
    ///
    /// # Errors
    ///
    /// [`StoreError::Open`] and others if the file cannot be opened as a store, and what the filter says.
    pub fn open<F: StoreFilter>(
        self,
        path: impl AsRef<Path>,
        make: impl Fn(usize, Seed) -> Result<F, BuildError> + Send + Sync + 'static,
    ) -> Outcome<RedbStore<F>, Redb> {
        let path = path.as_ref().to_owned();
        let (create, cache_size, file) = (self.create, self.cache_size, path.clone());
        let opener: Opener = Box::new(move || {
            let mut builder = Builder::new();
            if let Some(bytes) = cache_size {
                builder.set_cache_size(bytes);
            }
            if create { open_or_make(&builder, &file) } else { builder.open(&file) }
        });
        self.open_with(&path, opener, Arc::new(make))
    }

    /// [`open`](Self::open) with another way to open the database.
    pub(crate) fn open_with<F: StoreFilter>(
        mut self,
        path: &Path,
        opener: Opener,
        make: Maker<F>,
    ) -> Outcome<RedbStore<F>, Redb> {
        let name = path.display().to_string();
        let snapshots = self.options.snapshot_path.get_or_insert_with(|| beside(path)).clone();
        if is_same_file(path, &snapshots) {
            return Err(StoreError::SnapshotIsStore { path: snapshots });
        }
        let engine = match Redb::open(opener, self.adopting.as_deref()) {
            Ok(Some(engine)) => engine,
            Ok(None) => {
                return Err(StoreError::NotAStore { name, what: "it has other tables than a store" });
            }
            Err(source) => {
                return Err(StoreError::Open { name, remedy: remedy(&source), source: Box::new(source) });
            }
        };
        let adopted = engine.adopted().map_err(StoreError::Engine)?;
        if let Some(table) = adopted.filter(|table| Some(table) != self.adopting.as_ref()) {
            return Err(StoreError::HalfAdopted { name, table });
        }
        let snapshots = SnapshotFile(snapshots);
        Ok(RedbStore::new(wait(Store::open_with(engine, &name, make, self.options, Some(snapshots)))?))
    }
}

/// The name of a file with `.besom` behind it.
fn beside(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".besom");
    name.into()
}

/// What can be done about a database that cannot be opened.
fn remedy(error: &Error) -> &'static str {
    use std::io::ErrorKind;
    match error {
        Error::DatabaseAlreadyOpen => "another process, or this one, has it open: close it there",
        Error::UpgradeRequired(_) => "it was made by an older redb: upgrade it with that",
        Error::Io(error) => match error.kind() {
            ErrorKind::NotFound => "there is no such file: give another path, or let it be created",
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "make it writable, directory and file"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space on the disk",
            ErrorKind::IsADirectory => "give the path of a file",
            ErrorKind::InvalidData => {
                "it is no redb database, or damaged: give another path, or take a backup"
            }
            _ => "see what the operating system says",
        },
        Error::Corrupted(_) => "take a backup",
        _ => "see what the database says",
    }
}

impl fmt::Debug for RedbStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStoreBuilder")
            .field("options", &self.options)
            .field("create", &self.create)
            .finish_non_exhaustive()
    }
}
