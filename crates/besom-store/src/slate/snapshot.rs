//! Snapshots of a filter in the bucket.
//!
//! A snapshot is a filter's file, as [`besom::format`] has it, and its name says what it belongs to:
//!
//! ```text
//! <database>/filter/<writer>-<serial>-<number>-<branch>-<checkpoint>.besom
//! ```
//!
//! `writer` and `serial` say who published it, and in which order: names sort as their snapshots do. `number` and `branch` are
//! the position of the database, and `checkpoint` is SlateDB's, which keeps the tables of this state from being collected. The
//! file's own generation number is the position once more.

use std::fmt;

use besom::format::{ReadOptions, WriteOptions};
use slatedb::admin::AdminBuilder;
use slatedb::config::{CheckpointOptions, CheckpointScope};
use slatedb::object_store::path::Path;
use slatedb::object_store::{ObjectStore, ObjectStoreExt};
use uuid::Uuid;

use super::engine::Slate;
use super::store::SlateStore;
use super::{SlateError, SlateFailure};
use crate::guard::Snapshots;
use crate::{Position, SnapshotRefused, StoreError, StoreFilter};

/// The folder of snapshots in that of the database.
const FOLDER: &str = "filter";
/// How the names of snapshots end.
const ENDING: &str = ".besom";
/// How the names of SlateDB's checkpoints begin that belong to snapshots. The epoch of their writer follows.
const CHECKPOINT: &str = "besom-";

/// What the name of a snapshot says. Greater is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    writer: u64,
    serial: u64,
    pub(super) position: Position,
    pub(super) checkpoint: Uuid,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writer, serial, position, checkpoint } = self;
        write!(f, "{writer:016x}-{serial:016x}-{:016x}-{:016x}", position.number, position.branch)?;
        write!(f, "-{}{ENDING}", checkpoint.simple())
    }
}

impl Name {
    /// What a name says; `None` if it is none of a snapshot.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(ENDING)?.split('-');
        let mut number = || {
            parts.next().filter(|part| part.len() == 16).and_then(|part| u64::from_str_radix(part, 16).ok())
        };
        let (writer, serial) = (number()?, number()?);
        let position = Position { number: number()?, branch: number()? };
        let checkpoint = Uuid::try_parse(parts.next()?).ok()?;
        let parsed = Self { writer, serial, position, checkpoint };
        // One way to write a name, and nothing behind it.
        (parsed.to_string() == name).then_some(parsed)
    }

    fn path(&self, database: &Path) -> Path {
        folder(database).join(self.to_string())
    }
}

fn folder(database: &Path) -> Path {
    database.clone().join(FOLDER)
}

/// The snapshots of a database, oldest first. Objects with other names are left alone.
pub(super) async fn list(objects: &dyn ObjectStore, database: &Path) -> Result<Vec<Name>, SlateFailure> {
    let listed = objects.list_with_delimiter(Some(&folder(database))).await?;
    let mut names: Vec<Name> =
        listed.objects.iter().filter_map(|object| Name::parse(object.location.filename()?)).collect();
    names.sort_unstable();
    Ok(names)
}

/// Reads a snapshot and checks that it is what its name says.
pub(super) async fn load<F: StoreFilter>(
    objects: &dyn ObjectStore,
    database: &Path,
    name: &Name,
) -> Result<F, SlateError> {
    let bytes = objects.get(&name.path(database)).await.map_err(bucket)?.bytes().await.map_err(bucket)?;
    let read = tokio::task::spawn_blocking(move || F::from_bytes(&bytes, &ReadOptions::new())).await;
    let read = read.map_err(|_| StoreError::BrokenOff)?;
    let (filter, header) = read.map_err(|source| StoreError::Snapshot { name: name.to_string(), source })?;
    if header.generation != name.position.name() {
        return Err(StoreError::Engine(SlateFailure::Foreign { name: name.to_string() }));
    }
    Ok(filter)
}

fn bucket(error: slatedb::object_store::Error) -> SlateError {
    StoreError::Engine(error.into())
}

fn database(error: slatedb::Error) -> SlateError {
    StoreError::Engine(error.into())
}

/// The snapshots of a database, for its next writer.
pub(super) struct InBucket(pub(super) Slate);

impl<F: StoreFilter> Snapshots<F> for InBucket {
    async fn find(&self, names: &[u64]) -> Result<Option<(F, u64)>, SnapshotRefused> {
        let (objects, path) = (&**self.0.bucket(), self.0.path());
        let unreachable = |error: SlateFailure| SnapshotRefused::Unreachable(error.to_string());
        let listed = list(objects, path).await.map_err(unreachable)?;
        let Some(name) = listed.iter().rfind(|name| names.contains(&name.position.name())) else {
            return if listed.is_empty() { Ok(None) } else { Err(SnapshotRefused::Foreign) };
        };
        match load(objects, path, name).await {
            Ok(filter) => Ok(Some((filter, name.position.name()))),
            Err(StoreError::Snapshot { name, source }) => Err(SnapshotRefused::Unreadable { name, source }),
            Err(error) => Err(SnapshotRefused::Unreachable(error.to_string())),
        }
    }
}

/// What [`SlateStore::publish`](super::SlateStore::publish) has put into the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The name of the object, in the folder `filter` of the database.
    pub name: String,
    /// Which state of the database it belongs to.
    pub position: Position,
    /// How many bytes it has.
    pub bytes: usize,
}

/// What belongs to anyone who publishes.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    serial: u64,
}

impl<F: StoreFilter> SlateStore<F> {
    /// Puts a snapshot of the filter into the bucket, with a checkpoint of the database in exactly the same state: for
    /// readers, and for the next start. Queries and writes go on in the meantime, but for some milliseconds.
    ///
    /// # Errors
    ///
    /// [`SlateError`] if the database or the bucket failed. There is no new snapshot then, and the older ones are still there.
    pub async fn publish(&self) -> Result<Published, SlateError> {
        self.store.restore().await?;
        self.publish_silently().await
    }

    /// The same, and nobody hears of lost commits.
    pub(super) async fn publish_silently(&self) -> Result<Published, SlateError> {
        let mut publisher = self.publisher.lock().await;
        let engine = self.store.engine.clone();
        let db = engine.db();
        let epoch = db.manifest().writer_epoch();
        let (checkpoint, (filter, position, receipt)) = {
            let mut writer = self.store.writer.lock().await;
            let copy = self.store.copy_durably(&mut writer).await?;
            let options = CheckpointOptions {
                name: Some(format!("{CHECKPOINT}{epoch}")),
                ..CheckpointOptions::default()
            };
            // It has what was written before, and nothing of what is written after: nobody writes now.
            let checkpoint = db.begin_checkpoint(CheckpointScope::All, &options).await.map_err(database)?;
            (checkpoint, copy)
        };
        self.store.acknowledge(receipt).await?;
        let checkpoint = checkpoint.wait().await.map_err(database)?.id;
        publisher.serial += 1;
        let name = Name { writer: epoch, serial: publisher.serial, position, checkpoint };
        let write = move || filter.to_bytes(&WriteOptions::new().generation(position.name()));
        let written = tokio::task::spawn_blocking(write).await.map_err(|_| StoreError::BrokenOff)?;
        let file = written.map_err(|source| StoreError::Snapshot { name: name.to_string(), source })?;
        let bytes = file.len();
        engine.bucket().put(&name.path(engine.path()), file.into()).await.map_err(bucket)?;
        self.store.note_snapshot(position).await;
        if let Err(error) = clear_out(engine, epoch).await {
            // What is left is cleared out with the next snapshot.
            self.store.note("old snapshots could not be deleted", StoreError::Engine(error));
        }
        Ok(Published { name: name.to_string(), position, bytes })
    }
}

/// Deletes snapshots beyond those that are kept, and checkpoints that belong to none. Those of later writers are none of
/// this one's business: a snapshot may be under way to them.
async fn clear_out(engine: Slate, epoch: u64) -> Result<(), SlateFailure> {
    let (objects, path) = (engine.bucket().clone(), engine.path().clone());
    let names = list(&*objects, &path).await?;
    let (old, kept) = names.split_at(names.len().saturating_sub(engine.options().keep));
    for name in old {
        // First the name, then what it refers to: nobody finds a snapshot without its checkpoint.
        objects.delete(&name.path(&path)).await?;
    }
    let admin = AdminBuilder::new(path.clone(), objects.clone()).build();
    for checkpoint in admin.list_checkpoints(None).await? {
        let writer = checkpoint.name.as_deref().and_then(|name| name.strip_prefix(CHECKPOINT)?.parse().ok());
        let is_ours = writer.is_some_and(|writer: u64| writer <= epoch);
        if is_ours && !kept.iter().any(|name| name.checkpoint == checkpoint.id) {
            admin.delete_checkpoint(checkpoint.id).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Catches: names that do not come back, that sort otherwise than their snapshots, or that others are taken for.
    use super::*;

    fn name(writer: u64, serial: u64) -> Name {
        let position = Position { number: 9, branch: writer };
        Name { writer, serial, position, checkpoint: Uuid::from_u128(0xabc) }
    }

    #[test]
    fn names_come_back_and_sort_as_their_snapshots_do() {
        let names = [name(1, 2), name(1, 11), name(2, 1), name(16, 0)];
        let texts = names.map(|name| name.to_string());
        assert!(names.is_sorted() && texts.is_sorted());
        assert_eq!(texts.each_ref().map(|text| Name::parse(text)), names.map(Some));
        assert_eq!(
            texts[0],
            "0000000000000001-0000000000000002-0000000000000009-0000000000000001-\
             00000000000000000000000000000abc.besom"
        );
    }

    #[test]
    fn other_names_are_none() {
        let good = name(1, 2).to_string();
        let upper = good.replace("abc", "ABC");
        for bad in ["", ".besom", &good[1..], &good[..good.len() - 1], &format!("{good}x"), &upper] {
            assert_eq!(Name::parse(bad), None, "{bad}");
        }
    }
}
