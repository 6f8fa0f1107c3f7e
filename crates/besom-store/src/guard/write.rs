//! Writes: new keys enter the filter, the database commits, removed keys leave the filter.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use besom::format::Kind;
use besom::play::{Insert, OwnedChange, Play, RemoveStored, Step as Played};
use besom::{AdaptiveError, Digest, KeyHasher};

use super::live::{MustRead, Unread};
use super::{Boxed, Outcome, Store, StoreFilter, Writer};
use crate::batch::Step;
use crate::engine::{Durability, Engine, Table, Write};
use crate::error::of_filter;
use crate::record::{self, Entry, Index, Position};
use crate::wait::all;
use crate::{Batch, Layout, StoreError, rows};

/// Waiting repairs that a writer makes up for when it is done.
const REPAIRS: usize = 8;

/// Commits that are written down between two snapshots.
const MAX_LOGGED: u64 = 1 << 17;

/// Rows of commits that a commit deletes, at most.
const TRIMMED: u64 = 16;

/// Keys that enter the filter under one lock.
const ENTERING: usize = 256;

/// Keys that are looked up at once.
const LOOKED_UP: usize = 64;

/// The longest key: what every engine takes, with the hash in front, and a byte for the table.
pub(crate) const MAX_KEY: usize = u16::MAX as usize - size_of::<u64>() - 1;

/// A change to one key.
pub(super) struct Op<'k> {
    pub(super) digest: Digest,
    pub(super) key: &'k [u8],
    value: Option<&'k [u8]>,
}

/// What the database has of a key that the filter accepts; `None` for one that it rejects.
type Looked<V> = Option<Option<V>>;

/// What a write does to the filter, as numbers of its operations.
#[derive(Default)]
struct Plan {
    entering: Vec<usize>,
    leaving: Vec<usize>,
    /// Removals of keys that are not there.
    idle: Vec<usize>,
    /// Those of which it is not known whether the key is there.
    unread: Vec<usize>,
}

impl<F: StoreFilter, E: Engine> Store<F, E> {
    /// Stores a value, and returns the one that was there. Reads only if the filter says that the key may be there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed: the key has the old value or the new one. [`StoreError::Full`] without room
    /// in the filter; nothing has changed.
    pub async fn insert(&self, key: &[u8], value: &[u8]) -> Outcome<Option<E::Value>, E> {
        self.insert_with(key, value, self.durability).await
    }

    /// [`insert`](Self::insert) with another durability.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub async fn insert_with(
        &self,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Outcome<Option<E::Value>, E> {
        Ok(self.write_steps([(key, Some(value))], durability, false).await?.pop().flatten().flatten())
    }

    /// Removes a key, and returns its value. Waits for nothing if the filter rejects the key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed: the key is there or not.
    pub async fn remove(&self, key: &[u8]) -> Outcome<Option<E::Value>, E> {
        self.remove_with(key, self.durability).await
    }

    /// [`remove`](Self::remove) with another durability.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    pub async fn remove_with(&self, key: &[u8], durability: Durability) -> Outcome<Option<E::Value>, E> {
        Ok(self.write_steps([(key, None)], durability, false).await?.pop().flatten().flatten())
    }

    /// Stores a value, and does not ask which one was there: nothing is read, and nothing but the commit is waited for.
    ///
    /// A key that may be there gets another item in the filter, and is in doubt until its home is read: when there are some
    /// thousand of them, many at once, or when [`len`](Self::len), [`restore`](Self::restore) or a snapshot asks for it.
    /// Repairs wait beside it. This is so with telescoping and extension filters, which can have more items than keys; with
    /// others it reads as [`insert`](Self::insert) does.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Outcome<(), E> {
        self.write_unread((key, Some(value))).await
    }

    /// Removes a key, and does not ask whether it is there; as [`put`](Self::put) stores one.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    pub async fn delete(&self, key: &[u8]) -> Outcome<(), E> {
        self.write_unread((key, None)).await
    }

    async fn write_unread(&self, step: Step<'_>) -> Outcome<(), E> {
        let unread = matches!(F::KIND, Kind::Telescoping | Kind::TelescopingUncompressed | Kind::Extension);
        match self.write_steps([step], self.durability, unread).await {
            // Of items that are too many, perhaps.
            Err(StoreError::Full(_)) => {
                self.restore().await?;
                self.write_steps([step], self.durability, false).await.map(drop)
            }
            written => written.map(drop),
        }
    }

    /// Makes all changes of a batch in one commit.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed: all changes were made or none. [`StoreError::Full`] if the filter has no room
    /// for all of them; nothing has changed.
    pub async fn write(&self, batch: &Batch) -> Outcome<(), E> {
        self.write_with(batch, self.durability).await
    }

    /// [`write`](Self::write) with another durability.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub async fn write_with(&self, batch: &Batch, durability: Durability) -> Outcome<(), E> {
        self.write_steps(batch.steps(), durability, false).await.map(drop)
    }

    /// Makes sure that all writes that were acknowledged last.
    ///
    /// # Errors
    ///
    /// [`StoreError::Engine`] if the database failed.
    pub async fn flush(&self) -> Outcome<(), E> {
        let receipt = {
            let mut writer = self.writer.lock().await;
            self.settle(&mut writer).await?;
            if !self.volatile.load(Ordering::Acquire) {
                return Ok(());
            }
            self.commit(&mut writer, Vec::new(), (0, 0), &[], Durability::Durable).await?
        };
        self.acknowledge(receipt).await
    }

    async fn write_steps<'k>(
        &self,
        steps: impl IntoIterator<Item = Step<'k>>,
        durability: Durability,
        unread: bool,
    ) -> Outcome<Vec<Looked<E::Value>>, E> {
        self.is_blind()?;
        let ops = self.operations(steps)?;
        let stamp = self.read_state().changes.stamp();
        let mut looked = match unread {
            true => ops.iter().map(|_| None).collect(),
            false => self.look_ahead(&ops).await?,
        };
        let (receipt, idle) = {
            let mut writer = self.writer.lock().await;
            if !self.is_calm(&writer, ops.len()) {
                self.settle_silently(&mut writer).await?;
            }
            // Somebody else may have found out while this one waited.
            self.tell_of_losses()?;
            let plan = self.plan(&ops, &mut looked, stamp, unread).await?;
            let durability = self.durability_of(&writer, durability);
            let receipt = self.execute(&mut writer, &ops, &plan, durability).await?;
            (receipt, plan.idle)
        };
        if let Some(receipt) = receipt {
            self.acknowledge(receipt).await?;
        }
        for at in idle {
            self.repair(ops[at].key, ops[at].digest).await;
        }
        self.repair_waiting(REPAIRS).await;
        if self.snapshots.is_due(self.counters.position.get()) {
            self.snapshot_ended(self.save_snapshot().await);
        }
        Ok(looked)
    }

    /// Makes changes in one commit, for those who holds the writer and knows what the keys have. There is a commit in any case.
    pub(crate) async fn write_known(
        &self,
        writer: &mut Writer,
        steps: Vec<Step<'_>>,
        before: Vec<Option<E::Value>>,
    ) -> Outcome<(), E> {
        let mut before: HashMap<&[u8], _> = steps.iter().map(|(key, _)| *key).zip(before).collect();
        let (ops, stamp) = (self.operations(steps)?, self.read_state().changes.stamp());
        let mut looked: Vec<_> = ops.iter().map(|op| before.remove(op.key)).collect();
        let plan = self.plan(&ops, &mut looked, stamp, false).await?;
        let durability = self.durability_of(writer, self.durability);
        let receipt = match self.execute(writer, &ops, &plan, durability).await? {
            Some(receipt) => receipt,
            None => self.commit(writer, Vec::new(), (0, 0), &[], durability).await?,
        };
        self.acknowledge(receipt).await?;
        self.snapshots.is_due(writer.position.number);
        Ok(())
    }

    /// The changes in the order of their rows, the last one of every key.
    fn operations<'k>(&self, steps: impl IntoIterator<Item = Step<'k>>) -> Outcome<Vec<Op<'k>>, E> {
        let state = self.read_state();
        let hasher = state.filter.hasher();
        let op = |(key, value): Step<'k>| Op { digest: hasher.digest(key), key, value };
        let mut ops: Vec<Op<'_>> = steps.into_iter().map(op).collect();
        if let Some(op) = ops.iter().find(|op| op.key.len() > MAX_KEY) {
            return Err(StoreError::KeyTooLong { len: op.key.len(), max: MAX_KEY });
        }
        // The order of equal keys is kept, and of those that follow each other the last one stays.
        ops.reverse();
        ops.sort_by(|one, two| (one.digest.hi, one.key).cmp(&(two.digest.hi, two.key)));
        ops.dedup_by(|later, first| later.key == first.key);
        Ok(ops)
    }

    /// Looks up the keys that the filter accepts, many at once.
    async fn look_ahead(&self, ops: &[Op<'_>]) -> Outcome<Vec<Looked<E::Value>>, E> {
        let mut looked: Vec<Looked<E::Value>> = ops.iter().map(|_| None).collect();
        let accepted: Vec<usize> = {
            let state = self.read_state();
            (0..ops.len()).filter(|&at| state.accepts(ops[at].digest)).collect()
        };
        for some in accepted.chunks(LOOKED_UP) {
            let mut look: Vec<Boxed<'_, Outcome<Option<E::Value>, E>>> = Vec::with_capacity(some.len());
            for &at in some {
                look.push(Box::pin(self.look_up(ops[at].key, ops[at].digest)));
            }
            for (&at, found) in some.iter().zip(all(look).await) {
                match found {
                    Ok(found) => looked[at] = Some(found),
                    // It is looked up again when the database was opened again.
                    Err(_) if self.is_blind()? => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(looked)
    }

    /// Finds out which keys are new and which go. Looks up again what has changed since it was looked up.
    async fn plan(
        &self,
        ops: &[Op<'_>],
        looked: &mut [Looked<E::Value>],
        stamp: u64,
        unread: bool,
    ) -> Outcome<Plan, E> {
        let mut plan = Plan::default();
        // Nobody else writes, so what the filter rejects now is absent until this write is done.
        let known: Vec<bool> = {
            let state = self.read_state();
            let known = |(op, looked): (&Op<'_>, &mut Looked<E::Value>)| {
                if !state.accepts(op.digest) {
                    *looked = None;
                    return true;
                }
                looked.is_some() && state.changes.is_untouched(stamp, &(op.digest.hi..=op.digest.hi))
            };
            ops.iter().zip(looked.iter_mut()).map(known).collect()
        };
        for ((at, op), known) in ops.iter().enumerate().zip(known) {
            if !known && unread {
                plan.unread.push(at);
                plan.entering.extend(op.value.is_some().then_some(at));
                continue;
            }
            if !known {
                looked[at] = Some(self.look_up(op.key, op.digest).await?);
            }
            let stored = matches!(looked[at], Some(Some(_)));
            match (stored, &op.value) {
                (false, Some(_)) => plan.entering.push(at),
                (true, None) => plan.leaving.push(at),
                (false, None) => plan.idle.push(at),
                (true, Some(_)) => {}
            }
        }
        Ok(plan)
    }

    /// Lets keys enter, commits, and lets keys leave. `None` if there was nothing to write.
    async fn execute(
        &self,
        writer: &mut Writer,
        ops: &[Op<'_>],
        plan: &Plan,
        durability: Durability,
    ) -> Outcome<Option<E::Receipt>, E> {
        if plan.idle.len() == ops.len() {
            // A removal that was acknowledged before may be one of those that would not last.
            let idle = durability == Durability::Buffered || !self.volatile.load(Ordering::Acquire);
            return match idle {
                true => Ok(None),
                false => self.commit(writer, Vec::new(), (0, 0), &[], durability).await.map(Some),
            };
        }
        let unread_removals = plan.unread.iter().filter(|&&at| ops[at].value.is_none());
        let changed: Vec<usize> =
            plan.entering.iter().chain(&plan.leaving).chain(unread_removals).copied().collect();
        writer.uncounted |= !plan.unread.is_empty();
        self.uncounted.store(writer.uncounted, Ordering::Release);
        let hashes: Vec<u64> = changed.iter().map(|&at| ops[at].digest.hi).collect();
        let mut begun = Begun::new(self, ops, changed);
        let entering: Vec<&Op<'_>> = plan.entering.iter().map(|&at| &ops[at]).collect();
        let group = match self.enter(&entering, &mut begun.entered).await {
            Err(error) => return Err(self.disagreed(error)),
            Ok(group) => group,
        };
        let mut writes = index_writes(&group);
        self.add_rows(ops, plan, &mut writes);
        begun.entered = true;
        let keys = (plan.entering.len() as u64, plan.leaving.len() as u64);
        let receipt = self.commit(writer, writes, keys, &hashes, durability).await?;
        let leaving: Vec<&Op<'_>> = plan.leaving.iter().map(|&at| &ops[at]).collect();
        let mut left_behind = self.leave(writer, &leaving).await;
        let urgent = !left_behind.is_empty();
        let unread = plan.unread.iter().map(|&at| (ops[at].digest.hi, ops[at].key.into()));
        left_behind.extend(unread);
        begun.finish(left_behind, urgent);
        Ok(Some(receipt))
    }

    /// The rows of all changes.
    fn add_rows(&self, ops: &[Op<'_>], plan: &Plan, writes: &mut Vec<Write>) {
        let mut idle = plan.idle.iter().peekable();
        // And one of the commit's own.
        writes.reserve(1 + 2 * ops.len());
        for (at, op) in ops.iter().enumerate() {
            if idle.next_if_eq(&&at).is_some() {
                continue;
            }
            let row = match self.header.layout {
                Layout::Hashed => rows::row(op.digest.hi, op.key),
                Layout::Ordered => rows::with_room(&[], op.key),
            };
            writes.push(Write { table: Table::Data, key: row, value: op.value.map(<[u8]>::to_vec) });
        }
        if self.header.index == Index::Hashes {
            let row = |&at: &usize| rows::row(ops[at].digest.hi, ops[at].key);
            let write = |key, value| Write { table: Table::Index, key, value };
            writes.extend(plan.entering.iter().map(|at| write(row(at), Some(Vec::new()))));
            let unread_removals = plan.unread.iter().filter(|&&at| ops[at].value.is_none());
            writes.extend(plan.leaving.iter().chain(unread_removals).map(|at| write(row(at), None)));
        }
    }

    /// Puts new keys into the filter. The changes of the index, if the filter chooses its addresses.
    async fn enter(&self, ops: &[&Op<'_>], entered: &mut bool) -> Outcome<Vec<OwnedChange>, E> {
        if !F::HASH_ADDRESSED {
            return self.enter_chosen(ops, entered).await;
        }
        let mut rest = ops;
        while !rest.is_empty() {
            let (count, failed) = self.enter_some(&rest[..rest.len().min(ENTERING)]);
            *entered |= count > 0;
            rest = &rest[count..];
            match failed {
                None => {}
                // It grows, and reads for that.
                Some(AdaptiveError::Remote(_)) => {
                    *entered = true;
                    self.enter_copy(&ops[..ops.len() - rest.len()], rest).await?;
                    break;
                }
                Some(error) => return Err(of_filter(error, |_| StoreError::BrokenOff)),
            }
        }
        Ok(Vec::new())
    }

    /// Puts new keys into the filter under one lock. How many, and what stopped it.
    fn enter_some(&self, ops: &[&Op<'_>]) -> (usize, Option<AdaptiveError<MustRead>>) {
        let mut state = self.write_state();
        for (count, op) in ops.iter().enumerate() {
            if let Err(error) = state.filter.insert_new(op.key, &mut Unread) {
                return (count, Some(error));
            }
        }
        (ops.len(), None)
    }

    /// The same for a filter that chooses the addresses of its keys.
    async fn enter_chosen(&self, ops: &[&Op<'_>], entered: &mut bool) -> Outcome<Vec<OwnedChange>, E> {
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let mut play = Play::taking();
        for (at, op) in ops.iter().enumerate() {
            loop {
                let full = |filter: &F| filter.len() >= filter.capacity();
                let step = {
                    let mut state = self.write_state();
                    // Growth reads everything.
                    if full(&state.filter) {
                        None
                    } else {
                        Some(play.step(&mut state.filter, &Insert(op.key)))
                    }
                };
                let fetched = match step {
                    None => false,
                    Some(step) => match step.map_err(|error| of_filter(error, |never| match never {}))? {
                        Played::Done(_) => break,
                        Played::Commit | Played::Beyond => false,
                        Played::Needs(range) => self.fetch(&view, range, &mut play).await?,
                    },
                };
                if !fetched {
                    *entered = true;
                    return self.enter_chosen_copy(play.take_group(), &ops[at..]).await;
                }
            }
            *entered = true;
        }
        Ok(play.take_group())
    }

    /// Takes removed keys out of the filter, after their rows have gone. Those that it could not find, and that cost reads in vain
    /// until their homes are settled.
    async fn leave(&self, writer: &mut Writer, ops: &[&Op<'_>]) -> Vec<(u64, Box<[u8]>)> {
        let (mut play, mut left_behind) = (Play::taking(), Vec::new());
        if ops.is_empty() {
            return left_behind;
        }
        if F::HASH_ADDRESSED {
            // The filter has all of them still: without those that leave with it a key would not be told from a missing one.
            ops.iter().for_each(|op| play.evidence().add(op.digest.hi, op.key));
        }
        for op in ops {
            match self.leave_one(&mut play, op.key).await {
                Ok(true) => {}
                outcome => {
                    self.counters.failed_removals.add(1);
                    left_behind.push((op.digest.hi, op.key.into()));
                    let error = outcome.err().unwrap_or(StoreError::Inconsistent { address: op.digest.hi });
                    self.note("a removed key is left in the filter", error);
                }
            }
        }
        if !F::HASH_ADDRESSED {
            let writes = index_writes(&play.take_group());
            // Not the caller's: his removal has been made. Pairs that are left behind are debris.
            if let Err(error) = self.commit(writer, writes, (0, 0), &[], Durability::Buffered).await {
                self.write_state().lost = true;
                self.note("the index could not follow a removal", error);
            }
        }
        left_behind
    }

    async fn leave_one(&self, play: &mut Play, key: &[u8]) -> Outcome<bool, E> {
        let mut view = None;
        loop {
            let step = play.step(&mut self.write_state().filter, &RemoveStored(key));
            match step.map_err(|error| of_filter(error, |never| match never {}))? {
                Played::Done(done) => return Ok(done),
                Played::Commit | Played::Beyond => return Ok(false),
                Played::Needs(range) => {
                    let view = match &mut view {
                        Some(view) => view,
                        none => none.insert(self.engine.view().map_err(StoreError::Engine)?),
                    };
                    if !self.fetch(view, range.clone(), play).await? {
                        return Err(StoreError::Inconsistent { address: *range.start() });
                    }
                }
            }
        }
    }

    /// Makes a commit of these rows, and of its own.
    pub(super) async fn commit(
        &self,
        writer: &mut Writer,
        mut writes: Vec<Write>,
        (inserted, removed): (u64, u64),
        hashes: &[u64],
        durability: Durability,
    ) -> Outcome<E::Receipt, E> {
        let position = Position { number: writer.position.number + 1, branch: writer.branch };
        let keys = (writer.keys + inserted).saturating_sub(removed);
        if writer.logged_from.is_some_and(|from| position.number - from > MAX_LOGGED) {
            writer.logged_from = None;
        }
        let hashes = writer.logged_from.map(|_| hashes.to_vec());
        let entry = Entry { branch: position.branch, keys, uncounted: writer.uncounted, hashes };
        writes.push(Write {
            table: Table::State,
            key: record::key_of(position.number),
            value: Some(entry.encode()),
        });
        // The rows before the snapshot's, or before this one, have served.
        let needed = writer.logged_from.unwrap_or(position.number);
        let trimmed = needed.min(writer.first_row + TRIMMED);
        for number in writer.first_row..trimmed {
            writes.push(Write { table: Table::State, key: record::key_of(number), value: None });
        }
        writes.sort_by(|one, two| (one.table, &one.key).cmp(&(two.table, &two.key)));
        self.counters.commits.add(1);
        // From here on nobody knows, until the commit has returned: after an error, a panic or a dropped future the next one
        // finds out.
        writer.unsure = true;
        self.volatile.fetch_or(durability == Durability::Buffered, Ordering::AcqRel);
        let receipt = match self.counters.timed(self.engine.write(writes, durability)).await {
            Ok(receipt) => receipt,
            Err(error) => {
                self.counters.commits_in_doubt.add(1);
                crate::events::failure("a commit failed, and was made or not", &error);
                return Err(self.failed(error));
            }
        };
        (writer.unsure, writer.position, writer.keys, writer.first_row) = (false, position, keys, trimmed);
        writer.buffered += 1;
        if durability == Durability::Durable {
            (writer.buffered, writer.durable_at) = (0, Instant::now());
        }
        self.volatile.fetch_and(durability == Durability::Buffered, Ordering::AcqRel);
        self.keys.store(keys, Ordering::Release);
        self.counters.position.set(position.number);
        Ok(receipt)
    }

    /// One commit in this many, or one after some time, is durable, if that was asked for.
    fn durability_of(&self, writer: &Writer, asked: Durability) -> Durability {
        let due =
            writer.buffered + 1 >= self.durable_every || writer.durable_at.elapsed() >= self.durable_within;
        if due { Durability::Durable } else { asked }
    }

    /// Waits until a write lasts.
    pub(crate) async fn acknowledge(&self, receipt: E::Receipt) -> Outcome<(), E> {
        self.counters.timed(self.engine.acknowledge(receipt)).await.map_err(|error| self.failed(error))
    }

    /// Remembers that filter and index disagree.
    pub(super) fn disagreed(&self, error: StoreError<E::Error>) -> StoreError<E::Error> {
        if let StoreError::Inconsistent { .. } = error {
            self.write_state().lost = true;
        }
        error
    }
}

/// The rows of changes to the index.
pub(super) fn index_writes(group: &[OwnedChange]) -> Vec<Write> {
    let mut last = std::collections::BTreeMap::new();
    for change in group {
        last.insert(rows::row(change.address, &change.key), change.inserts);
    }
    let write =
        |(key, inserts): (Vec<u8>, bool)| Write { table: Table::Index, key, value: inserts.then(Vec::new) };
    last.into_iter().map(write).collect()
}

/// A write that is active. Dropped before it is finished, it leaves its keys in doubt.
struct Begun<'s, F: StoreFilter, E: Engine> {
    store: &'s Store<F, E>,
    ops: &'s [Op<'s>],
    changed: Vec<usize>,
    /// Whether a key may have entered the filter, or a row the database.
    entered: bool,
}

impl<'s, F: StoreFilter, E: Engine> Begun<'s, F, E> {
    fn new(store: &'s Store<F, E>, ops: &'s [Op<'s>], changed: Vec<usize>) -> Self {
        // Of all operations: who has looked up a value that is overwritten looks again.
        store.write_state().changes.begin(ops.iter().map(|op| op.digest.hi).collect());
        Self { store, ops, changed, entered: false }
    }

    /// All is done, but for these keys.
    fn finish(mut self, left_behind: Vec<(u64, Box<[u8]>)>, urgent: bool) {
        self.entered = false;
        let mut state = self.store.write_state();
        state.doubts.extend(left_behind);
        state.urgent |= urgent;
    }
}

impl<F: StoreFilter, E: Engine> Drop for Begun<'_, F, E> {
    fn drop(&mut self) {
        let mut state = self.store.write_state();
        if self.entered {
            let doubt = |&at: &usize| (self.ops[at].digest.hi, self.ops[at].key.into());
            state.doubts.extend(self.changed.iter().map(doubt));
            state.urgent = true;
            state.lost |= !F::HASH_ADDRESSED;
        }
        state.changes.end();
    }
}
