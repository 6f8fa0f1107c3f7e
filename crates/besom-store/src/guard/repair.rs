//! Repairs of false positives.

use besom::play::{Adapt, OwnedChange, Play, Step as Played};
use besom::{Adaptation, Digest, KeyHasher};

use super::write::index_writes;
use super::{Outcome, Store, StoreFilter, Writer};
use crate::StoreError;
use crate::engine::{Durability, Engine};
use crate::error::of_filter;

/// Runs that a repair may take when writes come between.
const TRIES: usize = 4;

/// How a repair ended.
enum End {
    Repaired,
    /// The filter rejects the key already.
    Nothing,
    /// The filter cannot tell the key from one that it has.
    Denied,
    /// A write is under way.
    Later,
    /// It changes the index, or needs too much of it.
    Writes,
}

impl End {
    fn of(adaptation: Adaptation, still_accepted: bool) -> Self {
        match adaptation {
            Adaptation::NotFalsePositive if !still_accepted => Self::Nothing,
            Adaptation::NotFalsePositive | Adaptation::Unfixable => Self::Denied,
            _ => Self::Repaired,
        }
    }
}

impl<F: StoreFilter, E: Engine> Store<F, E> {
    /// Repairs a false positive, or sees to it that it is repaired later. Fails nobody.
    pub(super) async fn repair(&self, key: &[u8], digest: Digest) {
        let end = match self.try_repair(key, digest).await {
            Ok(End::Writes) => self.repair_as_writer(key).await,
            end => end,
        };
        match end {
            Ok(End::Repaired) => self.counters.adaptations.add(1),
            Ok(End::Nothing) => {}
            Ok(End::Denied) => self.denied(key, digest).await,
            Ok(End::Later | End::Writes) => {
                if !self.write_state().postpone(key) {
                    self.counters.failed_adaptations.add(1);
                }
            }
            Err(error) => {
                self.counters.failed_adaptations.add(1);
                let error = self.disagreed(error);
                self.note("a false positive could not be repaired", error);
            }
        }
    }

    /// The filter has a key that the data denied. It may have been stored since; if not, the index has a key without data.
    async fn denied(&self, key: &[u8], digest: Digest) {
        let in_doubt = !self.read_state().doubts.is_empty();
        if in_doubt || !matches!(self.look_up(key, digest).await, Ok(None)) {
            return;
        }
        self.counters.denied.add(1);
        if self.has_own_index() {
            self.note("a key has no data", StoreError::NoData { key: key.into() });
        }
    }

    /// Makes up for repairs that had to wait.
    pub(super) async fn repair_waiting(&self, count: usize) {
        for _ in 0..count {
            let waiting = {
                // Nearly always there is none, and readers are not to wait for each other.
                if self.read_state().waiting.is_empty() {
                    return;
                }
                let mut state = self.write_state();
                if !state.is_settled() {
                    return;
                }
                let key = state.waiting.pop_first();
                key.map(|key| (state.filter.hasher().digest(&key), key))
            };
            if let Some((digest, key)) = waiting {
                self.repair(&key, digest).await;
            }
        }
    }

    /// A repair that writes nothing: one range is read, and memory changed.
    async fn try_repair(&self, key: &[u8], digest: Digest) -> Outcome<End, E> {
        let mut play = Play::new();
        for _ in 0..TRIES {
            play.clear();
            let (stamp, home) = {
                let state = self.read_state();
                (state.changes.stamp(), state.filter.home(digest))
            };
            let (mut needed, mut read) = (home, Vec::new());
            let view = self.engine.view().map_err(StoreError::Engine)?;
            loop {
                if let Some(range) = needed.take() {
                    read.push(range.clone());
                    if !self.fetch(&view, range, &mut play).await? {
                        return Ok(End::Writes);
                    }
                }
                let mut state = self.write_state();
                if !state.is_settled() {
                    return Ok(End::Later);
                }
                if !read.iter().all(|range| state.is_current(stamp, range)) {
                    break;
                }
                let step = play.step(&mut state.filter, &Adapt(key));
                match step.map_err(|error| of_filter(error, |never| match never {}))? {
                    Played::Done(adaptation) => {
                        return Ok(End::of(adaptation, state.filter.contains_digest(digest)));
                    }
                    Played::Commit | Played::Beyond => return Ok(End::Writes),
                    Played::Needs(range) => needed = Some(range),
                }
            }
        }
        Ok(End::Later)
    }

    /// A repair that changes the index, which takes a writer. A query does not wait to become one.
    async fn repair_as_writer(&self, key: &[u8]) -> Outcome<End, E> {
        let Ok(mut writer) = self.writer.try_lock() else { return Ok(End::Later) };
        self.settle_silently(&mut writer).await?;
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let (mut play, mut apart) = (Play::new(), None);
        let adaptation = loop {
            let step = play.step(&mut self.write_state().filter, &Adapt(key));
            match step.map_err(|error| of_filter(error, |never| match never {}))? {
                Played::Done(adaptation) => break adaptation,
                Played::Needs(range) => {
                    if !self.fetch(&view, range.clone(), &mut play).await? {
                        return Err(StoreError::Inconsistent { address: *range.start() });
                    }
                }
                Played::Beyond => {
                    let apart = apart.take().unwrap_or_else(|| Apart::new(self));
                    let copied = key.to_vec();
                    let live =
                        self.on_a_copy(move |filter, live| filter.adapt(&copied[..], live).map(drop)).await?;
                    self.commit_repair(&mut writer, &live.group).await?;
                    apart.end();
                    return Ok(End::Repaired);
                }
                Played::Commit => {
                    apart.get_or_insert_with(|| Apart::new(self));
                    let group: Vec<OwnedChange> = play.group().iter().map(Into::into).collect();
                    self.commit_repair(&mut writer, &group).await?;
                    play.committed();
                }
            }
        };
        apart.into_iter().for_each(Apart::end);
        let state = self.read_state();
        let digest = state.filter.hasher().digest(key);
        Ok(End::of(adaptation, state.filter.contains_digest(digest)))
    }

    /// What a repair writes may get lost, together with everything that was not durable either.
    async fn commit_repair(&self, writer: &mut Writer, group: &[OwnedChange]) -> Outcome<(), E> {
        self.commit(writer, index_writes(group), (0, 0), &[], Durability::Buffered).await.map(drop)
    }
}

/// One of filter and index has a change that the other one lacks. If this is dropped before its end, by an error, a panic or with
/// a future, nobody knows whether the index has the change, and the filter has to be built again.
struct Apart<'s, F: StoreFilter, E: Engine> {
    store: &'s Store<F, E>,
    agree: bool,
}

impl<'s, F: StoreFilter, E: Engine> Apart<'s, F, E> {
    fn new(store: &'s Store<F, E>) -> Self {
        store.write_state().apart = true;
        Self { store, agree: false }
    }

    /// Both have it.
    fn end(mut self) {
        self.agree = true;
    }
}

impl<F: StoreFilter, E: Engine> Drop for Apart<'_, F, E> {
    fn drop(&mut self) {
        let mut state = self.store.write_state();
        state.apart = false;
        state.lost |= !self.agree;
        // Keys have moved in the index.
        state.changes.touch(Vec::new());
    }
}
