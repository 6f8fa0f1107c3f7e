//! How an interval is divided among selectors (paper, C.3).

use super::{Letters, Share};

/// The highest selector that a code may hold: queries look for as many chunks, and no more.
pub(crate) const HIGHEST_CHUNK: u32 = 4;

/// Which chunk of its key's hash string a slot holds. Codes carry the small ones, side stores any.
pub(crate) type Selector = u16;

/// The probabilities that a code assumes of selectors: 0 has the probability 1 − 2^-x, and i > 0 has
/// 2^-x · (1 − 2^-y) · 2^-y(i−1) (paper, C.3).
///
/// The paper has a code of its own for ε = 2^-8 (C.2), tuned to the selectors after 50n queries. It is not used here:
/// in blocks of 46 slots and 46 bits it holds a twelfth fewer repairs than this one with x = 2 and y = 3 until one
/// block in a hundred overflows, and takes longer to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selectors {
    /// Selector 0 is left with probability 2^-x.
    x: u32,
    /// Every further step has probability 2^-y.
    y: u32,
}

#[cfg(test)]
impl Selectors {
    /// Any x and y.
    pub(super) fn new(x: u32, y: u32) -> Self {
        Self { x, y }
    }
}

impl Letters for Selectors {
    type Letter = Selector;

    const STRINGS: bool = false;

    /// As was measured for shapes of 2 to 14 eighths of a bit a slot, until one block in a hundred overflows. What is
    /// next to the best holds at most a tenth less.
    fn for_code(r: u32, bits: u32, slots: u32) -> Self {
        match 8 * bits / slots {
            0..4 => Self { x: 4, y: 3 },
            4..6 => Self { x: 3, y: 3 },
            6..10 => Self { x: 2, y: if r <= 4 { 2 } else { 3 } },
            _ => Self { x: 1, y: 2 },
        }
    }

    /// The highest chunk that a probe can look for, of those in the first word of a key's string: so a probe sees all
    /// selectors that codes hold.
    fn highest_coded(r: u32) -> u32 {
        (u64::BITS / r - 1).min(HIGHEST_CHUNK)
    }

    fn number(letter: Selector) -> u64 {
        letter.into()
    }

    fn letter(number: u64) -> Option<Selector> {
        number.try_into().ok()
    }

    #[inline]
    fn rank(letter: Selector) -> u32 {
        letter.into()
    }

    #[inline]
    fn bits(_: Selector) -> u64 {
        0
    }

    #[inline]
    fn from_rank(rank: u32, _: u64) -> Selector {
        rank as Selector
    }

    #[inline]
    fn initial(self, range: u64) -> u64 {
        range - (range >> self.x)
    }

    #[inline]
    fn share(self, range: u64, letter: Selector) -> Option<Share> {
        // All letters from this one on together; the shares before it have the rest.
        let steps = self.y * u32::from(letter - 1).min(64);
        let tail = (range >> self.x).checked_shr(steps).unwrap_or(0);
        let (start, size) = (range - tail, tail - (tail >> self.y));
        (size > 0).then_some(Share { start, size })
    }

    #[inline]
    fn letter_at(self, range: u64, offset: u64) -> (Selector, Share) {
        let (mut start, mut letter) = (self.initial(range), 1);
        // `offset` is below `range`, so it lies in one of the shares before the tail is used up.
        loop {
            let tail = range - start;
            let size = tail - (tail >> self.y);
            if offset - start < size {
                return (letter, Share { start, size });
            }
            start += size;
            letter += 1;
        }
    }
}
