//! A database that fails before or after acting, loses its connection, answers late, and panics.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use besom::Change;
use besom::testing::Random;
use thiserror::Error;

use crate::engine::{Engine, Pushes, Transaction, View, VisitEntry, VisitList};

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
    /// One access in so many goes wrong; none if 0.
    one_in: u64,
    /// Nothing works until it is opened again.
    broken: bool,
    faults: [u64; 5],
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
            // Whoever stopped it may have given up.
            let _ = here.send(()).is_ok() && wait.recv().is_ok();
        }
    }

    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            random: Random::new(seed),
            one_in: 0,
            broken: false,
            faults: [0; 5],
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

pub(super) struct Faulty<T> {
    pub(super) inner: T,
    pub(super) dice: Dice,
}

/// A transaction that something failed in cannot be committed.
pub(super) struct FaultyTransaction<T> {
    faulty: Faulty<T>,
    failed: bool,
}

impl<T> FaultyTransaction<T> {
    fn act<A, E>(&mut self, act: impl FnOnce(&mut T) -> Result<A, E>) -> Result<A, FaultError<E>> {
        let Faulty { inner, dice } = &mut self.faulty;
        let done = dice.act(|| act(inner));
        self.failed |= done.is_err();
        done
    }
}

impl<T> Faulty<T> {
    fn wrap<I>(&self, inner: I) -> Faulty<I> {
        Faulty { inner, dice: self.dice.clone() }
    }
}

impl<E: Engine> Engine for Faulty<E> {
    type Error = FaultError<E::Error>;
    type View = Faulty<E::View>;
    type Transaction = FaultyTransaction<E::Transaction>;

    fn view(&self) -> Result<Self::View, Self::Error> {
        self.dice.act(|| self.inner.view()).map(|view| self.wrap(view))
    }

    fn begin(&self) -> Result<Self::Transaction, Self::Error> {
        let begun = self.dice.act(|| self.inner.begin());
        begun.map(|transaction| FaultyTransaction { faulty: self.wrap(transaction), failed: false })
    }

    fn is_broken(&self) -> bool {
        self.dice.with(|inner| inner.broken) || self.inner.is_broken()
    }

    fn reopen(&self) -> Result<(), Self::Error> {
        self.dice.with(|inner| inner.broken = false);
        self.dice.act(|| self.inner.reopen())
    }

    fn is_merged(&self) -> bool {
        self.inner.is_merged()
    }
}

impl<V: View> View for Faulty<V> {
    type Error = FaultError<V::Error>;

    fn sequence(&self) -> Result<u64, Self::Error> {
        self.dice.act(|| self.inner.sequence())
    }

    fn get(&self, key: &[u8], address: Option<u64>) -> Result<Option<Vec<u8>>, Self::Error> {
        self.dice.act(|| self.inner.get(key, address))
    }

    fn list(&self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        self.dice.act(|| self.inner.list(address, visit))
    }

    fn scan_lists(&self, visit: &mut VisitList<'_>) -> Result<(), Self::Error> {
        self.dice.act(|| self.inner.scan_lists(visit))
    }

    fn scan(&self, visit: &mut VisitEntry<'_>) -> Result<(), Self::Error> {
        self.dice.act(|| self.inner.scan(visit))
    }

    fn len(&self) -> Result<u64, Self::Error> {
        self.dice.act(|| self.inner.len())
    }

    fn log(&self, after: u64, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Self::Error> {
        self.dice.act(|| self.inner.log(after, visit))
    }
}

impl<T: Transaction> Transaction for FaultyTransaction<T> {
    type Error = FaultError<T::Error>;

    fn put(
        &mut self,
        key: &[u8],
        value: &[u8],
        address: Option<u64>,
    ) -> Result<Option<Vec<u8>>, Self::Error> {
        self.act(|inner| inner.put(key, value, address))
    }

    fn delete(&mut self, key: &[u8], address: Option<u64>) -> Result<Option<Vec<u8>>, Self::Error> {
        self.act(|inner| inner.delete(key, address))
    }

    fn list(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        self.act(|inner| inner.list(address, visit))
    }

    fn scan_lists(&mut self, visit: &mut VisitList<'_>) -> Result<(), Self::Error> {
        self.act(|inner| inner.scan_lists(visit))
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        self.act(|inner| inner.apply(changes))
    }

    fn push_all(&mut self, entries: &mut Pushes<'_>) -> Result<(), Self::Error> {
        self.act(|inner| inner.push_all(entries))
    }

    fn renew_lists(&mut self) -> Result<(), Self::Error> {
        self.act(T::renew_lists)
    }

    fn carry(&mut self, key: &[u8], value: &[u8]) {
        self.faulty.inner.carry(key, value);
    }

    fn set_sequence(&mut self, sequence: u64, log: Option<&[u8]>) -> Result<(), Self::Error> {
        self.act(|inner| inner.set_sequence(sequence, log))
    }

    fn trim_log(&mut self, until: u64) -> Result<(), Self::Error> {
        self.act(|inner| inner.trim_log(until))
    }

    fn commit(self, durable: bool) -> Result<(), Self::Error> {
        let Faulty { inner, dice } = self.faulty;
        if self.failed {
            return Err(FaultError::Injected);
        }
        dice.pass_gate();
        dice.act(|| inner.commit(durable))
    }
}
