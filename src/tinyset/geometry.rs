//! Where everything lies in a block.

use std::ops::Range;

use crate::Digest;
use crate::bits::string;

/// The shape of all blocks of one [`TinySet`](super::TinySet).
///
/// ```text
/// |0        |chains           |array                                                  |bits
/// | index   | counter         | isLast bits | remainders                              |
/// | 1 a     | with removal    | plane 0     | plane 1 | plane 2 | … | the first bits  |
/// | chain   | only            | 1 an item   | 1 an item each        | of plane s      |
/// ```
///
/// The array of A bits is cut into *planes* of one bit per item. Plane 0 holds the isLast bits, plane `j` bit
/// `j − 1` of every remainder. With r items, s = ⌊A/r⌋ planes are complete and of plane s there is room for the
/// first m = A mod r items: those have remainders of s bits, the others of s − 1, exactly as in the paper. What
/// the planes change is only the order of the bits: an item more is one bit more in every plane, and what is
/// pushed out at the end of the array is just what all remainders lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// All bits of a block.
    pub(crate) bits: u32,
    /// L, the bits of the index.
    pub(crate) chains: u32,
    /// The width of the logical item count; 0 without removal.
    pub(crate) counter_bits: u32,
}

/// How far the hash bits of a remainder reach. Later bits of a long one are 0 in blocks and in queries.
pub(crate) const REMAINDER_BITS: u32 = 63;

/// The smallest block. The index, a counter and some remainders must fit.
pub(crate) const MIN_BLOCK_BITS: u32 = 32;

/// The largest block: beyond it an operation costs more than the few bits that larger blocks still save.
pub(crate) const MAX_BLOCK_BITS: u32 = 4096;

/// Words that hold a block of any size, wherever it starts in its first word.
pub(crate) const MAX_BLOCK_WORDS: usize = MAX_BLOCK_BITS as usize / 64 + 1;

impl Geometry {
    /// The block of so many bits and chains; `None` without at least one bit for the array.
    pub(crate) fn new(bits: u32, chains: u32, removal: bool) -> Option<Self> {
        let rest = bits.checked_sub(chains)?;
        // The smallest counter that counts to the number of bits it leaves for the array.
        let counter_bits = if removal { (1..32).find(|&c| rest.saturating_sub(c) < 1 << c)? } else { 0 };
        (rest > counter_bits).then_some(Self { bits, chains, counter_bits })
    }

    /// The largest number of chains that leaves as many bits for the array as for the index.
    pub(crate) fn max_chains(bits: u32, removal: bool) -> u32 {
        let fits = |&chains: &u32| {
            Self::new(bits, chains, removal).is_some_and(|geometry| geometry.array_bits() >= chains)
        };
        (1..=bits / 2).rev().find(fits).unwrap_or(1)
    }

    /// Where the array starts.
    #[inline(always)]
    pub(crate) fn array_start(&self) -> u32 {
        self.chains + self.counter_bits
    }

    /// A, the bits of the array: also the most items that a block takes, one isLast bit each.
    #[inline(always)]
    pub(crate) fn array_bits(&self) -> u32 {
        self.bits - self.array_start()
    }

    /// Whether blocks keep their logical item count.
    #[inline(always)]
    pub(crate) fn removal(&self) -> bool {
        self.counter_bits > 0
    }

    /// Whether blocks lie in whole words of one cache line.
    pub(crate) fn is_line(&self) -> bool {
        matches!(self.bits, 256 | 512)
    }

    /// The words of so many blocks; `None` if there are too many to count their bits.
    pub(crate) fn words(&self, blocks: usize) -> Option<usize> {
        Some(blocks.checked_mul(self.bits as usize)?.div_ceil(64))
    }

    /// The words that block `block` lies in, and where in the first of them it starts.
    #[inline(always)]
    pub(crate) fn locate(&self, block: usize) -> (Range<usize>, usize) {
        let start = block * self.bits as usize;
        (start / 64..(start + self.bits as usize).div_ceil(64), start % 64)
    }
}

/// What a key is in a table: its block, its chain, and the remainder of its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: usize,
    pub(crate) chain: u32,
    /// [`REMAINDER_BITS`] hash bits; bit `j − 1` goes to plane `j`.
    pub(crate) remainder: u64,
}

impl Place {
    /// The upper half of the digest, as a fixed-point fraction, chooses the block and then the chain; the lower
    /// half is the remainder.
    #[inline(always)]
    pub(crate) fn new(digest: Digest, blocks: usize, chains: u32) -> Self {
        let block = u128::from(digest.hi) * blocks as u128;
        let chain = u128::from(block as u64) * u128::from(chains);
        Self {
            block: (block >> 64) as usize,
            chain: (chain >> 64) as u32,
            remainder: digest.lo >> (64 - REMAINDER_BITS),
        }
    }
}

/// Reads and writes the logical count, the one field whose place needs a sum.
impl Geometry {
    #[inline(always)]
    pub(crate) fn read_counter(&self, words: &[u64], base: usize) -> usize {
        let mask = (1_u64 << self.counter_bits) - 1;
        (string::read(words, base + self.chains as usize) & mask) as usize
    }

    #[inline]
    pub(crate) fn write_counter(&self, words: &mut [u64], base: usize, count: usize) {
        string::write(words, base + self.chains as usize, self.counter_bits, count as u64);
    }
}
