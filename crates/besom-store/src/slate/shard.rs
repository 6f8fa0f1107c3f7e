//! Which of several databases a key belongs to.

use besom::{KeyHasher, Seed, Xxh3};

/// The seed of the shards' hash function. It is part of the promise, and must differ from the seeds of filters: under an equal
/// one, the keys of a shard would crowd in one part of its filter.
const SHARD_SEED: u64 = 0x5348_4152_4453_2131;

/// The shard that a key belongs to, from 0 to `shards - 1`; 0 if `shards` is 0.
///
/// This is how a database outgrows one writer: a database of its own, with a filter of its own, for every shard, and each
/// with one writer. The answer depends on the bytes of the key and the number of shards alone, on every platform and in
/// every version: it is the upper half of the product of `shards` and the upper half of the key's [XXH3](Xxh3) digest under
/// the seed `0x5348_4152_4453_2131`.
///
/// So shards are contiguous parts of the hash's range: with twice as many of them, the keys of shard `s` go to `2 s` and
/// `2 s + 1` and to no other.
///
/// ```
/// use besom_store::slate::shard_of;
///
/// assert_eq!(shard_of(b"alice", 4), 1);
/// assert_eq!(shard_of(b"alice", 4), shard_of(b"alice", 8) / 2);
/// ```
#[must_use]
pub fn shard_of(key: &[u8], shards: u32) -> u32 {
    let digest = Xxh3::with_seed(Seed::from(SHARD_SEED)).digest(key);
    // The product of a 64-bit and a 32-bit number, without its lower 64 bits.
    ((u128::from(digest.hi) * u128::from(shards)) >> u64::BITS) as u32
}

#[cfg(test)]
mod tests {
    //! Catches: a promise that is broken, shards of different sizes, shards that say something about a filter.
    use super::*;

    #[test]
    fn shards_are_what_they_always_were() {
        let keys: [&[u8]; 5] = [b"", b"a", b"alice", b"bob", &[0xff; 100]];
        assert_eq!(keys.map(|key| shard_of(key, 1 << 16)), [4636, 50421, 19561, 55065, 43246]);
        assert_eq!(keys.map(|key| shard_of(key, 1)), [0; 5]);
        assert_eq!(keys.map(|key| shard_of(key, 0)), [0; 5]);
    }

    #[test]
    fn shards_split_in_two_and_are_even() {
        for shards in [1, 3, 16] {
            let mut counts = vec![0; 2 * shards as usize];
            for key in 0..10_000_u32 {
                let (few, many) =
                    (shard_of(&key.to_le_bytes(), shards), shard_of(&key.to_le_bytes(), 2 * shards));
                assert_eq!(few, many / 2);
                counts[many as usize] += 1;
            }
            let mean = 10_000 / counts.len() as i32;
            // Five standard deviations.
            let most = 5.0 * f64::from(mean).sqrt();
            assert!(counts.iter().all(|&count| f64::from(count - mean).abs() < most), "{counts:?}");
        }
    }
}
