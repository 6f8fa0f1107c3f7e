//! Whole tables: twice the columns, and two tables in one.

use crate::BuildError;
use crate::bits::low_mask;

use super::line::Entry;
use super::next::{Next, Refused};
use super::table::Table;

impl Table {
    /// The table with twice as many columns and one plane less, whose second level is made for so many keys. It must have a
    /// plane to give up.
    ///
    /// The first plane is the next bit of the column: an item of bin b goes to bin 2b or 2b + 1, and what is left of it keeps
    /// its order there.
    pub(super) fn doubled(&self, keys: usize) -> Result<Self, BuildError> {
        let (bins, shape) = (2 * self.bins(), self.shape().after(1).unwrap_or(self.shape()));
        debug_assert_ne!(shape, self.shape(), "there is no plane to give up");
        let mut doubled = Self::new(bins, shape, Next::for_keys(bins, shape, keys)?)?;
        let (tag_bits, bytes) = (shape.tag_bits(), doubled.memory_bits() / 8);
        for (bin, Entry(entry)) in self.items() {
            let half = entry >> tag_bits & 1;
            let class = entry >> (tag_bits + 1);
            let entry = Entry(class << tag_bits | entry & low_mask(tag_bits) as u32);
            let inserted = doubled.insert_entry(2 * bin + u64::from(half), entry);
            inserted.map_err(|Refused| BuildError::OutOfMemory { bytes })?;
        }
        Ok(doubled)
    }

    /// Takes all items of a table of the same shape in. Fails only if the second level lacks memory; nothing changes then.
    pub(super) fn absorb(&mut self, other: &Self) -> Result<(), Refused> {
        for (taken, (bin, entry)) in other.items().enumerate() {
            if self.insert_entry(bin, entry).is_err() {
                // The same items in the same order, as far as they came.
                for (bin, entry) in other.items().take(taken) {
                    self.remove_entry(bin, entry);
                }
                return Err(Refused);
            }
        }
        Ok(())
    }
}
