//! Work on a whole filter (growth, new hash functions, a filter anew) on a thread of its own, which waits for the store.
//!
//! The thread has a filter of its own too, so that queries go on in the meantime. Its remote sends requests to the task
//! that waits for it; when that task is dropped the requests fail, and so does the work.

use std::ops::ControlFlow;

use besom::{Change, Remote};
use slatedb::bytes::Bytes;
use slatedb::config::{DurabilityLevel, ScanOptions};
use slatedb::{DbReadOps, WriteBatch};
use tokio::sync::{mpsc, oneshot};

use super::lists::Lists;
use super::replay::{Paused, fetch_list};
use super::{SlateError, rows};

/// Rows that are read or written at once.
pub(super) const CHUNK: usize = 4096;

/// The keys of some lists, with their addresses.
pub(super) type ListChunk = Vec<(u64, Vec<Box<[u8]>>)>;

/// What the thread wants.
pub(super) enum Request {
    /// The keys of a list.
    List(u64, oneshot::Sender<Vec<Box<[u8]>>>),
    /// The next lists from this address on; none if there are none.
    Lists(u64, oneshot::Sender<ListChunk>),
    /// The next stored keys behind this one; none if there are none.
    Keys(Option<Bytes>, oneshot::Sender<Vec<Bytes>>),
    /// Changes that have to be written.
    Write(Lists, oneshot::Sender<()>),
}

/// The end of the thread.
pub(super) struct Bridge {
    requests: mpsc::Sender<Request>,
    lists: Lists,
    /// A group with a push of this key is refused: whoever inserts it does so himself, afterwards.
    held_back: Option<Bytes>,
}

impl Bridge {
    /// A bridge, and where its requests arrive.
    pub(super) fn new(held_back: Option<Bytes>) -> (Self, mpsc::Receiver<Request>) {
        let (requests, receiver) = mpsc::channel(1);
        (Self { requests, lists: Lists::default(), held_back }, receiver)
    }

    fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Paused> {
        let (sender, receiver) = oneshot::channel();
        self.requests.blocking_send(request(sender)).map_err(|_| Paused::BrokenOff)?;
        receiver.blocking_recv().map_err(|_| Paused::BrokenOff)
    }

    /// The next stored keys.
    pub(super) fn keys(&self, behind: Option<Bytes>) -> Result<Vec<Bytes>, Paused> {
        self.ask(|sender| Request::Keys(behind, sender))
    }

    /// Writes what was gathered. Must be called at the end.
    pub(super) fn flush(&mut self) -> Result<(), Paused> {
        if self.lists.changed().next().is_some() {
            let lists = std::mem::take(&mut self.lists);
            self.ask(|sender| Request::Write(lists, sender))?;
        }
        self.lists.clear();
        Ok(())
    }

    fn fetch(&mut self, address: u64) -> Result<(), Paused> {
        let keys = self.ask(|sender| Request::List(address, sender))?;
        self.lists.store(address, keys);
        Ok(())
    }

    fn is_held_back(&self, changes: &[Change<'_>]) -> bool {
        let Some(held_back) = &self.held_back else { return false };
        changes.iter().any(|change| match change {
            Change::Push { key, .. } | Change::Replace { key, .. } => held_back == key,
            Change::Remove { .. } | Change::Clear => false,
        })
    }
}

impl Remote for Bridge {
    type Error = Paused;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Paused> {
        if !self.lists.visit(address, visit) {
            self.fetch(address)?;
            self.lists.visit(address, visit);
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Paused> {
        if self.is_held_back(changes) {
            return Err(Paused::Planned);
        }
        let mut needed = Vec::new();
        let mut draft = self.lists.draft(changes, &mut needed);
        if draft == Err(Paused::Need) {
            needed.iter().try_for_each(|&address| self.fetch(address))?;
            draft = self.lists.draft(changes, &mut Vec::new());
        }
        self.lists.install(draft?);
        if self.lists.len() < CHUNK { Ok(()) } else { self.flush() }
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Paused> {
        self.flush()?;
        let mut from = Some(0);
        while let Some(address) = from {
            let lists = self.ask(|sender| Request::Lists(address, sender))?;
            let Some(&(last, _)) = lists.last() else { return Ok(()) };
            let mut keys = lists.iter().flat_map(|(address, keys)| keys.iter().map(|key| (*address, key)));
            if keys.try_for_each(|(address, key)| visit(address, key)).is_break() {
                return Ok(());
            }
            from = last.checked_add(1);
        }
        Ok(())
    }
}

/// Answers one request that only reads; gives back one that writes.
pub(super) async fn answer(
    request: Request,
    source: &(impl DbReadOps + Sync),
    generation: u64,
) -> Result<Option<(Lists, oneshot::Sender<()>)>, SlateError> {
    // Whoever asked may have gone: then nobody wants the answer.
    match request {
        Request::List(address, sender) => {
            let _ = sender.send(fetch_list(source, generation, address).await?);
        }
        Request::Lists(from, sender) => {
            let _ = sender.send(list_chunk(source, generation, from).await?);
        }
        Request::Keys(behind, sender) => {
            let _ = sender.send(key_chunk(source, behind).await?);
        }
        Request::Write(lists, sender) => return Ok(Some((lists, sender))),
    }
    Ok(None)
}

/// How rows are scanned that are read once: they stay out of the cache.
fn scanning() -> ScanOptions {
    let read_ahead_bytes = 256 << 10;
    ScanOptions {
        durability_filter: DurabilityLevel::Memory,
        read_ahead_bytes,
        cache_blocks: false,
        ..ScanOptions::default()
    }
}

/// Some lists from an address on.
pub(super) async fn list_chunk(
    source: &(impl DbReadOps + Sync),
    generation: u64,
    from: u64,
) -> Result<ListChunk, SlateError> {
    let range = rows::list(generation, from)..rows::lists_end(generation);
    let mut found = source.scan_with_options(range, &scanning()).await?;
    let mut lists = Vec::new();
    while lists.len() < CHUNK {
        let Some(row) = found.next().await? else { break };
        lists.push((rows::address_of(&row.key)?, rows::decode_list(&row.value)?));
    }
    Ok(lists)
}

/// Some stored keys behind one.
pub(super) async fn key_chunk(
    source: &(impl DbReadOps + Sync),
    behind: Option<Bytes>,
) -> Result<Vec<Bytes>, SlateError> {
    Ok(row_chunk(source, behind).await?.into_iter().map(|row| rows::key_of(&row.key)).collect())
}

/// Some data rows behind a key.
pub(super) async fn row_chunk(
    source: &(impl DbReadOps + Sync),
    behind: Option<Bytes>,
) -> Result<Vec<slatedb::KeyValue>, SlateError> {
    let end = Bytes::copy_from_slice(&rows::all_data().end);
    let begin = behind
        .as_ref()
        .map_or_else(|| Bytes::copy_from_slice(&rows::all_data().start), |key| rows::data(key));
    let mut found = source.scan_with_options(begin.clone()..end, &scanning()).await?;
    let mut chunk = Vec::new();
    while chunk.len() < CHUNK {
        let Some(row) = found.next().await? else { break };
        if behind.is_none() || row.key != begin {
            chunk.push(row);
        }
    }
    Ok(chunk)
}

/// The first rows of a range, as a batch that deletes them, and where the rest begins; `None` if there are none. What was
/// deleted is not passed again: its marks are slow to walk over.
pub(super) async fn deletions(
    source: &(impl DbReadOps + Sync),
    range: std::ops::Range<Bytes>,
) -> Result<Option<(WriteBatch, Bytes)>, SlateError> {
    if range.start >= range.end {
        return Ok(None);
    }
    let mut found = source.scan_with_options(range, &scanning()).await?;
    let (mut batch, mut rows, mut last) = (WriteBatch::new(), 0, None);
    while rows < CHUNK {
        let Some(row) = found.next().await? else { break };
        batch.delete(&row.key);
        (rows, last) = (rows + 1, Some(row.key));
    }
    // The least key that is greater.
    Ok(last.map(|last| (batch, [&last[..], &[0]].concat().into())))
}
