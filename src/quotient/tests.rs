//! Catches: lost or invented items, wrong offsets (also saturated ones), runs across blocks and into the tail,
//! ranks that do not follow the order of insertion, instruction sets that disagree.

use std::collections::BTreeMap;

use super::geometry::Geometry;
use super::sorted::Item;
use super::table::{Shift, Table};
use crate::bits::{Isa, low_mask};
use crate::testing::Random;

/// The table as it is meant: for each quotient its remainders in the order of insertion.
#[derive(Debug, Clone, Default)]
struct Model(BTreeMap<u64, Vec<u64>>);

impl Model {
    fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    fn items(&self) -> Vec<(u64, u64)> {
        self.0.iter().flat_map(|(&q, run)| run.iter().map(move |&remainder| (q, remainder))).collect()
    }
}

/// The slots of all items, as a list of (quotient, remainder) or nothing per slot.
fn layout(table: &Table) -> Vec<Option<(u64, u64)>> {
    let mut slots = vec![None; table.physical_slots() as usize];
    for Item { quotient, remainder, slot } in table.iter() {
        slots[slot as usize] = Some((quotient, remainder));
    }
    slots
}

/// What the [`Shift`] of an operation says must be what happened to the slots.
fn check_shift(before: &[Option<(u64, u64)>], after: &[Option<(u64, u64)>], shift: Shift, inserted: bool) {
    let (at, end) = (shift.at as usize, shift.end as usize);
    let mut expected = before.to_vec();
    expected.resize(before.len().max(after.len()), None);
    if inserted {
        assert_eq!(expected[end], None, "{shift:?}: the end was not free");
        expected.copy_within(at..end, at + 1);
        expected[at] = after[at];
    } else {
        expected.copy_within(at + 1..=end, at);
        expected[end] = None;
    }
    assert_eq!(expected, after, "{shift:?} is not what happened");
}

fn check(table: &Table, model: &Model) {
    table.verify().unwrap();
    assert_eq!(table.len(), model.len());
    let items: Vec<(u64, u64)> = table.iter().map(|item| (item.quotient, item.remainder)).collect();
    assert_eq!(items, model.items());
}

/// Random insertions and removals on a small table, everything checked after every step.
fn drive(slots: u64, remainder_bits: u32, coded: bool, isa: Isa, steps: usize, seed: u64) {
    let mut random = Random::new(seed);
    let mut table = Table::new(slots, remainder_bits, coded).unwrap().with_isa(isa);
    let mut model = Model::default();
    // A few phases, each with its own bias, so that the table is now empty, now overfull.
    for step in 0..steps {
        let phase = step * 6 / steps;
        let wanted = [0.5, 0.95, 0.3, 1.3, 0.95, 0.0][phase];
        let fill = (table.len() as f64) < wanted * slots as f64;
        // Half of the quotients from a corner of the table, so that long runs and clusters are common.
        let corner = [0, slots.saturating_sub(3)][phase % 2];
        let quotient =
            if random.one_in(2) { random.below(slots) } else { (corner + random.below(3)) % slots };
        let remainder = random.next() & low_mask(remainder_bits);
        let before = layout(&table);
        if random.below(10) < if fill { 8 } else { 2 } {
            let gap = table.gap(quotient);
            if random.one_in(2) {
                let fresh = random.one_in(2);
                let known = model.0.get(&quotient).is_some_and(|run| run.contains(&remainder));
                // Possible without looking at another block: the gap lies in the quotient's own.
                let room = table.block_of(gap.end).0 == table.block_of(quotient).0;
                let inserted = if fresh {
                    let agreed = random.one_in(2);
                    let asked = table.insert_fresh(quotient, remainder, &mut || agreed);
                    assert_eq!(asked, room && !known);
                    asked && agreed
                } else {
                    let seemed_known = table.insert_here(quotient, remainder);
                    assert_eq!(seemed_known, room.then_some(known));
                    room
                };
                if inserted {
                    model.0.entry(quotient).or_default().push(remainder);
                    check_shift(&before, &layout(&table), gap, true);
                    check(&table, &model);
                } else {
                    assert_eq!(before, layout(&table));
                }
                continue;
            }
            let shift = table.insert(quotient, remainder).unwrap();
            assert_eq!(gap, shift);
            model.0.entry(quotient).or_default().push(remainder);
            check_shift(&before, &layout(&table), shift, true);
        } else if let Some(run) = model.0.get_mut(&quotient) {
            let rank = random.below(run.len() as u64) as usize;
            run.remove(rank);
            if run.is_empty() {
                model.0.remove(&quotient);
            }
            let shift = table.remove(quotient, rank);
            check_shift(&before, &layout(&table), shift, false);
        }
        check(&table, &model);
        for _ in 0..4 {
            let (quotient, remainder) = (random.below(slots), random.next() & low_mask(remainder_bits));
            let expected = model.0.get(&quotient).is_some_and(|run| run.contains(&remainder));
            assert_eq!(table.contains(quotient, remainder), expected);
            assert_eq!(table.run(quotient).map(|run| run.len()), model.0.get(&quotient).map(Vec::len));
        }
        assert!(model.items().iter().all(|&(quotient, remainder)| table.contains(quotient, remainder)));
    }
}

#[test]
fn table_agrees_with_the_model_in_every_shape() {
    for isa in Isa::available() {
        for (remainder_bits, slots) in
            [(2, 100), (5, 150), (7, 130), (8, 1), (8, 7), (8, 120), (12, 90), (32, 40)]
        {
            for coded in [false, true] {
                drive(slots, remainder_bits, coded, isa, 600, u64::from(remainder_bits) + slots);
            }
        }
    }
}

#[test]
fn an_item_is_fresh_only_in_a_block_without_code() {
    for isa in Isa::available() {
        for remainder_bits in [5, 8, 12] {
            let mut table = Table::new(100, remainder_bits, true).unwrap().with_isa(isa);
            table.set_code(table.block_of(3).0, 1);
            assert!(!table.insert_fresh(3, 1, &mut || true));
            table.set_code(table.block_of(3).0, 0);
            assert!(table.insert_fresh(3, 1, &mut || true) && !table.insert_fresh(3, 1, &mut || true));
            assert!(table.insert_fresh(3, 2, &mut || true));
            assert_eq!(table.len(), 2);
        }
    }
}

#[test]
fn offsets_beyond_their_field_are_counted() {
    for isa in Isa::available() {
        for (remainder_bits, coded) in [(8, false), (8, true), (13, false)] {
            let mut table = Table::new(500, remainder_bits, coded).unwrap().with_isa(isa);
            let mut model = Model::default();
            let mut random = Random::new(6);
            // One quotient with 700 items pushes everything behind it far beyond 255 slots.
            for step in 0..1_400 {
                let quotient = if random.one_in(4) { random.below(500) } else { 40 + random.below(2) };
                if step < 900 {
                    let remainder = random.next() & low_mask(remainder_bits);
                    table.insert(quotient, remainder).unwrap();
                    model.0.entry(quotient).or_default().push(remainder);
                } else if let Some(run) = model.0.get_mut(&quotient) {
                    let rank = random.below(run.len() as u64) as usize;
                    run.remove(rank);
                    if run.is_empty() {
                        model.0.remove(&quotient);
                    }
                    table.remove(quotient, rank);
                }
                if step % 10 == 0 {
                    check(&table, &model);
                }
            }
            check(&table, &model);
            assert!(model.items().iter().all(|&(quotient, remainder)| table.contains(quotient, remainder)));
        }
    }
}

#[test]
fn doubling_and_merging_keep_every_item_and_its_order() {
    let mut random = Random::new(7);
    for remainder_bits in [3, 8, 9, 32] {
        let mut tables = Vec::new();
        let mut model = Model::default();
        for _ in 0..2 {
            let mut table = Table::new(77, remainder_bits, false).unwrap();
            for _ in 0..70 {
                let (quotient, remainder) = (random.below(77), random.next() & low_mask(remainder_bits));
                table.insert(quotient, remainder).unwrap();
                model.0.entry(quotient).or_default().push(remainder);
            }
            tables.push(table);
        }
        let merged = tables[0].merged(&tables[1]).unwrap();
        check(&merged, &model);
        let doubled = merged.doubled().unwrap();
        let mut split = Model::default();
        for (quotient, remainder) in model.items() {
            let (half, rest) = (remainder >> (remainder_bits - 1), remainder & low_mask(remainder_bits - 1));
            split.0.entry(quotient * 2 + half).or_default().push(rest);
        }
        check(&doubled, &split);
    }
}

#[test]
fn codes_are_left_alone() {
    let mut table = Table::new(200, 8, true).unwrap();
    let mut random = Random::new(8);
    let codes: Vec<u64> = (0..table.blocks()).map(|_| random.next() & low_mask(table.code_bits())).collect();
    for (block, &code) in codes.iter().enumerate() {
        table.set_code(block, code);
    }
    for _ in 0..190 {
        table.insert(random.below(200), random.below(256)).unwrap();
    }
    assert!(codes.iter().enumerate().all(|(block, &code)| table.code(block) == code));
    table.verify().unwrap();
    table.clear();
    assert_eq!((table.len(), table.code(0), table.iter().count()), (0, 0, 0));
}

#[test]
fn doubling_the_slots_moves_one_fraction_bit_into_the_quotient() {
    let mut random = Random::new(9);
    for slots in [1, 3, 50, 1 << 20, 12_345_678] {
        let table = Table::new(slots, 8, false).unwrap();
        let doubled = Table::new(slots * 2, 7, false).unwrap();
        for _ in 0..1_000 {
            let hash = random.next();
            let (place, twice) = (table.locate(hash), doubled.locate(hash));
            assert_eq!(twice.quotient, place.quotient * 2 + (place.fraction >> 63));
            assert_eq!(twice.fraction, place.fraction << 1);
        }
    }
}

#[test]
fn every_width_is_supported() {
    for remainder_bits in Geometry::REMAINDER_BITS {
        drive(61, remainder_bits, remainder_bits % 2 == 0, Isa::active(), 150, remainder_bits.into());
    }
}
