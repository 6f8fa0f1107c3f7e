//! Filters of many keys at once.

use std::collections::HashSet;

use crate::filter::{clear_remote, out_of_memory};
use crate::ground::Keys;
use crate::quotient::bulk;
use crate::{AdaptiveError, BuildError, Change, FullError, Key, KeyHasher, Remote};

use super::core::Core;
use super::{Scheme, ValueStore};

/// A key that is being sorted: its hash, and its number.
type Item = (u64, usize);

/// Some neighbouring keys and their addresses.
struct Pushes {
    keys: Keys,
    addresses: Vec<u64>,
}

/// Keys that go to the remote in one group.
const GROUP: usize = 1024;

/// This many keys of one quotient are compared with each other; more go through a set.
const FEW: usize = 16;

/// An error while a table is being filled.
struct Failed<E>(AdaptiveError<E>);

impl<E> From<BuildError> for Failed<E> {
    fn from(error: BuildError) -> Self {
        Self(out_of_memory(error))
    }
}

impl<S: Scheme, H: KeyHasher> Core<S, H> {
    /// The empty filter with all these keys, each once. The remote is emptied first, and has them then.
    pub(crate) fn filled<K, R>(self, keys: &[K], remote: &mut R) -> Result<Self, AdaptiveError<R::Error>>
    where
        K: Key + Sync,
        R: Remote,
    {
        let empty = self.table.like(self.table.slots()).map_err(out_of_memory)?;
        clear_remote(remote)?;
        let item = |number: usize| (self.hasher.digest_key(&keys[number]).hi, number);
        let place = Placing { slots: self.table.slots() };
        let prepare = |items: &mut Vec<Item>| {
            place.drop_duplicates(items, keys);
            Pushes::of(items, keys)
        };
        let table = bulk::fill(empty, keys.len(), item, prepare, |pushes| pushes.apply(remote));
        let table = table.map_err(|Failed(error)| error)?;
        let (len, capacity) = (table.len(), self.capacity);
        if len > capacity {
            return Err(FullError { len, capacity }.into());
        }
        let bytes = table.physical_slots() as usize;
        let values = self.values.emptied(&table).ok_or(AdaptiveError::OutOfMemory { bytes })?;
        let mut core = Self { table, values, ..self };
        core.choose_probe();
        Ok(core)
    }
}

/// Where keys belong: what threads need of a filter.
#[derive(Clone, Copy)]
struct Placing {
    slots: u64,
}

impl Placing {
    #[inline(always)]
    fn quotient(self, item: Item) -> u64 {
        ((u128::from(item.0) * u128::from(self.slots)) >> 64) as u64
    }

    /// Leaves the first of every key.
    fn drop_duplicates<K: Key>(self, items: &mut Vec<Item>, keys: &[K]) {
        let runs = || items.chunk_by(|&one, &two| self.quotient(one) == self.quotient(two));
        let some_twins = |run: &[Item]| run.len() > FEW || has_twins(run);
        if !runs().any(some_twins) {
            return;
        }
        let mut kept = Vec::with_capacity(items.len());
        for run in runs() {
            if !some_twins(run) {
                kept.extend_from_slice(run);
                continue;
            }
            let mut seen = HashSet::new();
            kept.extend(run.iter().filter(|item| seen.insert(keys[item.1].with_bytes(<[u8]>::to_vec))));
        }
        *items = kept;
    }
}

/// Whether two of a few keys have the same hash.
fn has_twins(run: &[Item]) -> bool {
    run.iter().enumerate().any(|(index, item)| run[..index].iter().any(|before| before.0 == item.0))
}

impl Pushes {
    /// What the remote is to be told of some items.
    fn of<K: Key>(items: &[Item], keys: &[K]) -> Self {
        /// Keys lie anywhere in memory: they are fetched ahead.
        const AHEAD: usize = 16;
        let keys_of = Keys::with_capacity(items.len(), items.len() * size_of::<K>());
        let mut pushes = Self { keys: keys_of, addresses: Vec::with_capacity(items.len()) };
        for (index, &(address, number)) in items.iter().enumerate() {
            if let Some(next) = items.get(index + AHEAD) {
                crate::bits::prefetch(&raw const keys[next.1]);
            }
            keys[number].with_bytes(|bytes| pushes.keys.push(bytes));
            pushes.addresses.push(address);
        }
        pushes
    }

    fn apply<R: Remote>(&self, remote: &mut R) -> Result<(), Failed<R::Error>> {
        let mut group = Vec::with_capacity(GROUP.min(self.addresses.len()));
        for (index, &address) in self.addresses.iter().enumerate() {
            group.push(Change::Insert { address, key: self.keys.get(index) });
            if group.len() == GROUP || index + 1 == self.addresses.len() {
                remote.apply(&group).map_err(|error| Failed(AdaptiveError::Remote(error)))?;
                group.clear();
            }
        }
        Ok(())
    }
}
