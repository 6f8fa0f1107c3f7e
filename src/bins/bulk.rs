//! Whole tables from keys in any order.
//!
//! Where keys have to come in order, for a remote ([`fill`]):
//!
//! 1. Keys are scattered to buckets of neighbouring bins, whose lines fit into a core's cache.
//! 2. A bucket is sorted by bin and class, by counting, and the few items of a class by their tags.
//! 3. Its lines are written one after the other. Bins do not know of each other, so buckets are filled on all cores;
//!    what a bin has no room for is put into the next level when all are filled.
//!
//! Where they need not ([`fill_parts`]), insertion with lines fetched ahead is faster than sorting. Then keys are only
//! scattered to a few parts of the table, for each core to insert its own.

use crate::bits::prefetch;
use crate::scatter::{Hashed, Partition, Scattered};
use crate::{BuildError, parallel};

use super::layout::{Layout, Shape};
use super::line::{Entry, Line};
use super::machine::Machine;
use super::next::Refused;
use super::table::{Place, Table};

/// The fewest bins of a bucket: 16 KiB, and 100 KiB of hashes.
const FEWEST_BINS: u64 = 256;

/// The most buckets: so many streams can be written at once.
const MOST_BUCKETS: u64 = 2048;

/// How the bins of a table are cut into buckets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    bins: u64,
    shape: Shape,
    /// Bins of a bucket: a power of two, whose logarithm this is.
    log2_bins: u32,
}

impl Cut {
    pub(super) fn of(table: &Table) -> Self {
        let (bins, shape) = (table.bins(), table.shape());
        let per_bucket = bins.div_ceil(MOST_BUCKETS).next_power_of_two().max(FEWEST_BINS);
        let log2_bins = per_bucket.trailing_zeros();
        Self { bins, shape, log2_bins }
    }

    #[inline(always)]
    fn first_bin(self, bucket: usize) -> u64 {
        (bucket as u64) << self.log2_bins
    }

    /// How many classes of bins there are.
    #[inline(always)]
    fn classes(self) -> u64 {
        self.bins * u64::from(self.shape.classes)
    }

    /// Bin, class and tag as one number.
    #[inline(always)]
    fn item(self, hash: u64) -> u64 {
        let product = u128::from(hash) * u128::from(self.classes());
        (product >> (64 - self.shape.tag_bits())) as u64
    }
}

impl Partition for Cut {
    fn buckets(self) -> usize {
        self.bins.div_ceil(1 << self.log2_bins) as usize
    }

    #[inline(always)]
    fn bucket(self, hash: u64) -> usize {
        ((u128::from(hash) * u128::from(self.bins)) >> 64) as usize >> self.log2_bins
    }

    fn places(self, bucket: usize) -> usize {
        let bins = (self.bins - self.first_bin(bucket)).min(1 << self.log2_bins);
        bins as usize * self.shape.classes as usize
    }

    #[inline(always)]
    fn place(self, hash: u64, bucket: usize) -> usize {
        let class = ((u128::from(hash) * u128::from(self.classes())) >> 64) as u64;
        (class - self.first_bin(bucket) * u64::from(self.shape.classes)) as usize
    }
}

/// An item that its bin has no room for.
type Beyond = (u64, Entry);

/// The lines of one bucket, to be written.
struct Lines<'t> {
    cut: Cut,
    slots: usize,
    write: fn(&mut Line, &[Entry]),
    first_bin: u64,
    lines: &'t mut [Line],
}

impl Lines<'_> {
    /// Writes all lines with items that come by bin and class.
    fn fill<T: Hashed>(self, items: &[T]) -> Vec<Beyond> {
        let (mut beyond, mut entries) = (Vec::new(), Vec::with_capacity(2 * self.slots));
        let mut left = items.iter().map(|item| self.cut.item(item.hash())).peekable();
        for (line, bin) in self.lines.iter_mut().zip(self.first_bin..) {
            entries.clear();
            let first = bin * self.cut.shape.entries();
            while let Some(item) = left.next_if(|item| item - first < self.cut.shape.entries()) {
                push_in_order(&mut entries, Entry((item - first) as u32));
            }
            let (here, rest) = entries.split_at(entries.len().min(self.slots));
            (self.write)(line, here);
            beyond.extend(rest.iter().map(|&entry| (bin, entry)));
        }
        beyond
    }
}

/// Appends an entry, before those that are larger: few, since classes ascend.
#[inline(always)]
fn push_in_order(entries: &mut Vec<Entry>, entry: Entry) {
    entries.push(entry);
    let mut at = entries.len() - 1;
    while at > 0 && entries[at - 1] > entry {
        entries.swap(at - 1, at);
        at -= 1;
    }
}

/// Fills an empty table with the items of all numbers below `count`.
///
/// `prepare` gets the items of every bucket by bin and class, may take some out, and makes something of them, on any
/// core. `visit` gets what it made, and the items, in order, one after the other.
pub(super) fn fill<T: Hashed, P: Send, E: From<BuildError>>(
    mut table: Table,
    count: usize,
    item: impl Fn(usize) -> T + Sync,
    prepare: impl Fn(&mut Vec<T>) -> P + Sync,
    mut visit: impl FnMut(P, &[T]) -> Result<(), E>,
) -> Result<Table, E> {
    debug_assert_eq!(table.len, 0);
    let cut = Cut::of(&table);
    let (slots, write) = (table.shape().slots as usize, table.operations.write);
    let (scattered, threads) = (Scattered::new(cut, count, item)?, parallel::threads_for(count));
    let at_once = if threads == 1 { 1 } else { 4 * threads };
    let (mut len, mut beyond) = (0, Vec::new());
    let mut buckets = table.lines_mut().chunks_mut(1 << cut.log2_bins).enumerate();
    loop {
        // A few buckets for every thread at a time, so that no more memory is in use than these take.
        let wave: Vec<_> = buckets.by_ref().take(at_once).collect();
        if wave.is_empty() {
            break;
        }
        let filled = parallel::map(wave, |(bucket, lines)| {
            let mut items = scattered.sorted(cut, bucket);
            let prepared = prepare(&mut items);
            let lines = Lines { cut, slots, write, first_bin: cut.first_bin(bucket), lines };
            let beyond = lines.fill(&items);
            (prepared, items, beyond)
        });
        for (prepared, items, rest) in filled {
            visit(prepared, &items)?;
            len += items.len();
            beyond.extend(rest);
        }
    }
    table.take_beyond(&beyond)?;
    table.len = len;
    Ok(table)
}

/// Neighbouring lines that items are inserted into, apart from the rest of the table.
pub(super) struct Part<'t> {
    bins: u64,
    first_bin: u64,
    lines: &'t mut [Line],
    beyond: Vec<Beyond>,
}

impl Part<'_> {
    /// Where the item of a hash belongs, and its line.
    #[inline(always)]
    fn locate(&mut self, hash: u64) -> (Place, &mut Line) {
        let product = u128::from(hash) * u128::from(self.bins);
        let place = Place::new((product >> 64) as u64, product as u64);
        (place, &mut self.lines[(place.bin - self.first_bin) as usize])
    }

    /// Inserts the items of these hashes, whose bins must be among these.
    #[inline(always)]
    pub(super) fn insert<L: Layout, M: Machine>(&mut self, machine: M, hashes: &[u64]) {
        for (number, &hash) in hashes.iter().enumerate() {
            if let Some(&next) = hashes.get(number + AHEAD) {
                prefetch(&raw const *self.locate(next).1);
            }
            let (place, line) = self.locate(hash);
            let item = place.print.item::<L>();
            if line.insert::<L, M>(machine, item).is_some() {
                continue;
            }
            // The largest of all goes to the next level.
            let (entry, last) = (item.entry::<L>(), line.last::<L>());
            if entry < last {
                line.replace_last::<L, M>(machine, item);
            }
            self.beyond.push((place.bin, entry.max(last)));
        }
    }
}

/// How many keys ahead lines are fetched.
const AHEAD: usize = 24;

/// The parts of a table that each core gets: some may have more to do than others.
const PARTS_PER_THREAD: u64 = 4;

/// Fills an empty table with the items of all numbers below `count`, on all cores.
pub(super) fn fill_parts(
    mut table: Table,
    count: usize,
    hash: impl Fn(usize) -> u64 + Sync,
) -> Result<Table, BuildError> {
    debug_assert_eq!(table.len, 0);
    let (bins, operations) = (table.bins(), table.operations);
    let parts = PARTS_PER_THREAD * parallel::threads_for(count) as u64;
    let cut = Cut { log2_bins: bins.div_ceil(parts).next_power_of_two().trailing_zeros(), ..Cut::of(&table) };
    let scattered = Scattered::new(cut, count, hash)?;
    let parts: Vec<_> = table.lines_mut().chunks_mut(1 << cut.log2_bins).enumerate().collect();
    let filled = parallel::map(parts, |(number, lines)| {
        let mut part = Part { bins, first_bin: cut.first_bin(number), lines, beyond: Vec::new() };
        for hashes in scattered.words(number) {
            // SAFETY: the operations were chosen for this processor.
            unsafe { (operations.insert_into)(&mut part, hashes) };
        }
        part.beyond
    });
    for beyond in filled {
        table.take_beyond(&beyond)?;
    }
    table.len = count;
    Ok(table)
}

impl Table {
    /// Puts what lines have no room for into the next level.
    fn take_beyond(&mut self, beyond: &[Beyond]) -> Result<(), BuildError> {
        let bytes = self.memory_bits() / 8;
        let inserted = beyond.iter().try_for_each(|&(bin, entry)| self.next.insert(bin, entry).map(drop));
        inserted.map_err(|Refused| BuildError::OutOfMemory { bytes })
    }

    /// Fills a bin that has no items yet with these, which ascend. If the next level lacks memory for some of them, the
    /// table is of no use any more.
    pub(super) fn fill_bin(&mut self, bin: u64, entries: &[Entry]) -> Result<(), BuildError> {
        let (here, rest) = entries.split_at(entries.len().min(self.shape().slots as usize));
        let write = self.operations.write;
        write(self.line_mut(bin), here);
        self.len += entries.len();
        let beyond: Vec<Beyond> = rest.iter().map(|&entry| (bin, entry)).collect();
        self.take_beyond(&beyond)
    }
}

#[cfg(test)]
mod tests {
    //! Catches: a table that differs from the one that insertion makes.
    use super::super::layout::CUTS;
    use super::super::next::fault;
    use super::*;
    use crate::Digest;
    use crate::bits::Isa;
    use crate::testing::Random;

    fn inserted(bins: u64, shape: Shape, hashes: &[u64]) -> Table {
        let mut table = Table::for_keys(bins, shape, hashes.len()).unwrap();
        for &hi in hashes {
            table.insert(table.place(Digest { hi, lo: 0 })).unwrap();
        }
        table
    }

    fn filled(bins: u64, shape: Shape, hashes: &[u64]) -> Result<Table, BuildError> {
        let table = Table::for_keys(bins, shape, hashes.len()).unwrap();
        fill(table, hashes.len(), |number| hashes[number], |_| (), |(), _| Ok(()))
    }

    fn agrees(bins: u64, shape: Shape, hashes: &[u64]) {
        let table = filled(bins, shape, hashes).unwrap();
        table.verify().unwrap();
        let expected = inserted(bins, shape, hashes);
        assert!(table == expected, "{} hashes in {bins} bins of {shape:?}", hashes.len());
        for isa in Isa::available() {
            let table = Table::for_keys(bins, shape, hashes.len()).unwrap().with_isa(isa);
            let table = fill_parts(table, hashes.len(), |number| hashes[number]).unwrap();
            table.verify().unwrap();
            assert!(table == expected, "{} hashes in {bins} bins of {shape:?} with {isa}", hashes.len());
        }
    }

    #[test]
    fn tables_are_those_that_insertion_makes() {
        let mut random = Random::new(1);
        for (round, &shape) in CUTS.iter().filter(|cut| cut.is_first_level(0)).cycle().take(120).enumerate() {
            let bins = 1 + random.below([1, 3, 40, 1_500][round % 4]);
            let load = random.below(180);
            let keys = bins * u64::from(shape.slots) * load / 100;
            let hashes: Vec<u64> = (0..keys).map(|_| random.next()).collect();
            agrees(bins, shape, &hashes);
        }
    }

    #[test]
    fn crowded_bins_and_equal_items_are_written_in_order() {
        let (mut random, shape) = (Random::new(2), CUTS[2]);
        for (bins, keys) in [(1, 200), (300, 1_000), (1_000, 3_000)] {
            for place in [0, 1 << 63, 0x6fff_ffff_ffff_ffff, u64::MAX] {
                let hashes: Vec<u64> = (0..keys).map(|_| place ^ random.below(1 << 52)).collect();
                agrees(bins, shape, &hashes);
                agrees(bins, shape, &vec![place; 150]);
            }
        }
    }

    #[test]
    fn only_what_is_admitted_comes_into_full_bins() {
        let (mut random, bins, isas) = (Random::new(4), 3, Isa::available());
        for (&shape, &isa) in CUTS.iter().filter(|cut| cut.is_first_level(1)).zip(isas.iter().cycle()) {
            let empty = || Table::for_keys(bins, shape, 200).unwrap();
            let (mut table, mut model, mut asked, mut alike) = (empty().with_isa(isa), empty(), 0, 0);
            for _ in 0..400 {
                let place = table.place_of(random.next());
                let (admitted, before) = (random.one_in(2), table.clone());
                let mut admit = || admitted;
                let in_line = table.insert_new(place, &mut admit);
                if !in_line && !table.insert_new_full(place, &mut admit) {
                    alike += 1;
                    assert!(
                        table == before && table.count(place) > 0,
                        "an item that was not met was kept out"
                    );
                    continue;
                }
                asked += usize::from(!in_line);
                assert_eq!(before.count(place), 0, "an item that was met was let in");
                if admitted {
                    model.insert(place).unwrap();
                }
                assert!(table == model, "{shape:?} with {isa}");
            }
            table.verify().unwrap();
            assert!(asked > 20, "{asked} of 400 items met a full bin, and {alike} one like them");
            let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..100 {
                    table.insert_new_full(table.place_of(random.next()), &mut || panic!("a remote"));
                }
            }));
            assert!(died.is_err() && table == model, "{shape:?} with {isa}");
        }
    }

    #[test]
    fn a_lack_of_memory_is_an_error() {
        let mut random = Random::new(3);
        let hashes: Vec<u64> = (0..490).map(|_| random.next()).collect();
        fault::after(Some(3));
        let lacking = filled(8, CUTS[2], &hashes);
        let table = Table::for_keys(8, CUTS[2], hashes.len()).unwrap();
        assert!(fill_parts(table, hashes.len(), |number| hashes[number]).is_err());
        fault::after(None);
        assert!(matches!(lacking, Err(BuildError::OutOfMemory { .. })), "{lacking:?}");
    }
}
