//! The places of many keys, some at a time, with the lines of those that follow on their way.

use std::slice::Chunks;

use crate::{Key, KeyHasher};

use super::line::Fingerprint;
use super::table::{BATCH, Place, Table};

/// The places of keys, [`BATCH`] at a time: while these are worked on, the lines of the next ones are fetched.
pub(super) struct Ahead<'k, K> {
    chunks: Chunks<'k, K>,
    /// The places handed out last, and those that come next.
    places: [[Place; BATCH]; 2],
    lens: [usize; 2],
    /// Which of the two comes next.
    next: usize,
}

impl<'k, K: Key> Ahead<'k, K> {
    #[inline(always)]
    pub(super) fn new<H: KeyHasher>(keys: &'k [K], table: &Table, hasher: &H) -> Self {
        let nowhere = Place { bin: 0, print: Fingerprint(0) };
        let (places, lens) = ([[nowhere; BATCH]; 2], [0; 2]);
        let mut ahead = Self { chunks: keys.chunks(BATCH), places, lens, next: 0 };
        ahead.fetch(0, table, hasher);
        ahead
    }

    /// The next places; none behind the last key.
    #[inline(always)]
    pub(super) fn next<H: KeyHasher>(&mut self, table: &Table, hasher: &H) -> &[Place] {
        let now = self.next;
        self.next ^= 1;
        self.fetch(self.next, table, hasher);
        &self.places[now][..self.lens[now]]
    }

    #[inline(always)]
    fn fetch<H: KeyHasher>(&mut self, into: usize, table: &Table, hasher: &H) {
        let keys = self.chunks.next().unwrap_or_default();
        self.lens[into] = keys.len();
        for (place, key) in self.places[into].iter_mut().zip(keys) {
            *place = table.place(hasher.digest_key(key));
            table.prefetch(place.bin);
        }
    }
}
