//! How a store is opened, and how it comes by its filter.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Instant;

use besom::{BuildError, KeyHasher, Seed};

use super::settle::entries;
use super::state::State;
use super::{Automatic, Maker, Outcome, Shared, Store, StoreFilter, Writer};
use crate::engine::{Durability, Engine, KeyRange, Table, View, Write};
use crate::metrics::Counters;
use crate::record::{self, Entry, FORMAT, Header, Index, NoHeader, Position};
use crate::snapshot::SnapshotFile;
use crate::{Layout, Opening, Options, SnapshotRefused, StoreError, rows};

/// Rows whose keys are hashed again when a store is opened, to see that the column is the one that the filter knows.
const SAMPLES: usize = 16;

/// Where a store looks for a snapshot of its filter when it is opened.
pub(crate) trait Snapshots<F> {
    /// The filter of the snapshot with one of these names, the last one if there are several, and its name; `None` if there is
    /// none at all.
    fn find(&self, names: &[u64]) -> impl Future<Output = Result<Option<(F, u64)>, SnapshotRefused>> + Send;
}

impl<F: StoreFilter, E: Engine> Store<F, E> {
    /// Opens the store that is in a database, or makes one of an empty database.
    ///
    /// `make` makes a filter for at least this many keys, with the seed that it is given: rows are in the order of hashes, so the
    /// seed of a store stays. It is called when there is no snapshot of the filter.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotAStore`] and others if the database is none that can be opened, and what the filter says.
    pub async fn open(
        engine: E,
        make: impl Fn(usize, Seed) -> Result<F, BuildError> + Send + Sync + 'static,
        options: Options,
    ) -> Outcome<Self, E> {
        let snapshots = options.snapshot_path.clone().map(SnapshotFile);
        Self::open_with(engine, "the database", Arc::new(make), options, snapshots).await
    }

    pub(crate) async fn open_with(
        engine: E,
        name: &str,
        make: Maker<F>,
        options: Options,
        snapshots: impl Snapshots<F>,
    ) -> Outcome<Self, E> {
        let view = engine.view().map_err(StoreError::Engine)?;
        let row = view.get(Table::State, &[]).await.map_err(StoreError::Engine)?;
        let found = match row {
            Some(row) => Some(Header::decode(row.as_ref()).map_err(|no| no_header(name, no))?),
            None => None,
        };
        if found.is_none() && !is_empty::<E>(&view).await? {
            let what = "it has other tables, or rows without a header";
            return Err(StoreError::NotAStore { name: name.to_owned(), what });
        }
        if let (Some(header), Some(asked)) = (found, options.layout)
            && header.layout != asked
        {
            return Err(StoreError::OtherLayout { name: name.to_owned(), found: header.layout, asked });
        }
        let log = entries::<E>(&view).await?;
        let last = log.last().cloned().unwrap_or((Position::ORIGIN, Entry::default()));
        let seed = found.map_or_else(Seed::random, |header| header.seed);
        let filter = make(0, seed)?;
        let layout = found.map_or(options.layout.unwrap_or_default(), |header| header.layout);
        let header = Header::new(layout, index_of::<F>(layout), filter.hasher());
        if let Some(found) = found {
            if !found.has_hash(filter.hasher()) {
                let (stored, made) = (seed, filter.hasher().seed());
                return Err(StoreError::OtherHash { name: name.to_owned(), stored, made });
            }
            check_rows::<E, _>(found.index, &view, filter.hasher()).await?;
        }
        let (keys, first_row) = (last.1.keys, log.first().map_or(0, |(position, _)| position.number));
        let shared = Shared {
            engine,
            header,
            state: RwLock::new(State::new(filter)),
            writer: tokio::sync::Mutex::new(Writer {
                position: last.0,
                branch: record::draw_branch(),
                keys,
                logged_from: None,
                first_row,
                unsure: false,
                uncounted: last.1.uncounted,
                buffered: 0,
                durable_at: Instant::now(),
            }),
            counters: Counters::default(),
            make,
            listener: options.listener,
            durability: options.durability,
            durable_every: options.durable_every,
            durable_within: options.durable_within,
            opening: OnceLock::new(),
            keys: AtomicU64::new(keys),
            uncounted: AtomicBool::new(last.1.uncounted),
            miscounted: AtomicI64::new(0),
            volatile: AtomicBool::new(false),
            fault: Mutex::new(None),
            snapshots: Automatic::new(options.snapshot_every, last.0.number, options.snapshot_path),
        };
        shared.counters.position.set(last.0.number);
        let store = Self { shared: Arc::new(shared), told: AtomicU64::new(0) };
        let opening = store.come_by_filter(found, &log, snapshots).await?;
        // The first word counts, and there is one.
        let _ = store.opening.set(opening);
        Ok(store)
    }

    /// Loads the filter, catches it up, or builds it.
    async fn come_by_filter(
        &self,
        found: Option<Header>,
        log: &[(Position, Entry)],
        snapshots: impl Snapshots<F>,
    ) -> Outcome<Opening, E> {
        let Some(found) = found else {
            // A new store. What is in its header is durable before anything else is written.
            let header = Write { table: Table::State, key: Vec::new(), value: Some(self.header.encode()) };
            let receipt =
                self.engine.write(vec![header], Durability::Durable).await.map_err(StoreError::Engine)?;
            self.acknowledge(receipt).await?;
            return Ok(Opening::Empty);
        };
        let mut writer = self.writer.try_lock().map_err(|_| StoreError::BrokenOff)?;
        let indexed = found.index == self.header.index;
        if !indexed {
            if self.header.index != Index::Chosen {
                self.index_again(&mut writer).await?;
            }
            let header = Write { table: Table::State, key: Vec::new(), value: Some(self.header.encode()) };
            let written = self.engine.write(vec![header], Durability::Durable).await;
            self.acknowledge(written.map_err(StoreError::Engine)?).await?;
        }
        let names: Vec<u64> = log.iter().map(|(position, _)| position.name()).collect();
        let loaded = if indexed { snapshots.find(&names).await } else { Ok(None) };
        let refused = match loaded {
            Ok(Some((filter, name))) => match self.take_snapshot(&mut writer, filter, name, log).await? {
                Ok(opening) => return Ok(opening),
                Err(refused) => Some(refused),
            },
            Ok(None) => None,
            Err(refused) => Some(refused),
        };
        if let Some(refused) = &refused {
            crate::events::failure("a snapshot was not used", refused);
        }
        if writer.keys == 0 && refused.is_none() && F::HASH_ADDRESSED {
            return Ok(Opening::Empty);
        }
        let (keys, seconds) = self.build(&mut writer).await?;
        Ok(Opening::Built { keys, seconds, refused })
    }

    /// Takes the filter of a snapshot of one of the last states, and settles all homes that have changed since.
    async fn take_snapshot(
        &self,
        writer: &mut Writer,
        filter: F,
        name: u64,
        log: &[(Position, Entry)],
    ) -> Outcome<Result<Opening, SnapshotRefused>, E> {
        if !self.header.has_hash(filter.hasher()) {
            return Ok(Err(SnapshotRefused::Foreign));
        }
        let Some(at) = log.iter().rposition(|(position, _)| position.name() == name) else {
            return Ok(Err(SnapshotRefused::Foreign));
        };
        let commits = (log.len() - 1 - at) as u64;
        let older = |why| SnapshotRefused::Older { commits, why };
        let (mut hashes, mut number) = (Vec::new(), log[at].0.number);
        for (position, entry) in &log[at + 1..] {
            number += 1;
            match &entry.hashes {
                Some(some) if position.number == number => hashes.extend_from_slice(some),
                _ => return Ok(Err(older("the store did not write down all that it did since then"))),
            }
        }
        if commits > 0 && !F::HASH_ADDRESSED {
            return Ok(Err(older("a filter of this kind cannot be caught up")));
        }
        hashes.sort_unstable();
        hashes.dedup();
        if hashes.len() as u64 > writer.keys {
            return Ok(Err(older("most keys have changed since then")));
        }
        let empty = std::mem::replace(&mut self.write_state().filter, filter);
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let settled = self.settle_homes(&hashes, &view).await?;
        let snapshot = self.with_filter(|filter| filter.len() as u64);
        if !settled || (snapshot != writer.keys && !writer.uncounted) {
            self.write_state().filter = empty;
            let store = writer.keys;
            let refused = match settled {
                true => SnapshotRefused::OtherKeys { snapshot, store },
                false => older("the filter has no room for what was written since"),
            };
            return Ok(Err(refused));
        }
        self.count(writer, snapshot);
        let number = log[at].0.number;
        writer.logged_from = F::HASH_ADDRESSED.then_some(number);
        self.snapshots.has(number);
        Ok(Ok(if commits == 0 { Opening::Snapshot } else { Opening::CaughtUp { commits } }))
    }
}

/// What the index of such a store holds.
fn index_of<F: StoreFilter>(layout: Layout) -> Index {
    match layout {
        _ if !F::HASH_ADDRESSED => Index::Chosen,
        Layout::Hashed => Index::None,
        Layout::Ordered => Index::Hashes,
    }
}

fn no_header<E>(name: &str, no: NoHeader) -> StoreError<E> {
    let name = name.to_owned();
    match no {
        NoHeader::Foreign => StoreError::NotAStore { name, what: "its header is damaged" },
        NoHeader::OtherFormat(found) => StoreError::OtherFormat { name, found, known: FORMAT },
    }
}

/// Some rows of a table.
async fn some_rows<E: Engine>(view: &E::View, table: Table, count: usize) -> Outcome<Vec<Vec<u8>>, E> {
    use std::ops::ControlFlow;
    let mut found = Vec::new();
    let visit = &mut |row: &[u8], _: &[u8]| {
        found.push(row.to_vec());
        if found.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    view.scan(table, KeyRange::default(), false, visit).await.map_err(StoreError::Engine)?;
    Ok(found)
}

pub(super) async fn is_empty<E: Engine>(view: &E::View) -> Outcome<bool, E> {
    for table in Table::ALL {
        if !some_rows::<E>(view, table, 1).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Hashes some rows again: the column must be the one that the filter knows.
async fn check_rows<E: Engine, H: KeyHasher>(index: Index, view: &E::View, hasher: &H) -> Outcome<(), E> {
    let table = match index {
        Index::None => Table::Data,
        Index::Hashes => Table::Index,
        Index::Chosen => return Ok(()),
    };
    for row in some_rows::<E>(view, table, SAMPLES).await? {
        let (found, key) = rows::parts(&row).unwrap_or_default();
        let expected = hasher.digest(key).hi;
        if found != expected {
            return Err(StoreError::WrongRow { key: key.into(), found, expected });
        }
    }
    Ok(())
}
