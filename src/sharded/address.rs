//! Which addresses of the shared remote belong to which shard.
//!
//! ```text
//!  of a filter alone   | generation: 16 bits |            place: 48 bits            |
//!  of a shard          | shard: 12 bits | generation: 16 bits | place: 36 bits      |
//! ```
//!
//! Every shard has one range of addresses, in which its own are in the order that they have alone. A filter whose addresses
//! are slots or quotients of its table, with a generation above them or without, has room: 2^36 places are 80 gigabytes of
//! any filter. A shard that would need more is full.

use std::ops::RangeInclusive;

/// Where the generation begins in the address of a filter alone.
const GENERATION_AT: u32 = 48;

/// The width of a place in the address of a shard.
const PLACE_BITS: u32 = 36;

/// Where the number of the shard begins.
const SHARD_AT: u32 = PLACE_BITS + u64::BITS - GENERATION_AT;

/// How many shards have addresses.
pub(super) const MAX_SHARDS: usize = 1 << (u64::BITS - SHARD_AT);

/// The address in the shared remote; `None` for a place that is beyond what a shard can have.
#[inline]
pub(super) fn shared(shard: usize, own: u64) -> Option<u64> {
    let (generation, place) = (own >> GENERATION_AT, own & ((1 << GENERATION_AT) - 1));
    (place >> PLACE_BITS == 0).then_some((shard as u64) << SHARD_AT | generation << PLACE_BITS | place)
}

/// The shard of an address in the shared remote, and the address there.
#[inline]
pub(super) fn own(shared: u64) -> (usize, u64) {
    let (shard, rest) = (shared >> SHARD_AT, shared & ((1 << SHARD_AT) - 1));
    let (generation, place) = (rest >> PLACE_BITS, rest & ((1 << PLACE_BITS) - 1));
    (shard as usize, generation << GENERATION_AT | place)
}

/// All addresses of a shard in the shared remote.
pub(super) fn range(shard: usize) -> RangeInclusive<u64> {
    let first = (shard as u64) << SHARD_AT;
    first..=first | ((1 << SHARD_AT) - 1)
}

#[cfg(test)]
mod tests {
    //! Catches: shards whose addresses meet, or change their order.
    use super::*;
    use crate::testing::Random;

    #[test]
    fn addresses_lead_back_and_keep_their_order() {
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            let shard = random.below(MAX_SHARDS as u64) as usize;
            let mut address =
                || random.below(1 << 16) << GENERATION_AT | random.next() >> (28 + random.below(36));
            let [one, two] = [address(), address()];
            let [first, second] = [one, two].map(|own| shared(shard, own).unwrap());
            assert_eq!((own(first), own(second)), ((shard, one), (shard, two)));
            assert_eq!(first.cmp(&second), one.cmp(&two));
            assert!(range(shard).contains(&first));
        }
    }

    #[test]
    fn ranges_lie_side_by_side_and_fill_the_addresses() {
        for shard in 1..MAX_SHARDS {
            assert_eq!(range(shard - 1).end() + 1, *range(shard).start());
        }
        assert_eq!((*range(0).start(), *range(MAX_SHARDS - 1).end()), (0, u64::MAX));
    }

    #[test]
    fn places_beyond_the_range_have_no_address() {
        assert_eq!(shared(3, 1 << PLACE_BITS), None);
        assert_eq!(shared(3, (1 << GENERATION_AT) - 1), None);
        assert!(shared(MAX_SHARDS - 1, (u64::MAX << GENERATION_AT) | ((1 << PLACE_BITS) - 1)).is_some());
    }
}
