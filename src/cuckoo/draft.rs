//! Changes that are planned but not made: who is going to lie in which slots.
//!
//! Everything that may fail (reading the remote, finding a chain) happens on a draft. Then the remote gets all
//! changes as one group, and only after it has taken them the table changes, which cannot fail.

use std::ops::Range;

use crate::{AdaptiveError, Change, Remote, RemoteResult};

use super::address::Addresses;
use super::place::CuckooPlace;
use super::table::SlotTable;
use super::variant::Variant;

/// A stored key whose bytes are at hand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resident {
    pub(super) place: CuckooPlace,
    start: usize,
    len: usize,
}

/// What is planned for one slot.
#[derive(Debug, Clone, Copy)]
struct Planned {
    slot: usize,
    resident: Option<Resident>,
    selector: u64,
    /// Whether the slot gets another key than it has; if not, the remote has nothing to change.
    moved: bool,
}

/// See the [module](self).
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    /// The bytes of all residents, one behind the other.
    bytes: Vec<u8>,
    /// At most one per slot.
    planned: Vec<Planned>,
    /// Whose keys the remote has for the slots that were read. No key twice.
    occupants: Vec<(usize, Resident)>,
}

/// What is kept of the memory between drafts.
const KEPT_BYTES: usize = 512;
const KEPT_SLOTS: usize = 16;

impl Draft {
    /// Takes the bytes of a key in.
    pub(super) fn resident(&mut self, key: &[u8], place: CuckooPlace) -> Resident {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        Resident { place, start, len: key.len() }
    }

    /// Says whose key the remote has for a slot.
    pub(super) fn set_occupant(&mut self, slot: usize, resident: Resident) {
        self.occupants.push((slot, resident));
    }

    /// Whose key the remote has for a slot, if that is known.
    pub(super) fn occupant(&self, slot: usize) -> Option<Resident> {
        self.occupants.iter().find(|occupant| occupant.0 == slot).map(|occupant| occupant.1)
    }

    /// Whether the remote has the same key for another slot.
    pub(super) fn is_elsewhere(&self, slot: usize, resident: Resident) -> bool {
        self.occupants.iter().any(|&(other, occupant)| {
            // Places differ nearly always, and are at hand.
            other != slot && occupant.place == resident.place && self.key(occupant) == self.key(resident)
        })
    }

    pub(super) fn key(&self, resident: Resident) -> &[u8] {
        &self.bytes[Range { start: resident.start, end: resident.start + resident.len }]
    }

    /// Who is to lie in the slot; `None` if no change is planned for it.
    #[inline]
    pub(super) fn planned(&self, slot: usize) -> Option<Option<Resident>> {
        self.planned.iter().find(|planned| planned.slot == slot).map(|planned| planned.resident)
    }

    /// Puts a key, or nobody, into a slot.
    pub(super) fn put(&mut self, slot: usize, resident: Option<Resident>) {
        self.plan(Planned { slot, resident, selector: 0, moved: true });
    }

    /// Gives the key that lies in the slot another selector.
    pub(super) fn select(&mut self, slot: usize, resident: Resident, selector: u64) {
        self.plan(Planned { slot, resident: Some(resident), selector, moved: false });
    }

    fn plan(&mut self, new: Planned) {
        match self.planned.iter_mut().find(|planned| planned.slot == new.slot) {
            Some(planned) => *planned = new,
            None => self.planned.push(new),
        }
    }

    /// Forgets everything, and gives back what a large draft took.
    pub(super) fn trim(&mut self) {
        self.bytes.clear();
        self.planned.clear();
        self.occupants.clear();
        self.occupants.shrink_to(KEPT_SLOTS);
        self.bytes.shrink_to(KEPT_BYTES);
        self.planned.shrink_to(KEPT_SLOTS);
    }

    /// The memory in use, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.planned.capacity() * size_of::<Planned>()
            + self.occupants.capacity() * size_of::<(usize, Resident)>()
    }

    /// How many slots change.
    pub(super) fn len(&self) -> usize {
        self.planned.len()
    }

    /// Makes the changes: all of the remote's as one group, then the table's.
    pub(super) fn commit<V: Variant, R: Remote>(
        &self,
        table: &mut SlotTable<V>,
        addresses: Addresses,
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        debug_assert!(
            self.planned.iter().all(|planned| {
                !planned.moved || self.occupant(planned.slot).is_none() == table.is_vacant(planned.slot)
            }),
            "who is moved was read before"
        );
        apply(self.changes(addresses), remote).map_err(AdaptiveError::Remote)?;
        self.change(table);
        Ok(())
    }

    /// What the remote has to do. First what comes, then what goes: if a store makes a part of a group only, every key
    /// still has a pair.
    pub(super) fn changes(&self, addresses: Addresses) -> impl Iterator<Item = Change<'_>> {
        let insertions = self.moves().filter_map(move |(slot, _, new)| {
            new.map(|key| Change::Insert { address: addresses.of(slot), key })
        });
        let removals = self.moves().filter_map(move |(slot, old, _)| {
            old.map(|key| Change::Remove { address: addresses.of(slot), key })
        });
        insertions.chain(removals)
    }

    /// The slots that get another key, with the old and the new one.
    fn moves(&self) -> impl Iterator<Item = (usize, Option<&[u8]>, Option<&[u8]>)> {
        let moved = self.planned.iter().filter(|planned| planned.moved).map(|planned| {
            let old = self.occupant(planned.slot).map(|resident| self.key(resident));
            (planned.slot, old, planned.resident.map(|resident| self.key(resident)))
        });
        // A key that comes back to its slot stays there.
        moved.filter(|(_, old, new)| old != new)
    }

    /// Makes the changes of the table, which cannot fail.
    pub(super) fn change<V: Variant>(&self, table: &mut SlotTable<V>) {
        for planned in &self.planned {
            match planned.resident {
                Some(resident) => table.put(planned.slot, resident.place, planned.selector),
                None => table.erase(planned.slot),
            }
        }
    }
}

/// Has the remote make the changes as one group, if there are any. Short groups, which nearly all are, need no
/// memory.
fn apply<'k, R: Remote>(
    mut changes: impl Iterator<Item = Change<'k>>,
    remote: &mut R,
) -> Result<(), R::Error> {
    let mut few = [Change::Remove { address: 0, key: &[] }; 8];
    let mut count = 0;
    for (place, change) in few.iter_mut().zip(changes.by_ref()) {
        *place = change;
        count += 1;
    }
    if count == 0 {
        return Ok(());
    }
    let mut many = Vec::new();
    if count == few.len() {
        many.extend(few.into_iter().chain(changes));
    }
    remote.apply(if many.is_empty() { &few[..count] } else { &many })
}
