//! Catches: a key that is lost, a length that is wrong, a repair that is none or that is forgotten, and any broken
//! invariant, after random sequences of all operations on tables so small that overflow happens all the time.

use super::*;
use crate::Change;
use crate::extension::testing::extension_core;
use crate::quotient::CodeShare;
use crate::telescoping::testing::{explicit_core, telescoping_core};

/// When a repaired query may be accepted again, as long as no key was inserted into its home.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Promise {
    Never,
    /// If an item of its home has moved on.
    IfMoved,
    /// If something was forgotten.
    Any,
}
use Promise::{Any, IfMoved, Never};

/// A filter, its remote, and what must be true of both.
struct Run<F: Tested> {
    core: F,
    remote: MemoryRemote,
    stored: HashSet<u64>,
    /// Queries that were repaired, and may not return.
    repaired: HashSet<u64>,
    promise: Promise,
    keeps_repairs_when_growing: bool,
    initial_capacity: usize,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    fixed: usize,
    resets: usize,
    spills: usize,
    grown: usize,
    returned: usize,
}

/// Keys in all parts of the table, many of them in a few quotients: runs over several blocks, and over its end.
fn pool<F: Tested>(core: &F, size: usize) -> Vec<u64> {
    let last = core.homes().units - 1;
    let wanted = |number: &u64| {
        let unit = core.unit(&key(*number));
        number.is_multiple_of(3) || unit == 2 || unit == last
    };
    (0..).filter(wanted).take(size).collect()
}

impl<F: Tested> Run<F> {
    fn new(core: F, promise: Promise, keeps_repairs_when_growing: bool) -> Self {
        let (stored, repaired, counts) = Default::default();
        let (remote, initial_capacity) = (MemoryRemote::new(), core.capacity());
        Self { initial_capacity, core, remote, stored, repaired, promise, keeps_repairs_when_growing, counts }
    }

    fn contains(&self, number: u64) -> bool {
        self.core.contains(&key(number))
    }

    /// Queries in the home of a key may return.
    fn release(&mut self, number: u64) {
        let (core, home) = (&self.core, self.core.home(&key(number)));
        let mut returned = 0;
        self.repaired.retain(|&query| {
            let released = core.home(&key(query)) == home;
            returned += usize::from(released && core.contains(&key(query)));
            !released
        });
        self.counts.returned += returned;
    }

    fn step(&mut self, random: &mut Random, pool: &[u64]) {
        let action = random.below(100);
        // Insertions and removals choose among few keys, queries among many.
        let choice = if action < 50 { 3 * self.initial_capacity } else { pool.len() };
        let number = pool[random.below(choice as u64) as usize];
        let bytes = key(number);
        match action {
            0..30 => {
                // A store that knows that the key is new, and one that has written its row already.
                let (new, committed) = (!self.stored.contains(&number), random.one_in(4));
                if committed && new && self.stored.len() < self.core.capacity() {
                    let address = self.core.hasher().digest(&bytes).hi;
                    self.remote.apply(&[Change::Insert { address, key: &bytes }]).unwrap();
                }
                let inserted = match random.one_in(3) && new {
                    true => self.core.insert_new(&bytes, &mut self.remote).map(|()| true),
                    false => self.core.insert(&bytes, &mut self.remote),
                };
                match inserted {
                    Ok(was_new) => assert_eq!(was_new, self.stored.insert(number)),
                    Err(error) => {
                        assert_eq!(self.stored.len(), self.core.capacity(), "{error}");
                        assert!(new);
                    }
                }
                self.release(number);
            }
            30..50 => {
                let stored = self.stored.remove(&number);
                let removed = match stored && random.one_in(2) {
                    true => self.core.remove_stored(&bytes, &mut self.remote),
                    false => self.core.remove(&bytes, &mut self.remote),
                };
                assert_eq!(removed.unwrap(), stored);
            }
            _ => self.adapt(number),
        }
    }

    fn grow(&mut self) {
        self.core.grow(&mut self.remote).unwrap();
        self.counts.grown += 1;
        if !self.keeps_repairs_when_growing {
            self.repaired.clear();
        }
    }

    fn adapt(&mut self, number: u64) {
        let before = self.contains(number);
        let adaptation = self.core.adapt(&key(number), &mut self.remote).unwrap();
        assert_eq!(adaptation == Adaptation::NotFalsePositive, !before || self.stored.contains(&number));
        if self.stored.contains(&number) {
            return;
        }
        match adaptation {
            Adaptation::FixedAfterReset { resets, .. } => self.counts.resets += resets,
            Adaptation::Spilled { spills, .. } => self.counts.spills += spills,
            _ => {}
        }
        assert_eq!(self.contains(number), adaptation == Adaptation::Unfixable, "{adaptation:?}");
        if adaptation.is_fixed() {
            self.counts.fixed += 1;
            if self.promise == IfMoved {
                self.release(number);
            }
            self.repaired.insert(number);
        }
    }

    fn check(&mut self) {
        self.core.check(&mut self.remote);
        assert_eq!(self.core.len(), self.stored.len());
        assert!(self.stored.iter().all(|&number| self.contains(number)), "a stored key was lost");
        for &query in self.repaired.iter().filter(|query| !self.stored.contains(query)) {
            assert!(self.promise == Any || !self.contains(query), "{query} is back");
        }
    }

    fn run(mut self, steps: usize, seed: u64) -> Counts {
        let mut random = Random::new(seed);
        let pool = pool(&self.core, 40 * self.core.capacity());
        for step in 0..steps {
            self.step(&mut random, &pool);
            if step == steps * 3 / 4 {
                self.grow();
            }
            if step % 8 == 0 {
                self.check();
            }
        }
        self.counts
    }
}

const STEPS: usize = 8_000;

/// (capacity, remainder bits)
const SIZES: [(usize, u32); 4] = [(150, 2), (150, 4), (40, 8), (400, 8)];

/// A bad hash function: in a table of 256 slots, three quarters of the bits that fingerprints are made of are always 0,
/// so that long remainders collide too.
#[derive(Debug, Clone, PartialEq)]
struct Coarse(Xxh3);

impl Coarse {
    fn thin(digest: Digest) -> Digest {
        Digest { hi: digest.hi & 0xff11_1111_1111_1111, lo: digest.lo & 0x1111_1111_1111_1111 }
    }
}

impl KeyHasher for Coarse {
    fn with_seed(seed: Seed) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    fn seed(&self) -> Seed {
        self.0.seed()
    }

    fn digest(&self, bytes: &[u8]) -> Digest {
        Self::thin(self.0.digest(bytes))
    }

    fn rehash(&self, digest: Digest, counter: u64) -> Digest {
        Self::thin(self.0.rehash(digest, counter))
    }
}

fn telescoping<H: KeyHasher>(capacity: usize, bits: u32) -> (Counts, Counts) {
    let of = |overflow| telescoping_core::<H>(parameters(capacity, bits, 0.95, overflow, 1));
    let spilling = Run::new(of(Overflow::Spill), IfMoved, false).run(STEPS, 41);
    assert!(spilling.fixed > 0 && spilling.grown > 0 && spilling.resets == 0, "{spilling:?}");
    let resetting = Run::new(of(Overflow::Reset), Any, false).run(STEPS, 42);
    assert!(resetting.fixed > 0 && resetting.spills == 0, "{resetting:?}");
    (spilling, resetting)
}

#[test]
fn telescoping_filters_lose_no_key_and_forget_nothing_but_by_reset() {
    for (capacity, bits) in SIZES {
        let (spilling, resetting) = telescoping::<Xxh3>(capacity, bits);
        if bits == 2 {
            assert!(spilling.spills > 2 && spilling.returned > 10, "{spilling:?}");
            assert!(resetting.resets > 2, "{resetting:?}");
        }
    }
    for bits in [8, 13, 19, 32] {
        let (spilling, resetting) = telescoping::<Coarse>(243, bits);
        assert!(bits > 13 || spilling.spills > 0 && resetting.resets > 0, "{spilling:?} {resetting:?}");
    }
}

fn extension<H: KeyHasher>(capacity: usize, bits: u32) -> (Counts, Counts) {
    let of = |overflow| extension_core::<H>(parameters(capacity, bits, 0.95, overflow, 2));
    let spilling = Run::new(of(Overflow::Spill), Never, true).run(STEPS, 43);
    assert!(spilling.fixed > 0 && spilling.grown > 0 && spilling.resets == 0, "{spilling:?}");
    let resetting = Run::new(of(Overflow::Reset), Any, false).run(STEPS, 44);
    assert!(resetting.fixed > 0 && resetting.spills == 0, "{resetting:?}");
    (spilling, resetting)
}

#[test]
fn extension_filters_lose_no_key_and_forget_nothing_but_by_reset() {
    for (capacity, bits) in SIZES {
        let (spilling, resetting) = extension::<Xxh3>(capacity, bits);
        if bits == 2 {
            assert!(spilling.spills > 2 && resetting.resets > 2, "{spilling:?} {resetting:?}");
        }
    }
    for bits in [8, 13, 19, 32] {
        let (spilling, resetting) = extension::<Coarse>(243, bits);
        assert!(bits > 13 || spilling.spills > 0 && resetting.resets > 0, "{spilling:?} {resetting:?}");
    }
}

/// Fewer code bits than a flag for each slot needs, down to two; and more.
#[test]
fn every_layout_of_codes_keeps_keys_and_repairs() {
    for (share, capacity, bits) in [(1, 150, 4), (2, 60, 8), (4, 200, 3), (12, 150, 4), (16, 100, 2)] {
        let of = |seed| Parameters {
            code: CodeShare(share),
            ..parameters(capacity, bits, 0.95, Overflow::Spill, seed)
        };
        let counts = Run::new(telescoping_core::<Xxh3>(of(5)), IfMoved, false).run(STEPS / 2, 46);
        assert!(
            counts.fixed > 0 && counts.grown > 0 && (share > 4 || counts.spills > 0),
            "{share}: {counts:?}"
        );
        let counts = Run::new(extension_core::<Xxh3>(of(6)), Never, true).run(STEPS / 2, 47);
        assert!(
            counts.fixed > 0 && counts.grown > 0 && (share > 4 || counts.spills > 0),
            "{share}: {counts:?}"
        );
    }
}

/// Lines of few and of many slots, with planes and without; the coarse hash makes equal fingerprints, which share a
/// home.
#[test]
fn extension_filters_on_bins_lose_no_key_and_forget_nothing() {
    for (capacity, bits) in [(150, 2), (150, 8), (40, 8), (400, 9), (100, 12), (60, 16)] {
        let core = extension_bins::<Xxh3>(parameters(capacity, bits, 0.99, Overflow::Spill, 2));
        let counts = Run::new(core, Never, true).run(STEPS / 4, 48);
        assert!(counts.grown > 0 && counts.resets == 0, "{capacity} {bits}: {counts:?}");
    }
    for bits in [2, 8, 10, 13, 16] {
        let core = extension_bins::<Coarse>(parameters(243, bits, 0.95, Overflow::Spill, 2));
        let counts = Run::new(core, Never, true).run(STEPS / 4, 49);
        assert!(counts.fixed > 0 && counts.grown > 0, "{bits}: {counts:?}");
    }
}

#[test]
fn uncompressed_filters_lose_no_key_and_forget_nothing() {
    for (capacity, bits) in SIZES {
        let core = explicit_core::<Xxh3>(parameters(capacity, bits, 0.95, Overflow::Spill, 3));
        let counts = Run::new(core, IfMoved, false).run(STEPS, 45);
        assert!(counts.fixed > 0 && counts.grown > 0, "{counts:?}");
        assert_eq!((counts.spills, counts.resets), (0, 0));
    }
}
