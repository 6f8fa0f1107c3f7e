//! The machine's limit: what any filter must do at least, and nothing else.

use besom::{Digest, KeyHasher, Xxh3};

use crate::subject::{BATCH, Entry, Failure, Shape, Subject};

/// One hash and one random cache line per operation, in a table of a quotient filter's size.
pub(crate) fn limit() -> Entry {
    Entry {
        name: "limit",
        note:
            "no filter: one XXH3-128 and one random cache line of a table of log2(1/rate) + 2.25 bits a slot"
                .into(),
        build: Box::new(|shape| Ok(Box::new(Limit::new(shape)))),
        remote: false,
        bare: None,
    }
}

#[derive(Clone)]
#[repr(align(64))]
struct Line([u64; 8]);

struct Limit {
    hash: Xxh3,
    lines: Box<[Line]>,
}

impl Limit {
    fn new(shape: &Shape) -> Self {
        let bits = shape.slots() as f64 * (-shape.rate.log2() + 2.25);
        let lines = (bits / 512.0).ceil().max(1.0) as usize;
        Self { hash: Xxh3::with_seed(shape.seed.into()), lines: vec![Line([0; 8]); lines].into() }
    }

    #[inline(always)]
    fn line(&self, digest: Digest) -> usize {
        ((u128::from(digest.hi) * self.lines.len() as u128) >> 64) as usize
    }

    #[inline(always)]
    fn ask(&self, digest: Digest) -> bool {
        self.ask_line(self.line(digest), digest.lo)
    }

    #[inline(always)]
    fn ask_line(&self, line: usize, lo: u64) -> bool {
        self.lines[line].0[lo as usize % 8] == lo
    }

    /// How many of the keys may be present. The lines of [`AHEAD`] of them are on their way while one is read.
    fn count_ahead(&self, keys: &[u64]) -> usize {
        let mut under_way = [(0, 0); AHEAD];
        let mut count = 0;
        for (number, key) in keys.iter().enumerate() {
            let digest = self.hash.digest_key(key);
            let line = self.line(digest);
            fetch(&self.lines[line]);
            let (line, lo) = std::mem::replace(&mut under_way[number % AHEAD], (line, digest.lo));
            // The first ones find nothing to read.
            count += usize::from((number >= AHEAD) & self.ask_line(line, lo));
        }
        let rest = keys.len().saturating_sub(AHEAD)..keys.len();
        count
            + rest
                .filter(|number| self.ask_line(under_way[number % AHEAD].0, under_way[number % AHEAD].1))
                .count()
    }
}

/// How many keys are under way: enough to cover the latency of a miss, few enough for the fill buffers.
const AHEAD: usize = 32;

/// Asks the processor to fetch a line.
#[inline(always)]
fn fetch(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can observe; SSE is part of every x86-64 processor.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(std::ptr::from_ref(line).cast(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

impl Subject for Limit {
    fn insert_all(&mut self, keys: &[u64]) -> Result<(), Failure> {
        for key in keys {
            let digest = self.hash.digest_key(key);
            let line = self.line(digest);
            self.lines[line].0[digest.lo as usize % 8] ^= digest.lo;
        }
        Ok(())
    }

    fn count(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.ask(self.hash.digest_key(*key))).count()
    }

    /// Keys are hashed a little ahead of the reads, and their lines fetched: as many misses overlap as the processor
    /// can keep under way, and hashing goes on meanwhile.
    fn count_batched(&self, keys: &[u64]) -> Option<usize> {
        Some(keys.chunks(BATCH).map(|batch| self.count_ahead(batch)).sum())
    }

    fn is_filter(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: keys that a batch asks for twice or not at all.
    #[test]
    fn batches_count_like_single_queries() {
        let shape = Shape { items: 2_000, load: 0.9, rate: 0.5, seed: 3 };
        let mut limit = Limit::new(&shape);
        let keys: Vec<u64> = (0..2_000).collect();
        limit.insert_all(&keys[..50]).unwrap();
        for len in [0, 1, 31, 32, 33, 1_023, 1_024, 1_025, 2_000] {
            assert_eq!(limit.count_batched(&keys[..len]), Some(limit.count(&keys[..len])), "{len} keys");
        }
        assert!(limit.count(&keys[..50]) > 20);
    }
}
