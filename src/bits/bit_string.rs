//! One short bit string: what a fingerprint has behind its remainder.

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
        Self { bits: bits & low_mask(len), len }
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

#[inline]
fn low_mask(count: u32) -> u128 {
    if count >= 128 { u128::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_common_beginnings() {
        let string = BitString::new(0b0110, 4);
        assert_eq!(format!("{string:?}"), "\"0110\"");
        assert_eq!(string.common(BitString::new(0b1110, 4)), 3);
        assert_eq!(string.common(BitString::new(0b10, 2)), 2);
        assert!(string.prefix(2).is_prefix_of(string) && BitString::EMPTY.is_prefix_of(string));
        assert!(!string.is_prefix_of(string.prefix(3)) && BitString::EMPTY.is_empty());
        assert_eq!(BitString::new(u128::MAX, 3), BitString::new(0b111, 3));
    }
}
