//! How a block of the quotient table is cut: how many words, how many slots, what lies where.
//!
//! ```text
//! bit 0        6              6+S            6+S+C   64W−S·r−S    64W−S·r                         64W
//!     | offset | occupieds: S | code: C bits | (gap) | runends: S | remainders: S slots of r bits |
//! ```
//!
//! (With more than 56 slots up to 7 bits lie between runends and remainders, so that the runends end with a byte.)
//!
//! A block fills whole cache lines, or half of one, so that a query reads one line wherever possible. With
//! r = 8 that makes 50 slots a line for a plain table (10.24 bits a slot), and 46 slots with a code of 46 bits
//! (11.13 bits a slot) for the filters that keep a value per slot.

use crate::coding::field::MIN_FIELD_BITS;

/// The slots that share a mark.
pub(crate) const MARKED: u32 = 16;

/// The fields of a block, as the functions that touch bits need them.
///
/// The two shapes with r = 8 exist as types of their own ([`ByteLine`]), and so do those with r = 7 and 10
/// (`FixedLine`), so that their hot functions compile to constant shifts; every other one is a [`Geometry`] that
/// computes them, with the size of its blocks as a constant for the common sizes ([`BlocksOf`]).
pub(crate) trait Shape: Copy {
    /// Whether it is a [`ByteLine`].
    const BYTE_LINE: bool = false;

    /// r, the width of a remainder.
    fn remainder_bits(self) -> u32;
    /// S, the slots of a block: 63 at most, so that a word has a bit for the place behind the last one too.
    fn slots(self) -> u32;
    /// W, the words of a block.
    fn words(self) -> usize;
    /// C, the width of a block's code.
    fn code_bits(self) -> u32;
    /// The block of a slot of the table, and the slot's number in the block.
    fn split(self, slot: u64) -> (usize, u32);

    /// One of the blocks that `words` consists of.
    #[inline(always)]
    fn block(self, words: &[u64], index: usize) -> &[u64] {
        &words[index * self.words()..][..self.words()]
    }

    /// One of the blocks that `words` consists of, if there are so many.
    #[inline(always)]
    fn get_block(self, words: &[u64], index: usize) -> Option<&[u64]> {
        words.get(index * self.words()..(index + 1) * self.words())
    }

    /// One of the blocks that `words` consists of.
    #[inline(always)]
    fn block_mut(self, words: &mut [u64], index: usize) -> &mut [u64] {
        &mut words[index * self.words()..][..self.words()]
    }

    /// Where the code starts.
    #[inline(always)]
    fn code_at(self) -> u32 {
        OCCUPIEDS_AT + self.slots()
    }

    /// Where the runends end: where the remainders begin, or a few bits before.
    #[inline(always)]
    fn runends_end(self) -> u32 {
        self.remainders_at()
    }

    /// Where the runends start.
    #[inline(always)]
    fn runends_at(self) -> u32 {
        self.runends_end() - self.slots()
    }

    /// The first of the 8 bytes that hold the runends, the bit below them included, and by how many bits they have to
    /// be shifted up so that nothing is above the runends.
    #[inline(always)]
    fn runends_load(self) -> (usize, u32) {
        load_before(self.runends_end())
    }

    /// How many quotients of a block have a flag to themselves, if its code is used for flags; the last one stands
    /// for all that follow. 0 without room for any. Behind the flags there are the [marks](Self::marks).
    #[inline(always)]
    fn flags(self) -> u32 {
        (self.runends_at() - self.code_at()).saturating_sub(self.marks()).min(self.slots())
    }

    /// How many marks a block has, if its code is used for flags: one for every [`MARKED`] slots.
    #[inline(always)]
    fn marks(self) -> u32 {
        self.slots().div_ceil(MARKED)
    }

    /// The remainder of a fraction: its leading r bits.
    #[inline(always)]
    fn remainder_of(self, fraction: u64) -> u64 {
        fraction >> (64 - self.remainder_bits())
    }

    /// How remainders are compared several at a time.
    #[inline(always)]
    fn window(self) -> Window {
        Window::of(self.remainder_bits())
    }

    /// Where the remainders start: they end with the block.
    #[inline(always)]
    fn remainders_at(self) -> u32 {
        self.words() as u32 * 64 - self.slots() * self.remainder_bits()
    }
}

/// As many remainders as 8 bytes hold wherever the first of them begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// How many they are.
    pub(crate) slots: u32,
    /// The lowest bit of each.
    pub(crate) lowest: u64,
    /// The highest bit of each.
    pub(crate) highest: u64,
}

impl Window {
    const fn of(remainder_bits: u32) -> Self {
        let slots = 57 / remainder_bits;
        let (mut lowest, mut slot) = (0, 0);
        while slot < slots {
            lowest |= 1 << (slot * remainder_bits);
            slot += 1;
        }
        Self { slots, lowest, highest: lowest << (remainder_bits - 1) }
    }
}

/// The first of the 8 bytes that end with bit `end`, or of the block's first 8 bytes if that is before them; and how
/// many of their bits lie behind `end`.
const fn load_before(end: u32) -> (usize, u32) {
    let bytes = if end <= 64 { 8 } else { end.div_ceil(8) };
    ((bytes - 8) as usize, 8 * bytes - end)
}

/// The width of a block's offset.
pub(crate) const OFFSET_BITS: u32 = 6;

/// Where the occupieds start: behind the offset.
pub(crate) const OCCUPIEDS_AT: u32 = OFFSET_BITS;

/// A shape that is known when the program is compiled, with remainders of a byte in one cache line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteLine<const SLOTS: u32>;

/// 50 slots of 8 bits without a code.
pub(crate) const PLAIN_SLOTS: u32 = 50;
/// 46 slots of 8 bits and a code of 46 bits.
pub(crate) const CODED_SLOTS: u32 = 46;
/// The width of the code of a line with [`CODED_SLOTS`].
pub(crate) const CODED_BITS: u32 = 46;

impl<const SLOTS: u32> Shape for ByteLine<SLOTS> {
    const BYTE_LINE: bool = true;

    #[inline(always)]
    fn remainder_bits(self) -> u32 {
        8
    }

    #[inline(always)]
    fn slots(self) -> u32 {
        SLOTS
    }

    #[inline(always)]
    fn code_bits(self) -> u32 {
        if SLOTS == CODED_SLOTS { CODED_BITS } else { 0 }
    }

    #[inline(always)]
    fn words(self) -> usize {
        8
    }

    #[inline(always)]
    fn split(self, slot: u64) -> (usize, u32) {
        ((slot / u64::from(SLOTS)) as usize, (slot % u64::from(SLOTS)) as u32)
    }

    // As arrays: one check of the index, and none for the words.
    #[inline(always)]
    fn block(self, words: &[u64], index: usize) -> &[u64] {
        &words.as_chunks::<8>().0[index]
    }

    #[inline(always)]
    fn block_mut(self, words: &mut [u64], index: usize) -> &mut [u64] {
        &mut words.as_chunks_mut::<8>().0[index]
    }
}

/// A shape chosen at run time. Narrow fields, for every table has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// ⌈2^64 / slots⌉, which makes a division by `slots` a multiplication.
    reciprocal: u64,
    /// See [`Window`].
    lowest_bits: u64,
    remainders_at: u16,
    remainder_bits: u8,
    slots: u8,
    words: u8,
    code_bits: u8,
    /// What [`CodeShare`] says.
    code_eighths: u8,
    runends_load: (u8, u8),
    window_slots: u8,
}

/// How many bits of code a table has for every slot, in eighths of a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodeShare(pub(crate) u32);

impl CodeShare {
    pub(crate) const NONE: Self = Self(0);
    /// The papers' share, and that of the shape that is compiled for remainders of a byte.
    pub(crate) const USUAL: Self = Self(7);
}

impl From<bool> for CodeShare {
    /// The usual one, or none.
    fn from(coded: bool) -> Self {
        if coded { Self::USUAL } else { Self::NONE }
    }
}

/// A [`Geometry`] whose blocks have so many words: a constant for the hot functions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlocksOf<const WORDS: usize>(pub(crate) Geometry);

impl Geometry {
    /// The remainders that a table can have.
    pub(crate) const REMAINDER_BITS: std::ops::RangeInclusive<u32> = 2..=32;

    /// Slots whose numbers [`Shape::split`] divides exactly.
    pub(crate) const MAX_SLOTS: u64 = 1 << 48;

    /// The shape for remainders of this width, with so much code or a little more.
    pub(crate) fn new(remainder_bits: u32, CodeShare(eighths): CodeShare) -> Self {
        let least = if eighths == 0 { 0 } else { MIN_FIELD_BITS };
        let shape = Self::smallest(remainder_bits, |slots| (slots * eighths).div_ceil(8).clamp(least, 64));
        Self { code_eighths: eighths as u8, ..shape }
    }

    /// How much code was asked for.
    pub(crate) fn code_share(self) -> CodeShare {
        CodeShare(self.code_eighths.into())
    }

    /// The shape for remainders of this width, without a code.
    #[cfg(test)]
    pub(crate) fn plain(remainder_bits: u32) -> Self {
        Self::new(remainder_bits, CodeShare::NONE)
    }

    /// The shape for remainders of this width, with 0.875 code bits a slot or a little more.
    pub(crate) fn coded(remainder_bits: u32) -> Self {
        Self::new(remainder_bits, CodeShare::USUAL)
    }

    /// One cache line, or else half of one, two or four: the first that wastes at most 4%, or else the one that
    /// wastes least.
    fn smallest(remainder_bits: u32, code_bits: impl Fn(u32) -> u32) -> Self {
        const WORDS: [u32; 4] = [8, 4, 16, 32];
        let ideal = 64.0 * f64::from(2 + remainder_bits) + f64::from(OFFSET_BITS + code_bits(64));
        let waste = |shape: &Self| shape.bits_per_slot() / (ideal / 64.0);
        let shapes = WORDS.map(|words| Self::fitting(remainder_bits, words, &code_bits));
        let good = shapes.iter().find(|shape| waste(shape) <= 1.04);
        *good.unwrap_or_else(|| {
            shapes.iter().min_by(|a, b| waste(a).total_cmp(&waste(b))).unwrap_or(&shapes[0])
        })
    }

    /// As many slots as so many words take.
    fn fitting(remainder_bits: u32, words: u32, code_bits: impl Fn(u32) -> u32) -> Self {
        let header = |slots: u32| OFFSET_BITS + slots + code_bits(slots);
        let fits = |&slots: &u32| {
            let runends_end = runends_end(words * 64 - (slots * remainder_bits).min(words * 64), slots);
            header(slots) + slots <= runends_end
        };
        let slots = (2..=63).rev().find(fits).unwrap_or(2);
        let remainders_at = words * 64 - slots * remainder_bits;
        let runends_end = runends_end(remainders_at, slots);
        let rest = runends_end - OFFSET_BITS - 2 * slots;
        let code_bits = if code_bits(slots) == 0 { 0 } else { rest.min(64) };
        let (byte, above) = load_before(runends_end);
        let window = Window::of(remainder_bits);
        Self {
            reciprocal: u64::MAX / u64::from(slots) + 1,
            lowest_bits: window.lowest,
            remainders_at: remainders_at as u16,
            remainder_bits: remainder_bits as u8,
            slots: slots as u8,
            words: words as u8,
            code_bits: code_bits as u8,
            code_eighths: 0,
            runends_load: (byte as u8, above as u8),
            window_slots: window.slots as u8,
        }
    }

    /// The memory of a slot, its share of the block's other fields included.
    pub(crate) fn bits_per_slot(&self) -> f64 {
        f64::from(self.words) * 64.0 / f64::from(self.slots)
    }
}

/// Where the runends of so many slots end. They and the bit below them must be found in 8 bytes: more than 56 of them
/// have to end with a byte.
fn runends_end(remainders_at: u32, slots: u32) -> u32 {
    if slots > 56 { remainders_at & !7 } else { remainders_at }
}

impl Shape for Geometry {
    #[inline(always)]
    fn remainder_bits(self) -> u32 {
        self.remainder_bits.into()
    }

    #[inline(always)]
    fn slots(self) -> u32 {
        self.slots.into()
    }

    #[inline(always)]
    fn code_bits(self) -> u32 {
        self.code_bits.into()
    }

    #[inline(always)]
    fn words(self) -> usize {
        self.words.into()
    }

    #[inline(always)]
    fn remainders_at(self) -> u32 {
        self.remainders_at.into()
    }

    #[inline(always)]
    fn runends_end(self) -> u32 {
        let (byte, above) = self.runends_load();
        8 * byte as u32 + 64 - above
    }

    #[inline(always)]
    fn runends_load(self) -> (usize, u32) {
        (self.runends_load.0.into(), self.runends_load.1.into())
    }

    #[inline(always)]
    fn window(self) -> Window {
        let highest = self.lowest_bits << (self.remainder_bits - 1);
        Window { slots: self.window_slots.into(), lowest: self.lowest_bits, highest }
    }

    /// Exact below [`Geometry::MAX_SLOTS`]: the reciprocal is too large by less than 1, so the product is by
    /// less than 2^48 of 2^64, and `slots` is at most 63.
    #[inline(always)]
    fn split(self, slot: u64) -> (usize, u32) {
        let block = ((u128::from(slot) * u128::from(self.reciprocal)) >> 64) as u64;
        // A block has at most 63 slots, which the compiler cannot know: no shift by it needs a check.
        (block as usize, (slot - block * u64::from(self.slots)) as u32 & 63)
    }
}

impl<const WORDS: usize> Shape for BlocksOf<WORDS> {
    #[inline(always)]
    fn remainder_bits(self) -> u32 {
        self.0.remainder_bits()
    }

    #[inline(always)]
    fn slots(self) -> u32 {
        self.0.slots()
    }

    #[inline(always)]
    fn words(self) -> usize {
        WORDS
    }

    #[inline(always)]
    fn code_bits(self) -> u32 {
        self.0.code_bits()
    }

    #[inline(always)]
    fn remainders_at(self) -> u32 {
        self.0.remainders_at()
    }

    #[inline(always)]
    fn runends_end(self) -> u32 {
        self.0.runends_end()
    }

    #[inline(always)]
    fn runends_load(self) -> (usize, u32) {
        self.0.runends_load()
    }

    #[inline(always)]
    fn window(self) -> Window {
        self.0.window()
    }

    #[inline(always)]
    fn split(self, slot: u64) -> (usize, u32) {
        self.0.split(slot)
    }

    #[inline(always)]
    fn block(self, words: &[u64], index: usize) -> &[u64] {
        &words.as_chunks::<WORDS>().0[index]
    }

    #[inline(always)]
    fn block_mut(self, words: &mut [u64], index: usize) -> &mut [u64] {
        &mut words.as_chunks_mut::<WORDS>().0[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn every_width_has_a_shape_that_fits_and_wastes_little() {
        for remainder_bits in Geometry::REMAINDER_BITS {
            for (shape, code_share) in
                [(Geometry::plain(remainder_bits), 0.0), (Geometry::coded(remainder_bits), 0.875)]
            {
                assert!(shape.code_at() + shape.code_bits() <= shape.runends_at(), "{shape:?}");
                let (byte, above) = shape.runends_load();
                assert_eq!(8 * byte as u32 + 64, shape.runends_end() + above, "{shape:?}");
                assert!(byte + 8 <= 8 * shape.words() && above + shape.slots() < 64, "{shape:?}");
                assert!(f64::from(shape.code_bits()) >= code_share * f64::from(shape.slots()), "{shape:?}");
                let ideal = f64::from(remainder_bits) + 2.1 + code_share;
                assert!(shape.bits_per_slot() <= 1.05 * ideal, "{shape:?} against {ideal}");
            }
        }
    }

    #[test]
    fn byte_lines_are_what_the_choice_makes_for_8_bits() {
        let (plain, coded) = (Geometry::plain(8), Geometry::coded(8));
        assert_eq!((plain.slots(), plain.words(), plain.code_bits()), (PLAIN_SLOTS, 8, 0));
        assert_eq!((coded.slots(), coded.words(), coded.code_bits()), (CODED_SLOTS, 8, CODED_BITS));
    }

    #[test]
    fn split_is_division_for_every_shape() {
        let mut random = Random::new(4);
        for remainder_bits in Geometry::REMAINDER_BITS {
            let shape = Geometry::plain(remainder_bits);
            let slots = u64::from(shape.slots());
            let random_slots = (0..1_000).map(|_| random.below(Geometry::MAX_SLOTS));
            for slot in random_slots.chain(0..300).chain(Geometry::MAX_SLOTS - 300..=Geometry::MAX_SLOTS) {
                assert_eq!(shape.split(slot), ((slot / slots) as usize, (slot % slots) as u32));
            }
        }
    }
}
