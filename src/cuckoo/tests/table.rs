//! Catches: a fast way through a bin that sees something else than the slow one.

use crate::Digest;
use crate::cuckoo::layout::CuckooLayout;
use crate::cuckoo::place::CuckooPlace;
use crate::cuckoo::table::{Look, SlotTable};
use crate::cuckoo::variant::PartialKey;
use crate::cuckoo::{Cuckooing, Cyclic, Swapping, Variant};
use crate::testing::Random;

/// Slot by slot, by the definition.
fn look_slowly<V: Variant>(table: &SlotTable<V>, place: CuckooPlace) -> (bool, Vec<usize>) {
    let layout = table.layout();
    let bins = (0..layout.tables).map(|number| table.first_slot(place, number));
    let slots: Vec<usize> = bins.flat_map(|first| first..first + layout.bin_slots).collect();
    let hit = slots.iter().any(|&slot| !table.is_vacant(slot) && table.holds(slot, place));
    (hit, slots.into_iter().filter(|&slot| table.is_vacant(slot)).collect())
}

fn compare<V: Variant>() {
    let mut random = Random::new(6);
    let (mut hits, mut full) = (0, 0);
    for tables in 2..=5 {
        for bin_slots in 1..=5 {
            for width in [2, 3, 8, 11, 12, 14, 16, 24, 32].map(|width| width + V::SELECTOR_BITS) {
                let layout = CuckooLayout { tables, bin_slots, bins: 13, width };
                let mut table = SlotTable::<V>::new(layout).unwrap();
                for _ in 0..400 {
                    let place = CuckooPlace::new(Digest { hi: random.next(), lo: random.next() });
                    let (hit, vacant) = look_slowly(&table, place);
                    let Look { hit: seen, vacancy } = table.look(place);
                    assert_eq!((hit, hit), (seen, table.contains(place)), "{layout:?}");
                    assert_eq!(hit, !table.hits(place).is_empty());
                    assert_eq!(vacancy.is_none(), vacant.is_empty(), "{layout:?}");
                    assert!(vacancy.is_none_or(|slot| vacant.contains(&slot)), "{layout:?}");
                    hits += u32::from(hit);
                    full += u32::from(vacant.is_empty());
                    match vacancy {
                        Some(slot) => {
                            table.put(slot, place, random.below(1 << V::SELECTOR_BITS));
                            assert!(table.contains(place) && table.hits(place).contains(&slot));
                        }
                        None => table.erase(random.below(layout.slots() as u64) as usize),
                    }
                }
            }
        }
    }
    assert!(hits > 1000 && full > 1000, "{hits} hits, {full} full");
}

#[test]
fn fast_and_slow_ways_agree() {
    compare::<Cuckooing>();
    compare::<Cyclic<1>>();
    compare::<Cyclic<3>>();
    compare::<Swapping>();
    compare::<PartialKey>();
}
