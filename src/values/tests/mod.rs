//! Random operations on every filter with values, against an exact model; and on the extension filter on bins, which promises
//! the same.

mod builders;
mod faults;
mod growth;
mod lies;
mod machines;
mod model;
mod resync;
mod statistics;
mod traps;

use std::collections::HashSet;
use std::fmt;

use super::{Core, Overflow, Parameters, Scheme, ValueOf, ValueStore};
use crate::bins::testing::extension_bins;
use crate::ground::{members_of, read};
use crate::testing::Random;
use crate::{
    Adaptation, AdaptiveError, BuildError, Digest, FilterStats, InvariantError, KeyHasher, MemoryRemote,
    Remote, Resync, Seed, Xxh3,
};

/// A filter with values, or one on another ground that promises the same: what the tests need of it.
pub(crate) trait Tested: Clone + PartialEq {
    type Hasher: KeyHasher;
    type Value: Copy + PartialEq + fmt::Debug;

    fn hasher(&self) -> &Self::Hasher;
    fn len(&self) -> usize;
    fn capacity(&self) -> usize;
    fn stats(&self) -> FilterStats;
    fn verify(&self) -> Result<(), InvariantError>;
    fn contains_digest(&self, digest: Digest) -> bool;
    fn insert<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>;
    fn remove<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> Result<bool, AdaptiveError<R::Error>>;
    fn adapt<R: Remote>(&mut self, key: &[u8], remote: &mut R)
    -> Result<Adaptation, AdaptiveError<R::Error>>;
    fn grow<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>>;
    fn clear<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>>;
    fn verify_remote<R: Remote>(&self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>>;
    fn resync<R: Remote>(&mut self, at: &[u64], remote: &mut R) -> Result<Resync, AdaptiveError<R::Error>>;
    fn emptied(&self) -> Result<Self, BuildError>;

    fn let_grow(&mut self);
    /// How often the table has doubled since the lists were made.
    fn kept(&self) -> u32;
    /// The quotient, or the bin, of a key, and how many there are.
    fn home(&self, digest: Digest) -> u64;
    fn homes(&self) -> u64;
    /// The address of a key, and the addresses that have keys.
    fn address_of(&self, digest: Digest) -> u64;
    fn addresses(&self) -> Vec<u64>;
    /// The stored keys that accept a digest, with their values.
    fn accepting(&self, digest: Digest, remote: &mut MemoryRemote) -> Vec<(Vec<u8>, Self::Value)>;
    /// The value of the slot that holds a stored key.
    fn value_of(&self, key: &[u8], remote: &mut MemoryRemote) -> Self::Value;

    fn contains(&self, key: &[u8]) -> bool {
        self.contains_digest(self.hasher().digest(key))
    }

    fn check(&self, remote: &mut MemoryRemote) {
        self.verify().unwrap();
        self.verify_remote(remote).unwrap();
        assert_eq!(remote.len(), self.len());
    }
}

/// The methods that a filter has by itself.
macro_rules! forward_to_filter {
    () => {
        fn hasher(&self) -> &H {
            self.hasher()
        }

        fn len(&self) -> usize {
            self.len()
        }

        fn capacity(&self) -> usize {
            self.capacity()
        }

        fn stats(&self) -> $crate::FilterStats {
            self.stats()
        }

        fn verify(&self) -> Result<(), $crate::InvariantError> {
            self.verify()
        }

        fn contains_digest(&self, digest: $crate::Digest) -> bool {
            self.contains_digest(digest)
        }

        fn insert<R: $crate::Remote>(
            &mut self,
            key: &[u8],
            remote: &mut R,
        ) -> Result<bool, $crate::AdaptiveError<R::Error>> {
            self.insert(key, remote)
        }

        fn remove<R: $crate::Remote>(
            &mut self,
            key: &[u8],
            remote: &mut R,
        ) -> Result<bool, $crate::AdaptiveError<R::Error>> {
            $crate::ground::remove(self, key, remote)
        }

        fn adapt<R: $crate::Remote>(
            &mut self,
            key: &[u8],
            remote: &mut R,
        ) -> Result<$crate::Adaptation, $crate::AdaptiveError<R::Error>> {
            $crate::ground::adapt(self, key, remote)
        }

        fn grow<R: $crate::Remote>(&mut self, remote: &mut R) -> Result<(), $crate::AdaptiveError<R::Error>> {
            $crate::ground::grow(self, remote)
        }

        fn clear<R: $crate::Remote>(
            &mut self,
            remote: &mut R,
        ) -> Result<(), $crate::AdaptiveError<R::Error>> {
            self.clear(remote)
        }

        fn verify_remote<R: $crate::Remote>(
            &self,
            remote: &mut R,
        ) -> Result<(), $crate::AdaptiveError<R::Error>> {
            $crate::ground::verify_remote(self, remote)
        }

        fn resync<R: $crate::Remote>(
            &mut self,
            at: &[u64],
            remote: &mut R,
        ) -> Result<$crate::Resync, $crate::AdaptiveError<R::Error>> {
            $crate::ground::resync(self, at, remote)
        }

        fn emptied(&self) -> Result<Self, $crate::BuildError> {
            self.emptied()
        }

        fn address_of(&self, digest: $crate::Digest) -> u64 {
            $crate::ground::address_of(self, digest)
        }
    };
}
pub(crate) use forward_to_filter;

impl<S: Scheme, H: KeyHasher> Tested for Core<S, H> {
    type Hasher = H;
    type Value = ValueOf<S>;

    forward_to_filter!();

    fn let_grow(&mut self) {
        self.growable = true;
    }

    fn kept(&self) -> u32 {
        self.addresses.kept()
    }

    fn home(&self, digest: Digest) -> u64 {
        self.locate(digest).0
    }

    fn homes(&self) -> u64 {
        self.table.slots()
    }

    fn addresses(&self) -> Vec<u64> {
        self.table.runs().map(|(quotient, _)| self.addresses.of(quotient)).collect()
    }

    fn accepting(&self, digest: Digest, remote: &mut MemoryRemote) -> Vec<(Vec<u8>, ValueOf<S>)> {
        let (quotient, query) = self.locate(digest);
        let list = read(self, quotient, remote).unwrap();
        let mut keys = members_of(self, &list, quotient).map(|(rank, _)| list.keys.get(rank).to_vec());
        let mut accepting = Vec::new();
        if let Some(run) = self.table.run(quotient) {
            self.values.any(&self.table, run, |slot, value| {
                let key = keys.next().unwrap();
                if self.scheme.accepts(self.table.remainder(slot), value, &query) {
                    accepting.push((key, value));
                }
                false
            });
        }
        accepting
    }

    fn value_of(&self, key: &[u8], remote: &mut MemoryRemote) -> ValueOf<S> {
        let (quotient, _) = self.locate(self.hasher.digest(key));
        let list = read(self, quotient, remote).unwrap();
        let rank =
            members_of(self, &list, quotient).position(|(rank, _)| list.keys.get(rank) == key).unwrap();
        let mut values = Vec::new();
        self.values.any(&self.table, self.table.run(quotient).unwrap(), |_, value| {
            values.push(value);
            false
        });
        values[rank]
    }
}

/// The false-positive rate at which remainders have `bits` bits.
fn rate(bits: u32, load: f64) -> f64 {
    load * 0.5_f64.powi(bits as i32) * 1.000_1
}

fn parameters(capacity: usize, bits: u32, load: f64, overflow: Overflow, seed: u64) -> Parameters {
    let (rate, seed) = (rate(bits, load), Some(Seed::from(seed)));
    Parameters { capacity, rate, load, seed, overflow, ..Parameters::default() }
}
