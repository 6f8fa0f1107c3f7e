//! The filter and its lists anew from all keys, in one transaction.

use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::time::Instant;

use besom::Adaptive;

use super::bulk::Bulk;
use super::{Doubt, Finish, Guarded, Outcome, Writer};
use crate::engine::{Engine, Transaction, View};
use crate::error::of_filter;
use crate::{Progress, StoreError};

/// Keys between two reports.
const STRIDE: u64 = 1 << 14;

/// A number for the first commit of new lists. Those that follow are counted from it, and it is far from all others.
pub(crate) fn first_number() -> u64 {
    RandomState::new().hash_one(std::process::id()) >> 1
}

impl<F: Adaptive + Clone, E: Engine> Guarded<F, E> {
    /// Builds the filter anew. In the meantime the old one answers.
    pub(crate) fn rebuild(&self, writer: &mut Writer<F>) -> Outcome<(), E> {
        let start = Instant::now();
        self.write_state().frozen = true;
        let built = self.build();
        let sequence = first_number();
        let numbered = built.and_then(|(filter, mut transaction, keys)| {
            transaction.set_sequence(sequence, None).map_err(StoreError::Engine)?;
            Ok((filter, transaction, keys))
        });
        let (filter, transaction, keys) = match numbered {
            Ok(built) => built,
            Err(error) => {
                self.write_state().thaw();
                return Err(error);
            }
        };
        self.commit(
            writer,
            transaction,
            Doubt { sequence, finish: Finish::Rebuilt(filter) },
            Vec::new(),
            true,
        )?;
        self.write_state().blind = false;
        // Snapshots from before are of no use, so there is nothing to be written down for them.
        writer.logged = None;
        self.counters.rebuilds.add(1);
        crate::events::rebuilt(keys, start.elapsed());
        Ok(())
    }

    /// A filter of all keys, the transaction with its lists, and how many there are.
    fn build(&self) -> Outcome<(F, E::Transaction, u64), E> {
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let total = view.len().map_err(StoreError::Engine)?;
        let mut filter = (self.make)(usize::try_from(total).unwrap_or(usize::MAX))?;
        let mut transaction = self.begin()?;
        transaction.renew_lists().map_err(StoreError::Engine)?;
        let mut bulk = Bulk::new(&mut transaction, self.engine.is_merged());
        let (mut keys, mut failed) = (0, None);
        let scanned = view.scan(&mut |key, value| {
            bulk.begin(key, value);
            if let Err(error) = filter.insert(key, &mut bulk) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            keys += 1;
            if keys % STRIDE == 0 {
                self.report(keys, total);
            }
            ControlFlow::Continue(())
        });
        scanned.map_err(StoreError::Engine)?;
        if let Some(error) = failed {
            return Err(of_filter(error, StoreError::Engine));
        }
        bulk.flush().map_err(StoreError::Engine)?;
        self.report(keys, total);
        Ok((filter, transaction, keys))
    }

    fn report(&self, keys: u64, total: u64) {
        if let Some(listener) = &self.listener {
            listener(Progress { keys, total });
        }
    }

    /// Lets the next operation build the filter anew, and answers "maybe" until then.
    pub(crate) fn distrust(&self) {
        let mut state = self.write_state();
        (state.lost, state.blind) = (true, true);
    }
}
