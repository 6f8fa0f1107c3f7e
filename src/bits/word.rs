//! Rank and select in one 64-bit word.

/// The `count` lowest bits set; all of them for 64 and more.
#[inline(always)]
pub(crate) const fn low_mask(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// How many bits are set below position `position`.
#[inline(always)]
pub(crate) const fn rank(word: u64, position: u32) -> u32 {
    (word & low_mask(position)).count_ones()
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// The position of the set bit that has `k` set bits below it (`k` below 128); 64 if there is none.
///
/// Portable: no loop and no branch, one table of 2 KiB.
#[inline(always)]
pub(crate) const fn select(word: u64, k: u32) -> u32 {
    select_by_counts(word, byte_counts(word), k)
}

/// How many bits of each byte are set, in the byte.
#[inline(always)]
pub(crate) const fn byte_counts(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f
}

/// [`select`] for those who have the [`byte_counts`] of the word already.
#[inline(always)]
pub(crate) const fn select_by_counts(word: u64, counts: u64, k: u32) -> u32 {
    let (position, exists) = find_by_counts(word, counts, k);
    if exists { position } else { 64 }
}

/// What [`select_by_counts`] finds, or anything below 64; and whether it finds something.
#[inline(always)]
pub(crate) const fn find_by_counts(word: u64, counts: u64, k: u32) -> (u32, bool) {
    debug_assert!(k < 128);
    // In each byte 127 − k, and the set bits up to and including the byte: at least 128 iff more than k. No sum exceeds
    // 127 + 64, so no carry crosses.
    let sums = counts.wrapping_add(127 - k as u64).wrapping_mul(ONES);
    let above = sums & TOPS;
    // The byte that the bit is in, times 8: the first with more than k. Nonsense if there is none, as what follows.
    let byte = above.trailing_zeros() & 56;
    // 127 − k, and the set bits below the byte: the bit's rank in the byte, subtracted from 127.
    let rest = (sums.wrapping_sub(counts) >> byte) as usize & 7;
    let in_byte = SELECT_IN_BYTE[rest << 8 | (word >> byte) as usize & 0xff];
    ((byte + in_byte as u32) & 63, above != 0)
}

/// At `[7 − k << 8 | byte]`: the position of the set bit of `byte` that has `k` set bits below it.
static SELECT_IN_BYTE: [u8; 8 * 256] = {
    let mut table = [8; 8 * 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut position, mut k) = (0, 0);
        while position < 8 {
            if byte >> position & 1 == 1 {
                table[(7 - k) << 8 | byte] = position as u8;
                k += 1;
            }
            position += 1;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// One bit after the other: the definition.
    fn select_naive(word: u64, k: u32) -> u32 {
        (0..64).filter(|position| word >> position & 1 == 1).nth(k as usize).unwrap_or(64)
    }

    fn interesting_words() -> Vec<u64> {
        let mut words =
            vec![0, u64::MAX, 0x8000_0000_0000_0001, 0x5555_5555_5555_5555, 0xff00_ff00_ff00_ff00];
        words.extend((0..64).map(|bit| 1 << bit));
        words.extend((0..64).map(|bit| u64::MAX << bit));
        words.extend((0..64).map(|bit| u64::MAX >> bit));
        words.extend((0..8).flat_map(|byte| (0..256).map(move |value| value << (8 * byte))));
        let mut random = Random::new(2);
        words.extend((0..2_000).map(|_| random.next()));
        words.extend((0..2_000).map(|_| random.next() & random.next() & random.next()));
        words.extend((0..2_000).map(|_| random.next() | random.next() | random.next()));
        words
    }

    #[test]
    fn select_finds_the_kth_bit_and_rank_counts_those_below_it() {
        for word in interesting_words() {
            for k in 0..70 {
                let position = select(word, k);
                assert_eq!(position, select_naive(word, k), "select({word:#x}, {k})");
                assert_eq!(rank(word, position), k.min(word.count_ones()), "rank({word:#x}, {position})");
            }
        }
    }
}
