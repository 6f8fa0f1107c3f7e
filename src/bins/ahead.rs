//! The places of many keys, some at a time, with the lines of those that follow on their way.

use std::slice::Chunks;

use super::line::Fingerprint;
use super::table::{Place, STEP, Table};

/// How many steps the fetching is ahead of the work. With [`STEP`] keys in each, enough to cover the latency of a miss,
/// few enough for the processor's fill buffers.
const DISTANCE: usize = 2;

/// Buffers for those under way and the one that is worked on; a power of two.
const BUFFERS: usize = 4;

/// The places of keys, [`STEP`] at a time: while these are worked on, the lines of the next ones are fetched.
pub(crate) struct Ahead<'k, K, P> {
    chunks: Chunks<'k, K>,
    /// Where a key belongs in the table.
    locate: P,
    places: [[Place; STEP]; BUFFERS],
    /// How many places there are in each.
    lens: [usize; BUFFERS],
    /// The number of the step that comes next.
    step: usize,
}

impl<'k, K, P: Fn(&Table, &K) -> Place> Ahead<'k, K, P> {
    #[inline(always)]
    pub(crate) fn new(keys: &'k [K], table: &Table, locate: P) -> Self {
        let nowhere = Place { bin: 0, print: Fingerprint(0) };
        let (places, lens) = ([[nowhere; STEP]; BUFFERS], [0; BUFFERS]);
        let mut ahead = Self { chunks: keys.chunks(STEP), locate, places, lens, step: 0 };
        for step in 0..DISTANCE {
            ahead.fetch(step, table);
        }
        ahead
    }

    /// The next places; none behind the last key.
    #[inline(always)]
    pub(crate) fn next(&mut self, table: &Table) -> &[Place] {
        let now = self.step % BUFFERS;
        self.fetch((self.step + DISTANCE) % BUFFERS, table);
        self.step += 1;
        &self.places[now][..self.lens[now]]
    }

    #[inline(always)]
    fn fetch(&mut self, buffer: usize, table: &Table) {
        let keys = self.chunks.next().unwrap_or_default();
        self.lens[buffer] = keys.len();
        for (place, key) in self.places[buffer].iter_mut().zip(keys) {
            *place = (self.locate)(table, key);
            table.prefetch(place.bin);
        }
    }
}

/// The queries of a batch that need the second level. They are asked at its end: a branch for each would be
/// mispredicted, and would hold up the lines that are on their way.
pub(crate) struct Doubts {
    /// The queries, as bits.
    noted: [u64; Self::MOST / 64],
    /// The number of the next query.
    next: usize,
}

impl Doubts {
    /// How many there can be.
    pub(crate) const MOST: usize = 1024;

    pub(crate) fn new() -> Self {
        Self { noted: [0; Self::MOST / 64], next: 0 }
    }

    /// Notes those of the next [`STEP`] queries that are in doubt, which are bits. For [`MOST`](Self::MOST) queries at
    /// most.
    #[inline(always)]
    pub(super) fn note(&mut self, doubts: u64) {
        // A step lies in one word: their numbers are powers of two.
        self.noted[self.next / 64 % (Self::MOST / 64)] |= doubts << (self.next % 64);
        self.next += STEP;
    }

    /// The numbers of the queries that were noted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.noted.iter().enumerate().flat_map(|(word, &noted)| {
            let mut rest = noted;
            std::iter::from_fn(move || {
                let query = (rest != 0).then(|| word * 64 + rest.trailing_zeros() as usize);
                rest &= rest.wrapping_sub(1);
                query
            })
        })
    }
}
