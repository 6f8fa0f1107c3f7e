//! The two widths of a band, with the measures that were found best for each.

use crate::Digest;

/// The coefficients of one equation: bit `i` says whether the unknown `i` places behind the first is in the sum.
///
/// The measures were searched for by trial, for the smallest sum of unused unknowns and limits. A bucket of 128 with a
/// band of 64 wastes 0.03% of the unknowns and spends 1/64 bit a bucket row on limits; one of 768 with a band of 128
/// wastes 0.06% and spends 1/384 bit.
pub(in crate::exact) trait Band: Copy + Eq + Send + Sync + 'static {
    /// How many unknowns an equation reaches over.
    const WIDTH: u64;
    /// In how many places the equations of a bucket can begin. A multiple of 64.
    const BUCKET: u64;
    /// What the two bits of a bucket mean: equations that begin before this place are bumped.
    const LIMITS: [u64; 4];
    /// The binary logarithm of the number of buckets that are solved by themselves.
    const SEGMENT: u32;
    /// Equations per unknown of a bumping layer.
    const LOAD: f64;
    /// Up to this many equations, an ordinary ribbon is as small as a bumped one.
    const FEW: usize;
    /// No coefficient at all.
    const NONE: Self;

    /// The coefficients of the key with this digest. The first is 1.
    fn coefficients(digest: Digest) -> Self;

    /// Adds another row to this one.
    fn add(&mut self, other: Self);

    /// How many places are 0 before the first 1. There must be one.
    fn leading_zeros(self) -> u32;

    /// Leaves out this many places, which are 0.
    fn skip(&mut self, places: u32);

    /// Moves solved unknowns by one place, to make room for one more before them.
    fn push(&mut self, unknown: bool);

    /// Whether the sum of these solved unknowns, moved by one place, is 1 by these coefficients.
    fn odd(self, solved: Self) -> bool;

    /// The first 64 of these solved unknowns.
    fn first(self) -> u64;
}

/// What both widths have in common: words, whose lowest bit is the first place.
macro_rules! word {
    ($word:ty) => {
        const WIDTH: u64 = <$word>::BITS as u64;
        const NONE: Self = 0;

        #[inline(always)]
        fn add(&mut self, other: Self) {
            *self ^= other;
        }

        #[inline(always)]
        fn leading_zeros(self) -> u32 {
            self.trailing_zeros()
        }

        #[inline(always)]
        fn skip(&mut self, places: u32) {
            *self >>= places;
        }

        #[inline(always)]
        fn push(&mut self, unknown: bool) {
            *self = *self << 1 | <$word>::from(unknown);
        }

        #[inline(always)]
        fn odd(self, solved: Self) -> bool {
            (self & solved << 1).count_ones() & 1 == 1
        }

        #[inline(always)]
        fn first(self) -> u64 {
            self as u64
        }
    };
}

impl Band for u64 {
    const BUCKET: u64 = 128;
    const LIMITS: [u64; 4] = [0, 19, 38, Self::BUCKET];
    const SEGMENT: u32 = 10;
    const LOAD: f64 = 1.06;
    const FEW: usize = 1500;

    word!(u64);

    #[inline(always)]
    fn coefficients(digest: Digest) -> Self {
        digest.lo | 1
    }
}

impl Band for u128 {
    const BUCKET: u64 = 768;
    const LIMITS: [u64; 4] = [0, 51, 102, Self::BUCKET];
    const SEGMENT: u32 = 8;
    const LOAD: f64 = 1.02;
    const FEW: usize = 4000;

    word!(u128);

    #[inline(always)]
    fn coefficients(digest: Digest) -> Self {
        let Digest { hi, lo } = digest;
        let [first, second] = [
            fold(lo ^ 0x2545_f491_4f6c_dd1d, hi ^ 0xd6e8_feb8_6659_fd93),
            fold(lo ^ 0xa076_1d64_78bd_642f, hi ^ 0xe703_7ed1_a0b4_28db),
        ];
        u128::from(second) << 64 | u128::from(first) | 1
    }
}

/// Both halves of a product, one upon the other: every bit depends on every bit of both factors.
#[inline(always)]
pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// The digest that a bumped key has in the next layer. `salt` numbers the functions.
#[inline]
pub(super) fn again(digest: Digest, salt: u64) -> Digest {
    let Digest { hi, lo } = digest;
    let salt = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Digest {
        hi: fold(hi ^ 0x8ebc_6af0_9c88_c6e3, lo ^ 0x5899_65cc_7537_4cc3 ^ salt),
        lo: fold(lo ^ 0x1d8e_4e27_c47d_124f ^ salt, hi ^ 0xeb44_acca_b455_d165),
    }
}
