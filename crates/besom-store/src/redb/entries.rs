//! Iteration over a store.

use std::fmt;
use std::ops::Bound;

use ::redb::{Error, OwnedRange, ReadTransaction};

use super::engine::Health;
use super::meta::Meta;
use super::view::RedbView;
use super::{DATA, LISTS, Layout, META, lists};

/// The keys of a store and their values, as they were when it was asked for them.
///
/// It keeps that state alive: while it lives, [compaction](crate::RedbStore::compact) is refused.
pub struct Entries {
    rows: Rows,
    health: Health,
    /// After an error there is no more.
    over: bool,
}

enum Rows {
    Split(OwnedRange<&'static [u8], &'static [u8]>),
    Merged(OwnedRange<(u64, u64), &'static [u8]>),
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

impl RedbView {
    /// All entries: by key in the split layout, by address in the merged one.
    pub(crate) fn entries(self) -> Result<Entries, Error> {
        let health = self.health.clone();
        let rows = health.checked(|| match self.layout {
            Layout::Split => split(&self.transaction, (Bound::Unbounded, Bound::Unbounded)),
            Layout::Merged => {
                let lists = Meta::lists(&self.transaction.open_table(META)?)?;
                Ok(Rows::Merged(self.transaction.open_table(LISTS[lists])?.range_owned::<(u64, u64)>(..)?))
            }
        })?;
        Ok(Entries { rows, health, over: false })
    }

    /// The entries of a range of keys, in order. Only the split layout has them.
    pub(crate) fn range(self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<Entries, Error> {
        let rows = self.health.checked(|| split(&self.transaction, range))?;
        Ok(Entries { rows, health: self.health, over: false })
    }
}

fn split(transaction: &ReadTransaction, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<Rows, Error> {
    Ok(Rows::Split(transaction.open_table(DATA)?.range_owned::<&[u8]>(range)?))
}

impl Rows {
    fn next(&mut self) -> Result<Option<Entry>, Error> {
        match self {
            Self::Split(rows) => {
                let Some((key, value)) = rows.next().transpose()? else { return Ok(None) };
                Ok(Some((key.value().to_vec(), value.value().to_vec())))
            }
            Self::Merged(rows) => {
                let Some((_, row)) = rows.next().transpose()? else { return Ok(None) };
                let (key, value) = lists::decode(Layout::Merged, row.value())?;
                Ok(Some((key.to_vec(), value.to_vec())))
            }
        }
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.health.checked(|| self.rows.next()).transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries").field("over", &self.over).finish_non_exhaustive()
    }
}
