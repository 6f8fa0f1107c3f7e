//! Where everything lies in a block.

use std::ops::Range;

use crate::Digest;
use crate::bits::string;

/// The shape of all blocks of one [`TinySet`](super::TinySet).
///
/// ```text
/// |0        |chains           |array                                                  |bits
/// | index   | counter         | isLast bits | remainders                              |
/// | 1 a     | with removal    | 1 an item   | m of s bits each, the others of s − 1   |
/// | chain   | only            |             |                                         |
/// ```
///
/// The items of chain 0 come first, then those of chain 1, and so on. With r items in an array of A bits,
/// s = ⌊A/r⌋ and m = A mod r: the array is always full. A remainder's bits are the lowest ones of the hash's, so
/// that a remainder grows shorter from its upper end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// All bits of a block.
    pub(crate) bits: u32,
    /// L, the bits of the index.
    pub(crate) chains: u32,
    /// The width of the logical item count; 0 without removal.
    pub(crate) counter_bits: u32,
}

/// How far the hash bits of a remainder reach. The later bits of a longer one are 0, in blocks and in queries.
/// This many fit into eight bytes wherever they start in the first.
pub(crate) const REMAINDER_BITS: u32 = 57;

/// The smallest block. The index, a counter and some remainders must fit.
pub(crate) const MIN_BLOCK_BITS: u32 = 32;

/// The largest block: beyond it an operation costs more than the few bits that larger blocks still save.
pub(crate) const MAX_BLOCK_BITS: u32 = 4096;

/// Words that hold a block of any size, wherever it starts in its first word.
pub(crate) const MAX_BLOCK_WORDS: usize = MAX_BLOCK_BITS as usize / 64 + 1;

impl Geometry {
    /// The block of this many bits and chains; `None` without at least one bit for the array.
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

    /// The words of this many blocks; `None` if there are too many to count their bits.
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

/// Where the remainders of a block lie that is cut for some number of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    /// Where the first one starts in the array: after the isLast bits.
    pub(crate) start: usize,
    /// s − 1, the bits of an item without an extra bit.
    pub(crate) short: usize,
    /// m, the items that have an extra bit: the first ones.
    pub(crate) extended: usize,
}

impl Layout {
    /// The layout for `items` items, at most one for every bit of the array.
    #[inline(always)]
    pub(crate) fn new(geometry: &Geometry, items: usize) -> Self {
        // 32 bits, since dividing 64 takes several times as long on many processors.
        let (array_bits, count) = (geometry.array_bits(), items as u32);
        if count == 0 {
            return Self::default();
        }
        Self {
            start: items,
            short: (array_bits / count - 1) as usize,
            extended: (array_bits % count) as usize,
        }
    }

    /// Where the remainder of `item` starts in the array.
    #[inline(always)]
    pub(crate) fn offset(&self, item: usize) -> usize {
        self.start + item * self.short + item.min(self.extended)
    }

    /// How many bits it has.
    #[inline(always)]
    pub(crate) fn size(&self, item: usize) -> usize {
        self.short + usize::from(item < self.extended)
    }

    /// How many items from `item` on have the same size as it.
    pub(crate) fn alike(&self, item: usize) -> usize {
        if item < self.extended { self.extended - item } else { usize::MAX }
    }
}

/// What a key is in a table: its block, its chain, and the remainder of its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub(crate) block: usize,
    pub(crate) chain: u32,
    /// [`REMAINDER_BITS`] hash bits.
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
