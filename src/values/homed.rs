//! What a quotient table whose slots have values says of its items: see [`Homed`].

use crate::filter::out_of_memory;
use crate::homes::{Homed, Homes};
use crate::quotient::{Geometry, Run, fraction_bits};
use crate::{Adaptation, AdaptiveError, Change, Digest, KeyHasher, Remote, RemoteResult};

use super::core::Core;
use super::grow::FillingTable;
use super::{Scheme, ValueOf, ValueStore};

/// A slot in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<V> {
    pub(super) number: u64,
    pub(super) remainder: u64,
    pub(super) value: V,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// The slots of a run.
    fn slots(&self, run: Run) -> Vec<Slot<ValueOf<S>>> {
        let mut slots = Vec::with_capacity(run.len());
        self.values.any(&self.table, run, |number, value| {
            slots.push(Slot { number, remainder: self.table.remainder(number), value });
            false
        });
        slots
    }

    /// The home of a slot of a quotient's run. Remainders that move say nothing of it.
    fn home_of(&self, quotient: u64, remainder: u64) -> u64 {
        if S::MOVES_REMAINDER { quotient } else { quotient << self.table.remainder_bits() | remainder }
    }
}

/// The home of a key is its quotient and, if that stays, its remainder. The items of a home are slots of one run.
impl<S: Scheme, H: KeyHasher> Homed for Core<S, H> {
    type Hasher = H;
    type Item = Slot<ValueOf<S>>;
    type Filling = FillingTable<S>;

    fn hasher(&self) -> &H {
        &self.hasher
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn is_growable(&self) -> bool {
        self.growable
    }

    fn homes(&self) -> Homes {
        let digits = if S::MOVES_REMAINDER { 0 } else { self.table.remainder_bits() };
        Homes { units: self.table.slots(), parts: 1, digits }
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }

    #[inline]
    fn accepts(&self, slot: Self::Item, digest: Digest) -> bool {
        self.scheme.accepts(slot.remainder, slot.value, &self.locate(digest).1)
    }

    fn items(&self, home: u64) -> Vec<Self::Item> {
        let quotient = self.homes().unit(home);
        let mut slots = self.table.run(quotient).map_or_else(Vec::new, |run| self.slots(run));
        slots.retain(|slot| self.home_of(quotient, slot.remainder) == home);
        slots
    }

    fn items_of_unit(&self, quotient: u64, items: &mut Vec<(u64, Self::Item)>) {
        let Some(run) = self.table.run(quotient) else { return };
        let first = items.len();
        self.values.any(&self.table, run, |number, value| {
            let remainder = self.table.remainder(number);
            items.push((self.home_of(quotient, remainder), Slot { number, remainder, value }));
            false
        });
        items[first..].sort_by_key(|&(home, _)| home);
    }

    /// Among extensions that one key has in common, each begins the longer ones: the longest can go.
    fn dispensable(slots: &[Self::Item]) -> Option<usize> {
        let longest = (0..slots.len()).max_by_key(|&index| S::strictness(slots[index].value));
        longest.filter(|_| !S::MOVES_REMAINDER)
    }

    fn insert_item<R: Remote>(
        &mut self,
        digest: Digest,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        self.insert_slot(digest, changes, remote)
    }

    fn remove_item<R: Remote>(
        &mut self,
        home: u64,
        index: usize,
        changes: &[Change<'_>],
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let quotient = self.homes().unit(home);
        let (run, slots) = (self.table.run(quotient), self.items(home));
        let rank = run.zip(slots.get(index)).map(|(run, slot)| (slot.number - run.first) as usize);
        rank.map_or(Ok(()), |rank| self.remove_slot(quotient, rank, changes, remote))
    }

    fn repair<R: Remote>(
        &mut self,
        home: u64,
        stored: &[Digest],
        query: Digest,
        remote: &mut R,
    ) -> RemoteResult<Adaptation, R> {
        let slots = self.items(home).into_iter().map(|slot| slot.number);
        let stored: Vec<(u64, Digest)> = slots.zip(stored.iter().copied()).collect();
        self.repair_slots(&stored, query, remote)
    }

    fn can_double(&self, times: u32) -> bool {
        let slots =
            self.table.slots().checked_shl(times).filter(|slots| slots >> times == self.table.slots());
        slots.is_some_and(|slots| {
            slots <= Geometry::MAX_SLOTS && fraction_bits(slots) >= self.table.remainder_bits()
        })
    }

    fn filling<E>(&self, times: u32, _: usize) -> Result<FillingTable<S>, AdaptiveError<E>> {
        FillingTable::new(self, self.table.slots() << times).map_err(out_of_memory)
    }

    fn become_filled(&mut self, filled: FillingTable<S>, capacity: usize) {
        let resets;
        (self.table, self.values, resets) = filled.into_parts();
        self.capacity = capacity;
        self.resets += resets;
        self.choose_probe();
    }
}
