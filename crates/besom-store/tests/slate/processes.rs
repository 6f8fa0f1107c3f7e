//! Catches: writes that are lost or half done when a process is killed, readers that reject what their view holds while a writer
//! in another process goes on or is killed, and readers that take more and more memory. The children are this test binary
//! again.
//!
//! With `BESOM_FULL`, 200 kills, and readers beside a writer for a minute or for as many seconds as `BESOM_SECONDS` says.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use besom::testing::Random;
use besom::{BuildError, Seed, TelescopingFilter};
use besom_store::slate::slatedb::object_store::ObjectStore;
use besom_store::slate::slatedb::object_store::local::LocalFileSystem;
use besom_store::slate::{SlateError, SlateFailure, SlateReader, SlateStore};
use besom_store::{Batch, Durability, Options, StoreError};

use super::bucket::{is_full, options, run};

type Store = SlateStore<TelescopingFilter>;
type Model = BTreeMap<u64, u64>;

/// Says to a child where it works.
const FOLDER: &str = "BESOM_SLATE_FOLDER";
/// And what is its own.
const SEED: &str = "BESOM_SLATE_SEED";

fn bucket(folder: &Path) -> Arc<dyn ObjectStore> {
    Arc::new(LocalFileSystem::new_with_prefix(folder.join("bucket")).unwrap())
}

fn make(keys: usize, seed: Seed) -> Result<TelescopingFilter, BuildError> {
    let filter = TelescopingFilter::builder().capacity(keys.max(20)).growable().false_positive_rate(0.05);
    filter.seed(seed).build()
}

async fn open(folder: &Path) -> Store {
    Store::open("db", bucket(folder), make, options()).await.unwrap()
}

/// Starts a test of this binary as a child.
fn child(test: &str, folder: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn role() -> Option<(PathBuf, u64)> {
    let folder = std::env::var_os(FOLDER)?;
    Some((folder.into(), std::env::var(SEED).ok()?.parse().ok()?))
}

/// A batch in one line: `key=value` or `key=-`.
fn draw_batch(random: &mut Random) -> Vec<(u64, Option<u64>)> {
    let value = |random: &mut Random| (!random.one_in(3)).then(|| random.next());
    (0..1 + random.below(4)).map(|_| (random.below(150), value(random))).collect()
}

fn apply(model: &mut Model, batch: &[(u64, Option<u64>)]) {
    for &(key, value) in batch {
        match value {
            Some(value) => model.insert(key, value),
            None => model.remove(&key),
        };
    }
}

async fn write(store: &Store, batch: &[(u64, Option<u64>)]) {
    if let &[(key, Some(value))] = batch {
        store.insert(&key.to_le_bytes(), &value.to_le_bytes()).await.unwrap();
    } else if let &[(key, None)] = batch {
        store.remove(&key.to_le_bytes()).await.unwrap();
    } else {
        let mut together = Batch::new();
        for (key, value) in batch {
            match value {
                Some(value) => together.insert(&key.to_le_bytes(), &value.to_le_bytes()),
                None => together.remove(&key.to_le_bytes()),
            };
        }
        store.write(&together).await.unwrap();
    }
}

fn to_line(batch: &[(u64, Option<u64>)]) -> String {
    let texts: Vec<String> = batch
        .iter()
        .map(|(key, value)| format!("{key}={}", value.map_or("-".into(), |value| value.to_string())))
        .collect();
    texts.join(" ") + "\n"
}

fn from_line(line: &str) -> Vec<(u64, Option<u64>)> {
    let pairs = line.split(' ').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(key, value)| (key.parse().unwrap(), value.parse().ok())).collect()
}

/// The writer that is killed. It writes down each batch before it begins, and a dot when it is acknowledged.
#[test]
#[ignore = "a child of the kill test"]
fn killed_writer() {
    let Some((folder, seed)) = role() else { return };
    run(async {
        let store = open(&folder).await;
        let mut log = OpenOptions::new().append(true).open(folder.join("log")).unwrap();
        let mut random = Random::new(seed);
        loop {
            let batch = draw_batch(&mut random);
            log.write_all(to_line(&batch).as_bytes()).unwrap();
            write(&store, &batch).await;
            log.write_all(b".\n").unwrap();
            for _ in 0..5 {
                let _ = store.get(&random.next().to_be_bytes()).await.unwrap();
            }
            if random.one_in(20) {
                store.publish().await.unwrap();
            }
        }
    });
}

/// What was acknowledged, and what is there if the batch that was under way is.
fn replay(log: &str, start: &Model) -> [Model; 2] {
    let (mut done, mut begun) = (start.clone(), Vec::new());
    for line in log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        match line {
            "." => apply(&mut done, &std::mem::take(&mut begun)),
            line => begun = from_line(line),
        }
    }
    let mut both = done.clone();
    apply(&mut both, &begun);
    [done, both]
}

/// How many batches were acknowledged.
fn acknowledged_in(log: &str) -> usize {
    log.lines().filter(|line| *line == ".").count()
}

/// Waits for something that takes its time on a busy machine, but happens.
fn wait_until(mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(120), "nothing happens any more");
        std::thread::sleep(Duration::from_millis(1));
    }
}

async fn stored(store: &Store) -> Model {
    let (mut rows, mut stored) = (store.iter().await.unwrap(), Model::new());
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    while let Some((key, value)) = rows.next().await.unwrap() {
        stored.insert(number(&key), number(&value));
    }
    stored
}

#[test]
fn a_writer_that_is_killed_at_any_moment_loses_nothing() {
    let kills = if is_full() { 200 } else { 30 };
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bucket")).unwrap();
    let readers = Readers::start(folder.path());
    let (mut random, mut model, mut acknowledged) = (Random::new(11), Model::new(), 0);
    for kill in 0..kills {
        File::create(folder.path().join("log")).unwrap();
        let mut writer = child("processes::killed_writer", folder.path(), kill);
        // Some are killed while they open, the others when they have written some batches, however long that takes here.
        if random.one_in(5) {
            std::thread::sleep(Duration::from_millis(random.below(150)));
        } else {
            let batches = random.below(12) as usize;
            wait_until(|| {
                acknowledged_in(&fs::read_to_string(folder.path().join("log")).unwrap()) >= batches
                    || writer.try_wait().unwrap().is_some()
            });
            std::thread::sleep(Duration::from_millis(random.below(20)));
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        let states = replay(&log, &model);
        acknowledged += acknowledged_in(&log);
        model = run(async {
            let store = open(folder.path()).await;
            let found = stored(&store).await;
            assert!(
                states.contains(&found),
                "kill {kill}: neither what was acknowledged nor the batch with it"
            );
            store.verify().await.unwrap();
            assert_eq!(store.metrics().keys, found.len() as u64);
            for (key, value) in &found {
                let got = store.get(&key.to_le_bytes()).await.unwrap();
                assert_eq!(got.as_deref(), Some(&value.to_le_bytes()[..]));
            }
            for key in (0..150).filter(|key| !found.contains_key(key)) {
                assert_eq!(store.get(&key.to_le_bytes()).await.unwrap(), None);
            }
            if random.one_in(2) {
                store.close().await.unwrap();
            }
            found
        });
    }
    assert!(acknowledged > kills as usize, "only {acknowledged} batches in {kills} lives");
    println!("{kills} kills, {acknowledged} batches acknowledged");
    wait_until(|| readers.have_seen());
    readers.stop();
}

/// Two readers in processes of their own.
struct Readers<'f> {
    folder: &'f Path,
    children: [Child; 2],
}

impl<'f> Readers<'f> {
    const SEEDS: [u64; 2] = [1, 2];

    fn start(folder: &'f Path) -> Self {
        Self { folder, children: Self::SEEDS.map(|seed| child("processes::reader_process", folder, seed)) }
    }

    /// Whether each has held keys of more than one view.
    fn have_seen(&self) -> bool {
        Self::SEEDS.iter().all(|&seed| seen(self.folder, seed).exists())
    }

    /// Neither has found anything wrong.
    fn stop(self) {
        fs::write(self.folder.join("stop"), "").unwrap();
        for (seed, mut reader) in Self::SEEDS.into_iter().zip(self.children) {
            assert!(reader.wait().unwrap().success());
            println!(
                "reader {seed}: {}",
                fs::read_to_string(self.folder.join(format!("reader {seed}"))).unwrap()
            );
        }
    }
}

/// The memory of this process that is in use, in megabytes.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .map_or(0, |kilobytes: u64| kilobytes >> 10)
}

/// A reader beside the writer. It ends when the folder has a file `stop`.
#[test]
#[ignore = "a child of the test of readers"]
fn reader_process() {
    let Some((folder, seed)) = role() else { return };
    run(async {
        let reader = loop {
            match SlateReader::<TelescopingFilter>::open("db", bucket(&folder), options()).await {
                Ok(reader) => break reader,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let (mut random, mut views, mut held) = (Random::new(seed), 0_u64, 0_u64);
        let (mut errors, mut memories, start) = (0_u64, Vec::new(), Instant::now());
        while !folder.join("stop").exists() {
            memories.push(memory());
            match reader.refresh().await {
                Ok(newer) => views += u64::from(newer),
                Err(error @ StoreError::Engine(SlateFailure::Foreign { .. })) => panic!("{error}"),
                // Cleared out while it was being opened.
                Err(_) => errors += 1,
            }
            match look_around(&reader, &mut random).await {
                Ok(keys) => held += keys,
                Err(_) => errors += 1,
            }
            if views > 0 && held > 0 {
                fs::write(seen(&folder, seed), "").unwrap();
            }
        }
        assert!(views > 0 && held > 0, "{views} views, {held} keys");
        let at = |tenths: usize| memories[(memories.len() - 1) * tenths / 10];
        let said = format!(
            "{views} views, {held} keys, stale {errors} times, {:.0?}; {:?} MB after 0 to 10 tenths of it",
            start.elapsed(),
            [0, 1, 2, 3, 5, 7, 10].map(at)
        );
        // Views are alike after a while, and so is what they take.
        assert!(start.elapsed().as_secs() < 60 || at(10) <= at(3) * 3 / 2 + 20, "{said}");
        fs::write(folder.join(format!("reader {seed}")), said).unwrap();
    });
}

/// The file that a reader writes once it has held keys of more than one view.
fn seen(folder: &Path, seed: u64) -> PathBuf {
    folder.join(format!("seen {seed}"))
}

/// Asks for all keys of a view and for others, which it repairs. How many keys it holds; an error if it was collected.
async fn look_around(
    reader: &SlateReader<TelescopingFilter>,
    random: &mut Random,
) -> Result<u64, SlateError> {
    let (mut rows, mut held) = (reader.iter().await?, Vec::new());
    while let Some((key, value)) = rows.next().await? {
        held.push((key, value));
    }
    for turn in 0..2 {
        for (key, value) in &held {
            assert!(reader.may_contain_key(key), "a key of the view is rejected in turn {turn}");
            assert_eq!(reader.get(key).await?.as_ref(), Some(value));
        }
        for _ in 0..200 {
            assert_eq!(reader.get(&random.next().to_be_bytes()).await?, None);
        }
    }
    // Batches are atomic: the pair is there in every view, and of one age.
    let of = |key: u64| held.iter().find(|pair| pair.0[..] == key.to_le_bytes()).map(|pair| pair.1.clone());
    assert_eq!(of(u64::MAX), of(u64::MAX - 1));
    Ok(held.len() as u64)
}

#[test]
fn readers_in_other_processes_reject_nothing_that_they_hold() {
    let seconds = std::env::var("BESOM_SECONDS").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(if is_full() { 60 } else { 4 }));
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bucket")).unwrap();
    let readers = Readers::start(folder.path());
    let operations = run(async {
        let buffered = options().store(Options::new().durability(Durability::Buffered));
        let store = Store::open("db", bucket(folder.path()), make, buffered).await.unwrap();
        let (mut random, mut operations, start) = (Random::new(12), 0_u64, Instant::now());
        let mut publishing = tokio::spawn(async {});
        while start.elapsed() < time || !readers.have_seen() {
            assert!(start.elapsed() < time + Duration::from_secs(120), "the readers see nothing");
            let mut batch = draw_batch(&mut random);
            batch.extend([u64::MAX, u64::MAX - 1].map(|key| (key, Some(operations))));
            write(&store, &batch).await;
            // New keys at first, then overwrites: churn.
            let key = (1000 + operations % 10_000).to_le_bytes();
            store.insert(&key, &key).await.unwrap();
            operations += 2;
            if publishing.is_finished() {
                // Beside the writes: what is published must be one state all the same.
                let store = store.clone();
                publishing = tokio::spawn(async move {
                    store.publish().await.unwrap();
                    tokio::time::sleep(Duration::from_millis(30)).await;
                });
            }
            // The readers want a processor too.
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        publishing.await.unwrap();
        operations
    });
    println!("{operations} operations");
    readers.stop();
}
