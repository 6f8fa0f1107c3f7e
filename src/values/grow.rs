//! Growth: twice the slots, filled again from one scan of the remote.
//!
//! A doubling writes nothing to the remote, because lists keep their addresses (see `list`). It reads every list once, in
//! the order of addresses, which is the order in which a table is filled; so it needs the memory of both tables and of one
//! list. After [`MAX_KEPT`] doublings the next one goes another way (see `renew`).
//!
//! **Repairs survive.** An extension gives one of its bits to the remainder and means the same as before. A selector stays,
//! but every chunk begins one bit later than it did. A repaired query differed from its stored key somewhere in the slot's
//! old chunk; it returns only if that was in the chunk's first bit alone (1 in 2^r − 1), and the bit that comes in at the end is
//! the same for both (1 in 2): with probability ε/2.
//!
//! Values that do not fit into their new block are forgotten under [`Overflow::Reset`](super::Overflow::Reset), as in any
//! other operation: the keys of the block are at hand, so its remainders are made anew.

use crate::hash_string::HashString;
use crate::quotient::{Appender, Geometry, Table, fraction_bits};
use crate::{AdaptiveError, BuildError, Digest, FullError, KeyHasher, Remote};

use super::core::Core;
use super::keys::List;
use super::list::{Addresses, Stale};
use super::plan::Plan;
use super::{Scheme, ValueOf, ValueStore};

/// How many doublings leave the lists where they are. A list has the keys of 8 quotients then, which is still one short
/// read: with lists in memory a removal takes a tenth longer than from lists of 2. A renewal, which writes every key, takes
/// three times as long as a doubling there, and happens at one in four.
pub(crate) const MAX_KEPT: u32 = 3;

/// A table of twice the size while it is being filled.
pub(super) struct Doubling<'c, S: Scheme, H> {
    core: &'c Core<S, H>,
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

/// What a doubling has made.
pub(super) struct Doubled<S: Scheme> {
    table: Table,
    values: S::Store,
    resets: u64,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// Doubles slots and capacity; on an error the filter is as it was.
    pub(crate) fn grow<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        let full = FullError { len: self.table.len(), capacity: self.capacity };
        let slots = self.table.slots() * 2;
        if slots > Geometry::MAX_SLOTS || fraction_bits(slots) < self.table.remainder_bits() {
            return Err(full.into());
        }
        let capacity = self.capacity.checked_mul(2).ok_or(full)?;
        if self.addresses.kept() < MAX_KEPT {
            let mut doubling = Doubling::new(self, slots)?;
            self.scan(remote, Stale::Skipped, &mut |list| doubling.take(list))?;
            let doubled = doubling.finish();
            self.become_doubled(doubled, self.addresses.doubled(), capacity);
            return Ok(());
        }
        self.grow_and_renew(slots, capacity, remote)
    }

    pub(super) fn become_doubled(&mut self, doubled: Doubled<S>, addresses: Addresses, capacity: usize) {
        (self.table, self.values) = (doubled.table, doubled.values);
        (self.addresses, self.capacity) = (addresses, capacity);
        self.resets += doubled.resets;
        self.choose_probe();
    }
}

impl<'c, S: Scheme, H: KeyHasher> Doubling<'c, S, H> {
    /// An empty table of so many slots, which are twice those of the filter.
    pub(super) fn new<E>(core: &'c Core<S, H>, slots: u64) -> Result<Self, AdaptiveError<E>> {
        let table = core.table.like(slots).map_err(out_of_memory)?;
        let bytes = table.memory_bits() / 8;
        let values = core.values.emptied(&table).ok_or(AdaptiveError::OutOfMemory { bytes })?;
        let (table, repaired) = (Appender::new(table), Vec::new());
        Ok(Self { core, slots, table, values, block: 0, repaired, resets: 0 })
    }

    /// The new quotient of a key, and its further hash bits.
    pub(super) fn locate(&self, digest: Digest) -> (u64, HashString<'c, H>) {
        let product = u128::from(digest.hi) * u128::from(self.slots);
        let string = HashString::new(&self.core.hasher, digest, product as u64, fraction_bits(self.slots));
        ((product >> 64) as u64, string)
    }

    /// Takes the keys of a list, which was checked: every run goes to two new quotients, each in the order that it had.
    pub(super) fn take<E>(&mut self, list: &List) -> Result<(), AdaptiveError<E>> {
        let core = self.core;
        let mut old = Vec::new();
        for quotient in core.quotients_at(list.address) {
            let Some(run) = core.table.run(quotient) else { continue };
            old.clear();
            core.values.any(&core.table, run, |_, value| {
                old.push(value);
                false
            });
            for half in 0..2 {
                for ((_, digest), &value) in core.members(list, quotient).zip(&old) {
                    let (home, key) = self.locate(digest);
                    if home & 1 == half {
                        self.append(home, value, &key).map_err(out_of_memory)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn append(&mut self, quotient: u64, old: ValueOf<S>, key: &HashString<'_, H>) -> Result<(), BuildError> {
        let scheme = self.core.scheme;
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

    pub(super) fn finish(mut self) -> Doubled<S> {
        self.store_block();
        Doubled { table: self.table.finish(), values: self.values, resets: self.resets }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
pub(super) fn out_of_memory<E>(error: BuildError) -> AdaptiveError<E> {
    let bytes = match error {
        BuildError::OutOfMemory { bytes } => bytes,
        _ => 0,
    };
    AdaptiveError::OutOfMemory { bytes }
}
