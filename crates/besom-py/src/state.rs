//! A filter of any kind and any hash function, and the keys beside it.

use besom::any::{AnyFilter, Config};
use besom::format::{Header, Persist, ReadOptions, Region, WriteOptions};
use besom::{
    Adaptation, Adaptive, BuildError, Digest, Filter, FilterStats, HashKind, KeyHasher, Merge, MergeError,
    SipHash, Xxh3,
};
use pyo3::prelude::*;

use crate::error::Raise;
use crate::keys::Chunk;
use crate::remote::Beside;

/// A filter by its hash function.
#[derive(Clone)]
pub(crate) enum Hashed {
    Xxh3(AnyFilter<Xxh3>),
    SipHash(AnyFilter<SipHash>),
}

/// Does the same with a filter of either hash function.
macro_rules! either {
    ($hashed:expr, $filter:ident => $work:expr) => {
        match $hashed {
            $crate::state::Hashed::Xxh3($filter) => $work,
            $crate::state::Hashed::SipHash($filter) => $work,
        }
    };
}
pub(crate) use either;

impl Hashed {
    pub(crate) fn build(config: &Config) -> Result<Self, BuildError> {
        match config.hash {
            HashKind::SipHash => AnyFilter::build(config).map(Self::SipHash),
            _ => AnyFilter::build(config).map(Self::Xxh3),
        }
    }

    /// Reads a filter with the hash function that its file says.
    pub(crate) fn from_bytes(bytes: &[u8], options: &ReadOptions) -> PyResult<(Self, Header)> {
        let read = match besom::format::inspect(&mut &*bytes).map_err(Raise::raise)?.hash {
            HashKind::SipHash => AnyFilter::from_bytes(bytes, options).map(|(f, h)| (Self::SipHash(f), h)),
            _ => AnyFilter::from_bytes(bytes, options).map(|(f, h)| (Self::Xxh3(f), h)),
        };
        read.map_err(Raise::raise)
    }

    /// The same in place; see [`Persist::open`].
    pub(crate) fn open(region: &Region, options: &ReadOptions) -> PyResult<(Self, Header)> {
        let opened = match besom::format::inspect(&mut &region[..]).map_err(Raise::raise)?.hash {
            HashKind::SipHash => AnyFilter::open(region, options).map(|(f, h)| (Self::SipHash(f), h)),
            _ => AnyFilter::open(region, options).map(|(f, h)| (Self::Xxh3(f), h)),
        };
        opened.map_err(Raise::raise)
    }

    pub(crate) fn to_bytes(&self, options: &WriteOptions) -> PyResult<Vec<u8>> {
        either!(self, filter => filter.to_bytes(options)).map_err(Raise::raise)
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        either!(self, filter => filter.as_dyn()).contains(key)
    }

    pub(crate) fn kind(&self) -> besom::format::Kind {
        either!(self, filter => filter.kind())
    }

    pub(crate) fn is_adaptive(&self) -> bool {
        either!(self, filter => filter.is_adaptive())
    }

    pub(crate) fn is_hash_addressed(&self) -> bool {
        either!(self, filter => filter.is_hash_addressed())
    }

    pub(crate) fn len(&self) -> usize {
        either!(self, filter => filter.len())
    }

    pub(crate) fn capacity(&self) -> usize {
        either!(self, filter => filter.capacity())
    }

    pub(crate) fn stats(&self) -> FilterStats {
        either!(self, filter => filter.stats())
    }

    pub(crate) fn seed(&self) -> u128 {
        either!(self, filter => filter.seed()).to_u128()
    }

    pub(crate) fn hash_name(&self) -> &'static str {
        match self {
            Self::Xxh3(_) => "xxh3",
            Self::SipHash(_) => "siphash",
        }
    }

    pub(crate) fn digest(&self, key: &[u8]) -> Digest {
        either!(self, filter => filter.digest(key))
    }

    /// One answer for every key, in the place of those that are there.
    pub(crate) fn contains_chunk(&self, chunk: &Chunk, answers: &mut Vec<bool>) {
        let filter = either!(self, filter => filter.as_dyn());
        match chunk {
            Chunk::Words(words) => filter.contains_words(words, answers),
            Chunk::Bytes(packed) => filter.contains_many(&packed.iter().collect::<Vec<_>>(), answers),
        }
    }

    pub(crate) fn promised_rate(&self) -> f64 {
        either!(self, filter => filter.false_positive_rate())
    }

    /// The share of random keys that the filter accepts.
    pub(crate) fn measured_rate(&self, samples: usize) -> f64 {
        // Digests of keys that nobody has: a sequence under another hash function.
        let strangers = Xxh3::with_seed(besom::Seed::from(0x0062_6573_6f6d_u64));
        let accepted = (0..samples as u64).filter(|sample| {
            let digest = strangers.digest_key(sample);
            either!(self, filter => filter.contains_digest(digest))
        });
        accepted.count() as f64 / samples.max(1) as f64
    }
}

/// A filter and the keys beside it.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) filter: Hashed,
    pub(crate) beside: Beside,
}

impl State {
    pub(crate) fn insert(&mut self, key: &[u8]) -> PyResult<bool> {
        let beside = &mut self.beside;
        either!(&mut self.filter, filter => filter.insert(key, beside).map_err(Raise::raise))
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> PyResult<bool> {
        let beside = &mut self.beside;
        either!(&mut self.filter, filter => filter.remove(key, beside).map_err(Raise::raise))
    }

    pub(crate) fn adapt(&mut self, key: &[u8]) -> PyResult<Adaptation> {
        let beside = &mut self.beside;
        either!(&mut self.filter, filter => filter.adapt(key, beside).map_err(Raise::raise))
    }

    pub(crate) fn clear(&mut self) -> PyResult<()> {
        let beside = &mut self.beside;
        either!(&mut self.filter, filter => filter.clear(beside).map_err(Raise::raise))
    }

    /// Checks the filter, and that the keys beside it are its own.
    pub(crate) fn verify(&mut self) -> PyResult<()> {
        let beside = &mut self.beside;
        either!(&self.filter, filter => {
            filter.verify().map_err(Raise::raise)?;
            if filter.is_adaptive() && !beside.is_none() {
                filter.verify_remote(beside).map_err(Raise::raise)?;
            }
            Ok(())
        })
    }

    /// Inserts all keys of a chunk, in order, as far as there is room.
    pub(crate) fn insert_chunk(&mut self, chunk: &Chunk) -> PyResult<()> {
        let beside = &mut self.beside;
        either!(&mut self.filter, filter => {
            if !filter.is_adaptive() {
                let hasher = filter.hasher();
                let digests: Vec<Digest> = match chunk {
                    Chunk::Words(words) => words.iter().map(|word| hasher.digest_key(word)).collect(),
                    Chunk::Bytes(packed) => packed.iter().map(|key| hasher.digest(key)).collect(),
                };
                if let Some(inserted) = filter.insert_digests(&digests) {
                    return inserted.map(drop).map_err(Raise::raise);
                }
            }
            let mut insert = |key: &[u8]| filter.insert(key, beside).map(drop).map_err(Raise::raise);
            match chunk {
                Chunk::Words(words) => words.iter().try_for_each(|word| insert(&word.to_le_bytes())),
                Chunk::Bytes(packed) => packed.iter().try_for_each(insert),
            }
        })
    }

    pub(crate) fn merge(&mut self, other: &Hashed) -> PyResult<()> {
        let merged = match (&mut self.filter, other) {
            (Hashed::Xxh3(filter), Hashed::Xxh3(other)) => filter.merge(other),
            (Hashed::SipHash(filter), Hashed::SipHash(other)) => filter.merge(other),
            _ => Err(MergeError::HashMismatch),
        };
        merged.map_err(Raise::raise)
    }
}
