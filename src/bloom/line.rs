//! One cache line of a blocked Bloom filter: set the bits of a key in it, or ask for them.
//!
//! ```text
//! line    | lane 0  64 bits | lane 1 | lane 2 | … | lane 7 |      one aligned cache line of 64 bytes
//! key     one bit in each lane (8 probes), two in each (16), or one in every other lane (4)
//! ```
//!
//! A bit takes six bits of the digest, so eight probes take 48 of `lo`; the line is chosen by `hi`.
//!
//! At rates where the bits of a key fit into [half a line](super::half) without much loss, filters use that, which is
//! twice as fast.

use crate::Digest;
use crate::bits::{AlignedWords, Isa};

/// Lanes per line.
pub(super) const LANES: usize = 8;

/// How many bits a key sets in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probes {
    /// One in each of the even or in each of the odd lanes.
    Four,
    /// One in each lane.
    Eight,
    /// Two in each lane; they may coincide.
    Sixteen,
    /// One in each lane of half a line, which has lanes of 32 bits: see [`half`](super::half).
    Half,
}

impl Probes {
    /// Those that fill whole lines.
    pub(crate) const LINES: [Self; 3] = [Self::Four, Self::Eight, Self::Sixteen];

    /// How many they are.
    pub(super) fn count(self) -> u32 {
        match self {
            Self::Four => 4,
            Self::Eight | Self::Half => 8,
            Self::Sixteen => 16,
        }
    }
}

/// Where in `lo` the six bits for each lane start.
const SHIFTS: [u64; LANES] = [0, 6, 12, 18, 24, 30, 36, 42];

/// The lanes that four probes use, by the highest bit of `lo`, which no lane's six bits contain.
const HALVES: [[u64; LANES]; 2] = [[1, 0, 1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0, 1]];

/// The bits for a second probe of each lane: another function of `lo`.
#[inline(always)]
fn second(lo: u64) -> u64 {
    // The high bits of a product depend on all bits of the factor; the lowest would not.
    lo.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

/// The line of a digest, as the index of its first word.
#[inline(always)]
pub(super) fn first_word(words: &[u64], digest: Digest) -> usize {
    let lines = words.len() / LANES;
    ((u128::from(digest.hi) * lines as u128) >> 64) as usize * LANES
}

/// The bits of a key, lane by lane: what the vector versions compute at once.
#[inline(always)]
fn bits(probes: Probes, lo: u64, lane: usize) -> u64 {
    let bit = |source: u64, one: u64| one << (source >> SHIFTS[lane] & 63);
    match probes {
        Probes::Four => bit(lo, HALVES[(lo >> 63) as usize][lane]),
        Probes::Eight | Probes::Half => bit(lo, 1),
        Probes::Sixteen => bit(lo, 1) | bit(second(lo), 1),
    }
}

/// Sets the bits of a key, and returns whether one of them was not set before.
#[inline]
pub(super) fn insert(isa: Isa, words: &mut AlignedWords, probes: Probes, digest: Digest) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX-512 F.
        Isa::Avx512 => unsafe { x86::insert_avx512(words, probes, digest) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX2.
        Isa::Avx2 => unsafe { x86::insert_avx2(words, probes, digest) },
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Isa::Neon => neon::insert(words, probes, digest),
        _ => insert_portable(words, probes, digest),
    }
}

fn insert_portable(words: &mut AlignedWords, probes: Probes, digest: Digest) -> bool {
    let first = first_word(words, digest);
    let mut unset = 0;
    for (lane, word) in words[first..first + LANES].iter_mut().enumerate() {
        let bits = bits(probes, digest.lo, lane);
        unset |= bits & !*word;
        *word |= bits;
    }
    unset != 0
}

/// Whether all bits of a key are set.
#[inline]
pub(super) fn contains(isa: Isa, words: &AlignedWords, probes: Probes, digest: Digest) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX-512 F.
        Isa::Avx512 => unsafe { x86::contains_avx512(words, probes, digest) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX2.
        Isa::Avx2 => unsafe { x86::contains_avx2(words, probes, digest) },
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Isa::Neon => neon::contains(words, probes, digest),
        _ => contains_portable(words, probes, digest),
    }
}

fn contains_portable(words: &AlignedWords, probes: Probes, digest: Digest) -> bool {
    let first = first_word(words, digest);
    let lanes = words[first..first + LANES].iter().enumerate();
    lanes.fold(0, |unset, (lane, word)| unset | bits(probes, digest.lo, lane) & !word) == 0
}

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
mod neon;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{AlignedWords, Digest, HALVES, LANES, Probes, SHIFTS, first_word, second};

    #[target_feature(enable = "avx512f")]
    pub(super) fn contains_avx512(words: &AlignedWords, probes: Probes, digest: Digest) -> bool {
        let first = first_word(words, digest);
        let line = &words[first..first + LANES];
        // SAFETY: `line` has eight words.
        let line = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        let unset = _mm512_andnot_si512(line, bits_avx512(probes, digest.lo));
        _mm512_test_epi64_mask(unset, unset) == 0
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn insert_avx512(words: &mut AlignedWords, probes: Probes, digest: Digest) -> bool {
        let first = first_word(words, digest);
        let line = &mut words[first..first + LANES];
        let bits = bits_avx512(probes, digest.lo);
        // SAFETY: `line` has eight words.
        let old = unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        // SAFETY: as before, and the borrow is exclusive.
        unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), _mm512_or_si512(old, bits)) };
        let unset = _mm512_andnot_si512(old, bits);
        _mm512_test_epi64_mask(unset, unset) != 0
    }

    /// The bits of a key in all lanes.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn bits_avx512(probes: Probes, lo: u64) -> __m512i {
        // SAFETY: the constant has eight words.
        let shifts = unsafe { _mm512_loadu_si512(SHIFTS.as_ptr().cast()) };
        // Rotations count modulo 64, so the six bits need not be cut out.
        let bits = |source: u64, ones| {
            _mm512_rolv_epi64(ones, _mm512_srlv_epi64(_mm512_set1_epi64(source as i64), shifts))
        };
        let one = _mm512_set1_epi64(1);
        match probes {
            Probes::Four => {
                let half = &HALVES[(lo >> 63) as usize];
                // SAFETY: a half has eight words.
                bits(lo, unsafe { _mm512_loadu_si512(half.as_ptr().cast()) })
            }
            Probes::Eight | Probes::Half => bits(lo, one),
            Probes::Sixteen => _mm512_or_si512(bits(lo, one), bits(second(lo), one)),
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn contains_avx2(words: &AlignedWords, probes: Probes, digest: Digest) -> bool {
        let first = first_word(words, digest);
        let line = &words[first..first + LANES];
        let half = |lane: usize| {
            // 1 iff no bit of the key is missing in the line.
            _mm256_testc_si256(load_avx2(&line[lane..lane + 4]), bits_avx2(probes, digest.lo, lane)) == 1
        };
        half(0) && half(4)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn insert_avx2(words: &mut AlignedWords, probes: Probes, digest: Digest) -> bool {
        let first = first_word(words, digest);
        let line = &mut words[first..first + LANES];
        let mut new = false;
        for lane in [0, 4] {
            let half = &mut line[lane..lane + 4];
            let (old, bits) = (load_avx2(half), bits_avx2(probes, digest.lo, lane));
            // SAFETY: four words are 32 bytes, and the borrow is exclusive.
            unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), _mm256_or_si256(old, bits)) };
            new |= _mm256_testc_si256(old, bits) == 0;
        }
        new
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load_avx2(words: &[u64]) -> __m256i {
        let words: &[u64; 4] = words.try_into().unwrap_or(&[0; 4]);
        // SAFETY: four words are 32 bytes.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    /// The bits of a key in four lanes from `lane` on.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn bits_avx2(probes: Probes, lo: u64, lane: usize) -> __m256i {
        let shifts = load_avx2(&SHIFTS[lane..lane + 4]);
        let bits = |source: u64, ones| {
            let shifted = _mm256_srlv_epi64(_mm256_set1_epi64x(source as i64), shifts);
            _mm256_sllv_epi64(ones, _mm256_and_si256(shifted, _mm256_set1_epi64x(63)))
        };
        let one = _mm256_set1_epi64x(1);
        match probes {
            Probes::Four => bits(lo, load_avx2(&HALVES[(lo >> 63) as usize][lane..lane + 4])),
            Probes::Eight | Probes::Half => bits(lo, one),
            Probes::Sixteen => _mm256_or_si256(bits(lo, one), bits(second(lo), one)),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Catches: an instruction set that sees other bits than the portable version sets.
    use super::*;
    use crate::testing::Random;

    #[test]
    fn all_instruction_sets_see_the_same_bits() {
        let mut random = Random::new(11);
        for probes in Probes::LINES {
            let mut words = AlignedWords::zeroed(5 * LANES).unwrap();
            let mut digest = || Digest { hi: random.next(), lo: random.next() };
            let mut accepted = 0;
            for round in 0..400 {
                let key = digest();
                let new = !contains_portable(&words, probes, key);
                let before = words.clone();
                assert_eq!(insert_portable(&mut words, probes, key), new);
                for isa in Isa::available() {
                    let mut others = before.clone();
                    assert_eq!(insert(isa, &mut others, probes, key), new, "{isa:?} {probes:?}");
                    assert_eq!(others, words, "{isa:?} {probes:?}");
                }
                for digest in (0..200).map(|_| digest()).chain([key]) {
                    let expected = contains_portable(&words, probes, digest);
                    for isa in Isa::available() {
                        assert_eq!(contains(isa, &words, probes, digest), expected, "{isa:?} {probes:?}");
                    }
                    accepted += usize::from(expected);
                }
                assert!(contains_portable(&words, probes, key));
                assert!(
                    words.iter().map(|word| word.count_ones()).sum::<u32>() <= (round + 1) * probes.count()
                );
            }
            // Both answers were seen often.
            assert!((1_000..79_000).contains(&accepted), "{accepted} of 80400 accepted");
        }
    }
}
