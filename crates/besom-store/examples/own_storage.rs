//! besom in front of one's own storage: a table of `SQLite` that exists already, with one more column and an index on it.
//!
//! ```text
//! cargo run --release -p besom-store --example own_storage
//! ```
//!
//! What it takes is the column, the function `in_range` in the middle, and a [`Dictionary`]. See
//! `docs/guarding-your-storage.md`.

use std::error::Error;
use std::ops::{ControlFlow, RangeInclusive};

use besom::{
    Adaptive, Dictionary, Filter, Guard, KeyHasher, Seed, StoreIndex, TelescopingFilter, Visit, Xxh3,
};
use rusqlite::{Connection, OptionalExtension, params};

/// The seed of the column. It is part of the data: keep it with the table.
const SEED: u64 = 0x7465_6163_7570;

/// The upper half of a key's hash as `SQLite` orders it: its integers are signed.
fn column(hi: u64) -> i64 {
    (hi ^ 1 << 63).cast_signed()
}

/// The keys of a range of hashes, in the order of hashes and then of bytes: all that a filter asks of a table.
fn in_range(
    connection: &Connection,
    hashes: RangeInclusive<u64>,
    visit: &mut Visit<'_>,
) -> rusqlite::Result<()> {
    let mut names = connection
        .prepare_cached("SELECT hash, name FROM people WHERE hash BETWEEN ? AND ? ORDER BY hash, name")?;
    let mut rows = names.query([column(*hashes.start()), column(*hashes.end())])?;
    while let Some(row) = rows.next()? {
        let hi = row.get::<_, i64>(0)?.cast_unsigned() ^ 1 << 63;
        if visit(hi, row.get_ref(1)?.as_blob()?).is_break() {
            break;
        }
    }
    Ok(())
}

/// The data.
struct People<'c> {
    connection: &'c Connection,
    hasher: Xxh3,
}

impl Dictionary for People<'_> {
    type Value = i64;
    type Error = rusqlite::Error;

    fn get(&mut self, name: &[u8]) -> Result<Option<i64>, rusqlite::Error> {
        let mut age = self.connection.prepare_cached("SELECT age FROM people WHERE name = ?")?;
        age.query_row([name], |row| row.get(0)).optional()
    }

    fn insert(&mut self, name: &[u8], age: i64) -> Result<Option<i64>, rusqlite::Error> {
        let (old, hash) = (self.get(name)?, column(self.hasher.digest(name).hi));
        let insert = "INSERT OR REPLACE INTO people (name, age, hash) VALUES (?, ?, ?)";
        self.connection.prepare_cached(insert)?.execute(params![name, age, hash])?;
        Ok(old)
    }

    fn remove(&mut self, name: &[u8]) -> Result<Option<i64>, rusqlite::Error> {
        let mut delete = self.connection.prepare_cached("DELETE FROM people WHERE name = ? RETURNING age")?;
        delete.query_row([name], |row| row.get(0)).optional()
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), rusqlite::Error> {
        in_range(self.connection, 0..=u64::MAX, &mut |_, name| visit(name))
    }
}

/// Gives an existing table its column, a thousand rows at a time, and the index when it is full.
fn add_column(connection: &Connection, hasher: &Xxh3) -> rusqlite::Result<()> {
    connection.execute_batch("ALTER TABLE people ADD COLUMN hash INTEGER")?;
    loop {
        let mut some = connection.prepare_cached("SELECT name FROM people WHERE hash IS NULL LIMIT 1000")?;
        let names: Vec<Vec<u8>> = some.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        if names.is_empty() {
            break;
        }
        let transaction = connection.unchecked_transaction()?;
        for name in names {
            let mut fill = connection.prepare_cached("UPDATE people SET hash = ? WHERE name = ?")?;
            fill.execute(params![column(hasher.digest(&name).hi), name])?;
        }
        transaction.commit()?;
    }
    // `SQLite` cannot make a column NOT NULL afterwards; a trigger, or a check where rows are written, does.
    connection.execute_batch("CREATE UNIQUE INDEX people_by_hash ON people (hash, name)")
}

fn main() -> Result<(), Box<dyn Error>> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch("CREATE TABLE people (name BLOB PRIMARY KEY, age INTEGER) WITHOUT ROWID")?;
    for number in 0..5_000 {
        connection.execute(
            "INSERT INTO people VALUES (?, ?)",
            params![format!("person {number}").as_bytes(), number % 90],
        )?;
    }

    // The table was there before the guard.
    let filter = TelescopingFilter::builder().capacity(10_000).seed(Seed::from(SEED)).growable().build()?;
    let hasher = filter.hasher().clone();
    add_column(&connection, &hasher)?;
    let index = StoreIndex(|hashes, visit: &mut Visit<'_>| in_range(&connection, hashes, visit));
    let mut people = Guard::over(filter, People { connection: &connection, hasher }, index)?;
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
    assert!(stats.false_positives < 1_000 && stats.failed_repairs == 0);

    let (filter, _, mut index) = people.into_parts();
    filter.verify_remote(&mut index)?;
    println!("{} keys, {:.2} bits each; filter and table agree", filter.len(), filter.stats().bits_per_key());
    Ok(())
}
