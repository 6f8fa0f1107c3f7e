//! An array of unsigned integers of any width up to 56 bits, packed without gaps.

use super::{AlignedWords, low_mask};
use crate::InvariantError;
use crate::error::ensure;

/// `len` slots of `width` bits each, all zero at first.
///
/// ```text
/// bytes   |0      |1      |2      |3      |4      | …
/// slots   |0        |1        |2        |3        |    slot i at bits i·width .. (i+1)·width, low bits first
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackedSlots {
    /// Looked at as bytes: eight more than the slots need, or a few more still, so that a whole word can be read from
    /// every byte that a slot begins in. What no slot uses is 0.
    words: AlignedWords,
    width: u32,
    len: usize,
}

impl PackedSlots {
    /// The widest slot: with up to 7 bits before it in its first byte, it still lies in one unaligned word.
    pub(crate) const MAX_WIDTH: u32 = 56;

    /// How many bytes this many slots take: whole words.
    pub(crate) fn bytes(len: usize, width: u32) -> Option<usize> {
        len.checked_mul(width as usize)?.div_ceil(8).checked_next_multiple_of(8)?.checked_add(8)
    }

    /// All slots zero; `None` if the memory is not available.
    pub(crate) fn new(len: usize, width: u32) -> Option<Self> {
        debug_assert!(width <= Self::MAX_WIDTH);
        Some(Self { words: AlignedWords::zeroed(Self::bytes(len, width)? / 8)?, width, len })
    }

    /// The slots that these words hold, whose number must be what [`bytes`](Self::bytes) says.
    pub(crate) fn from_words(words: AlignedWords, len: usize, width: u32) -> Self {
        debug_assert_eq!(Some(words.len() * 8), Self::bytes(len, width));
        Self { words, width, len }
    }

    /// All bytes, as [`from_words`](Self::from_words) takes them.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.words.as_bytes()
    }

    /// Checks that nothing is set behind the last slot.
    pub(crate) fn verify(&self) -> Result<(), InvariantError> {
        let end = self.len * self.width as usize;
        let bytes = &self.words.as_bytes()[end / 8..];
        let stray = bytes.iter().skip(1).fold(bytes[0] >> (end % 8), |all, byte| all | byte);
        ensure!(stray == 0, "bits set behind the last of {} slots", self.len);
        Ok(())
    }

    /// The memory in use, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.words.len() * 8
    }

    /// The bits from `bit` on; the lowest 57 of the result at least are bits of the array. `bit` must lie in a slot.
    #[inline(always)]
    pub(crate) fn window(&self, bit: usize) -> u64 {
        let bytes = self.words.as_bytes()[bit / 8..].first_chunk().expect("eight bytes follow the last slot");
        u64::from_le_bytes(*bytes) >> (bit % 8)
    }

    /// The value in slot `slot`, which must be below `len`.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> u64 {
        self.window(slot * self.width as usize) & low_mask(self.width)
    }

    /// Sets slot `slot`, which must be below `len`, to the `width` lowest bits of `value`.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, value: u64) {
        let bit = slot * self.width as usize;
        let (byte, shift) = (bit / 8, bit % 8);
        let word =
            self.words.as_bytes_mut()[byte..].first_chunk_mut().expect("eight bytes follow the last slot");
        let mask = low_mask(self.width) << shift;
        *word = (u64::from_le_bytes(*word) & !mask | value << shift & mask).to_le_bytes();
    }

    /// Sets all slots to 0.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Asks the processor to fetch the memory of `slot`.
    #[inline]
    pub(crate) fn prefetch(&self, slot: usize) {
        crate::bits::prefetch(&raw const self.words.as_bytes()[slot * self.width as usize / 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn slots_of_every_width_keep_their_values_and_their_neighbours() {
        let mut random = Random::new(3);
        for width in 1..=PackedSlots::MAX_WIDTH {
            let mut slots = PackedSlots::new(131, width).unwrap();
            let mut model = vec![0; 131];
            for _ in 0..2_000 {
                let (slot, value) = (random.below(131) as usize, random.next());
                slots.set(slot, value);
                model[slot] = value & low_mask(width);
            }
            assert!((0..131).all(|slot| slots.get(slot) == model[slot]), "width {width}");
            assert_eq!(slots.verify(), Ok(()));
            let bit = 131 * width as usize;
            slots.words.as_bytes_mut()[bit / 8] |= 1 << (bit % 8);
            assert!(slots.verify().is_err());
            slots.clear();
            assert!((0..131).all(|slot| slots.get(slot) == 0));
        }
    }

    #[test]
    fn absurd_lengths_are_refused() {
        assert!(PackedSlots::new(usize::MAX, 32).is_none());
        assert!(PackedSlots::new(usize::MAX / 64, 32).is_none());
    }
}
