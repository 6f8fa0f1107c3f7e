//! Growth: twice the slots, filled again from the remote.

use crate::hash_string::HashString;
use crate::quotient::{Appender, Geometry, Run, Table, fraction_bits};
use crate::{AdaptiveError, BuildError, Change, FullError, KeyHasher, Remote};

use super::core::{Core, check_len};
use super::plan::Plan;
use super::{Scheme, ValueOf, ValueStore};

/// The keys of one list, one behind the other.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}

/// A table of twice the size while it is being filled.
struct Doubled<V> {
    table: Appender,
    keys: Keys,
    /// The new addresses of the keys, in the order of `keys`.
    addresses: Vec<u64>,
    /// Values that are not initial, by slot, ascending.
    values: Vec<(u64, V)>,
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// Doubles slots and capacity. Reads every list of the remote once and writes them all in one group; on an
    /// error, filter and remote are as they were.
    pub(crate) fn grow<R: Remote>(&mut self, remote: &mut R) -> Result<(), AdaptiveError<R::Error>> {
        let full = FullError { len: self.table.len(), capacity: self.capacity };
        let slots = self.table.slots() * 2;
        if slots > Geometry::MAX_SLOTS || fraction_bits(slots) < self.table.remainder_bits() {
            return Err(full.into());
        }
        let capacity = self.capacity.checked_mul(2).ok_or(full)?;
        let Doubled { table, keys, addresses, values } = self.doubled(slots, remote)?;
        let mut table = table.finish();
        let bytes = table.memory_bits() / 8;
        let mut store = self.values.emptied(&table).ok_or(AdaptiveError::OutOfMemory { bytes })?;
        let resets = store_values(&mut store, &mut table, &values);
        let pushes = addresses
            .iter()
            .enumerate()
            .map(|(index, &address)| Change::Push { address, key: keys.get(index) });
        let changes: Vec<Change<'_>> = std::iter::once(Change::Clear).chain(pushes).collect();
        remote.apply(&changes).map_err(AdaptiveError::Remote)?;
        (self.table, self.values, self.capacity) = (table, store, capacity);
        self.choose_probe();
        self.resets += resets;
        Ok(())
    }

    fn doubled<R: Remote>(
        &self,
        slots: u64,
        remote: &mut R,
    ) -> Result<Doubled<ValueOf<S>>, AdaptiveError<R::Error>> {
        let coded = self.table.code_bits() > 0;
        let table = Table::new(slots, self.table.remainder_bits(), coded).map_err(out_of_memory)?;
        let mut doubled = Doubled {
            table: Appender::new(table),
            keys: Keys::default(),
            addresses: Vec::with_capacity(self.table.len()),
            values: Vec::new(),
        };
        for (quotient, run) in self.table.runs() {
            let mut list = Keys::default();
            remote.read(quotient, &mut |key| list.push(key)).map_err(AdaptiveError::Remote)?;
            check_len(quotient, run, list.ends.len())?;
            self.split_run(run, &list, slots, &mut doubled).map_err(out_of_memory)?;
        }
        Ok(doubled)
    }

    /// Distributes a run over its two new quotients; each keeps the order that the run had.
    fn split_run(
        &self,
        run: Run,
        list: &Keys,
        slots: u64,
        doubled: &mut Doubled<ValueOf<S>>,
    ) -> Result<(), BuildError> {
        let mut old_values = Vec::with_capacity(run.len());
        self.values.any(&self.table, run, |_, value| {
            old_values.push(value);
            false
        });
        for half in 0..2 {
            for (rank, &old) in old_values.iter().enumerate() {
                let digest = self.hasher.digest(list.get(rank));
                let product = u128::from(digest.hi) * u128::from(slots);
                let quotient = (product >> 64) as u64;
                if quotient & 1 != half {
                    continue;
                }
                let string = HashString::new(&self.hasher, digest, product as u64, fraction_bits(slots));
                let value = self.scheme.doubled(old, &string);
                let slot = doubled.table.append(quotient, self.scheme.remainder(value, &string))?;
                doubled.keys.push(list.get(rank));
                doubled.addresses.push(quotient);
                if value != ValueOf::<S>::default() {
                    doubled.values.push((slot, value));
                }
            }
        }
        Ok(())
    }
}

/// Gives a fresh table its values. Returns how many blocks could not keep theirs.
///
/// Only schemes whose remainders do not depend on values have values here that may be dropped.
fn store_values<T: ValueStore>(store: &mut T, table: &mut Table, values: &[(u64, T::Value)]) -> u64 {
    let mut resets = 0;
    let per_block = u64::from(table.slots_per_block());
    for group in values.chunk_by(|a, b| a.0 / per_block == b.0 / per_block) {
        let block = (group[0].0 / per_block) as usize;
        let mut plan = Plan::load(store, table, block..=block);
        group.iter().for_each(|&(slot, value)| plan.set(slot, value));
        if plan.overflowing(store).is_some() {
            plan.reset(block);
            resets += 1;
        }
        plan.commit(store, table);
    }
    resets
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn out_of_memory<E>(error: BuildError) -> AdaptiveError<E> {
    let bytes = match error {
        BuildError::OutOfMemory { bytes } => bytes,
        _ => 0,
    };
    AdaptiveError::OutOfMemory { bytes }
}
