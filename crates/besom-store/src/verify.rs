//! Whether filter, index and data agree.

use std::ops::ControlFlow;

use besom::{AdaptiveError, InvariantError, KeyHasher};
use thiserror::Error as ThisError;

use crate::engine::{Engine, KeyRange, Table};
use crate::guard::{Live, Outcome, key_of};
use crate::record::Index;
use crate::{Store, StoreError, StoreFilter, rows};

/// What a store's [`verify`](Store::verify) found.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum VerifyError<E: std::error::Error + Send + Sync + 'static> {
    /// The store or its database failed.
    #[error(transparent)]
    Store(#[from] StoreError<E>),
    /// The database says that its file is damaged.
    #[error("the database is damaged: {0}; take a backup")]
    Damaged(String),
    /// The filter is not sound in itself.
    #[error(transparent)]
    Filter(#[from] InvariantError),
    /// Filter and index do not hold the same keys.
    #[error("filter and index disagree: {0}; rebuild the filter")]
    Index(AdaptiveError<E>),
    /// Index and data do not hold the same keys, or rows are not where the hashes of their keys say.
    #[error(
        "of {stored} stored keys, where {counted} were counted, {misplaced} rows are in a wrong place and {unindexed} keys are not in \
         the index, which has {indexed} keys: the store is damaged"
    )]
    Data {
        /// Keys in the data.
        stored: u64,
        /// Keys that there should be.
        counted: u64,
        /// Rows that are not where the hashes of their keys say.
        misplaced: u64,
        /// Keys of the data that the index does not have.
        unindexed: u64,
        /// Keys in the index.
        indexed: u64,
    },
}

impl<F: StoreFilter, E: Engine> Store<F, E> {
    /// Checks everything: the database by its own means, the filter, the index, and the data. Reads everything, and writers wait as
    /// long as it takes. Repairs nothing, and builds nothing. Rows that were gone already when the filter was built are noticed too,
    /// unless the store was opened again and written to since.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] says what is wrong.
    pub async fn verify(&self) -> Result<(), VerifyError<E::Error>> {
        let mut writer = self.writer.lock().await;
        if let Some(what) = self.engine.check().await.map_err(StoreError::Engine)? {
            return Err(VerifyError::Damaged(what));
        }
        // What errors have left behind is settled; a filter that is of no use is not built from what is judged here.
        self.resolve(&mut writer).await?;
        let (filter, counted, index) = (self.with_filter(F::clone), self.counted(&writer), self.header.index);
        let view = self.engine.view().map_err(StoreError::Engine)?;
        let table = if index == Index::None { Table::Data } else { Table::Index };
        let (mut live, layout) = (Live::new(&self.engine, view, table), self.header.layout);
        let work = move || {
            filter.verify()?;
            filter.verify_remote(&mut live).map_err(VerifyError::Index)?;
            let counts = Counts::of(&filter, &live, layout, index)?;
            counts.judge(counted)
        };
        self.engine.run(work).await.ok_or(StoreError::BrokenOff)?
    }
}

/// What was counted.
#[derive(Default)]
struct Counts {
    stored: u64,
    misplaced: u64,
    unindexed: u64,
    indexed: u64,
}

impl Counts {
    fn of<F: StoreFilter, E: Engine>(
        filter: &F,
        live: &Live<E>,
        layout: crate::Layout,
        index: Index,
    ) -> Outcome<Self, E> {
        let (mut counts, mut failed) = (Self::default(), None);
        let data = live.rows(Table::Data, KeyRange::default(), |row| {
            counts.stored += 1;
            let Some(key) = key_of(layout, row) else {
                counts.misplaced += 1;
                return ControlFlow::Continue(());
            };
            let hi = filter.hasher().digest(key).hi;
            if layout == crate::Layout::Hashed {
                counts.misplaced += u64::from(rows::parts(row).is_none_or(|(found, _)| found != hi));
            }
            if index == Index::Hashes {
                match live.has(&rows::row(hi, key)) {
                    Ok(found) => counts.unindexed += u64::from(!found),
                    Err(error) => failed = Some(error),
                }
            }
            // Every stored key must be accepted, whatever the index says.
            counts.unindexed += u64::from(!filter.contains(key));
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        data.map_err(StoreError::Engine)?;
        if let Some(error) = failed {
            return Err(StoreError::Engine(error));
        }
        let indexed = live.rows(live.table, KeyRange::default(), |_| {
            counts.indexed += 1;
            ControlFlow::Continue(())
        });
        indexed.map_err(StoreError::Engine)?;
        Ok(counts)
    }

    fn judge<E: std::error::Error + Send + Sync + 'static>(
        &self,
        counted: u64,
    ) -> Result<(), VerifyError<E>> {
        let Self { stored, misplaced, unindexed, indexed } = *self;
        if misplaced == 0 && unindexed == 0 && indexed == stored && counted == stored {
            return Ok(());
        }
        Err(VerifyError::Data { stored, counted, misplaced, unindexed, indexed })
    }
}
