//! The broom filter as a whole. What needs no knowledge of its inside is in `tests/` of the crate.

mod games;
mod model;
mod space;
mod work;

use crate::{Filter, KeyHasher, Remote, Xxh3};

use super::builder::Plan;
use super::filter::BroomFilter;
use super::fingerprint::{Fingerprint, Spot};

/// A filter whose remainders are cut as the test wants.
fn filter(plan: Plan, capacity: usize, max_capacity: usize, seed: u64) -> BroomFilter<Xxh3> {
    BroomFilter::from_plan(plan, capacity, max_capacity, Xxh3::with_seed(seed.into()), 0).unwrap()
}

impl<H: KeyHasher> BroomFilter<H> {
    /// The stored key that a query collides with, with what both are under their functions.
    fn collision<R: Remote>(
        &self,
        query: &[u8],
        remote: &mut R,
    ) -> Option<(Fingerprint, Spot, Vec<u8>, Fingerprint)> {
        let fingerprint = self.local.fingerprint(self.digest(query));
        let spot = self.local.find(&fingerprint)?;
        let mut keys: Vec<Vec<u8>> = Vec::new();
        remote.read(fingerprint.quotient(), &mut |key| keys.push(key.to_vec())).ok()?;
        keys.into_iter().find_map(|key| {
            let stored = self.local.fingerprint(self.digest(&key));
            (self.local.find(&stored) == Some(spot)).then_some((fingerprint, spot, key, stored))
        })
    }
}
