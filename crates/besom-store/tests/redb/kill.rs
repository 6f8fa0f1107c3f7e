//! Kills of processes with a redb store: see `shared/kill.rs`.

use std::path::Path;

use besom::{ExtensionFilter, TelescopingFilter};
use besom_store::{Layout, RedbStore};

use crate::common::Directory;
use crate::harness::{Act, Place, kill_often, kill_while_made, kills, live};

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
