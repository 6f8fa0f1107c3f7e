//! The filters that people use today, each by its ordinary interface and with its own defaults.

use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, Hasher};

use besom::{KeyHasher, Xxh3};

use crate::subject::{Build, Entry, Failure, Shape, Subject};

/// An entry for a filter that is neither ours nor adaptive.
fn entry<S: Subject + 'static>(
    name: &'static str,
    note: &'static str,
    build: impl Fn(&Shape) -> Result<S, Failure> + 'static,
) -> Entry {
    let build: Build = Box::new(move |shape| Ok(Box::new(build(shape)?)));
    Entry { name, note: note.into(), build, remote: false, bare: None }
}

/// XXH3-128 for those who take a [`BuildHasher`]: the upper half of the digest that besom's filters use.
#[derive(Clone)]
struct SameHash(Xxh3);

impl SameHash {
    fn new(shape: &Shape) -> Self {
        Self(Xxh3::with_seed(shape.seed.into()))
    }
}

impl BuildHasher for SameHash {
    type Hasher = SameHasher;

    #[inline]
    fn build_hasher(&self) -> SameHasher {
        SameHasher { hash: self.0.clone(), state: 0 }
    }
}

struct SameHasher {
    hash: Xxh3,
    state: u64,
}

impl Hasher for SameHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.state = self.state.rotate_left(32) ^ self.hash.digest(bytes).hi;
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.write(&word.to_le_bytes());
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

/// The rank-and-select quotient filter with its own hash.
pub(crate) fn qfilter() -> Entry {
    entry(
        "qfilter",
        "qfilter 0.3: Filter::new(items, rate), own hash, `insert` (skips a fingerprint that is there); \
         slots rounded up to a power of two with at most 95% in use",
        |shape| Ok(Quotient(qfilter::Filter::new(shape.items as u64, shape.rate)?)),
    )
}

/// The same with our hash.
pub(crate) fn qfilter_xxh3() -> Entry {
    entry("qfilter-xxh3", "qfilter with XXH3-128, the hash of besom's filters", |shape| {
        let hash = SameHash::new(shape);
        Ok(Quotient(qfilter::Filter::new_with_hasher(shape.items as u64, shape.rate, hash)?))
    })
}

struct Quotient<S>(qfilter::Filter<Box<[u8]>, S>);

impl<S: BuildHasher + Clone> Subject for Quotient<S> {
    fn insert_all(&mut self, keys: &[u64]) -> Result<(), Failure> {
        for &key in keys {
            self.0.insert(key)?;
        }
        Ok(())
    }

    fn count(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|&&key| self.0.contains(key)).count()
    }
}

/// The Bloom filter with its own hash.
pub(crate) fn fastbloom() -> Entry {
    entry(
        "fastbloom",
        "fastbloom 0.17: BloomFilter::with_false_pos(rate).expected_items(items), own hash (SipHash-1-3)",
        |shape| {
            let builder = fastbloom::BloomFilter::with_false_pos(shape.rate).seed(&u128::from(shape.seed));
            Ok(Bloom(builder.expected_items(shape.items)))
        },
    )
}

/// The same with our hash.
pub(crate) fn fastbloom_xxh3() -> Entry {
    entry("fastbloom-xxh3", "fastbloom with XXH3-128, the hash of besom's filters", |shape| {
        let builder = fastbloom::BloomFilter::with_false_pos(shape.rate).hasher(SameHash::new(shape));
        Ok(Bloom(builder.expected_items(shape.items)))
    })
}

struct Bloom<S>(fastbloom::BloomFilter<S>);

impl<S: BuildHasher> Subject for Bloom<S> {
    fn insert_all(&mut self, keys: &[u64]) -> Result<(), Failure> {
        for key in keys {
            self.0.insert(key);
        }
        Ok(())
    }

    fn count(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.0.contains(*key)).count()
    }
}

/// The binary fuse filter.
pub(crate) fn xorf() -> Entry {
    entry(
        "xorf",
        "xorf 0.13: BinaryFuse8, static: insertion is the construction from all keys at once; a 64-bit mix for a \
         hash; rate always 1/256",
        |_| Ok(Fuse(None)),
    )
}

struct Fuse(Option<xorf::BinaryFuse8>);

impl Subject for Fuse {
    fn insert_all(&mut self, keys: &[u64]) -> Result<(), Failure> {
        if self.0.is_some() {
            return Err("a static filter takes no further keys".into());
        }
        self.0 = Some(xorf::BinaryFuse8::try_from(keys)?);
        Ok(())
    }

    fn count(&self, keys: &[u64]) -> usize {
        let Some(filter) = &self.0 else { return 0 };
        keys.iter().filter(|key| xorf::Filter::contains(filter, *key)).count()
    }
}

/// The cuckoo filter.
pub(crate) fn cuckoofilter() -> Entry {
    entry(
        "cuckoofilter",
        "cuckoofilter 0.5: with_capacity(items / load), DefaultHasher (SipHash-1-3, twice an operation); slots \
         rounded up to a power of two; 8-bit fingerprints in buckets of 4, so its rate is about 1/35",
        |shape| Ok(Cuckoo(cuckoofilter::CuckooFilter::with_capacity(shape.slots()))),
    )
}

struct Cuckoo(cuckoofilter::CuckooFilter<DefaultHasher>);

impl Subject for Cuckoo {
    fn insert_all(&mut self, keys: &[u64]) -> Result<(), Failure> {
        for key in keys {
            self.0.add(key)?;
        }
        Ok(())
    }

    fn count(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.0.contains(*key)).count()
    }
}
