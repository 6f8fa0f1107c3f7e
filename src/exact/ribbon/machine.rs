//! The sums of a row's unknowns, column by column: what every query of a table with columns comes down to.
//!
//! The columns of 64 rows are words side by side, and a band of 64 reaches into two such blocks. So the sums are the
//! parities of `first[c] & low ^ second[c] & high`. Whole queries are compiled for each machine, so that this is
//! inlined into them.

use crate::bits::Isa;

/// The most columns that a table has.
pub(in crate::exact) const MOST_COLUMNS: u64 = 32;

/// How a processor adds up columns. A value of such a type is a proof that the processor has its instructions.
pub(in crate::exact) trait Machine: Copy {
    /// The sums, from the first column in the lowest bit. The words begin with the first block, and the second is `gap`
    /// words behind it. Both have this many words at least, from 1 to 32; what is behind them is not part of the sums,
    /// but may be read, and the bits beyond the last column may be anything.
    fn sums(self, words: &[u64], gap: usize, columns: usize, low: u64, high: u64) -> u32;
}

/// Which version of the queries is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exact) enum Version {
    Portable,
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with the instruction that counts bits in lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Version {
    /// The version for an instruction set that the processor has.
    pub(in crate::exact) fn of(isa: Isa) -> Self {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if std::arch::is_x86_feature_detected!("avx512vpopcntdq") => Self::Avx512,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx2 => Self::Avx2,
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Isa::Neon => Self::Neon,
            _ => Self::Portable,
        }
    }
}

/// Plain Rust: eight columns at a time, folded into the bytes of one word.
#[derive(Debug, Clone, Copy)]
pub(in crate::exact) struct Portable;

impl Machine for Portable {
    #[inline(always)]
    fn sums(self, words: &[u64], gap: usize, columns: usize, low: u64, high: u64) -> u32 {
        let (mut sums, first, second) = (0, &words[..columns], &words[gap..gap + columns]);
        for (group, (first, second)) in first.chunks(8).zip(second.chunks(8)).enumerate() {
            let mut columns = [0; 8];
            for (column, (first, second)) in columns.iter_mut().zip(first.iter().zip(second)) {
                *column = first & low ^ second & high;
            }
            sums |= u32::from(parities(columns)) << (8 * group);
        }
        sums
    }
}

/// The parities of eight words, the first one's in the lowest bit.
#[inline(always)]
fn parities(columns: [u64; 8]) -> u8 {
    const HALVES: u64 = 0x0000_0000_ffff_ffff;
    const QUARTERS: u64 = 0x0000_ffff_0000_ffff;
    const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
    // Two words become one: the fields of the first in the lower halves, those of the second in the upper ones.
    let fold = |a: u64, b: u64, mask: u64, shift: u32| (a ^ a >> shift) & mask | (b ^ b << shift) & !mask;
    let [a, b, c, d, e, f, g, h] = columns;
    let halves = [(a, e), (b, f), (c, g), (d, h)].map(|(x, y)| fold(x, y, HALVES, 32));
    let quarters = [(halves[0], halves[2]), (halves[1], halves[3])].map(|(x, y)| fold(x, y, QUARTERS, 16));
    let mut bytes = fold(quarters[0], quarters[1], BYTES, 8);
    bytes ^= bytes >> 4;
    bytes ^= bytes >> 2;
    bytes ^= bytes >> 1;
    // One bit of every byte, gathered in the uppermost byte.
    ((bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

#[cfg(target_arch = "x86_64")]
pub(in crate::exact) mod x86 {
    use std::arch::x86_64::*;

    use super::{Machine, Portable};

    /// A processor with AVX2.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::exact) struct Avx2(());

    /// A processor with AVX-512 F and VPOPCNTDQ.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::exact) struct Avx512(());

    impl Avx2 {
        /// # Safety
        ///
        /// The processor must have AVX2.
        #[inline(always)]
        pub(in crate::exact) unsafe fn new() -> Self {
            Self(())
        }
    }

    impl Avx512 {
        /// # Safety
        ///
        /// The processor must have AVX-512 F and VPOPCNTDQ.
        #[inline(always)]
        pub(in crate::exact) unsafe fn new() -> Self {
            Self(())
        }
    }

    impl Machine for Avx2 {
        #[inline(always)]
        fn sums(self, words: &[u64], gap: usize, columns: usize, low: u64, high: u64) -> u32 {
            let whole = columns.next_multiple_of(4);
            if words.len() < gap + whole {
                return at_the_end(words, gap, columns, low, high);
            }
            // SAFETY: `self` proves that the processor has AVX2, and both blocks have whole groups of words.
            unsafe { sums_avx2(words.as_ptr(), gap, whole / 4, low, high) }
        }
    }

    impl Machine for Avx512 {
        #[inline(always)]
        fn sums(self, words: &[u64], gap: usize, columns: usize, low: u64, high: u64) -> u32 {
            let (first, second) = (&words[..columns], &words[gap..gap + columns]);
            // SAFETY: `self` proves that the processor has AVX-512 F and VPOPCNTDQ.
            unsafe { sums_avx512(first, second, low, high) }
        }
    }

    /// Where the memory behind the last columns is not the table's.
    #[cold]
    #[inline(never)]
    fn at_the_end(words: &[u64], gap: usize, columns: usize, low: u64, high: u64) -> u32 {
        Portable.sums(words, gap, columns, low, high)
    }

    /// # Safety
    ///
    /// There must be this many groups of four words at the pointer, and `gap` words behind it.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn sums_avx2(words: *const u64, gap: usize, groups: usize, low: u64, high: u64) -> u32 {
        let (low, high) = (_mm256_set1_epi64x(low.cast_signed()), _mm256_set1_epi64x(high.cast_signed()));
        let four = |group: usize| {
            // SAFETY: as the caller promises, for groups below `groups`.
            let (first, second) = unsafe {
                let first = words.add(4 * group);
                (_mm256_loadu_si256(first.cast()), _mm256_loadu_si256(first.add(gap).cast()))
            };
            parities(_mm256_xor_si256(_mm256_and_si256(first, low), _mm256_and_si256(second, high)))
        };
        match groups {
            1 => four(0),
            // The usual number, without a loop.
            2 => four(0) | four(1) << 4,
            _ => (0..groups).fold(0, |sums, group| sums | four(group) << (4 * group)),
        }
    }

    /// The parities of four lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn parities(lanes: __m256i) -> u32 {
        // The parities of all nibbles by a table, and their number in every lane.
        let table =
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0));
        let folded =
            _mm256_and_si256(_mm256_xor_si256(lanes, _mm256_srli_epi64::<4>(lanes)), _mm256_set1_epi8(0x0f));
        let odd = _mm256_sad_epu8(_mm256_shuffle_epi8(table, folded), _mm256_setzero_si256());
        _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_slli_epi64::<63>(odd))).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    fn sums_avx512(first: &[u64], second: &[u64], low: u64, high: u64) -> u32 {
        let (low, high) = (_mm512_set1_epi64(low.cast_signed()), _mm512_set1_epi64(high.cast_signed()));
        if first.len() <= 8 && second.len() <= 8 {
            return eight(first, second, low, high);
        }
        let groups = first.chunks(8).zip(second.chunks(8)).enumerate();
        groups.fold(0, |sums, (group, (first, second))| sums | eight(first, second, low, high) << (8 * group))
    }

    /// The sums of up to eight columns.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vpopcntdq")]
    fn eight(first: &[u64], second: &[u64], low: __m512i, high: __m512i) -> u32 {
        let mask = (0xff_u32 >> (8 - first.len().min(second.len()).min(8))) as u8;
        // SAFETY: only the lanes that both slices have are loaded.
        let (first, second) = unsafe {
            let load = |words: &[u64]| _mm512_maskz_loadu_epi64(mask, words.as_ptr().cast());
            (load(first), load(second))
        };
        let columns = _mm512_xor_si512(_mm512_and_si512(first, low), _mm512_and_si512(second, high));
        let odd = _mm512_test_epi64_mask(_mm512_popcnt_epi64(columns), _mm512_set1_epi64(1));
        odd.into()
    }
}

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
pub(in crate::exact) mod neon {
    use std::arch::aarch64::*;

    use super::Machine;

    /// Every 64-bit ARM processor that this is compiled for.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::exact) struct Neon;

    impl Machine for Neon {
        #[inline(always)]
        fn sums(self, words: &[u64], gap: usize, columns: usize, low: u64, high: u64) -> u32 {
            let mut sums = 0;
            for (column, (&first, &second)) in words[..columns].iter().zip(&words[gap..]).enumerate() {
                // SAFETY: this is compiled for processors with NEON only.
                let count = unsafe { vaddv_u8(vcnt_u8(vcreate_u8(first & low ^ second & high))) };
                sums |= u32::from(count & 1) << column;
            }
            sums
        }
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a machine that adds up other columns than plain Rust does.
    use super::*;
    use crate::testing::Random;

    fn model(first: &[u64], second: &[u64], low: u64, high: u64) -> u32 {
        let odd = |(first, second): (&u64, &u64)| (first & low ^ second & high).count_ones() & 1;
        first.iter().zip(second).map(odd).enumerate().fold(0, |sums, (column, odd)| sums | odd << column)
    }

    fn agrees(machine: impl Machine) {
        let mut random = Random::new(26);
        for round in 0..20_000 {
            let columns = 1 + round % 32;
            // With and without words behind the last column.
            let len = columns + random.below(3) as usize * random.below(8) as usize;
            let words: Vec<u64> = (0..2 * len).map(|_| random.next() & random.next()).collect();
            // One behind the other, or one and the same.
            let gap = if random.one_in(8) { 0 } else { len };
            let (low, high) = (random.next(), random.next() & random.next());
            let sums = machine.sums(&words, gap, columns, low, high);
            let expected = model(&words[..columns], &words[gap..gap + columns], low, high);
            assert_eq!((sums ^ expected) << (32 - columns), 0, "{columns} of {len}");
        }
    }

    #[test]
    fn every_machine_adds_up_alike() {
        agrees(Portable);
        for isa in Isa::available() {
            match Version::of(isa) {
                Version::Portable => {}
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the processor has the instructions of its versions.
                Version::Avx2 => agrees(unsafe { x86::Avx2::new() }),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Version::Avx512 => agrees(unsafe { x86::Avx512::new() }),
                #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
                Version::Neon => agrees(neon::Neon),
            }
        }
    }
}
