//! The measures of a table: how many tables, bins, slots and bits, and what load and rate they give.

use super::variant::Variant;
use crate::BuildError;

/// k tables of N bins of b slots of `width` bits.
///
/// ```text
/// slots   | bin 0 | bin 1 | … | bin N−1 || bin 0 | bin 1 | …          slot (table·N + bin)·b + index
///         |<-b slots each->            ||
///         |<------ first table -------->||<------ second table ----…
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CuckooLayout {
    pub(super) tables: usize,
    pub(super) bin_slots: usize,
    /// Bins of one table.
    pub(super) bins: usize,
    /// Bits of one slot, selector included.
    pub(super) width: u32,
}

/// More slots than any machine has memory for, and few enough that no sum overflows.
const MAX_SLOTS: f64 = (1_u64 << 44) as f64;

impl CuckooLayout {
    pub(super) const MAX_TABLES: usize = 8;
    pub(super) const MAX_BIN: usize = 8;
    /// More bins of a table than any machine has memory for.
    pub(super) const MAX_BINS: u64 = 1 << 44;

    /// As many bins as `capacity` keys at this load need.
    pub(super) fn new(
        (tables, bin_slots): (usize, usize),
        capacity: usize,
        load: f64,
        width: u32,
    ) -> Result<Self, BuildError> {
        let per_bin_row = (tables * bin_slots) as f64;
        if capacity as f64 / load > MAX_SLOTS {
            return Err(BuildError::CapacityTooLarge { capacity, max: (MAX_SLOTS * load) as usize });
        }
        let bins = (capacity as f64 / load / per_bin_row).ceil() as usize;
        Ok(Self { tables, bin_slots, bins: bins.max(1), width })
    }

    #[inline]
    pub(super) fn slots(&self) -> usize {
        self.tables * self.bins * self.bin_slots
    }

    /// The first slot of a bin.
    #[inline]
    pub(super) fn first_slot(&self, table: usize, bin: usize) -> usize {
        (table * self.bins + bin) * self.bin_slots
    }

    /// The table and the bin of a slot.
    pub(super) fn bin_of(&self, slot: usize) -> (usize, usize) {
        let bin = slot / self.bin_slots;
        (bin / self.bins, bin % self.bins)
    }

    /// The highest load that can be asked for: a little below the load at which random keys stop fitting
    /// (0.9768 for k = 4, b = 1; 0.9803 for k = 2, b = 4), so that rebuilds stay rare. For k = 2, b = 1 it is
    /// that load itself, N = n, as in the classic analysis: there, a rebuild is no surprise.
    pub(super) fn highest_load(tables: usize, bin_slots: usize) -> f64 {
        match (tables, bin_slots) {
            (2, 1) => 0.5,
            (2, 2) => 0.88,
            (2, 3) => 0.94,
            (3, 1) => 0.9,
            (2, 4) | (4, 1) => 0.96,
            _ => 0.97,
        }
    }
}

/// The probability that a filter of this layout accepts a key that is not stored when it is full and nothing was
/// repaired.
pub(super) fn promised_rate<V: Variant>(layout: &CuckooLayout, capacity: usize) -> f64 {
    let shape = (layout.tables, layout.bin_slots);
    false_positive_rate(shape, capacity as f64 / layout.slots() as f64, layout.width - V::SELECTOR_BITS)
}

/// The probability that a fresh filter of this load accepts a key that is not stored: each of the b·k slots
/// that are looked at is occupied with probability `load`, and then matches with probability 1/(2^f − 1).
///
/// For b·k ≥ 4 this is at most the b·k·load/2^f of the papers, which is a union bound.
pub(super) fn false_positive_rate((tables, bin_slots): (usize, usize), load: f64, fingerprint: u32) -> f64 {
    let hit = load / (f64::from(fingerprint).exp2() - 1.0);
    -f64::exp_m1((tables * bin_slots) as f64 * f64::ln_1p(-hit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_bins_are_inverse() {
        let layout = CuckooLayout { tables: 3, bin_slots: 5, bins: 7, width: 8 };
        for slot in 0..layout.slots() {
            let (table, bin) = layout.bin_of(slot);
            let first = layout.first_slot(table, bin);
            assert!((first..first + 5).contains(&slot));
        }
    }

    #[test]
    fn every_capacity_fits_at_its_load() {
        for capacity in 1..3000 {
            for shape in [(2, 4), (4, 1), (3, 2)] {
                let slots = CuckooLayout::new(shape, capacity, 0.95, 8).unwrap().slots();
                let least = (capacity as f64 / 0.95).ceil() as usize;
                assert!((least..least + shape.0 * shape.1).contains(&slots));
            }
        }
    }

    #[test]
    fn the_rate_stays_below_the_union_bound() {
        for fingerprint in 2..=32 {
            for shape in [(2, 4), (4, 1), (3, 2)] {
                let bound = (shape.0 * shape.1) as f64 * 0.95 / f64::from(fingerprint).exp2();
                let rate = false_positive_rate(shape, 0.95, fingerprint);
                assert!(
                    rate <= bound * (1.0 + 1e-9) && (fingerprint < 8 || rate > 0.97 * bound),
                    "{rate} {bound}"
                );
            }
        }
    }
}
