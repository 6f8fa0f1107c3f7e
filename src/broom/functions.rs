//! Two hash functions and which of them a key uses (section 4.2 of the paper).
//!
//! A hash function of the filter is a keyed permutation of the digests, made for its number from the filter's own
//! hash. It costs one multiplication, so that a query can afford it: a re-hash of the digest would cost as much as
//! the rest of the query. The whole hash changes with the function, the quotient too: a query that shares the
//! quotient of many keys under one function shares it with strangers under the next.

use crate::hash_string::HashString;
use crate::quotient::{Place, fraction_bits};
use crate::{Digest, KeyHasher};

/// One hash function: a permutation of the 128-bit digests.
///
/// The upper half is multiplied by the function's own random odd number k. Two keys agree in b leading bits of
/// that if those of k·Δhi are 0 (or all 1): a chance of about 2^-b for every new k, whatever they did under the
/// functions before. The lower half is mixed with the upper one, for the bits far behind. A query needs the upper
/// half alone, and hashes that compute their halves apart need not compute the lower one for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Function {
    factor: u64,
    mask: u64,
}

impl Function {
    /// The function of this number.
    fn number<H: KeyHasher>(hasher: &H, number: u64) -> Self {
        // Re-hashes of keys start from their digests, of which this is one only by an accident of 2^-128.
        let tag = Digest { hi: 0x6272_6f6f_6d20_6669, lo: number };
        let random = hasher.rehash(tag, 1);
        Self { factor: random.lo | 1, mask: random.hi }
    }

    /// The half of the digest that quotient and remainder are cut from.
    #[inline(always)]
    fn high(self, digest: Digest) -> u64 {
        digest.hi.wrapping_mul(self.factor)
    }

    fn digest(self, digest: Digest) -> Digest {
        let hi = self.high(digest);
        Digest { hi, lo: digest.lo ^ fold(hi ^ self.mask, self.factor) }
    }
}

/// Both halves of a product, folded together.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Quotients from one that the frontier passes to the next.
const STRIDE: u64 = 64;

/// A quotient as a number that grows in the order of the walk: first by its place in the stride.
#[inline(always)]
fn rotated(quotient: u64) -> u64 {
    quotient.rotate_right(STRIDE.ilog2())
}

/// Which of the two functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The one that is being left.
    Old,
    /// The one that keys are carried to.
    New,
}

/// The functions in use and the frontier between them.
///
/// In phase p the functions are those of the numbers p (old) and p + 1 (new). A key whose quotient under the
/// *old* function the frontier has passed uses the new one, any other key the old one.
///
/// The frontier passes the quotients in strides of 64: first all multiples of 64, then those that are 1 more, and
/// so on. From left to right it would leave a nearly empty table behind itself and find an overfull one ahead,
/// for the keys that it carries go anywhere; so all parts of the table stay equally full.
#[derive(Debug, Clone)]
pub(super) struct Functions<H> {
    hasher: H,
    old: Function,
    new: Function,
    phase: u64,
    /// How many steps of the walk are done.
    frontier: u64,
    /// The rotated quotient that is next: what `frontier` means to a query.
    threshold: u64,
    /// m, the number of quotients.
    slots: u64,
}

impl<H: KeyHasher> Functions<H> {
    pub(super) fn new(hasher: H, slots: u64, phase: u64) -> Self {
        let (old, new) = (Function::number(&hasher, phase), Function::number(&hasher, phase + 1));
        Self { hasher, old, new, phase, frontier: 0, threshold: 0, slots }
    }

    pub(super) fn hasher(&self) -> &H {
        &self.hasher
    }

    /// How many functions have been left behind, and how many steps of the walk to the next one are done.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.phase, self.frontier)
    }

    /// Moves the frontier, to another phase too. `frontier` is less than the [length](Self::walk) of the walk.
    pub(super) fn set_position(&mut self, (phase, frontier): (u64, u64)) {
        if phase != self.phase {
            *self = Self::new(self.hasher.clone(), self.slots, phase);
        }
        self.frontier = frontier;
        let columns = self.slots.div_ceil(STRIDE);
        self.threshold = rotated(frontier % columns * STRIDE + frontier / columns);
    }

    /// The number of steps of a walk over all quotients.
    pub(super) fn walk(&self) -> u64 {
        self.slots.div_ceil(STRIDE) * STRIDE
    }

    /// The quotient that a step passes; the last strides may end in none.
    pub(super) fn step(&self, step: u64) -> Option<u64> {
        let columns = self.slots.div_ceil(STRIDE);
        Some(step % columns * STRIDE + step / columns).filter(|&quotient| quotient < self.slots)
    }

    /// Whether the frontier has passed a quotient.
    #[inline(always)]
    pub(super) fn is_passed(&self, quotient: u64) -> bool {
        rotated(quotient) < self.threshold
    }

    /// The number of a function, of which the lowest bit is enough to tell the two from each other.
    pub(super) fn number(&self, which: Which) -> u64 {
        match which {
            Which::Old => self.phase,
            Which::New => self.phase + 1,
        }
    }

    /// Where a key belongs, on whichever side of the frontier it is.
    #[inline(always)]
    pub(super) fn place(&self, digest: Digest) -> Place {
        // Both are computed and one is chosen: a branch on the side of the frontier could not be predicted.
        let (old, new) = (self.old.high(digest), self.new.high(digest));
        let quotient = ((u128::from(old) * u128::from(self.slots)) >> 64) as u64;
        let high = if self.is_passed(quotient) { new } else { old };
        let product = u128::from(high) * u128::from(self.slots);
        Place { quotient: (product >> 64) as u64, fraction: product as u64 }
    }

    /// The side of the frontier.
    pub(super) fn side(&self, digest: Digest) -> Which {
        let product = u128::from(self.old.high(digest)) * u128::from(self.slots);
        if self.is_passed((product >> 64) as u64) { Which::New } else { Which::Old }
    }

    /// Quotient and string of a key under one of the functions.
    pub(super) fn string(&self, digest: Digest, which: Which) -> (u64, HashString<'_, H>) {
        let function = match which {
            Which::Old => self.old,
            Which::New => self.new,
        };
        let digest = function.digest(digest);
        let product = u128::from(digest.hi) * u128::from(self.slots);
        let place = Place { quotient: (product >> 64) as u64, fraction: product as u64 };
        (place.quotient, HashString::new(&self.hasher, digest, place.fraction, fraction_bits(self.slots)))
    }
}

#[cfg(test)]
mod tests {
    //! Catches: functions that have something to do with each other, and a frontier that cuts through a quotient.
    use super::*;
    use crate::testing::Random;
    use crate::{Seed, Xxh3};

    fn functions(slots: u64) -> Functions<Xxh3> {
        Functions::new(Xxh3::with_seed(Seed::from(5_u64)), slots, 0)
    }

    #[test]
    fn a_key_is_new_exactly_if_its_old_quotient_was_passed() {
        let mut random = Random::new(1);
        for slots in [1, 3, 100, 1 << 20, (1 << 20) + 7] {
            let mut functions = functions(slots);
            for _ in 0..2_000 {
                functions.set_position((random.below(3), random.below(functions.walk())));
                let digest = Digest { hi: random.next(), lo: random.next() };
                let (old, string) = functions.string(digest, Which::Old);
                let side = functions.side(digest);
                assert_eq!(side == Which::New, functions.is_passed(old));
                let (quotient, chosen) = functions.string(digest, side);
                assert_eq!(functions.place(digest).quotient, quotient);
                assert_eq!(chosen.first_word() == string.first_word(), side == Which::Old);
            }
        }
    }

    #[test]
    fn a_walk_passes_every_quotient_once() {
        for slots in [1, 63, 64, 65, 1000] {
            let mut functions = functions(slots);
            let mut passed = vec![false; slots as usize];
            for step in 0..functions.walk() {
                functions.set_position((0, step));
                assert!(
                    (0..slots).all(|quotient| functions.is_passed(quotient) == passed[quotient as usize])
                );
                if let Some(quotient) = functions.step(step) {
                    assert!(!std::mem::replace(&mut passed[quotient as usize], true));
                }
            }
            assert!(passed.iter().all(|&passed| passed));
        }
    }

    #[test]
    fn keys_that_collide_under_one_function_are_strangers_under_the_next() {
        // Pairs that agree in 8 leading bits under function 0: under function 1 one in 256 should, and of the
        // bits that follow half should agree. 60 000 pairs: 234 ± 15.
        let functions = functions(1 << 10);
        let mut random = Random::new(2);
        let (mut pairs, mut again, mut agreeing) = (0, 0, 0);
        let mut by_prefix = vec![None; 256];
        while pairs < 60_000 {
            let digest = Digest { hi: random.next(), lo: random.next() };
            let slot = &mut by_prefix[(functions.old.high(digest) >> 56) as usize];
            if let Some(other) = slot.replace(digest) {
                let difference = functions.new.high(digest) ^ functions.new.high(other);
                pairs += 1;
                again += u64::from(difference >> 56 == 0);
                agreeing += u64::from(difference.count_zeros());
            }
        }
        assert!((170..300).contains(&again), "{again}");
        let share = agreeing as f64 / (64.0 * 60_000.0);
        assert!((0.497..0.503).contains(&share), "{share}");
    }

    #[test]
    fn a_function_is_a_permutation_and_numbers_make_functions() {
        let hasher = Xxh3::with_seed(Seed::from(5_u64));
        let digests: std::collections::HashSet<Digest> = (0..1_000)
            .map(|low| Function::number(&hasher, 1).digest(Digest { hi: low / 32, lo: low % 32 }))
            .collect();
        assert_eq!(digests.len(), 1_000);
        assert_ne!(Function::number(&hasher, 1), Function::number(&hasher, 2));
    }
}
