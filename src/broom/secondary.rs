//! The secondary level: fingerprints for which there was no room in their section (section 5.3 of the paper).
//!
//! The paper gives the secondary level a hash function of its own. Here its hash is a permutation of the
//! baseline fingerprint: quotient and remainder together are scrambled and cut anew. So the keys of a crowded section are
//! spread over the whole secondary table, as the paper wants, and more is gained:
//!
//! - Both levels hold one set of fingerprints. A query matches at most one key of the whole filter, and a key
//!   keeps what it has learnt (its adaptivity bits, its ghost) when it comes back into the other level.
//! - The secondary level adds no false positives of its own.
//! - The home of a key is known on either level, and with it its address in the remote. So the frontier, which
//!   walks the homes, finds the keys of both.
//!
//! The secondary table has fewer quotients than the primary one, so its remainders are longer by as many bits.

use crate::BuildError;
use crate::bits::low_mask;
use crate::quotient::Table;

use super::adaptivity::SECTION;
use super::level::{Baseline, Level};

/// A permutation of numbers of `bits` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scramble {
    bits: u32,
}

impl Scramble {
    const FACTORS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

    fn forward(self, value: u64) -> u64 {
        Self::FACTORS.iter().fold(value, |value, &factor| {
            let value = value.wrapping_mul(factor) & low_mask(self.bits);
            value ^ value >> self.bits.div_ceil(2)
        })
    }

    fn back(self, value: u64) -> u64 {
        Self::FACTORS.iter().rev().fold(value, |value, &factor| {
            // A shift by at least half of the bits is its own inverse.
            let value = value ^ value >> self.bits.div_ceil(2);
            value.wrapping_mul(inverse(factor)) & low_mask(self.bits)
        })
    }
}

/// The inverse of an odd number modulo 2^64: Newton's iteration doubles the right bits, and starts with 5.
fn inverse(odd: u64) -> u64 {
    let start = odd.wrapping_mul(3) ^ 2;
    (0..4).fold(start, |x, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x))))
}

/// How the baseline fingerprints of a primary table are cut for the secondary one.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Bits of quotient and remainder together.
    bits: u32,
    /// Bits of the quotient in the secondary table.
    quotient_bits: u32,
}

/// See the [module](self).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Secondary {
    pub(super) level: Level,
    scramble: Scramble,
    /// The width of a remainder in the primary table.
    primary_bits: u32,
}

impl Secondary {
    /// An empty secondary level for a primary table of so many slots, of which a share `load` is in use.
    pub(super) fn new(slots: u64, remainder_bits: u32, load: f64) -> Result<Self, BuildError> {
        let Cut { bits, quotient_bits } = Cut::of(slots, remainder_bits, load);
        let level = Level::new(1 << quotient_bits, bits - quotient_bits, 0, false)?;
        Ok(Self { level, scramble: Scramble { bits }, primary_bits: remainder_bits })
    }

    /// The memory that [`new`](Self::new) takes, in bits.
    pub(super) fn size_in_bits(slots: u64, remainder_bits: u32, load: f64) -> usize {
        let Cut { bits, quotient_bits } = Cut::of(slots, remainder_bits, load);
        Level::size_in_bits(1 << quotient_bits, bits - quotient_bits, 0, false)
    }

    /// Where the fingerprint with this primary baseline belongs.
    pub(super) fn baseline(&self, primary: Baseline) -> Baseline {
        let scrambled = self.scramble.forward(primary.quotient << self.primary_bits | primary.remainder);
        let bits = self.level.table.remainder_bits();
        Baseline { quotient: scrambled >> bits, remainder: scrambled & low_mask(bits), rest: 0 }
    }

    /// Whether a fingerprint with this primary baseline may be here, whatever its adaptivity bits.
    pub(super) fn may_contain(&self, primary: Baseline) -> bool {
        let baseline = self.baseline(primary);
        self.level.table.contains(baseline.quotient, baseline.remainder)
    }

    /// Whether another fingerprint finds a place without long shifts.
    pub(super) fn has_room(&self) -> bool {
        (self.level.table.len() as f64) < 0.9 * self.level.table.slots() as f64
    }

    /// How many keys have this home. Looks for every remainder that they can have, since that is how they lie here:
    /// some microseconds, for the one quotient in a hundred that is asked about.
    pub(super) fn count(&self, home: u64) -> usize {
        let baselines = (0..1 << self.primary_bits)
            .map(|remainder| self.baseline(Baseline { quotient: home, remainder, rest: 0 }));
        baselines.map(|baseline| self.level.count(baseline)).sum()
    }

    /// The homes of all keys, in no order.
    pub(super) fn homes(&self) -> impl Iterator<Item = u64> {
        let bits = self.level.table.remainder_bits();
        self.level
            .table
            .iter()
            .map(move |item| self.scramble.back(item.quotient << bits | item.remainder) >> self.primary_bits)
    }
}

impl Cut {
    fn of(slots: u64, remainder_bits: u32, load: f64) -> Self {
        let bits = (slots - 1).checked_ilog2().map_or(1, |bits| bits + 1) + remainder_bits;
        // Keys that found no place stay here while others come and go in the primary table, so that there are up
        // to three times as many as after the insertions alone (measured); and few keys vary much.
        let expected = 3.0 * slots as f64 * expected_share(remainder_bits, load);
        let wanted = (expected + 12.0 * expected.sqrt()).ceil() as u64 + 32;
        let quotient_bits = wanted.next_power_of_two().ilog2().clamp(bits.saturating_sub(32), bits - 2);
        Self { bits, quotient_bits }
    }
}

/// The share of the slots' number that keys without a place in their section make up.
///
/// A section is a queue: its slots serve the keys in the order of their quotients, and those that wait when the
/// section ends have no place. The mean queue of random arrivals at load ρ is ρ²/(2(1 − ρ)) (Pollaczek and
/// Khinchin, service of one slot).
fn expected_share(remainder_bits: u32, load: f64) -> f64 {
    let section = SECTION as f64 * f64::from(Table::coded_slots_per_block(remainder_bits));
    load * load / (2.0 * (1.0 - load)) / section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn scrambling_can_be_undone_and_spreads() {
        let mut random = Random::new(53);
        for bits in 4..=64 {
            let scramble = Scramble { bits };
            for _ in 0..200 {
                let value = random.next() & low_mask(bits);
                let scrambled = scramble.forward(value);
                assert!(scrambled <= low_mask(bits));
                assert_eq!(scramble.back(scrambled), value);
            }
        }
        // Neighbours of one section: 4096 keys on 64 quotients, each with 64 ± 8.
        let scramble = Scramble { bits: 28 };
        let mut counts = [0; 64];
        (0..4096_u64).for_each(|value| counts[(scramble.forward(value * 25) >> 22) as usize] += 1);
        assert!(counts.iter().all(|count| (20..120).contains(count)), "{counts:?}");
    }
}
