//! What filters need that keep something beside the bins: flags in the lines, and the items of a bin in order.
//!
//! A line has a few spare bits. Each is the *flag* of some classes; it is set if an item of one of these classes, in
//! the line or beyond it, has something kept elsewhere. So whoever finds an item and no flag has read one line and is
//! done.
//!
//! What is kept elsewhere is known by the item's *rank*: how many items of the bin, wherever they lie, come before it,
//! by class and tag, and among equal ones by the order in which they came. A rank does not change when an item moves
//! between the levels.

use std::ops::{Range, RangeInclusive};

use crate::bits::low_mask;

use super::ahead::Doubts;
#[cfg(target_arch = "x86_64")]
use super::layout::{FlaggedCentiCut, FlaggedCut, MilliCut};
use super::line::{Entry, Found, Line};
#[cfg(target_arch = "x86_64")]
use super::machine::inlined::Inlined;
use super::next::Refused;
use super::table::{Place, Table};

/// The items of a bin in order, those beyond the line included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Items(Vec<Entry>);

impl Items {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry> {
        self.0.iter().copied()
    }

    /// The ranks of the items that are equal to this one.
    pub(super) fn equal(&self, entry: Entry) -> Range<usize> {
        self.0.partition_point(|&item| item < entry)..self.0.partition_point(|&item| item <= entry)
    }

    /// The item of a rank.
    pub(crate) fn get(&self, rank: usize) -> Entry {
        self.0[rank]
    }
}

impl Table {
    /// Looks for an item in its line, and has `conclude` make an answer of what was found, in each version by itself.
    #[inline(always)]
    pub(crate) fn ask_flagged(
        &self,
        line: &Line,
        place: Place,
        conclude: impl FnOnce(Found) -> bool,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if let Some(machine) = self.inlined {
            let print = place.print;
            match machine {
                Inlined::Flagged(machine) => {
                    return conclude(line.find_flagged::<FlaggedCut, _>(machine, print.item::<FlaggedCut>()));
                }
                Inlined::FlaggedCenti(machine) => {
                    let item = print.item::<FlaggedCentiCut>();
                    return conclude(line.find_flagged::<FlaggedCentiCut, _>(machine, item));
                }
                Inlined::Milli(machine) => {
                    return conclude(line.find_flagged::<MilliCut, _>(machine, print.item::<MilliCut>()));
                }
                Inlined::FlaggedBmi2(machine) => {
                    return conclude(line.find_flagged::<FlaggedCut, _>(machine, print.item::<FlaggedCut>()));
                }
                _ => {}
            }
        }
        // SAFETY: the operations were chosen for this processor.
        conclude(unsafe { (self.operations.find_flagged)(line, place.print) })
    }

    /// One answer for each place, as far as the lines have it; those that are in doubt are noted.
    #[inline(always)]
    pub(crate) fn find_many_flagged(&self, places: &[Place], answers: &mut [bool], doubts: &mut Doubts) {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.find_many_flagged)(self, places, answers, doubts) }
    }

    /// What one look at the line of an item finds.
    pub(crate) fn find_flagged(&self, place: Place) -> Found {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.find_flagged)(self.line(place.bin), place.print) }
    }

    /// Inserts an item if that concerns nothing but its line, which has room and no flags, if none is equal and
    /// `admit`, which is asked at the last moment, agrees. Whether it was asked; if not, nothing has changed.
    ///
    /// Compiled into its caller. `None`, and nothing has happened, if there is no such version for layout and
    /// processor.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn insert_new_inlined(&mut self, place: Place, admit: impl FnOnce() -> bool) -> Option<bool> {
        let mut admitted = false;
        let note = || {
            admitted = admit();
            admitted
        };
        let (inlined, line, print) = (self.inlined?, self.line_mut(place.bin), place.print);
        let asked = match inlined {
            Inlined::Flagged(machine) => {
                line.insert_new::<FlaggedCut, _>(machine, print.item::<FlaggedCut>(), note)
            }
            Inlined::FlaggedCenti(machine) => {
                line.insert_new::<FlaggedCentiCut, _>(machine, print.item::<FlaggedCentiCut>(), note)
            }
            Inlined::Milli(machine) => {
                line.insert_new::<MilliCut, _>(machine, print.item::<MilliCut>(), note)
            }
            _ => return None,
        };
        self.len += usize::from(admitted);
        Some(asked)
    }

    /// There is none for other processors.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    #[expect(clippy::unused_self, reason = "it is called as on other processors")]
    pub(crate) fn insert_new_inlined(&mut self, _: Place, _: impl FnOnce() -> bool) -> Option<bool> {
        None
    }

    /// The same for every layout and processor.
    pub(crate) fn insert_new(&mut self, place: Place, admit: &mut dyn FnMut() -> bool) -> bool {
        let (insert, mut admitted) = (self.operations.insert_new, false);
        let mut note = || {
            admitted = admit();
            admitted
        };
        // SAFETY: the operations were chosen for this processor.
        let asked = unsafe { insert(self.line_mut(place.bin), place.print, &mut note) };
        self.len += usize::from(admitted);
        asked
    }

    /// The same where the bin is full and has no flags: the largest of all goes beyond the line. Nothing changes, and
    /// `admit` is not asked, if there is no memory for that.
    pub(crate) fn insert_new_full(&mut self, place: Place, admit: &mut dyn FnMut() -> bool) -> bool {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert_new_full)(self, place.bin, place.print, admit) }
    }

    /// Inserts many items, in order, until one has an equal, or concerns more than its line and what lies beyond it, or
    /// finds no memory: how many.
    pub(crate) fn insert_many_new(&mut self, places: &[Place]) -> usize {
        // SAFETY: the operations were chosen for this processor.
        unsafe { (self.operations.insert_many_new)(self, places) }
    }

    /// The class and tag of a place.
    pub(crate) fn entry(&self, place: Place) -> Entry {
        (self.operations.entry)(place.print)
    }

    /// The class of an item.
    pub(crate) fn class(&self, entry: Entry) -> u32 {
        entry.0 >> self.shape().tag_bits()
    }

    /// The tag of an item.
    pub(crate) fn tag(&self, entry: Entry) -> u64 {
        u64::from(entry.0) & low_mask(self.shape().tag_bits())
    }

    /// Whether a flag of the bin is set.
    pub(crate) fn has_flags(&self, bin: u64) -> bool {
        self.flags(bin) != 0
    }

    /// The flags of a bin, as they stand in its line.
    pub(crate) fn flags(&self, bin: u64) -> u64 {
        (self.operations.flags)(self.line(bin))
    }

    /// The flags of these classes, which are bits, as they stand in a line.
    pub(crate) fn flags_of(&self, classes: u64) -> u64 {
        let mut line = (self.operations.empty)();
        (self.operations.set_flags)(&mut line, classes);
        (self.operations.flags)(&line)
    }

    /// Sets the flags of these classes, which are bits, and no others.
    pub(crate) fn set_flags(&mut self, bin: u64, classes: u64) {
        let set = self.operations.set_flags;
        set(self.line_mut(bin), classes);
    }

    /// All items of a bin.
    pub(crate) fn items_of(&self, bin: u64) -> Items {
        let mut entries = self.entries(bin);
        if entries.len() == self.shape().slots as usize {
            let (first, last) = (entries.last().map_or(0, |&last| self.class(last)), u32::MAX);
            self.items_beyond(bin, first..=last, |entry| entries.push(entry));
        }
        Items(entries)
    }

    /// Whether an item of a place lies beyond its line.
    pub(crate) fn contains_beyond(&self, place: Place) -> bool {
        self.next.contains(place.bin, self.entry(place))
    }

    /// The ranks of the items of a place; where there is none, an empty range at the rank that it would have. What lies
    /// beyond the line is looked at only if it must be.
    pub(crate) fn ranks_of(&self, place: Place) -> Range<usize> {
        let (bin, entry, here) = (place.bin, self.entry(place), self.entries(place.bin));
        let mut start = here.partition_point(|&item| item < entry);
        let mut end = here.partition_point(|&item| item <= entry);
        if end == self.shape().slots as usize {
            let first = here.last().map_or(0, |&last| self.class(last));
            self.items_beyond(bin, first..=self.class(entry), |item| {
                start += usize::from(item < entry);
                end += usize::from(item <= entry);
            });
        }
        start..end
    }

    /// How many items of a class a bin has.
    pub(crate) fn count_class(&self, bin: u64, class: u32) -> usize {
        let here = self.entries(bin);
        let of_class = |entry: &&Entry| self.class(**entry) == class;
        let mut count = here.iter().filter(of_class).count();
        if here.len() == self.shape().slots as usize
            && here.last().is_some_and(|&last| self.class(last) <= class)
        {
            self.items_beyond(bin, class..=class, |_| count += 1);
        }
        count
    }

    /// Calls `visit` with the items of these classes of a bin that lie beyond its line, in order.
    pub(super) fn items_beyond(&self, bin: u64, classes: RangeInclusive<u32>, mut visit: impl FnMut(Entry)) {
        if self.next.len() == 0 {
            return;
        }
        let shape = self.shape();
        let last = (*classes.end()).min(shape.classes - 1);
        for class in *classes.start()..=last {
            let mut first = class << shape.tag_bits();
            while let Some(entry) = self.next.ceiling(bin, Entry(first)) {
                (0..self.next.count(bin, entry)).for_each(|_| visit(entry));
                first = entry.0 + 1;
                if first >> shape.tag_bits() != class {
                    break;
                }
            }
        }
    }

    /// Inserts an item that is taken back unless the guard is [kept](Insertion::keep), be it because of an error or of
    /// a panic. Fails only if the next level lacks memory; nothing changes then.
    pub(crate) fn insert_for_now(&mut self, place: Place) -> Result<Insertion<'_>, Refused> {
        self.insert(place)?;
        Ok(Insertion { table: self, place, kept: false })
    }
}

/// An item that was inserted on trial.
pub(crate) struct Insertion<'t> {
    table: &'t mut Table,
    place: Place,
    kept: bool,
}

impl Insertion<'_> {
    /// The item stays.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Insertion<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // Equal items make equal bins: the table is what it was.
            self.table.remove(self.place);
        }
    }
}
