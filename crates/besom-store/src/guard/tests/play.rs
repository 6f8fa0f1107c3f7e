//! The games of `tests/shared/play.rs` on a database in memory; and who waits for whom.

use besom::cascade::AdaptiveBloomFilter;
use besom::cuckoo::CuckooingFilter;
use besom::{BroomFilter, ExtensionFilter, Seed, TelescopingFilter};

use super::driver::{self, Make, Play, key};
use super::faulty::Stop;
use crate::{Layout, MemoryEngine, StoreFilter, wait};

fn run<F: StoreFilter>(layout: Layout, make: Make<F>) {
    driver::run(|_| MemoryEngine::new(), layout, make, (24, 20));
}

/// While a writer waits for the database nobody else does: keys are found and rejected, and repairs wait for its end.
#[test]
fn readers_do_not_wait_for_a_commit() {
    let make =
        |_, _: Seed| TelescopingFilter::builder().capacity(60).false_positive_rate(0.2).seed(3_u64).build();
    for layout in [Layout::Hashed, Layout::Ordered] {
        let play = Play::new(MemoryEngine::new(), layout, 1, make);
        let guarded = &play.guarded;
        (0..50).for_each(|number| drop(wait(guarded.insert(&key(number), b"")).unwrap()));
        std::thread::scope(|scope| {
            let (arrived, go) = play.dice.stop(Stop::Commit);
            let writer = scope.spawn(|| wait(guarded.insert(b"new", b"")).unwrap());
            arrived.recv().unwrap();
            (0..50).for_each(|number| assert!(wait(guarded.get(&key(number))).unwrap().is_some()));
            (100..600).for_each(|number| assert!(wait(guarded.get(&key(number))).unwrap().is_none()));
            let metrics = guarded.metrics();
            // Only those in the home of the new key wait.
            assert!(metrics.adaptations > 5 && metrics.waiting_adaptations < 10, "{metrics:?}");
            assert_eq!(metrics.adaptations + metrics.waiting_adaptations, metrics.false_positives);
            assert!(guarded.may_contain_key(b"new"), "it may be there");
            go.send(()).unwrap();
            writer.join().unwrap();
        });
        wait(guarded.repair_waiting(1000));
        let metrics = guarded.metrics();
        assert!(metrics.adaptations > 5 && metrics.waiting_adaptations == 0, "{metrics:?}");
        (100..600).for_each(|number| assert!(wait(guarded.get(&key(number))).unwrap().is_none()));
        assert!(wait(guarded.get(b"new")).unwrap().is_some());
    }
}

#[test]
fn telescoping_in_both_layouts() {
    let make = |_, seed: Seed| {
        TelescopingFilter::builder().capacity(4).false_positive_rate(0.2).seed(seed).growable().build()
    };
    run(Layout::Ordered, make);
    run(Layout::Hashed, make);
}

#[test]
fn extension_merged() {
    run(Layout::Hashed, |_, seed| {
        ExtensionFilter::builder().capacity(4).seed(seed).false_positive_rate(0.2).growable().build()
    });
}

/// Filters that choose the addresses of their keys, in an index of their own; and cascades.
#[test]
fn others_in_both_layouts() {
    for layout in [Layout::Hashed, Layout::Ordered] {
        run(layout, |_, seed: Seed| {
            CuckooingFilter::builder().capacity(80).false_positive_rate(0.2).seed(seed).build()
        });
        run(layout, |_, seed: Seed| {
            AdaptiveBloomFilter::builder().capacity(80).false_positive_rate(0.2).seed(seed).build()
        });
        run(layout, |_, seed: Seed| {
            BroomFilter::builder().capacity(80).false_positive_rate(0.2).seed(seed).build()
        });
    }
}
