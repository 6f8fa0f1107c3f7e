//! Many short bit strings of different lengths in a few words, handled word by word and never bit by bit.
//!
//! This is Lemma 29 (appendix A) of the broom filter's paper: strings s₀ s₁ s₂ … lie one behind the other, a
//! second bit map says where each of them ends, and matching a query against all of them, inserting, deleting
//! and extending take a constant number of word operations for every word touched.
//!
//! ```text
//! strings    "01"   ""   "1101"
//! bits        0 1 ·  ·  1 1 0 1 ·      position 0 on the left; · is the place of a mark, and 0
//! marks       0 0 1  1  0 0 0 0 1      a string of n bits takes n + 1 positions, the last of them marked
//! ```
//!
//! The paper looks sub-strings up in tables. Here a multiplication does the same work: all strings whose number
//! is the same modulo 4 start at least 4 positions apart, so multiplying the bit map of their starts by four
//! query bits puts a copy of these under each of them without overlap ([`Window::spread`]), and one
//! addition then carries a bit from the start of each string to its mark exactly if every bit between agreed
//! ([`Window::survivors`]).

use super::{low_mask, select};

/// One string of up to [`BitString::MAX_LEN`] bits. The first bit of the string is bit 0, bits beyond the length are 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct BitString {
    bits: u128,
    len: u32,
}

impl BitString {
    /// The longest string. Two random strings that agree so far are the same string.
    pub(crate) const MAX_LEN: u32 = 120;

    /// The string without bits.
    pub(crate) const EMPTY: Self = Self { bits: 0, len: 0 };

    /// The first `len` bits of `bits`, where bit 0 is the first.
    #[inline]
    pub(crate) fn new(bits: u128, len: u32) -> Self {
        debug_assert!(len <= Self::MAX_LEN);
        Self { bits: bits & low_mask128(len), len }
    }

    #[inline]
    pub(crate) fn len(self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn bits(self) -> u128 {
        self.bits
    }

    /// The first bits of this string; all of it if it is not so long.
    #[inline]
    pub(crate) fn prefix(self, len: u32) -> Self {
        Self::new(self.bits, len.min(self.len))
    }

    /// This string behind another one. What goes beyond the longest string is cut off.
    #[inline]
    pub(crate) fn after(self, first: Self) -> Self {
        Self::new(first.bits | self.bits << first.len, (first.len + self.len).min(Self::MAX_LEN))
    }

    /// How many bits the two have in common at their beginnings.
    #[inline]
    pub(crate) fn common(self, other: Self) -> u32 {
        (self.bits ^ other.bits).trailing_zeros().min(self.len).min(other.len)
    }

    #[inline]
    pub(crate) fn is_prefix_of(self, other: Self) -> bool {
        self.common(other) == self.len
    }
}

impl std::fmt::Debug for BitString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bits = (0..self.len).map(|bit| if self.bits >> bit & 1 == 1 { '1' } else { '0' });
        write!(f, "\"{}\"", bits.collect::<String>())
    }
}

/// Packed strings, to be read. The words are an even number: the bits, then as many words of marks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strings<'w> {
    bits: &'w [u64],
    marks: &'w [u64],
}

impl<'w> Strings<'w> {
    #[inline]
    pub(crate) fn new(words: &'w [u64]) -> Self {
        let (bits, marks) = words.split_at(words.len() / 2);
        Self { bits, marks }
    }

    /// How many strings there are.
    pub(crate) fn count(self) -> usize {
        self.marks.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// How many positions they take.
    pub(crate) fn used(self) -> usize {
        let last = self.marks.iter().rposition(|&word| word != 0);
        last.map_or(0, |word| word * 64 + 64 - self.marks[word].leading_zeros() as usize)
    }

    /// Where the string of this rank starts, and how many bits it has. The rank must be below the count.
    #[inline]
    pub(crate) fn span(self, rank: usize) -> (usize, u32) {
        let start = if rank == 0 { 0 } else { self.mark(rank - 1) + 1 };
        (start, (self.mark(rank) - start) as u32)
    }

    /// The string of this rank, which must be below the count.
    #[inline]
    pub(crate) fn get(self, rank: usize) -> BitString {
        let (start, len) = self.span(rank);
        BitString::new(read(self.bits, start), len)
    }

    /// The strings of a range of at most 64 ranks that are prefixes of the query: bit i for the i-th of the range.
    pub(crate) fn prefixes(self, ranks: std::ops::Range<usize>, query: BitString) -> u64 {
        debug_assert!(ranks.len() <= 64);
        if ranks.is_empty() {
            return 0;
        }
        let start = self.span(ranks.start).0;
        let end = self.mark(ranks.end - 1) + 1;
        if end - start <= Window::POSITIONS {
            return Window::new(self, start, end - start).prefixes(query);
        }
        // A range that long is rare: strings are short, and the ranges asked for are runs.
        if ranks.len() == 1 {
            return u64::from(self.get(ranks.start).is_prefix_of(query));
        }
        let half = ranks.len() / 2;
        let middle = ranks.start + half;
        self.prefixes(ranks.start..middle, query) | self.prefixes(middle..ranks.end, query) << half
    }

    /// The position of the mark that ends the string of this rank.
    #[inline]
    fn mark(self, rank: usize) -> usize {
        let mut rest = rank as u32;
        for (word, &marks) in self.marks.iter().enumerate() {
            let ones = marks.count_ones();
            if rest < ones {
                return word * 64 + select(marks, rest) as usize;
            }
            rest -= ones;
        }
        debug_assert!(false, "string {rank} of {}", self.count());
        0
    }
}

/// Packed strings, to be changed in place. Who inserts or extends has seen to it that there is [room](Self::room).
#[derive(Debug)]
pub(crate) struct StringsMut<'w> {
    bits: &'w mut [u64],
    marks: &'w mut [u64],
}

impl<'w> StringsMut<'w> {
    #[inline]
    pub(crate) fn new(words: &'w mut [u64]) -> Self {
        let half = words.len() / 2;
        let (bits, marks) = words.split_at_mut(half);
        Self { bits, marks }
    }

    #[inline]
    pub(crate) fn as_ref(&self) -> Strings<'_> {
        Strings { bits: self.bits, marks: self.marks }
    }

    /// How many positions are free.
    pub(crate) fn room(&self) -> usize {
        self.bits.len() * 64 - self.as_ref().used()
    }

    /// Inserts a string, which takes this rank; those from there on move up by one. At most as many as the count.
    pub(crate) fn insert(&mut self, rank: usize, string: BitString) {
        debug_assert!(self.room() > string.len() as usize);
        let start = if rank == 0 { 0 } else { self.as_ref().mark(rank - 1) + 1 };
        let taken = string.len() + 1;
        open(self.bits, start, taken);
        open(self.marks, start, taken);
        write(self.bits, start, string.bits());
        self.marks[(start + string.len() as usize) / 64] |= 1 << ((start + string.len() as usize) % 64);
    }

    /// Takes the string of this rank out; those behind it move down by one.
    pub(crate) fn remove(&mut self, rank: usize) -> BitString {
        let string = self.as_ref().get(rank);
        let (start, len) = self.as_ref().span(rank);
        close(self.bits, start, len + 1);
        close(self.marks, start, len + 1);
        string
    }

    /// Puts another string in the place of one: longer (an extension) or shorter.
    pub(crate) fn set(&mut self, rank: usize, string: BitString) {
        let (start, len) = self.as_ref().span(rank);
        let (old, new) = (len, string.len());
        // The gap opens and closes in front of the mark, which thus stays where it belongs.
        if new > old {
            open(self.bits, start + old as usize, new - old);
            open(self.marks, start + old as usize, new - old);
        } else {
            close(self.bits, start + new as usize, old - new);
            close(self.marks, start + new as usize, old - new);
        }
        clear(self.bits, start, new);
        write(self.bits, start, string.bits());
    }
}

/// Consecutive whole strings in two registers of 128 positions: where all of them are compared at once.
struct Window {
    bits: u128,
    marks: u128,
}

impl Window {
    const POSITIONS: usize = 128;

    fn new(strings: Strings<'_>, start: usize, len: usize) -> Self {
        let mask = low_mask128(len as u32);
        Self { bits: read(strings.bits, start) & mask, marks: read(strings.marks, start) & mask }
    }

    /// Which strings are prefixes of the query: bit i for string i.
    fn prefixes(&self, mut query: BitString) -> u64 {
        let mut alive = self.marks << 1 | 1;
        alive &= low_mask128(128 - self.marks.leading_zeros());
        let mut matched = 0;
        // Each turn compares four more query bits with all strings that agree so far. Fifteen of sixteen strings
        // that go on do not survive a turn, so there are hardly ever more than one or two.
        loop {
            let (ended, going_on) = self.survivors(alive, query);
            matched |= ended;
            if going_on == 0 || query.len() <= 4 {
                break;
            }
            alive = going_on;
            query = BitString::new(query.bits() >> 4, query.len() - 4);
        }
        let mut answer = 0;
        while matched != 0 {
            answer |= 1_u64 << (self.marks & low_mask128(matched.trailing_zeros())).count_ones();
            matched &= matched - 1;
        }
        answer
    }

    /// Compares up to four query bits with the strings, or rests of strings, that start at `alive`. Returns the
    /// marks of those that ended within these bits and agreed, and the fifth positions of those that agree so far
    /// and go on.
    fn survivors(&self, alive: u128, query: BitString) -> (u128, u128) {
        let compared = query.len().min(4);
        // Positions at most `compared` behind a start, the mark included, without running into the next string.
        let mut reach = alive;
        for _ in 0..compared {
            reach |= (reach & !self.marks) << 1;
        }
        let agree = !(self.bits ^ Self::spread(alive, query.bits() & 15)) & reach & !self.marks;
        // The carry runs from each start through the positions that agree, and stops at the first that does not,
        // at a mark, or behind the last position compared.
        let compared_only = agree & !self.beyond(alive, compared);
        let carried = alive.wrapping_add(compared_only) & !compared_only;
        (carried & self.marks, carried & self.beyond(alive, compared) & !self.marks)
    }

    /// Positions that lie exactly `compared` behind a start, within its string or at its mark.
    fn beyond(&self, alive: u128, compared: u32) -> u128 {
        let mut position = alive;
        for _ in 0..compared {
            position = (position & !self.marks) << 1;
        }
        position
    }

    /// Under each start a copy of the four query bits, without overlap: see the module.
    fn spread(alive: u128, query: u128) -> u128 {
        // Number of the string modulo 4 at every position, as two bit planes: each start flips the lower one, and
        // each second start the upper one.
        let low = prefix_parity(alive);
        let high = prefix_parity(alive & !low);
        let mut copies = 0;
        for class in [low & high, low & !high, !low & high, !low & !high] {
            copies |= (alive & class).wrapping_mul(query) & class;
        }
        copies
    }
}

/// Bit p of the result: the parity of the bits 0..=p.
#[inline]
fn prefix_parity(mut word: u128) -> u128 {
    for shift in [1, 2, 4, 8, 16, 32, 64] {
        word ^= word << shift;
    }
    word
}

#[inline]
fn low_mask128(count: u32) -> u128 {
    if count >= 128 { u128::MAX } else { (1 << count) - 1 }
}

/// 64 bits from a position on; zeros before the first and behind the last word.
#[inline]
fn word_at(words: &[u64], first: usize, position: isize) -> u64 {
    let shift = position.rem_euclid(64) as u32;
    let at = |index: isize| {
        if index < first as isize { 0 } else { words.get(index as usize).copied().unwrap_or(0) }
    };
    let index = position.div_euclid(64);
    if shift == 0 { at(index) } else { at(index) >> shift | at(index + 1) << (64 - shift) }
}

/// 128 bits from a position on; zeros behind the last word.
#[inline]
fn read(words: &[u64], position: usize) -> u128 {
    let position = position as isize;
    u128::from(word_at(words, 0, position)) | u128::from(word_at(words, 0, position + 64)) << 64
}

/// Sets the bits that are set in `value`, shifted to a position. They must end before the last word does.
fn write(words: &mut [u64], position: usize, value: u128) {
    let (word, shift) = (position / 64, position as u32 % 64);
    let parts = [value << shift, (value >> 1) >> (127 - shift)];
    let parts = [parts[0] as u64, (parts[0] >> 64) as u64, parts[1] as u64];
    for (word, part) in words[word..].iter_mut().zip(parts) {
        *word |= part;
    }
}

/// Clears `count` bits from a position on.
fn clear(words: &mut [u64], position: usize, count: u32) {
    let (word, shift) = (position / 64, position as u32 % 64);
    let mask = low_mask128(count);
    let parts = [mask << shift, (mask >> 1) >> (127 - shift)];
    let parts = [parts[0] as u64, (parts[0] >> 64) as u64, parts[1] as u64];
    for (word, part) in words[word..].iter_mut().zip(parts) {
        *word &= !part;
    }
}

/// Moves all bits from a position on up by `count`; zeros come in. What reaches the end is lost.
fn open(words: &mut [u64], position: usize, count: u32) {
    let first = position / 64;
    if first >= words.len() {
        return;
    }
    let mask = low_mask(position as u32 % 64);
    let below = words[first] & mask;
    words[first] &= !mask;
    for word in (first..words.len()).rev() {
        words[word] = word_at(words, first, (word * 64) as isize - count as isize);
    }
    words[first] |= below;
}

/// Takes `count` bits at a position out; all behind them move down. Zeros come in at the end.
fn close(words: &mut [u64], position: usize, count: u32) {
    let first = position / 64;
    let mask = low_mask(position as u32 % 64);
    let below = words[first] & mask;
    for word in first..words.len() {
        words[word] = word_at(words, 0, (word * 64) as isize + count as isize);
    }
    words[first] = words[first] & !mask | below;
}

#[cfg(test)]
mod tests {
    //! Catches: strings that run into each other, a carry that leaves its string, a window that cuts one off.
    use super::*;
    use crate::testing::Random;

    fn random_string(random: &mut Random, max: u64) -> BitString {
        let len = random.below(max + 1).min(random.below(max + 1)) as u32;
        // Few different strings, so that prefixes are common.
        let dense = random.below(3) == 0;
        let bits = u128::from(random.next()) << 64 | u128::from(random.next());
        BitString::new(if dense { bits } else { bits & 0b1001 }, len)
    }

    fn check(words: &[u64], model: &[BitString], query: BitString, random: &mut Random) {
        let strings = Strings::new(words);
        assert_eq!(strings.count(), model.len());
        assert_eq!(strings.used(), model.iter().map(|string| string.len() as usize + 1).sum::<usize>());
        for (rank, &string) in model.iter().enumerate() {
            assert_eq!(strings.get(rank), string, "string {rank}");
        }
        let start = random.below(model.len() as u64 + 1) as usize;
        let end = (start + random.below(65) as usize).min(model.len());
        let naive = |rank: usize| {
            (0..model[rank].len())
                .all(|bit| bit < query.len() && model[rank].bits() >> bit & 1 == query.bits() >> bit & 1)
        };
        let expected =
            (start..end).filter(|&rank| naive(rank)).fold(0, |map, rank| map | 1 << (rank - start));
        assert_eq!(strings.prefixes(start..end, query), expected, "{query:?} in {:?}", &model[start..end]);
    }

    #[test]
    fn packed_strings_behave_like_a_vector_of_strings() {
        let mut random = Random::new(29);
        for (words, max) in [(4, 3), (8, 6), (16, 12), (40, 119), (2, 2)] {
            let mut packed = vec![0; words];
            let mut model: Vec<BitString> = Vec::new();
            for _ in 0..6_000 {
                let string = random_string(&mut random, max);
                let rank = random.below(model.len() as u64 + 1) as usize;
                let mut strings = StringsMut::new(&mut packed);
                let old = model.get(rank).map_or(0, |old| old.len());
                match random.below(4) {
                    0 | 1 if strings.room() > string.len() as usize => {
                        strings.insert(rank, string);
                        model.insert(rank, string);
                    }
                    2 if rank < model.len() && strings.room() + old as usize >= string.len() as usize => {
                        strings.set(rank, string);
                        model[rank] = string;
                    }
                    _ if rank < model.len() => {
                        assert_eq!(strings.remove(rank), model.remove(rank));
                    }
                    _ => {}
                }
                let query = if model.is_empty() || random.one_in(2) {
                    random_string(&mut random, 20)
                } else {
                    let stored = model[random.below(model.len() as u64) as usize];
                    random_string(&mut random, 1).after(stored)
                };
                check(&packed, &model, query, &mut random);
            }
            assert!(!model.is_empty());
        }
    }

    #[test]
    fn strings_of_all_lengths_are_extended_in_place() {
        let mut packed = vec![0; 32];
        let mut model = Vec::new();
        let ones = |len| BitString::new(u128::MAX, len);
        for rank in 0..7 {
            StringsMut::new(&mut packed).insert(rank, ones(rank as u32));
            model.push(ones(rank as u32));
        }
        for len in 0..=BitString::MAX_LEN {
            let mut strings = StringsMut::new(&mut packed);
            strings.set(3, ones(len));
            model[3] = ones(len);
            let strings = strings.as_ref();
            assert!((0..7).all(|rank| strings.get(rank) == model[rank]), "{len}");
            let expected = (0..7).filter(|&rank| model[rank].len() <= 4).fold(0, |map, rank| map | 1 << rank);
            assert_eq!(strings.prefixes(0..7, ones(4)), expected);
        }
    }

    #[test]
    fn prefixes_and_common_beginnings() {
        let string = BitString::new(0b0110, 4);
        assert_eq!(format!("{string:?}"), "\"0110\"");
        assert_eq!(string.common(BitString::new(0b1110, 4)), 3);
        assert_eq!(string.common(BitString::new(0b10, 2)), 2);
        assert!(string.prefix(2).is_prefix_of(string) && BitString::EMPTY.is_prefix_of(string));
        assert!(!string.is_prefix_of(string.prefix(3)) && BitString::EMPTY.is_empty());
        assert_eq!(string.prefix(1).after(BitString::new(1, 1)), BitString::new(1, 2));
        let long = BitString::new(u128::MAX, BitString::MAX_LEN);
        assert_eq!(string.after(long), long);
    }
}
