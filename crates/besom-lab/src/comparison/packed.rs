//! An array of small numbers without gaps between them.

/// Numbers of 1 to 32 bits each, packed into words.
///
/// ```
/// use besom_lab::comparison::Packed;
///
/// let mut numbers = Packed::new(100, 11);
/// numbers.set(63, 2047);
/// assert_eq!((numbers.get(62), numbers.get(63), numbers.get(64)), (0, 2047, 0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    words: Vec<u64>,
    width: u32,
    len: usize,
}

impl Packed {
    /// `len` zeros of `width` bits, which is clamped to 1..=32.
    #[must_use]
    pub fn new(len: usize, width: u32) -> Self {
        let width = width.clamp(1, 32);
        // One word more, so that a number may be read from two words wherever it lies.
        Self { words: vec![0; (len * width as usize).div_ceil(64) + 1], width, len }
    }

    /// How many numbers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The memory in bits.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.words.len() * 64
    }

    /// Makes all numbers 0.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// All numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len).map(|index| self.get(index))
    }

    /// The number at `index`.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> u32 {
        let (word, shift) = self.place(index);
        let both = u128::from(self.words[word]) | u128::from(self.words[word + 1]) << 64;
        (both >> shift) as u32 & self.mask()
    }

    /// Changes the number at `index` to the lowest bits of `number`.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    pub fn set(&mut self, index: usize, number: u32) {
        let (word, shift) = self.place(index);
        let mask = u128::from(self.mask()) << shift;
        let both = u128::from(self.words[word]) | u128::from(self.words[word + 1]) << 64;
        let both = both & !mask | u128::from(number) << shift & mask;
        self.words[word] = both as u64;
        self.words[word + 1] = (both >> 64) as u64;
    }

    fn place(&self, index: usize) -> (usize, u32) {
        assert!(index < self.len, "index {index} of {}", self.len);
        let bit = index * self.width as usize;
        (bit / 64, (bit % 64) as u32)
    }

    fn mask(&self) -> u32 {
        (u64::MAX >> (64 - self.width)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn behaves_like_a_vector() {
        for width in [1, 3, 8, 11, 31, 32] {
            let (mut random, mut packed, mut model) =
                (Random::new(1), Packed::new(77, width), vec![0_u32; 77]);
            for _ in 0..10_000 {
                let (index, number) = (random.below(77) as usize, random.next_u64() as u32);
                packed.set(index, number);
                model[index] = (u64::from(number) & ((1 << width) - 1)) as u32;
                let other = random.below(77) as usize;
                assert_eq!(packed.get(other), model[other]);
            }
        }
    }
}
