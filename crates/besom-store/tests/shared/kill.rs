//! Catches: anything that a crash breaks, on any engine. A child process writes to a store, queries it, grows it and takes snapshots, and is killed
//! at random moments. After each kill every acknowledged key is there and every removed one is not, a write that was under way is
//! there as a whole or not at all, and filter, index and data agree.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use besom::testing::Random;
use besom_store::engine::Engine;
use besom_store::{Batch, Durability, Opening, Store, StoreFilter, wait};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

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

    fn write<F: StoreFilter, E: Engine>(&self, store: &Store<F, E>) {
        let durability = if self.durable { Durability::Durable } else { Durability::Buffered };
        match self.changes[..] {
            [(number, Some(value))] => {
                drop(wait(store.insert_with(&key(number), &bytes(value), durability)).unwrap());
            }
            [(number, None)] => drop(wait(store.remove_with(&key(number), durability)).unwrap()),
            _ => {
                let mut batch = Batch::new();
                for &(number, value) in &self.changes {
                    match value {
                        Some(value) => batch.insert(&key(number), &bytes(value)),
                        None => batch.remove(&key(number)),
                    };
                }
                wait(store.write_with(&batch, durability)).unwrap();
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

/// What is done with a store.
pub(crate) trait Act {
    fn act<F: StoreFilter, E: Engine>(&mut self, store: &Store<F, E>);
}

/// Where stores are.
pub(crate) trait Place {
    /// The name of the test that the child process runs, which calls [`live`].
    const CHILD: &'static str;

    /// Opens the store of one of the kinds that are tested, and does something with it.
    fn with_store(kind: u64, path: &Path, act: &mut impl Act);
}

fn entries<F: StoreFilter, E: Engine>(store: &Store<F, E>) -> Model {
    let mut model = Model::new();
    wait(store.for_each(&mut |key, value| {
        model.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    }))
    .unwrap();
    model
}

fn get<F: StoreFilter, E: Engine>(store: &Store<F, E>, key: &[u8]) -> Option<Vec<u8>> {
    wait(store.get(key)).unwrap().map(|value| value.as_ref().to_vec())
}

/// The life of a child, until it is killed.
struct Life {
    journal: File,
    random: Random,
}

impl Act for Life {
    fn act<F: StoreFilter, E: Engine>(&mut self, store: &Store<F, E>) {
        let mut model = entries(store);
        loop {
            if self.random.one_in(40) {
                wait(store.snapshot()).unwrap();
            }
            for _ in 0..self.random.below(4) {
                let key = key(self.random.below(2 * KEYS));
                assert_eq!(get(store, &key).as_ref(), model.get(&key));
            }
            let op = Op::random(&mut self.random);
            self.journal.write_all(op.line().as_bytes()).unwrap();
            op.write(store);
            self.journal.write_all(b"!\n").unwrap();
            op.apply(&mut model);
        }
    }
}

/// What the child process runs.
pub(crate) fn live<P: Place>() {
    let Ok(arguments) = std::env::var(CHILD) else { return };
    let mut arguments = arguments.splitn(3, ' ');
    let (kind, seed) =
        (arguments.next().unwrap().parse().unwrap(), arguments.next().unwrap().parse().unwrap());
    let path = Path::new(arguments.next().unwrap());
    let journal = OpenOptions::new().append(true).create(true).open(path.with_extension("journal")).unwrap();
    P::with_store(kind, path, &mut Life { journal, random: Random::new(seed) });
}

/// A child that opens the store at this path and lives with it.
fn spawn<P: Place>(kind: u64, seed: u64, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", P::CHILD, "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{kind} {seed} {}", path.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets a child live for a while. What it wrote down, one line for each thing that it did.
fn live_and_die<P: Place>(kind: u64, seed: u64, path: &Path, random: &mut Random) -> Vec<String> {
    let journal = path.with_extension("journal");
    let _ = std::fs::remove_file(&journal);
    let mut child = spawn::<P>(kind, seed, path);
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
#[derive(Default)]
struct Inquest {
    /// What may be there: the last that is certain, and everything since.
    possible: Vec<Model>,
    found: Model,
    openings: [u32; 4],
}

impl Act for Inquest {
    fn act<F: StoreFilter, E: Engine>(&mut self, store: &Store<F, E>) {
        self.openings[match store.opening() {
            Opening::Empty => 0,
            Opening::Snapshot => 1,
            Opening::CaughtUp { .. } => 2,
            _ => 3,
        }] += 1;
        let found = entries(store);
        assert!(
            self.possible.contains(&found),
            "{} keys, in none of {} states",
            found.len(),
            self.possible.len()
        );
        wait(store.verify()).unwrap();
        assert_eq!(wait(store.len()).unwrap(), found.len() as u64);
        for number in 0..KEYS {
            let key = key(number);
            assert_eq!(get(store, &key).as_ref(), found.get(&key), "{number}");
        }
        self.found = found;
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

/// Kills this many children that live with a store at this path.
pub(crate) fn kill_often<P: Place>(kind: u64, path: &Path, kills: u64) {
    let (mut random, mut inquest, mut writes) = (Random::new(kind), Inquest::default(), 0);
    for round in 0..kills {
        let lines = live_and_die::<P>(kind, kind << 32 | round, path, &mut random);
        writes += lines.len() / 2;
        inquest.possible = possible(inquest.found.clone(), &lines);
        P::with_store(kind, path, &mut inquest);
    }
    let [empty, snapshot, caught_up, built] = inquest.openings;
    println!(
        "{kills} kills, {writes} writes: {empty} empty, {snapshot} from snapshots, {caught_up} caught up, {built} built"
    );
    assert!(writes > kills as usize / 2);
    assert!(snapshot + caught_up > kills as u32 / 4 && caught_up > 0, "snapshots are of no use");
}

/// Kills children as soon as there is a file, or a little later.
pub(crate) fn kill_while_made<P: Place>(directory: &Path, rounds: u64) {
    let mut random = Random::new(77);
    for round in 0..rounds {
        let folder = directory.join(round.to_string());
        std::fs::create_dir(&folder).unwrap();
        let mut child = spawn::<P>(0, round, &folder.join("store"));
        while std::fs::read_dir(&folder).unwrap().next().is_none() && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        if round % 3 > 0 {
            std::thread::sleep(Duration::from_micros(random.below(1_000)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let possible = possible(Model::new(), &journal(&folder.join("store.journal")));
        P::with_store(0, &folder.join("store"), &mut Inquest { possible, ..Inquest::default() });
    }
}

/// This many kills, or with `BESOM_FULL` ten times as many.
pub(crate) fn kills(few: u64) -> u64 {
    if std::env::var_os("BESOM_FULL").is_some() { 10 * few } else { few }
}
