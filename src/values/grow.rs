//! A larger quotient table while it is being filled, and what becomes of values there when it is of twice the size.
//!
//! **Repairs survive.** An extension gives one of its bits to the remainder and means the same as before. A selector
//! stays, but every chunk begins one bit later than it did. A repaired query differed from its stored key somewhere in
//! the slot's old chunk; it returns only if that was in the chunk's first bit alone (1 in 2^r − 1), and the bit that
//! comes in at the end is the same for both (1 in 2): with probability ε/2.
//!
//! Values that do not fit into their new block are forgotten under [`Overflow::Reset`](super::Overflow::Reset), as in
//! any other operation: the keys of the block are at hand, so its remainders are made again.

use crate::filter::out_of_memory;
use crate::hash_string::HashString;
use crate::homes::Filling;
use crate::quotient::{Appender, Table, fraction_bits};
use crate::{AdaptiveError, BuildError, Digest, KeyHasher};

use super::core::Core;
use super::homed::Slot;
use super::plan::Plan;
use super::{Scheme, ValueOf, ValueStore};

/// A larger table while it is being filled.
pub(crate) struct FillingTable<S: Scheme> {
    slots: u64,
    table: Appender,
    values: S::Store,
    /// The block that is being filled, and what is repaired in it.
    block: usize,
    repaired: Vec<Repaired<ValueOf<S>>>,
    resets: u64,
}

/// A slot whose value is not the initial one.
struct Repaired<V> {
    slot: u64,
    value: V,
    /// Its remainder if the value is forgotten.
    initial: u64,
}

impl<S: Scheme> FillingTable<S> {
    /// An empty table of this many slots.
    pub(super) fn new<H: KeyHasher>(core: &Core<S, H>, slots: u64) -> Result<Self, BuildError> {
        let table = core.table.like(slots)?;
        let bytes = table.memory_bits() / 8;
        let values = core.values.emptied(&table).ok_or(BuildError::OutOfMemory { bytes })?;
        let (table, repaired) = (Appender::new(table), Vec::new());
        Ok(Self { slots, table, values, block: 0, repaired, resets: 0 })
    }

    fn append<H: KeyHasher>(
        &mut self,
        quotient: u64,
        old: ValueOf<S>,
        key: &HashString<'_, H>,
        scheme: S,
    ) -> Result<(), BuildError> {
        let value = scheme.doubled(old, key);
        let slot = self.table.append(quotient, scheme.remainder(value, key))?;
        let block = self.table.table_mut().block_of(slot).0;
        if block != self.block {
            self.store_block();
            self.block = block;
        }
        if value != ValueOf::<S>::default() {
            let initial = scheme.remainder(ValueOf::<S>::default(), key);
            self.repaired.push(Repaired { slot, value, initial });
        }
        Ok(())
    }

    /// Gives a block that is filled its values.
    fn store_block(&mut self) {
        if self.repaired.is_empty() {
            return;
        }
        let table = self.table.table_mut();
        let mut plan = Plan::load(&self.values, table, self.block..=self.block);
        self.repaired.iter().for_each(|repaired| plan.set(repaired.slot, repaired.value));
        if plan.overflowing(&self.values).is_some() {
            plan.reset(self.block);
            plan.remainders.extend(self.repaired.iter().map(|repaired| (repaired.slot, repaired.initial)));
            self.resets += 1;
        }
        plan.commit(&mut self.values, table);
        self.repaired.clear();
    }

    /// The table, which is complete, its values, and how many blocks have forgotten theirs.
    pub(super) fn into_parts(self) -> (Table, S::Store, u64) {
        (self.table.finish(), self.values, self.resets)
    }
}

impl<S: Scheme, H: KeyHasher> Filling<Core<S, H>> for FillingTable<S> {
    fn take<E>(
        &mut self,
        digest: Digest,
        item: Option<Slot<ValueOf<S>>>,
        core: &Core<S, H>,
    ) -> Result<(), AdaptiveError<E>> {
        let product = u128::from(digest.hi) * u128::from(self.slots);
        let key = HashString::new(&core.hasher, digest, product as u64, fraction_bits(self.slots));
        let old = item.map_or(ValueOf::<S>::default(), |slot| slot.value);
        self.append((product >> 64) as u64, old, &key, core.scheme).map_err(out_of_memory)
    }

    fn complete<E>(&mut self) -> Result<(), AdaptiveError<E>> {
        self.store_block();
        Ok(())
    }
}
