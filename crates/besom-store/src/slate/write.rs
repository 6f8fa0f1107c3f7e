//! Insertions and removals: the filter takes a key in before it is written, and lets it go after that.

use slatedb::bytes::Bytes;
use slatedb::{WriteBatch, WriteHandle};

use super::metrics::raise;
use super::replay::{Replay, Step};
use super::shared::{Shared, SlateFilter, Writer};
use super::{SlateError, rows};

/// What a batch does.
#[derive(Debug, Default)]
pub(super) struct Operations {
    pub(super) insertions: Vec<Insertion>,
    pub(super) removals: Vec<Bytes>,
}

#[derive(Debug)]
pub(super) struct Insertion {
    pub(super) key: Bytes,
    pub(super) value: Bytes,
    /// It is stored already, so the filter holds it.
    pub(super) known: bool,
}

/// What happens to the filter when removals are written.
enum Removal<F> {
    Nothing,
    /// This removal, which was planned, comes to its end.
    Confirm(Bytes),
    /// This filter, from which several keys were removed, takes the place of the other one.
    Swap(Box<F>),
}

impl<F: SlateFilter> Shared<F> {
    /// Makes insertions and removals of different keys in one batch, or none of them. Whoever calls it has
    /// [settled](Self::settle) what was in question.
    ///
    /// On an error of the database the batch may be written or not, and the filter holds the keys of both.
    pub(super) async fn execute(
        &self,
        writer: &mut Writer,
        operations: &Operations,
    ) -> Result<WriteHandle, SlateError> {
        let before = writer.doubts.open().clone();
        let mut replay = Replay::taking();
        self.learn(writer, operations, &mut replay).await?;
        self.enter_all(writer, operations, &mut replay).await?;
        let removal = self.plan_removals(writer, &operations.removals, &mut replay).await;
        let removal = match removal {
            Ok(removal) => removal,
            Err(error) => return Err(self.back_out(writer, &mut replay, error).await),
        };
        let addresses = replay.changed();
        writer.doubts.ask(addresses.iter().copied());
        writer.suspects += operations.insertions.len() + operations.removals.len();
        let mut batch = WriteBatch::new();
        for insertion in &operations.insertions {
            batch.put_bytes(rows::data(&insertion.key), insertion.value.clone());
        }
        operations.removals.iter().for_each(|key| batch.delete(rows::data(key)));
        replay.put(writer.state.generation, &mut batch);
        let handle = self.commit_asked(writer, &mut batch, &addresses, &before).await?;
        writer.suspects -= operations.insertions.len() + operations.removals.len();
        self.finish_removals(writer, removal, &mut replay);
        self.count_reads(&replay);
        Ok(handle)
    }

    /// Fetches the lists that the operations of a batch are going to ask for, all at once.
    async fn learn(
        &self,
        writer: &Writer,
        operations: &Operations,
        replay: &mut Replay,
    ) -> Result<(), SlateError> {
        if operations.insertions.len() + operations.removals.len() < 2 {
            return Ok(());
        }
        replay.plan();
        {
            let mut filter = self.filter_mut();
            for insertion in operations.insertions.iter().filter(|insertion| !insertion.known) {
                if filter.contains(&insertion.key[..]) {
                    // Fails in any case, and says what it needs.
                    let _ = filter.insert(&insertion.key[..], replay);
                }
            }
            for key in &operations.removals {
                let _ = filter.remove(&key[..], replay);
            }
        }
        replay.fetch(&self.db, writer.state.generation).await?;
        replay.take();
        Ok(())
    }

    /// Puts the keys of all insertions into the filter; if one cannot enter, takes the others out again.
    async fn enter_all(
        &self,
        writer: &mut Writer,
        operations: &Operations,
        replay: &mut Replay,
    ) -> Result<(), SlateError> {
        let all = operations.insertions.iter().filter(|insertion| !insertion.known);
        let mut keys = all.clone();
        let mut generation = writer.state.generation;
        while let Some(insertion) = keys.next() {
            if let Err(error) = self.enter(writer, &insertion.key, replay).await {
                return Err(self.back_out(writer, replay, error).await);
            }
            if writer.state.generation != generation {
                // The filter was built anew from the stored keys, without those that had entered before.
                generation = writer.state.generation;
                keys = all.clone();
            }
        }
        Ok(())
    }

    /// Makes sure that the filter holds a key.
    async fn enter(&self, writer: &mut Writer, key: &Bytes, replay: &mut Replay) -> Result<(), SlateError> {
        for attempt in 0..3 {
            let insert = |replay: &mut Replay| self.filter_mut().insert(&key[..], replay);
            let step = match attempt {
                // It is going to grow; that takes a thread.
                0 if self.is_full() => Ok(Step::Scan),
                _ => replay.drive(&self.db, writer.state.generation, insert).await,
            };
            let error = match step {
                Ok(Step::Done(new)) => {
                    // No await since the filter has changed.
                    writer.doubts.ask(replay.latest().iter().copied());
                    replay.entered(key, new);
                    return Ok(());
                }
                Ok(_) if attempt < 2 => {
                    // All lists must be there then.
                    self.write_lists(writer, replay).await?;
                    let done = match attempt {
                        0 => self.make_room(writer, key).await,
                        _ => self.rebuild(writer).await,
                    };
                    match done {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Ok(_) => SlateError::BrokenOff,
                Err(error) => error,
            };
            match error {
                // Keys that failures left behind may be what the filter is full of.
                SlateError::Full(_) if attempt == 0 && (writer.suspects > 0 || writer.doubts.slots() > 0) => {
                    self.write_lists(writer, replay).await?;
                    self.rebuild(writer).await?;
                }
                SlateError::Inconsistent { address, .. } if attempt == 0 => {
                    self.write_lists(writer, replay).await?;
                    writer.doubts.ask([address]);
                    self.settle(writer).await;
                }
                error => return Err(error),
            }
        }
        Err(SlateError::BrokenOff)
    }

    /// Writes the lists that have changed so far ahead of the data, so that filter and lists agree. The keys in them are
    /// suspects until the data is there.
    async fn write_lists(&self, writer: &mut Writer, replay: &mut Replay) -> Result<(), SlateError> {
        let addresses = replay.changed();
        if !addresses.is_empty() {
            let mut batch = WriteBatch::new();
            replay.put(writer.state.generation, &mut batch);
            // The addresses are in question since the filter changed, and no longer after this.
            let before = writer.doubts.open() - &addresses.iter().copied().collect();
            self.commit_asked(writer, &mut batch, &addresses, &before).await?;
        }
        replay.written();
        Ok(())
    }

    /// Takes the keys that have entered the filter out of it again, since they are not going to be stored. Gives back why.
    async fn back_out(&self, writer: &mut Writer, replay: &mut Replay, why: SlateError) -> SlateError {
        let generation = writer.state.generation;
        replay.take();
        let mut failed = 0;
        for key in replay.take_entered() {
            // The filter said that its list did not have it: so it is not stored, and nobody else can store it now.
            let remove = |replay: &mut Replay| self.filter_mut().remove(&key[..], replay);
            let outcome = replay.drive(&self.db, generation, remove).await;
            failed += usize::from(!matches!(outcome, Ok(Step::Done(true))));
        }
        writer.suspects += failed;
        // Lists that were written ahead of the data are written once more.
        let addresses = replay.changed();
        let written = if replay.is_as_stored() { Ok(()) } else { self.write_lists(writer, replay).await };
        if failed == 0 && written.is_ok() {
            let before = writer.doubts.open() - &addresses.iter().copied().collect();
            writer.doubts.forget(&addresses, &before);
        }
        why
    }

    /// Plans what removals change in the lists. The filter keeps the keys.
    async fn plan_removals(
        &self,
        writer: &mut Writer,
        keys: &[Bytes],
        replay: &mut Replay,
    ) -> Result<Removal<F>, SlateError> {
        let generation = writer.state.generation;
        match keys {
            [] => Ok(Removal::Nothing),
            [key] => {
                replay.plan();
                let remove = |replay: &mut Replay| self.filter_mut().remove(&key[..], replay);
                match replay.drive(&self.db, generation, remove).await {
                    Ok(Step::Planned) => Ok(Removal::Confirm(key.clone())),
                    Ok(Step::Done(_)) => Ok(Removal::Nothing),
                    Ok(Step::Scan) => Ok(self.left_behind(writer, SlateError::BrokenOff)),
                    Err(error @ SlateError::Inconsistent { .. }) => Ok(self.left_behind(writer, error)),
                    Err(error) => Err(error),
                }
            }
            keys => {
                // Each removal depends on the ones before it, and the filter must keep all until they are written.
                let mut copy = self.filter().clone();
                for key in keys {
                    let remove = |replay: &mut Replay| copy.remove(&key[..], replay);
                    match replay.drive(&self.db, generation, remove).await {
                        Ok(Step::Done(_)) => {}
                        Ok(_) => drop(self.left_behind(writer, SlateError::BrokenOff)),
                        Err(error @ SlateError::Inconsistent { .. }) => drop(self.left_behind(writer, error)),
                        Err(error) => return Err(error),
                    }
                }
                Ok(Removal::Swap(Box::new(copy)))
            }
        }
    }

    /// A removed key stays in the filter, where it costs reads in vain.
    fn left_behind(&self, writer: &mut Writer, error: SlateError) -> Removal<F> {
        if let SlateError::Inconsistent { address, .. } = error {
            writer.doubts.ask([address]);
        }
        raise(&self.counters.failed_removals);
        writer.suspects += 1;
        self.note(error);
        Removal::Nothing
    }

    /// The keys are gone from the database, and leave the filter.
    fn finish_removals(&self, writer: &mut Writer, removal: Removal<F>, replay: &mut Replay) {
        match removal {
            Removal::Nothing => {}
            Removal::Swap(filter) => *self.filter_mut() = *filter,
            Removal::Confirm(key) => {
                replay.confirm();
                let removed = self.filter_mut().remove(&key[..], replay);
                if !matches!(removed, Ok(true)) {
                    writer.doubts.ask(replay.changed());
                    self.left_behind(writer, SlateError::BrokenOff);
                }
            }
        }
    }
}
