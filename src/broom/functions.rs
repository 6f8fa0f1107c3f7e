//! Two hash functions and which of them a key uses (section 4.2 of the paper).
//!
//! A hash function of the filter is a keyed permutation of the digests, made for its number from the filter's own
//! hash. It costs one multiplication, so that a query can afford it: a re-hash of the digest would cost as much as
//! the rest of the query.
//!
//! The last bits of a digest are the **class** of its key, the same under every function. The rest of the hash changes with
//! the function, and with it the *column*:
//!
//! ```text
//! quotient = column · classes + class
//! ```
//!
//! The frontier passes one class after the other, so a class says which function its keys use, but for the one class
//! that the frontier is in. Carried keys stay in their class: wherever the frontier is, each class has its share
//! of the keys in its share of the quotients, and all parts of the table are equally full.

use crate::hash_string::HashString;
use crate::{Digest, KeyHasher};

use super::columns::Columns;

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
/// In phase p the functions are those of the numbers p (old) and p + 1 (new). Keys of the classes that the frontier has
/// passed use the new one, those of the classes ahead the old one. In the class that it is in, a key whose
/// column under the *old* function was passed uses the new one.
#[derive(Debug, Clone)]
pub(super) struct Functions<C, H> {
    hasher: H,
    old: Function,
    new: Function,
    phase: u64,
    /// The class that the frontier is in.
    class: u64,
    /// The quotient that is next there.
    next: u64,
    columns: C,
}

impl<C: Columns, H: KeyHasher> Functions<C, H> {
    /// Those from this phase on, for a table of these columns.
    pub(super) fn new(hasher: H, columns: C, phase: u64) -> Self {
        let (old, new) = (Function::number(&hasher, phase), Function::number(&hasher, phase + 1));
        Self { hasher, old, new, phase, class: 0, next: 0, columns }
    }

    /// How hashes are cut.
    pub(super) fn columns(&self) -> C {
        self.columns
    }

    pub(super) fn hasher(&self) -> &H {
        &self.hasher
    }

    /// How many functions have been left behind, and how many steps of the walk to the next one are done.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.phase, self.class * self.columns.count() + self.next / (self.columns.class_mask() + 1))
    }

    /// Moves the frontier, to another phase too. `frontier` is less than the [length](Self::walk) of the walk.
    pub(super) fn set_position(&mut self, (phase, frontier): (u64, u64)) {
        if phase != self.phase {
            *self = Self::new(self.hasher.clone(), self.columns, phase);
        }
        (self.class, self.next) = (frontier / self.columns.count(), self.step(frontier));
    }

    /// The number of steps of a walk over all quotients: one for each.
    pub(super) fn walk(&self) -> u64 {
        self.columns.quotients()
    }

    /// The quotient that a step passes.
    pub(super) fn step(&self, step: u64) -> u64 {
        step % self.columns.count() * (self.columns.class_mask() + 1) + step / self.columns.count()
    }

    /// Whether the frontier has passed a quotient.
    pub(super) fn is_passed(&self, quotient: u64) -> bool {
        (quotient & self.columns.class_mask(), quotient) < (self.class, self.next)
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
    pub(super) fn place(&self, digest: Digest) -> C::Place {
        let class = digest.hi & self.columns.class_mask();
        // Chosen without a branch, which could not be predicted.
        let function = if class < self.class { self.new } else { self.old };
        let place = self.place_under(digest, function);
        // The one class in between takes a second look.
        if class == self.class && self.columns.quotient(place) < self.next {
            return self.place_under(digest, self.new);
        }
        place
    }

    #[inline(always)]
    fn place_under(&self, digest: Digest, function: Function) -> C::Place {
        self.columns.place(digest.hi, function.high(digest))
    }

    /// The side of the frontier.
    pub(super) fn side(&self, digest: Digest) -> Which {
        let old = self.place_under(digest, self.old);
        if self.is_passed(self.columns.quotient(old)) { Which::New } else { Which::Old }
    }

    /// Quotient and string of a key under one of the functions.
    pub(super) fn string(&self, digest: Digest, which: Which) -> (u64, HashString<'_, H>) {
        let function = match which {
            Which::Old => self.old,
            Which::New => self.new,
        };
        let quotient = self.columns.quotient(self.place_under(digest, function));
        let (own, bits) = (function.digest(digest), self.columns.fraction_bits());
        (quotient, HashString::new(&self.hasher, own, self.columns.fraction(own.hi), bits))
    }
}

#[cfg(test)]
mod tests {
    //! Catches: functions that have something to do with each other, a frontier that cuts through a quotient, keys
    //! that leave their class.
    use super::super::columns::{Bins, MIN_COLUMNS, Slots, classes, whole_columns};
    use super::*;
    use crate::testing::Random;
    use crate::{Seed, Xxh3};

    fn functions(slots: u64) -> Functions<Slots, Xxh3> {
        on(Slots::new(whole_columns(slots)))
    }

    fn on<C: Columns>(columns: C) -> Functions<C, Xxh3> {
        Functions::new(Xxh3::with_seed(Seed::from(5_u64)), columns, 0)
    }

    #[test]
    fn a_key_is_new_exactly_if_its_old_quotient_was_passed() {
        for slots in [1, 3, 100, 1 << 20, (1 << 20) + 7] {
            its_side_follows_from_its_old_quotient(functions(slots));
        }
        for (bins, class_bits) in [(1, 4), (1, 6), (3, 6), (21_000, 5), (1 << 38, 6)] {
            its_side_follows_from_its_old_quotient(on(Bins::new(bins, class_bits, 8)));
        }
    }

    fn its_side_follows_from_its_old_quotient<C: Columns>(mut functions: Functions<C, Xxh3>) {
        let mut random = Random::new(1);
        for _ in 0..2_000 {
            functions.set_position((random.below(3), random.below(functions.walk())));
            let digest = Digest { hi: random.next(), lo: random.next() };
            let (old, string) = functions.string(digest, Which::Old);
            let side = functions.side(digest);
            assert_eq!(side == Which::New, functions.is_passed(old));
            let (quotient, chosen) = functions.string(digest, side);
            assert_eq!(functions.columns.quotient(functions.place(digest)), quotient);
            assert!(quotient < functions.walk());
            assert_eq!(chosen.first_word() == string.first_word(), side == Which::Old);
            let (other, _) = functions.string(digest, Which::New);
            assert_eq!((old ^ other) & functions.columns.class_mask(), 0, "the class stays");
        }
    }

    #[test]
    fn a_walk_passes_every_quotient_once_and_class_by_class() {
        for slots in [1, 31, 32, 63, 64, 65, 1000, 1024, 2000] {
            passes_every_quotient_once(functions(slots));
        }
        for (bins, class_bits) in [(1, 4), (1, 6), (3, 5), (20, 6)] {
            passes_every_quotient_once(on(Bins::new(bins, class_bits, 8)));
        }
    }

    fn passes_every_quotient_once<C: Columns>(mut functions: Functions<C, Xxh3>) {
        let slots = functions.walk();
        let mut passed = vec![false; slots as usize];
        for step in 0..slots {
            functions.set_position((0, step));
            assert_eq!(functions.position(), (0, step));
            assert!((0..slots).all(|quotient| functions.is_passed(quotient) == passed[quotient as usize]));
            let quotient = functions.step(step);
            assert_eq!(quotient & functions.columns.class_mask(), functions.class);
            assert!(!std::mem::replace(&mut passed[quotient as usize], true));
        }
        assert!(passed.iter().all(|&passed| passed));
    }

    #[test]
    fn whole_columns_cost_little_and_stay_whole() {
        for slots in 1..100_000 {
            let whole = whole_columns(slots);
            assert!(whole >= slots && whole <= slots + slots / MIN_COLUMNS + 1, "{slots}");
            assert_eq!(whole_columns(whole), whole);
        }
        assert_eq!((classes(31), classes(32), classes(1023), classes(1 << 40)), (1, 2, 32, 64));
    }

    #[test]
    fn all_parts_of_the_table_are_equally_full_wherever_the_frontier_is() {
        are_equally_full(functions(1 << 12));
        are_equally_full(on(Bins::new(64, 6, 8)));
    }

    /// 400 000 keys on 32 parts of 2^12 quotients: 12 500 ± 112 each.
    fn are_equally_full<C: Columns>(mut functions: Functions<C, Xxh3>) {
        let walk = functions.walk();
        for frontier in [0, walk / 4, walk / 2 + 17, walk - 5] {
            functions.set_position((0, frontier));
            let (mut random, mut parts) = (Random::new(3), [0_u32; 32]);
            for _ in 0..400_000 {
                let digest = Digest { hi: random.next(), lo: random.next() };
                parts[(functions.columns.quotient(functions.place(digest)) * 32 / walk) as usize] += 1;
            }
            assert!(parts.iter().all(|part| (12_000..13_000).contains(part)), "{parts:?}");
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
    fn keys_of_one_tag_have_different_ones_under_the_next_function() {
        // Pairs of one class and one tag under function 0: under function 1 one in 256 should have one tag. 60 000
        // pairs: 234 ± 15.
        let (functions, mut random) = (on(Bins::new(1, 6, 8)), Random::new(4));
        let (mut pairs, mut again) = (0, 0);
        let mut by_place = std::collections::HashMap::new();
        while pairs < 60_000 {
            let digest = Digest { hi: random.next(), lo: random.next() };
            let place = functions.place_under(digest, functions.old).to_words();
            if let Some(other) = by_place.insert(place, digest) {
                let new = |digest| functions.place_under(digest, functions.new);
                pairs += 1;
                again += u64::from(new(digest) == new(other));
            }
        }
        assert!((170..300).contains(&again), "{again}");
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
