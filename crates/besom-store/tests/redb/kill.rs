//! Catches: anything that a crash breaks. A child process writes to a store, queries it, grows it and takes snapshots, and is killed
//! at random moments. After each kill every acknowledged key is there and every removed one is not, a write that was under way is
//! there as a whole or not at all, and filter, index and data agree.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Directory, Model, check};
use besom::testing::Random;
use besom::{ExtensionFilter, TelescopingFilter};
use besom_store::{Batch, Durability, Layout, Opening, RedbStore, StoreFilter};

const CHILD: &str = "BESOM_KILL_TEST_CHILD";
const KEYS: u64 = 300;

/// A write of the child's: keys with their new values, and whether it lasts once it is acknowledged.
#[derive(Debug, Clone, Default)]
struct Op {
    changes: Vec<(u64, Option<u64>)>,
    durable: bool,
}

impl Op {
    fn random(random: &mut Random) -> Self {
        let count = if random.one_in(8) { random.below(20) } else { 1 };
        let change =
            |random: &mut Random| (random.below(KEYS), (random.below(5) > 1).then(|| random.below(1 << 20)));
        Self { changes: (0..count).map(|_| change(random)).collect(), durable: random.one_in(3) }
    }

    /// As a line of the journal.
    fn line(&self) -> String {
        let changes = self.changes.iter().map(|(key, value)| match value {
            Some(value) => format!(" {key}={value}"),
            None => format!(" {key}"),
        });
        format!("? {}{}\n", u8::from(self.durable), changes.collect::<String>())
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("? ")?.split(' ');
        let durable = words.next()? == "1";
        let change = |word: &str| match word.split_once('=') {
            Some((key, value)) => Some((key.parse().ok()?, Some(value.parse().ok()?))),
            None => Some((word.parse().ok()?, None)),
        };
        Some(Self { changes: words.map(change).collect::<Option<_>>()?, durable })
    }

    fn apply(&self, model: &mut Model) {
        for &(number, value) in &self.changes {
            match value {
                Some(value) => drop(model.insert(key(number), bytes(value))),
                None => drop(model.remove(&key(number))),
            }
        }
    }

    fn write<F: StoreFilter>(&self, store: &RedbStore<F>) {
        let durability = if self.durable { Durability::Durable } else { Durability::Buffered };
        match self.changes[..] {
            [(number, Some(value))] => {
                drop(store.insert_with(&key(number), &bytes(value), durability).unwrap());
            }
            [(number, None)] => drop(store.remove_with(&key(number), durability).unwrap()),
            _ => {
                let mut batch = Batch::new();
                for &(number, value) in &self.changes {
                    match value {
                        Some(value) => batch.insert(&key(number), &bytes(value)),
                        None => batch.remove(&key(number)),
                    };
                }
                store.write_with(&batch, durability).unwrap();
            }
        }
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key number {number}").into_bytes()
}

fn bytes(value: u64) -> Vec<u8> {
    value.to_le_bytes().repeat(1 + value as usize % 7)
}

/// Opens the store of one of the kinds that are tested, and does something with it.
trait Act {
    fn act<F: StoreFilter>(&mut self, store: RedbStore<F>);
}

const KINDS: u64 = 2;

fn with_store(kind: u64, path: &Path, act: &mut impl Act) {
    let builder = RedbStore::builder().layout(if kind == 1 { Layout::Hashed } else { Layout::Ordered });
    match kind {
        0 => act.act(
            builder
                .open(path, |_, seed| TelescopingFilter::builder().capacity(4).seed(seed).growable().build())
                .unwrap(),
        ),
        _ => act.act(
            builder
                .open(path, |_, seed| ExtensionFilter::builder().capacity(4).seed(seed).growable().build())
                .unwrap(),
        ),
    }
}

/// The life of a child, until it is killed.
struct Life {
    journal: File,
    random: Random,
}

impl Act for Life {
    fn act<F: StoreFilter>(&mut self, store: RedbStore<F>) {
        let mut model: Model = store.iter().unwrap().map(Result::unwrap).collect();
        loop {
            if self.random.one_in(40) {
                store.snapshot().unwrap();
            }
            for _ in 0..self.random.below(4) {
                let key = key(self.random.below(2 * KEYS));
                assert_eq!(store.get(&key).unwrap().as_ref(), model.get(&key));
            }
            let op = Op::random(&mut self.random);
            self.journal.write_all(op.line().as_bytes()).unwrap();
            op.write(&store);
            self.journal.write_all(b"!\n").unwrap();
            op.apply(&mut model);
        }
    }
}

/// Not a test of its own: what the child process runs.
#[test]
fn child() {
    let Ok(arguments) = std::env::var(CHILD) else { return };
    let mut arguments = arguments.splitn(3, ' ');
    let (kind, seed) =
        (arguments.next().unwrap().parse().unwrap(), arguments.next().unwrap().parse().unwrap());
    let path = Path::new(arguments.next().unwrap());
    let journal = OpenOptions::new().append(true).create(true).open(path.with_extension("journal")).unwrap();
    with_store(kind, path, &mut Life { journal, random: Random::new(seed) });
}

/// A child that opens the store at this path and lives with it.
fn spawn(kind: u64, seed: u64, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{kind} {seed} {}", path.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets a child live for a while. What it wrote down, one line for each thing that it did.
fn live_and_die(kind: u64, seed: u64, path: &Path, random: &mut Random) -> Vec<String> {
    let journal = path.with_extension("journal");
    let _ = std::fs::remove_file(&journal);
    let mut child = spawn(kind, seed, path);
    // Some die while they open the store; the others when they have made some steps, however long that takes here.
    if !random.one_in(6) {
        let steps = random.below(60) as usize;
        let made =
            || std::fs::read(&journal).map_or(0, |text| text.iter().filter(|&&byte| byte == b'\n').count());
        while made() < steps && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    std::thread::sleep(Duration::from_micros(random.below(2_000)));
    assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
    self::journal(&journal)
}

/// The lines of a journal.
fn journal(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // A line that the child did not finish is one of a write that it did not begin.
    text.split_inclusive('\n').filter_map(|line| Some(line.strip_suffix('\n')?.to_owned())).collect()
}

/// The look at what a child has left behind.
struct Inquest<'i> {
    /// What may be there: the last that is certain, and everything since.
    possible: Vec<Model>,
    found: Option<Model>,
    openings: &'i mut [u32; 4],
}

impl Act for Inquest<'_> {
    fn act<F: StoreFilter>(&mut self, store: RedbStore<F>) {
        self.openings[match store.opening() {
            Opening::Empty => 0,
            Opening::Snapshot => 1,
            Opening::CaughtUp { .. } => 2,
            _ => 3,
        }] += 1;
        let found: Model = store.iter().unwrap().map(Result::unwrap).collect();
        assert!(
            self.possible.contains(&found),
            "{} keys, in none of {} states",
            found.len(),
            self.possible.len()
        );
        check(&store, &found);
        for number in 0..KEYS {
            let key = key(number);
            assert_eq!(store.get(&key).unwrap().as_ref(), found.get(&key), "{number}");
        }
        self.found = Some(found);
    }
}

/// All states that may be there after what was written down.
fn possible(mut model: Model, lines: &[String]) -> Vec<Model> {
    let mut possible = vec![model.clone()];
    for (number, line) in lines.iter().enumerate() {
        let Some(op) = Op::parse(line) else { continue };
        op.apply(&mut model);
        if op.durable && lines.get(number + 1).is_some_and(|line| line == "!") {
            possible.clear();
        }
        possible.push(model.clone());
    }
    possible
}

fn kill_often(kind: u64, kills: u64) {
    let directory = Directory::new();
    let path = directory.file("store.redb");
    let (mut random, mut model, mut openings) = (Random::new(kind), Model::new(), [0; 4]);
    let mut writes = 0;
    for round in 0..kills {
        let lines = live_and_die(kind, kind << 32 | round, &path, &mut random);
        writes += lines.len() / 2;
        let mut inquest = Inquest { possible: possible(model, &lines), found: None, openings: &mut openings };
        with_store(kind, &path, &mut inquest);
        model = inquest.found.unwrap();
    }
    let [empty, snapshot, caught_up, built] = openings;
    println!(
        "{kills} kills, {writes} writes: {empty} empty, {snapshot} from snapshots, {caught_up} caught up, {built} built"
    );
    assert!(writes > kills as usize / 2);
    assert!(snapshot + caught_up > kills as u32 / 4 && caught_up > 0, "snapshots are of no use");
}

/// 102 kills, or with `BESOM_FULL` 1,002.
fn kills() -> u64 {
    let all = if std::env::var_os("BESOM_FULL").is_some() { 1002 } else { 102 };
    all / KINDS
}

#[test]
fn an_ordered_store_survives_kills() {
    kill_often(0, kills());
}

#[test]
fn a_hashed_store_survives_kills() {
    kill_often(1, kills());
}

/// A child that dies as soon as there is a file, or a little later.
#[test]
fn a_store_that_was_being_made_is_whole_or_not_there() {
    let directory = Directory::new();
    let mut random = Random::new(77);
    for round in 0..24 {
        let folder = directory.file(&round.to_string());
        std::fs::create_dir(&folder).unwrap();
        let mut child = spawn(0, round, &folder.join("store.redb"));
        while std::fs::read_dir(&folder).unwrap().next().is_none() && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        if round % 3 > 0 {
            std::thread::sleep(Duration::from_micros(random.below(1_000)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut inquest = Inquest { possible: Vec::new(), found: None, openings: &mut [0; 4] };
        inquest.possible = possible(Model::new(), &journal(&folder.join("store.journal")));
        with_store(0, &folder.join("store.redb"), &mut inquest);
    }
}
