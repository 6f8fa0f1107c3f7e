//! A redb store as it was at one moment.

use std::ops::ControlFlow;

use ::redb::{Error, ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata};

use super::engine::Health;
use super::meta::Meta;
use super::{DATA, LISTS, LOG, Layout, META, lists};
use crate::engine::{View, VisitEntry, VisitList};

/// See the [module](self).
pub(crate) struct RedbView {
    pub(super) transaction: ReadTransaction,
    pub(super) layout: Layout,
    pub(super) health: Health,
}

impl RedbView {
    /// The lists that are in use.
    fn lists(&self) -> Result<ReadOnlyTable<(u64, u64), &'static [u8]>, Error> {
        let lists = Meta::lists(&self.transaction.open_table(META)?)?;
        Ok(self.transaction.open_table(LISTS[lists])?)
    }

    /// The numbers between which those of snapshots of this store lie: where its lists were last made anew, and now.
    pub(crate) fn history(&self) -> Result<(u64, u64), Error> {
        self.health.checked(|| {
            let meta = Meta::read(&self.transaction.open_table(META)?)?;
            Ok((meta.first, meta.sequence))
        })
    }

    /// Calls with the parts of every row of the lists in use.
    fn scan_rows(&self, mut visit: impl FnMut(u64, &[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        let table = self.lists()?;
        for row in table.iter()? {
            let (place, row) = row?;
            let (key, value) = lists::decode(self.layout, row.value())?;
            if visit(place.value().0, key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn scan_data(&self, visit: &mut VisitEntry<'_>) -> Result<(), Error> {
        for entry in self.transaction.open_table(DATA)?.iter()? {
            let (key, value) = entry?;
            if visit(key.value(), value.value()).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl View for RedbView {
    type Error = Error;

    fn sequence(&self) -> Result<u64, Error> {
        self.health.checked(|| Meta::sequence(&self.transaction.open_table(META)?))
    }

    fn get(&self, key: &[u8], address: Option<u64>) -> Result<Option<Vec<u8>>, Error> {
        self.health.checked(|| match (self.layout, address) {
            (Layout::Split, _) => {
                Ok(self.transaction.open_table(DATA)?.get(key)?.map(|value| value.value().to_vec()))
            }
            (Layout::Merged, Some(address)) => {
                let table = self.lists()?;
                Ok(lists::find(&table, self.layout, address, key)?.map(|(_, value)| value))
            }
            (Layout::Merged, None) => Ok(None),
        })
    }

    fn list(&self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.health.checked(|| {
            let table = self.lists()?;
            for row in lists::list(&table, address)? {
                visit(lists::decode(self.layout, row?.1.value())?.0);
            }
            Ok(())
        })
    }

    fn scan_lists(&self, visit: &mut VisitList<'_>) -> Result<(), Error> {
        self.health.checked(|| self.scan_rows(|address, key, _| visit(address, key)))
    }

    fn scan(&self, visit: &mut VisitEntry<'_>) -> Result<(), Error> {
        self.health.checked(|| match self.layout {
            Layout::Split => self.scan_data(visit),
            Layout::Merged => self.scan_rows(|_, key, value| visit(key, value)),
        })
    }

    fn len(&self) -> Result<u64, Error> {
        self.health.checked(|| match self.layout {
            Layout::Split => Ok(self.transaction.open_table(DATA)?.len()?),
            Layout::Merged => Ok(self.lists()?.len()?),
        })
    }

    fn log(&self, after: u64, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Error> {
        self.health.checked(|| {
            let Some(first) = after.checked_add(1) else { return Ok(()) };
            for entry in self.transaction.open_table(LOG)?.range(first..)? {
                let (number, log) = entry?;
                visit(number.value(), log.value());
            }
            Ok(())
        })
    }
}
