//! Catches: a guard that forgets a key, counts wrongly, loses an answer that it had, or does not find its way back after an
//! operation that failed half-way. Faults of all kinds on all filters are in `tests/faults.rs`.

use std::cell::Cell;
use std::ops::ControlFlow;

use super::*;
use crate::testing::{CountingRemote, Fault, Faults, Faulty};
use crate::{Change, CuckooingFilter, ExtensionFilter, Filter, TelescopingFilter};

type FaultyGuard = Guard<ExtensionFilter, Faulty<MemoryDictionary<u64>>, Faulty<MemoryRemote>>;

/// A guard of the keys 0..100, at a rate of 1/8.
fn faulty_guard() -> FaultyGuard {
    let filter =
        ExtensionFilter::builder().capacity(200).false_positive_rate(0.125).seed(3_u64).build().unwrap();
    let dictionary = Faulty::new(MemoryDictionary::new(), Faults::none());
    let mut guard = Guard::with_remote(filter, dictionary, Faulty::new(MemoryRemote::new(), Faults::none()));
    for key in 0..100_u64 {
        assert_eq!(guard.insert(&key, key).unwrap(), None);
    }
    guard
}

/// Absent keys that the filter accepts.
fn false_positives<F: Adaptive, D: Dictionary, R: Remote>(guard: &Guard<F, D, R>) -> Vec<u64> {
    (1_000..3_000).filter(|key| guard.contains(key)).collect()
}

fn assert_agreement(guard: &mut FaultyGuard) {
    guard.filter().verify().unwrap();
    let (filter, remote) = (guard.filter.clone(), &mut guard.remote.inner);
    filter.verify_remote(remote).unwrap();
    assert_eq!(filter.len(), guard.dictionary.inner.len());
    assert_eq!(guard.stats().addresses_in_question, 0);
}

#[test]
fn a_dictionary_that_stores_and_times_out_keeps_its_key() {
    let mut guard = faulty_guard();
    guard.dictionary_mut().faults.light_fuse(0, Fault::FailAfter);
    assert!(matches!(guard.insert(&500_u64, 5), Err(GuardError::Dictionary(_))));
    assert_eq!(guard.get(&500_u64).unwrap(), Some(5));
    // One that does not store leaves a key behind in the filter, which a scan takes out.
    guard.dictionary_mut().faults.light_fuse(0, Fault::FailBefore);
    assert!(guard.insert(&501_u64, 5).is_err());
    assert_eq!(guard.get(&501_u64).unwrap(), None);
    assert_eq!((guard.stats().denied, guard.filter().len()), (1, 102));
    guard.restore().unwrap();
    assert_eq!((guard.stats().rebuilds, guard.filter().len()), (1, 101));
    assert_agreement(&mut guard);
}

#[test]
fn a_stale_read_does_not_take_a_key_out_of_the_filter() {
    let mut guard = faulty_guard();
    guard.dictionary_mut().faults.light_fuse(0, Fault::Missing);
    assert_eq!(guard.get(&7_u64).unwrap(), None);
    assert_eq!(guard.get(&7_u64).unwrap(), Some(7));
}

#[test]
fn an_answer_that_is_known_is_not_withheld() {
    let mut guard = faulty_guard();
    let stranger = false_positives(&guard)[0];
    guard.remote_mut().faults.light_fuse(0, Fault::FailBefore);
    assert_eq!(guard.get(&stranger).unwrap(), None);
    assert!(guard.contains(&stranger));
    assert_eq!(guard.stats().failed_repairs, 1);
    assert!(matches!(guard.take_fault(), Some(AdaptiveError::Remote(_))));
    assert_eq!(guard.take_fault(), None);

    guard.remote_mut().faults.light_fuse(0, Fault::FailBefore);
    assert_eq!(guard.remove(&7_u64).unwrap(), Some(7));
    assert_eq!(guard.stats().failed_removals, 1);
    // The filter has it still, until it is removed once more or everything is restored.
    assert!(guard.contains(&7_u64));
    assert_eq!(guard.remove(&7_u64).unwrap(), None);
    assert!(!guard.contains(&7_u64));
}

#[test]
fn a_group_that_was_made_and_reported_as_failed_is_settled_by_the_next_operation() {
    let mut guard = faulty_guard();
    guard.remote_mut().faults.light_fuse(0, Fault::FailAfter);
    assert!(matches!(guard.insert(&500_u64, 5), Err(GuardError::Filter(AdaptiveError::Remote(_)))));
    assert_eq!(guard.stats().addresses_in_question, 1);
    assert_eq!(guard.insert(&501_u64, 6).unwrap(), None);
    assert_eq!((guard.stats().addresses_in_question, guard.stats().resyncs), (0, 1));
    // The key of the failed insertion is in filter and remote, where it does no harm.
    assert_eq!(guard.insert(&500_u64, 5).unwrap(), None);
    guard.restore().unwrap();
    assert_agreement(&mut guard);
}

#[test]
fn a_removal_that_was_made_and_reported_as_failed_stays_in_question_until_a_scan() {
    let mut guard = faulty_guard();
    for (key, reads) in [(7_u64, 1), (8, 2)] {
        // The list is read (and before it the one in question), then changed.
        guard.remote_mut().faults.light_fuse(reads, Fault::FailAfter);
        assert_eq!(guard.remove(&key).unwrap(), Some(key));
        guard.remote_mut().faults.put_out();
        assert!(guard.contains(&key), "no list says that the key is gone from the dictionary");
        assert_eq!(guard.stats().addresses_in_question, key as usize - 6);
    }
    assert_eq!((guard.stats().slots_in_question, guard.stats().rebuilds), (1, 0));
    // Two slots of 100 are more than one in 64: the next operation scans.
    assert_eq!(guard.insert(&501_u64, 6).unwrap(), None);
    assert_eq!(guard.stats().rebuilds, 1);
    assert!((0..100).filter(|key| ![7, 8].contains(key)).all(|key: u64| guard.contains(&key)));
    assert_agreement(&mut guard);
}

#[test]
fn a_rebuilding_that_fails_half_way_is_made_again() {
    let mut guard = faulty_guard();
    for accesses in 0..6 {
        guard.dictionary_mut().faults.light_fuse(0, Fault::FailBefore);
        assert!(guard.insert(&(600 + accesses), 0).is_err());
        guard.dictionary_mut().faults.put_out();
        guard.remote_mut().faults.light_fuse(accesses, Fault::FailMiddle);
        let restored = guard.restore();
        guard.remote_mut().faults.put_out();
        assert!((0..100_u64).all(|key| guard.contains(&key)), "after {accesses} accesses: {restored:?}");
        guard.restore().unwrap();
        assert_agreement(&mut guard);
    }
}

#[test]
fn a_full_filter_makes_room_by_forgetting_keys_that_were_never_stored() {
    let filter = ExtensionFilter::builder().capacity(10).seed(3_u64).build().unwrap();
    let mut guard = Guard::new(filter, Faulty::new(MemoryDictionary::new(), Faults::none()));
    for key in 0..10_u64 {
        guard.dictionary_mut().faults.light_fuse(0, Fault::FailBefore);
        assert!(guard.insert(&key, key).is_err());
    }
    for key in 100..110_u64 {
        assert_eq!(guard.insert(&key, key).unwrap(), None);
    }
    assert!(matches!(guard.insert(&110_u64, 0), Err(GuardError::Filter(AdaptiveError::Full(_)))));
}

#[test]
fn a_false_positive_gets_through_once_and_everything_is_counted() {
    let filter =
        ExtensionFilter::builder().capacity(200).false_positive_rate(0.125).seed(3_u64).build().unwrap();
    let remote = CountingRemote::new(MemoryRemote::new());
    let mut guard = Guard::with_remote(filter, MemoryDictionary::new(), remote);
    for key in 0..100_u64 {
        guard.insert(&key, key).unwrap();
    }
    let writes = guard.stats().remote_writes;
    assert_eq!(writes, 100);
    let absent = false_positives(&guard).len() as u64;
    assert!(absent > 50, "{absent}");
    for _ in 0..3 {
        assert!((1_000..3_000_u64).all(|key| guard.get(&key).unwrap().is_none()));
    }
    let stats = guard.stats();
    // A repair may do away with a false positive that nobody has met yet.
    assert_eq!((stats.queries, stats.true_positives), (6_000, 0));
    assert!(stats.false_positives <= absent && false_positives(&guard).is_empty());
    assert_eq!(stats.negatives + stats.false_positives, 6_000);
    assert!((stats.false_positive_rate() - stats.false_positives as f64 / 6_000.0).abs() < 1e-9);
    // Groups are counted, not the changes in them; and nothing is read or written behind the counts.
    let accesses = guard.remote().accesses();
    assert_eq!((stats.remote_reads, stats.remote_writes), (accesses.reads, accesses.writes));
    let (filter, dictionary, remote) = guard.into_parts();
    assert_eq!((filter.len(), dictionary.len(), remote.inner.len()), (100, 100, 100));
}

#[test]
fn a_group_counts_as_one_write() {
    let filter = CuckooingFilter::builder().capacity(1_000).max_load(0.95).seed(3_u64).build().unwrap();
    let remote = CountingRemote::new(MemoryRemote::new());
    let mut guard = Guard::with_remote(filter, MemoryDictionary::new(), remote);
    (0..1_000_u64).for_each(|key| assert_eq!(guard.insert(&key, key).unwrap(), None));
    let accesses = guard.remote().accesses();
    assert!(accesses.changes > accesses.writes, "{accesses:?}: no key was moved");
    assert_eq!(guard.stats().remote_writes, accesses.writes);
}

/// A remote that counts what it is told of ahead.
#[derive(Default)]
struct Told {
    inner: MemoryRemote,
    prefetches: Cell<u64>,
}

impl Remote for Told {
    type Error = crate::MissingEntry;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        self.inner.read(address, visit)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        self.inner.apply(changes)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Self::Error> {
        self.inner.scan(visit)
    }

    fn prefetch(&self, _: u64) {
        self.prefetches.set(self.prefetches.get() + 1);
    }
}

#[test]
fn what_the_filter_announces_reaches_the_remote() {
    let filter = CuckooingFilter::builder().capacity(1_000).max_load(0.95).seed(3_u64).build().unwrap();
    let mut guard = Guard::with_remote(filter, MemoryDictionary::new(), Told::default());
    (0..1_000_u64).for_each(|key| assert_eq!(guard.insert(&key, key).unwrap(), None));
    assert!(guard.remote().prefetches.get() > 100);
}

/// The obvious remote on a sorted multimap.
#[derive(Default)]
struct Sorted(MemoryRemote);

impl Remote for Sorted {
    type Error = crate::MissingEntry;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        let mut keys = Vec::new();
        self.0.read(address, &mut |key| keys.push(key.to_vec()))?;
        keys.sort_unstable();
        keys.iter().for_each(|key| visit(key));
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Self::Error> {
        self.0.apply(changes)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), Self::Error> {
        self.0.scan(visit)
    }
}

#[test]
fn a_remote_that_sorts_its_lists_loses_no_key() {
    let filter = TelescopingFilter::builder().capacity(20_000).false_positive_rate(0.25).seed(3_u64);
    let mut guard = Guard::with_remote(filter.build().unwrap(), MemoryDictionary::new(), Sorted::default());
    for number in 0..20_000_u64 {
        // Inserted in an order that is not that of the keys.
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        guard.insert(&key, number).unwrap();
    }
    for stranger in 0..20_000_u64 {
        assert_eq!(
            guard.get(&stranger.rotate_left(17)).unwrap(),
            None.or(guard.dictionary.get(&stranger.rotate_left(17).to_le_bytes()).unwrap())
        );
    }
    let lost =
        (0..20_000_u64).filter(|number| !guard.contains(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15))).count();
    assert_eq!(lost, 0);
}
