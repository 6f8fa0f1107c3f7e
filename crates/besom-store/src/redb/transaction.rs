//! Changes to data and lists that become visible together.

use ::redb::{Durability, Error, ReadableTable, WriteTransaction};
use besom::Change;

use super::carried::Carried;
use super::engine::Health;
use super::meta::Meta;
use super::{DATA, LISTS, LOG, Layout, META, lists};
use crate::engine::{Pushes, Transaction, VisitList};

/// See the [module](self).
pub(crate) struct RedbTransaction {
    pub(super) transaction: WriteTransaction,
    pub(super) health: Health,
    pub(super) meta: Meta,
    /// The lists are those of another table than the one that is in use, which goes with the commit.
    pub(super) renewed: bool,
    /// What failed first, and has perhaps left a part of a group behind.
    pub(super) failed: Option<Error>,
    /// Where data is in the lists.
    pub(super) carried: Carried,
}

impl RedbTransaction {
    /// Notes that something failed: the transaction is of no use then, and perhaps the database.
    fn checked<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let done = self.health.clone().checked(|| act(self));
        if let (None, Err(error)) = (&self.failed, &done) {
            self.failed = Some(copy_of(error));
        }
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

    fn change(&self, changes: &[Change<'_>]) -> Result<(), Error> {
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

/// The same error once more, for whoever commits after somebody else got over it.
fn copy_of(error: &Error) -> Error {
    match error {
        Error::Io(error) => Error::Io(std::io::Error::new(error.kind(), error.to_string())),
        Error::PreviousIo => Error::PreviousIo,
        other => Error::Corrupted(format!("the transaction failed before: {other}")),
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

    fn push_all(&mut self, entries: &mut Pushes<'_>) -> Result<(), Error> {
        self.checked(|this| {
            let mut table = this.transaction.open_table(LISTS[this.meta.lists])?;
            for (address, key, value) in entries {
                let number = lists::next_number(&table, address)?;
                table.insert((address, number), &*lists::encode(this.meta.layout, key, value)?)?;
            }
            Ok(())
        })
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

    fn commit(mut self, durable: bool) -> Result<(), Error> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.health.clone().checked(|| self.finish(durable)),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Catches: half a group that is committed, because somebody got over the error.
    use ::redb::Builder;
    use ::redb::backends::InMemoryBackend;

    use super::*;
    use crate::engine::{Engine, View};
    use crate::redb::Redb;

    fn database(layout: Layout) -> Redb {
        let opener = Box::new(|| Builder::new().create_with_backend(InMemoryBackend::new()));
        let Ok(database) = Redb::open(opener, Some(layout), 1) else { panic!("a database in memory opens") };
        database
    }

    fn list(database: &Redb, address: u64) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        database.view().unwrap().list(address, &mut |key| keys.push(key.to_vec())).unwrap();
        keys
    }

    #[test]
    fn a_transaction_that_failed_cannot_be_committed() {
        let database = database(Layout::Split);
        let mut transaction = database.begin().unwrap();
        let changes = [
            Change::Push { address: 1, key: b"one" },
            Change::Remove { address: 1, rank: 1, key: b"another" },
        ];
        assert!(transaction.apply(&changes).is_err());
        assert!(transaction.commit(true).is_err());
        assert!(list(&database, 1).is_empty());
        assert!(!database.is_broken());
    }

    #[test]
    fn lists_keep_their_order_and_ranks_are_checked() {
        let database = database(Layout::Merged);
        let mut transaction = database.begin().unwrap();
        for key in [b"c", b"a", b"b"] {
            transaction.carry(key, b"value");
            transaction.apply(&[Change::Push { address: 7, key }]).unwrap();
        }
        transaction.apply(&[Change::Remove { address: 7, rank: 1, key: b"a" }]).unwrap();
        transaction.carry(b"d", b"other");
        transaction.apply(&[Change::Replace { address: 7, rank: 0, old: b"c", key: b"d" }]).unwrap();
        transaction.commit(true).unwrap();
        assert_eq!(list(&database, 7), [b"d", b"b"]);
        let view = database.view().unwrap();
        assert_eq!(view.get(b"d", Some(7)).unwrap(), Some(b"other".to_vec()));
        for rank in [0, 2] {
            let wrong = [Change::Remove { address: 7, rank, key: b"b" }];
            assert!(database.begin().unwrap().apply(&wrong).is_err(), "{rank}");
        }
        let unknown = [Change::Push { address: 8, key: b"a key without a value" }];
        assert!(database.begin().unwrap().apply(&unknown).is_err());
    }
}
