//! The second level: what does not fit into its bin.
//!
//! A few of all keys are here, 2% at load 0.90, but an insertion into a nearly full filter comes here once in five
//! times. So it has bins too: those of some neighbouring bins of the first level, a *group*, share one. An item's
//! number in its group goes on top of its class and tag; all three are cut anew into a class and a tag of the second
//! level's line, so nothing of it is lost: a removal finds the smallest item of a bin, and the second level can be made
//! larger at any time.
//!
//! ```text
//! first level    bin                       | class | tag            |
//! second level   turned bin / group | rest | class | tag            |
//!                bin                | class        | tag            |
//! ```
//!
//! A bin that overflows sends several items, of neighbouring classes; so that they do not crowd one place, bins
//! are *turned* by a distance that depends on the class. What does not fit here either goes to the [`Rest`]; when that
//! gets too much, the second level takes more memory.

use crate::{BuildError, InvariantError, error::ensure};

use super::layout::{GROUP_BITS, Shape};
use super::line::Entry;
use super::next::{Next, Refused};
use super::rest::Rest;
use super::table::Table;
use super::turn::{turned, turned_back};

/// The items that do not fit into their bins. See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Second {
    table: Table,
    /// Of the first level.
    bins: u64,
    /// Of the first level.
    shape: Shape,
    /// How many bins of the first level share one of the second: at most [`most_bins`].
    group: u64,
    /// 2^64 − 1 divided by `group`.
    reciprocal: u64,
    /// Whether it must stay in the memory that it has.
    held: bool,
}

/// The share of the second level's slots that would be in use when the first level is full, if none overflowed here.
/// One item in twenty goes on to the rest then, and an item takes 21 bits.
const FILL: f64 = 0.9;

impl Second {
    /// The second level of a first one with so many bins that is to hold so many keys.
    pub(super) fn for_keys(bins: u64, shape: Shape, keys: usize) -> Result<Self, BuildError> {
        Self::new(bins, shape, group_for(bins, shape, keys))
    }

    /// The memory of such a second level, in bits.
    pub(super) fn size_in_bits(bins: u64, shape: Shape, keys: usize) -> usize {
        let (own_bins, cut) = own_shape(bins, shape, group_for(bins, shape, keys));
        let rest = Rest::size_in_bits(own_bins, cut, rest_slots(own_bins));
        8 * size_of::<Self>() + Table::line_bits(own_bins) + rest
    }

    fn new(bins: u64, shape: Shape, group: u64) -> Result<Self, BuildError> {
        let (own_bins, cut) = own_shape(bins, shape, group);
        let rest = Rest::new(own_bins, cut, rest_slots(own_bins))?;
        let table = Table::new(own_bins, cut, Next::Rest(rest))?;
        Ok(Self::from_table(table, bins, shape, group))
    }

    /// A second level that was there before: bins and shape are those of the first level.
    pub(super) fn from_table(table: Table, bins: u64, shape: Shape, group: u64) -> Self {
        Self { table, bins, shape, group, reciprocal: u64::MAX / group, held: false }
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// How many bins of the first level share one.
    pub(super) fn group(&self) -> u64 {
        self.group
    }

    fn class(&self, entry: Entry) -> u32 {
        entry.0 >> self.shape.tag_bits()
    }

    /// Where an item is here, and what it is here.
    fn place(&self, bin: u64, entry: Entry) -> (u64, Entry) {
        let turned = turned(bin, self.class(entry), self.bins);
        // The quotient without a division: exact, since (turned + 1) · group is far below 2^64.
        let own_bin = ((u128::from(turned + 1) * u128::from(self.reciprocal)) >> 64) as u64;
        let in_group = turned - own_bin * self.group;
        (own_bin, Entry(in_group as u32 * self.shape.entries() as u32 + entry.0))
    }

    /// What an item is in the first level.
    fn item(&self, own_bin: u64, own_entry: Entry) -> (u64, Entry) {
        let entries = self.shape.entries() as u32;
        let entry = Entry(own_entry.0 % entries);
        let turned = own_bin * self.group + u64::from(own_entry.0 / entries);
        (turned_back(turned, self.class(entry), self.bins), entry)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len
    }

    /// The memory in bits.
    pub(super) fn memory_bits(&self) -> usize {
        8 * size_of::<Self>() + self.table.memory_bits()
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
    }

    pub(super) fn contains(&self, bin: u64, entry: Entry) -> bool {
        let (bin, entry) = self.place(bin, entry);
        self.table.contains_entry(bin, entry)
    }

    /// How many equal items there are.
    pub(super) fn count(&self, bin: u64, entry: Entry) -> usize {
        let (bin, entry) = self.place(bin, entry);
        self.table.count_entry(bin, entry)
    }

    /// The smallest item of the same bin and class that is not less than this one.
    pub(super) fn ceiling(&self, bin: u64, entry: Entry) -> Option<Entry> {
        let (own_bin, own_entry) = self.place(bin, entry);
        let found = self.table.ceiling(own_bin, own_entry)?;
        // A class of this level holds several of the first.
        let same = found.0 >> self.shape.tag_bits() == own_entry.0 >> self.shape.tag_bits();
        same.then(|| self.item(own_bin, found).1)
    }

    /// Inserts an item, in more memory if need be: whether none was equal. Nothing changes without memory.
    pub(super) fn insert(&mut self, bin: u64, entry: Entry) -> Result<bool, Refused> {
        self.make_room();
        let (bin, entry) = self.place(bin, entry);
        self.table.insert_entry(bin, entry)
    }

    /// Takes more memory if the rest has too much of the items.
    fn make_room(&mut self) {
        if self.table.next.len() > self.table.len / 8 + 32 && self.group > 1 && !self.held {
            // Without memory, items go on into the rest, until that lacks memory too.
            let _ = self.enlarge();
        }
    }

    /// While it is held, it stays in the memory that it has.
    pub(super) fn hold(&mut self, held: bool) {
        self.make_room();
        self.held = held;
        self.table.hold(held);
    }

    /// Removes an item; `false`, and nothing changes, if it is not there.
    pub(super) fn remove(&mut self, bin: u64, entry: Entry) -> bool {
        let (bin, entry) = self.place(bin, entry);
        self.table.remove_entry(bin, entry)
    }

    /// All items, as bin and entry of the first level, in no order that means anything.
    pub(super) fn items(&self) -> impl Iterator<Item = (u64, Entry)> {
        self.table.items().map(|(bin, entry)| self.item(bin, entry))
    }

    /// Moves to groups that are a fifth smaller.
    #[cold]
    fn enlarge(&mut self) -> Result<(), BuildError> {
        let mut larger = Self::new(self.bins, self.shape, (self.group * 4 / 5).max(1))?;
        let bytes = larger.memory_bits() / 8;
        for (bin, entry) in self.items() {
            let (bin, entry) = larger.place(bin, entry);
            larger.table.insert_entry(bin, entry).map_err(|Refused| BuildError::OutOfMemory { bytes })?;
        }
        *self = larger;
        Ok(())
    }

    /// Checks what can be checked without the first level.
    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()?;
        for (bin, entry) in self.items() {
            ensure!(bin < self.bins, "an item of bin {bin} of {} in the second level", self.bins);
            ensure!(self.contains(bin, entry), "item {entry:?} of bin {bin} is not where it is looked for");
        }
        Ok(())
    }

    /// The same worked on with another instruction set, for tests that compare them.
    #[cfg(test)]
    pub(super) fn with_isa(mut self, isa: crate::bits::Isa) -> Self {
        self.table = self.table.with_isa(isa);
        self
    }
}

/// How many bins of the first level share one of the second if it is to hold so many keys: the most that leave room.
fn group_for(bins: u64, shape: Shape, keys: usize) -> u64 {
    let expected = bins as f64 * expected_overflow(keys as f64 / bins as f64, shape.slots);
    // A bin that overflows sends about six items, so that the variance is six times that of as many single ones.
    let per_bin = (expected + 3.0 * (6.0 * expected).sqrt()) / bins as f64;
    let groups = (0..=GROUP_BITS).filter_map(|bits| {
        let width = shape.entry_bits() + bits;
        let slots = Shape::with_entry_bits(width)?.slots;
        Some((FILL * f64::from(slots) / per_bin).min(((1 << width) / shape.entries()) as f64) as u64)
    });
    groups.max().unwrap_or(1).max(1)
}

/// How many bins of the first level can share one of the second: those that [`GROUP_BITS`] more bits tell apart.
pub(super) fn most_bins(shape: Shape) -> u64 {
    (1 << (shape.entry_bits() + GROUP_BITS)) / shape.entries()
}

/// How many slots there are for the rest of so many bins: they expect one and a third at the most.
fn rest_slots(own_bins: u64) -> u64 {
    own_bins + own_bins / 2
}

/// How many bins the second level has, and how their lines are cut.
pub(super) fn own_shape(bins: u64, shape: Shape, group: u64) -> (u64, Shape) {
    let bits = (group * shape.entries()).next_power_of_two().trailing_zeros();
    // Sixteen classes of the first level leave fewer bits than the narrowest cut here has.
    let widths = bits..=shape.entry_bits() + GROUP_BITS;
    (bins.div_ceil(group), widths.into_iter().find_map(Shape::with_entry_bits).unwrap_or(shape))
}

/// How many items of a bin go to the second level on average, if a bin gets `mean` items and holds `slots`: the bins of
/// a large table are Poisson distributed, and those of a small one vary less.
fn expected_overflow(mean: f64, slots: u32) -> f64 {
    let mut probability = (-mean).exp();
    let mut expected = 0.0;
    // Beyond four times the slots nothing is left, at any load that a builder allows.
    for items in 1..4 * slots {
        probability *= mean / f64::from(items);
        expected += probability * f64::from(items.saturating_sub(slots));
    }
    expected
}

#[cfg(test)]
mod tests {
    use super::expected_overflow;

    #[test]
    fn a_fiftieth_of_the_keys_overflows_at_load_0_90() {
        let share = |load: f64| expected_overflow(51.0 * load, 51) / (51.0 * load);
        assert!((0.019..0.022).contains(&share(0.90)), "{}", share(0.90));
        assert!((0.034..0.038).contains(&share(0.95)), "{}", share(0.95));
        assert!(share(0.2) < 1e-9);
    }
}
