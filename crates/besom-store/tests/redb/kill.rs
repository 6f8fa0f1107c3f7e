//! Kills of processes with a redb store: see `shared/kill.rs`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use besom::testing::Random;
use besom::{ExtensionFilter, TelescopingFilter};
use besom_store::{Layout, RedbStore, StoreError};

use crate::common::{Directory, check};
use crate::harness::{Act, Place, kill_often, kill_while_made, kills, live};
use crate::transactions::{ROWS, make, with_table};

struct InFile;

impl Place for InFile {
    const CHILD: &'static str = "kill::child";

    fn with_store(kind: u64, path: &Path, act: &mut impl Act) {
        let builder = RedbStore::builder().layout(if kind == 1 { Layout::Hashed } else { Layout::Ordered });
        let (telescoping, extension) = (TelescopingFilter::builder(), ExtensionFilter::builder());
        match kind {
            0 => {
                let make = move |_, seed| telescoping.clone().capacity(4).seed(seed).growable().build();
                act.act(builder.open(path, make).unwrap().as_store());
            }
            _ => {
                let make = move |_, seed| extension.clone().capacity(4).seed(seed).growable().build();
                act.act(builder.open(path, make).unwrap().as_store());
            }
        }
    }
}

/// Not a test of its own: what the child process runs.
#[test]
fn child() {
    live::<InFile>();
}

#[test]
fn an_ordered_store_survives_kills() {
    kill_often::<InFile>(0, &Directory::new().file("store.redb"), kills(50));
}

#[test]
fn a_hashed_store_survives_kills() {
    kill_often::<InFile>(1, &Directory::new().file("store.redb"), kills(50));
}

#[test]
fn a_store_that_was_being_made_is_whole_or_not_there() {
    kill_while_made::<InFile>(&Directory::new().file(""), 24);
}

const ADOPTED: &str = "BESOM_ADOPTION_TEST_CHILD";

/// Not a test of its own: adopts a table, if it is not killed before the end.
#[test]
fn adopting_child() {
    let Ok(path) = std::env::var(ADOPTED) else { return };
    RedbStore::builder().adopt(path, ROWS, make).unwrap();
}

/// Anyone who adopts a table is killed again and again, and the next one goes on where it stopped.
#[test]
fn an_adoption_that_is_killed_goes_on() {
    let (mut random, mut killed, mut halves) = (Random::new(5), 0, 0);
    while killed < kills(12) {
        let directory = Directory::new();
        let path = directory.file("store");
        let model = with_table(&path, 15_000);
        // Later and later: in the end one lives long enough.
        let mut patience = Duration::from_millis(5);
        loop {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "kill::adopting_child", "--test-threads=1"])
                .env(ADOPTED, &path)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let (start, until) = (Instant::now(), patience * (50 + random.below(100) as u32) / 100);
            while start.elapsed() < until && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_micros(100));
            }
            // It may have ended.
            let _ = child.kill();
            if child.wait().unwrap().success() {
                break;
            }
            killed += 1;
            match RedbStore::open(&path, make) {
                // Not begun, or not ended.
                Err(StoreError::NotAStore { .. }) => {}
                Err(StoreError::HalfAdopted { .. }) => halves += 1,
                whole => {
                    check(&whole.unwrap(), &model);
                    break;
                }
            }
            patience = (patience * 13 / 10).min(Duration::from_secs(60));
        }
        check(&RedbStore::builder().adopt(&path, ROWS, make).unwrap(), &model);
    }
    println!("{killed} kills, {halves} of them half-way");
    assert!(halves > 0, "nobody was killed half-way in {killed} times");
}
