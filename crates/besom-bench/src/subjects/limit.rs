//! The machine's limit: what any filter must do at least, and nothing else.

use besom::{Digest, KeyHasher, Xxh3};

use crate::subject::{BATCH, Entry, Failure, Shape, Subject};

/// One hash and one random cache line per operation, in a table of a quotient filter's size.
pub(crate) fn limit() -> Entry {
    Entry {
        name: "limit",
        note: "no filter: one XXH3-128 and one random cache line of a table of log2(1/rate) + 2.25 bits a slot",
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
        self.lines[self.line(digest)].0[digest.lo as usize % 8] == digest.lo
    }
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

    /// Hashes a batch first: then the reads follow each other closely, and as many misses overlap as the processor
    /// can keep under way.
    fn count_batched(&self, keys: &[u64]) -> Option<usize> {
        let mut digests = [Digest { hi: 0, lo: 0 }; BATCH];
        let count = |batch: &[u64]| {
            for (digest, key) in digests.iter_mut().zip(batch) {
                *digest = self.hash.digest_key(key);
            }
            digests[..batch.len()].iter().filter(|digest| self.ask(**digest)).count()
        };
        Some(keys.chunks(BATCH).map(count).sum())
    }

    fn is_filter(&self) -> bool {
        false
    }
}
