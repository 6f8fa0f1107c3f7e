//! One cache line of a blocked Bloom filter: set the bits of a key in it, or ask for them.
//!
//! ```text
//! line    | lane 0  64 bits | lane 1 | lane 2 | … | lane 7 |      one aligned cache line of 64 bytes
//! key     one bit in each lane (8 probes), two in each (16), or one in every other lane (4)
//! ```
//!
//! `hi` times the number of lines is a fixed-point number: its integer part is the line, and its fraction names the bits, six bits for
//! each. So a query needs one half of the digest. Sixteen probes, for low rates, take them from `lo`: what the line leaves of `hi`
//! would not tell keys apart often enough.

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
}

impl Probes {
    pub(crate) const ALL: [Self; 3] = [Self::Four, Self::Eight, Self::Sixteen];

    /// How many they are.
    pub(super) fn count(self) -> u32 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }
}

/// Where in the source the six bits for each lane start.
const SHIFTS: [u64; LANES] = [0, 6, 12, 18, 24, 30, 36, 42];

/// The lanes that four probes use, by the highest bit of the source, which no lane's six bits contain.
const HALVES: [[u64; LANES]; 2] = [[1, 0, 1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0, 1]];

/// The bits for a second probe of each lane: another function of the source.
#[inline(always)]
fn second(source: u64) -> u64 {
    // The high bits of a product depend on all bits of the factor; the lowest would not.
    source.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

/// Where a key has its bits.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The first word of its line.
    pub(super) first: usize,
    /// What its bits are cut from.
    source: u64,
}

impl Place {
    /// An odd factor whose bits look random: every digit of a product's upper half depends on all digits of the fraction that
    /// come before it, and the first ones need not be spread.
    const SPREAD: u64 = 0xd1b5_4a32_d192_ed03;

    /// The place of a key among so many words.
    #[inline(always)]
    pub(super) fn new(words: usize, probes: Probes, digest: Digest) -> Self {
        let product = u128::from(digest.hi) * (words / LANES) as u128;
        let source = match probes {
            Probes::Four | Probes::Eight => {
                ((u128::from(product as u64) * u128::from(Self::SPREAD)) >> 64) as u64
            }
            Probes::Sixteen => digest.lo,
        };
        Self { first: (product >> 64) as usize * LANES, source }
    }
}

/// How operations on one key are made: compiled into their callers, or by a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Machine {
    /// Eight probes with AVX-512.
    #[cfg(target_arch = "x86_64")]
    Inlined(x86::InlinedAvx512),
    /// Anything else.
    Called(Isa),
}

impl Machine {
    /// The best for this number of probes.
    pub(super) fn choose(isa: Isa, probes: Probes) -> Self {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 && probes == Probes::Eight {
            // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX-512 F and DQ.
            return Self::Inlined(unsafe { x86::InlinedAvx512::new() });
        }
        let _ = probes;
        Self::Called(isa)
    }

    /// Whether all bits of a key are set.
    #[inline(always)]
    pub(super) fn contains(self, words: &AlignedWords, probes: Probes, at: Place) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Inlined(machine) => machine.contains(words, at),
            Self::Called(isa) => contains(isa, words, probes, at),
        }
    }

    /// Sets the bits of a key, and returns whether one of them was not set before.
    #[inline(always)]
    pub(super) fn insert(self, words: &mut AlignedWords, probes: Probes, at: Place) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Inlined(machine) => machine.insert(words, at),
            Self::Called(isa) => insert(isa, words, probes, at),
        }
    }
}

/// The bits of a key, lane by lane: what the vector versions compute at once.
#[inline(always)]
fn bits(probes: Probes, source: u64, lane: usize) -> u64 {
    let bit = |source: u64, one: u64| one << (source >> SHIFTS[lane] & 63);
    match probes {
        Probes::Four => bit(source, HALVES[(source >> 63) as usize][lane]),
        Probes::Eight => bit(source, 1),
        Probes::Sixteen => bit(source, 1) | bit(second(source), 1),
    }
}

#[inline]
fn insert(isa: Isa, words: &mut AlignedWords, probes: Probes, at: Place) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX-512 F.
        Isa::Avx512 => unsafe { x86::insert_avx512(words, probes, at) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX2.
        Isa::Avx2 => unsafe { x86::insert_avx2(words, probes, at) },
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Isa::Neon => neon::insert(words, probes, at),
        _ => insert_portable(words, probes, at),
    }
}

fn insert_portable(words: &mut AlignedWords, probes: Probes, at: Place) -> bool {
    let mut unset = 0;
    for (lane, word) in words[at.first..at.first + LANES].iter_mut().enumerate() {
        let bits = bits(probes, at.source, lane);
        unset |= bits & !*word;
        *word |= bits;
    }
    unset != 0
}

#[inline]
fn contains(isa: Isa, words: &AlignedWords, probes: Probes, at: Place) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX-512 F.
        Isa::Avx512 => unsafe { x86::contains_avx512(words, probes, at) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX2.
        Isa::Avx2 => unsafe { x86::contains_avx2(words, probes, at) },
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Isa::Neon => neon::contains(words, probes, at),
        _ => contains_portable(words, probes, at),
    }
}

fn contains_portable(words: &AlignedWords, probes: Probes, at: Place) -> bool {
    let lanes = words[at.first..at.first + LANES].iter().enumerate();
    lanes.fold(0, |unset, (lane, word)| unset | bits(probes, at.source, lane) & !word) == 0
}

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
mod neon;

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests {
    //! Catches: an instruction set that sees other bits than the portable version sets.
    use super::*;
    use crate::testing::Random;

    #[test]
    fn all_instruction_sets_see_the_same_bits() {
        let mut random = Random::new(11);
        for probes in Probes::ALL {
            let mut words = AlignedWords::zeroed(5 * LANES).unwrap();
            let mut place = || Place::new(5 * LANES, probes, Digest { hi: random.next(), lo: random.next() });
            let mut accepted = 0;
            for round in 0..400 {
                let key = place();
                let new = !contains_portable(&words, probes, key);
                let before = words.clone();
                assert_eq!(insert_portable(&mut words, probes, key), new);
                for isa in Isa::available() {
                    let mut others = before.clone();
                    assert_eq!(
                        Machine::choose(isa, probes).insert(&mut others, probes, key),
                        new,
                        "{isa:?} {probes:?}"
                    );
                    assert_eq!(others, words, "{isa:?} {probes:?}");
                }
                for at in (0..200).map(|_| place()).chain([key]) {
                    let expected = contains_portable(&words, probes, at);
                    for isa in Isa::available() {
                        assert_eq!(contains(isa, &words, probes, at), expected, "{isa:?} {probes:?}");
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
