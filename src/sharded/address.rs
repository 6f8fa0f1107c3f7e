//! Which addresses of the shared remote belong to which shard.
//!
//! ```text
//!  of a filter alone, by hash     | hi: 64 bits                          |
//!  of a shard                     | shard: 12 bits | upper 52 bits of hi |
//!  of a filter that moves keys    | 0: 12 bits     | address: 52 bits    |
//!  of a shard                     | shard: 12 bits | address: 52 bits    |
//! ```
//!
//! Every shard has one range of addresses. Where the address of a key is its hash, the shared one is a function of the
//! digest alone, for ever; what it lacks of `hi` is found by hashing the key again.

use std::ops::RangeInclusive;

/// Where the number of the shard begins.
const SHARD_AT: u32 = 52;

/// What an address by hash lacks.
const LACKING: u32 = u64::BITS - SHARD_AT;

/// How many shards have addresses.
pub(super) const MAX_SHARDS: usize = 1 << LACKING;

/// The address in the shared remote; `None` for one of a filter that moves keys and has too many places.
#[inline]
pub(super) fn shared(shard: usize, own: u64, by_hash: bool) -> Option<u64> {
    let rest = if by_hash { own >> LACKING } else { own };
    (rest >> SHARD_AT == 0).then_some((shard as u64) << SHARD_AT | rest)
}

/// The addresses in the shared remote among which all of these are.
pub(super) fn shared_range(shard: usize, own: &RangeInclusive<u64>, by_hash: bool) -> RangeInclusive<u64> {
    let whole = range(shard);
    let first = shared(shard, *own.start(), by_hash);
    // What is beyond the range of a shard has never been written.
    let last = shared(shard, *own.end(), by_hash).unwrap_or(*whole.end());
    first.map_or(RangeInclusive::new(1, 0), |first| first..=last)
}

/// The number of the shard, and the rest of an address in the shared remote.
#[inline]
pub(super) fn parts(shared: u64) -> (usize, u64) {
    ((shared >> SHARD_AT) as usize, shared & ((1 << SHARD_AT) - 1))
}

/// All addresses of a shard in the shared remote.
pub(super) fn range(shard: usize) -> RangeInclusive<u64> {
    let first = (shard as u64) << SHARD_AT;
    first..=first | ((1 << SHARD_AT) - 1)
}

#[cfg(test)]
mod tests {
    //! Catches: shards whose addresses meet, or change their order; a range that leaves an address out.
    use super::*;
    use crate::testing::Random;

    #[test]
    fn addresses_keep_their_order_and_lie_in_their_ranges() {
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            let shard = random.below(MAX_SHARDS as u64) as usize;
            let by_hash = random.one_in(2);
            let mut address = || random.next() >> if by_hash { 0 } else { LACKING };
            let [one, two] = [address(), address()];
            let (first, last) = (one.min(two), one.max(two));
            let [shared_first, shared_last] = [first, last].map(|own| shared(shard, own, by_hash).unwrap());
            assert!(shared_first <= shared_last && parts(shared_first).0 == shard);
            assert!(range(shard).contains(&shared_first) && range(shard).contains(&shared_last));
            assert_eq!(shared_range(shard, &(first..=last), by_hash), shared_first..=shared_last);
            if !by_hash {
                assert_eq!(parts(shared_first), (shard, first));
            }
        }
    }

    #[test]
    fn ranges_lie_side_by_side_and_fill_the_addresses() {
        for shard in 1..MAX_SHARDS {
            assert_eq!(range(shard - 1).end() + 1, *range(shard).start());
            assert_eq!(shared_range(shard, &(0..=u64::MAX), true), range(shard));
            assert_eq!(shared_range(shard, &(0..=u64::MAX), false), range(shard));
        }
        assert_eq!((*range(0).start(), *range(MAX_SHARDS - 1).end()), (0, u64::MAX));
    }

    #[test]
    fn places_beyond_the_range_have_no_address() {
        assert_eq!(shared(3, 1 << SHARD_AT, false), None);
        assert!(shared(MAX_SHARDS - 1, u64::MAX, true).is_some());
        assert!(shared_range(3, &(1 << SHARD_AT..=u64::MAX), false).is_empty());
    }
}
