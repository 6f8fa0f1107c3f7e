//! Whole tables: twice the bins, and two tables in one.

use crate::BuildError;
use crate::bits::low_mask;

use super::line::Entry;
use super::next::{Next, Refused};
use super::table::Table;

impl Table {
    /// The table with twice as many bins and one digit of class and tag less, whose second level is made for so many
    /// keys. There must be a cut for that.
    ///
    /// The first digit of the class becomes the last of the bin, and the first of the tag the last of the class: an
    /// item of bin b goes to bin 2b or 2b + 1, and what is left of it keeps its order there.
    pub(super) fn doubled(&self, keys: usize) -> Result<Self, BuildError> {
        let (bins, shape) = (2 * self.bins(), self.shape().after(1).unwrap_or(self.shape()));
        debug_assert_ne!(shape, self.shape(), "there is no digit to give up");
        let mut doubled = Self::new(bins, shape, Next::for_keys(bins, shape, keys)?)?;
        let (digits, bytes) = (shape.entry_bits(), doubled.memory_bits() / 8);
        for (bin, Entry(entry)) in self.items() {
            let rest = Entry(entry & low_mask(digits) as u32);
            let inserted = doubled.insert_entry(2 * bin + u64::from(entry >> digits), rest);
            inserted.map_err(|Refused| BuildError::OutOfMemory { bytes })?;
        }
        Ok(doubled)
    }

    /// Takes all items of a table of the same shape in. Fails only if the second level lacks memory; nothing changes
    /// then.
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
