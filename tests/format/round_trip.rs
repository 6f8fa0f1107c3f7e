//! Catches: a part of a filter that is not written, is written in another form, or depends on what else is in memory.

use std::io::{Read, Write};

use besom::bloom::BloomFilter;
use besom::format::{FormatError, Persist, ReadOptions, WriteOptions, check, inspect};
use besom::quotient::QuotientFilter;
use besom::{Filter, SipHash, Xxh3};

use super::subjects::{State, Subject};
use super::times;
use crate::for_every_subject;

/// Both filters give the same answers, on the keys of one of them and on others.
pub(crate) fn answers_agree<F: Filter>(filter: &F, read: &F, keys: &[u64], others: u64) {
    assert!(keys.iter().all(|key| read.contains(key)), "a key was lost");
    for key in (0..others).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
        assert_eq!(filter.contains(&key), read.contains(&key));
    }
}

fn returns<S: Subject>(capacity: usize, seed: u64, queries: u64) {
    for State { filter, keys } in S::states(capacity, seed) {
        let options = WriteOptions::new().generation(seed << 32 | 5);
        let bytes = filter.to_bytes(&options).unwrap();
        let (read, header) = S::Filter::from_bytes(&bytes, &ReadOptions::new()).unwrap();
        assert_eq!(header, inspect(&mut &bytes[..]).unwrap());
        assert_eq!(header, check(&mut &bytes[..]).unwrap());
        assert_eq!((header.kind, header.generation), (S::Filter::KIND, seed << 32 | 5));
        assert_eq!((header.len, header.capacity), (filter.len() as u64, filter.capacity() as u64));
        assert_eq!((header.seed, header.file_len()), (Some(filter.seed()), bytes.len() as u64));
        assert_eq!(read.verify(), Ok(()));
        answers_agree(&filter, &read, &keys, queries);
        assert_eq!(read.to_bytes(&options).unwrap(), bytes);
        let (streamed, _) = S::Filter::read_from(&mut Trickle(&bytes), &ReadOptions::new()).unwrap();
        assert_eq!(streamed.to_bytes(&options).unwrap(), bytes);
    }
}

/// A reader that hands out a few bytes at a time.
struct Trickle<'b>(&'b [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(1 + self.0.len() % 4099);
        self.0.read(&mut buffer[..len])
    }
}

#[test]
fn every_filter_comes_back_as_it_was() {
    for (round, capacity) in [1, 2, 7, 100, 1_000, 12_345].into_iter().enumerate() {
        for seed in 0..3 {
            for_every_subject!(returns, capacity, seed + round as u64, 1_000);
        }
    }
}

#[test]
fn large_filters_come_back_as_they_were() {
    // Beyond one chunk, and beyond what is allocated before anything has arrived.
    let capacity = 20_000 * times(50) as usize;
    for_every_subject!(returns, capacity, 4, times(1_000_000));
}

fn needs_its_seed<S: Subject>() {
    let State { filter, keys } = S::states(100, 9).pop().unwrap();
    let bytes = filter.to_bytes(&WriteOptions::new().include_seed(false)).unwrap();
    let error = S::Filter::from_bytes(&bytes, &ReadOptions::new()).err().unwrap();
    assert!(matches!(error, FormatError::SeedMissing), "{error}");
    let error = S::Filter::from_bytes(&bytes, &ReadOptions::new().seed(10_u64)).err().unwrap();
    assert!(matches!(error, FormatError::SeedMismatch), "{error}");
    let (read, header) = S::Filter::from_bytes(&bytes, &ReadOptions::new().seed(9_u64)).unwrap();
    assert_eq!(header.seed, None);
    answers_agree(&filter, &read, &keys, 1_000);
    // Not a byte of it is there.
    let secret = 0x1234_5678_9abc_def0_u64;
    let State { filter, .. } = S::states(100, secret).pop().unwrap();
    let bytes = filter.to_bytes(&WriteOptions::new().include_seed(false)).unwrap();
    assert!(!bytes.windows(4).any(|window| window == &secret.to_le_bytes()[..4]));
    // A seed in the file does not hide that the one given is wrong.
    let bytes = filter.to_bytes(&WriteOptions::new()).unwrap();
    let error = S::Filter::from_bytes(&bytes, &ReadOptions::new().seed(1_u64)).err().unwrap();
    assert!(matches!(error, FormatError::SeedMismatch), "{error}");
}

#[test]
fn a_filter_without_its_seed_must_be_given_it() {
    for_every_subject!(needs_its_seed);
}

#[test]
fn a_file_is_read_only_as_what_it_is() {
    let bytes = BloomFilter::with_capacity(10).unwrap().to_bytes(&WriteOptions::new()).unwrap();
    let read = QuotientFilter::<Xxh3>::from_bytes(&bytes, &ReadOptions::new()).map(drop);
    assert!(read.unwrap_err().to_string().contains("kind bloom, not quotient"));
    let read = BloomFilter::<SipHash>::from_bytes(&bytes, &ReadOptions::new()).map(drop);
    assert!(read.unwrap_err().to_string().contains("hashed with XXH3, not SipHash-2-4"));
    let read = BloomFilter::<Xxh3>::from_bytes(b"PK\x03\x04, a long way from a filter", &ReadOptions::new());
    assert!(matches!(read.err().unwrap(), FormatError::NotBesom { .. }));
}

#[test]
fn filters_follow_each_other_in_one_stream() {
    let mut stream = Vec::new();
    for capacity in [10, 20, 30] {
        let filter = QuotientFilter::builder().capacity(capacity).seed(3_u64).build().unwrap();
        filter.write_to(&mut stream, &WriteOptions::new()).unwrap();
    }
    let mut reader = &stream[..];
    for capacity in [10, 20, 30] {
        let (filter, _) = QuotientFilter::<Xxh3>::read_from(&mut reader, &ReadOptions::new()).unwrap();
        assert_eq!(filter.capacity(), capacity);
    }
    assert!(reader.is_empty());
    let all = QuotientFilter::<Xxh3>::from_bytes(&stream, &ReadOptions::new()).map(drop);
    assert!(matches!(all.unwrap_err(), FormatError::TrailingBytes { .. }));
}

#[test]
fn damage_is_located() {
    let State { filter, .. } = super::subjects::Quotient::<Xxh3>::states(200_000, 1).pop().unwrap();
    let bytes = filter.to_bytes(&WriteOptions::new()).unwrap();
    let payload_at = bytes.len() as u64 - inspect(&mut &bytes[..]).unwrap().payload_len;
    let damaged = payload_at + 3 * 65_536 + 77;
    let mut copy = bytes.clone();
    copy[damaged as usize] ^= 1;
    match check(&mut &copy[..]).unwrap_err() {
        FormatError::ChunkDamaged { chunk, offset, .. } => {
            assert_eq!((chunk, offset), (3, payload_at + 3 * 65_536));
        }
        error => panic!("{error}"),
    }
    match check(&mut &bytes[..bytes.len() - 1]).unwrap_err() {
        FormatError::Truncated { found, expected } => {
            assert_eq!((found, expected), (bytes.len() as u64 - 1, bytes.len() as u64));
        }
        error => panic!("{error}"),
    }
}

#[test]
fn a_writer_that_fails_is_reported() {
    /// Takes this many bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let State { filter, .. } = super::subjects::Bloom::<Xxh3>::states(100, 1).pop().unwrap();
    let len = filter.to_bytes(&WriteOptions::new()).unwrap().len();
    for room in 0..len {
        assert!(matches!(filter.write_to(&mut Full(room), &WriteOptions::new()), Err(FormatError::Io(_))));
    }
    assert!(filter.write_to(&mut Full(len), &WriteOptions::new()).is_ok());
}

fn serde_agrees<S: Subject>()
where
    S::Filter: serde::Serialize + serde::de::DeserializeOwned,
{
    let State { filter, keys } = S::states(60, 2).pop().unwrap();
    let json = serde_json::to_string(&filter).unwrap();
    let read: S::Filter = serde_json::from_str(&json).unwrap();
    answers_agree(&filter, &read, &keys, 100);
    assert!(serde_json::from_str::<S::Filter>("[66, 69, 83]").is_err());
}

#[test]
fn serde_carries_the_bytes() {
    for_every_subject!([Xxh3] serde_agrees);
}
