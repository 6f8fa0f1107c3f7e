//! besom in front of a table of `PostgreSQL`: a column, an index on it, and no other change to the database.
//!
//! ```text
//! cargo run -p besom-store --features postgres-example --example postgres
//! ```
//!
//! Starts a server of its own on loopback, from the packages of the system, and ends it. Where there is none it says so and
//! shows nothing.

use std::cell::RefCell;
use std::error::Error;
use std::net::TcpListener;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use besom::{
    Adaptive, Dictionary, Filter, Guard, KeyHasher, Seed, StoreIndex, TelescopingFilter, Visit, Xxh3,
};
use postgres::{Client, NoTls};

/// The seed of the column. It is part of the data: keep it with the table.
const SEED: u64 = 0x7465_6163_7570;

/// Keys are bytes, and so is their order. The index has everything that a repair reads.
const TABLE: &str = "CREATE TABLE people (name bytea PRIMARY KEY, age bigint NOT NULL, hash bigint NOT NULL);
    CREATE UNIQUE INDEX people_by_hash ON people (hash, name)";

/// The upper half of a key's hash as a `bigint`, which is signed.
fn column(hi: u64) -> i64 {
    (hi ^ 1 << 63).cast_signed()
}

/// Rows that are read at once.
const PAGE: i64 = 1_000;

/// The keys of a range of hashes, in order. Every statement is a transaction of its own here, with a fresh snapshot.
///
/// A page at a time: anyone who visits the keys may read other ranges over the same connection meanwhile, as a filter does that is
/// built from a scan.
fn in_range(
    client: &RefCell<Client>,
    hashes: RangeInclusive<u64>,
    visit: &mut Visit<'_>,
) -> Result<(), postgres::Error> {
    let select = "SELECT hash, name FROM people WHERE (hash, name) >= ($1, $2) AND hash <= $3
        ORDER BY hash, name LIMIT $4";
    let (mut hash, mut name, last) = (column(*hashes.start()), Vec::new(), column(*hashes.end()));
    loop {
        let rows = client.borrow_mut().query(select, &[&hash, &name, &last, &PAGE])?;
        for row in &rows {
            (hash, name) = (row.get(0), row.get(1));
            if visit(hash.cast_unsigned() ^ 1 << 63, &name).is_break() {
                return Ok(());
            }
        }
        if rows.len() < PAGE as usize {
            return Ok(());
        }
        // The key behind the last one.
        name.push(0);
    }
}

/// The data.
struct People<'c> {
    client: &'c RefCell<Client>,
    hasher: Xxh3,
}

impl Dictionary for People<'_> {
    type Value = i64;
    type Error = postgres::Error;

    fn get(&mut self, name: &[u8]) -> Result<Option<i64>, postgres::Error> {
        let row = self.client.borrow_mut().query_opt("SELECT age FROM people WHERE name = $1", &[&name])?;
        Ok(row.map(|row| row.get(0)))
    }

    fn insert(&mut self, name: &[u8], age: i64) -> Result<Option<i64>, postgres::Error> {
        let (old, hash) = (self.get(name)?, column(self.hasher.digest(name).hi));
        let insert = "INSERT INTO people VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE SET age = $2";
        self.client.borrow_mut().execute(insert, &[&name, &age, &hash])?;
        Ok(old)
    }

    fn remove(&mut self, name: &[u8]) -> Result<Option<i64>, postgres::Error> {
        let delete = "DELETE FROM people WHERE name = $1 RETURNING age";
        Ok(self.client.borrow_mut().query_opt(delete, &[&name])?.map(|row| row.get(0)))
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), postgres::Error> {
        in_range(self.client, 0..=u64::MAX, &mut |_, name| visit(name))
    }
}

/// A server in a folder of its own, which ends with this.
struct Server {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Where Debian puts the programs of a server, or the search path.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin").join(name)).collect();
    found.sort();
    found.into_iter().rfind(|path| path.exists()).unwrap_or_else(|| name.into())
}

/// A command that runs as somebody else than root, whom the server refuses.
fn command(name: &str, folder: &Path) -> std::io::Result<Command> {
    use std::os::unix::fs::{MetadataExt, chown};
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program(name));
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if std::fs::metadata("/proc/self").map_or(1, |process| process.uid()) == 0 {
        let nobody = 65_534;
        chown(folder, Some(nobody), Some(nobody))?;
        command.uid(nobody).gid(nobody);
    }
    Ok(command)
}

/// Starts a server; `None` if there is none on this machine.
fn start() -> Result<Option<Server>, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("besom-postgres-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let made = command("initdb", &folder)?
        .args(["-D", "data", "-U", "besom", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
        .status();
    if !made.is_ok_and(|status| status.success()) {
        std::fs::remove_dir_all(&folder)?;
        return Ok(None);
    }
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let process = command("postgres", &folder)?
        .args(["-D", "data", "-h", "127.0.0.1", "-p", &port.to_string(), "-c", "unix_socket_directories="])
        .spawn()?;
    Ok(Some(Server { process, folder, port }))
}

fn connect(server: &Server) -> Result<Client, Box<dyn Error>> {
    let parameters = format!("host=127.0.0.1 port={} user=besom dbname=postgres", server.port);
    for _ in 0..600 {
        if let Ok(client) = Client::connect(&parameters, NoTls) {
            return Ok(client);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err("the server does not answer".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(server) = start()? else {
        println!(
            "!! NOT SHOWN: there is no PostgreSQL server on this machine (Debian: apt-get install postgresql)"
        );
        return Ok(());
    };
    let client = RefCell::new(connect(&server)?);
    client.borrow_mut().batch_execute(TABLE)?;

    let filter = TelescopingFilter::builder().capacity(10_000).seed(Seed::from(SEED)).growable().build()?;
    let hasher = filter.hasher().clone();
    let mut data = People { client: &client, hasher: hasher.clone() };
    for number in 0..2_000 {
        data.insert(format!("person {number}").as_bytes(), number % 90)?;
    }
    // The rows were there before the guard.
    let index = StoreIndex(|hashes, visit: &mut Visit<'_>| in_range(&client, hashes, visit));
    let mut people = Guard::over(filter, data, index)?;
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
    println!("{} queries, {} of them reached PostgreSQL for nothing", stats.queries, stats.false_positives);
    assert!(stats.false_positives < 1_000 && stats.failed_repairs == 0);

    let (filter, _, mut index) = people.into_parts();
    filter.verify_remote(&mut index)?;
    println!("{} keys, {:.2} bits each; filter and table agree", filter.len(), filter.stats().bits_per_key());
    Ok(())
}
