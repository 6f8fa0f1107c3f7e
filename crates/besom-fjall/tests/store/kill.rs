//! Kills of processes with a store on fjall.

use std::path::Path;

use besom::{ExtensionFilter, TelescopingFilter};
use besom_store::Layout;

use crate::harness::{Act, Place, kill_often, kill_while_made, kills, live};
use crate::{Directory, open};

struct InFolder;

impl Place for InFolder {
    const CHILD: &'static str = "kill::child";

    fn with_store(kind: u64, path: &Path, act: &mut impl Act) {
        let (telescoping, extension) = (TelescopingFilter::builder(), ExtensionFilter::builder());
        match kind {
            0 => {
                let make = move |_, seed| telescoping.clone().capacity(4).seed(seed).growable().build();
                act.act(&open(path, Layout::Ordered, make));
            }
            _ => {
                let make = move |_, seed| extension.clone().capacity(4).seed(seed).growable().build();
                act.act(&open(path, Layout::Hashed, make));
            }
        }
    }
}

/// Not a test of its own: what the child process runs.
#[test]
fn child() {
    live::<InFolder>();
}

#[test]
fn an_ordered_store_survives_kills() {
    let directory = Directory::new();
    kill_often::<InFolder>(0, &directory.0.join("store"), kills(10));
}

#[test]
fn a_hashed_store_survives_kills() {
    let directory = Directory::new();
    kill_often::<InFolder>(1, &directory.0.join("store"), kills(10));
}

#[test]
fn a_store_that_was_being_made_is_whole_or_not_there() {
    kill_while_made::<InFolder>(&Directory::new().0, 12);
}
