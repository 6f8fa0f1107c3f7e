//! What rivals know of the queries beforehand, or in hindsight.

use besom::{KeyHasher, Seed, Xxh3};
use besom_lab::comparison::{Lru, Sample};

use super::contender::Space;
use super::queries::Queries;
use crate::error::Outcome;
use crate::output::thousands;

/// What the stream is like.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stream {
    /// Queries for absent keys.
    pub(crate) absent: u64,
    /// Those of them whose key had been asked for before.
    pub(crate) repeated: u64,
}

/// What is told to those who ask for it.
#[derive(Debug, Default)]
pub(crate) struct Training {
    /// Absent keys that were asked for before the queries that are measured.
    pub(super) sample: Sample,
    /// How many queries that was.
    pub(crate) sampled: u64,
    /// The bytes of the cache beside a Bloom filter.
    pub(crate) cache_bytes: usize,
    pub(crate) stream: Stream,
}

/// Queries that the cache's size is chosen with, at most: 8 bytes each while it is being chosen.
const MOST: usize = 1 << 23;

impl Training {
    /// Ranks the absent keys of `sample`, and chooses the size of the cache for `queries` if one is asked for.
    pub(super) fn new(
        sample: Option<&Queries>,
        queries: &Queries,
        cache: bool,
        keys: usize,
        space: Space,
    ) -> Outcome<Self> {
        let mut hashes = absent_hashes(queries)?;
        let cache_bytes = match space {
            Space::BitsPerKey(bits) if cache => Lru::best_split(keys, bits * keys as f64, &hashes),
            _ => 0,
        };
        let absent = hashes.len() as u64;
        hashes.sort_unstable();
        hashes.dedup();
        let stream = Stream { absent, repeated: absent - hashes.len() as u64 };
        let (mut unknown, mut sampled) = (Vec::new(), 0);
        if let Some(sample) = sample {
            sample.replay(&mut |chunk| {
                let keys = chunk.iter().filter(|(_, stored)| !stored);
                unknown.extend(keys.map(|(key, _)| Box::<[u8]>::from(key)));
                Ok(true)
            })?;
            sampled = sample.len();
        }
        let sample = Sample::of(unknown.iter().map(AsRef::as_ref));
        Ok(Self { sample, sampled, cache_bytes, stream })
    }
}

impl Training {
    /// Who was told what, in a sentence; nothing where nobody was.
    pub(super) fn describe(&self) -> String {
        let sample = match self.sampled {
            0 => String::new(),
            queries => {
                format!(" Stacked filters are trained on {} queries before these.", thousands(queries))
            }
        };
        let cache = match self.cache_bytes {
            0 => String::new(),
            bytes => format!(
                " The cache of bloom+cache has {} bytes of the space, chosen in hindsight.",
                thousands(bytes as u64)
            ),
        };
        sample + &cache
    }
}

/// A hash of each query for an absent key, in order.
fn absent_hashes(queries: &Queries) -> Outcome<Vec<u64>> {
    let hash = Xxh3::with_seed(Seed::from(0x7370_6c69_u64));
    let mut hashes = Vec::new();
    queries.replay(&mut |chunk| {
        hashes.extend(chunk.iter().filter(|(_, stored)| !stored).map(|(key, _)| hash.digest(key).lo));
        Ok(hashes.len() < MOST)
    })?;
    Ok(hashes)
}
