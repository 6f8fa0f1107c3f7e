//! Catches: bytes that make a decoder of any kind panic, loop, or return a filter that is not sound.

use std::fs;
use std::path::PathBuf;

use besom::bloom::{BlockedBloomFilter, BloomFilter};
use besom::cascade::{AdaptiveBloomFilter, Cascade};
use besom::cuckoo::CuckooFilter;
use besom::cuckoo::{self, AdaptiveCuckooFilter};
use besom::exact::ExactList;
use besom::format::{Persist, ReadOptions, Region, WriteOptions, check, inspect};
use besom::quotient::QuotientFilter;
use besom::telescoping::UncompressedTelescopingFilter;
use besom::testing::{Damage, Random, fuzz};
use besom::tinyset::TinySet;
use besom::whitelist::WhitelistFilter;
use besom::{BinFilter, BroomFilter, ExtensionFilter, Sharded, SipHash, TelescopingFilter, Xxh3};

/// One file of every kind, with either hash function.
fn corpus() -> Vec<Vec<u8>> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v2");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// An error, or a sound filter that answers, and that is written as it was read.
fn read<F: Persist>(bytes: &[u8], random: &mut Random) {
    let _ = check(&mut &bytes[..]);
    let options = if random.one_in(4) { ReadOptions::new().seed(random.next()) } else { ReadOptions::new() };
    let streamed = F::read_from(&mut &bytes[..], &options);
    match F::from_bytes(bytes, &options) {
        Ok((filter, header)) => {
            assert!(streamed.is_ok(), "the same bytes are refused as a stream");
            filter.verify().unwrap();
            let answers: Vec<bool> = (0..100_u64).map(|key| filter.contains(&key)).collect();
            let mut many = Vec::new();
            filter.contains_many(&(0..100_u64).collect::<Vec<_>>(), &mut many);
            assert_eq!(answers, many);
            let options =
                WriteOptions::new().generation(header.generation).include_seed(header.seed.is_some());
            assert!(filter.to_bytes(&options).unwrap() == bytes, "a filter has two files");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // In place nothing but the header is checked: there must be no harm in trying.
    let opened = F::open(&Region::copy_of(bytes).unwrap(), &options);
    if let Some((filter, _)) = opened.ok().filter(|(filter, _)| filter.verify().is_ok()) {
        assert!((0..100_u64).filter(|key| filter.contains(key)).count() <= 100);
    }
}

/// Reads the bytes as a filter of the kind that they say, or of any other.
fn read_as(bytes: &[u8], random: &mut Random) {
    let readers: &[fn(&[u8], &mut Random)] = &[
        read::<QuotientFilter<Xxh3>>,
        read::<QuotientFilter<SipHash>>,
        read::<TelescopingFilter<Xxh3>>,
        read::<TelescopingFilter<SipHash>>,
        read::<UncompressedTelescopingFilter<Xxh3>>,
        read::<ExtensionFilter<Xxh3>>,
        read::<AdaptiveCuckooFilter<cuckoo::Inert, Xxh3>>,
        read::<AdaptiveCuckooFilter<cuckoo::Cuckooing, Xxh3>>,
        read::<AdaptiveCuckooFilter<cuckoo::Swapping, Xxh3>>,
        read::<AdaptiveCuckooFilter<cuckoo::Cyclic<1>, Xxh3>>,
        read::<AdaptiveCuckooFilter<cuckoo::Cyclic<2>, Xxh3>>,
        read::<AdaptiveCuckooFilter<cuckoo::Cyclic<3>, Xxh3>>,
        read::<CuckooFilter<Xxh3>>,
        read::<BinFilter<Xxh3>>,
        read::<BloomFilter<Xxh3>>,
        read::<BlockedBloomFilter<Xxh3>>,
        read::<AdaptiveBloomFilter<Xxh3>>,
        read::<Cascade<QuotientFilter, Xxh3>>,
        read::<WhitelistFilter<Xxh3>>,
        read::<TinySet<Xxh3>>,
        read::<BroomFilter<Xxh3>>,
        read::<ExactList<Xxh3>>,
        read::<ExactList<SipHash>>,
        read::<Sharded<QuotientFilter<Xxh3>>>,
        read::<Sharded<TelescopingFilter<Xxh3>>>,
    ];
    let _ = inspect(&mut &bytes[..]);
    if random.one_in(4) {
        readers[random.below(readers.len() as u64) as usize](bytes, random);
    } else {
        readers.iter().for_each(|read| read(bytes, random));
    }
}

#[test]
fn fuzz_damaged_files() {
    let corpus = corpus();
    fuzz("damaged files", 3_000, |random| {
        let [file, other] = [(); 2].map(|()| &corpus[random.below(corpus.len() as u64) as usize]);
        read_as(&Damage::new(random.next()).file(file, other), random);
    });
}

#[test]
fn fuzz_arbitrary_bytes() {
    let header = corpus().swap_remove(0);
    fuzz("arbitrary bytes", 3_000, |random| {
        let mut bytes: Vec<u8> = (0..random.below(2_000)).map(|_| random.next() as u8).collect();
        // Nothing gets far without what a file begins with.
        let known = [0, 8, 12, 16, 192][random.below(5) as usize].min(bytes.len());
        bytes[..known].copy_from_slice(&header[..known]);
        if random.one_in(2) {
            Damage::reseal(&mut bytes);
        }
        read_as(&bytes, random);
    });
}
