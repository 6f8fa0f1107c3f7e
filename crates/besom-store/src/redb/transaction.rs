//! Changes to data and lists that become visible together.

use ::redb::{Durability, Error, ReadableTable, WriteTransaction};
use besom::Change;

use super::carried::Carried;
use super::engine::Health;
use super::meta::Meta;
use super::{DATA, LISTS, LOG, Layout, META, lists};
use crate::engine::{Transaction, VisitList};

/// See the [module](self).
pub(crate) struct RedbTransaction {
    pub(super) transaction: WriteTransaction,
    pub(super) health: Health,
    pub(super) meta: Meta,
    /// The lists are those of another table than the one that is in use, which goes with the commit.
    pub(super) renewed: bool,
    /// Something failed, and has perhaps left a part of a group behind.
    pub(super) failed: bool,
    /// Where data is in the lists.
    pub(super) carried: Carried,
}

impl RedbTransaction {
    /// Notes that something failed: the transaction is of no use then, and perhaps the database.
    fn checked<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let done = self.health.clone().checked(|| act(self));
        self.failed |= done.is_err();
        done
    }

    fn is_merged(&self) -> bool {
        self.meta.layout == Layout::Merged
    }

    fn put_merged(
        &mut self,
        key: &[u8],
        value: &[u8],
        address: Option<u64>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.carried.keep(key, value);
        let Some(address) = address else { return Ok(None) };
        let mut table = self.transaction.open_table(LISTS[self.meta.lists])?;
        let found = lists::find(&table, Layout::Merged, address, key)?;
        if let Some((number, _)) = found {
            table.insert((address, number), &*lists::encode(Layout::Merged, key, value)?)?;
        }
        Ok(found.map(|(_, old)| old))
    }

    fn delete_merged(&self, key: &[u8], address: Option<u64>) -> Result<Option<Vec<u8>>, Error> {
        let Some(address) = address else { return Ok(None) };
        let table = self.transaction.open_table(LISTS[self.meta.lists])?;
        Ok(lists::find(&table, Layout::Merged, address, key)?.map(|(_, value)| value))
    }

    /// A row for a key that is pushed.
    fn row(&self, key: &[u8]) -> Result<Vec<u8>, Error> {
        let value = match self.meta.layout {
            Layout::Split => Some(&[][..]),
            Layout::Merged => self.carried.get(key),
        };
        let missing = || Error::Corrupted("a key was pushed whose value is not known".into());
        lists::encode(self.meta.layout, key, value.ok_or_else(missing)?)
    }

    /// Takes up the values of all keys that the group moves, which may be pushed before they are removed.
    fn carry_moved(&mut self, changes: &[Change<'_>]) -> Result<(), Error> {
        let table = self.transaction.open_table(LISTS[self.meta.lists])?;
        for change in changes {
            if let Change::Remove { address, key, .. } | Change::Replace { address, old: key, .. } = *change
                && let Some((_, value)) = lists::find(&table, self.meta.layout, address, key)?
            {
                self.carried.keep(key, &value);
            }
        }
        Ok(())
    }

    fn change(&mut self, changes: &[Change<'_>]) -> Result<(), Error> {
        if self.is_merged() && changes.len() > 1 {
            self.carry_moved(changes)?;
        }
        let mut table = self.transaction.open_table(LISTS[self.meta.lists])?;
        for change in changes {
            match *change {
                Change::Push { address, key } => {
                    let number = lists::next_number(&table, address)?;
                    table.insert((address, number), &*self.row(key)?)?;
                }
                Change::Remove { address, rank, key } => {
                    let number = lists::number_of(&table, self.meta.layout, (address, rank), key)?;
                    table.remove((address, number))?;
                }
                Change::Replace { address, rank, old, key } => {
                    let number = lists::number_of(&table, self.meta.layout, (address, rank), old)?;
                    table.insert((address, number), &*self.row(key)?)?;
                }
                Change::Clear => table.retain(|_, _| false)?,
            }
        }
        Ok(())
    }

    fn finish(mut self, durable: bool) -> Result<(), Error> {
        if self.renewed {
            let old = LISTS[1 - self.meta.lists];
            self.transaction.delete_table(old)?;
            self.transaction.open_table(old)?;
        }
        self.transaction.set_durability(if durable { Durability::Immediate } else { Durability::None })?;
        Ok(self.transaction.commit()?)
    }
}

impl Transaction for RedbTransaction {
    type Error = Error;

    fn put(&mut self, key: &[u8], value: &[u8], address: Option<u64>) -> Result<Option<Vec<u8>>, Error> {
        self.checked(|this| {
            if this.is_merged() {
                return this.put_merged(key, value, address);
            }
            let mut table = this.transaction.open_table(DATA)?;
            let old = table.insert(key, value)?.map(|old| old.value().to_vec());
            Ok(old)
        })
    }

    fn delete(&mut self, key: &[u8], address: Option<u64>) -> Result<Option<Vec<u8>>, Error> {
        self.checked(|this| {
            if this.is_merged() {
                return this.delete_merged(key, address);
            }
            let mut table = this.transaction.open_table(DATA)?;
            let old = table.remove(key)?.map(|old| old.value().to_vec());
            Ok(old)
        })
    }

    fn list(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.checked(|this| {
            let table = this.transaction.open_table(LISTS[this.meta.lists])?;
            for row in lists::list(&table, address)? {
                let (_, row) = row?;
                let (key, value) = lists::decode(this.meta.layout, row.value())?;
                if this.meta.layout == Layout::Merged {
                    this.carried.keep(key, value);
                }
                visit(key);
            }
            Ok(())
        })
    }

    fn scan_lists(&mut self, visit: &mut VisitList<'_>) -> Result<(), Error> {
        self.checked(|this| {
            let table = this.transaction.open_table(LISTS[this.meta.lists])?;
            for row in table.iter()? {
                let (place, row) = row?;
                if visit(place.value().0, lists::decode(this.meta.layout, row.value())?.0).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Error> {
        self.checked(|this| this.change(changes))
    }

    fn renew_lists(&mut self) -> Result<(), Error> {
        self.meta.lists = 1 - self.meta.lists;
        self.renewed = true;
        self.apply(&[Change::Clear])
    }

    fn carry(&mut self, key: &[u8], value: &[u8]) {
        if self.is_merged() {
            self.carried.keep(key, value);
        }
    }

    fn set_sequence(&mut self, sequence: u64, log: Option<&[u8]>) -> Result<(), Error> {
        self.meta.sequence = sequence;
        self.checked(|this| {
            let mut table = this.transaction.open_table(META)?;
            if this.renewed {
                this.meta.first = sequence;
                this.transaction.open_table(LOG)?.retain(|_, _| false)?;
                return this.meta.write_renewed(&mut table);
            }
            if let Some(log) = log {
                this.transaction.open_table(LOG)?.insert(sequence, log)?;
            }
            this.meta.write(&mut table)
        })
    }

    fn trim_log(&mut self, until: u64) -> Result<(), Error> {
        self.checked(|this| {
            let mut table = this.transaction.open_table(LOG)?;
            Ok(table.retain_in(..=until, |_, _| false)?)
        })
    }

    fn commit(self, durable: bool) -> Result<(), Error> {
        if self.failed {
            return Err(Error::Corrupted("a transaction that failed half-way was to be committed".into()));
        }
        self.health.clone().checked(|| self.finish(durable))
    }
}
