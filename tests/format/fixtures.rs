//! Catches: any change of the format. Files of version 2 are read for ever, and filters give the same bytes for ever.
//!
//! A fixture is never written again. For a new kind, `cargo test --test all -- --ignored write_missing_fixtures`.

use std::fs;
use std::path::PathBuf;

use besom::bloom::BlockedBloomFilter;
use besom::format::{Persist, ReadOptions, WriteOptions};
use besom::{Filter, KeyHasher, SipHash, Xxh3};

use super::subjects::{Bins, BroomOnBins, ExtensionOnBins, State, Subject};
use crate::for_every_subject;

fn path_of<S: Subject>() -> PathBuf {
    let hash = if <S::Filter as besom::Filter>::Hasher::KIND == Xxh3::KIND { "" } else { "-siphash" };
    let name = format!("{}{hash}.besom", S::NAME.unwrap_or(S::Filter::KIND.name()));
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v2").join(name)
}

/// The filter of a fixture, and its bytes.
fn fixture<S: Subject>() -> (State<S::Filter>, Vec<u8>) {
    let state = S::states(100, 7).pop().unwrap();
    let bytes = state.filter.to_bytes(&WriteOptions::new().generation(0x0102_0304)).unwrap();
    (state, bytes)
}

fn agrees<S: Subject>() {
    let (State { filter, keys }, bytes) = fixture::<S>();
    let path = path_of::<S>();
    let kept = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(kept == bytes, "{} is not what the filter is written as now", path.display());
    let (read, header) = S::Filter::load(&path, &ReadOptions::new()).unwrap();
    assert_eq!((header.version, header.generation), (2, 0x0102_0304));
    super::round_trip::answers_agree(&filter, &read, &keys, 1_000);
}

#[test]
fn files_of_version_2_are_read_and_written_for_ever() {
    for_every_subject!(agrees);
}

/// What was written before keys had their bits in half lines.
fn blocked_bloom_of_lines<H: KeyHasher>(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v2").join(name);
    let (filter, header) = BlockedBloomFilter::<H>::load(&path, &ReadOptions::new()).unwrap();
    filter.verify().unwrap();
    assert!(filter.len() == 100 && (0..100_u64).all(|key| filter.contains(&key)));
    let strangers = (1_000..21_000_u64).filter(|key| filter.contains(key)).count();
    assert!(strangers < 300, "{strangers} of 20000 at a rate of 1/100");
    let options = WriteOptions::new().generation(header.generation);
    assert!(
        filter.to_bytes(&options).unwrap() == fs::read(&path).unwrap(),
        "{name} is written otherwise now"
    );
}

#[test]
fn blocked_bloom_filters_of_whole_lines_are_read_for_ever() {
    blocked_bloom_of_lines::<Xxh3>("blocked-bloom.besom");
    blocked_bloom_of_lines::<SipHash>("blocked-bloom-siphash.besom");
}

/// What was written when all classes of bins were powers of two.
fn bins_of_old<S: Subject>(name: &str) {
    let hash = if <S::Filter as besom::Filter>::Hasher::KIND == Xxh3::KIND { "" } else { "-siphash" };
    let path = path_of::<S>().with_file_name(format!("{name}{hash}.besom"));
    let (filter, header) = S::Filter::load(&path, &ReadOptions::new()).unwrap();
    filter.verify().unwrap();
    let states = S::states(100, 7).into_iter();
    let keys = states.map(|state| state.keys).rfind(|keys| keys.len() == filter.len()).unwrap();
    assert!(keys.iter().all(|key| filter.contains(key)), "{name}");
    let options = WriteOptions::new().generation(header.generation);
    assert!(
        filter.to_bytes(&options).unwrap() == fs::read(&path).unwrap(),
        "{name} is written otherwise now"
    );
}

#[test]
fn bins_with_powers_of_two_of_classes_are_read_for_ever() {
    bins_of_old::<Bins<Xxh3>>("bins");
    bins_of_old::<Bins<SipHash>>("bins");
    bins_of_old::<ExtensionOnBins<Xxh3>>("extension-bins");
    bins_of_old::<ExtensionOnBins<SipHash>>("extension-bins");
    bins_of_old::<BroomOnBins<Xxh3>>("broom-bins");
    bins_of_old::<BroomOnBins<SipHash>>("broom-bins");
}

fn write_if_missing<S: Subject>() {
    if !path_of::<S>().exists() {
        fs::write(path_of::<S>(), fixture::<S>().1).unwrap();
    }
}

#[test]
#[ignore = "writes to the source tree"]
fn write_missing_fixtures() {
    for_every_subject!(write_if_missing);
}

#[test]
fn every_byte_of_a_header_is_where_it_is() {
    let mut filter = besom::bloom::BloomFilter::builder()
        .capacity(5)
        .false_positive_rate(0.25)
        .seed(7_u64)
        .build()
        .unwrap();
    besom::Insert::insert(&mut filter, "key").unwrap();
    let bytes = filter.to_bytes(&WriteOptions::new().generation(0x0908_0706_0504_0302)).unwrap();
    let lines: Vec<String> =
        bytes.chunks(16).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    let expected = [
        // magic, version 2, kind 32, hash function 1, flags: the seed is there
        "4245534f4d0d0a1a0200200001000100",
        // seed 7
        "07000000000000000000000000000000",
        // hash check, generation
        "19eaf3d521bb25260203040506070809",
        // 1 key, capacity 5
        "01000000000000000500000000000000",
        // parameters: 1 word, 2 probes
        "01000000000000000200000000000000",
        "00000000000000000000000000000000",
        "00000000000000000000000000000000",
        "00000000000000000000000000000000",
        // payload length, checksum of the list of checksums
        "40000000000000005df1f59cf1658526",
        "00000000000000000000000000000000",
        "00000000000000000000000000000000",
        // checksum of the header
        "0000000000000000891290f2bd2fe7ef",
        // the checksum of the one chunk, and zeros to the next line
        "41ff433b818da61a0000000000000000",
        "00000000000000000000000000000000",
        "00000000000000000000000000000000",
        "00000000000000000000000000000000",
        // payload: the word, and zeros to the next line
        "00000000001020000000000000000000",
        "00000000000000000000000000000000",
        "00000000000000000000000000000000",
        "00000000000000000000000000000000",
    ];
    assert_eq!(lines, expected);
}
