//! The balanced Bloom filter (Kanizo, Hay and Keslassy, 2012), and the blocked Bloom filter that it improves.

use std::collections::HashSet;

use besom::{Digest, Filter, FilterStats, FullError, Insert, InvariantError, KeyHasher, Xxh3};

use super::{answer_alike, below, ensure, poisson, probes, stats};

/// The bits of a block: 32 bytes, the memory word of the paper.
const BLOCK: usize = 256;

/// The bits of a block that count its keys, where the load is balanced.
const COUNTER: usize = 6;

/// The share of the keys that may go to the overflow list.
const OVERFLOW: f64 = 0.0049;

/// A Bloom filter in blocks of 32 bytes, one of them per key.
///
/// *Balanced*, a block takes only this many keys; later ones go to an exact overflow list, which the paper keeps in a
/// memory of its own and does not count. This is the paper's scheme of a single choice. *Blocked*, it takes them all.
///
/// ```
/// use besom::{Filter, Insert};
/// use besom_lab::comparison::BalancedBloomFilter;
///
/// let mut filter = BalancedBloomFilter::balanced(1000, 10.0, 7);
/// filter.insert("key")?;
/// assert!(filter.contains("key"));
/// # Ok::<(), besom::FullError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BalancedBloomFilter {
    hash: Xxh3,
    words: Vec<u64>,
    blocks: usize,
    /// The bits of a block, and those that keys set.
    block: usize,
    width: usize,
    probes: u32,
    /// The most keys of a block, and how many each has; none for a filter that is only blocked.
    balance: Option<(u8, Vec<u8>)>,
    overflow: HashSet<Digest>,
    items: usize,
    capacity: usize,
}

impl BalancedBloomFilter {
    /// A filter for that many keys with that many bits for each, the overflow list (0.49% of the keys) not counted.
    #[must_use]
    pub fn balanced(keys: usize, bits_per_key: f64, seed: u64) -> Self {
        let (blocks, load) = layout(keys, bits_per_key);
        let width = BLOCK - COUNTER;
        let most = (1..1 << COUNTER).find(|&most| overflowing(load, most) <= OVERFLOW);
        let most = most.unwrap_or((1 << COUNTER) - 1);
        let expected = |&probes: &u32| expected_rate(load, most, width, probes);
        let probes = (1..=24).min_by(|a, b| expected(a).total_cmp(&expected(b))).unwrap_or(1);
        let balance = Some((most as u8, vec![0; blocks]));
        Self { balance, ..Self::new(keys, blocks, (BLOCK, width), probes, seed) }
    }

    /// A filter that is only blocked, with as many probes as an ordinary Bloom filter of this many bits for each key.
    #[must_use]
    pub fn blocked(keys: usize, bits_per_key: f64, seed: u64) -> Self {
        Self::blocked_with(usual_probes(bits_per_key), keys, bits_per_key, seed)
    }

    /// A filter that is only blocked, with this many probes.
    #[must_use]
    pub fn blocked_with(probes: u32, keys: usize, bits_per_key: f64, seed: u64) -> Self {
        let (blocks, _) = layout(keys, bits_per_key);
        Self::new(keys, blocks, (BLOCK, BLOCK), probes, seed)
    }

    /// One block of all bits: an ordinary Bloom filter that, unlike the library's, takes more keys than planned.
    #[must_use]
    pub fn ordinary(keys: usize, bits_per_key: f64, seed: u64) -> Self {
        let bits = (keys as f64 * bits_per_key / 64.0).round().max(1.0) as usize * 64;
        Self::new(keys, 1, (bits, bits), usual_probes(bits_per_key), seed)
    }

    /// A filter that is not balanced.
    fn new(keys: usize, blocks: usize, (block, width): (usize, usize), probes: u32, seed: u64) -> Self {
        Self {
            hash: Xxh3::with_seed(seed.into()),
            words: vec![0; blocks * block / 64],
            blocks,
            block,
            width,
            probes,
            balance: None,
            overflow: HashSet::new(),
            items: 0,
            capacity: keys,
        }
    }

    /// The words and bits that a key sets.
    fn bits(&self, digest: Digest) -> impl Iterator<Item = (usize, u64)> {
        let start = below(digest.hi, self.blocks) * self.block;
        let bits = probes(digest, self.probes, self.width);
        bits.map(move |bit| ((start + bit) / 64, 1 << (bit % 64)))
    }
}

impl Filter for BalancedBloomFilter {
    answer_alike!();

    type Place = Digest;

    fn place(&self, digest: Digest) -> Digest {
        digest
    }

    fn contains_at(&self, digest: Digest, _: impl FnOnce() -> Digest) -> bool {
        self.bits(digest).all(|(word, bit)| self.words[word] & bit != 0) || self.overflow.contains(&digest)
    }

    fn false_positive_rate(&self) -> f64 {
        let (keys, most) =
            (self.capacity as f64, self.balance.as_ref().map_or(usize::MAX, |(most, _)| (*most).into()));
        if self.blocks == 1 {
            return block_rate(self.capacity.min(most), self.width, self.probes);
        }
        expected_rate(keys / self.blocks as f64, most, self.width, self.probes)
    }

    fn stats(&self) -> FilterStats {
        // The counters are part of the blocks, if in a vector of their own here.
        stats(self.items, self.blocks * self.block, self.blocks * self.block)
    }

    fn verify(&self) -> Result<(), InvariantError> {
        let overfull = |(most, counts): &(u8, Vec<u8>)| counts.iter().any(|count| count > most);
        ensure(!self.balance.as_ref().is_some_and(overfull), || "a block has too many keys".into())
    }
}

/// Never full: what a block does not take goes to the overflow list.
impl Insert for BalancedBloomFilter {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, FullError> {
        let new = !self.contains_digest(digest);
        self.items += 1;
        if let Some((most, counts)) = &mut self.balance {
            let count = &mut counts[below(digest.hi, self.blocks)];
            if *count == *most {
                self.overflow.insert(digest);
                return Ok(new);
            }
            *count += 1;
        }
        let bits: Vec<(usize, u64)> = self.bits(digest).collect();
        bits.into_iter().for_each(|(word, bit)| self.words[word] |= bit);
        Ok(new)
    }

    fn clear(&mut self) {
        self.words.fill(0);
        if let Some((_, counts)) = &mut self.balance {
            counts.fill(0);
        }
        self.overflow.clear();
        self.items = 0;
    }
}

/// The probes of an ordinary Bloom filter of this many bits a key.
fn usual_probes(bits_per_key: f64) -> u32 {
    (bits_per_key * std::f64::consts::LN_2).round().max(1.0) as u32
}

/// How many blocks, and how many keys in each on average.
fn layout(keys: usize, bits_per_key: f64) -> (usize, f64) {
    let blocks = (keys as f64 * bits_per_key / BLOCK as f64).round().max(1.0) as usize;
    (blocks, keys as f64 / blocks as f64)
}

/// The share of keys that find their block full.
fn overflowing(load: f64, most: usize) -> f64 {
    let beyond = |(keys, probability): (usize, f64)| probability * keys.saturating_sub(most) as f64;
    poisson(load).enumerate().map(beyond).sum::<f64>() / load
}

/// The false-positive rate of blocks that take at most `most` keys.
fn expected_rate(load: f64, most: usize, width: usize, probes: u32) -> f64 {
    let blocks = poisson(load).enumerate();
    blocks.map(|(keys, probability)| probability * block_rate(keys.min(most), width, probes)).sum()
}

/// The false-positive rate of a block with so many keys.
fn block_rate(keys: usize, width: usize, probes: u32) -> f64 {
    let unset = (1.0 - 1.0 / width as f64).powf(keys as f64 * f64::from(probes));
    (1.0 - unset).powi(probes as i32)
}
