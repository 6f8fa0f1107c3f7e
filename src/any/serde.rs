//! Filters as values of the serde data model: the bytes of their files, seed included.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use super::{AnyFilter, AnyHasher};
use crate::cascade::LevelFilter;
use crate::cuckoo::{AdaptiveCuckooFilter, AdaptiveVariant};
use crate::exact::ExactList;
use crate::format::{Persist, ReadOptions, WriteOptions};
use crate::{
    BinFilter, BlockedBloomFilter, BloomFilter, BroomFilter, Cascade, CuckooFilter, ExtensionFilter,
    KeyHasher, QuotientFilter, Sharded, TelescopingFilter, TinySet, UncompressedTelescopingFilter,
    WhitelistFilter,
};

fn serialize<F: Persist, S: Serializer>(filter: &F, serializer: S) -> Result<S::Ok, S::Error> {
    let bytes = filter.to_bytes(&WriteOptions::new()).map_err(ser::Error::custom)?;
    serializer.serialize_bytes(&bytes)
}

fn deserialize<'de, F: Persist, D: Deserializer<'de>>(deserializer: D) -> Result<F, D::Error> {
    deserializer.deserialize_bytes(Bytes(PhantomData))
}

/// Takes bytes, or a sequence of them from formats that have no bytes.
struct Bytes<F>(PhantomData<F>);

impl<'de, F: Persist> Visitor<'de> for Bytes<F> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the bytes of a filter of kind {}", F::KIND)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<F, E> {
        let (filter, _) = F::from_bytes(bytes, &ReadOptions::new()).map_err(E::custom)?;
        Ok(filter)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<F, A::Error> {
        // Grows with what arrives: the length that a sequence says it has is not to be relied on.
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

macro_rules! as_bytes {
    ($([$($bounds:tt)*] $filter:ty,)*) => {$(
        impl<$($bounds)*> Serialize for $filter {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serialize(self, serializer)
            }
        }

        impl<'de, $($bounds)*> Deserialize<'de> for $filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize(deserializer)
            }
        }
    )*};
}

as_bytes! {
    [H: AnyHasher] AnyFilter<H>,
    [V: AdaptiveVariant, H: KeyHasher] AdaptiveCuckooFilter<V, H>,
    [H: KeyHasher] BinFilter<H>,
    [H: KeyHasher] BlockedBloomFilter<H>,
    [H: KeyHasher] BloomFilter<H>,
    [H: KeyHasher] BroomFilter<H>,
    [F: LevelFilter + Persist, H: KeyHasher] Cascade<F, H>,
    [H: KeyHasher] ExactList<H>,
    [H: KeyHasher] ExtensionFilter<H>,
    [H: KeyHasher] CuckooFilter<H>,
    [H: KeyHasher] QuotientFilter<H>,
    [F: Persist + Clone] Sharded<F>,
    [H: KeyHasher] TelescopingFilter<H>,
    [H: KeyHasher] TinySet<H>,
    [H: KeyHasher] UncompressedTelescopingFilter<H>,
    [H: KeyHasher] WhitelistFilter<H>,
}
