//! What lies behind the bins of a table: the second level, which has bins of its own, or the rest, which has none.

use crate::{BuildError, InvariantError};

use super::layout::Shape;
use super::line::Entry;
use super::rest::Rest;
use super::second::Second;

/// The level behind the bins of a table: an exact multiset of (bin, class, tag) that always has room.
#[derive(Debug, Clone)]
pub(super) enum Next {
    /// Behind the first level.
    Second(Box<Second>),
    /// Behind the second level.
    Rest(Rest),
}

/// There was no memory for one more item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused;

impl Next {
    /// The second level of a first one with so many bins that is to hold so many keys.
    pub(super) fn for_keys(bins: u64, shape: Shape, keys: usize) -> Result<Self, BuildError> {
        Ok(Self::Second(Box::new(Second::for_keys(bins, shape, keys)?)))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Second(second) => second.len(),
            Self::Rest(rest) => rest.len(),
        }
    }

    /// The memory in bits.
    pub(super) fn memory_bits(&self) -> usize {
        match self {
            Self::Second(second) => second.memory_bits(),
            Self::Rest(rest) => rest.memory_bits(),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Second(second) => second.clear(),
            Self::Rest(rest) => rest.clear(),
        }
    }

    pub(super) fn contains(&self, bin: u64, entry: Entry) -> bool {
        match self {
            Self::Second(second) => second.contains(bin, entry),
            Self::Rest(rest) => rest.contains(bin, entry),
        }
    }

    /// How many equal items there are.
    pub(super) fn count(&self, bin: u64, entry: Entry) -> usize {
        match self {
            Self::Second(second) => second.count(bin, entry),
            Self::Rest(rest) => rest.count(bin, entry),
        }
    }

    /// The smallest item of the same bin and class that is not less than this one.
    pub(super) fn ceiling(&self, bin: u64, entry: Entry) -> Option<Entry> {
        match self {
            Self::Second(second) => second.ceiling(bin, entry),
            Self::Rest(rest) => rest.ceiling(bin, entry),
        }
    }

    /// Inserts an item, in more memory if need be: whether none was equal. Nothing changes without memory.
    pub(super) fn insert(&mut self, bin: u64, entry: Entry) -> Result<bool, Refused> {
        #[cfg(test)]
        fault::strike()?;
        match self {
            Self::Second(second) => second.insert(bin, entry),
            Self::Rest(rest) => rest.insert(bin, entry),
        }
    }

    /// Inserts an item that is taken back unless the guard is [kept](Guest::keep). `None`, and nothing changes, without
    /// memory, or if one is equal and there may not be two.
    pub(super) fn invite(&mut self, bin: u64, entry: Entry, may_be_equal: bool) -> Option<Guest<'_>> {
        let new = self.insert(bin, entry).ok()?;
        let guest = Guest { next: self, bin, entry, kept: false };
        (new || may_be_equal).then_some(guest)
    }

    /// While it is held, it does not move to more memory; see [`Table::hold`](super::table::Table::hold).
    pub(super) fn hold(&mut self, held: bool) {
        match self {
            Self::Second(second) => second.hold(held),
            Self::Rest(rest) => rest.hold(held),
        }
    }

    /// Removes an item; `false`, and nothing changes, if it is not there.
    pub(super) fn remove(&mut self, bin: u64, entry: Entry) -> bool {
        match self {
            Self::Second(second) => second.remove(bin, entry),
            Self::Rest(rest) => rest.remove(bin, entry),
        }
    }

    /// All items, as bin and entry, in no order that means anything.
    pub(super) fn items(&self) -> Box<dyn Iterator<Item = (u64, Entry)> + '_> {
        match self {
            Self::Second(second) => Box::new(second.items()),
            Self::Rest(rest) => Box::new(rest.items()),
        }
    }

    /// Checks what can be checked without the bins before it.
    pub(super) fn verify(&self) -> Result<(), InvariantError> {
        match self {
            Self::Second(second) => second.verify(),
            Self::Rest(rest) => rest.verify(),
        }
    }

    /// The same worked on with another instruction set, for tests that compare them.
    #[cfg(test)]
    pub(super) fn with_isa(self, isa: crate::bits::Isa) -> Self {
        match self {
            Self::Second(second) => Self::Second(Box::new(second.with_isa(isa))),
            Self::Rest(rest) => Self::Rest(rest),
        }
    }
}

/// An item that was inserted on trial.
pub(super) struct Guest<'n> {
    next: &'n mut Next,
    bin: u64,
    entry: Entry,
    kept: bool,
}

impl Guest<'_> {
    /// The item stays.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.next.remove(self.bin, self.entry);
        }
    }
}

/// Memory that is lacking when a test says so.
#[cfg(test)]
pub(crate) mod fault {
    use std::cell::Cell;

    use super::Refused;

    thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// All insertions into a next level are refused after so many; none for `None`.
    pub(crate) fn after(insertions: Option<usize>) {
        LEFT.set(insertions);
    }

    /// No insertion is refused while this runs: it gets the memory that it has left.
    pub(crate) fn spare<T>(run: impl FnOnce() -> T) -> T {
        let left = LEFT.take();
        let value = run();
        LEFT.set(left);
        value
    }

    pub(super) fn strike() -> Result<(), Refused> {
        match LEFT.get() {
            Some(0) => Err(Refused),
            left => {
                LEFT.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }
}
