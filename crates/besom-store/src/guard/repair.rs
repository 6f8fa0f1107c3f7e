//! Repairs of false positives.

use std::sync::TryLockError;

use besom::{Adaptive, AdaptiveError};

use super::rehearsal::{Evidence, Lacking, Op, Rehearsal};
use super::{Guarded, Outcome};
use crate::StoreError;
use crate::engine::{Engine, View};
use crate::error::of_filter;

/// Runs that a repair may take: one for every list that it turns out to need, and some for writes in between.
const TRIES: usize = 64;

/// How a repair ended.
enum End {
    Repaired,
    /// The filter rejects the key already, or stores it.
    Nothing,
    /// A write is under way.
    Later,
    /// It changes lists, or needs all of them.
    Writes,
}

impl<F: Adaptive + Clone, E: Engine> Guarded<F, E> {
    /// Repairs a false positive, or sees to it that it is repaired later. Fails nobody.
    pub(super) fn repair(&self, key: &[u8]) {
        let end = match self.try_repair(key) {
            Ok(End::Writes) => self.repair_as_writer(key),
            end => end,
        };
        match end {
            Ok(End::Repaired) => self.counters.adaptations.add(1),
            Ok(End::Nothing) => {}
            Ok(End::Later | End::Writes) => {
                if !self.write_state().postpone(key) {
                    self.counters.failed_adaptations.add(1);
                }
            }
            Err(error) => {
                self.counters.failed_adaptations.add(1);
                if let StoreError::Inconsistent { .. } = error {
                    self.write_state().lost = true;
                }
                self.note("a false positive could not be repaired", error);
            }
        }
    }

    /// Makes up for repairs that had to wait.
    pub(super) fn repair_waiting(&self, count: usize) {
        for _ in 0..count {
            let key = {
                // Nearly always there is none, and readers are not to wait for each other.
                if self.read_state().waiting.is_empty() {
                    return;
                }
                let mut state = self.write_state();
                if !state.is_settled() {
                    return;
                }
                state.waiting.pop_first()
            };
            key.iter().for_each(|key| self.repair(key));
        }
    }

    /// A repair that writes nothing.
    fn try_repair(&self, key: &[u8]) -> Outcome<End, E> {
        let (mut evidence, mut view) = (Evidence::default(), None::<(E::View, u64)>);
        for _ in 0..TRIES {
            let lacking = {
                let mut state = self.write_state();
                if !state.is_settled() {
                    return Ok(End::Later);
                }
                // Lists of another state than the filter's are of no use.
                if view.as_ref().is_some_and(|(_, sequence)| *sequence != state.sequence) {
                    evidence.clear();
                    view = None;
                }
                Op::Adapt.run(&mut state.filter, key, &mut Rehearsal::of(&evidence))
            };
            match lacking {
                Ok(repaired) => return Ok(if repaired { End::Repaired } else { End::Nothing }),
                Err(AdaptiveError::Remote(Lacking::List(address))) => {
                    self.fetch(address, &mut evidence, &mut view)?;
                }
                Err(AdaptiveError::Remote(_)) => return Ok(End::Writes),
                Err(error) => return Err(of_filter(error, |_| StoreError::Inconsistent { address: 0 })),
            }
        }
        Ok(End::Writes)
    }

    /// Reads a list in a view, which is made if there is none.
    fn fetch(
        &self,
        address: u64,
        evidence: &mut Evidence,
        view: &mut Option<(E::View, u64)>,
    ) -> Outcome<(), E> {
        self.counters.remote_reads.add(1);
        let fetched = self.counters.timed(|| {
            let (view, _) = match view {
                Some(view) => view,
                None => {
                    let fresh = self.engine.view()?;
                    let sequence = fresh.sequence()?;
                    view.insert((fresh, sequence))
                }
            };
            evidence.fetch(address, |visit| view.list(address, visit))
        });
        fetched.map_err(StoreError::Engine)
    }

    /// A repair that changes lists, which takes a writer. A query does not wait to become one.
    fn repair_as_writer(&self, key: &[u8]) -> Outcome<End, E> {
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(End::Later),
        };
        self.settle(&mut writer)?;
        let repaired = self.counters.timed(|| self.adapt_in_transaction(&mut writer, key))?;
        Ok(if repaired { End::Repaired } else { End::Nothing })
    }
}
