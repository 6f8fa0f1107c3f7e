//! Half a cache line of a blocked Bloom filter: set the bits of a key in it, or ask for them.
//!
//! ```text
//! half line    | lane 0  32 bits | lane 1 | lane 2 | … | lane 7 |      32 aligned bytes
//! key          one bit in each lane
//! ```
//!
//! The upper half of the digest times the number of half lines is a fixed-point number. Its integer part is the half
//! line. The first 32 digits behind it, times a factor for each lane, have the number of that lane's bit on top. So a
//! query needs one half of the hash, and a few vector instructions for all lanes at once.

use crate::bits::{AlignedWords, Isa};

/// Words of a half line; each has two lanes.
pub(super) const WORDS: usize = 4;

/// One number for each lane.
#[repr(C, align(16))]
struct Lanes([u32; 2 * WORDS]);

/// What the digits are multiplied with: odd numbers without a pattern.
static FACTORS: Lanes = Lanes([
    0x6a2f_9d35,
    0xc3b1_7a59,
    0x9178_ee0b,
    0x2d56_c4a7,
    0xf40b_3217,
    0x58e5_916d,
    0xb79c_06e3,
    0x1f43_d8c1,
]);

/// A one for each lane.
#[cfg(target_arch = "x86_64")]
static ONES: Lanes = Lanes([1; 2 * WORDS]);

/// Where a key belongs: the first word of its half line, and the digits that its bits are made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) first: usize,
    digits: u32,
}

impl Place {
    #[inline(always)]
    pub(super) fn new(words: &[u64], hi: u64) -> Self {
        let product = u128::from(hi) * (words.len() / WORDS) as u128;
        Self { first: (product >> 64) as usize * WORDS, digits: (product >> 32) as u32 }
    }

    /// The bits of a key, in the words of its half line.
    #[inline(always)]
    fn bits(self) -> [u64; WORDS] {
        let bit = |lane: usize| 1_u64 << (self.digits.wrapping_mul(FACTORS.0[lane]) >> 27);
        std::array::from_fn(|word| bit(2 * word) | bit(2 * word + 1) << 32)
    }
}

/// Whether all bits of a key are set.
#[inline(always)]
pub(super) fn contains(isa: Isa, words: &AlignedWords, place: Place) -> bool {
    let half = &words[place.first..place.first + WORDS];
    #[cfg(target_arch = "x86_64")]
    if isa >= Isa::Avx2 {
        // SAFETY: `isa` comes from `Isa::active` (or, in tests, `Isa::available`), so the processor has AVX2; and
        // `half` has 32 bytes.
        return unsafe { x86::contains(half.as_ptr(), place.digits) };
    }
    let _ = isa;
    half.iter().zip(place.bits()).fold(0, |unset, (word, bits)| unset | bits & !word) == 0
}

/// Sets the bits of a key, and returns whether one of them was not set before.
#[inline(always)]
pub(super) fn insert(isa: Isa, words: &mut AlignedWords, place: Place) -> bool {
    let half = &mut words[place.first..place.first + WORDS];
    #[cfg(target_arch = "x86_64")]
    if isa >= Isa::Avx2 {
        // SAFETY: as in `contains`, and the borrow is exclusive.
        return unsafe { x86::insert(half.as_mut_ptr(), place.digits) };
    }
    let _ = isa;
    let mut unset = 0;
    for (word, bits) in half.iter_mut().zip(place.bits()) {
        unset |= bits & !*word;
        *word |= bits;
    }
    unset != 0
}

/// The instructions themselves, which are inlined into callers that know nothing of AVX2; a function with a target
/// feature would be called. Registers of 128 bits leave no state behind that would slow down code without AVX.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;

    use super::{FACTORS, ONES};

    /// # Safety
    ///
    /// The processor has AVX2, and there are 32 bytes at `half`.
    #[inline(always)]
    pub(super) unsafe fn contains(half: *const u64, digits: u32) -> bool {
        let all: u8;
        // SAFETY: the caller vouches for the instructions and the 32 bytes, which are read; so are 32 bytes of each
        // constant.
        unsafe {
            asm!(
                "vmovd {low}, {digits:e}",
                "vpbroadcastd {low}, {low}",
                "vpmulld {high}, {low}, xmmword ptr [rip + {factors} + 16]",
                "vpmulld {low}, {low}, xmmword ptr [rip + {factors}]",
                "vmovdqa {ones}, xmmword ptr [rip + {one}]",
                "vpsrld {high}, {high}, 27",
                "vpsrld {low}, {low}, 27",
                "vpsllvd {high}, {ones}, {high}",
                "vpsllvd {low}, {ones}, {low}",
                "vmovdqu {ones}, xmmword ptr [{half} + 16]",
                "vpandn {high}, {ones}, {high}",
                "vmovdqu {ones}, xmmword ptr [{half}]",
                "vpandn {low}, {ones}, {low}",
                "vpor {low}, {low}, {high}",
                "vptest {low}, {low}",
                "sete {all}",
                digits = in(reg) digits,
                half = in(reg) half,
                factors = sym FACTORS,
                one = sym ONES,
                low = out(xmm_reg) _,
                high = out(xmm_reg) _,
                ones = out(xmm_reg) _,
                all = lateout(reg_byte) all,
                options(pure, readonly, nostack)
            );
        }
        all != 0
    }

    /// # Safety
    ///
    /// The processor has AVX2, and there are 32 bytes at `half` that nobody else uses.
    #[inline(always)]
    pub(super) unsafe fn insert(half: *mut u64, digits: u32) -> bool {
        let new: u8;
        // SAFETY: as in `contains`, and the 32 bytes may be written.
        unsafe {
            asm!(
                "vmovd {low}, {digits:e}",
                "vpbroadcastd {low}, {low}",
                "vpmulld {high}, {low}, xmmword ptr [rip + {factors} + 16]",
                "vpmulld {low}, {low}, xmmword ptr [rip + {factors}]",
                "vmovdqa {old}, xmmword ptr [rip + {one}]",
                "vpsrld {high}, {high}, 27",
                "vpsrld {low}, {low}, 27",
                "vpsllvd {high}, {old}, {high}",
                "vpsllvd {low}, {old}, {low}",
                "vmovdqu {old}, xmmword ptr [{half} + 16]",
                "vpor {more}, {old}, {high}",
                "vpandn {high}, {old}, {high}",
                "vmovdqu xmmword ptr [{half} + 16], {more}",
                "vmovdqu {old}, xmmword ptr [{half}]",
                "vpor {more}, {old}, {low}",
                "vpandn {low}, {old}, {low}",
                "vmovdqu xmmword ptr [{half}], {more}",
                "vpor {low}, {low}, {high}",
                "vptest {low}, {low}",
                "setne {new}",
                digits = in(reg) digits,
                half = in(reg) half,
                factors = sym FACTORS,
                one = sym ONES,
                low = out(xmm_reg) _,
                high = out(xmm_reg) _,
                old = out(xmm_reg) _,
                more = out(xmm_reg) _,
                new = lateout(reg_byte) new,
                options(nostack)
            );
        }
        new != 0
    }
}

#[cfg(test)]
mod tests {
    //! Catches: instructions that see other bits than the portable version sets; lanes whose bits hang together.
    use super::*;
    use crate::testing::Random;

    #[test]
    fn all_instruction_sets_see_the_same_bits() {
        let mut random = Random::new(11);
        let mut words = AlignedWords::zeroed(6 * WORDS).unwrap();
        let mut accepted = 0;
        for round in 0..400 {
            let key = Place::new(&words, random.next());
            let before = words.clone();
            let new = insert(Isa::Portable, &mut words, key);
            assert_eq!(new, !contains(Isa::Portable, &before, key));
            for isa in Isa::available() {
                let mut others = before.clone();
                assert_eq!((insert(isa, &mut others, key), &others), (new, &words), "{isa:?}");
            }
            for _ in 0..200 {
                let query = Place::new(&words, random.next());
                let expected = contains(Isa::Portable, &words, query);
                let same = |isa| contains(isa, &words, query) == expected && contains(isa, &words, key);
                assert!(Isa::available().into_iter().all(same));
                accepted += usize::from(expected);
            }
            assert!(words.iter().map(|word| word.count_ones()).sum::<u32>() <= (round + 1) * 8);
        }
        assert!((500..79_500).contains(&accepted), "{accepted} of 80000 accepted");
    }

    /// Two keys of one half line share a bit in each of two lanes as often as chance has it.
    #[test]
    fn the_bits_of_two_lanes_are_independent() {
        let mut random = Random::new(12);
        let rounds = 400_000;
        let mut both = [[0_u32; 8]; 8];
        let number = |digits: u32, lane: usize| digits.wrapping_mul(FACTORS.0[lane]) >> 27;
        for _ in 0..rounds {
            let (one, two) = (random.next() as u32, random.next() as u32);
            let same: Vec<bool> = (0..8).map(|lane| number(one, lane) == number(two, lane)).collect();
            for (left, row) in both.iter_mut().enumerate() {
                row.iter_mut()
                    .zip(&same)
                    .for_each(|(count, &right)| *count += u32::from(same[left] && right));
            }
        }
        for (left, row) in both.iter().enumerate() {
            for (right, &count) in row.iter().enumerate() {
                let expected = f64::from(rounds) / if left == right { 32.0 } else { 1024.0 };
                let error = (f64::from(count) - expected) / expected.sqrt();
                assert!(error.abs() < 6.0, "lanes {left} and {right}: {count} of {expected}");
            }
        }
    }
}
