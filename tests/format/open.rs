//! Catches: a filter that copies what it is opened on, writes to it, or outlives it.

use std::fs::File;
use std::sync::Arc;

use besom::Filter;
use besom::format::{FormatError, Persist, ReadOptions, Region, WriteOptions};

use super::memory::most;
use super::round_trip::answers_agree;
use super::save::Scratch;
use super::subjects::{State, Subject};
use crate::for_every_subject;

fn answers_in_place<S: Subject>() {
    for State { filter, keys } in S::states(20_000, 5) {
        let bytes = filter.to_bytes(&WriteOptions::new()).unwrap();
        let region = Region::copy_of(&bytes).unwrap();
        let (opened, memory) = most(|| S::Filter::open(&region, &ReadOptions::new()).unwrap().0);
        // Words are looked at where they are; what is rare, and not kept in words, is copied.
        let rare = filter.stats().adapted_slots;
        assert!(memory < (1 << 13) + 64 * rare, "{memory} bytes for opening {}, {rare} copied", bytes.len());
        drop(region.clone());
        assert_eq!(opened.verify(), Ok(()));
        answers_agree(&filter, &opened, &keys, 2_000);
        let mut answers = Vec::new();
        opened.contains_many(&keys, &mut answers);
        assert!(answers.iter().all(|&answer| answer));
        assert_eq!(opened.to_bytes(&WriteOptions::new()).unwrap(), bytes);
        // Changes are the filter's own.
        let (mut changed, mut model) = (opened.clone(), filter.clone());
        S::change(&mut changed);
        S::change(&mut model);
        assert_eq!(changed.verify(), Ok(()));
        assert!(
            changed.to_bytes(&WriteOptions::new()).unwrap() == model.to_bytes(&WriteOptions::new()).unwrap()
        );
        assert_eq!(&region[..], bytes);
        // The region lives as long as it is looked at.
        drop(region);
        answers_agree(&filter, &opened, &keys, 100);
    }
}

#[test]
fn opened_filters_answer_in_place_and_copy_when_changed() {
    for_every_subject!([Xxh3] answers_in_place);
}

fn answers_from_anywhere<S: Subject>() {
    let State { filter, keys } = S::states(300, 5).pop().unwrap();
    let bytes = filter.to_bytes(&WriteOptions::new()).unwrap();
    // Off its line, in every way.
    for before in [1, 7, 8, 63] {
        let shifted: Vec<u8> = vec![0; before].into_iter().chain(bytes.iter().copied()).collect();
        let shifted: &'static [u8] = shifted.leak();
        let (opened, _) = S::Filter::open(&shifted[before..].into(), &ReadOptions::new()).unwrap();
        answers_agree(&filter, &opened, &keys, 500);
    }
    let shared: Arc<[u8]> = bytes.clone().into();
    let (opened, _) = S::Filter::open(&shared.into(), &ReadOptions::new()).unwrap();
    answers_agree(&filter, &opened, &keys, 500);
    for len in 0..bytes.len() {
        let region = Region::copy_of(&bytes[..len]).unwrap();
        assert!(S::Filter::open(&region, &ReadOptions::new()).is_err());
    }
    let longer: Vec<u8> = bytes.iter().copied().chain([0; 64]).collect();
    let error =
        S::Filter::open(&Region::copy_of(&longer).unwrap(), &ReadOptions::new()).map(drop).unwrap_err();
    assert!(matches!(error, FormatError::TrailingBytes { .. }));
}

#[test]
fn opened_filters_answer_wherever_their_bytes_are() {
    for_every_subject!([Xxh3] answers_from_anywhere);
}

fn answers_from_a_map<S: Subject>() {
    let scratch = Scratch::new();
    let path = scratch.path("mapped");
    let State { filter, keys } = S::states(5_000, 5).pop().unwrap();
    filter.save(&path, &WriteOptions::new()).unwrap();
    // SAFETY: nobody else knows this file, and saving replaces it instead of changing it.
    let region = unsafe { Region::map(&File::open(&path).unwrap()) }.unwrap();
    let (mut opened, _) = S::Filter::open(&region, &ReadOptions::new()).unwrap();
    answers_agree(&filter, &opened, &keys, 500);
    // The map keeps the old file when the name goes to a new one.
    let old = opened.clone();
    S::change(&mut opened);
    opened.save(&path, &WriteOptions::new()).unwrap();
    answers_agree(&filter, &old, &keys, 500);
    let (loaded, _) = S::Filter::load(&path, &ReadOptions::new()).unwrap();
    answers_agree(&opened, &loaded, &[], 500);
}

#[test]
fn mapped_filters_answer_from_the_file_that_was_there() {
    for_every_subject!([Xxh3] answers_from_a_map);
}
