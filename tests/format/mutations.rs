//! Catches: a decoder that panics, loops, allocates by a length that it read, or lets an unsound filter through.
//!
//! Twenty thousand damaged files of every kind; with `BESOM_FULL` a million.

use std::time::Instant;

use besom::format::{Persist, ReadOptions, WriteOptions, check};
use besom::testing::Damage;

use super::memory::most;
use super::subjects::{State, Subject};
use super::times;
use crate::for_every_subject;

/// What reading may take beyond the size of the input: a chunk, and what is of constant size in every filter.
const CONSTANT: usize = 128 << 10;

/// What reading a stream of unknown length may take beyond three times its size.
const STREAM_CONSTANT: usize = CONSTANT + (1 << 20);

fn harmless<S: Subject>(files: u64) {
    let start = Instant::now();
    let mut states = S::states(60, 1);
    states.extend(S::states(150, 2));
    let written: Vec<Vec<u8>> =
        states.iter().map(|State { filter, .. }| filter.to_bytes(&WriteOptions::new()).unwrap()).collect();
    let (mut damage, mut read) = (Damage::new(files), 0);
    for number in 0..files as usize {
        let [file, other] = [number, number / 7].map(|index| &written[index % written.len()]);
        read += u64::from(survives::<S::Filter>(&damage.file(file, other)));
    }
    // Enough of them get past the checksums to say something of the checks behind them.
    assert!(read > files / 50 && read < files / 2, "{read} of {files} were sound");
    println!("{}: {files} files, {read} sound, {:.1} s", S::Filter::KIND, start.elapsed().as_secs_f64());
}

/// Reads damaged bytes in every way; whether they were a sound filter.
fn survives<F: Persist>(bytes: &[u8]) -> bool {
    let (read, memory) = most(|| F::from_bytes(bytes, &ReadOptions::new()));
    assert!(memory <= bytes.len() + CONSTANT, "{memory} bytes for {}", bytes.len());
    let (streamed, memory) = most(|| F::read_from(&mut &bytes[..], &ReadOptions::new()).is_ok());
    assert!(memory <= 3 * bytes.len() + STREAM_CONSTANT, "{memory} bytes for a stream of {}", bytes.len());
    let _ = check(&mut &bytes[..]);
    let Ok((filter, header)) = read else { return false };
    assert!(streamed, "the same bytes are refused as a stream");
    assert_eq!(filter.verify(), Ok(()));
    // Queries must end; what they answer depends on the damage.
    std::hint::black_box((0..1_000_u64).filter(|key| filter.contains(key)).count());
    assert_eq!(filter.stats().items as u64, header.len);
    // A sound filter has one file.
    let mut options = WriteOptions::new().generation(header.generation);
    options = options.include_seed(header.seed.is_some());
    let written = filter.to_bytes(&options).unwrap();
    let differs = written.iter().zip(bytes).position(|(one, two)| one != two);
    assert!(
        written == bytes,
        "another file than the one that was read, from byte {differs:?} on: {header:?}"
    );
    true
}

#[test]
fn damaged_files_do_no_harm() {
    for_every_subject!([Xxh3] harmless, times(1_000_000));
}

#[test]
fn lengths_at_the_limits_allocate_nothing() {
    // A header alone, whose payload is as long as can be said.
    let filter = besom::bloom::BloomFilter::with_capacity(10).unwrap();
    let bytes = filter.to_bytes(&WriteOptions::new()).unwrap();
    for shift in 6..64 {
        let mut header = bytes[..192].to_vec();
        header[128..136].copy_from_slice(&(1_u64 << shift).to_le_bytes());
        header[64..72].copy_from_slice(&(1_u64 << (shift - 3)).to_le_bytes());
        besom::testing::Damage::reseal(&mut header);
        assert!(!survives::<besom::bloom::BloomFilter>(&header));
    }
}
