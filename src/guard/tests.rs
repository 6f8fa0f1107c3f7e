//! Catches: a guard that forgets a key, counts wrongly, loses an answer that it had, or does not find its way back
//! after an operation that failed half-way. Faults of all kinds on all filters are in `tests/faults.rs`.

use super::*;
use crate::testing::{CountingRemote, Fault, Faults, Faulty};
use crate::{CuckooingFilter, ExtensionFilter, Filter};

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
    assert_eq!(guard.stats().in_question, 0);
}

#[test]
fn a_dictionary_that_stores_and_times_out_keeps_its_key() {
    let mut guard = faulty_guard();
    guard.dictionary_mut().faults.light_fuse(0, Fault::FailAfter);
    assert!(matches!(guard.insert(&500_u64, 5), Err(GuardError::Dictionary(_))));
    assert_eq!(guard.get(&500_u64).unwrap(), Some(5));
    // One that does not store leaves a key behind in the filter, until a scan of the dictionary shows that it is not
    // there.
    guard.dictionary_mut().faults.light_fuse(0, Fault::FailBefore);
    assert!(guard.insert(&501_u64, 5).is_err());
    assert!(guard.contains(&501_u64) && guard.get(&501_u64).unwrap().is_none());
    assert_eq!(guard.filter().len(), 102);
    guard.restore().unwrap();
    assert_eq!((guard.stats().rebuilds, guard.filter().len()), (1, 101));
    assert_agreement(&mut guard);
}

/// A key that was to be removed may never have been in the filter: nothing is taken out for it.
#[test]
fn a_removal_that_failed_takes_no_other_key_with_it() {
    let mut guard = faulty_guard();
    for stranger in false_positives(&guard) {
        guard.dictionary_mut().faults.light_fuse(0, Fault::FailBefore);
        assert!(guard.remove(&stranger).is_err());
        guard.restore().unwrap();
        assert!((0..100_u64).all(|key| guard.contains(&key)), "after {stranger}");
    }
    assert_agreement(&mut guard);
}

/// What a repair reads must be what the filter knows of.
#[test]
fn no_repair_is_made_while_a_group_is_in_doubt() {
    let mut guard = faulty_guard();
    let stranger = false_positives(&guard)[0];
    guard.remote_mut().faults.light_fuse(0, Fault::FailAfter);
    assert!(guard.insert(&500_u64, 5).is_err());
    // It cannot be taken back when the repair wants to.
    guard.remote_mut().faults.light_fuse(0, Fault::FailBefore);
    assert_eq!(guard.get(&stranger).unwrap(), None);
    assert_eq!((guard.stats().failed_repairs, guard.contains(&stranger)), (1, true));
    assert_eq!(guard.get(&stranger).unwrap(), None);
    assert!(!guard.contains(&stranger));
    assert_agreement(&mut guard);
}

/// A group that fails while another one is in doubt does not make it forgotten.
#[test]
fn groups_in_doubt_are_all_taken_back() {
    let mut guard = faulty_guard();
    for key in 500..510_u64 {
        // The way back of the one before fails as well, before or after acting.
        let fault = [Fault::FailBefore, Fault::FailAfter][key as usize % 2];
        guard.remote_mut().faults = Faults::random(key, 1, &[fault]);
        assert!(matches!(guard.insert(&key, 5), Err(GuardError::Filter(AdaptiveError::Remote(_)))));
        assert_eq!(guard.remove(&(key - 500)).unwrap(), Some(key - 500));
    }
    guard.remote_mut().faults = Faults::none();
    assert!(guard.stats().in_question > 1);
    guard.restore().unwrap();
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
    guard.remote_mut().faults.put_out();
    assert_eq!(guard.stats().failed_removals, 1);
    // The filter has it still, until it is removed once more or everything is restored.
    assert!(guard.contains(&7_u64));
    assert_eq!(guard.remove(&7_u64).unwrap(), None);
    assert!(!guard.contains(&7_u64));
}

#[test]
fn a_group_that_was_made_and_reported_as_failed_is_taken_back_by_the_next_operation() {
    for fault in [Fault::FailBefore, Fault::FailMiddle, Fault::FailAfter] {
        let mut guard = faulty_guard();
        guard.remote_mut().faults.light_fuse(0, fault);
        assert!(matches!(guard.insert(&500_u64, 5), Err(GuardError::Filter(AdaptiveError::Remote(_)))));
        assert_eq!(guard.stats().in_question, 1);
        assert_eq!(guard.insert(&501_u64, 6).unwrap(), None);
        assert_eq!((guard.stats().in_question, guard.stats().resyncs), (0, 1));
        assert_agreement(&mut guard);
        assert_eq!(guard.insert(&500_u64, 5).unwrap(), None);
        guard.restore().unwrap();
        assert_eq!(guard.stats().rebuilds, 0);
        assert_agreement(&mut guard);
    }
}

#[test]
fn a_removal_that_was_made_and_reported_as_failed_is_taken_back_until_a_scan() {
    let mut guard = faulty_guard();
    guard.remote_mut().faults.light_fuse(0, Fault::FailAfter);
    assert_eq!(guard.remove(&7_u64).unwrap(), Some(7));
    guard.remote_mut().faults.put_out();
    assert!(guard.contains(&7_u64), "the filter has not followed");
    assert_eq!((guard.stats().failed_removals, guard.stats().in_question), (1, 1));
    assert_eq!(guard.insert(&501_u64, 6).unwrap(), None);
    assert_eq!((guard.stats().in_question, guard.stats().rebuilds), (0, 0));
    guard.restore().unwrap();
    assert_eq!((guard.stats().rebuilds, guard.contains(&7_u64)), (1, false));
    assert_agreement(&mut guard);
}

#[test]
fn a_rebuilding_that_fails_half_way_is_made_again() {
    let mut guard = faulty_guard();
    for accesses in 0..6 {
        // A stale read makes the guard suspect a key.
        guard.dictionary_mut().faults.light_fuse(0, Fault::Missing);
        assert_eq!(guard.get(&accesses).unwrap(), None);
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
    let faults = Faults::random(1, 1, &[Fault::FailBefore]);
    let mut guard = Guard::new(filter, Faulty::new(MemoryDictionary::new(), faults));
    (0..10_u64).for_each(|key| assert!(guard.insert(&key, key).is_err()));
    assert_eq!(guard.filter().len(), 10);
    guard.dictionary_mut().faults.set_one_in(0);
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
