//! Iteration over a store.

use std::fmt;
use std::ops::Bound;

use ::redb::{Error, OwnedRange};

use super::DATA;
use super::engine::{Broken, RedbView};
use crate::Layout;
use crate::guard::key_of;

/// The keys of a store and their values, as they were when it was asked for them.
///
/// It keeps that state alive: while it lives, [compaction](crate::RedbStore::compact) and [checks](crate::RedbStore::verify) are
/// refused.
pub struct Entries {
    rows: OwnedRange<&'static [u8], &'static [u8]>,
    layout: Layout,
    health: Broken,
    /// After an error there is no more.
    over: bool,
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

impl Entries {
    /// All entries, in the order of their rows.
    pub(super) fn all(view: &RedbView, layout: Layout) -> Result<Self, Error> {
        Self::range(view, layout, (Bound::Unbounded, Bound::Unbounded))
    }

    /// The entries of a range of rows.
    pub(super) fn range(
        view: &RedbView,
        layout: Layout,
        range: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<Self, Error> {
        let rows =
            view.health.checked(|| Ok(view.transaction.open_table(DATA)?.range_owned::<&[u8]>(range)?))?;
        Ok(Self { rows, layout, health: view.health.clone(), over: false })
    }

    fn next_row(&mut self) -> Result<Option<Entry>, Error> {
        let Some((row, value)) = self.rows.next().transpose()? else { return Ok(None) };
        let key = key_of(self.layout, row.value());
        let key = key.ok_or_else(|| Error::Corrupted("a row of the data is shorter than a hash".into()))?;
        Ok(Some((key.to_vec(), value.value().to_vec())))
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.health.clone().checked(|| self.next_row()).transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries").field("over", &self.over).finish_non_exhaustive()
    }
}
