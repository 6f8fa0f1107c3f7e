//! Blocks of one cache line on x86-64: queries with AVX-512, insertions with BMI2.
//!
//! These serve blocks of 256 and 512 bits, of at most [`MAX_CHAINS`] chains, and of at most 63 items: nearly all
//! blocks that are not loaded far beyond their plan. They say so when they meet another one, and
//! [`block`](super::block) does its work. Both write the same bits and give the same answers.

use std::arch::x86_64::*;

use super::block::Block;
use super::geometry::Geometry;
use crate::bits::word::select_bmi2;
use crate::bits::{Isa, low_mask};

/// The index lies in the first two words.
const MAX_CHAINS: u32 = 128;

/// Items of a block whose isLast bits fit into a word together with one bit more.
const MAX_ITEMS: u32 = 63;

/// What the functions of this file can do for blocks of this geometry on this processor.
pub(crate) fn supported(geometry: &Geometry) -> Isa {
    let fits = geometry.is_line() && geometry.chains <= MAX_CHAINS;
    if fits { Isa::detect() } else { Isa::Portable }
}

/// The words of a block, as an array that needs no bounds checks: `N` is a power of two.
#[inline(always)]
fn read<const N: usize>(words: &[u64; N], at: u32) -> u64 {
    let (word, shift) = (at as usize / 64, at % 64);
    // Beyond the end this wraps around; whoever reads there looks at none of those bits.
    words[word & (N - 1)] >> shift | words[(word + 1) & (N - 1)] << 1 << (63 - shift)
}

/// What the index and the isLast bits say about one chain.
struct Decoded {
    /// How many items the remainders are cut for.
    logical: u32,
    /// How many items are there.
    actual: u32,
    /// The bit of the chain's first item, or of the item that it goes before.
    start: u64,
    /// One bit for each item of the chain.
    items: u64,
    /// Whether the chain holds an item.
    occupied: bool,
}

/// `None` for more than [`MAX_ITEMS`] items.
#[inline]
#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
fn decode<const N: usize>(geometry: &Geometry, words: &[u64; N], chain: u32) -> Option<Decoded> {
    let index =
        [words[0] & low_mask(geometry.chains), words[1] & low_mask(geometry.chains.saturating_sub(64))];
    let chains = index[0].count_ones() + index[1].count_ones();
    let before = (index[0] & low_mask(chain)).count_ones()
        + (index[1] & low_mask(chain.saturating_sub(64))).count_ones();
    let occupied = words[(chain as usize / 64) & 1] >> (chain % 64) & 1;
    // A 1 in front ends a chain before the first: now bit i says that an item starts a chain, and the k-th set
    // bit is where the k-th chain in use starts. The one after the last is the number of items.
    let starts = read(words, geometry.array_start()) << 1 | 1;
    let actual = _pdep_u64(low_mask(chains).wrapping_add(1), starts).trailing_zeros();
    let logical = if geometry.removal() {
        (read(words, geometry.chains) & low_mask(geometry.counter_bits)) as u32
    } else {
        actual
    };
    // 2^64 is 0 here and `actual` then 64: no separate test for an index that is too full.
    if actual > MAX_ITEMS || logical > MAX_ITEMS {
        return None;
    }
    let start = _pdep_u64(1 << before, starts);
    let end = _pdep_u64(2 << before, starts);
    let items = end.wrapping_sub(start) & occupied.wrapping_neg();
    Some(Decoded { logical, actual, start, items, occupied: occupied == 1 })
}

/// Whether an item of `chain` has this remainder as far as its bits go.
///
/// The planes of a block are compared eight at a time, for all items at once: the block is in one register,
/// and a permutation and a shift bring any 64 bits of it to any lane. There is no branch on what the block
/// holds before the answer is nearly certain, so that the processor works on the next query meanwhile.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi1,bmi2,popcnt,lzcnt")]
pub(crate) fn contains_avx512<const N: usize>(
    geometry: &Geometry,
    words: &[u64; N],
    chain: u32,
    remainder: u64,
) -> Option<bool> {
    let decoded = decode(geometry, words, chain)?;
    // SAFETY: the mask lets exactly the N words be read that the array has.
    let block = unsafe { _mm512_maskz_loadu_epi64(low_mask(N as u32) as u8, words.as_ptr().cast()) };
    let total = 64 * N as u32;
    let mut planes = Planes::new(geometry, decoded.logical, total);
    let mismatch = _mm512_or_epi64(planes.next(block, remainder), planes.next(block, remainder >> 8));
    let mut matching = decoded.items & !(_mm512_reduce_or_epi64(mismatch) as u64);
    let mut number = 17;
    while matching != 0 && number < 64 && geometry.array_start() + number * decoded.logical < total {
        let mismatch = planes.next(block, remainder >> (number - 1));
        matching &= !(_mm512_reduce_or_epi64(mismatch) as u64);
        number += 8;
    }
    Some(matching != 0)
}

/// Eight neighbouring planes at a time.
struct Planes {
    /// Where each of the planes starts in the block.
    starts: __m512i,
    /// Items in a plane.
    items: __m512i,
    /// Where the block ends.
    total: __m512i,
    removal: bool,
}

impl Planes {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    fn new(geometry: &Geometry, items: u32, total: u32) -> Self {
        let items = _mm512_set1_epi64(i64::from(items));
        let array = _mm512_set1_epi64(i64::from(geometry.array_start()));
        let numbers = _mm512_setr_epi64(1, 2, 3, 4, 5, 6, 7, 8);
        Self {
            starts: _mm512_add_epi64(_mm512_mul_epu32(numbers, items), array),
            items,
            total: _mm512_set1_epi64(i64::from(total)),
            removal: geometry.removal(),
        }
    }

    /// In each lane the items that differ from the lane's bit of `wanted` in the lane's plane. Goes on to the
    /// next eight planes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    fn next(&mut self, block: __m512i, wanted: u64) -> __m512i {
        let word = _mm512_srli_epi64::<6>(self.starts);
        let shift = _mm512_and_epi64(self.starts, _mm512_set1_epi64(63));
        let next_word = _mm512_add_epi64(word, _mm512_set1_epi64(1));
        let low = _mm512_srlv_epi64(_mm512_permutexvar_epi64(word, block), shift);
        // A shift by 64 leaves nothing, as it should when the plane starts with its word.
        let rest = _mm512_sub_epi64(_mm512_set1_epi64(64), shift);
        let high = _mm512_sllv_epi64(_mm512_permutexvar_epi64(next_word, block), rest);
        let stored = _mm512_or_epi64(low, high);
        let ones = _mm512_set1_epi64(-1);
        let mut differ = _mm512_mask_xor_epi64(stored, wanted as u8, stored, ones);
        let ends = _mm512_add_epi64(self.starts, self.items);
        if self.removal {
            // The incomplete plane: a stored 0 says nothing.
            let incomplete = _mm512_cmpgt_epi64_mask(ends, self.total);
            differ = _mm512_mask_and_epi64(differ, incomplete, differ, stored);
        }
        // Bits beyond the end of the block do not count: (start + 64 − total) of them, if that is positive.
        let beyond = _mm512_add_epi64(_mm512_sub_epi64(self.starts, self.total), _mm512_set1_epi64(64));
        let exist = _mm512_srlv_epi64(ones, _mm512_max_epi64(beyond, _mm512_setzero_si512()));
        self.starts = _mm512_add_epi64(self.starts, _mm512_slli_epi64::<3>(self.items));
        _mm512_and_epi64(differ, exist)
    }
}

/// [`Block::contains`] with BMI2.
#[inline]
#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
pub(crate) fn contains_bmi2(geometry: &Geometry, words: &[u64], chain: u32, remainder: u64) -> bool {
    let select = |word, k| select_bmi2(word, k);
    Block::new(*geometry, words, 0, select).contains(chain, remainder)
}

/// Bits at all multiples of a distance from 1 to 64.
static EVERY: [u64; 65] = {
    let mut patterns = [0; 65];
    let mut distance = 1;
    while distance <= 64 {
        let mut bit = 0;
        while bit < 64 {
            patterns[distance] |= 1 << bit;
            bit += distance;
        }
        distance += 1;
    }
    patterns
};

/// Inserts an item and says by how much the logical count grew; `None`, and nothing is changed, where
/// [`BlockMut::insert`](super::block::BlockMut::insert) has to do it.
///
/// An item more is one bit more in each plane of r bits: after the insertion, a hole every r + 1 bits. So each
/// word of the new block is a deposit of old bits around the holes, and one of new bits into them.
#[inline]
#[target_feature(enable = "bmi1,bmi2,popcnt,lzcnt")]
pub(crate) fn insert_bmi2<const N: usize>(
    geometry: &Geometry,
    words: &mut [u64; N],
    chain: u32,
    remainder: u64,
) -> Option<usize> {
    let decoded = decode(geometry, words, chain)?;
    if decoded.actual != decoded.logical || decoded.logical + 1 > geometry.array_bits() {
        return None;
    }
    let stride = decoded.logical + 1;
    let every = EVERY[stride as usize];
    let mut tail = remainder << 1 | u64::from(!decoded.occupied);
    let mut hole = geometry.array_start() + decoded.start.trailing_zeros();
    let old = *words;
    // The old bit that comes next.
    let mut source = hole & !63;
    for word in hole / 64..N as u32 {
        let first = hole - word * 64;
        let holes = if first < 64 { every << first } else { 0 };
        let filled = holes.count_ones();
        words[word as usize & (N - 1)] = _pdep_u64(read(&old, source), !holes) | _pdep_u64(tail, holes);
        source += 64 - filled;
        tail = if filled < 64 { tail >> filled } else { 0 };
        hole += filled * stride;
    }
    words[(chain as usize / 64) & 1] |= 1 << (chain % 64);
    if geometry.removal() {
        geometry.write_counter(words, 0, stride as usize);
    }
    Some(1)
}
