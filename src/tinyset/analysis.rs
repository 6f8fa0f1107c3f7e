//! The false-positive rate, computed.
//!
//! A key that was never inserted is sent to one block and one of its L chains. It is a false positive if an item
//! of that chain agrees with it on all bits that the item has left. In a block of r items and A array bits the
//! first m = A mod r items have s = ⌊A/r⌋ bits, the others s − 1 (one bit of each is its isLast bit), so
//!
//! ```text
//! FPR(r) = 1 − (1 − 2^−s / L)^m · (1 − 2^−(s−1) / L)^(r−m)
//! ```
//!
//! and the filter's rate is the mean of FPR(r) over the number of items in a block, which is binomial: each of n
//! items chooses one of B blocks. With removal an extra bit counts only if it is 1, so such an item agrees with
//! probability ¾ · 2^−(s−1).

use super::geometry::{Geometry, REMAINDER_BITS};

/// The rate at which blocks of one geometry fail, by their number of items.
pub(crate) struct BlockRates {
    /// At `r`: the rate of a block of `r` items.
    rates: Vec<f64>,
}

impl BlockRates {
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self { rates: (0..=geometry.array_bits()).map(|items| block_rate(geometry, items)).collect() }
    }

    /// The mean over the blocks when `items` items are in `blocks` blocks. A block that has no bit left for an
    /// item refuses it; the mean counts it as a block that answers "maybe" to everything.
    pub(crate) fn mean(&self, items: usize, blocks: usize) -> f64 {
        expect(items, blocks, |load| self.rates.get(load).copied().unwrap_or(1.0))
    }

    /// The expected number of blocks that are offered more items than they have bits.
    pub(crate) fn overfull(&self, items: usize, blocks: usize) -> f64 {
        let over = |load| f64::from(u8::from(load >= self.rates.len()));
        blocks as f64 * expect(items, blocks, over)
    }
}

/// The expectation of `value` over Binomial(items, 1/blocks).
fn expect(items: usize, blocks: usize, value: impl Fn(usize) -> f64) -> f64 {
    if items == 0 || blocks <= 1 {
        return value(items);
    }
    // Weights relative to that of the mode, outwards until they vanish: no factorial, no underflow.
    let odds = 1.0 / (blocks as f64 - 1.0);
    let mode = items / blocks;
    let up = |load: usize| (items - load) as f64 / (load + 1) as f64 * odds;
    let (mut weights, mut sum) = (1.0, value(mode));
    let mut weight = 1.0;
    for load in mode..items {
        weight *= up(load);
        weights += weight;
        sum += weight * value(load + 1);
        if weight < 1e-30 {
            break;
        }
    }
    weight = 1.0;
    for load in (0..mode).rev() {
        weight /= up(load);
        weights += weight;
        sum += weight * value(load);
        if weight < 1e-30 {
            break;
        }
    }
    sum / weights
}

/// FPR(r).
fn block_rate(geometry: &Geometry, items: u32) -> f64 {
    if items == 0 {
        return 0.0;
    }
    let (planes, extended) = (geometry.array_bits() / items, geometry.array_bits() % items);
    let agree = |bits: u32| 0.5_f64.powi(bits.min(REMAINDER_BITS) as i32);
    let short = agree(planes - 1);
    let long = if geometry.removal() { (short + agree(planes)) / 2.0 } else { agree(planes) };
    // ln_1p and exp_m1 keep the digits of rates far below the precision of 1 − x.
    let miss = |agree: f64, items: u32| f64::from(items) * (-agree / f64::from(geometry.chains)).ln_1p();
    -(miss(long, extended) + miss(short, items - extended)).exp_m1()
}

/// A geometry and the blocks that it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dimensions {
    pub(crate) geometry: Geometry,
    pub(crate) blocks: usize,
}

/// The most blocks that are ever expected to overflow in a filter that holds what it was planned for.
const OVERFULL: f64 = 1e-6;

/// The fewest blocks of one geometry that hold `items` items at `rate`; `None` if even `max` are too few.
pub(crate) fn fewest_blocks(geometry: &Geometry, items: usize, rate: f64, max: usize) -> Option<usize> {
    let rates = BlockRates::new(geometry);
    let enough =
        |blocks: usize| rates.mean(items, blocks) <= rate && rates.overfull(items, blocks) <= OVERFULL;
    if max == 0 || !enough(max) {
        return None;
    }
    // More blocks are never worse: a binary search over an interval that doubles until it holds the answer. It
    // starts where the items would fill every bit of every array.
    let mut few = (items / geometry.array_bits() as usize).min(max - 1);
    let mut many = few + 1;
    while !enough(many) {
        few = many;
        many = many.saturating_mul(2).min(max);
    }
    while many - few > 1 {
        let middle = few + (many - few) / 2;
        if enough(middle) {
            many = middle;
        } else {
            few = middle;
        }
    }
    Some(many)
}

/// The smallest filter that holds `items` items at `rate` with blocks of one of the geometries, which come in the
/// order of preference: one is passed over only for another that saves a thousandth of the blocks.
pub(crate) fn smallest(
    geometries: impl Iterator<Item = Geometry>,
    items: usize,
    rate: f64,
    max: usize,
) -> Option<Dimensions> {
    let mut best: Option<Dimensions> = None;
    for geometry in geometries {
        let max = best.map_or(max, |best| best.blocks - best.blocks / 1000 - 1);
        if let Some(blocks) = fewest_blocks(&geometry, items, rate, max) {
            best = Some(Dimensions { geometry, blocks });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits per item of the smallest block that holds this many items on average at this many chains and rate.
    fn bits_per_item(items: f64, chains: u32, removal: bool, rate: f64) -> f64 {
        let blocks = 100_000;
        let fits = |&bits: &u32| {
            let geometry = Geometry::new(bits, chains, removal).unwrap();
            BlockRates::new(&geometry).mean((items * blocks as f64) as usize, blocks) <= rate
        };
        let bits = (chains + 16..4096).find(fits).unwrap();
        f64::from(bits) / items
    }

    fn assert_near(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() <= tolerance, "{found} instead of {expected}");
    }

    #[test]
    fn constant_items_per_block_take_the_bits_of_table_1() {
        let rows = [
            (16, [9.85, 14.30, 19.02]),
            (32, [9.30, 13.23, 17.34]),
            (64, [9.00, 12.65, 16.39]),
            (128, [8.85, 12.34, 15.88]),
        ];
        for (items, expected) in rows {
            for (rate, expected) in [1e-2, 1e-3, 1e-4].into_iter().zip(expected) {
                assert_near(bits_per_item(f64::from(items), items, false, rate), expected, 0.005);
            }
        }
    }

    #[test]
    fn cache_line_blocks_take_the_bits_of_tables_5_and_6() {
        let rows = [
            (512, 80, 1e-2, 8.91),
            (512, 64, 1e-2, 8.98),
            (512, 64, 1e-3, 12.82),
            (512, 64, 1e-4, 17.22),
            (256, 32, 1e-2, 9.30),
            (256, 32, 1e-3, 13.69),
            (256, 32, 1e-4, 19.12),
        ];
        for (bits, chains, rate, expected) in rows {
            let geometry = Geometry::new(bits, chains, false).unwrap();
            let items = 1_000_000;
            let blocks = fewest_blocks(&geometry, items, rate, items).unwrap();
            assert_near(blocks as f64 * f64::from(bits) / items as f64, expected, 0.005);
        }
    }

    #[test]
    fn removal_costs_the_counter_and_half_of_the_extra_bits() {
        for (rate, paper) in [(1e-2, 9.5), (1e-3, 13.2), (1e-4, 16.9)] {
            let bits = bits_per_item(64.0, 64, true, rate);
            assert!(bits <= paper, "{bits} above {paper}");
            assert_near(bits, paper, 0.01);
        }
    }

    #[test]
    fn the_mean_is_that_of_a_binomial_distribution() {
        let geometry = Geometry::new(64, 8, false).unwrap();
        let rates = BlockRates::new(&geometry);
        for (items, blocks) in [(1_usize, 1_usize), (5, 1), (1, 7), (12, 3), (30, 4), (0, 9)] {
            let share = 1.0 / blocks as f64;
            let choose = |k: usize| (0..k).fold(1.0, |c, i| c * (items - i) as f64 / (i + 1) as f64);
            let weight = |k: usize| choose(k) * share.powi(k as i32) * (1.0 - share).powi((items - k) as i32);
            let expected: f64 = (0..=items).map(|k| weight(k) * rates.rates[k]).sum();
            let found = rates.mean(items, blocks);
            assert!((found - expected).abs() <= 1e-12, "{found} instead of {expected}");
        }
    }
}
