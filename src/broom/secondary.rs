//! The secondary level: fingerprints for which there was no room in their section (section 5.3 of the paper).
//!
//! The paper gives the secondary level a hash function of its own. Here its hash is a permutation of the
//! baseline fingerprint: quotient and remainder together are scrambled and cut anew. So the keys of a crowded section
//! are spread over the whole secondary table, as the paper wants, and more is gained:
//!
//! - Both levels hold one set of fingerprints. A query matches at most one key of the whole filter, and a key
//!   keeps what it has learnt (its adaptivity bits, its ghost) when it comes back into the other level.
//! - The secondary level adds no false positives of its own.
//! - The home of a key is known on either level, and with it its address in the remote. So the frontier, which
//!   walks the homes, finds the keys of both.
//!
//! The secondary table has fewer quotients than the primary one, so its remainders are longer by as many bits.
//!
//! It has room for the keys that are here [under churn](EQUILIBRIUM). Should there be more, it is made half as large
//! again.

use crate::bits::{BitString, low_mask};
use crate::error::ensure;
use crate::quotient::{Geometry, Table};
use crate::{BuildError, InvariantError};

use super::fingerprint::Baseline;
use super::level::{Level, SECTION};

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

/// How the baseline fingerprints of a primary table are cut for the secondary one: `slots` ranges of nearly equal
/// length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Bits of quotient and remainder together.
    bits: u32,
    /// The quotients of the secondary table.
    slots: u64,
}

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Secondary {
    pub(super) level: Level,
    scramble: Scramble,
    cut: Cut,
    /// The width of a remainder in the primary table.
    primary_bits: u32,
}

impl Secondary {
    /// An empty secondary level for a primary table of so many slots, of which a share `load` is in use.
    pub(super) fn new(slots: u64, remainder_bits: u32, load: f64) -> Result<Self, BuildError> {
        let cut = Cut::of(slots, remainder_bits, load);
        let level = Level::new(cut.slots, cut.remainder_bits(), 0, false)?;
        Ok(Self { level, scramble: Scramble { bits: cut.bits }, cut, primary_bits: remainder_bits })
    }

    /// The memory that [`new`](Self::new) takes, in bits.
    pub(super) fn size_in_bits(slots: u64, remainder_bits: u32, load: f64) -> usize {
        let cut = Cut::of(slots, remainder_bits, load);
        Level::size_in_bits(cut.slots, cut.remainder_bits(), 0, false)
    }

    /// A secondary level for a primary table of so many slots that was there before.
    pub(super) fn from_level(level: Level, slots: u64, remainder_bits: u32) -> Self {
        let cut = Cut { bits: fingerprint_bits(slots, remainder_bits), slots: level.table.slots() };
        Self { level, scramble: Scramble { bits: cut.bits }, cut, primary_bits: remainder_bits }
    }

    /// Quotients of the secondary tables that a primary table of so many slots can have.
    pub(super) fn sizes(slots: u64, remainder_bits: u32) -> std::ops::RangeInclusive<u64> {
        let bits = fingerprint_bits(slots, remainder_bits);
        Cut::fewest_slots(bits)..=Cut::most_slots(bits)
    }

    /// The width of remainders in one of so many quotients.
    pub(super) fn remainder_bits(slots: u64, remainder_bits: u32, own_slots: u64) -> u32 {
        Cut { bits: fingerprint_bits(slots, remainder_bits), slots: own_slots }.remainder_bits()
    }

    /// Every remainder lies in the range of its quotient.
    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        self.level.verify(false)?;
        for item in self.level.table.iter() {
            let value = u128::from(self.cut.start(item.quotient)) + u128::from(item.remainder);
            let fits = value >> self.cut.bits == 0
                && self.cut.split(value as u64) == (item.quotient, item.remainder);
            ensure!(fits, "remainder {} of secondary quotient {}", item.remainder, item.quotient);
        }
        Ok(())
    }

    /// Where the fingerprint with this primary baseline belongs.
    pub(super) fn baseline(&self, primary: Baseline) -> Baseline {
        let scrambled = self.scramble.forward(primary.quotient << self.primary_bits | primary.remainder);
        let (quotient, remainder) = self.cut.split(scrambled);
        Baseline { quotient, remainder, rest: 0 }
    }

    /// Whether a fingerprint with this primary baseline may be here, whatever its adaptivity bits.
    pub(super) fn may_contain(&self, primary: Baseline) -> bool {
        let baseline = self.baseline(primary);
        self.level.table.contains(baseline.quotient, baseline.remainder)
    }

    /// Sees to it that the fingerprint with this primary baseline finds a place without long shifts, and the memory for
    /// it. If there is none to be had, nothing changes.
    pub(super) fn make_room(&mut self, primary: Baseline) -> Result<(), BuildError> {
        if self.level.table.len() as f64 >= MAX_LOAD * self.level.table.slots() as f64 {
            self.grow()?;
        }
        let quotient = self.baseline(primary).quotient;
        let room = self.level.make_room(quotient, u64::MAX).map(drop);
        room.ok_or_else(|| BuildError::OutOfMemory { bytes: self.level.memory_bits() / 8 })
    }

    /// Becomes half as large again, unless remainders have got too short for that.
    fn grow(&mut self) -> Result<(), BuildError> {
        let slots = self.cut.slots + self.cut.slots.div_ceil(2);
        let cut = Cut { slots: slots.min(Cut::most_slots(self.cut.bits)), ..self.cut };
        if cut.slots <= self.cut.slots {
            return Ok(());
        }
        let mut level = Level::new(cut.slots, cut.remainder_bits(), 0, false)?;
        for item in self.level.table.iter() {
            let (quotient, remainder) = cut.split(self.cut.join(item.quotient, item.remainder));
            let Some(gap) = level.make_room(quotient, u64::MAX) else {
                return Err(BuildError::OutOfMemory { bytes: level.memory_bits() / 8 });
            };
            level.insert_at(Baseline { quotient, remainder, rest: 0 }, self.level.string(item.slot), gap);
        }
        level.longest_shift = level.longest_shift.max(self.level.longest_shift);
        (self.level, self.cut) = (level, cut);
        Ok(())
    }

    /// How many keys have this home. Looks for every remainder that they can have, since that is how they lie here:
    /// some microseconds, for the one quotient in a hundred that is asked about.
    pub(super) fn count(&self, home: u64) -> usize {
        let baselines = (0..1 << self.primary_bits)
            .map(|remainder| self.baseline(Baseline { quotient: home, remainder, rest: 0 }));
        baselines.map(|baseline| self.level.count(baseline)).sum()
    }

    /// The keys of a home: slot, remainder in the primary table and adaptivity bits. As costly as
    /// [`count`](Self::count).
    pub(super) fn items_of(&self, home: u64) -> Vec<(u64, u64, BitString)> {
        let remainders = 0..1_u64 << self.primary_bits;
        let items = remainders.flat_map(|remainder| {
            let slots = self.level.slots_of(self.baseline(Baseline { quotient: home, remainder, rest: 0 }));
            slots.into_iter().map(move |slot| (slot, remainder, self.level.string(slot)))
        });
        items.collect()
    }

    /// The homes of all keys, in no order.
    pub(super) fn homes(&self) -> impl Iterator<Item = u64> {
        self.primaries().map(|(primary, _)| primary >> self.primary_bits)
    }

    /// Quotient and remainder of all keys in the primary table, with their strings.
    fn primaries(&self) -> impl Iterator<Item = (u64, BitString)> {
        self.level.table.iter().map(move |item| {
            let scrambled = self.cut.join(item.quotient, item.remainder);
            (self.scramble.back(scrambled), self.level.string(item.slot))
        })
    }
}

/// The same fingerprints, however large the table is for them.
impl PartialEq for Secondary {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |secondary: &Self| {
            let mut keys: Vec<_> = secondary.primaries().collect();
            keys.sort_unstable_by_key(|&(primary, string)| (primary, string.bits(), string.len()));
            keys
        };
        (self.cut.bits, self.primary_bits) == (other.cut.bits, other.primary_bits)
            && self.level.table.len() == other.level.table.len()
            && sorted(self) == sorted(other)
    }
}

/// The bits of quotient and remainder together in a primary table of so many slots.
fn fingerprint_bits(slots: u64, remainder_bits: u32) -> u32 {
    (slots - 1).checked_ilog2().map_or(1, |bits| bits + 1) + remainder_bits
}

impl Cut {
    fn of(slots: u64, remainder_bits: u32, load: f64) -> Self {
        let bits = fingerprint_bits(slots, remainder_bits);
        let expected = slots as f64 * equilibrium_share(remainder_bits, load);
        // Few keys vary much, and more room is made for them if need be.
        let wanted = ((expected + 3.0 * expected.sqrt()) / MAX_LOAD).ceil() as u64 + 8;
        Self { bits, slots: wanted.max(Self::fewest_slots(bits)).min(Self::most_slots(bits)) }
    }

    /// As many quotients as leave remainders that a table can have.
    fn fewest_slots(bits: u32) -> u64 {
        1_u64.checked_shl(bits.saturating_sub(*Geometry::REMAINDER_BITS.end())).unwrap_or(u64::MAX)
    }

    /// As many quotients as leave remainders of two bits.
    fn most_slots(bits: u32) -> u64 {
        1 << (bits - 2)
    }

    /// The width of a remainder: of the longest range.
    fn remainder_bits(self) -> u32 {
        let longest = (1_u128 << self.bits).div_ceil(self.slots.into());
        (128 - (longest - 1).leading_zeros()).max(2)
    }

    /// The first number of a range.
    fn start(self, quotient: u64) -> u64 {
        (u128::from(quotient) << self.bits).div_ceil(self.slots.into()) as u64
    }

    /// The range of a number, and which number of it this is.
    fn split(self, value: u64) -> (u64, u64) {
        let quotient = ((u128::from(value) * u128::from(self.slots)) >> self.bits) as u64;
        (quotient, value - self.start(quotient))
    }

    fn join(self, quotient: u64, remainder: u64) -> u64 {
        self.start(quotient) + remainder
    }
}

/// The share of the secondary table's slots beyond which it grows.
const MAX_LOAD: f64 = 0.9;

/// How many more keys have no place in their section under endless churn than after insertions alone. A key that found
/// no place stays here until it is removed or carried, while places in its section become free and are taken by others.
/// Measured over 8 to 12 replacements per key: 2.0 to 2.3 at load 0.90, 2.1 to 2.6 at 0.95.
const EQUILIBRIUM: f64 = 2.5;

/// The share of the slots' number that keys without a place in their section make up under churn.
///
/// A section is a queue: its slots serve the keys in the order of their quotients, and those that wait when the
/// section ends have no place. The mean queue of random arrivals at load ρ is ρ²/(2(1 − ρ)) (Pollaczek and
/// Khinchin, service of one slot).
pub(super) fn equilibrium_share(remainder_bits: u32, load: f64) -> f64 {
    let section = SECTION as f64 * f64::from(Table::coded_slots_per_block(remainder_bits));
    EQUILIBRIUM * load * load / (2.0 * (1.0 - load)) / section
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

    #[test]
    fn every_cut_can_be_undone_and_remainders_fit() {
        let mut random = Random::new(54);
        for bits in 3..=64 {
            let most = Cut::most_slots(bits).min(1 << 40);
            for slots in [1, 2, 3, most / 2 + 1, most - most / 7, most].map(|slots| slots.clamp(1, most)) {
                let cut = Cut { bits, slots };
                let ends = [0, 1, low_mask(bits), low_mask(bits) - 1];
                for value in (0..200).map(|_| random.next() & low_mask(bits)).chain(ends) {
                    let (quotient, remainder) = cut.split(value);
                    assert!(
                        quotient < slots && remainder <= low_mask(cut.remainder_bits()),
                        "{cut:?} {value}"
                    );
                    assert_eq!(cut.join(quotient, remainder), value);
                }
            }
        }
    }

    #[test]
    fn a_level_that_has_grown_holds_what_it_held() {
        let (slots, bits) = (1 << 10, 4);
        let mut secondary = Secondary::new(slots, bits, 0.9).unwrap();
        let (mut random, mut homes) = (Random::new(55), Vec::new());
        let first = secondary.cut.slots;
        for number in 0..4_000_u64 {
            let primary = Baseline { quotient: random.below(slots), remainder: random.below(16), rest: 0 };
            let string = BitString::new(number.into(), 1 + (number % 40) as u32);
            secondary.make_room(primary).unwrap();
            let baseline = secondary.baseline(primary);
            secondary.level.insert(baseline, string);
            homes.push(primary.quotient);
            assert!(secondary.may_contain(primary));
        }
        assert!(secondary.cut.slots > 20 * first, "{:?} from {first}", secondary.cut);
        assert!(secondary.cut.slots <= Cut::most_slots(secondary.cut.bits));
        let mut found: Vec<u64> = secondary.homes().collect();
        found.sort_unstable();
        homes.sort_unstable();
        assert_eq!(found, homes);
        assert_eq!(secondary.count(homes[0]), homes.iter().filter(|&&home| home == homes[0]).count());
        assert_eq!(secondary.level.strings.strings(), 4_000);
    }
}
