//! Random operations on every filter with values, against an exact model.

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

use super::{Core, Overflow, Parameters, Scheme, ValueOf, ValueStore};
use crate::testing::Random;
use crate::{Adaptation, Digest, KeyHasher, MemoryRemote, Seed, Xxh3};

/// What the tests need to know of a filter beyond its answers.
impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// The stored keys that accept a digest, with their values.
    fn accepting(&self, digest: Digest, remote: &mut MemoryRemote) -> Vec<(Vec<u8>, ValueOf<S>)> {
        let (quotient, query) = self.locate(digest);
        let list = self.read(quotient, remote).unwrap();
        let mut keys = self.members(&list, quotient).map(|(rank, _)| list.keys.get(rank).to_vec());
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

    /// The value of the slot that holds a stored key.
    fn value_of(&self, key: &[u8], remote: &mut MemoryRemote) -> ValueOf<S> {
        let (quotient, _) = self.locate(self.hasher.digest(key));
        let list = self.read(quotient, remote).unwrap();
        let rank = self.members(&list, quotient).position(|(rank, _)| list.keys.get(rank) == key).unwrap();
        let mut values = Vec::new();
        self.values.any(&self.table, self.table.run(quotient).unwrap(), |_, value| {
            values.push(value);
            false
        });
        values[rank]
    }

    fn check(&self, remote: &mut MemoryRemote) {
        self.verify().unwrap();
        self.verify_remote(remote).unwrap();
        assert_eq!(remote.len(), self.len());
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
