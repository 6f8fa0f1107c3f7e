//! The best filter once more, where it would be used: in `besom_store::RedbStore`, with the data on disk in the order
//! of hashes, which repairs read.
//!
//! The contest itself is held in front of a bare table (see [`store`](super::store)), since other people's filters
//! cannot be put into that store. There the hash index of our filters lies in memory, so their reads of it are counted
//! but cost no time. Here everything is paid for.

use std::time::{Duration, Instant};

use besom::Xxh3;
use besom::any::{AnyFilter, Config};
use besom::format::Kind;
use besom_store::{Batch, Durability, RedbStore, StoreError};
use serde::Serialize;

use super::contender::{LOAD, Needs, Plan};
use super::queries::Chunk;
use super::replay::{Arena, Row, false_negative};
use super::store::CACHE;
use crate::error::{Failure, Outcome};
use crate::interrupt;
use crate::output::thousands;

/// What came of a filter in a [`RedbStore`]. Counts are the store's own.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Product {
    pub(crate) filter: &'static str,
    bits_per_key: f64,
    queries: u64,
    pub(crate) false_positives: u64,
    adaptations: u64,
    /// Look-ups and reads of the hash index together.
    store_reads: u64,
    /// Of the hash index, by repairs.
    remote_reads: u64,
    queries_per_second: f64,
    insertions_per_second: f64,
}

impl Product {
    /// What it comes to, in a sentence.
    pub(super) fn sentence(&self) -> String {
        format!(
            "In besom_store::RedbStore, which guards its data with {}, it had {} false positives and {} store \
             reads per million queries, at {:.2} million queries a second ({:.2} million insertions).",
            self.filter,
            thousands(self.false_positives),
            thousands((self.store_reads as f64 * 1e6 / self.queries.max(1) as f64) as u64),
            self.queries_per_second / 1e6,
            self.insertions_per_second / 1e6
        )
    }
}

/// The best of the filters that a [`RedbStore`] takes: of those with a hash index.
pub(super) fn choose<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<&'r Row> {
    rows.filter(|row| row.needs == Needs::HashIndex).min_by(|a, b| super::verdict::order(a, b))
}

/// Keys in one transaction, and the bytes after which there are no more: a megabyte a key must not add up.
const GROUP: usize = 1 << 16;
const GROUP_BYTES: usize = 1 << 24;

impl Arena<'_> {
    /// Tries the filter of a row in a [`RedbStore`], built as it was. `None` if it was interrupted.
    pub(super) fn in_product(
        &self,
        row: &Row,
        plan: &Plan<'_>,
        progress: &mut dyn FnMut(&str, u64),
    ) -> Outcome<Option<Product>> {
        let name = row.entry_name;
        let Ok(mut config) = name.parse::<Config>() else { return Ok(None) };
        if config.accepts("max_load") {
            // Broom filters are built for a load of 0.90.
            config.max_load = Some(if config.kind() == Kind::Broom { LOAD.min(0.90) } else { LOAD });
        }
        let (config, keys) = (config.false_positive_rate(row.first().rate).seed(plan.seed), plan.keys);
        let make = move |more: usize, _| AnyFilter::<Xxh3>::build(&config.clone().capacity(more.max(keys)));
        let temporary = || Failure::io(format!("{} (temporary files)", std::env::temp_dir().display()));
        let folder = tempfile::tempdir().map_err(temporary())?;
        let builder = RedbStore::builder().cache_size(CACHE).durability(Durability::Buffered);
        let store = builder.open(folder.path().join("store.redb"), make).map_err(failed)?;
        // Where a file may go while it is open, it goes at once: whatever happens, nothing of it stays behind.
        let folder =
            if cfg!(unix) { folder.close().map(|()| None).map_err(temporary())? } else { Some(folder) };
        let Some(filled) = self.fill_product(&store, &mut |done| progress("filling RedbStore with", done))?
        else {
            return Ok(None);
        };
        let before = store.metrics();
        let Some(time) =
            self.ask_product(name, &store, &mut |done| progress("asking RedbStore with", done))?
        else {
            return Ok(None);
        };
        let metrics = store.metrics();
        drop((store, folder));
        let remote_reads = metrics.remote_reads - before.remote_reads;
        let speed = |count: u64, time: Duration| count as f64 / time.as_secs_f64().max(1e-9);
        Ok(Some(Product {
            filter: name,
            bits_per_key: metrics.bits_per_key,
            queries: metrics.queries,
            false_positives: metrics.false_positives,
            adaptations: metrics.adaptations,
            store_reads: metrics.true_positives + metrics.false_positives + remote_reads,
            remote_reads,
            queries_per_second: speed(metrics.queries, time),
            insertions_per_second: speed(u64::from(self.stored), filled),
        }))
    }

    /// Stores all keys. How long it took; `None` if it was interrupted.
    fn fill_product(
        &self,
        store: &RedbStore<AnyFilter<Xxh3>>,
        progress: &mut dyn FnMut(u64),
    ) -> Outcome<Option<Duration>> {
        let start = Instant::now();
        let (mut batch, mut bytes) = (Batch::new(), 0);
        for number in 0..self.stored {
            let key = self.keys.get(number);
            batch.insert(key, &u64::from(number).to_le_bytes());
            bytes += key.len();
            if batch.len() == GROUP || bytes >= GROUP_BYTES || number + 1 == self.stored {
                store.write(&batch).map_err(failed)?;
                progress(batch.len() as u64);
                batch.clear();
                bytes = 0;
                if interrupt::stopped() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(start.elapsed()))
    }

    /// Asks all queries. How long it took; `None` if it was interrupted.
    fn ask_product(
        &self,
        name: &str,
        store: &RedbStore<AnyFilter<Xxh3>>,
        progress: &mut dyn FnMut(u64),
    ) -> Outcome<Option<Duration>> {
        let mut time = Duration::ZERO;
        self.queries.replay(&mut |chunk: &Chunk| {
            let start = Instant::now();
            for (key, stored) in chunk.iter() {
                if store.get(key).map_err(failed)?.is_none() && stored {
                    return Err(false_negative(name, key));
                }
            }
            time += start.elapsed();
            progress(chunk.len() as u64);
            Ok(!interrupt::stopped())
        })?;
        Ok((!interrupt::stopped()).then_some(time))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn failed(error: StoreError<redb::Error>) -> Failure {
    Failure::Store(error.to_string())
}
