//! Fuzzing of the readers of traces, which take files from anywhere. Catches: one that panics, or never comes to an
//! end.

use std::fs;
use std::path::{Path, PathBuf};

use besom::testing::{Random, fuzz};
use besom_lab::workload::{Format, open, open_as};

/// A packet: IPv4, UDP.
fn packet() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0, 53, 4, 0, 0, 12, 0, 0, 1, 2, 3, 4]);
    packet
}

/// A capture of raw packets, in the old format.
fn pcap() -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 101, 0, 0, 0];
    for _ in 0..4 {
        file.extend([0; 8]);
        file.extend([(packet().len() as u32).to_le_bytes(); 2].concat());
        file.extend(packet());
    }
    file
}

/// The same in the new one.
fn pcapng() -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let len = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes(), &len, body, &len].concat()
    };
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    let mut file = block(0x0a0d_0d0a, &section);
    file.extend(block(1, &[101, 0, 0, 0, 0, 0, 1, 0]));
    for _ in 0..4 {
        let len = (packet().len() as u32).to_le_bytes();
        file.extend(block(6, &[&[0; 12][..], &len, &len, &packet()].concat()));
    }
    file
}

/// A frame of zstd with one block that is stored as it is.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend((bytes.len() as u32).to_le_bytes());
    frame.extend(&((bytes.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    frame.extend(bytes);
    frame
}

fn corpus() -> Vec<Vec<u8>> {
    let plain =
        [pcap(), pcapng(), b"one\ntwo\r\n\nthree".to_vec(), b"64 2 0 0\n7 1 0 1\n".to_vec(), Vec::new()];
    plain.iter().cloned().chain(plain.iter().map(|file| packed(file))).collect()
}

fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() as u64 + 1) as usize;
    match random.below(6) {
        0 => bytes.truncate(at),
        1 => drop(bytes.splice(at..at, (0..random.below(40)).map(|_| random.next() as u8))),
        2 => drop(bytes.drain(at..(at + random.below(8) as usize).min(bytes.len()))),
        3 => bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0xff),
        4 => bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0),
        _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
    }
}

/// A file that is gone with the test.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Reads a file to its end, or as far as a test has time for: a trace may ask for any number of pages.
fn read(path: &Path, format: Option<Format>) -> usize {
    let opened = format.map_or_else(|| open(path), |format| open_as(path, format));
    let Ok(mut stream) = opened else { return 0 };
    let (mut key, mut keys) = (Vec::new(), 0);
    while keys < 10_000 && stream.next_key(&mut key).unwrap_or(false) {
        keys += 1;
    }
    keys
}

#[test]
fn fuzz_readers_of_traces() {
    let name = format!("besom-lab-fuzz-{}", std::process::id());
    let (corpus, scratch) = (corpus(), Scratch(std::env::temp_dir().join(name)));
    // What is not damaged is read.
    let counts: Vec<usize> = corpus
        .iter()
        .map(|file| {
            fs::write(&scratch.0, file).unwrap();
            read(&scratch.0, None)
        })
        .collect();
    assert_eq!(counts, [4, 4, 3, 2, 0, 4, 4, 3, 2, 0]);
    fuzz("readers of traces", 300, |random| {
        let mut file = corpus[random.below(corpus.len() as u64) as usize].clone();
        for _ in 0..=random.below(4) {
            damage(random, &mut file);
        }
        fs::write(&scratch.0, &file).unwrap();
        let formats = [None, Some(Format::Lines), Some(Format::Arc), Some(Format::Capture)];
        assert!(read(&scratch.0, formats[random.below(4) as usize].clone()) <= 10_000);
    });
}
