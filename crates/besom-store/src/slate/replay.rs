//! Operations of a filter, which wait for nothing, over a store that has to be awaited.
//!
//! A filter's operation that fails has changed nothing. So it is run on a remote that knows only the lists that were
//! fetched so far. If it asks for another one it fails; that list is fetched, and it is run again. Operations are
//! deterministic: with the same lists the same operation comes to the same changes. The lock of the filter is held while
//! an operation runs, never while anything is awaited.

use std::ops::ControlFlow;

use besom::{AdaptiveError, Change, Remote};
use futures_util::future::try_join_all;
use slatedb::bytes::Bytes;
use slatedb::{DbReadOps, WriteBatch};
use thiserror::Error;

use super::lists::{Before, Lists};
use super::{SlateError, rows};

/// Why an operation did not come to its end. It has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Paused {
    #[error("a list has to be fetched first")]
    Need,
    #[error("what it changes has to be written first")]
    Planned,
    #[error("it needs a scan")]
    Scan,
    #[error("a list has changed")]
    Mismatch { address: u64, found: usize },
    #[error("broken off")]
    BrokenOff,
}

/// What becomes of the changes of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mode {
    /// They are taken, and written later: the filter changes first.
    Take,
    /// They are noted, and the operation fails: they are written first.
    Plan,
    /// They were noted, and written. The operation may come to its end if it still makes the same changes.
    Confirm(Lists),
}

/// A remote that knows what was fetched.
#[derive(Debug)]
pub(super) struct Replay {
    lists: Lists,
    mode: Mode,
    needed: Vec<u64>,
    planned: Option<Lists>,
    /// What the operation that is running has changed, as it was before.
    before: Option<Before>,
    /// The addresses that the last operation has changed.
    latest: Vec<u64>,
    /// How many lists were fetched.
    fetched: u64,
    /// Keys that the filter has taken in.
    entered: Vec<Bytes>,
    /// Lists were written although the data is not there yet.
    ahead: bool,
}

/// How far an operation came.
#[derive(Debug)]
pub(super) enum Step<T> {
    /// To its end.
    Done(T),
    /// To its changes, which have to be written now.
    Planned,
    /// It needs a scan of all lists, or works on all of them.
    Scan,
}

impl Replay {
    /// The filter changes first, and what the operation changes in lists is written later.
    pub(super) fn taking() -> Self {
        Self {
            lists: Lists::default(),
            mode: Mode::Take,
            needed: Vec::new(),
            planned: None,
            before: None,
            latest: Vec::new(),
            fetched: 0,
            entered: Vec::new(),
            ahead: false,
        }
    }

    /// What the operation changes in lists is written first.
    pub(super) fn planning() -> Self {
        Self { mode: Mode::Plan, ..Self::taking() }
    }

    /// From now on, what an operation changes in lists is written first.
    pub(super) fn plan(&mut self) {
        self.mode = Mode::Plan;
    }

    /// From now on, the filter changes first.
    pub(super) fn take(&mut self) {
        (self.mode, self.planned) = (Mode::Take, None);
    }

    /// The filter has taken in a key, or had it already.
    pub(super) fn entered(&mut self, key: &Bytes, new: bool) {
        if new {
            self.entered.push(key.clone());
        }
    }

    /// The addresses that the operation which came to its end last has changed.
    pub(super) fn latest(&self) -> &[u64] {
        &self.latest
    }

    /// The keys that the filter has taken in, each once.
    pub(super) fn take_entered(&mut self) -> Vec<Bytes> {
        let mut entered = std::mem::take(&mut self.entered);
        entered.sort_unstable();
        entered.dedup();
        entered
    }

    /// How many lists were fetched.
    pub(super) fn fetched(&self) -> u64 {
        self.fetched
    }

    /// All changes so far are written; lists have to be fetched again, as they may change behind this replay's back.
    pub(super) fn written(&mut self) {
        self.lists.clear();
        self.ahead = true;
    }

    /// Whether none of the changes was written.
    pub(super) fn is_as_stored(&self) -> bool {
        !self.ahead
    }

    /// What was planned is written.
    pub(super) fn confirm(&mut self) {
        self.mode = Mode::Confirm(self.planned.take().unwrap_or_default());
    }

    /// Puts all that changed into a batch.
    pub(super) fn put(&self, generation: u64, batch: &mut WriteBatch) {
        match &self.planned {
            // What is planned for a list contains what changed in it before.
            Some(planned) => {
                self.lists.put_others(generation, planned, batch);
                planned.put(generation, batch);
            }
            None => self.lists.put(generation, batch),
        }
    }

    /// The addresses of lists that changed or are planned to change.
    pub(super) fn changed(&self) -> Vec<u64> {
        self.lists.changed().chain(self.planned.iter().flat_map(Lists::changed)).collect()
    }

    /// Runs an operation, and fetches what it asks for until it asks for nothing more.
    pub(super) async fn drive<T>(
        &mut self,
        source: &(impl DbReadOps + Sync),
        generation: u64,
        mut operation: impl FnMut(&mut Self) -> Result<T, AdaptiveError<Paused>>,
    ) -> Result<Step<T>, SlateError> {
        loop {
            let outcome = operation(self);
            self.latest.clear();
            match self.before.take() {
                Some(before) if outcome.is_err() => self.lists.take_back(before),
                before => self.latest.extend(before.iter().flat_map(Before::addresses)),
            }
            match outcome {
                Ok(outcome) => return Ok(Step::Done(outcome)),
                Err(AdaptiveError::Remote(Paused::Need)) => self.fetch(source, generation).await?,
                Err(AdaptiveError::Remote(Paused::Planned)) => return Ok(Step::Planned),
                Err(AdaptiveError::Remote(Paused::Scan)) => return Ok(Step::Scan),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// An operation that goes on after it has made its changes works on the whole filter, and that is not done here.
    fn one_group_only(&self) -> Result<(), Paused> {
        if self.before.is_some() { Err(Paused::Scan) } else { Ok(()) }
    }

    /// Fetches the lists that were asked for, all at once.
    pub(super) async fn fetch(
        &mut self,
        source: &(impl DbReadOps + Sync),
        generation: u64,
    ) -> Result<(), SlateError> {
        self.needed.sort_unstable();
        self.needed.dedup();
        let needed = std::mem::take(&mut self.needed);
        self.fetched += needed.len() as u64;
        let lists =
            try_join_all(needed.iter().map(|&address| fetch_list(source, generation, address))).await?;
        needed.into_iter().zip(lists).for_each(|(address, keys)| self.lists.store(address, keys));
        Ok(())
    }
}

/// The keys of a list.
pub(super) async fn fetch_list(
    source: &(impl DbReadOps + Sync),
    generation: u64,
    address: u64,
) -> Result<Vec<Box<[u8]>>, SlateError> {
    match source.get(rows::list(generation, address)).await? {
        Some(row) => rows::decode_list(&row),
        None => Ok(Vec::new()),
    }
}

impl Remote for Replay {
    type Error = Paused;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Paused> {
        self.one_group_only()?;
        if self.lists.visit(address, visit) {
            return Ok(());
        }
        self.needed.push(address);
        Err(Paused::Need)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Paused> {
        self.one_group_only()?;
        let draft = self.lists.draft(changes, &mut self.needed)?;
        match &self.mode {
            Mode::Take => {}
            Mode::Plan => {
                self.planned = Some(draft);
                return Err(Paused::Planned);
            }
            Mode::Confirm(planned) if *planned == draft => {}
            Mode::Confirm(_) => return Err(Paused::BrokenOff),
        }
        self.before = Some(self.lists.install(draft));
        Ok(())
    }

    fn scan(&mut self, _: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Paused> {
        Err(Paused::Scan)
    }
}
