//! Two hash functions and which of them a key uses (section 4.2 of the paper).
//!
//! A hash function of the filter is a keyed permutation of the digests, made for its number from the filter's own
//! hash. It costs one multiplication, so that a query can afford it: a re-hash of the digest would cost as much as
//! the rest of the query. The whole hash changes with the function, the quotient too: a query that shares the
//! quotient of many keys under one function shares it with strangers under the next.

use crate::hash_string::HashString;
use crate::quotient::{Place, fraction_bits};
use crate::{Digest, KeyHasher};

/// One hash function: a permutation of the 128-bit digests, in two Feistel rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Function {
    mask: u64,
    factor: u64,
    second: u64,
}

impl Function {
    /// The function of this number.
    fn number<H: KeyHasher>(hasher: &H, number: u64) -> Self {
        // Re-hashes of keys start from their digests, of which this is one only by an accident of 2^-128.
        let tag = Digest { hi: 0x6272_6f6f_6d20_6669, lo: number };
        let (first, second) = (hasher.rehash(tag, 1), hasher.rehash(tag, 2));
        Self { mask: first.hi, factor: first.lo | 1, second: second.hi }
    }

    /// The half of the digest that quotient and remainder are cut from.
    #[inline(always)]
    fn high(self, digest: Digest) -> u64 {
        digest.hi ^ fold(digest.lo ^ self.mask, self.factor)
    }

    fn digest(self, digest: Digest) -> Digest {
        let hi = self.high(digest);
        Digest { hi, lo: digest.lo ^ fold(hi ^ self.second, self.factor) }
    }
}

/// Both halves of a product, folded together.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
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
/// *old* function is below the frontier uses the new one, any other key the old one.
#[derive(Debug, Clone)]
pub(super) struct Functions<H> {
    hasher: H,
    old: Function,
    new: Function,
    phase: u64,
    /// The first quotient that has not been passed.
    frontier: u64,
    /// The smallest hash whose quotient is not below the frontier: what `frontier` means to a query.
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

    /// How many functions have been left behind, and the first quotient that has not been passed.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.phase, self.frontier)
    }

    /// Moves the frontier, to another phase too. `frontier` is below the number of slots.
    pub(super) fn set_position(&mut self, (phase, frontier): (u64, u64)) {
        if phase != self.phase {
            *self = Self::new(self.hasher.clone(), self.slots, phase);
        }
        self.frontier = frontier;
        self.threshold = (u128::from(frontier) << 64).div_ceil(u128::from(self.slots)) as u64;
    }

    /// The number of a function, of which the lowest bit is enough to tell the two from each other.
    pub(super) fn number(&self, which: Which) -> u64 {
        match which {
            Which::Old => self.phase,
            Which::New => self.phase + 1,
        }
    }

    /// The hash bits that a key is placed by, on whichever side of the frontier it is.
    #[inline(always)]
    pub(super) fn high(&self, digest: Digest) -> u64 {
        // Both are computed and one is chosen: a branch on the side of the frontier could not be predicted.
        let (old, new) = (self.old.high(digest), self.new.high(digest));
        if old < self.threshold { new } else { old }
    }

    /// The side of the frontier.
    pub(super) fn side(&self, digest: Digest) -> Which {
        if self.old.high(digest) < self.threshold { Which::New } else { Which::Old }
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
                functions.set_position((random.below(3), random.below(slots)));
                let digest = Digest { hi: random.next(), lo: random.next() };
                let (old, string) = functions.string(digest, Which::Old);
                let side = functions.side(digest);
                assert_eq!(side == Which::New, old < functions.position().1);
                let (quotient, chosen) = functions.string(digest, side);
                let high = functions.high(digest);
                assert_eq!((u128::from(high) * u128::from(slots)) >> 64, u128::from(quotient));
                assert_eq!(chosen.first_word() == string.first_word(), side == Which::Old);
            }
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
