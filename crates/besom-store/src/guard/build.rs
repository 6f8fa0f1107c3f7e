//! Work on whole filters: growth, and filters from all keys. Queries are answered by the old one until it is done.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::atomic::Ordering;
use std::time::Instant;

use besom::play::OwnedChange;
use besom::{AdaptiveError, Change, KeyHasher, RebuildError, Remote};

use super::live::Live;
use super::write::Op;
use super::{Listener, Outcome, Store, StoreFilter, Writer};
use crate::engine::{Durability, Engine, KeyRange, Table};
use crate::error::of_filter;
use crate::record::{Index, Position};
use crate::{Layout, Progress, StoreError, rows};

/// Keys between two reports.
const STRIDE: u64 = 1 << 14;

impl<F: StoreFilter, E: Engine> Store<F, E> {
    /// Lets new keys enter a copy of the filter, which grows, and puts it in the filter's place. `before` have entered already.
    pub(super) async fn enter_copy(&self, before: &[&Op<'_>], ops: &[&Op<'_>]) -> Outcome<(), E> {
        let pending: Vec<Vec<u8>> = before.iter().map(|op| rows::row(op.digest.hi, op.key)).collect();
        let keys: Vec<Vec<u8>> = ops.iter().map(|op| op.key.to_vec()).collect();
        self.on_a_copy(move |filter, live| {
            live.pending.extend(pending.into_iter().map(|row| (row, true)));
            keys.iter().try_for_each(|key| filter.insert_new(&key[..], live))
        })
        .await
        .map(drop)
    }

    /// The same for a filter that chooses the addresses of its keys, and has made these changes already.
    pub(super) async fn enter_chosen_copy(
        &self,
        group: Vec<OwnedChange>,
        ops: &[&Op<'_>],
    ) -> Outcome<Vec<OwnedChange>, E> {
        let keys: Vec<Vec<u8>> = ops.iter().map(|op| op.key.to_vec()).collect();
        let live = self.on_a_copy(move |filter, live| {
            let rows = group.iter().map(|change| (rows::row(change.address, &change.key), change.inserts));
            live.pending.extend(rows);
            live.group = group;
            keys.iter().try_for_each(|key| filter.insert(&key[..], live).map(drop))
        });
        Ok(live.await?.group)
    }

    /// Lets a copy of the filter work with the index, and puts it in the filter's place.
    pub(super) async fn on_a_copy(
        &self,
        work: impl FnOnce(&mut F, &mut Live<E>) -> Result<(), AdaptiveError<E::Error>> + Send + 'static,
    ) -> Outcome<Live<E>, E> {
        let _frozen = Frozen::new(self);
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let mut live = Live::new(&self.engine, view, self.index());
        let mut copy = self.read_state().filter.clone();
        let work = move || work(&mut copy, &mut live).map(|()| (copy, live));
        let done = self.engine.run(work).await.ok_or(StoreError::BrokenOff)?;
        let (copy, live) = done.map_err(|error| of_filter(error, StoreError::Engine))?;
        self.snapshots.has_grown();
        // The old one is freed when the lock is.
        let old = std::mem::replace(&mut self.write_state().filter, copy);
        drop(old);
        Ok(live)
    }

    /// Builds the filter again from all keys. Repairs are forgotten. Helps a filter whose size does not fit any more; after errors
    /// the store does it by itself.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database failed or the keys do not fit. The store is as it was.
    pub async fn rebuild(&self) -> Outcome<(), E> {
        let mut writer = self.writer.lock().await;
        let rebuilds = self.counters.rebuilds.get();
        self.settle(&mut writer).await?;
        if self.counters.rebuilds.get() > rebuilds { Ok(()) } else { self.build(&mut writer).await.map(drop) }
    }

    /// Builds the filter from all keys. How many there were, and how many seconds it took.
    pub(super) async fn build(&self, writer: &mut Writer) -> Outcome<(u64, f64), E> {
        let start = Instant::now();
        let _frozen = Frozen::new(self);
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let mut live = Live::new(&self.engine, view, self.index());
        let filter = (self.make)(usize::try_from(writer.keys).unwrap_or(usize::MAX), self.header.seed)?;
        let (listener, total, layout) = (self.listener.clone(), writer.keys, self.header.layout);
        if !F::HASH_ADDRESSED {
            writer.unsure = true;
            live.through = Some((Position { branch: writer.branch, ..writer.position }, writer.keys));
        }
        let work = move || {
            let mut progress = Building { listener, keys: 0, total };
            let built = match F::HASH_ADDRESSED {
                true => fill(filter, &mut live, &mut progress),
                false => fill_chosen(filter, layout, &mut live, &mut progress),
            };
            progress.report();
            (built, live.through, progress.keys)
        };
        let (built, through, keys) = self.engine.run(work).await.ok_or(StoreError::BrokenOff)?;
        if let Some((position, _)) = through {
            // The way from the last snapshot to here is not written down.
            (writer.position, writer.logged_from) = (position, None);
        }
        let filter = built?;
        writer.unsure = false;
        if !writer.uncounted {
            self.miscounted.fetch_add(writer.keys.wrapping_sub(keys).cast_signed(), Ordering::AcqRel);
        }
        self.count(writer, keys);
        let mut state = self.write_state();
        let old = std::mem::replace(&mut state.filter, filter);
        (state.lost, state.blind, state.urgent) = (false, false, false);
        state.doubts.clear();
        // The database may have gone back to an earlier state.
        state.changes.forget();
        drop(state);
        drop(old);
        self.counters.rebuilds.add(1);
        self.counters.position.set(writer.position.number);
        crate::events::rebuilt(keys, start.elapsed());
        Ok((keys, start.elapsed().as_secs_f64()))
    }

    /// Empties the index, and writes it again from the data if the store has one of hashes.
    pub(super) async fn index_again(&self, writer: &mut Writer) -> Outcome<(), E> {
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let mut live = Live::new(&self.engine, view, Table::Index);
        let hasher = self.read_state().filter.hasher().clone();
        let with_hashes = self.has_own_index();
        writer.unsure = true;
        live.through = Some((Position { branch: writer.branch, ..writer.position }, writer.keys));
        let work = move || {
            let indexed = clear(&mut live).and_then(|()| match with_hashes {
                false => Ok(()),
                true => index_keys(&mut live, &hasher),
            });
            (indexed, live.through)
        };
        let (indexed, through) = self.engine.run(work).await.ok_or(StoreError::BrokenOff)?;
        if let Some((position, _)) = through {
            (writer.position, writer.logged_from) = (position, None);
        }
        indexed.map_err(StoreError::Engine)?;
        writer.unsure = false;
        self.counters.position.set(writer.position.number);
        Ok(())
    }

    /// Makes durable what was written so far, and lets somebody take a copy of the filter that stands for it.
    pub(crate) async fn copy_durably(&self, writer: &mut Writer) -> Outcome<(F, Position, E::Receipt), E> {
        self.settle_silently(writer).await?;
        let receipt = self.commit(writer, Vec::new(), (0, 0), &[], Durability::Durable).await?;
        // What comes behind it is written down from here on.
        if F::HASH_ADDRESSED {
            writer.logged_from.get_or_insert(writer.position.number);
        }
        Ok((self.read_state().filter.clone(), writer.position, receipt))
    }

    /// Whether the index is one of hashes that has to be there beside the data.
    pub(super) fn has_own_index(&self) -> bool {
        self.header.index == Index::Hashes
    }
}

/// Nothing else changes the filter while this lives.
struct Frozen<'s, F: StoreFilter, E: Engine>(&'s Store<F, E>);

impl<'s, F: StoreFilter, E: Engine> Frozen<'s, F, E> {
    fn new(store: &'s Store<F, E>) -> Self {
        store.write_state().frozen = true;
        Self(store)
    }
}

impl<F: StoreFilter, E: Engine> Drop for Frozen<'_, F, E> {
    fn drop(&mut self) {
        self.0.write_state().frozen = false;
    }
}

/// How far a building is.
struct Building {
    listener: Option<Listener>,
    keys: u64,
    total: u64,
}

impl Building {
    fn one_more(&mut self) {
        self.keys += 1;
        if self.keys.is_multiple_of(STRIDE) {
            self.report();
        }
    }

    fn report(&self) {
        if let Some(listener) = &self.listener {
            listener(Progress { keys: self.keys, total: self.total.max(self.keys) });
        }
    }
}

/// Fills an empty filter from an index in the order of hashes.
fn fill<F: StoreFilter, E: Engine>(
    mut filter: F,
    live: &mut Live<E>,
    progress: &mut Building,
) -> Outcome<F, E> {
    let filled = filter.rebuild_sorted(&mut Counted { live, progress });
    filled.map(|_| filter).map_err(|error| of_filter(error, StoreError::Engine))
}

/// An index that is read once, or twice if the filter was made too small, with reports.
struct Counted<'c, E: Engine> {
    live: &'c mut Live<E>,
    progress: &'c mut Building,
}

impl<E: Engine> Remote for Counted<'_, E> {
    type Error = E::Error;

    fn range(
        &mut self,
        addresses: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), E::Error> {
        let Self { live, progress } = self;
        progress.keys = 0;
        live.range(addresses, &mut |address, key| {
            progress.one_more();
            visit(address, key)
        })
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), E::Error> {
        self.live.apply(changes)
    }
}

/// Fills a filter that chooses the addresses of its keys, and writes its index.
fn fill_chosen<F: StoreFilter, E: Engine>(
    mut filter: F,
    layout: Layout,
    live: &mut Live<E>,
    progress: &mut Building,
) -> Outcome<F, E> {
    let data = Live::new(&live.engine, live.engine.view().map_err(StoreError::Engine)?, Table::Data);
    let keys = |visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>| {
        data.rows(Table::Data, KeyRange::default(), |row| {
            progress.one_more();
            match key_of(layout, row) {
                Some(key) => visit(key),
                None => ControlFlow::Continue(()),
            }
        })
    };
    filter.rebuild(keys, live).map_err(|error| match error {
        RebuildError::Keys(error) => StoreError::Engine(error),
        RebuildError::Filter(error) => of_filter(error, StoreError::Engine),
        _ => StoreError::BrokenOff,
    })?;
    live.flush().map_err(StoreError::Engine)?;
    Ok(filter)
}

/// The key of a row of data.
pub(crate) fn key_of(layout: Layout, row: &[u8]) -> Option<&[u8]> {
    match layout {
        Layout::Hashed => rows::parts(row).map(|(_, key)| key),
        Layout::Ordered => Some(row),
    }
}

/// Writes the hashes of all keys of an ordered store.
fn index_keys<E: Engine, H: KeyHasher>(live: &mut Live<E>, hasher: &H) -> Result<(), E::Error> {
    let data = Live::new(&live.engine, live.engine.view()?, Table::Data);
    let mut failed = None;
    data.rows(Table::Data, KeyRange::default(), |key| {
        let address = hasher.digest(key).hi;
        match live.apply(&[Change::Insert { address, key }]) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failed.map_or(Ok(()), Err)?;
    live.flush()
}

/// Empties the index.
fn clear<E: Engine>(live: &mut Live<E>) -> Result<(), E::Error> {
    loop {
        let (bytes, ends) = live.chunk(Table::Index, KeyRange::default())?;
        let mut from = 0;
        for &end in &ends {
            if let Some((address, key)) = rows::parts(&bytes[from..end]) {
                live.group.push(OwnedChange { address, key: key.into(), inserts: false });
            }
            from = end;
        }
        // Rows that are none of an index are damage, and stay.
        if live.group.is_empty() {
            return Ok(());
        }
        live.flush()?;
    }
}
