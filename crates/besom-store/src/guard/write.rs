//! Writes: data and lists in one transaction, then the filter.

use std::sync::atomic::Ordering;

use besom::{Adaptive, AdaptiveError, Change, KeyHasher};

use super::live::Live;
use super::log::Log;
use super::rehearsal::{Evidence, Lacking, Op, OwnedChange, Rehearsal};
use super::{Doubt, Finish, Guarded, Outcome, Writer};
use crate::StoreError;
use crate::engine::{Engine, Transaction};
use crate::error::of_filter;

/// Runs that a rehearsal may take before the operation is made on a copy of the filter instead.
const TRIES: usize = 16;

/// Waiting repairs that a writer makes up for when it is done.
const REPAIRS: usize = 8;

/// Commits that are written down between two snapshots.
const MAX_LOGGED: u64 = 1 << 17;

/// One change to the data.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
}

/// What is done in memory once a transaction has been committed, and the keys that it inserts.
struct Plan<F> {
    finish: Finish<F>,
    inserted: Vec<Box<[u8]>>,
}

impl<F: Adaptive + Clone, E: Engine> Guarded<F, E> {
    /// Stores a value, and returns the one that was there.
    pub(crate) fn insert(&self, key: &[u8], value: &[u8], durable: bool) -> Outcome<Option<Vec<u8>>, E> {
        let done = self.write_one(&mut self.lock_writer(), Op::Insert, (key, value), durable);
        self.repair_waiting(REPAIRS);
        done
    }

    /// Removes a key, and returns its value.
    pub(crate) fn remove(&self, key: &[u8], durable: bool) -> Outcome<Option<Vec<u8>>, E> {
        // Its removal may be one of those that would not last.
        let may_matter = self.may_have(key) || (durable && self.is_volatile());
        if !may_matter {
            return Ok(None);
        }
        let done = self.write_one(&mut self.lock_writer(), Op::Remove, (key, &[]), durable);
        if let Ok(None) = done {
            self.repair(key);
        }
        self.repair_waiting(REPAIRS);
        done
    }

    /// Makes all changes in one transaction.
    pub(crate) fn write(&self, steps: &[Step], durable: bool) -> Outcome<(), E> {
        let done = self.write_all(&mut self.lock_writer(), steps, durable);
        self.repair_waiting(REPAIRS);
        done
    }

    fn write_one(
        &self,
        writer: &mut Writer<F>,
        op: Op,
        (key, value): (&[u8], &[u8]),
        durable: bool,
    ) -> Outcome<Option<Vec<u8>>, E> {
        self.settle(writer)?;
        let mut transaction = self.begin()?;
        let address = self.engine.is_merged().then(|| self.read_state().address_of(key)).flatten();
        let old = self.counters.timed(|| match op {
            Op::Remove => transaction.delete(key, address),
            _ => transaction.put(key, value, address),
        });
        let old = old.map_err(StoreError::Engine)?;
        match (op, &old) {
            (Op::Remove, None) => {
                drop(transaction);
                if durable && self.is_volatile() {
                    self.make_durable()?;
                }
            }
            // The filter has the key.
            (Op::Insert, Some(_)) => self.commit_data(transaction, durable)?,
            _ => self.commit_with(writer, transaction, durable, |guard, transaction, log| {
                guard.plan(op, key, transaction, log)
            })?,
        }
        Ok(old)
    }

    fn write_all(&self, writer: &mut Writer<F>, steps: &[Step], durable: bool) -> Outcome<(), E> {
        if let [Step::Insert(key, value)] = steps {
            return self.write_one(writer, Op::Insert, (key, value), durable).map(drop);
        }
        self.settle(writer)?;
        let transaction = self.begin()?;
        self.commit_with(writer, transaction, durable, |guard, transaction, log| {
            guard.make_steps(steps, transaction, log)
        })
    }

    /// Makes all changes, on a copy of the filter if there are any that concern it.
    fn make_steps(
        &self,
        steps: &[Step],
        transaction: &mut E::Transaction,
        log: &mut Log,
    ) -> Outcome<Option<Plan<F>>, E> {
        let mut copy = self.read_state().filter.clone();
        let (mut changed, mut inserted) = (false, Vec::new());
        for step in steps {
            let (op, key) = match step {
                Step::Insert(key, _) => (Op::Insert, key),
                Step::Remove(key) => (Op::Remove, key),
            };
            if op == Op::Remove && !copy.contains(&**key) {
                continue;
            }
            let address = copy.address_of(copy.hasher().digest(key));
            let old = self.counters.timed(|| match step {
                Step::Insert(key, value) => transaction.put(key, value, address),
                Step::Remove(key) => transaction.delete(key, address),
            });
            if old.map_err(StoreError::Engine)?.is_some() == (op == Op::Remove) {
                self.run_live(&mut copy, op, key, transaction, log).map_err(|error| self.disagreed(error))?;
                changed = true;
                if op == Op::Insert {
                    inserted.push(key.as_slice().into());
                }
            }
        }
        Ok(changed.then_some(Plan { finish: Finish::Swap(copy), inserted }))
    }

    /// An operation on a filter that nobody else sees, in a transaction.
    pub(super) fn run_live(
        &self,
        filter: &mut F,
        op: Op,
        key: &[u8],
        transaction: &mut E::Transaction,
        log: &mut Log,
    ) -> Outcome<bool, E> {
        log.op(op, key);
        self.counters.remote_writes.add(1);
        let done = self.counters.timed(|| op.run(filter, key, &mut Live { transaction, log }));
        match done.map_err(|error| of_filter(error, StoreError::Engine))? {
            // The data had the key that is to be removed.
            false if op == Op::Remove => Err(StoreError::Inconsistent { address: 0 }),
            done => Ok(done),
        }
    }

    /// A repair that changes lists. Whether it changed the filter.
    pub(super) fn adapt_in_transaction(&self, writer: &mut Writer<F>, key: &[u8]) -> Outcome<bool, E> {
        let transaction = self.begin()?;
        let before = self.read_state().filter.contains(key);
        // What a repair writes may get lost, together with everything that was not durable either.
        self.commit_with(writer, transaction, false, |guard, transaction, log| {
            guard.plan(Op::Adapt, key, transaction, log)
        })?;
        Ok(before && !self.read_state().filter.contains(key))
    }

    pub(super) fn begin(&self) -> Outcome<E::Transaction, E> {
        self.counters.timed(|| self.engine.begin()).map_err(StoreError::Engine)
    }

    /// Commits a change of data that does not concern the filter.
    fn commit_data(&self, transaction: E::Transaction, durable: bool) -> Outcome<(), E> {
        self.commit_transaction(transaction, durable).map_err(StoreError::Engine)
    }

    fn commit_transaction(&self, transaction: E::Transaction, durable: bool) -> Result<(), E::Error> {
        self.counters.commits.add(1);
        if !durable {
            self.volatile.store(true, Ordering::Release);
        }
        self.counters.timed(|| transaction.commit(durable))?;
        if durable {
            self.volatile.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Makes sure that everything so far is durable, with a commit that changes nothing.
    pub(super) fn make_durable(&self) -> Outcome<(), E> {
        let mut transaction = self.begin()?;
        transaction.set_sequence(self.read_state().sequence, None).map_err(StoreError::Engine)?;
        self.commit_data(transaction, true)
    }

    /// Forgets what was written down up to a commit.
    pub(super) fn trim_log(&self, until: u64) -> Outcome<(), E> {
        let mut transaction = self.begin()?;
        transaction.trim_log(until).map_err(StoreError::Engine)?;
        self.commit_data(transaction, false)
    }

    /// Lets `plan` work in a transaction, commits it, and changes the filter.
    fn commit_with(
        &self,
        writer: &mut Writer<F>,
        mut transaction: E::Transaction,
        durable: bool,
        plan: impl FnOnce(&Self, &mut E::Transaction, &mut Log) -> Outcome<Option<Plan<F>>, E>,
    ) -> Outcome<(), E> {
        // Nothing else changes the filter between the plan and the commit.
        self.write_state().frozen = true;
        let mut log = Log::default();
        let planned = plan(self, &mut transaction, &mut log).and_then(|plan| {
            let Some(plan) = plan else { return Ok(None) };
            let sequence = self.read_state().sequence + 1;
            let log = log.finish().filter(|_| writer.logged.is_some_and(|logged| logged < MAX_LOGGED));
            writer.logged = writer.logged.map(|logged| logged + 1);
            transaction.set_sequence(sequence, log).map_err(StoreError::Engine)?;
            Ok(Some((Doubt { sequence, finish: plan.finish }, plan.inserted)))
        });
        match planned {
            Ok(Some((doubt, inserted))) => self.commit(writer, transaction, doubt, inserted, durable),
            Ok(None) => {
                self.write_state().thaw();
                self.commit_data(transaction, durable)
            }
            Err(error) => {
                self.write_state().thaw();
                Err(error)
            }
        }
    }

    /// Commits a transaction that the filter follows. The keys that it inserts may be in the store and not in the filter in between.
    pub(super) fn commit(
        &self,
        writer: &mut Writer<F>,
        transaction: E::Transaction,
        doubt: Doubt<F>,
        inserted: Vec<Box<[u8]>>,
        durable: bool,
    ) -> Outcome<(), E> {
        self.write_state().doubts.extend(inserted);
        // From here on nobody knows, until the commit has returned: after an error or a panic the next one finds out.
        writer.doubt = Some(doubt);
        if let Err(error) = self.commit_transaction(transaction, durable) {
            self.counters.commits_in_doubt.add(1);
            crate::events::failure("a commit failed, and was made or not", &error);
            return Err(StoreError::Engine(error));
        }
        self.finish(writer);
        Ok(())
    }

    /// Rehearses an operation and makes its changes in the transaction; or makes it on a copy, if it needs all lists. `None` if
    /// there is nothing to do.
    fn plan(
        &self,
        op: Op,
        key: &[u8],
        transaction: &mut E::Transaction,
        log: &mut Log,
    ) -> Outcome<Option<Plan<F>>, E> {
        let inserted = if op == Op::Insert { vec![key.into()] } else { Vec::new() };
        let mut evidence = Evidence::default();
        let full = op == Op::Insert && self.with_filter(|filter| filter.len() >= filter.capacity());
        for _ in 0..if full { 0 } else { TRIES } {
            let mut rehearsal = Rehearsal::of(&evidence);
            let lacking = op.run(&mut self.write_state().filter, key, &mut rehearsal);
            let made = std::mem::take(&mut rehearsal.group);
            match lacking {
                // The data had the key that is to be removed.
                Ok(false) if op == Op::Remove => {
                    return Err(self.disagreed(StoreError::Inconsistent { address: 0 }));
                }
                Ok(_) => return Ok(None),
                Err(AdaptiveError::Remote(Lacking::List(address))) => {
                    self.counters.remote_reads.add(1);
                    let read = |visit: &mut dyn FnMut(&[u8])| transaction.list(address, visit);
                    self.counters.timed(|| evidence.fetch(address, read)).map_err(StoreError::Engine)?;
                }
                Err(AdaptiveError::Remote(Lacking::Group)) => {
                    self.make(op, key, &made, transaction, log)?;
                    let finish = Finish::Replay { op, key: key.into(), evidence, made };
                    return Ok(Some(Plan { finish, inserted }));
                }
                Err(AdaptiveError::Remote(Lacking::Everything)) => break,
                Err(error) => {
                    return Err(self.disagreed(of_filter(error, |_| StoreError::Inconsistent { address: 0 })));
                }
            }
        }
        let mut copy = self.read_state().filter.clone();
        let done =
            self.run_live(&mut copy, op, key, transaction, log).map_err(|error| self.disagreed(error))?;
        Ok(done.then_some(Plan { finish: Finish::Swap(copy), inserted }))
    }

    /// Makes the changes of an operation in the transaction.
    fn make(
        &self,
        op: Op,
        key: &[u8],
        made: &[OwnedChange],
        transaction: &mut E::Transaction,
        log: &mut Log,
    ) -> Outcome<(), E> {
        let changes: Vec<Change<'_>> = made.iter().map(OwnedChange::borrowed).collect();
        log.op(op, key);
        log.changes(&changes);
        self.counters.remote_writes.add(1);
        self.counters.timed(|| transaction.apply(&changes)).map_err(StoreError::Engine)
    }

    /// Remembers that filter and lists disagree.
    fn disagreed(&self, error: StoreError<E::Error>) -> StoreError<E::Error> {
        if let StoreError::Inconsistent { .. } = error {
            self.write_state().lost = true;
        }
        error
    }
}
