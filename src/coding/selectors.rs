//! How an interval is divided among selectors: tuned for ε = 2^-8 (paper, C.2), or for any ε (C.3).

use super::{Letters, Share};

/// Which chunk of its key's hash string a slot holds. Codes carry the small ones, side tables any.
pub(crate) type Selector = u16;

/// The probabilities that a code assumes of selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selectors {
    /// Made for ε = 2^-8: each probability is a short sum of powers of two. Selectors 0 to 6.
    Tuned,
    /// Selector 0 has the probability 1 − 2^-x, and i > 0 has 2^-x · (1 − 2^-y) · 2^-y(i−1).
    General {
        /// Selector 0 is left with probability 2^-x.
        x: u32,
        /// Every further step has probability 2^-y.
        y: u32,
    },
}

/// The sizes of the shares of selectors 1 to 5 in the tuned code, as sums of shifts of the range; 6 has the
/// rest, which is never negative: the shifts here sum to less than `range >> 5`, but for the first two.
const fn tuned(range: u64, selector: u16) -> u64 {
    match selector {
        1 => (range >> 3) + (range >> 4) + (range >> 7) + (range >> 9),
        2 => (range >> 6) + (range >> 8),
        3 => (range >> 10) + (range >> 11),
        4 => (range >> 14) + (range >> 16),
        _ => (range >> 19) + (range >> 20) + (range >> 23),
    }
}

/// The largest selector of the tuned code.
const TUNED_LAST: u16 = 6;

impl Letters for Selectors {
    type Letter = Selector;

    /// Space is fixed, so what counts is how many adapted slots a block holds before it overflows. In a block
    /// of 46 slots and 46 bits this is largest at x = 2 for every r (12 slots at selector 1; x = 3 holds 11,
    /// x = 4 holds 9). By Corollary 3, a second step after a first is about 2·√ε times as likely, hence y.
    fn for_remainder(r: u32) -> Self {
        match r {
            8 => Self::Tuned,
            _ => Self::General { x: 2, y: (r / 2).clamp(2, 5) - 1 },
        }
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
    fn initial(self, range: u64) -> u64 {
        match self {
            // 1/2 + 1/4 + 1/32, rounded up: never empty, so that no other letter's share begins at 0.
            Self::Tuned => range - (range >> 3) - (range >> 4) - (range >> 5),
            Self::General { x, .. } => range - (range >> x),
        }
    }

    #[inline]
    fn share(self, range: u64, letter: Selector) -> Option<Share> {
        let mut start = self.initial(range);
        let size = match self {
            Self::Tuned if letter > TUNED_LAST => 0,
            Self::Tuned => {
                start += (1..letter).map(|selector| tuned(range, selector)).sum::<u64>();
                if letter == TUNED_LAST { range - start } else { tuned(range, letter) }
            }
            Self::General { y, .. } => {
                // All letters from this one on together; the shares before it have the rest.
                let steps = y * u32::from(letter - 1).min(64);
                let tail = (range - start).checked_shr(steps).unwrap_or(0);
                start = range - tail;
                tail - (tail >> y)
            }
        };
        (size > 0).then_some(Share { start, size })
    }

    #[inline]
    fn letter_at(self, range: u64, offset: u64) -> (Selector, Share) {
        let mut start = self.initial(range);
        match self {
            Self::Tuned => {
                for letter in 1..TUNED_LAST {
                    let size = tuned(range, letter);
                    if offset - start < size {
                        return (letter, Share { start, size });
                    }
                    start += size;
                }
                (TUNED_LAST, Share { start, size: range - start })
            }
            Self::General { y, .. } => {
                let mut letter = 1;
                // `offset` is below `range`, so it lies in one of the shares before the tail is used up.
                loop {
                    let tail = range - start;
                    let size = tail - (tail >> y);
                    if offset - start < size {
                        return (letter, Share { start, size });
                    }
                    start += size;
                    letter += 1;
                }
            }
        }
    }
}
