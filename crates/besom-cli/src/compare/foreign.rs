//! The filters that people use today, each by its ordinary interface, with its own hash function. Those that have no
//! seed get keys that begin with one.

use std::collections::hash_map::DefaultHasher;

use besom::{KeyHasher, Seed, Xxh3};

use super::contender::{Contender, Plan, Refused};

type Built = Result<Box<dyn Contender>, Refused>;

/// Rates that no filter of another crate is asked for: some of them panic.
fn sensible(rate: f64, finest: i32) -> Result<(), Refused> {
    match rate {
        rate if rate > 0.5 => Err(Refused::TooLarge),
        rate if rate < 0.5_f64.powi(finest) => Err(Refused::TooSmall),
        _ => Ok(()),
    }
}

pub(super) fn fastbloom(_: &str, plan: &Plan<'_>, rate: f64) -> Built {
    sensible(rate, 38)?;
    let builder = fastbloom::BloomFilter::with_false_pos(rate).seed(&u128::from(plan.seed));
    Ok(Box::new(Bloom(builder.expected_items(plan.keys))))
}

struct Bloom(fastbloom::BloomFilter);

impl Contender for Bloom {
    fn insert(&mut self, key: &[u8]) -> Result<(), String> {
        self.0.insert(key);
        Ok(())
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.0.contains(key)
    }

    fn bits(&self) -> usize {
        self.0.num_bits()
    }
}

pub(super) fn qfilter(_: &str, plan: &Plan<'_>, rate: f64) -> Built {
    sensible(rate, 30)?;
    let filter =
        qfilter::Filter::new(plan.keys as u64, rate).map_err(|error| Refused::Other(error.to_string()))?;
    Ok(Box::new(Quotient { filter, seed: plan.seed }))
}

struct Quotient {
    filter: qfilter::Filter,
    seed: u64,
}

impl Contender for Quotient {
    fn insert(&mut self, key: &[u8]) -> Result<(), String> {
        self.filter.insert((self.seed, key)).map(drop).map_err(|error| error.to_string())
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.filter.contains((self.seed, key))
    }

    fn bits(&self) -> usize {
        8 * self.filter.memory_usage()
    }
}

/// Its fingerprints have 8 bits, whatever the rate.
pub(super) fn cuckoofilter(_: &str, plan: &Plan<'_>, _: f64) -> Built {
    let (capacity, seed) = (plan.keys, plan.seed);
    Ok(Box::new(Cuckoo { filter: cuckoofilter::CuckooFilter::with_capacity(capacity), capacity, seed }))
}

/// Its number of slots is a power of two; the keys may be too many for the one that it chooses.
struct Cuckoo {
    filter: cuckoofilter::CuckooFilter<DefaultHasher>,
    capacity: usize,
    seed: u64,
}

impl Contender for Cuckoo {
    fn insert(&mut self, key: &[u8]) -> Result<(), String> {
        self.filter.add(&(self.seed, key)).map_err(|error| error.to_string())
    }

    fn grow(&mut self) -> bool {
        self.capacity = self.capacity.saturating_mul(2).max(4);
        self.filter = cuckoofilter::CuckooFilter::with_capacity(self.capacity);
        true
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.filter.contains(&(self.seed, key))
    }

    fn bits(&self) -> usize {
        8 * self.filter.memory_usage()
    }
}

/// Its fingerprints have 8 bits, whatever the rate.
pub(super) fn xorf(_: &str, plan: &Plan<'_>, _: f64) -> Built {
    let hash = Xxh3::with_seed(Seed::from(plan.seed));
    Ok(Box::new(Fuse { hash, hashes: Vec::with_capacity(plan.keys), filter: None }))
}

/// A static filter of 64-bit numbers: keys are hashed for it, and it is built when all of them are known.
struct Fuse {
    hash: Xxh3,
    hashes: Vec<u64>,
    filter: Option<xorf::BinaryFuse8>,
}

impl Contender for Fuse {
    fn insert(&mut self, key: &[u8]) -> Result<(), String> {
        self.hashes.push(self.hash.digest(key).lo);
        Ok(())
    }

    fn seal(&mut self) -> Result<(), String> {
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.filter = Some(xorf::BinaryFuse8::try_from(&self.hashes[..]).map_err(str::to_owned)?);
        self.hashes = Vec::new();
        Ok(())
    }

    fn contains(&self, key: &[u8]) -> bool {
        let hash = self.hash.digest(key).lo;
        self.filter.as_ref().is_none_or(|filter| xorf::Filter::contains(filter, &hash))
    }

    fn bits(&self) -> usize {
        self.filter.as_ref().map_or(0, |filter| 8 * xorf::Filter::<u64>::len(filter))
    }
}
