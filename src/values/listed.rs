//! What a quotient table whose slots have values says of its items: see [`Listed`].

use crate::filter::out_of_memory;
use crate::ground::{Addresses, Agreed, Listed};
use crate::quotient::{Geometry, fraction_bits};
use crate::{Adaptation, AdaptiveError, Change, Digest, KeyHasher, Remote};

use super::core::Core;
use super::grow::FillingTable;
use super::{Scheme, ValueOf, ValueStore};

/// What a slot has beside its quotient.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot<V> {
    remainder: u64,
    pub(super) value: V,
}

/// The home of a key is its quotient, and the items of a home are the slots of its run.
impl<S: Scheme, H: KeyHasher> Listed for Core<S, H> {
    type Hasher = H;
    type Home = u64;
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

    fn addresses(&self) -> Addresses {
        self.addresses
    }

    fn units(&self) -> (u64, u32) {
        (self.table.slots(), 0)
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }

    #[inline]
    fn home(&self, digest: Digest) -> u64 {
        self.table.locate(digest.hi).quotient
    }

    fn address(&self, quotient: u64) -> u64 {
        self.addresses.of(quotient)
    }

    fn accepts(&self, slot: Slot<ValueOf<S>>, digest: Digest) -> bool {
        self.scheme.accepts(slot.remainder, slot.value, &self.locate(digest).1)
    }

    fn all_items(&self, address: u64, mut visit: impl FnMut(u64, Slot<ValueOf<S>>) -> bool) -> bool {
        self.addresses.units(address, self.table.slots()).all(|quotient| {
            let Some(run) = self.table.run(quotient) else { return true };
            !self.values.any(&self.table, run, |slot, value| {
                !visit(quotient, Slot { remainder: self.table.remainder(slot), value })
            })
        })
    }

    fn expected_addresses(&self) -> impl Iterator<Item = u64> {
        self.table.runs().map(|(quotient, _)| self.addresses.of(quotient))
    }

    fn insert_new<R: Remote>(
        &mut self,
        digest: Digest,
        key: &[u8],
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        self.insert_new(digest, key, remote)
    }

    fn remove_item<R: Remote>(
        &mut self,
        quotient: u64,
        before: usize,
        change: Change<'_>,
        remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        self.remove_slot(quotient, before, change, remote)
    }

    fn repair<R: Remote>(
        &mut self,
        quotient: u64,
        stored: &[Digest],
        query: Digest,
        remote: &mut R,
    ) -> Result<Adaptation, AdaptiveError<R::Error>> {
        self.repair_run(quotient, stored, query, remote)
    }

    fn with_items<R: Remote>(
        &self,
        agreed: &Agreed<Self>,
        remote: &mut R,
    ) -> Result<Self, AdaptiveError<R::Error>> {
        self.with_keys(agreed, remote)
    }

    fn can_double(&self, times: u32) -> bool {
        let slots = self.table.slots() << times;
        slots <= Geometry::MAX_SLOTS && fraction_bits(slots) >= self.table.remainder_bits()
    }

    fn filling<E>(&self, times: u32, _: u32, _: usize) -> Result<FillingTable<S>, AdaptiveError<E>> {
        FillingTable::new(self, self.table.slots() << times).map_err(out_of_memory)
    }

    fn become_filled(&mut self, filled: FillingTable<S>, addresses: Addresses, capacity: usize) {
        let resets;
        (self.table, self.values, resets) = filled.into_parts();
        (self.addresses, self.capacity) = (addresses, capacity);
        self.resets += resets;
        self.choose_probe();
    }
}
