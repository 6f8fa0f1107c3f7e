//! What does not fit into the bins of the second level either: a few of all keys, in a quotient table.
//!
//! Items are exact numbers:
//!
//! ```text
//! number = turned bin · 2^(class bits + tag bits) + class · 2^(tag bits) + tag
//! quotient = number / width        remainder = number mod width
//! ```
//!
//! The width may be any number, and so may be how many slots there are. A bin that overflows sends several items, of
//! neighbouring classes; so that they do not crowd one place, bins are *turned* by a distance that depends on the
//! class.

use crate::bits::low_mask;
use crate::quotient::{Geometry, Table};
use crate::{BuildError, InvariantError, error::ensure};

use super::layout::Shape;
use super::line::Entry;
use super::next::Refused;
use super::turn::{turned, turned_back};

/// An exact multiset of (bin, class, tag) that always has room. See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Rest {
    table: Table,
    bins: u64,
    shape: Shape,
    /// How many numbers share a quotient.
    width: u64,
    /// Whether it must stay in the memory that it has.
    held: bool,
}

/// The share of slots in use at which it takes more memory, in sixteenths.
const FULL: usize = 15;

/// The fewest slots: a few cache lines, beside which no bin is large.
const MIN_SLOTS: u64 = 64;

/// The most numbers that share a quotient.
const MAX_WIDTH: u64 = 1 << *Geometry::REMAINDER_BITS.end();

impl Rest {
    /// An empty one with about so many slots, for a table of so many bins.
    pub(super) fn new(bins: u64, shape: Shape, slots: u64) -> Result<Self, BuildError> {
        let (quotients, width, remainder_bits) = cut(bins, shape, slots);
        Ok(Self { table: Table::new(quotients, remainder_bits, false)?, bins, shape, width, held: false })
    }

    /// One that was there before, if a table of so many bins can have it.
    pub(super) fn from_table(table: Table, bins: u64, shape: Shape, width: u64) -> Self {
        Self { table, bins, shape, width, held: false }
    }

    /// Quotients and remainder bits of the table in which so many numbers share a quotient; `None` if there is none.
    pub(super) fn measures(bins: u64, shape: Shape, width: u64) -> Option<[u64; 2]> {
        let numbers = bins.checked_mul(1 << shape.entry_bits())?;
        (1..=MAX_WIDTH).contains(&width).then(|| [numbers.div_ceil(width), remainder_bits(width).into()])
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// How many numbers share a quotient.
    pub(super) fn width(&self) -> u64 {
        self.width
    }

    /// The memory of such an empty one, in bits.
    pub(super) fn size_in_bits(bins: u64, shape: Shape, slots: u64) -> usize {
        let (quotients, _, remainder_bits) = cut(bins, shape, slots);
        Table::size(quotients, remainder_bits, false).bits
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The memory in bits.
    pub(super) fn memory_bits(&self) -> usize {
        self.table.memory_bits()
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
    }

    fn class(&self, entry: Entry) -> u32 {
        entry.0 >> self.shape.tag_bits()
    }

    fn number(&self, bin: u64, entry: Entry) -> u64 {
        turned(bin, self.class(entry), self.bins) << self.shape.entry_bits() | u64::from(entry.0)
    }

    /// The bin and the entry of a number.
    fn item(&self, number: u64) -> (u64, Entry) {
        let bits = self.shape.entry_bits();
        let entry = Entry((number & low_mask(bits)) as u32);
        (turned_back(number >> bits, self.class(entry), self.bins), entry)
    }

    pub(super) fn contains(&self, bin: u64, entry: Entry) -> bool {
        let number = self.number(bin, entry);
        self.table.contains(number / self.width, number % self.width)
    }

    /// How many equal items there are.
    pub(super) fn count(&self, bin: u64, entry: Entry) -> usize {
        let number = self.number(bin, entry);
        self.numbers_of(number / self.width).filter(|&stored| stored == number).count()
    }

    /// Inserts an item, in more memory if need be: whether none was equal.
    pub(super) fn insert(&mut self, bin: u64, entry: Entry) -> Result<bool, Refused> {
        self.make_room();
        let new = !self.contains(bin, entry);
        let number = self.number(bin, entry);
        let inserted = self.table.insert(number / self.width, number % self.width);
        inserted.map(|_| new).map_err(|_| Refused)
    }

    /// Takes more memory if it is nearly full.
    fn make_room(&mut self) {
        if self.table.len() >= self.table.slots() as usize / 16 * FULL && !self.held {
            // Without memory, items go on into the tail of the table as it is, until that lacks memory too.
            let _ = self.enlarge();
        }
    }

    /// While it is held, it stays in the memory that it has.
    pub(super) fn hold(&mut self, held: bool) {
        self.make_room();
        self.held = held;
    }

    /// Removes an item; `false`, and nothing changes, if it is not there.
    pub(super) fn remove(&mut self, bin: u64, entry: Entry) -> bool {
        let number = self.number(bin, entry);
        let quotient = number / self.width;
        let rank = self.numbers_of(quotient).position(|stored| stored == number);
        rank.map(|rank| self.table.remove(quotient, rank)).is_some()
    }

    /// The smallest item of the same bin and class that is not less than this one.
    pub(super) fn ceiling(&self, bin: u64, entry: Entry) -> Option<Entry> {
        let first = self.number(bin, entry);
        let last = first | low_mask(self.shape.tag_bits());
        let quotients = first / self.width..=last / self.width;
        let numbers = quotients.flat_map(|quotient| self.numbers_of(quotient));
        let smallest = numbers.filter(|number| (first..=last).contains(number)).min()?;
        Some(self.item(smallest).1)
    }

    /// The numbers that share a quotient, in the order in which they came.
    fn numbers_of(&self, quotient: u64) -> impl Iterator<Item = u64> {
        let slots = self.table.run(quotient).into_iter().flat_map(|run| run.slots());
        slots.map(move |slot| quotient * self.width + self.table.remainder(slot))
    }

    /// All items, as bin and entry, in no order that means anything.
    pub(super) fn items(&self) -> impl Iterator<Item = (u64, Entry)> {
        self.table.iter().map(|item| self.item(item.quotient * self.width + item.remainder))
    }

    /// Moves to a quarter more slots.
    #[cold]
    fn enlarge(&mut self) -> Result<(), BuildError> {
        let slots = self.table.slots();
        let mut larger = Self::new(self.bins, self.shape, slots + slots / 4)?;
        let bytes = larger.memory_bits() / 8;
        for item in self.table.iter() {
            let number = item.quotient * self.width + item.remainder;
            let inserted = larger.table.insert(number / larger.width, number % larger.width);
            inserted.map_err(|_| BuildError::OutOfMemory { bytes })?;
        }
        *self = larger;
        Ok(())
    }

    /// Checks what can be checked without the bins.
    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        self.table.verify()?;
        for (bin, entry) in self.items() {
            ensure!(bin < self.bins, "an item of bin {bin} of {} beside the bins", self.bins);
            ensure!(self.contains(bin, entry), "item {entry:?} of bin {bin} is not where it is looked for");
        }
        Ok(())
    }
}

/// How many quotients there are for about so many slots, how many numbers share one, and how wide remainders are.
fn cut(bins: u64, shape: Shape, slots: u64) -> (u64, u64, u32) {
    let numbers = bins << shape.entry_bits();
    let slots = slots.clamp(MIN_SLOTS.min(numbers), numbers);
    // Rounded down, for no fewer slots than asked for.
    let width = (numbers / slots).clamp(1, MAX_WIDTH);
    (numbers.div_ceil(width), width, remainder_bits(width))
}

/// How wide remainders are if so many numbers share a quotient.
fn remainder_bits(width: u64) -> u32 {
    (64 - (width - 1).leading_zeros()).max(*Geometry::REMAINDER_BITS.start())
}
