//! Hash maps whose keys are small numbers that nobody outside chooses: block numbers, page numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from such numbers.
pub(crate) type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;

/// One multiplication spreads such numbers well enough.
#[derive(Debug, Default, Clone)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
