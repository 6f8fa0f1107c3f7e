//! Random operations on every filter with values, against an exact model; and on the extension filter on bins, which
//! promises the same.

mod builders;
mod faults;
mod growth;
mod lies;
mod machines;
mod model;
mod reads;
mod settle;
mod statistics;
mod traps;

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::{Core, Overflow, Parameters, Scheme};
use crate::bins::testing::extension_bins;
use crate::homes::Homed;
use crate::testing::Random;
use crate::{
    Adaptation, Authority, BuildError, Digest, FilterStats, InvariantError, KeyHasher, MemoryRemote, Remote,
    RemoteResult, Seed, Settled, Xxh3,
};

/// A filter with values, or one on another table that promises the same: what the tests need of it.
pub(crate) trait Tested: Homed + PartialEq {
    fn stats(&self) -> FilterStats;
    fn verify(&self) -> Result<(), InvariantError>;
    fn insert<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R>;
    fn insert_new<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<(), R>;
    fn clear<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R>;
    fn emptied(&self) -> Result<Self, BuildError>;
    fn let_grow(&mut self);

    fn remove<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        crate::homes::remove(self, key, remote)
    }

    fn remove_stored<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        crate::homes::remove_stored(self, key, remote)
    }

    fn adapt<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R> {
        crate::homes::adapt(self, key, remote)
    }

    fn grow<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        crate::homes::grow(self, remote)
    }

    fn verify_remote<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        crate::homes::verify_remote(self, remote)
    }

    fn settle<R: Remote>(
        &mut self,
        addresses: RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        crate::homes::settle(self, addresses, authority, remote)
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.contains_digest(self.hasher().digest(key))
    }

    /// The number of a key's home.
    fn home(&self, key: &[u8]) -> u64 {
        self.homes().of(self.hasher().digest(key).hi)
    }

    /// The quotient, or the bin, of a key.
    fn unit(&self, key: &[u8]) -> u64 {
        self.homes().unit(self.home(key))
    }

    /// The addresses of a key's home.
    fn addresses(&self, key: &[u8]) -> RangeInclusive<u64> {
        crate::homes::home(self, self.hasher().digest(key))
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
        fn stats(&self) -> $crate::FilterStats {
            self.stats()
        }

        fn verify(&self) -> Result<(), $crate::InvariantError> {
            self.verify()
        }

        fn insert<R: $crate::Remote>(&mut self, key: &[u8], remote: &mut R) -> $crate::RemoteResult<bool, R> {
            self.insert(key, remote)
        }

        fn insert_new<R: $crate::Remote>(
            &mut self,
            key: &[u8],
            remote: &mut R,
        ) -> $crate::RemoteResult<(), R> {
            self.insert_new(key, remote)
        }

        fn clear<R: $crate::Remote>(&mut self, remote: &mut R) -> $crate::RemoteResult<(), R> {
            self.clear(remote)
        }

        fn emptied(&self) -> Result<Self, $crate::BuildError> {
            self.emptied()
        }

        fn let_grow(&mut self) {
            self.growable = true;
        }
    };
}
pub(crate) use forward_to_filter;

impl<S: Scheme, H: KeyHasher> Tested for Core<S, H> {
    forward_to_filter!();
}

/// The false-positive rate at which remainders have `bits` bits.
fn rate(bits: u32, load: f64) -> f64 {
    load * 0.5_f64.powi(bits as i32) * 1.000_1
}

fn parameters(capacity: usize, bits: u32, load: f64, overflow: Overflow, seed: u64) -> Parameters {
    let (rate, seed) = (rate(bits, load), Some(Seed::from(seed)));
    Parameters { capacity, rate, load, seed, overflow, ..Parameters::default() }
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}
