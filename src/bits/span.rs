//! Bits at any place in a string of words: reading, writing and copying them a word at a time.

use super::low_mask;

/// The `len` bits (at most 64) from a place on; zeros behind the last word.
#[inline]
pub(crate) fn read_bits(words: &[u64], at: usize, len: u32) -> u64 {
    let (word, shift) = (at / 64, at as u32 % 64);
    let word_at = |index: usize| words.get(index).copied().unwrap_or(0);
    // What the next word has too much is cut off. No branch on whether it is needed, which nobody could predict.
    let value = word_at(word) >> shift | word_at(word + 1) << 1 << (63 - shift);
    value & low_mask(len)
}

/// Puts the `len` lowest bits (at most 64) of `value` at a place that the words have; the others stay.
pub(crate) fn write_bits(words: &mut [u64], at: usize, len: u32, value: u64) {
    let (word, shift, mask) = (at / 64, at as u32 % 64, low_mask(len));
    if len == 0 {
        return;
    }
    let value = value & mask;
    words[word] = words[word] & !(mask << shift) | value << shift;
    if shift + len > 64 {
        let up = 64 - shift;
        words[word + 1] = words[word + 1] & !(mask >> up) | value >> up;
    }
}

/// Copies `len` bits from one string to a place of another.
pub(crate) fn copy_bits(from: &[u64], from_at: usize, to: &mut [u64], to_at: usize, len: usize) {
    for done in (0..len).step_by(64) {
        let part = (len - done).min(64) as u32;
        write_bits(to, to_at + done, part, read_bits(from, from_at + done, part));
    }
}

#[cfg(test)]
mod tests {
    //! Catches: bits that are lost or changed where a field crosses a word, or next to it.
    use super::*;
    use crate::testing::Random;

    fn bit(words: &[u64], at: usize) -> u64 {
        words[at / 64] >> (at % 64) & 1
    }

    #[test]
    fn fields_are_the_bits_one_by_one() {
        let mut random = Random::new(21);
        for _ in 0..5_000 {
            let before: Vec<u64> = (0..4).map(|_| random.next()).collect();
            let (at, len) = (random.below(193) as usize, random.below(65) as u32);
            let value = random.next();
            let mut words = before.clone();
            write_bits(&mut words, at, len, value);
            assert_eq!(read_bits(&words, at, len), value & low_mask(len));
            let field = at..at + len as usize;
            for place in 0..256 {
                let expected =
                    if field.contains(&place) { value >> (place - at) & 1 } else { bit(&before, place) };
                assert_eq!(bit(&words, place), expected, "{place} after {len} bits at {at}");
            }
        }
        assert_eq!(read_bits(&[u64::MAX], 60, 10), 15);
        assert_eq!(read_bits(&[u64::MAX], 100, 64), 0);
    }

    #[test]
    fn copies_are_exact_and_leave_the_rest() {
        let mut random = Random::new(22);
        for _ in 0..5_000 {
            let from: Vec<u64> = (0..5).map(|_| random.next()).collect();
            let before: Vec<u64> = (0..6).map(|_| random.next()).collect();
            let len = random.below(250) as usize;
            let from_at = random.below(320 - len as u64) as usize;
            let to_at = random.below(384 - len as u64) as usize;
            let mut to = before.clone();
            copy_bits(&from, from_at, &mut to, to_at, len);
            for place in 0..384 {
                let inside = (to_at..to_at + len).contains(&place);
                let expected = if inside { bit(&from, from_at + place - to_at) } else { bit(&before, place) };
                assert_eq!(bit(&to, place), expected);
            }
        }
    }
}
