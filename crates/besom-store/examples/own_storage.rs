//! besom in front of one's own storage: `SQLite`, with the filter's lists in a table beside the data.
//!
//! ```text
//! cargo run --release -p besom-store --example own_storage
//! ```
//!
//! What it takes are the two impls in the middle, some 40 lines: [`Dictionary`] for the data and [`Remote`] for the lists. See
//! `docs/guarding-your-storage.md`.

use std::error::Error;
use std::ops::ControlFlow;

use besom::{Adaptive, Change, Dictionary, Filter, Guard, Remote, TelescopingFilter};
use rusqlite::{Connection, OptionalExtension, params};

/// The lists must be in the order of insertion, so they have a number that ascends. Addresses are 64 bits, as those of
/// `SQLite` are; `cast_signed` keeps all of them.
const TABLES: &str = "CREATE TABLE people (name BLOB PRIMARY KEY, age INTEGER) WITHOUT ROWID;
    CREATE TABLE lists (address INTEGER, number INTEGER, name BLOB, PRIMARY KEY (address, number)) WITHOUT ROWID;";

struct People<'c>(&'c Connection);

impl Dictionary for People<'_> {
    type Value = i64;
    type Error = rusqlite::Error;

    fn get(&mut self, name: &[u8]) -> Result<Option<i64>, rusqlite::Error> {
        self.0
            .prepare_cached("SELECT age FROM people WHERE name = ?")?
            .query_row([name], |row| row.get(0))
            .optional()
    }

    fn insert(&mut self, name: &[u8], age: i64) -> Result<Option<i64>, rusqlite::Error> {
        let old = self.get(name)?;
        self.0.prepare_cached("INSERT OR REPLACE INTO people VALUES (?, ?)")?.execute(params![name, age])?;
        Ok(old)
    }

    fn remove(&mut self, name: &[u8]) -> Result<Option<i64>, rusqlite::Error> {
        self.0
            .prepare_cached("DELETE FROM people WHERE name = ? RETURNING age")?
            .query_row([name], |row| row.get(0))
            .optional()
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), rusqlite::Error> {
        let mut names = self.0.prepare_cached("SELECT name FROM people")?;
        let mut rows = names.query([])?;
        while let Some(row) = rows.next()? {
            if visit(row.get_ref(0)?.as_blob()?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

struct Lists<'c>(&'c Connection);

impl Lists<'_> {
    /// One change, on the key that the filter expects there; an error if it is another one.
    fn change(&self, change: &Change<'_>) -> Result<(), rusqlite::Error> {
        let at = "address = ?1 AND name = ?3 AND number = (SELECT number FROM lists WHERE address = ?1 ORDER BY number LIMIT 1 OFFSET ?2)";
        let changed = match *change {
            Change::Push { address, key } => {
                let push = "INSERT INTO lists SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM lists WHERE address = ?1";
                self.0.prepare_cached(push)?.execute(params![address.cast_signed(), key])?
            }
            Change::Remove { address, rank, key } => {
                let remove = format!("DELETE FROM lists WHERE {at}");
                self.0.prepare_cached(&remove)?.execute(params![address.cast_signed(), rank as i64, key])?
            }
            Change::Replace { address, rank, old, key } => {
                let replace = format!("UPDATE lists SET name = ?4 WHERE {at}");
                self.0.prepare_cached(&replace)?.execute(params![
                    address.cast_signed(),
                    rank as i64,
                    old,
                    key
                ])?
            }
            Change::Clear => self.0.execute("DELETE FROM lists", [])?.max(1),
        };
        if changed > 0 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(0)) }
    }
}

impl Remote for Lists<'_> {
    type Error = rusqlite::Error;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), rusqlite::Error> {
        let mut list = self.0.prepare_cached("SELECT name FROM lists WHERE address = ? ORDER BY number")?;
        let mut rows = list.query([address.cast_signed()])?;
        while let Some(row) = rows.next()? {
            visit(row.get_ref(0)?.as_blob()?);
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), rusqlite::Error> {
        let transaction = self.0.unchecked_transaction()?; // dropped without a commit, it has done nothing
        changes.iter().try_for_each(|change| self.change(change))?;
        transaction.commit()
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), rusqlite::Error> {
        // Ascending addresses: those that SQLite takes for negative come last.
        let mut lists =
            self.0.prepare_cached("SELECT address, name FROM lists ORDER BY address < 0, address, number")?;
        let mut rows = lists.query([])?;
        while let Some(row) = rows.next()? {
            if visit(row.get::<_, i64>(0)?.cast_unsigned(), row.get_ref(1)?.as_blob()?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    for number in 0..5_000 {
        connection.execute(
            "INSERT INTO people VALUES (?, ?)",
            params![format!("person {number}").as_bytes(), number % 90],
        )?;
    }

    // The table was there before the guard: it reads all keys once.
    let filter = TelescopingFilter::builder().capacity(10_000).growable().build()?;
    let mut people = Guard::over(filter, People(&connection), Lists(&connection))?;
    people.insert("Ada", 36)?;
    assert_eq!(people.get("Ada")?, Some(36));
    assert_eq!(people.remove("person 7")?, Some(7));
    assert_eq!(people.get("person 7")?, None);

    for _ in 0..5 {
        for number in 0..50_000 {
            assert_eq!(people.get(&*format!("nobody {number}"))?, None);
        }
    }
    let stats = people.stats();
    println!("{} queries, {} of them reached SQLite for nothing", stats.queries, stats.false_positives);
    println!("without repairs it would have been about {}", 5 * 50_000 / 256);

    let (filter, _, mut lists) = people.into_parts();
    filter.verify_remote(&mut lists)?;
    println!("{} keys, {:.2} bits each; filter and lists agree", filter.len(), filter.stats().bits_per_key());
    Ok(())
}
