//! A transaction as the remote of a filter's copy.

use std::ops::ControlFlow;

use besom::{Change, Remote};

use super::log::Log;
use crate::engine::Transaction;

/// Lets a filter that nobody else sees work in a transaction.
pub(super) struct Live<'t, T> {
    pub(super) transaction: &'t mut T,
    /// What is done is written down here.
    pub(super) log: &'t mut Log,
    /// The first error of the transaction. A filter may go on after one; the transaction may not be committed then.
    pub(super) failed: &'t mut bool,
}

impl<T: Transaction> Live<'_, T> {
    fn noted<A>(&mut self, act: impl FnOnce(&mut T) -> Result<A, T::Error>) -> Result<A, T::Error> {
        let result = act(self.transaction);
        *self.failed |= result.is_err();
        result
    }
}

impl<T: Transaction> Remote for Live<'_, T>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    type Error = T::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), T::Error> {
        self.noted(|transaction| transaction.list(address, visit))
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), T::Error> {
        self.noted(|transaction| transaction.apply(changes))?;
        self.log.changes(changes);
        Ok(())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), T::Error> {
        self.noted(|transaction| transaction.scan_lists(visit))
    }
}
