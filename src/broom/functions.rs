//! Two hash functions and which of them a key uses (section 4.2 of the paper).
//!
//! A hash function of the filter is a keyed permutation of the digests, made for its number from the filter's own
//! hash. It costs one multiplication, so that a query can afford two of them: a re-hash of the digest would cost as
//! much as the rest of the query.
//!
//! All that decides where a key lies is [cut](super::columns) from its product under the function. Which function it
//! uses follows from its *turn* under the old one: if the frontier has passed that, it uses the new one. The order of
//! turns dies with the function, too. So whatever an adversary learns of a key, of its place, its company, its side of
//! the frontier, it learns of two functions.

use crate::hash_string::HashString;
use crate::{Digest, KeyHasher};

use super::columns::{Columns, STRATA};

/// One hash function: a permutation of the 128-bit digests.
///
/// The upper half is multiplied by the function's own random odd number k, and a random number a is added. Two keys
/// agree in b leading bits of that if k·Δhi is small and no border lies between them: a chance of about 2^-b for every
/// new k and a, whatever they did under the functions before. (Without a summand 0 is a border under every function,
/// and keys with hi′ = (2^j + 1)·hi collide twice as often as others, for ever.) The lower half is mixed with the upper
/// one, for the bits far behind. A query needs the upper half alone, and hashes that compute their halves apart need
/// not compute the lower one for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Function {
    factor: u64,
    summand: u64,
    mask: u64,
}

impl Function {
    /// The function of this number.
    fn number<H: KeyHasher>(hasher: &H, number: u64) -> Self {
        // Re-hashes of keys start from their digests, of which this is one only by an accident of 2^-128.
        let tag = Digest { hi: 0x6272_6f6f_6d20_6669, lo: number };
        let (random, more) = (hasher.rehash(tag, 1), hasher.rehash(tag, 2));
        Self { factor: random.lo | 1, summand: more.lo, mask: random.hi }
    }

    /// The half of the digest that everything is cut from.
    #[inline(always)]
    fn high(self, digest: Digest) -> u64 {
        digest.hi.wrapping_mul(self.factor).wrapping_add(self.summand)
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

/// A step of the frontier's walk: the keys of a quotient and a stratum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) stratum: u64,
    pub(super) quotient: u64,
}

/// The functions in use and the frontier between them.
///
/// In phase p the functions are those of the numbers p (old) and p + 1 (new). A key whose turn under the *old* function
/// was passed uses the new one.
#[derive(Debug, Clone)]
pub(super) struct Functions<C, H> {
    hasher: H,
    old: Function,
    new: Function,
    phase: u64,
    /// Steps that are done.
    done: u64,
    /// The turn of the next step.
    next: u64,
    columns: C,
}

impl<C: Columns, H: KeyHasher> Functions<C, H> {
    /// Those from this phase on, for a table of these columns.
    pub(super) fn new(hasher: H, columns: C, phase: u64) -> Self {
        let (old, new) = (Function::number(&hasher, phase), Function::number(&hasher, phase + 1));
        Self { hasher, old, new, phase, done: 0, next: 0, columns }
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
        (self.phase, self.done)
    }

    /// Moves the frontier, to another phase too. `done` is less than the [length](Self::walk) of the walk.
    pub(super) fn set_position(&mut self, (phase, done): (u64, u64)) {
        if phase != self.phase {
            *self = Self::new(self.hasher.clone(), self.columns, phase);
        }
        let Step { stratum, quotient } = self.step(done);
        (self.done, self.next) = (done, self.columns.turn_of(stratum, quotient));
    }

    /// The number of steps of a walk: one for each stratum of each quotient.
    pub(super) fn walk(&self) -> u64 {
        STRATA * self.columns.quotients()
    }

    /// What a step passes: by stratum, class and column.
    pub(super) fn step(&self, step: u64) -> Step {
        let (columns, quotients) = (self.columns.count(), self.columns.quotients());
        let (stratum, in_stratum) = (step / quotients, step % quotients);
        let (class, column) = (in_stratum / columns, in_stratum % columns);
        Step { stratum, quotient: self.columns.join(column, class as u32) }
    }

    /// Whether the frontier has passed a stratum of a quotient.
    pub(super) fn is_passed(&self, Step { stratum, quotient }: Step) -> bool {
        self.columns.turn_of(stratum, quotient) < self.next
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
        self.numbered_place(digest).0
    }

    /// Where a key belongs, and the number of the function that it uses.
    ///
    /// Whether the frontier has begun its walk is the same for all keys, so that branch costs nothing; where a key is
    /// then cannot be predicted.
    #[inline(always)]
    pub(super) fn numbered_place(&self, digest: Digest) -> (C::Place, u64) {
        let old = self.columns.cut(self.old.high(digest));
        if self.next == 0 {
            return (self.columns.place(old), self.phase);
        }
        let passed = self.columns.turn(old) < self.next;
        let new = self.columns.cut(self.new.high(digest));
        (self.columns.place(old.or(new, passed)), self.phase + u64::from(passed))
    }

    /// The side of the frontier.
    pub(super) fn side(&self, digest: Digest) -> Which {
        let old = self.columns.cut(self.old.high(digest));
        if self.columns.turn(old) < self.next { Which::New } else { Which::Old }
    }

    /// Quotient and string of a key under one of the functions.
    pub(super) fn string(&self, digest: Digest, which: Which) -> (u64, HashString<'_, H>) {
        let function = match which {
            Which::Old => self.old,
            Which::New => self.new,
        };
        let own = function.digest(digest);
        let cut = self.columns.cut(own.hi);
        let quotient = self.columns.quotient(self.columns.place(cut));
        let (fraction, bits) = self.columns.fraction(cut);
        (quotient, HashString::new(&self.hasher, own, fraction, bits))
    }
}

#[cfg(test)]
mod tests {
    //! Catches: functions that have something to do with each other, a frontier that cuts through a step, parts of the
    //! table that are fuller than others.
    use super::super::columns::{Bins, MIN_COLUMNS, Slots, classes, whole_columns};
    use super::*;
    use crate::testing::Random;
    use crate::{Seed, SipHash, Xxh3};

    fn functions(slots: u64) -> Functions<Slots, Xxh3> {
        on(Slots::new(whole_columns(slots), 8))
    }

    fn on<C: Columns>(columns: C) -> Functions<C, Xxh3> {
        Functions::new(Xxh3::with_seed(Seed::from(5_u64)), columns, 0)
    }

    fn random_digest(random: &mut Random) -> Digest {
        Digest { hi: random.next(), lo: random.next() }
    }

    #[test]
    fn a_key_is_new_exactly_if_its_old_step_was_passed() {
        for slots in [1, 3, 100, 1 << 20, (1 << 20) + 7] {
            its_side_follows_from_its_old_step(functions(slots), 8);
        }
        for (bins, classes, tag_bits) in [
            (1, 16, 8),
            (1, 64, 3),
            (3, 64, 8),
            (21_000, 32, 9),
            (1 << 32, 64, 16),
            (5, 50, 8),
            (70_001, 41, 3),
        ] {
            its_side_follows_from_its_old_step(on(Bins::new(bins, classes, tag_bits)), tag_bits);
        }
    }

    fn its_side_follows_from_its_old_step<C: Columns>(mut functions: Functions<C, Xxh3>, table_bits: u32) {
        let mut random = Random::new(1);
        for _ in 0..2_000 {
            functions.set_position((random.below(3), random.below(functions.walk())));
            let digest = random_digest(&mut random);
            let (old, string) = functions.string(digest, Which::Old);
            let side = functions.side(digest);
            let step = Step { stratum: string.bits(table_bits.into(), 2), quotient: old };
            assert_eq!(side == Which::New, functions.is_passed(step));
            let (quotient, chosen) = functions.string(digest, side);
            assert_eq!(functions.columns.quotient(functions.place(digest)), quotient);
            assert!(quotient < functions.columns.quotients());
            assert_eq!(chosen.first_word() == string.first_word(), side == Which::Old);
        }
    }

    #[test]
    fn a_walk_passes_every_step_once_stratum_by_stratum_and_class_by_class() {
        for slots in [1, 31, 32, 63, 64, 65, 300] {
            passes_every_step_once(functions(slots));
        }
        for (bins, classes) in [(1, 16), (1, 64), (3, 32), (5, 64), (7, 50), (2, 41)] {
            passes_every_step_once(on(Bins::new(bins, classes, 8)));
        }
    }

    fn passes_every_step_once<C: Columns>(mut functions: Functions<C, Xxh3>) {
        let (walk, quotients) = (functions.walk(), functions.columns.quotients());
        let number = |Step { stratum, quotient }: Step| (stratum * quotients + quotient) as usize;
        let (mut passed, mut last) = (vec![false; walk as usize], (0, 0, 0));
        for step in 0..walk {
            functions.set_position((0, step));
            assert_eq!(functions.position(), (0, step));
            let all = (0..STRATA)
                .flat_map(|stratum| (0..quotients).map(move |quotient| Step { stratum, quotient }));
            assert!(all.into_iter().all(|step| functions.is_passed(step) == passed[number(step)]));
            let here = functions.step(step);
            let (column, class) = functions.columns.split(here.quotient);
            let order = (here.stratum, class, column);
            assert!(step == 0 || order > last);
            last = order;
            assert!(!std::mem::replace(&mut passed[number(here)], true));
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
        are_equally_full(on(Bins::new(64, 64, 8)));
    }

    /// 400 000 keys on 32 parts of 2^12 quotients: 12 500 ± 112 each.
    fn are_equally_full<C: Columns>(mut functions: Functions<C, Xxh3>) {
        let (walk, quotients) = (functions.walk(), functions.columns.quotients());
        for frontier in [0, walk / 4, walk / 2 + 17, walk * 7 / 8, walk - 5] {
            functions.set_position((0, frontier));
            let (mut random, mut parts) = (Random::new(3), [0_u32; 32]);
            for _ in 0..400_000 {
                let digest = random_digest(&mut random);
                parts[(functions.columns.quotient(functions.place(digest)) * 32 / quotients) as usize] += 1;
            }
            assert!(parts.iter().all(|part| (12_000..13_000).contains(part)), "{parts:?}");
        }
    }

    /// How many of so many pairs that agree in `bits` leading bits under function 0 agree in as many under function 1.
    /// `partner` makes a key of a key.
    fn again(pairs: u64, bits: u32, mut partner: impl FnMut(&mut Random, Digest) -> Digest) -> u64 {
        let (mut random, mut found, mut again) = (Random::new(2), 0, 0);
        let hash = SipHash::with_seed(Seed::from(7_u64));
        let mut number = 0;
        while found < pairs {
            // Other functions all the time, or one unlucky factor would speak for all.
            number += 2;
            let [one, two] = [number, number + 1].map(|number| Function::number(&hash, number));
            for _ in 0..64 << bits {
                let digest = random_digest(&mut random);
                let other = partner(&mut random, digest);
                let agree =
                    |function: Function| (function.high(digest) ^ function.high(other)) >> (64 - bits) == 0;
                if agree(one) && found < pairs {
                    found += 1;
                    again += u64::from(agree(two));
                }
            }
        }
        again
    }

    #[test]
    fn keys_that_collide_under_one_function_collide_under_the_next_by_chance() {
        // One in 16 pairs: so many pairs, so many more by 5 standard deviations.
        let pairs = if std::env::var_os("BESOM_FULL").is_some() { 1_000_000 } else { 60_000 };
        let (expected, deviation) = (pairs as f64 / 16.0, (pairs as f64 / 16.0 * 15.0 / 16.0).sqrt());
        let check = |name: &str, count: u64| {
            println!("{name}: {count} of {pairs} pairs collide again, {expected:.0} expected");
            assert!((count as f64 - expected).abs() < 5.0 * deviation, "{name}: {count}");
        };
        check("random", again(pairs, 4, |random, _| random_digest(random)));
        // Without a summand these collide twice as often as others under every function.
        for j in [1, 5, 20, 40] {
            let partner = |_: &mut Random, digest: Digest| Digest {
                hi: digest.hi.wrapping_mul((1 << j) + 1),
                lo: digest.lo,
            };
            check(&format!("(2^{j} + 1)·x"), again(pairs, 4, partner));
        }
    }

    #[test]
    fn keys_of_one_place_are_in_different_ones_under_the_next_function() {
        // Pairs of one class and one tag under function 0, in one bin: under function 1 one in 256 should have one tag,
        // of one in 64 that have one class. 60 000 pairs: 3.7 ± 1.9 have both, 937 ± 30 the class.
        let (functions, mut random) = (on(Bins::new(1, 64, 8)), Random::new(4));
        let (mut pairs, mut places, mut classes) = (0, 0, 0);
        let mut by_place = std::collections::HashMap::new();
        let place = |digest, function: Function| {
            functions.columns.place(functions.columns.cut(function.high(digest)))
        };
        while pairs < 60_000 {
            let digest = random_digest(&mut random);
            if let Some(other) = by_place.insert(place(digest, functions.old).to_words(), digest) {
                let [one, two] = [digest, other].map(|digest| place(digest, functions.new));
                pairs += 1;
                places += u64::from(one == two);
                classes += u64::from(one.class(64) == two.class(64));
            }
        }
        assert!(places < 15 && (780..1_100).contains(&classes), "{places}, {classes}");
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
