//! What can be chosen when a store is opened, and how it comes by its filter.

use std::ffi::OsString;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use ::redb::{Builder, Durability, Error};
use besom::BuildError;

use crate::engine::{Engine, View};
use crate::guard::{self, Guarded, Listener, Maker};
use crate::redb::{FORMAT, Layout, Opener, Redb, RedbView, Refused, open_or_make};
use crate::snapshot::{self, SnapshotRefused, Standing};
use crate::store::{Opening, SnapshotTime};
use crate::{Progress, RedbStore, StoreError, StoreFilter};

type Outcome<T> = Result<T, StoreError<Error>>;

/// Chooses how a [`RedbStore`] is opened.
///
/// ```no_run
/// use besom::ExtensionFilter;
/// use besom_store::{Durability, Layout, RedbStore};
///
/// let store = RedbStore::builder()
///     .layout(Layout::Merged)
///     .cache_size(256 << 20)
///     .durability(Durability::None)
///     .on_progress(|progress| eprintln!("{} of {} keys", progress.keys, progress.total))
///     .open("sessions.redb", |keys| ExtensionFilter::builder().capacity(keys.max(1000)).growable().build())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is opened before open is called"]
pub struct RedbStoreBuilder {
    layout: Option<Layout>,
    create: bool,
    cache_size: Option<usize>,
    durability: Durability,
    snapshot_path: Option<PathBuf>,
    listener: Option<Listener>,
}

impl Default for RedbStoreBuilder {
    fn default() -> Self {
        let durability = Durability::Immediate;
        Self { layout: None, create: true, cache_size: None, durability, snapshot_path: None, listener: None }
    }
}

impl RedbStoreBuilder {
    /// Where the data of a new store lies; an existing one must have this layout. Without it, [`Layout::Split`] for a new
    /// store, and for an existing one whatever it has.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
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

    /// The durability of writes that name none. [`Durability::Immediate`] unless this says otherwise.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The file for [snapshots](RedbStore::snapshot) of the filter. Unless given, the store's name with `.besom` behind it. Nobody
    /// else may change the file while the store is open.
    pub fn snapshot_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.snapshot_path = Some(path.into());
        self
    }

    /// Is told how far it is whenever the filter is built anew, every 16,384 keys and at the end.
    pub fn on_progress(mut self, listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Opens the store. `make` makes a filter for at least so many keys, when none could be loaded.
    ///
    /// A new store is made beside its file, as `….new-` and two numbers, and put into its place when it is whole. Only a process that is
    /// killed in that moment leaves such a file behind; it can be removed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Open`] and others if the file cannot be opened as a store, and what the filter says.
    pub fn open<F: StoreFilter>(
        self,
        path: impl AsRef<Path>,
        make: impl Fn(usize) -> Result<F, BuildError> + Send + Sync + 'static,
    ) -> Outcome<RedbStore<F>> {
        let path = path.as_ref().to_owned();
        let (create, cache_size, file) = (self.create, self.cache_size, path.clone());
        let opener: Opener = Box::new(move || {
            let mut builder = Builder::new();
            if let Some(bytes) = cache_size {
                builder.set_cache_size(bytes);
            }
            if create { open_or_make(&builder, &file) } else { builder.open(&file) }
        });
        self.open_with(&path, opener, Box::new(make))
    }

    /// [`open`](Self::open) with another way to open the database.
    pub(crate) fn open_with<F: StoreFilter>(
        self,
        path: &Path,
        opener: Opener,
        make: Maker<F>,
    ) -> Outcome<RedbStore<F>> {
        let engine = Redb::open(opener, self.layout, guard::first_number())
            .map_err(|refused| refusal(path, self.layout.unwrap_or_default(), refused))?;
        let snapshot_path = self.snapshot_path.unwrap_or_else(|| beside(path));
        let (found, sequence) = find_filter(&engine, &snapshot_path, &make)?;
        let (filter, opening) = match found {
            Ok(found) => found,
            Err(refused) => {
                // Once the filter is built anew this file belongs to nothing. It may fail to go, and will be refused again.
                let _ = refused.is_some() && std::fs::remove_file(&snapshot_path).is_ok();
                (make(0)?, Opening::Built { keys: 0, seconds: 0.0, refused })
            }
        };
        if engine.is_merged() && filter.address_of(besom::Digest { hi: 0, lo: 0 }).is_none() {
            return Err(StoreError::NoAddress);
        }
        let snapshot = match opening {
            Opening::Snapshot => Some(SnapshotTime { at: Instant::now(), sequence }),
            Opening::CaughtUp { commits } => {
                Some(SnapshotTime { at: Instant::now(), sequence: sequence - commits })
            }
            _ => None,
        };
        let guarded = Guarded::new(engine, filter, sequence, make, self.listener);
        guarded.note_logged(snapshot.map(|snapshot| sequence - snapshot.sequence));
        let mut store = RedbStore {
            guarded,
            durability: self.durability,
            snapshot_path,
            snapshots: Mutex::new(()),
            last_snapshot: Mutex::new(snapshot),
            opening,
        };
        store.build_if_needed()?;
        Ok(store)
    }
}

impl<F: StoreFilter> RedbStore<F> {
    /// Builds the filter if none was found.
    fn build_if_needed(&mut self) -> Outcome<()> {
        let Opening::Built { keys, seconds, refused } = &mut self.opening else { return Ok(()) };
        if let Some(refused) = refused {
            crate::events::failure("a snapshot was not used", refused);
        }
        let start = Instant::now();
        self.guarded.distrust();
        self.guarded.restore()?;
        *keys = self.guarded.with_filter(|filter| filter.len() as u64);
        *seconds = start.elapsed().as_secs_f64();
        Ok(())
    }
}

/// The name of a file with `.besom` behind it.
fn beside(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".besom");
    name.into()
}

/// A filter for the store as it is, and how it was come by; or why there is none.
type Found<F> = Result<(F, Opening), Option<SnapshotRefused>>;

/// Looks for a filter that needs not be built, and the number of the commit that the store is at.
fn find_filter<F: StoreFilter>(engine: &Redb, path: &Path, make: &Maker<F>) -> Outcome<(Found<F>, u64)> {
    let view = engine.view().map_err(StoreError::Engine)?;
    let (first, now) = view.history().map_err(StoreError::Engine)?;
    let keys = view.len().map_err(StoreError::Engine)?;
    let found = match snapshot::load::<F>(path) {
        Err(refused) => Err(Some(refused)),
        Ok(None) if is_empty(&view)? => Ok((make(0)?, Opening::Empty)),
        Ok(None) => Err(None),
        Ok(Some((mut filter, snapshot))) => match Standing::of(snapshot, first, now) {
            Standing::Matches => Ok((filter, Opening::Snapshot)),
            Standing::Behind(commits) => match guard::catch_up(&mut filter, &view, snapshot, now) {
                Ok(()) => Ok((filter, Opening::CaughtUp { commits })),
                Err(why) => Err(Some(SnapshotRefused::Older { commits, why: why.to_string() })),
            },
            Standing::Newer => Err(Some(SnapshotRefused::Newer { snapshot, store: now })),
            Standing::Foreign => Err(Some(SnapshotRefused::Foreign { snapshot, first })),
        },
    };
    let checked = found.and_then(|(filter, opening)| match filter.len() as u64 {
        found if found == keys => Ok((filter, opening)),
        snapshot => Err(Some(SnapshotRefused::OtherKeys { snapshot, store: keys })),
    });
    Ok((checked, now))
}

/// Whether there is no key, in the data or the lists.
fn is_empty(view: &RedbView) -> Outcome<bool> {
    let mut empty = view.len().map_err(StoreError::Engine)? == 0;
    let visit = &mut |_, _: &[u8]| {
        empty = false;
        ControlFlow::Break(())
    };
    view.scan_lists(visit).map_err(StoreError::Engine)?;
    Ok(empty)
}

fn refusal(path: &Path, asked: Layout, refused: Refused) -> StoreError<Error> {
    let path = path.to_owned();
    match refused {
        Refused::Database(source) => {
            StoreError::Open { path, remedy: remedy(&source), source: Box::new(source) }
        }
        Refused::Foreign => StoreError::NotAStore { path },
        Refused::Newer(found) => StoreError::NewerFormat { path, found, known: FORMAT },
        Refused::OtherLayout(found) => StoreError::OtherLayout { path, found, asked },
    }
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
            .field("layout", &self.layout)
            .field("create", &self.create)
            .finish_non_exhaustive()
    }
}
