//! A database that fails before or after acting, loses its connection, answers late, and panics.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use besom::testing::Random;
use thiserror::Error;

use crate::engine::{Durability, Engine, Health, KeyRange, Table, View, VisitRow, Write};
use crate::wait;

/// What the failing database returns.
#[derive(Debug, Error)]
pub(super) enum FaultError<E> {
    #[error("made to fail")]
    Injected,
    #[error(transparent)]
    Inner(E),
}

/// When things go wrong.
#[derive(Debug, Clone)]
pub(super) struct Dice(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    random: Random,
    /// One access in this many goes wrong; none if 0.
    one_in: u64,
    /// Nothing works until it is opened again.
    broken: bool,
    faults: [u64; 5],
    /// Look-ups, and ranges that were read.
    reads: [u64; 2],
    /// The next commit says that it is there, and waits.
    gate: Option<(Sender<()>, Receiver<()>)>,
}

impl Dice {
    /// Stops the next commit: it says that it has come, and goes on when it hears something.
    pub(super) fn stop_commit(&self) -> (Receiver<()>, Sender<()>) {
        let ((here, arrived), (go, wait)) = (channel(), channel());
        self.with(|inner| inner.gate = Some((here, wait)));
        (arrived, go)
    }

    fn pass_gate(&self) {
        if let Some((here, wait)) = self.with(|inner| inner.gate.take()) {
            // Anyone who stopped it may have given up.
            let _ = here.send(()).is_ok() && wait.recv().is_ok();
        }
    }

    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            random: Random::new(seed),
            one_in: 0,
            broken: false,
            faults: [0; 5],
            reads: [0; 2],
            gate: None,
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_one_in(&self, one_in: u64) {
        self.with(|inner| inner.one_in = one_in);
    }

    pub(super) fn faults(&self) -> [u64; 5] {
        self.with(|inner| inner.faults)
    }

    /// Look-ups, and ranges that were read, since the last time that it was asked.
    pub(super) fn take_reads(&self) -> [u64; 2] {
        self.with(|inner| std::mem::take(&mut inner.reads))
    }

    /// Acts, or fails before or after it, or panics. An engine whose futures are always ready needs no more.
    fn act<T, E>(&self, act: impl FnOnce() -> Result<T, E>) -> Result<T, FaultError<E>> {
        let (kind, before) = self.with(|inner| {
            if inner.broken {
                return (Some(2), true);
            }
            let kind = (inner.one_in > 0 && inner.random.one_in(inner.one_in)).then(|| inner.random.below(5));
            kind.into_iter().for_each(|kind| inner.faults[kind as usize] += 1);
            inner.broken |= kind == Some(2);
            (kind, inner.random.one_in(2))
        });
        match kind {
            Some(0) => Err(FaultError::Injected),
            Some(2) if before => Err(FaultError::Injected),
            Some(3) if before => panic!("made to panic before acting"),
            Some(4) => {
                std::thread::sleep(Duration::from_micros(100));
                act().map_err(FaultError::Inner)
            }
            kind => {
                let done = act().map_err(FaultError::Inner)?;
                match kind {
                    Some(1 | 2) => Err(FaultError::Injected),
                    Some(_) => panic!("made to panic after acting"),
                    None => Ok(done),
                }
            }
        }
    }
}

#[derive(Clone)]
pub(super) struct Faulty<T> {
    pub(super) inner: T,
    pub(super) dice: Dice,
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
        self.dice.pass_gate();
        self.dice.act(|| wait(self.inner.write(writes, durability)))
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

    async fn scan(
        &self,
        table: Table,
        range: KeyRange,
        bulk: bool,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Self::Error> {
        self.dice.with(|inner| inner.reads[1] += 1);
        self.dice.act(|| wait(self.inner.scan(table, range, bulk, visit)))
    }
}
