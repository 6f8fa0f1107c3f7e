//! Catches: chains that are longer than need be, cross themselves or end in an occupied slot.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;

use crate::cuckoo::layout::CuckooLayout;
use crate::cuckoo::search::{BUDGET, Search, World};
use crate::testing::Random;

/// Keys by number; each has one bin per table.
struct Town {
    layout: CuckooLayout,
    bins: Vec<Vec<usize>>,
    owners: Vec<Option<usize>>,
}

impl World for Town {
    type Item = usize;
    type Error = Infallible;

    fn is_vacant(&self, slot: usize) -> bool {
        self.owners[slot].is_none()
    }

    fn item(&mut self, slot: usize) -> Result<usize, Infallible> {
        Ok(self.owners[slot].expect("only occupied slots are looked behind"))
    }

    fn first_slot(&self, item: usize, table: usize) -> usize {
        self.layout.first_slot(table, self.bins[item][table])
    }
}

impl Town {
    /// How many moves the shortest chain has, by flooding slot by slot.
    fn shortest(&self, newcomer: usize) -> Option<usize> {
        let slots_of = |key: usize| {
            (0..self.layout.tables).flat_map(move |table| {
                let first = self.first_slot(key, table);
                first..first + self.layout.bin_slots
            })
        };
        let mut queue: VecDeque<(usize, usize)> = slots_of(newcomer).map(|slot| (slot, 1)).collect();
        let mut seen = BTreeSet::new();
        while let Some((slot, moves)) = queue.pop_front() {
            let Some(owner) = self.owners[slot] else { return Some(moves) };
            if seen.insert(slot) {
                queue.extend(slots_of(owner).map(|next| (next, moves + 1)));
            }
        }
        None
    }
}

#[test]
fn chains_are_shortest_and_found_whenever_they_exist() {
    let mut random = Random::new(8);
    let mut search = Search::new();
    for (tables, bin_slots) in [(2, 1), (4, 1), (2, 4), (3, 2)] {
        let mut longest = 0;
        for bins in 1..24 {
            let layout = CuckooLayout { tables, bin_slots, bins, width: 8 };
            let mut town = Town { layout, bins: Vec::new(), owners: vec![None; layout.slots()] };
            let mut seated = 0;
            for newcomer in 0..layout.slots() + 3 {
                town.bins.push((0..tables).map(|_| random.below(bins as u64) as usize).collect());
                let shortest = town.shortest(newcomer);
                let Ok(found) = search.run(&mut town, &layout, newcomer, 0..tables, BUDGET);
                assert_eq!(found.then(|| search.moves().count()), shortest);
                seated += usize::from(found);
                longest = longest.max(shortest.unwrap_or(0));
                if found {
                    search.moves().for_each(|step| town.owners[step.slot] = Some(step.item));
                }
                assert_eq!(town.owners.iter().flatten().collect::<BTreeSet<_>>().len(), seated);
                assert!(town.owners.iter().enumerate().all(|(slot, owner)| owner.is_none_or(|owner| {
                    let (table, bin) = layout.bin_of(slot);
                    town.bins[owner][table] == bin
                })));
            }
        }
        assert!(longest >= 3, "chains of {longest} moves at most");
    }
}
