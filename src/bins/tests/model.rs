//! Catches: lost or invented items, runs out of order, items that are in the next level although there is room, items
//! that are not pulled back, spare bits and unused slots that change, instruction sets that disagree.

use std::collections::BTreeMap;

use super::super::ahead::Doubts;
use super::super::layout::{CUTS, DefaultCut, FlaggedCut, Shape};
use super::super::line::{Entry, Fingerprint};
use super::super::next::{Next, Refused, fault};
use super::super::table::{Place, Table};
use crate::bits::{Isa, low_mask};
use crate::testing::Random;

/// The table as it is meant: how often each item of each bin is there.
#[derive(Debug, Clone, Default)]
struct Model(BTreeMap<(u64, Entry), usize>);

impl Model {
    fn len(&self) -> usize {
        self.0.values().sum()
    }

    fn count(&self, bin: u64, entry: Entry) -> usize {
        self.0.get(&(bin, entry)).copied().unwrap_or(0)
    }

    fn remove(&mut self, bin: u64, entry: Entry) -> bool {
        let Some(count) = self.0.get_mut(&(bin, entry)) else { return false };
        *count -= 1;
        if *count == 0 {
            self.0.remove(&(bin, entry));
        }
        true
    }

    fn items(&self) -> Vec<(u64, Entry)> {
        self.0.iter().flat_map(|(&item, &count)| std::iter::repeat_n(item, count)).collect()
    }
}

pub(super) fn table(bins: u64, shape: Shape, keys: usize) -> Table {
    Table::new(bins, shape, Next::for_keys(bins, shape, keys).unwrap()).unwrap()
}

/// The digits of an item, with noise behind them.
pub(super) fn print_of(shape: Shape, entry: Entry, noise: u64) -> Fingerprint {
    let first = |entry: u32| (u128::from(entry) << 64).div_ceil(shape.entries().into());
    let (first, next) = (first(entry.0), first(entry.0 + 1));
    Fingerprint((first + u128::from(noise) % (next - first)) as u64)
}

/// An item: of few different ones half of the time, so that runs are long and equal items common.
pub(super) fn any_entry(shape: Shape, random: &mut Random) -> Entry {
    let entry = random.below(shape.entries());
    let corner = ((1 << shape.tag_bits()) * 3) | (random.below(4) << (shape.entry_bits() - 3)) | 5;
    Entry(if random.one_in(3) { corner % shape.entries() } else { entry } as u32)
}

fn check(table: &Table, model: &Model) {
    table.verify().unwrap();
    assert_eq!(table.len, model.len());
    let mut items: Vec<(u64, Entry)> = table.items().collect();
    items.sort_unstable();
    assert_eq!(items, model.items());
}

/// Random insertions and removals on a few bins that are now empty, now hopelessly overfull; everything is checked
/// after every step.
fn drive(bins: u64, shape: Shape, isa: Isa, steps: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut table = table(bins, shape, bins as usize * shape.slots as usize).with_isa(isa);
    let mut model = Model::default();
    for step in 0..steps {
        let wanted = [0.5, 1.0, 1.6, 0.9, 2.5, 0.95, 0.0][step * 7 / steps];
        let fill = (table.len as f64) < wanted * bins as f64 * f64::from(shape.slots);
        let (bin, entry) = (random.below(bins), any_entry(shape, &mut random));
        let place = Place { bin, print: print_of(shape, entry, random.next()) };
        let before = model.count(bin, entry);
        if random.below(10) < if fill { 9 } else { 1 } {
            assert_eq!(table.insert(place), Ok(before == 0));
            *model.0.entry((bin, entry)).or_default() += 1;
        } else if random.one_in(2) {
            // One that is there, whichever comes at or behind a random one.
            let found = model.0.range((bin, entry)..).chain(&model.0).next().map(|(&item, _)| item);
            if let Some((bin, entry)) = found {
                assert!(table.remove(Place { bin, print: print_of(shape, entry, random.next()) }));
                model.remove(bin, entry);
            }
        } else {
            assert_eq!(table.remove(place), model.remove(bin, entry));
        }
        check(&table, &model);
        assert_eq!((table.count(place), table.contains(place)), {
            let count = model.count(bin, entry);
            (count, count > 0)
        });
    }
}

/// How long the tests are that `BESOM_FULL` makes longer.
pub(super) fn scale() -> usize {
    if std::env::var_os("BESOM_FULL").is_some() { 10 } else { 1 }
}

#[test]
fn table_agrees_with_the_model_in_every_layout_on_every_machine() {
    for isa in Isa::available() {
        for (&shape, seed) in CUTS.iter().zip(1..).filter(|(shape, _)| shape.entry_bits() <= 22) {
            for bins in [1, 2, 5] {
                drive(bins, shape, isa, 400 * bins as usize * scale(), seed * 10 + bins);
            }
        }
    }
}

#[test]
fn equal_contents_make_equal_tables_whatever_came_before() {
    for (&shape, seed) in CUTS.iter().zip(70..).filter(|(shape, _)| shape.entry_bits() <= 22) {
        let mut random = Random::new(seed);
        let items: Vec<(u64, Entry)> =
            (0..300).map(|_| (random.below(4), any_entry(shape, &mut random))).collect();
        let (kept, gone) = items.split_at(200);
        let mut straight = table(4, shape, 300);
        let mut detour = table(4, shape, 20);
        for &(bin, entry) in kept {
            straight.insert_entry(bin, entry).unwrap();
        }
        for &(bin, entry) in items.iter().rev() {
            detour.insert_entry(bin, entry).unwrap();
        }
        assert_ne!(straight, detour);
        for &(bin, entry) in gone {
            assert!(detour.remove_entry(bin, entry));
        }
        assert_eq!(straight, detour);
        detour.clear();
        assert_eq!(detour, table(4, shape, 300));
    }
}

#[test]
fn batches_answer_and_insert_like_single_operations() {
    for isa in Isa::available() {
        for &shape in CUTS.iter().filter(|shape| shape.entry_bits() <= 22) {
            let mut random = Random::new(9);
            let (mut single, mut batched) =
                (table(3, shape, 150).with_isa(isa), table(3, shape, 150).with_isa(isa));
            for len in [0, 1, 7, 32, 31, 32, 32, 32, 32] {
                let places: Vec<Place> = (0..len)
                    .map(|_| {
                        let (bin, entry) = (random.below(3), any_entry(shape, &mut random));
                        Place { bin, print: print_of(shape, entry, random.next()) }
                    })
                    .collect();
                let mut answers = vec![true; len];
                let mut doubts = Doubts::new();
                batched.contains_many(&places, &mut answers, &mut doubts);
                doubts.iter().for_each(|query| answers[query] |= batched.contains(places[query]));
                assert!(
                    places.iter().zip(&answers).all(|(&place, &answer)| single.contains(place) == answer)
                );
                let new = places.iter().filter(|&&place| single.insert(place).unwrap()).count();
                let batch = batched.insert_many(&places);
                assert_eq!((batch.inserted, batch.new), (len, new));
                batched.verify().unwrap();
            }
            assert_eq!(single, batched);
        }
    }
}

#[test]
fn doubling_moves_the_first_digit_into_the_bin() {
    for &shape in CUTS.iter().filter(|shape| shape.after(1).is_some() && shape.entry_bits() <= 22) {
        let mut random = Random::new(10);
        let mut before = table(3, shape, 200);
        let mut expected = Model::default();
        let half = shape.after(1).unwrap();
        for _ in 0..200 {
            let (bin, entry) = (random.below(3), any_entry(shape, &mut random));
            before.insert_entry(bin, entry).unwrap();
            let first = entry.0 >> half.entry_bits();
            let rest = entry.0 & low_mask(half.entry_bits()) as u32;
            *expected.0.entry((2 * bin + u64::from(first), Entry(rest))).or_default() += 1;
        }
        check(&before.doubled(200).unwrap(), &expected);
    }
}

#[test]
fn spare_bits_of_a_line_belong_to_others() {
    for isa in Isa::available() {
        let shape = Shape::of::<FlaggedCut>();
        let mut table = table(1, shape, 50).with_isa(isa);
        let mut random = Random::new(11);
        // Five of the eleven bits between the borders, which end with bit 451, and the classes, which begin with 462.
        table.lines_mut()[0].0[56] |= 0b1010_1000;
        table.lines_mut()[0].0[57] |= 0b0010_0001;
        for _ in 0..500 {
            let print = print_of(shape, any_entry(shape, &mut random), random.next());
            if random.one_in(2) {
                table.insert(Place { bin: 0, print }).unwrap();
            } else {
                table.remove(Place { bin: 0, print });
            }
            let bytes = &table.lines()[0].0[56..58];
            assert_eq!([bytes[0] & 0b1111_1000, bytes[1] & 0b0011_1111], [0b1010_1000, 0b0010_0001]);
        }
        table.verify().unwrap();
    }
}

/// What is held for a way back must not be moved: items that come back find their places as they left them.
#[test]
fn a_table_that_is_held_stays_in_its_memory() {
    /// How many bins share one of the second level, and how many slots there are behind that.
    fn memory(table: &Table) -> (u64, u64) {
        let Next::Second(second) = &table.next else { panic!("there is no second level") };
        let Next::Rest(rest) = &second.table().next else { panic!("there is no rest") };
        (second.group(), rest.table().slots())
    }
    let shape = Shape::of::<DefaultCut>();
    let (mut random, mut table) = (Random::new(13), table(64, shape, 64 * 40));
    let mut insert = |table: &mut Table| {
        let (bin, entry) = (random.below(64), any_entry(shape, &mut random));
        table.insert_entry(bin, entry).map(|_| (bin, entry))
    };
    while table.next.len() < 200 {
        insert(&mut table).unwrap();
    }
    table.hold(true);
    let (before, held) = (table.clone(), memory(&table));
    let inserted: Vec<_> = (0..2_000).map_while(|_| insert(&mut table).ok()).collect();
    assert_eq!(memory(&table), held);
    for &(bin, entry) in inserted.iter().rev() {
        assert!(table.remove_entry(bin, entry));
    }
    assert!(table == before && memory(&table) == held && inserted.len() > 100);
    table.hold(false);
    for _ in 0..2_000 {
        insert(&mut table).unwrap();
    }
    assert!(memory(&table).0 < held.0);
    table.verify().unwrap();
}

#[test]
fn without_memory_for_the_next_level_nothing_changes() {
    let shape = Shape::of::<DefaultCut>();
    let mut random = Random::new(12);
    let items = |random: &mut Random| -> Vec<(u64, Entry)> {
        (0..80).map(|_| (random.below(2), any_entry(shape, random))).collect()
    };
    let (mut left, mut right) = (table(2, shape, 100), table(2, shape, 100));
    for (bin, entry) in items(&mut random) {
        left.insert_entry(bin, entry).unwrap();
    }
    for (bin, entry) in items(&mut random) {
        right.insert_entry(bin, entry).unwrap();
    }
    let before = left.clone();
    for insertions in 0..30 {
        fault::after(Some(insertions));
        assert_eq!(left.absorb(&right), Err(Refused));
        fault::after(None);
        left.verify().unwrap();
        assert!(left == before, "refused after {insertions} insertions");
    }
    left.absorb(&right).unwrap();
    assert_eq!(left.len, 160);
    let full = left.clone();
    fault::after(Some(0));
    for (bin, entry) in items(&mut random) {
        assert_eq!(left.insert_entry(bin, entry), Err(Refused));
    }
    fault::after(None);
    assert!(left == full);
}
