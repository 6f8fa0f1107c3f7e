//! The rows of SlateDB: its bucket is a folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use besom_store::engine::Write;
use besom_store::slate::slatedb::config::Settings;
use besom_store::slate::slatedb::object_store::local::LocalFileSystem;
use besom_store::slate::slatedb::{Db, WriteBatch};
use besom_store::slate::{SlateOptions, SlateStore};
use besom_store::{Durability, Layout, Options, wait};

use crate::{Alone, Failure, Guarded, Plain, Subject, maker, measure, size};

/// Room for writes that are not in tables yet, and for tables before they are merged: the same for all rows.
fn settings() -> Settings {
    Settings { l0_max_ssts: 64, l0_max_ssts_per_key: 64, l0_sst_size_bytes: 16 << 20, ..Settings::default() }
}

fn bucket(path: &Path) -> Result<Arc<LocalFileSystem>, Failure> {
    std::fs::create_dir_all(path)?;
    Ok(Arc::new(LocalFileSystem::new_with_prefix(path)?))
}

impl Alone for Db {
    fn write(&self, rows: Vec<Write>, durability: Durability) -> Result<(), Failure> {
        let mut batch = WriteBatch::new();
        for Write { key, value, .. } in rows {
            match value {
                Some(value) => batch.put_bytes(key.into(), value.into()),
                None => batch.delete(key),
            }
        }
        let handle = wait(self.write(batch))?;
        if durability == Durability::Durable {
            wait(handle.await_durable())?;
        }
        Ok(())
    }

    fn has(&self, row: &[u8]) -> Result<bool, Failure> {
        Ok(wait(self.get(row))?.is_some())
    }
}

/// All rows of SlateDB.
pub(crate) fn rows(folder: &Path, keys: u64, value: &[u8]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _within = runtime.enter();
    let (mut bits, mut sizes) = (0, String::new());
    for layout in [Layout::Hashed, Layout::Ordered] {
        let path = folder.join(format!("slatedb {layout:?}"));
        let options = || SlateOptions::new().settings(settings()).store(Options::new().layout(layout));
        let open = || -> Result<_, Failure> {
            Ok(wait(SlateStore::open("db", bucket(&path)?, maker(keys), options()))?)
        };
        let mut guarded = Guarded(open()?);
        measure(&format!("slatedb {layout:?}"), &mut guarded, keys, value)?;
        bits = guarded.filter_bits();
        wait(guarded.0.flush())?;
        // No snapshot: anyone who opens it builds the filter.
        drop(guarded);
        let start = Instant::now();
        let store = open()?;
        let (built, opening) = (start.elapsed().as_secs_f64() * 1e3, format!("{:?}", store.opening()));
        wait(store.close())?;
        let start = Instant::now();
        let store = open()?;
        let loaded = start.elapsed().as_secs_f64() * 1e3;
        sizes += &format!(
            "  slatedb {layout:?}: {:.1} MB, opened in {built:.0} ms ({opening}), after closing in {loaded:.0} ms ({:?})\n",
            size(&path)? as f64 / 1e6,
            store.opening(),
        );
        wait(store.close())?;
    }
    for bloom in [true, false] {
        let path = folder.join(format!("slatedb {bloom}"));
        let title = if bloom { "+ fastbloom" } else { "alone" };
        let db = wait(Db::builder("db", bucket(&path)?).with_settings(settings()).build())?;
        let mut plain = Plain::new(db, bloom.then_some(bits), keys);
        measure(&format!("slatedb {title}"), &mut plain, keys, value)?;
        Subject::write(&mut plain, &[(0, Some(value))], Durability::Durable)?;
        wait(plain.engine.close())?;
        sizes += &format!("  slatedb {title}: {:.1} MB\n", size(&path)? as f64 / 1e6);
    }
    print!("{sizes}");
    Ok(())
}
