//! Stores on fjall: against a model, under kills, and with faults of all kinds.

#[path = "../../../besom-store/tests/shared/play.rs"]
mod driver;
mod faults;
#[expect(dead_code, reason = "the guard's own tests stop it and count its reads")]
#[path = "../../../besom-store/tests/shared/faulty.rs"]
mod faulty;
#[path = "../../../besom-store/tests/shared/kill.rs"]
mod harness;
mod kill;
mod model;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use besom::{BuildError, Seed};
use besom_fjall::Fjall;
use besom_store::{Durability, Layout, Options, Store, StoreFilter, wait};

/// A directory that goes when it is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("fjall-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Opens the store in a folder, with a snapshot beside it.
fn open<F: StoreFilter>(
    folder: &Path,
    layout: Layout,
    make: impl Fn(usize, Seed) -> Result<F, BuildError> + Send + Sync + 'static,
) -> Store<F, Fjall> {
    let options = Options::new().layout(layout).snapshot_path(folder.with_extension("besom"));
    let options = options.durability(Durability::Buffered);
    wait(Store::open(Fjall::open(folder).unwrap(), make, options)).unwrap()
}
