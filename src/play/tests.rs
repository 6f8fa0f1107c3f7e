//! Catches: an operation that does something else in steps than at once, evidence that is taken for more than it is, a
//! group that is made twice or forgotten.

use super::*;
use crate::testing::Random;
use crate::{Adaptive, CuckooingFilter, ExtensionFilter, Filter, MemoryRemote, TelescopingFilter};

/// Plays an operation to its end on a remote.
fn to_the_end<F, O: Operation<F>>(
    play: &mut Play,
    filter: &mut F,
    operation: &O,
    remote: &mut MemoryRemote,
) -> Result<O::Output, AdaptiveError<Infallible>> {
    loop {
        match play.step(filter, operation)? {
            Step::Done(output) => return Ok(output),
            Step::Beyond => panic!("another group"),
            Step::Needs(range) => assert!(play.evidence().read(range, usize::MAX, remote).unwrap()),
            Step::Commit => {
                remote.apply(&play.group()).unwrap();
                play.committed();
            }
        }
    }
}

fn same_as_at_once<F: Adaptive + Clone>(make: impl Fn() -> F) {
    let (mut alone, mut played) = (make(), make());
    let (mut remote, mut shared) = (MemoryRemote::new(), MemoryRemote::new());
    let (mut taking, mut random) = (Play::taking(), Random::new(1));
    for step in 0..3_000 {
        let key = random.below(150).to_le_bytes();
        let mut play = Play::new();
        // With changes that are made first, and with changes that are made afterwards.
        let play = if random.one_in(2) { &mut play } else { &mut taking };
        play.clear();
        match random.below(6) {
            0..3 => {
                let one = alone.insert(&key, &mut remote).ok();
                assert_eq!(to_the_end(play, &mut played, &Insert(&key), &mut shared).ok(), one, "{step}");
            }
            3 => {
                let one = alone.remove(&key, &mut remote).unwrap();
                assert_eq!(to_the_end(play, &mut played, &Remove(&key), &mut shared).unwrap(), one);
            }
            _ => {
                let one = alone.adapt(&key, &mut remote).unwrap();
                assert_eq!(to_the_end(play, &mut played, &Adapt(&key), &mut shared).unwrap(), one);
            }
        }
        if play.mode == Mode::Taking {
            shared.apply(&play.group()).unwrap();
        }
        assert!((0..300_u64).all(|key| alone.contains(&key) == played.contains(&key)), "{step}");
        assert_eq!(remote.iter().collect::<Vec<_>>(), shared.iter().collect::<Vec<_>>(), "{step}");
    }
    played.verify_remote(&mut shared).unwrap();
}

#[test]
fn steps_do_what_is_done_at_once() {
    same_as_at_once(|| {
        let builder = TelescopingFilter::builder().capacity(20).false_positive_rate(0.1);
        builder.seed(1_u64).growable().build().unwrap()
    });
    same_as_at_once(|| {
        let builder = ExtensionFilter::builder().capacity(100).false_positive_rate(0.1);
        builder.seed(1_u64).build().unwrap()
    });
}

#[test]
fn evidence_is_no_more_than_what_was_read() {
    let mut evidence = Evidence::default();
    let (mut random, mut known) = (Random::new(2), [false; 64]);
    for _ in 0..200 {
        let (one, two) = (random.below(64), random.below(64));
        let range = one.min(two)..=one.max(two).min(one.min(two) + 3);
        evidence.know(range.clone());
        range.for_each(|address| known[address as usize] = true);
        for first in 0..64_u64 {
            for last in first..64 {
                let expected = known[first as usize..=last as usize].iter().all(|&known| known);
                assert_eq!(evidence.knows(&(first..=last)), expected, "{first} to {last}");
            }
        }
    }
    evidence.know(0..=u64::MAX);
    assert!(evidence.knows(&(0..=u64::MAX)));
    evidence.clear();
    assert!(!evidence.knows(&(7..=7)));
    let mut remote = MemoryRemote::new();
    remote.apply(&[7, 8, 9].map(|address| Change::Insert { address, key: b"key" })).unwrap();
    assert!(!evidence.read(7..=9, 2, &mut remote).unwrap() && !evidence.knows(&(7..=7)));
    assert!(evidence.read(7..=9, 3, &mut remote).unwrap() && evidence.knows(&(7..=9)));
}

#[test]
fn a_filter_that_changed_since_the_commit_is_noticed() {
    let make = || TelescopingFilter::builder().capacity(50).seed(1_u64).build().unwrap();
    let (mut filter, mut play) = (make(), Play::new());
    assert_eq!(play.step(&mut filter, &Insert(b"one")).unwrap(), Step::Commit);
    play.committed();
    assert_eq!(play.step(&mut filter, &Insert(b"two")).unwrap(), Step::Beyond, "another group was made");
    assert!(!filter.contains(&b"two"[..]));
    assert_eq!(play.step(&mut filter, &Insert(b"one")).unwrap(), Step::Done(true));
    assert!(filter.contains(&b"one"[..]));
}

/// A rehash makes many groups, reads between them, and has moved the keys before it is done: not a step of it may be
/// played.
#[test]
fn what_takes_many_groups_is_left_to_the_remote_itself() {
    let builder = CuckooingFilter::builder().shape(2, 1).capacity(40).slot_bits(3);
    let (mut filter, mut remote) = (builder.seed(3_u64).build().unwrap(), MemoryRemote::new());
    let (mut random, mut beyond) = (Random::new(5), 0);
    for step in 0..4_000 {
        let key = random.below(80).to_le_bytes();
        let mut play = if random.one_in(2) { Play::new() } else { Play::taking() };
        let inserts = random.one_in(2) && filter.len() < 36;
        if !inserts && random.one_in(4) {
            filter.remove(&key, &mut remote).unwrap();
            continue;
        }
        loop {
            let played = match inserts {
                true => play.step(&mut filter, &Insert(&key)).map(|step| discard(&step)),
                false => play.step(&mut filter, &Adapt(&key)).map(|step| discard(&step)),
            };
            match played.unwrap() {
                Step::Done(()) => break,
                Step::Needs(range) => assert!(play.evidence().read(range, usize::MAX, &mut remote).unwrap()),
                Step::Commit => {
                    remote.apply(&play.group()).unwrap();
                    play.committed();
                }
                Step::Beyond => {
                    beyond += 1;
                    filter.verify_remote(&mut remote).unwrap();
                    match inserts {
                        true => drop(filter.insert(&key, &mut remote).unwrap()),
                        false => drop(filter.adapt(&key, &mut remote).unwrap()),
                    }
                    break;
                }
            }
        }
        if play.mode == Mode::Taking {
            remote.apply(&play.group()).unwrap();
        }
        filter.verify_remote(&mut remote).unwrap_or_else(|error| panic!("step {step}: {error}"));
    }
    assert!(beyond > 3, "{beyond} rehashes");
}

fn discard<T>(step: &Step<T>) -> Step<()> {
    match step {
        Step::Needs(range) => Step::Needs(range.clone()),
        Step::Commit => Step::Commit,
        Step::Beyond => Step::Beyond,
        Step::Done(_) => Step::Done(()),
    }
}
