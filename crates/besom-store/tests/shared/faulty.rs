//! A database that fails before or after acting, acts late, loses its connection, answers late, and panics.
//!
//! The tests of the guard and those of any engine share it.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use besom::testing::Random;
use besom_store::engine::{Durability, Engine, Health, KeyRange, Table, View, VisitRow, Write};
use besom_store::wait;

/// What the failing database returns.
#[derive(Debug)]
pub(crate) enum FaultError<E> {
    Injected,
    Inner(E),
}

impl<E: fmt::Display> fmt::Display for FaultError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Injected => f.write_str("made to fail"),
            Self::Inner(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for FaultError<E> {}

/// How many kinds of faults there are, of which the last is for commits alone.
pub(crate) const KINDS: usize = 6;

const BEFORE: u64 = 0;
const AFTER: u64 = 1;
const BROKEN: u64 = 2;
const PANIC: u64 = 3;
const SLOW: u64 = 4;
const LATE: u64 = 5;

/// What can be stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    /// A commit, before it is made.
    Commit,
    /// A read of a range of data or index, behind the last row.
    Range,
}

type Gate = Option<(Sender<()>, Receiver<()>)>;

/// When things go wrong.
#[derive(Debug, Clone)]
pub(crate) struct Dice(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    random: Random,
    /// One access in this many goes wrong; none if 0.
    one_in: u64,
    /// Nothing works until it is opened again.
    broken: bool,
    faults: [u64; KINDS],
    /// Look-ups, and ranges that were read.
    reads: [u64; 2],
    /// Look-ups for which a value was not needed.
    asked: u64,
    /// The next commit, and the next range, says that it is there, and waits.
    gates: [Gate; 2],
    /// The next commit comes late.
    delays: bool,
    /// A commit that failed, and will be made before the next one.
    late: Option<(Vec<Write>, Durability)>,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            random: Random::new(seed),
            one_in: 0,
            broken: false,
            faults: [0; KINDS],
            reads: [0; 2],
            asked: 0,
            gates: [None, None],
            delays: false,
            late: None,
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops the next of its kind: it says that it has come, and goes on when it hears something.
    pub(crate) fn stop(&self, what: Stop) -> (Receiver<()>, Sender<()>) {
        let ((here, arrived), (go, wait)) = (channel(), channel());
        self.with(|inner| inner.gates[what as usize] = Some((here, wait)));
        (arrived, go)
    }

    fn pass(&self, what: Stop) {
        if let Some((here, wait)) = self.with(|inner| inner.gates[what as usize].take()) {
            // Anyone who stopped it may have given up.
            let _ = here.send(()).is_ok() && wait.recv().is_ok();
        }
    }

    pub(crate) fn set_one_in(&self, one_in: u64) {
        self.with(|inner| inner.one_in = one_in);
    }

    /// Lets the next commit fail, and be made before the one that follows.
    pub(crate) fn delay_commit(&self) {
        self.with(|inner| inner.delays = true);
    }

    /// Whether a commit that failed is still to be made.
    pub(crate) fn has_late(&self) -> bool {
        self.with(|inner| inner.late.is_some())
    }

    /// Lets nothing work until the database is opened again.
    pub(crate) fn break_down(&self) {
        self.with(|inner| inner.broken = true);
    }

    pub(crate) fn faults(&self) -> [u64; KINDS] {
        self.with(|inner| inner.faults)
    }

    /// Look-ups, and ranges that were read, since the last time that it was asked.
    pub(crate) fn take_reads(&self) -> [u64; 2] {
        self.with(|inner| std::mem::take(&mut inner.reads))
    }

    /// Look-ups that asked for no value, since the last time that this was asked.
    pub(crate) fn take_asked(&self) -> u64 {
        self.with(|inner| std::mem::take(&mut inner.asked))
    }

    /// What goes wrong with this access, if anything, and whether that comes before it acts.
    fn roll(&self, kinds: u64) -> (Option<u64>, bool) {
        self.with(|inner| {
            if inner.broken {
                return (Some(BROKEN), true);
            }
            let fails = inner.one_in > 0 && inner.random.one_in(inner.one_in);
            let mut kind = fails.then(|| inner.random.below(kinds));
            if kinds > LATE && std::mem::take(&mut inner.delays) {
                kind = Some(LATE);
            }
            kind.into_iter().for_each(|kind| inner.faults[kind as usize] += 1);
            inner.broken |= kind == Some(BROKEN);
            (kind, inner.random.one_in(2))
        })
    }

    /// Acts, or fails before or after it, or panics. An engine whose futures are always ready needs no more.
    fn act<T, E>(&self, act: impl FnOnce() -> Result<T, E>) -> Result<T, FaultError<E>> {
        let rolled = self.roll(LATE);
        Self::act_so(rolled, act)
    }

    fn act_so<T, E>(
        (kind, before): (Option<u64>, bool),
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, FaultError<E>> {
        match kind {
            Some(BEFORE) => Err(FaultError::Injected),
            Some(BROKEN) if before => Err(FaultError::Injected),
            Some(PANIC) if before => panic!("made to panic before acting"),
            Some(SLOW) => {
                std::thread::sleep(Duration::from_micros(100));
                act().map_err(FaultError::Inner)
            }
            kind => {
                let done = act().map_err(FaultError::Inner)?;
                match kind {
                    Some(AFTER | BROKEN) => Err(FaultError::Injected),
                    Some(_) => panic!("made to panic after acting"),
                    None => Ok(done),
                }
            }
        }
    }
}

#[derive(Clone)]
pub(crate) struct Faulty<T> {
    pub(crate) inner: T,
    pub(crate) dice: Dice,
}

impl<E: Engine> Engine for Faulty<E> {
    type Error = FaultError<E::Error>;
    type Value = E::Value;
    type View = Faulty<E::View>;
    type Receipt = E::Receipt;

    fn view(&self) -> Result<Self::View, Self::Error> {
        let view = self.dice.act(|| self.inner.view())?;
        Ok(Faulty { inner: view, dice: self.dice.clone() })
    }

    async fn write(&self, writes: Vec<Write>, durability: Durability) -> Result<E::Receipt, Self::Error> {
        self.dice.pass(Stop::Commit);
        let rolled = self.dice.roll(LATE + 1);
        if let Some((late, durability)) = self.dice.with(|inner| inner.late.take()) {
            drop(wait(self.inner.write(late, durability)).map_err(FaultError::Inner)?);
        }
        if rolled.0 == Some(LATE) {
            self.dice.with(|inner| inner.late = Some((writes, durability)));
            return Err(FaultError::Injected);
        }
        Dice::act_so(rolled, || wait(self.inner.write(writes, durability)))
    }

    fn health(&self) -> Health {
        if self.dice.with(|inner| inner.broken) { Health::Broken } else { self.inner.health() }
    }

    async fn reopen(&self) -> Result<(), Self::Error> {
        self.dice.with(|inner| inner.broken = false);
        self.dice.act(|| wait(self.inner.reopen()))
    }
}

impl<V: View> View for Faulty<V> {
    type Error = FaultError<V::Error>;
    type Value = V::Value;

    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<V::Value>, Self::Error> {
        self.dice.with(|inner| inner.reads[0] += 1);
        self.dice.act(|| wait(self.inner.get(table, key)))
    }

    async fn get_with<T: Send>(
        &self,
        table: Table,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> T + Send,
    ) -> Result<Option<T>, Self::Error> {
        self.dice.with(|inner| inner.reads[0] += 1);
        self.dice.act(|| wait(self.inner.get_with(table, key, look)))
    }

    async fn has(&self, table: Table, key: &[u8]) -> Result<bool, Self::Error> {
        self.dice.with(|inner| inner.asked += 1);
        self.dice.act(|| wait(self.inner.has(table, key)))
    }

    async fn scan(
        &self,
        table: Table,
        range: KeyRange,
        bulk: bool,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Self::Error> {
        self.dice.with(|inner| inner.reads[1] += 1);
        let scanned = self.dice.act(|| wait(self.inner.scan(table, range, bulk, visit)));
        if table != Table::State {
            self.dice.pass(Stop::Range);
        }
        scanned
    }
}
