//! Snapshots of a filter in the bucket.
//!
//! A snapshot is a filter's file, as [`besom::format`] has it, and its name says what it belongs to:
//!
//! ```text
//! <database>/filter/<writer>-<serial>-<epoch>-<count>-<generation>-<checkpoint>.besom
//! ```
//!
//! `writer` and `serial` say who published it, and in which order: names sort as their snapshots do. `epoch` and `count` are
//! the position of the database, `generation` is that of the lists, and `checkpoint` is SlateDB's, which keeps the tables of
//! this state from being collected. The file's own generation number is `count` once more.

use std::fmt;

use besom::format::{ReadOptions, WriteOptions};
use slatedb::admin::{Admin, AdminBuilder};
use slatedb::config::{CheckpointOptions, CheckpointScope};
use slatedb::object_store::path::Path;
use slatedb::object_store::{ObjectStore, ObjectStoreExt};
use uuid::Uuid;

use super::SlateError;
use super::rows::{Position, State};
use super::shared::{Shared, SlateFilter};

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
    pub(super) generation: u64,
    pub(super) checkpoint: Uuid,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writer, serial, position, generation, checkpoint } = self;
        write!(f, "{writer:016x}-{serial:016x}-{:016x}-{:016x}", position.epoch, position.count)?;
        write!(f, "-{generation:016x}-{}{ENDING}", checkpoint.simple())
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
        let position = Position { epoch: number()?, count: number()? };
        let generation = number()?;
        let checkpoint = Uuid::try_parse(parts.next()?).ok()?;
        let parsed = Self { writer, serial, position, generation, checkpoint };
        // One way to write a name, and nothing behind it.
        (parsed.to_string() == name).then_some(parsed)
    }

    /// Whether the snapshot belongs to this state of a database.
    pub(super) fn belongs_to(&self, state: &State) -> bool {
        self.position == state.position && self.generation == state.generation
    }

    fn path(&self, database: &Path) -> Path {
        folder(database).join(self.to_string())
    }
}

fn folder(database: &Path) -> Path {
    database.clone().join(FOLDER)
}

/// The snapshots of a database, oldest first. Objects with other names are left alone.
pub(super) async fn list(objects: &dyn ObjectStore, database: &Path) -> Result<Vec<Name>, SlateError> {
    let listed = objects.list_with_delimiter(Some(&folder(database))).await?;
    let mut names: Vec<Name> =
        listed.objects.iter().filter_map(|object| Name::parse(object.location.filename()?)).collect();
    names.sort_unstable();
    Ok(names)
}

/// Reads a snapshot and checks that it is what its name says.
pub(super) async fn load<F: SlateFilter>(
    objects: &dyn ObjectStore,
    database: &Path,
    name: &Name,
) -> Result<F, SlateError> {
    let bytes = objects.get(&name.path(database)).await?.bytes().await?;
    let read = tokio::task::spawn_blocking(move || F::from_bytes(&bytes, &ReadOptions::new())).await;
    let read = read.map_err(|_| SlateError::BrokenOff)?;
    let (filter, header) = read.map_err(|source| SlateError::Snapshot { name: name.to_string(), source })?;
    if header.generation != name.position.count {
        return Err(SlateError::Foreign { name: name.to_string() });
    }
    Ok(filter)
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

/// What belongs to whoever publishes.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    serial: u64,
}

impl<F: SlateFilter> Shared<F> {
    /// Publishes the filter, with a checkpoint of the database in the same state.
    pub(super) async fn publish(&self) -> Result<Published, SlateError> {
        let mut publisher = self.publisher.lock().await;
        let (checkpoint, filter, state, epoch) = {
            let mut writer = self.writer.lock().await;
            self.repair_waiting(&mut writer).await;
            self.settle_lists(&mut writer).await?;
            if writer.doubts.lost {
                self.rebuild(&mut writer).await?;
            }
            let name = Some(format!("{CHECKPOINT}{}", writer.epoch));
            let options = CheckpointOptions { name, ..CheckpointOptions::default() };
            // It has what was written before, and nothing of what is written after: nobody writes now.
            let checkpoint = self.db.begin_checkpoint(CheckpointScope::All, &options).await?;
            (checkpoint, self.filter().clone(), writer.state, writer.epoch)
        };
        let checkpoint = checkpoint.wait().await?.id;
        publisher.serial += 1;
        let (position, generation) = (state.position, state.generation);
        let name = Name { writer: epoch, serial: publisher.serial, position, generation, checkpoint };
        let write = move || filter.to_bytes(&WriteOptions::new().generation(position.count));
        let written = tokio::task::spawn_blocking(write).await.map_err(|_| SlateError::BrokenOff)?;
        let file = written.map_err(|source| SlateError::Snapshot { name: name.to_string(), source })?;
        let bytes = file.len();
        self.objects.put(&name.path(&self.path), file.into()).await?;
        self.has_published();
        if let Err(error) = self.clear_out(epoch).await {
            // What is left is cleared out with the next snapshot.
            self.note(error);
        }
        Ok(Published { name: name.to_string(), position, bytes })
    }

    /// Deletes snapshots beyond those that are kept, and checkpoints that belong to none. Those of later writers are none of
    /// this one's business: a snapshot may be under way to them.
    pub(super) async fn clear_out(&self, epoch: u64) -> Result<(), SlateError> {
        let names = list(&*self.objects, &self.path).await?;
        let (old, kept) = names.split_at(names.len().saturating_sub(self.options.keep));
        for name in old {
            // First the name, then what it refers to: nobody finds a snapshot without its checkpoint.
            self.objects.delete(&name.path(&self.path)).await?;
        }
        let admin = self.admin();
        for checkpoint in admin.list_checkpoints(None).await? {
            let writer =
                checkpoint.name.as_deref().and_then(|name| name.strip_prefix(CHECKPOINT)?.parse().ok());
            let is_ours = writer.is_some_and(|writer: u64| writer <= epoch);
            if is_ours && !kept.iter().any(|name| name.checkpoint == checkpoint.id) {
                admin.delete_checkpoint(checkpoint.id).await?;
            }
        }
        Ok(())
    }

    fn admin(&self) -> Admin {
        AdminBuilder::new(self.path.clone(), self.objects.clone()).build()
    }
}

/// The filter of a snapshot that belongs to exactly this state, if there is one that can be read.
pub(super) async fn matching<F: SlateFilter>(
    objects: &dyn ObjectStore,
    database: &Path,
    state: &State,
) -> (Option<F>, Option<SlateError>) {
    let names = match list(objects, database).await {
        Ok(names) => names,
        Err(error) => return (None, Some(error)),
    };
    match names.iter().rfind(|name| name.belongs_to(state)) {
        None => (None, None),
        Some(name) => match load(objects, database, name).await {
            Ok(filter) => (Some(filter), None),
            Err(error) => (None, Some(error)),
        },
    }
}

#[cfg(test)]
mod tests {
    //! Catches: names that do not come back, that sort otherwise than their snapshots, or that others are taken for.
    use super::*;

    fn name(writer: u64, serial: u64) -> Name {
        let position = Position { epoch: writer, count: 9 };
        Name { writer, serial, position, generation: 3, checkpoint: Uuid::from_u128(0xabc) }
    }

    #[test]
    fn names_come_back_and_sort_as_their_snapshots_do() {
        let names = [name(1, 2), name(1, 11), name(2, 1), name(16, 0)];
        let texts = names.map(|name| name.to_string());
        assert!(names.is_sorted() && texts.is_sorted());
        assert_eq!(texts.each_ref().map(|text| Name::parse(text)), names.map(Some));
        assert_eq!(
            texts[0],
            "0000000000000001-0000000000000002-0000000000000001-0000000000000009-0000000000000003-\
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

    #[test]
    fn a_snapshot_belongs_to_one_state() {
        let state = State { position: Position { epoch: 1, count: 9 }, generation: 3, highest: 3 };
        assert!(name(1, 5).belongs_to(&state));
        assert!(!name(2, 5).belongs_to(&state));
        assert!(!name(1, 5).belongs_to(&State { generation: 4, ..state }));
        let position = Position { epoch: 1, count: 10 };
        assert!(!name(1, 5).belongs_to(&State { position, ..state }));
    }
}
