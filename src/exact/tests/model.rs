//! Catches: an accepted key that is rejected, a rejected one that is accepted, at every size and ratio.

use std::collections::BTreeSet;

use crate::bits::Isa;
use crate::exact::ribbon::machine::Version;
use crate::exact::{ExactList, ExactListError, List, Lists};
use crate::testing::Random;
use crate::{Filter, SipHash};

/// All answers are right, one by one and many at once, by every machine.
fn check(list: &ExactList, yes: &[u64], no: &[u64]) {
    list.verify().unwrap();
    let mut answers = Vec::new();
    for isa in Isa::available() {
        let mut list = list.clone();
        list.tables.version = Version::of(isa);
        for (keys, expected) in [(yes, true), (no, false)] {
            let wrong = keys.iter().find(|key| list.contains(*key) != expected);
            assert_eq!(wrong, None, "{isa}: {} yes, {} no", yes.len(), no.len());
            list.contains_many(keys, &mut answers);
            assert_eq!(answers.len(), keys.len());
            assert!(answers.iter().all(|&answer| answer == expected), "{isa}: many at once");
        }
        let strangers: Vec<u64> = (0..300).map(|key| key << 40 | 1 << 39).collect();
        list.contains_many(&strangers, &mut answers);
        assert!(strangers.iter().zip(&answers).all(|(key, &answer)| list.contains(key) == answer));
    }
}

/// Two lists of these lengths without a common key.
fn lists(yes: usize, no: usize, random: &mut Random) -> (Vec<u64>, Vec<u64>) {
    ((0..yes).map(|_| random.next() | 1).collect(), (0..no).map(|_| random.next() & !1).collect())
}

#[test]
fn every_size_and_ratio_is_exact() {
    let mut random = Random::new(26);
    let small = (0..40).flat_map(|yes| [0, 1, 2, 3, 17, 100].map(|no| (yes, no)));
    let edges = [
        (63, 64),
        (128, 128),
        (1000, 1),
        (1, 1000),
        (1, 20_000),
        (20_000, 1),
        (1499, 0),
        (1500, 0),
        (1501, 0),
        (1502, 3000),
        (2000, 2000),
        (2001, 2000),
        (3000, 30_000),
        (30_000, 3000),
        (5000, 100),
        (150, 70_000),
        (200_000, 210_000),
    ];
    for (yes, no) in small.chain(edges) {
        let (yes, no) = lists(yes, no, &mut random);
        let list = ExactList::builder().seed(random.next()).build(&yes, &no).unwrap();
        check(&list, &yes, &no);
        assert_eq!((list.len(), list.rejected()), (yes.len(), no.len() as u64));
    }
}

#[test]
fn rates_are_kept_with_and_without_a_list_to_reject() {
    let mut random = Random::new(27);
    for no in [0, 10, 20_000] {
        for rate in [0.5, 0.4, 0.3, 0.25, 0.1, 0.01, 1.0 / 256.0, 0.003, 1e-4, 1e-9] {
            for yes in [1, 100, 3000] {
                let (yes, no) = lists(yes, no, &mut random);
                let list =
                    ExactList::builder().seed(random.next()).unknown_rate(rate).build(&yes, &no).unwrap();
                check(&list, &yes, &no);
                let sample = 100_000;
                let accepted = (0..sample).filter(|_| list.contains(&(random.next() >> 1))).count() as f64;
                // Six standard deviations, and some more for tables of few unknowns.
                let most = f64::from(sample) * rate;
                let slack = if yes.len() < 1000 { 1.5 } else { 1.0 };
                assert!(
                    accepted <= slack * most + 6.0 * most.sqrt() + 1.0,
                    "{accepted} at {rate}, {} keys",
                    yes.len()
                );
                assert!(list.unknown_rate() <= rate * 1.000_001);
            }
        }
    }
}

#[test]
fn one_seed_gives_one_list_whatever_the_order_and_the_repetitions() {
    let mut random = Random::new(28);
    let (yes, no) = lists(30_000, 100_000, &mut random);
    let list = ExactList::builder().seed(5_u64).build(&yes, &no).unwrap();
    let turned: Vec<u64> = yes.iter().rev().chain(&yes[..100]).copied().collect();
    let again = ExactList::builder().seed(5_u64).build(&turned, no.iter().rev()).unwrap();
    assert!(list == again);
    assert_eq!(again.len(), yes.len());
    assert!(list != ExactList::builder().seed(6_u64).build(&yes, &no).unwrap());
}

#[test]
fn a_key_in_both_lists_is_named() {
    let mut random = Random::new(29);
    for (yes, no) in [(1, 1), (10, 300), (300, 10), (3000, 3000), (2, 50_000)] {
        let (yes, mut no) = lists(yes, no, &mut random);
        let common = yes[random.below(yes.len() as u64) as usize];
        no.insert(random.below(no.len() as u64) as usize, common);
        let error = ExactList::builder().build(&yes, &no).unwrap_err();
        assert_eq!(error, ExactListError::InBoth { key: common.to_le_bytes().to_vec() });
    }
    assert!(ExactList::builder().build(["a", "b"], ["c", "b"]).unwrap_err().to_string().contains("\"b\""));
}

#[test]
fn keys_of_any_type_and_another_hash_function() {
    let (yes, no) = (["alpha", "beta", ""], [b"gamma".to_vec(), vec![0; 1000]]);
    let list = ExactList::builder().hasher::<SipHash>().build(yes, &no).unwrap();
    assert!(yes.iter().all(|key| list.contains(*key)) && no.iter().all(|key| !list.contains(key)));
}

/// Lists that fail, or are not the same the second time.
struct Unsteady {
    fail_at: usize,
    reads: usize,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("made to fail")]
struct Failed;

impl Lists for Unsteady {
    type Error = Failed;

    fn visit(&mut self, list: List, mut visit: impl FnMut(&[u8])) -> Result<(), Failed> {
        self.reads += 1;
        if self.reads == self.fail_at {
            return Err(Failed);
        }
        // Other keys every time; the first ten are in both lists.
        let last = if list == List::Yes { 0 } else { 5 * self.reads as u8 };
        (0..100_u8).for_each(|key| visit(&[key.wrapping_mul(self.reads as u8), last]));
        Ok(())
    }
}

#[test]
fn lists_that_fail_or_change_are_errors() {
    for fail_at in 1..=4 {
        let error = ExactList::builder().build_from(&mut Unsteady { fail_at, reads: 0 }).unwrap_err();
        assert_eq!(error, ExactListError::Lists(Failed), "{fail_at}");
    }
}

#[test]
fn dense_keys_and_bumped_keys_are_exact_over_many_seeds() {
    // Small enough that the last layer is full and a salt fails now and then.
    let seeds = if std::env::var_os("BESOM_FULL").is_some() { 3000 } else { 60 };
    for seed in 0..seeds {
        let (yes, no): (BTreeSet<u64>, BTreeSet<u64>) =
            ((0..500).collect(), (500..500 + 20 * seed % 4000).collect());
        let list = ExactList::builder().seed(seed).build(&yes, &no).unwrap();
        assert!(
            yes.iter().all(|key| list.contains(key)) && no.iter().all(|key| !list.contains(key)),
            "{seed}"
        );
    }
}
