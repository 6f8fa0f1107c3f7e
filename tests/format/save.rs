//! Catches: a file that is neither the old one nor the new one, or that is left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use besom::format::{FormatError, Persist, ReadOptions, WriteOptions};
use besom::quotient::QuotientFilter;
use besom::testing::Random;
use besom::{Filter, Insert, Xxh3};

use super::times;

/// A directory that goes when this value does.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("besom-format-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The filter of one generation: it has the keys below `generation`, and its capacity tells it, too.
fn filter_of(generation: u64) -> QuotientFilter {
    let capacity = 100_000 + generation as usize % 2 * 50_000;
    let mut filter = QuotientFilter::builder().capacity(capacity).seed(generation).build().unwrap();
    for key in 0..generation {
        filter.insert(&key).unwrap();
    }
    filter
}

fn load(path: &Path) -> (QuotientFilter, u64) {
    let (filter, header) = QuotientFilter::<Xxh3>::load(path, &ReadOptions::new()).unwrap();
    (filter, header.generation)
}

/// Where the child of the test below writes.
const CHILD: &str = "BESOM_SAVE_FOR_EVER";

#[test]
fn a_save_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let scratch = Scratch::new();
    let path = scratch.path("filter");
    let mut random = Random::new(1);
    for round in 0..times(500) {
        filter_of(0).save(&path, &WriteOptions::new()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "format::save::saves_until_it_is_killed", "--nocapture"])
            .env(CHILD, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Not before it has begun: a child that saves nothing would show nothing.
        let begun = (0..20_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            load(&path).1 > 0
        });
        assert!(begun, "round {round}: the child saves nothing");
        std::thread::sleep(Duration::from_micros(random.below(30_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let (filter, generation) = load(&path);
        assert_eq!(filter.len() as u64, generation, "round {round}");
        assert!((0..generation).all(|key| filter.contains(&key)));
    }
}

/// Not a test but the child of the one above.
#[test]
fn saves_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    for generation in 1.. {
        filter_of(generation).save(&path, &WriteOptions::new().generation(generation)).unwrap();
    }
}

#[test]
fn saving_leaves_one_file_and_keeps_its_permissions() {
    let scratch = Scratch::new();
    let path = scratch.path("filter");
    filter_of(3).save(&path, &WriteOptions::new().generation(3)).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap().permissions();
    filter_of(4).save(&path, &WriteOptions::new().generation(4)).unwrap();
    assert_eq!(load(&path).1, 4);
    assert_eq!(fs::metadata(&path).unwrap().permissions(), before);
    assert_eq!(scratch.names(), ["filter"]);
}

#[cfg(unix)]
#[test]
fn saving_to_a_link_replaces_what_it_leads_to() {
    let scratch = Scratch::new();
    let (path, link) = (scratch.path("filter"), scratch.path("link"));
    filter_of(1).save(&path, &WriteOptions::new().generation(1)).unwrap();
    std::os::unix::fs::symlink("filter", &link).unwrap();
    filter_of(2).save(&link, &WriteOptions::new().generation(2)).unwrap();
    assert_eq!(load(&path).1, 2);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_save_that_fails_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let error = filter_of(1).save(scratch.path("no/such/directory"), &WriteOptions::new()).unwrap_err();
    assert!(matches!(error, FormatError::Io(_)), "{error}");
    // A directory cannot be replaced by a file.
    let taken = scratch.path("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("something"), "").unwrap();
    let error = filter_of(1).save(&taken, &WriteOptions::new()).unwrap_err();
    assert!(matches!(error, FormatError::Io(_)), "{error}");
    assert_eq!(scratch.names(), ["taken"]);
    assert!(filter_of(1).save("/", &WriteOptions::new()).is_err());
}
