//! Bit strings that start and end anywhere in a slice of words, 64 bits at a time.
//!
//! Bit `i` of a string is bit `i % 64` of word `i / 64`. Positions are from the start of the slice; what is
//! beyond its end reads as 0.

use super::{low_mask, rank};

/// The 64 bits from `at` on, the first of them lowest.
#[inline(always)]
pub(crate) fn read(words: &[u64], at: usize) -> u64 {
    let (word, shift) = (at / 64, at as u32 % 64);
    let low = words.get(word).map_or(0, |low| low >> shift);
    // Shifted in two steps, since `<< 64` is no shift to 0.
    let high = words.get(word + 1).map_or(0, |high| high << 1 << (63 - shift));
    low | high
}

/// Replaces the `count` bits (at most 64) from `at` on by the lowest of `value`. They must be in the slice.
#[inline(always)]
pub(crate) fn write(words: &mut [u64], at: usize, count: u32, value: u64) {
    let (word, shift) = (at / 64, at as u32 % 64);
    let mask = low_mask(count);
    let value = value & mask;
    words[word] = words[word] & !(mask << shift) | value << shift;
    if shift + count > 64 {
        words[word + 1] = words[word + 1] & !(mask >> (64 - shift)) | value >> (64 - shift);
    }
}

/// Copies `len` bits from position `from_at` of one slice to position `to_at` of another.
#[inline]
pub(crate) fn copy(from: &[u64], from_at: usize, to: &mut [u64], to_at: usize, len: usize) {
    let mut done = 0;
    while done < len {
        let count = (len - done).min(64);
        write(to, to_at + done, count as u32, read(from, from_at + done));
        done += count;
    }
}

/// How many of the `len` bits from `at` on are set.
#[inline]
pub(crate) fn count_ones(words: &[u64], at: usize, len: usize) -> usize {
    let chunks = (0..len).step_by(64);
    chunks.map(|done| rank(read(words, at + done), (len - done).min(64) as u32) as usize).sum()
}

/// How many bits lie between `at` and the set bit that has `k` set bits before it, counted from `at` on; `None`
/// if there are fewer. `select` finds a bit in one word, as [`super::select`] does.
#[inline(always)]
pub(crate) fn select_from(
    words: &[u64],
    at: usize,
    k: usize,
    select: impl Fn(u64, u32) -> u32,
) -> Option<usize> {
    let mut left = k;
    for done in (0..(words.len() * 64).saturating_sub(at)).step_by(64) {
        let word = read(words, at + done);
        let ones = word.count_ones() as usize;
        if left < ones {
            return Some(done + select(word, left as u32) as usize);
        }
        left -= ones;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn bit(words: &[u64], at: usize) -> bool {
        words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    #[test]
    fn strings_at_every_position_read_as_their_single_bits_and_zeros_beyond_the_end() {
        let mut random = Random::new(71);
        let words: Vec<u64> = (0..4).map(|_| random.next()).collect();
        for at in 0..330 {
            let expected = (0..64).fold(0, |value, i| value | u64::from(bit(&words, at + i)) << i);
            assert_eq!(read(&words, at), expected, "at {at}");
        }
    }

    #[test]
    fn writes_and_copies_change_their_bits_and_no_others() {
        let mut random = Random::new(72);
        for _ in 0..20_000 {
            let before: Vec<u64> = (0..5).map(|_| random.next()).collect();
            let from: Vec<u64> = (0..5).map(|_| random.next()).collect();
            let len = random.below(200) as usize;
            let (from_at, at) = (random.below(120) as usize, random.below((321 - len) as u64) as usize);
            let mut after = before.clone();
            copy(&from, from_at, &mut after, at, len);
            for i in 0..320 {
                let inside = (at..at + len).contains(&i);
                let expected = if inside { bit(&from, from_at + i - at) } else { bit(&before, i) };
                assert_eq!(bit(&after, i), expected, "bit {i} of {len} bits from {from_at} to {at}");
            }
        }
    }

    #[test]
    fn counting_and_selecting_agree_with_single_bits() {
        let mut random = Random::new(73);
        for _ in 0..2_000 {
            let words: Vec<u64> = (0..4).map(|_| random.next() & random.next()).collect();
            let (at, len) = (random.below(120) as usize, random.below(140) as usize);
            let ones: Vec<usize> = (0..256 - at).filter(|i| bit(&words, at + i)).collect();
            assert_eq!(count_ones(&words, at, len), ones.iter().filter(|&&i| i < len).count());
            for k in 0..=ones.len() {
                assert_eq!(select_from(&words, at, k, crate::bits::select), ones.get(k).copied());
            }
        }
    }
}
