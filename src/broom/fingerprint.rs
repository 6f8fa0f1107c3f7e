//! Fingerprints: quotient, remainder, adaptivity bits (section 4.1 of the paper), and where they are stored.
//!
//! Everything here is local and knows nothing of keys or of the remote.

use crate::bits::BitString;
use crate::quotient::Table;
use crate::{BuildError, Digest, InvariantError, KeyHasher, error::ensure};

use super::backyard::BackYard;
use super::functions::{Functions, Which};
use super::ghosts::Ghosts;
use super::level::{Baseline, Level};
use super::secondary::Secondary;

/// The longest adaptivity bits. Keys that agree beyond are not told apart; there are none unless all 128 bits of
/// their digests agree.
pub(super) const TAIL_BITS: u32 = 96;

/// All that the filter may use of a key under one hash function: its fingerprint is a prefix of this.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fingerprint {
    /// The digest of the key, whatever the function.
    pub(super) digest: Digest,
    /// The number of the function.
    pub(super) function: u64,
    /// Quotient and remainder.
    pub(super) baseline: Baseline,
    /// The bits behind the remainder, from which adaptivity bits are taken.
    pub(super) tail: BitString,
}

impl Fingerprint {
    pub(super) fn quotient(&self) -> u64 {
        self.baseline.quotient
    }
}

/// Where a stored fingerprint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    Primary(u64),
    Secondary(u64),
    BackYard,
}

/// Where fingerprints go that the primary level cannot take.
#[derive(Debug, Clone)]
pub(super) enum Overflow {
    /// Small remainders (5.3).
    Secondary(Box<Secondary>),
    /// Large remainders (5.4).
    BackYard(BackYard),
}

/// How the remainders of a filter are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// m, the quotients of the primary table.
    pub(super) slots: u64,
    /// Bits of a remainder that stand in the table: all of a small one, the signature of a large one.
    pub(super) table_bits: u32,
    /// Bits of a large remainder beside the table.
    pub(super) rest_bits: u32,
}

/// The local state of a broom filter.
#[derive(Debug, Clone)]
pub(super) struct Local<H> {
    pub(super) functions: Functions<H>,
    pub(super) primary: Level,
    pub(super) overflow: Overflow,
    pub(super) ghosts: Ghosts,
    pub(super) shape: Shape,
    /// What tests switch off, to see that something breaks.
    #[cfg(test)]
    pub(super) switches: Switches,
}

#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Switches {
    pub(super) ghosts: bool,
    pub(super) frontier: bool,
}

impl<H: KeyHasher> Local<H> {
    /// An empty filter whose functions begin with that of number `phase`.
    pub(super) fn new(shape: Shape, load: f64, hasher: H, phase: u64) -> Result<Self, BuildError> {
        let Shape { slots, table_bits, rest_bits } = shape;
        let primary = Level::new(slots, table_bits, rest_bits, true)?;
        let overflow = match rest_bits {
            0 => Overflow::Secondary(Box::new(Secondary::new(&primary.table, load)?)),
            _ => Overflow::BackYard(BackYard::new(slots)?),
        };
        Ok(Self {
            functions: Functions::new(hasher, slots, phase),
            primary,
            overflow,
            ghosts: Ghosts::default(),
            shape,
            #[cfg(test)]
            switches: Switches { ghosts: true, frontier: true },
        })
    }

    /// The primary table, which queries go to first.
    #[inline(always)]
    pub(super) fn table(&self) -> &Table {
        &self.primary.table
    }

    pub(super) fn len(&self) -> usize {
        self.table().len() + self.overflow_len()
    }

    /// How many keys are not in the primary table.
    pub(super) fn overflow_len(&self) -> usize {
        match &self.overflow {
            Overflow::Secondary(secondary) => secondary.level.table.len(),
            Overflow::BackYard(yard) => yard.len(),
        }
    }

    /// What a key is on its side of the frontier.
    pub(super) fn fingerprint(&self, digest: Digest) -> Fingerprint {
        self.fingerprint_under(digest, self.functions.side(digest))
    }

    /// What a key is under one of the functions.
    pub(super) fn fingerprint_under(&self, digest: Digest, which: Which) -> Fingerprint {
        let (quotient, string) = self.functions.string(digest, which);
        let Shape { table_bits, rest_bits, .. } = self.shape;
        let remainder = string.bits(0, table_bits);
        let rest = string.bits(table_bits.into(), rest_bits);
        let half = |start: u32| {
            let bits = string.bits(u64::from(table_bits + rest_bits + start), TAIL_BITS / 2);
            u128::from(bits.reverse_bits() >> (64 - TAIL_BITS / 2))
        };
        let tail = BitString::new(half(0) | half(TAIL_BITS / 2) << (TAIL_BITS / 2), TAIL_BITS);
        let baseline = Baseline { quotient, remainder, rest };
        Fingerprint { digest, function: self.functions.number(which), baseline, tail }
    }

    /// Where the stored fingerprint stands that is a prefix of this one. There is at most one on each level.
    pub(super) fn find(&self, key: &Fingerprint) -> Option<Spot> {
        let elsewhere = self.is_hinted(key.quotient());
        match &self.overflow {
            Overflow::BackYard(yard) if elsewhere && yard.contains(key.digest) => Some(Spot::BackYard),
            Overflow::BackYard(_) => self.primary.find(key.baseline, key.tail).map(Spot::Primary),
            Overflow::Secondary(secondary) => {
                let spot = self.primary.find(key.baseline, key.tail).map(Spot::Primary);
                spot.or_else(|| {
                    let found =
                        elsewhere.then(|| secondary.level.find(secondary.baseline(key.baseline), key.tail));
                    found.flatten().map(Spot::Secondary)
                })
            }
        }
    }

    /// How many adaptivity bits a newcomer takes whom no stored fingerprint is a prefix of: as few as keep its
    /// own from being a prefix of a stored one (Invariant 7), and no fewer than a ghost that agrees with it.
    pub(super) fn free_length(&self, key: &Fingerprint) -> u32 {
        let mut closest = self.primary.closest(key.baseline, key.tail);
        if let Overflow::Secondary(secondary) = &self.overflow
            && self.is_hinted(key.quotient())
        {
            closest = closest.max(secondary.level.closest(secondary.baseline(key.baseline), key.tail));
        }
        let free = closest.map_or(0, |common| (common + 1).min(TAIL_BITS));
        free.max(self.ghosts.longest(key.quotient(), key.function, key.tail))
    }

    /// Stores a fingerprint with so many adaptivity bits, in the primary table if it can; `false`, and nothing
    /// changes, if there is no place at all.
    pub(super) fn place(&mut self, key: &Fingerprint, len: u32) -> bool {
        let partial = self.shape.rest_bits > 0 && self.primary.has_partial_collision(key.baseline);
        (!partial && self.place_primary(key, len)) || self.place_overflow(key, len)
    }

    /// [`place`](Self::place) in the primary table only.
    pub(super) fn place_primary(&mut self, key: &Fingerprint, len: u32) -> bool {
        let end = self.primary.section_end(key.quotient());
        self.primary.insert(key.baseline, key.tail.prefix(len), end)
    }

    /// [`place`](Self::place) outside the primary table only.
    pub(super) fn place_overflow(&mut self, key: &Fingerprint, len: u32) -> bool {
        let string = key.tail.prefix(len);
        let placed = match &mut self.overflow {
            Overflow::Secondary(secondary) => {
                let baseline = secondary.baseline(key.baseline);
                secondary.has_room() && secondary.level.insert(baseline, string, u64::MAX)
            }
            Overflow::BackYard(yard) => yard.insert(key.digest),
        };
        if placed {
            self.primary.table.set_flag(key.quotient(), true);
        }
        placed
    }

    /// Takes the fingerprint of a stored key out; returns its adaptivity bits, and whether it was in the primary
    /// table.
    pub(super) fn unplace(&mut self, key: &Fingerprint) -> (BitString, bool) {
        let Some(spot) = self.find(key) else {
            debug_assert!(false, "a stored key matches its own fingerprint");
            return (BitString::EMPTY, true);
        };
        let string = match (spot, &mut self.overflow) {
            (Spot::Primary(slot), _) => return (self.primary.remove(key.quotient(), slot), true),
            (Spot::Secondary(slot), Overflow::Secondary(secondary)) => {
                let quotient = secondary.baseline(key.baseline).quotient;
                secondary.level.remove(quotient, slot)
            }
            (_, Overflow::BackYard(yard)) => {
                yard.remove(key.digest);
                BitString::EMPTY
            }
            (Spot::BackYard, Overflow::Secondary(_)) => return (BitString::EMPTY, false),
        };
        (string, false)
    }

    /// Gives a stored key so many adaptivity bits, and returns how many it had.
    pub(super) fn set_length(&mut self, key: &Fingerprint, len: u32) -> u32 {
        let spot = self.find(key);
        let level = match (spot, &mut self.overflow) {
            (Some(Spot::Primary(_)), _) => &mut self.primary,
            (Some(Spot::Secondary(_)), Overflow::Secondary(secondary)) => &mut secondary.level,
            _ => return 0,
        };
        let Some(Spot::Primary(slot) | Spot::Secondary(slot)) = spot else { return 0 };
        let old = level.string(slot).len();
        level.set_string(slot, key.tail.prefix(len));
        old
    }

    /// Remembers the adaptivity bits of a key that was removed.
    pub(super) fn add_ghost(&mut self, key: &Fingerprint, bits: BitString) {
        #[cfg(test)]
        if !self.switches.ghosts {
            return;
        }
        self.ghosts.add(key.quotient(), key.function, bits);
    }

    /// Adaptivity bits of stored keys and of ghosts.
    pub(super) fn adaptivity_bits(&self) -> usize {
        let secondary = match &self.overflow {
            Overflow::Secondary(secondary) => secondary.level.strings.bits(),
            Overflow::BackYard(_) => 0,
        };
        self.primary.strings.bits() + secondary + self.ghosts.bits()
    }

    /// Stored keys that have adaptivity bits.
    pub(super) fn adapted_keys(&self) -> usize {
        let secondary = match &self.overflow {
            Overflow::Secondary(secondary) => secondary.level.strings.strings(),
            Overflow::BackYard(_) => 0,
        };
        self.primary.strings.strings() + secondary
    }

    /// All memory, in bits.
    pub(super) fn memory_bits(&self) -> usize {
        let overflow = match &self.overflow {
            Overflow::Secondary(secondary) => secondary.level.memory_bits(),
            Overflow::BackYard(yard) => yard.memory_bits(),
        };
        self.primary.memory_bits() + overflow + self.ghosts.memory_bits()
    }

    /// Walks everything.
    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        self.primary.verify(true)?;
        self.verify_hints()?;
        let old = self.functions.number(Which::Old) & 1;
        // A ghost of the old function dies when the frontier comes to it.
        self.ghosts.verify(|quotient, function| function != old || !self.functions.is_passed(quotient))?;
        match &self.overflow {
            Overflow::Secondary(secondary) => {
                secondary.verify(self.shape.slots)?;
            }
            Overflow::BackYard(yard) => {
                ensure!(
                    yard.count() == yard.len(),
                    "{} keys in the back yard, {} counted",
                    yard.count(),
                    yard.len()
                );
                for (quotient, run) in self.table().runs() {
                    let mut signatures: Vec<u64> =
                        run.slots().map(|slot| self.table().remainder(slot)).collect();
                    signatures.sort_unstable();
                    ensure!(
                        signatures.windows(2).all(|pair| pair[0] != pair[1]),
                        "two keys of quotient {quotient} have one signature"
                    );
                }
            }
        }
        Ok(())
    }
}
