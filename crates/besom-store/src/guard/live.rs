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
}

impl<T: Transaction> Remote for Live<'_, T>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    type Error = T::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), T::Error> {
        self.transaction.list(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), T::Error> {
        self.transaction.apply(changes)?;
        self.log.changes(changes);
        Ok(())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), T::Error> {
        self.transaction.scan_lists(visit)
    }
}
