//! Whether filter, lists and data agree.

use std::cell::RefCell;
use std::ops::ControlFlow;

use ::redb::Error;
use besom::{AdaptiveError, Change, InvariantError, Remote};
use thiserror::Error as ThisError;

use crate::StoreError;
use crate::engine::{Engine, View};
use crate::redb::{Layout, RedbView};
use crate::store::{RedbStore, StoreFilter};

/// What a store's [`verify`](RedbStore::verify) found.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum VerifyError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError<Error>),
    /// The filter is not sound in itself.
    #[error(transparent)]
    Filter(#[from] InvariantError),
    /// Filter and lists do not hold the same keys.
    #[error("filter and lists disagree: {0}; rebuild the filter")]
    Lists(AdaptiveError<Error>),
    /// Lists and data do not hold the same keys.
    #[error(
        "the lists have {listed} keys, {unknown} of them unknown to the data, which has {stored}; rebuild the filter"
    )]
    Data {
        /// Keys in the lists.
        listed: u64,
        /// Keys in the lists that the data does not have.
        unknown: u64,
        /// Keys in the data.
        stored: u64,
    },
}

pub(crate) fn verify<F: StoreFilter>(store: &RedbStore<F>) -> Result<(), VerifyError> {
    let guarded = &store.guarded;
    // No write in between, so the view is that of the filter; nor is anything left behind by an error.
    let mut writer = guarded.lock_writer();
    guarded.settle(&mut writer)?;
    let view = guarded.engine.view().map_err(StoreError::Engine)?;
    // Repairs may go on: they change a copy's original.
    let filter = guarded.with_filter(F::clone);
    filter.verify()?;
    filter.verify_remote(&mut Lists(&view)).map_err(VerifyError::Lists)?;
    if store.layout() == Layout::Split { verify_data(&view) } else { Ok(()) }
}

/// Every key of the lists has data, and there is no more of one than of the other. That lists hold no key twice is the filter's to
/// check.
fn verify_data(view: &RedbView) -> Result<(), VerifyError> {
    let (mut listed, mut unknown) = (0, 0);
    let failed = RefCell::new(None);
    let scanned = view.scan_lists(&mut |_, key| match view.get(key, None) {
        Ok(found) => {
            listed += 1;
            unknown += u64::from(found.is_none());
            ControlFlow::Continue(())
        }
        Err(error) => {
            failed.replace(Some(error));
            ControlFlow::Break(())
        }
    });
    scanned.map_err(StoreError::Engine)?;
    if let Some(error) = failed.into_inner() {
        return Err(StoreError::Engine(error).into());
    }
    let stored = view.len().map_err(StoreError::Engine)?;
    if unknown == 0 && listed == stored { Ok(()) } else { Err(VerifyError::Data { listed, unknown, stored }) }
}

/// The lists of a view, to be read only.
struct Lists<'v>(&'v RedbView);

impl Remote for Lists<'_> {
    type Error = Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.0.list(address, visit)
    }

    fn apply(&mut self, _: &[Change<'_>]) -> Result<(), Error> {
        Err(Error::Corrupted("a check was to change lists".into()))
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        self.0.scan_lists(visit)
    }
}
