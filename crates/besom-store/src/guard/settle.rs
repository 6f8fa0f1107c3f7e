//! The ways back: what became of a commit that failed, homes that are settled, the filter again if it is of no use any more.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::atomic::Ordering;

use besom::play::{Play, Settle, Step as Played};
use besom::{Authority, Digest, Settled};

use super::{Boxed, Outcome, Store, StoreFilter, Writer};
use crate::StoreError;
use crate::engine::{Durability, Engine, Health, KeyRange, Table, View, Write};
use crate::error::of_filter;
use crate::record::{self, Entry, Position};
use crate::wait::all;

/// One key in doubt among this many makes the store build its filter again rather than settle every home.
const REBUILD_SHARE: usize = 16;

/// Homes that are settled one by one in any case, and keys that may be in doubt because they were written unread.
const FEW: usize = 1024;

/// Homes that are read at once.
const AT_ONCE: usize = 64;

impl<F: StoreFilter, E: Engine> Store<F, E> {
    /// Finds out what became of a commit that failed, opens the database again if it asks for that, and brings filter and index
    /// into step. Costs nothing if nothing has failed. The caller hears of commits that were lost.
    pub(crate) fn settle<'s>(&'s self, writer: &'s mut Writer) -> Boxed<'s, Outcome<(), E>> {
        Box::pin(async move {
            self.settle_silently(writer).await?;
            self.tell_of_losses()
        })
    }

    /// The same for those who fail nobody: an error of theirs would be heard by nobody.
    pub(super) fn settle_silently<'s>(&'s self, writer: &'s mut Writer) -> Boxed<'s, Outcome<(), E>> {
        Box::pin(async move {
            self.resolve(writer).await?;
            if self.read_state().lost {
                self.build(writer).await?;
            }
            Ok(())
        })
    }

    /// Whether a write may go on without settling anything: nothing has failed, and keys in doubt, which were written unread, are few.
    /// Growth needs to know all keys.
    pub(super) fn is_calm(&self, writer: &Writer, more: usize) -> bool {
        let state = self.read_state();
        let few = state.doubts.len() <= FEW && state.filter.len() + more <= state.filter.capacity();
        let waits = state.doubts.is_empty() || (few && !state.urgent);
        waits && !(writer.unsure || state.lost || state.blind) && self.engine.health() == Health::Sound
    }

    /// The same, but builds no filter.
    pub(crate) async fn resolve(&self, writer: &mut Writer) -> Outcome<(), E> {
        match self.engine.health() {
            Health::Sound => {}
            Health::Closed { fenced } => return Err(StoreError::Closed { fenced }),
            Health::Broken => {
                // What was not durable may be gone: keys that were removed may be back.
                self.write_state().blind = true;
                writer.unsure = true;
                self.counters.reopenings.add(1);
                self.counters.timed(self.engine.reopen()).await.map_err(StoreError::Engine)?;
                writer.branch = record::draw_branch();
                crate::events::notice("the database was opened again after an error");
            }
        }
        let (sound, blind) = {
            let state = self.read_state();
            (!state.lost && state.doubts.is_empty(), state.blind)
        };
        if sound && !blind && !writer.unsure && !writer.uncounted {
            return Ok(());
        }
        if writer.unsure || blind {
            self.find_out(writer).await?;
        }
        self.settle_doubts().await?;
        let counted = {
            let mut state = self.write_state();
            let keys = state.filter.len() as u64;
            // A cascade may take the sum of some keys for that of others. What was settled has no key too few, so it is the count
            // that tells.
            state.lost |= !writer.uncounted && keys != writer.keys;
            (!state.lost).then_some(keys)
        };
        // The filter has exactly what is stored now.
        if let Some(keys) = counted.filter(|_| writer.uncounted) {
            self.count(writer, keys);
        }
        Ok(())
    }

    /// Compares the state that the database is in with the one that was acknowledged last, and counts the commits that it has lost:
    /// from then on every handle is told.
    async fn find_out(&self, writer: &mut Writer) -> Outcome<(), E> {
        // What was on its way has arrived before this, or never will.
        let header = Write { table: Table::State, key: Vec::new(), value: Some(self.header.encode()) };
        let written = self.engine.write(vec![header], Durability::Buffered);
        self.counters.timed(written).await.map_err(StoreError::Engine)?;
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let (position, entry) = last_entry::<E>(&view).await?;
        let lost = writer.position.number.saturating_sub(position.number);
        (writer.position, writer.keys, writer.unsure) = (position, entry.keys, false);
        writer.uncounted = entry.uncounted;
        writer.first_row = writer.first_row.min(position.number);
        self.keys.store(entry.keys, Ordering::Release);
        self.uncounted.store(entry.uncounted, Ordering::Release);
        let mut state = self.write_state();
        if lost > 0 {
            (state.lost, writer.logged_from) = (true, None);
            self.counters.rolled_back.add(lost);
        }
        state.blind = state.lost;
        Ok(())
    }

    /// Settles the homes of all keys in doubt.
    async fn settle_doubts(&self) -> Outcome<(), E> {
        let doubts: Vec<u64> = {
            let mut state = self.write_state();
            let many = state.doubts.len() > FEW && state.doubts.len() * REBUILD_SHARE > state.filter.len();
            state.lost |= !state.doubts.is_empty() && (many || !F::HASH_ADDRESSED);
            if state.lost {
                return Ok(());
            }
            state.doubts.iter().map(|(hi, _)| *hi).collect()
        };
        if doubts.is_empty() {
            return Ok(());
        }
        let view = self.engine.view().map_err(StoreError::Engine)?;
        if !self.settle_homes(&doubts, &view).await? {
            self.write_state().lost = true;
            return Ok(());
        }
        let mut state = self.write_state();
        state.doubts.clear();
        state.urgent = false;
        // A commit that failed may have come between: what was read before that does not have it.
        state.changes.touch(doubts);
        Ok(())
    }

    /// How many keys the commits say that there are.
    pub(crate) fn counted(&self, writer: &Writer) -> u64 {
        writer.keys.wrapping_add_signed(self.miscounted.load(Ordering::Acquire))
    }

    /// There are this many keys.
    pub(super) fn count(&self, writer: &mut Writer, keys: u64) {
        (writer.keys, writer.uncounted) = (keys, false);
        self.keys.store(keys, Ordering::Release);
        self.uncounted.store(false, Ordering::Release);
    }

    /// Settles the homes of these hashes, which are sorted, with what a view has: it has everything, and nobody writes. `false`
    /// if the filter is of no use, and has to be built.
    pub(super) async fn settle_homes(&self, hashes: &[u64], view: &E::View) -> Outcome<bool, E> {
        let mut homes: Vec<RangeInclusive<u64>> = Vec::new();
        for &hi in hashes {
            if homes.last().is_some_and(|range| range.contains(&hi)) {
                continue;
            }
            let Some(range) = self.with_filter(|filter| filter.home(Digest { hi, lo: 0 })) else {
                return Ok(false);
            };
            homes.push(range);
        }
        for some in homes.chunks(AT_ONCE) {
            let mut settling: Vec<Boxed<'_, Outcome<bool, E>>> = Vec::with_capacity(some.len());
            for range in some {
                settling.push(Box::pin(self.settle_home(range.clone(), view)));
            }
            for settled in all(settling).await {
                if !settled? {
                    return Ok(false);
                }
                self.counters.settled.add(1);
            }
        }
        Ok(true)
    }

    async fn settle_home(&self, range: RangeInclusive<u64>, view: &E::View) -> Outcome<bool, E> {
        let settle = Settle { range: range.clone(), authority: Authority::Authoritative };
        let mut play = Play::taking();
        let mut needed = range;
        loop {
            if !self.fetch(view, needed, &mut play).await? {
                return Ok(false);
            }
            let step = play.step(&mut self.write_state().filter, &settle);
            match step.map_err(|error| of_filter(error, |never| match never {})) {
                Ok(Played::Done(Settled::Agreed)) => return Ok(true),
                Ok(Played::Done(_) | Played::Commit | Played::Beyond)
                | Err(StoreError::Full(_) | StoreError::Inconsistent { .. }) => {
                    return Ok(false);
                }
                Ok(Played::Needs(range)) => needed = range,
                Err(error) => return Err(error),
            }
        }
    }
}

/// The state that a database is in.
pub(super) async fn last_entry<E: Engine>(view: &E::View) -> Outcome<(Position, Entry), E> {
    let entries = entries::<E>(view).await?;
    Ok(entries.into_iter().next_back().unwrap_or((Position::ORIGIN, Entry::default())))
}

/// The rows of the last commits.
pub(super) async fn entries<E: Engine>(view: &E::View) -> Outcome<Vec<(Position, Entry)>, E> {
    let mut entries = Vec::new();
    let visit = &mut |key: &[u8], row: &[u8]| {
        if let (Some(number), Some(entry)) = (record::number(key), Entry::decode(row)) {
            entries.push((Position { number, branch: entry.branch }, entry));
        }
        ControlFlow::Continue(())
    };
    view.scan(Table::State, KeyRange::default(), true, visit).await.map_err(StoreError::Engine)?;
    Ok(entries)
}
