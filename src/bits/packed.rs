//! An array of unsigned integers of any width up to 32 bits, packed without gaps.

use super::low_mask;

/// `len` slots of `width` bits each, all zero at first.
///
/// ```text
/// words   |0               63|64             127| …
/// slots   |0      |1      |2      |3      |4      |    slot i at bits i·width .. (i+1)·width
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackedSlots {
    /// One word more than the slots need, so that every slot can be read as part of two neighbouring words.
    words: Vec<u64>,
    width: u32,
    len: usize,
}

impl PackedSlots {
    /// The widest slot.
    pub(crate) const MAX_WIDTH: u32 = 32;

    /// How many bytes so many slots take.
    pub(crate) fn bytes(len: usize, width: u32) -> Option<usize> {
        let words = len.checked_mul(width as usize)?.div_ceil(64).checked_add(1)?;
        words.checked_mul(8)
    }

    /// All slots zero; `None` if the memory is not to be had.
    pub(crate) fn new(len: usize, width: u32) -> Option<Self> {
        debug_assert!(width <= Self::MAX_WIDTH);
        let words = Self::bytes(len, width)? / 8;
        Some(Self { words: zeroed(words)?, width, len })
    }

    /// How many slots there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The memory in use, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.words.len() * 8
    }

    /// The value in slot `slot`, which must be below `len`.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> u64 {
        let bit = slot * self.width as usize;
        let (word, shift) = (bit / 64, bit as u32 % 64);
        let pair = u128::from(self.words[word]) | u128::from(self.words[word + 1]) << 64;
        (pair >> shift) as u64 & low_mask(self.width)
    }

    /// Sets slot `slot`, which must be below `len`, to the `width` lowest bits of `value`.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, value: u64) {
        let bit = slot * self.width as usize;
        let (word, shift) = (bit / 64, bit as u32 % 64);
        let mask = u128::from(low_mask(self.width)) << shift;
        let value = u128::from(value) << shift & mask;
        self.words[word] = self.words[word] & !(mask as u64) | value as u64;
        self.words[word + 1] = self.words[word + 1] & !((mask >> 64) as u64) | (value >> 64) as u64;
    }

    /// Sets all slots to 0.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Asks the processor to fetch the memory of `slot`.
    #[inline]
    pub(crate) fn prefetch(&self, slot: usize) {
        crate::batch::prefetch(&raw const self.words[slot * self.width as usize / 64]);
    }
}

/// A vector of zeros; `None` if the memory is not to be had. Large ones cost nothing until they are touched.
pub(crate) fn zeroed(len: usize) -> Option<Vec<u64>> {
    // `vec![0; len]` asks the allocator for zeroed memory but aborts when there is none, so ask first.
    let mut probe: Vec<u64> = Vec::new();
    probe.try_reserve_exact(len).ok()?;
    drop(probe);
    Some(vec![0; len])
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
            slots.clear();
            assert!((0..slots.len()).all(|slot| slots.get(slot) == 0));
        }
    }

    #[test]
    fn absurd_lengths_are_refused() {
        assert!(PackedSlots::new(usize::MAX, 32).is_none());
        assert!(PackedSlots::new(usize::MAX / 64, 32).is_none());
    }
}
