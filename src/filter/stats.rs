//! What filters say of themselves and of what they did.

use std::fmt;

use super::Filter;

/// What [`Adaptive::adapt`](crate::Adaptive::adapt) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Adaptation {
    /// The filter rejects the key already, or the key is stored: nothing to repair.
    NotFalsePositive,
    /// The filter now rejects the key.
    Fixed {
        /// How many slots or cells were changed.
        slots: usize,
    },
    /// The filter now rejects the key; to make room, it forgot earlier repairs.
    FixedAfterReset {
        /// How many slots or cells were changed for this key.
        slots: usize,
        /// How many blocks (or, where a filter rebuilds as a whole, rebuilds) lost their earlier repairs.
        resets: usize,
    },
    /// The filter now rejects the key; the repairs of some blocks moved to a side store. Nothing was forgotten.
    Spilled {
        /// How many slots were changed for this key.
        slots: usize,
        /// How many blocks moved to the side store just now.
        spills: usize,
    },
    /// The filter still accepts the key: it can tell it no further from a stored key, because the hash bits of
    /// the two agree as far as the filter can go.
    Unfixable,
}

impl Adaptation {
    /// Whether the filter rejects the key from now on although it accepted it before.
    #[must_use]
    pub fn is_fixed(self) -> bool {
        !matches!(self, Self::NotFalsePositive | Self::Unfixable)
    }
}

/// The numbers that an operator wants to see. Fields that a filter has no use for are 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct FilterStats {
    /// Keys stored.
    pub items: usize,
    /// Slots (or bits, or cells) that the filter has for them.
    pub slots: usize,
    /// The share of the slots in use.
    pub load: f64,
    /// The memory on the heap that the filter takes for its keys and repairs, in bits, side stores included. What
    /// operations keep for themselves is apart, in [`working_bits`](Self::working_bits).
    pub bits: usize,
    /// Memory on the heap that operations work in and keep between them, in bits: some kilobits, however large the
    /// filter.
    pub working_bits: usize,
    /// False positives repaired so far.
    pub adaptations: u64,
    /// Blocks (or whole filters) that forgot their repairs to make room.
    pub resets: u64,
    /// Blocks whose repairs live in a side store now.
    pub spills: usize,
    /// Slots whose selector, extension or place is not the initial one.
    pub adapted_slots: usize,
    /// The bits that repairs take up at present.
    pub adaptivity_bits: usize,
    /// What is remembered of the repairs of removed keys: in how many pieces.
    pub ghosts: usize,
    /// The part of the [`adaptivity_bits`](Self::adaptivity_bits) that belongs to removed keys.
    pub ghost_bits: usize,
    /// Times the whole filter was rebuilt with new hash functions.
    pub rebuilds: u64,
}

impl FilterStats {
    /// The numbers of two filters taken together.
    #[must_use]
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (items, slots) = (self.items + other.items, self.slots + other.slots);
        let used = self.load * self.slots as f64 + other.load * other.slots as f64;
        Self {
            items,
            slots,
            load: if slots == 0 { 0.0 } else { used / slots as f64 },
            bits: self.bits + other.bits,
            working_bits: self.working_bits + other.working_bits,
            adaptations: self.adaptations + other.adaptations,
            resets: self.resets + other.resets,
            spills: self.spills + other.spills,
            adapted_slots: self.adapted_slots + other.adapted_slots,
            adaptivity_bits: self.adaptivity_bits + other.adaptivity_bits,
            ghosts: self.ghosts + other.ghosts,
            ghost_bits: self.ghost_bits + other.ghost_bits,
            rebuilds: self.rebuilds + other.rebuilds,
        }
    }

    /// Memory per stored key, in bits. Infinite while nothing is stored.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.bits as f64 / self.items as f64
    }
}

/// The probability that another key has the fingerprint of one of these keys. A fingerprint is one of `homes`, and this
/// many bits.
pub(crate) fn collision_rate(keys: usize, homes: u64, bits: u32) -> f64 {
    let fingerprints = homes as f64 * 2_f64.powi(bits as i32);
    // 1 − (1 − 1/fingerprints)^keys, without the loss of what is close to 1.
    -(keys as f64 * (-fingerprints.recip()).ln_1p()).exp_m1()
}

/// Writes what a filter is and what it holds, and not its words.
pub(crate) fn describe<F: Filter>(name: &str, filter: &F, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let FilterStats { bits, load, adaptations, adapted_slots, .. } = filter.stats();
    f.debug_struct(name)
        .field("len", &filter.len())
        .field("capacity", &filter.capacity())
        .field("false_positive_rate", &filter.false_positive_rate())
        .field("bits", &bits)
        .field("load", &load)
        .field("adaptations", &adaptations)
        .field("adapted_slots", &adapted_slots)
        .finish_non_exhaustive()
}

/// Implements `Debug` for a filter: its parameters and figures.
macro_rules! debug_by_figures {
    ([$($parameters:tt)*] $filter:ident $($arguments:tt)*) => {
        impl<$($parameters)*> std::fmt::Debug for $filter $($arguments)* {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::filter::describe(stringify!($filter), self, f)
            }
        }
    };
}
pub(crate) use debug_by_figures;
