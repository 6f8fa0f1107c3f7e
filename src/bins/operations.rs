//! The operations of a table, compiled for every layout on every machine, and chosen once for each table.
//!
//! The hot ones settle the matter in one line; what goes on to the second level is cold, and kept out of line.

use crate::InvariantError;
use crate::bits::Isa;

use super::ahead::Doubts;
use super::bulk::Part;
use super::layout::{CUTS, Cut, Layout, Shape, for_each_cut};
use super::line::{Entry, Fingerprint, Found, Item, Line};
use super::machine::{Portable, Search};
use super::next::Refused;
use super::table::{Place, Table};

/// The operations for one machine and one layout.
///
/// They are unsafe to call on a processor that is not the machine, which [`choose`](Self::choose) sees to, and on a
/// table of another layout they would do nonsense.
pub(super) struct Operations {
    // SAFETY: of these and all that follow: to be called on this machine only.
    pub(super) contains: unsafe fn(&Table, &Line, Place) -> bool,
    pub(super) contains_many: unsafe fn(&Table, &[Place], &mut [bool], &mut Doubts),
    pub(super) count: unsafe fn(&Table, u64, Fingerprint) -> usize,
    pub(super) insert: unsafe fn(&mut Table, u64, Fingerprint) -> Result<bool, Refused>,
    pub(super) insert_many: unsafe fn(&mut Table, &[Place]) -> Batch,
    pub(super) insert_into: unsafe fn(&mut Part<'_>, &[u64]),
    // SAFETY: as above.
    pub(super) contains_entry: unsafe fn(&Table, u64, Entry) -> bool,
    pub(super) count_entry: unsafe fn(&Table, u64, Entry) -> usize,
    pub(super) ceiling: unsafe fn(&Table, u64, Entry) -> Option<Entry>,
    pub(super) insert_entry: unsafe fn(&mut Table, u64, Entry) -> Result<bool, Refused>,
    pub(super) find_flagged: unsafe fn(&Line, Fingerprint) -> Found,
    pub(super) find_many_flagged: unsafe fn(&Table, &[Place], &mut [bool], &mut Doubts),
    pub(super) insert_new: unsafe fn(&mut Line, Fingerprint, &mut dyn FnMut() -> bool) -> bool,
    pub(super) insert_new_full: unsafe fn(&mut Table, u64, Fingerprint, &mut dyn FnMut() -> bool) -> bool,
    pub(super) insert_many_new: unsafe fn(&mut Table, &[Place]) -> usize,
    pub(super) remove: unsafe fn(&mut Table, u64, Fingerprint) -> bool,
    pub(super) remove_entry: unsafe fn(&mut Table, u64, Entry) -> bool,
    /// A bin without items.
    pub(super) empty: fn() -> Line,
    /// Makes a bin of these items, which ascend and fit.
    pub(super) write: fn(&mut Line, &[Entry]),
    /// Appends the items of a bin, in order.
    pub(super) entries: fn(&Line, &mut Vec<Entry>),
    pub(super) verify: fn(&Line) -> Result<(), InvariantError>,
    /// The class and tag of a key.
    pub(super) entry: fn(Fingerprint) -> Entry,
    /// The flags that are set, wherever they stand.
    pub(super) flags: fn(&Line) -> u64,
    /// Sets the flags of the classes that are given as bits, and no others.
    pub(super) set_flags: fn(&mut Line, u64),
}

/// How far a batch of insertions came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batch {
    /// How many keys were inserted: all, or those before the one that found no memory.
    pub(super) inserted: usize,
    /// How many of them were not accepted before.
    pub(super) new: usize,
}

impl Operations {
    /// Those for a layout, on a machine that must be at most what the processor has.
    pub(super) fn choose(isa: Isa, shape: Shape) -> &'static Self {
        let cut = CUTS.iter().position(|&cut| cut == shape).unwrap_or_default();
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::OPERATIONS[cut],
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::OPERATIONS[cut],
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Isa::Neon => &neon::OPERATIONS[cut],
            _ => &portable::OPERATIONS[cut],
        }
    }
}

impl std::fmt::Debug for Operations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Operations")
    }
}

/// The list of operations for each layout, by a function `operations` that has them for one.
macro_rules! list {
    ($(($slots:literal, $classes:literal, $bytes:literal, $planes:literal)),*) => {
        pub(super) static OPERATIONS: [Operations; CUTS.len()] =
            [$(operations::<Cut<$slots, $classes, $bytes, $planes>>()),*];
    };
}

/// Compiles all operations for one machine, in a module with the list of those for each layout.
macro_rules! compile {
    ($module:ident, $machine:path $(, #[$features:meta])?) => {
        mod $module {
            use super::*;
            use $machine as This;

            for_each_cut!(list);

            const fn operations<L: Layout>() -> Operations {
                Operations {
                    contains: contains::<L>,
                    contains_many: contains_many::<L>,
                    count: count::<L>,
                    insert: insert::<L>,
                    insert_many: insert_many::<L>,
                    insert_into: insert_into::<L>,
                    contains_entry: contains_entry::<L>,
                    count_entry: count_entry::<L>,
                    ceiling: ceiling::<L>,
                    insert_entry: insert_entry::<L>,
                    find_flagged: find_flagged::<L>,
                    find_many_flagged: find_many_flagged::<L>,
                    insert_new: insert_new::<L>,
                    insert_new_full: insert_new_full::<L>,
                    insert_many_new: insert_many_new::<L>,
                    remove: remove::<L>,
                    remove_entry: remove_entry::<L>,
                    empty: Line::empty::<L>,
                    write: Line::write::<L>,
                    entries: Line::entries::<L>,
                    verify: Line::verify::<L>,
                    entry: |print| print.item::<L>().entry::<L>(),
                    flags: Line::flags::<L>,
                    set_flags: Line::set_flags::<L>,
                }
            }

            #[inline]
            $(#[$features])?
            fn machine() -> This {
                // SAFETY: this function's features are the machine's.
                unsafe { This::new() }
            }

            $(#[$features])?
            fn contains<L: Layout>(table: &Table, line: &Line, place: Place) -> bool {
                table.find_in::<L, This>(machine(), line, place)
            }

            $(#[$features])?
            fn contains_many<L: Layout>(
                table: &Table,
                places: &[Place],
                answers: &mut [bool],
                doubts: &mut Doubts,
            ) {
                let mut doubtful = 0;
                for (number, (place, answer)) in places.iter().zip(answers).enumerate() {
                    let (found, beyond) = table.line(place.bin).find::<L, This>(machine(), place.print.item::<L>());
                    *answer = found;
                    doubtful |= u64::from(beyond & !found) << number;
                }
                doubts.note(doubtful);
            }

            $(#[$features])?
            fn count<L: Layout>(table: &Table, bin: u64, print: Fingerprint) -> usize {
                count_item::<L>(table, bin, print.item::<L>())
            }

            #[inline]
            $(#[$features])?
            fn count_item<L: Layout>(table: &Table, bin: u64, item: Item) -> usize {
                let line = table.line(bin);
                let run = line.run::<L, This>(machine(), item.class);
                let here = line.matches::<L, This>(machine(), item, run);
                let beyond = if run.last == L::FULL { table.next.count(bin, item.entry::<L>()) } else { 0 };
                here.count_ones() as usize + beyond
            }

            $(#[$features])?
            fn insert<L: Layout>(table: &mut Table, bin: u64, print: Fingerprint) -> Result<bool, Refused> {
                insert_item::<L>(table, bin, print.item::<L>())
            }

            #[inline]
            $(#[$features])?
            fn insert_item<L: Layout>(table: &mut Table, bin: u64, item: Item) -> Result<bool, Refused> {
                match table.line_mut(bin).insert::<L, This>(machine(), item) {
                    Some(new) => {
                        table.len += 1;
                        Ok(new)
                    }
                    None => insert_full::<L>(table, bin, item),
                }
            }

            #[cold]
            #[inline(never)]
            $(#[$features])?
            fn insert_full<L: Layout>(table: &mut Table, bin: u64, item: Item) -> Result<bool, Refused> {
                table.insert_full::<L, This>(machine(), bin, item)
            }

            $(#[$features])?
            fn insert_many<L: Layout>(table: &mut Table, places: &[Place]) -> Batch {
                let mut new = 0;
                for (inserted, place) in places.iter().enumerate() {
                    match insert_item::<L>(table, place.bin, place.print.item::<L>()) {
                        Ok(fresh) => new += usize::from(fresh),
                        Err(Refused) => return Batch { inserted, new },
                    }
                }
                Batch { inserted: places.len(), new }
            }

            $(#[$features])?
            fn insert_into<L: Layout>(part: &mut Part<'_>, hashes: &[u64]) {
                part.insert::<L, This>(machine(), hashes);
            }

            $(#[$features])?
            fn contains_entry<L: Layout>(table: &Table, bin: u64, entry: Entry) -> bool {
                let (found, beyond) = table.line(bin).find::<L, This>(machine(), entry.item::<L>());
                if beyond { found || table.overflown(bin, entry) } else { found }
            }

            $(#[$features])?
            fn count_entry<L: Layout>(table: &Table, bin: u64, entry: Entry) -> usize {
                count_item::<L>(table, bin, entry.item::<L>())
            }

            $(#[$features])?
            fn ceiling<L: Layout>(table: &Table, bin: u64, entry: Entry) -> Option<Entry> {
                let (found, beyond) = table.line(bin).ceiling::<L, This>(machine(), entry.item::<L>());
                if found.is_none() && beyond { table.next.ceiling(bin, entry) } else { found }
            }

            $(#[$features])?
            fn insert_entry<L: Layout>(table: &mut Table, bin: u64, entry: Entry) -> Result<bool, Refused> {
                insert_item::<L>(table, bin, entry.item::<L>())
            }

            $(#[$features])?
            fn find_flagged<L: Layout>(line: &Line, print: Fingerprint) -> Found {
                line.find_flagged::<L, This>(machine(), print.item::<L>())
            }

            $(#[$features])?
            fn find_many_flagged<L: Layout>(
                table: &Table,
                places: &[Place],
                answers: &mut [bool],
                doubts: &mut Doubts,
            ) {
                let mut doubtful = 0;
                for (number, (place, answer)) in places.iter().zip(answers).enumerate() {
                    let found = table.line(place.bin).find_flagged::<L, This>(machine(), place.print.item::<L>());
                    *answer = found.is_here();
                    doubtful |= u64::from(found.is_only_beyond() | found.is_flagged()) << number;
                }
                doubts.note(doubtful);
            }

            $(#[$features])?
            fn insert_new<L: Layout>(
                line: &mut Line,
                print: Fingerprint,
                admit: &mut dyn FnMut() -> bool,
            ) -> bool {
                line.insert_new::<L, This>(machine(), print.item::<L>(), admit)
            }

            #[inline(never)]
            $(#[$features])?
            fn insert_new_full<L: Layout>(
                table: &mut Table,
                bin: u64,
                print: Fingerprint,
                admit: &mut dyn FnMut() -> bool,
            ) -> bool {
                table.insert_into_full::<L, This>(machine(), bin, print.item::<L>(), admit)
            }

            $(#[$features])?
            fn insert_many_new<L: Layout>(table: &mut Table, places: &[Place]) -> usize {
                for (number, &Place { bin, print }) in places.iter().enumerate() {
                    if table.line_mut(bin).insert_new::<L, This>(machine(), print.item::<L>(), || true) {
                        table.len += 1;
                    } else if !insert_new_full::<L>(table, bin, print, &mut || true) {
                        return number;
                    }
                }
                places.len()
            }

            $(#[$features])?
            fn remove<L: Layout>(table: &mut Table, bin: u64, print: Fingerprint) -> bool {
                table.remove_item::<L, This>(machine(), bin, print.item::<L>())
            }

            $(#[$features])?
            fn remove_entry<L: Layout>(table: &mut Table, bin: u64, entry: Entry) -> bool {
                table.remove_item::<L, This>(machine(), bin, entry.item::<L>())
            }
        }
    };
}

compile!(portable, Portable);
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
compile!(neon, super::super::machine::neon::Neon);
#[cfg(target_arch = "x86_64")]
compile!(
    avx2,
    super::super::machine::x86::Avx2,
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
);
#[cfg(target_arch = "x86_64")]
compile!(
    avx512,
    super::super::machine::x86::Avx512,
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx2,bmi1,bmi2,popcnt,lzcnt")]
);
