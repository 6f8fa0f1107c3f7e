//! Words on 64-bit ARM, where NEON counts the bits of bytes.

use std::arch::aarch64::{vcnt_u8, vcreate_u8, vget_lane_u64, vreinterpret_u64_u8};

/// How many bits of each byte are set, in the byte.
#[inline(always)]
pub(crate) fn byte_counts(word: u64) -> u64 {
    // SAFETY: this file is compiled for processors with NEON only.
    unsafe { vget_lane_u64::<0>(vreinterpret_u64_u8(vcnt_u8(vcreate_u8(word)))) }
}

#[cfg(test)]
mod tests {
    use crate::bits::word;
    use crate::testing::Random;

    #[test]
    fn bytes_are_counted_as_in_plain_rust() {
        let mut random = Random::new(32);
        for word in (0..10_000).map(|_| random.next() & random.next()).chain([0, u64::MAX]) {
            assert_eq!(super::byte_counts(word), word::byte_counts(word));
        }
    }
}
