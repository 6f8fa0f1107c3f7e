//! Many keys at once: what filters with a remote do with them while a table is being filled.

use std::collections::HashSet;

use crate::filter::out_of_memory;
use crate::{AdaptiveError, BuildError, Change, Key, KeyHasher, Remote};

use super::keys::Keys;

/// A key that is being sorted: its hash, and its number.
pub(crate) type Gathered = (u64, usize);

/// An error while a table is being filled.
pub(crate) struct Failed<E>(pub(crate) AdaptiveError<E>);

impl<E> From<BuildError> for Failed<E> {
    fn from(error: BuildError) -> Self {
        Self(out_of_memory(error))
    }
}

/// Keys that go to the remote in one group.
const GROUP: usize = 1024;

/// So many keys of one unit are compared with each other; more go through a set.
const FEW: usize = 16;

/// Keys lie anywhere in memory: so many are fetched ahead.
const AHEAD: usize = 16;

/// The keys that a table is filled with, and how many units it has, which they are sorted by.
#[derive(Debug)]
pub(crate) struct Gather<'k, K> {
    pub(crate) keys: &'k [K],
    pub(crate) units: u64,
}

impl<K: Key> Gather<'_, K> {
    /// What is sorted of a key.
    #[inline(always)]
    pub(crate) fn item(&self, hasher: &impl KeyHasher, number: usize) -> Gathered {
        (hasher.digest_key(&self.keys[number]).hi, number)
    }

    #[inline(always)]
    fn unit(&self, item: Gathered) -> u64 {
        ((u128::from(item.0) * u128::from(self.units)) >> 64) as u64
    }

    /// Leaves the first of every key, and says what the remote is to be told. Items come by unit.
    pub(crate) fn settle(&self, items: &mut Vec<Gathered>) -> Pushes {
        self.drop_duplicates(items);
        self.pushes(items)
    }

    fn drop_duplicates(&self, items: &mut Vec<Gathered>) {
        let runs = || items.chunk_by(|&one, &two| self.unit(one) == self.unit(two));
        let some_twins = |run: &[Gathered]| run.len() > FEW || has_twins(run);
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
            kept.extend(run.iter().filter(|item| seen.insert(self.keys[item.1].with_bytes(<[u8]>::to_vec))));
        }
        *items = kept;
    }

    fn pushes(&self, items: &[Gathered]) -> Pushes {
        let keys = Keys::with_capacity(items.len(), items.len() * size_of::<K>());
        let mut pushes = Pushes { keys, addresses: Vec::with_capacity(items.len()) };
        for (index, &(address, number)) in items.iter().enumerate() {
            if let Some(next) = items.get(index + AHEAD) {
                crate::bits::prefetch(&raw const self.keys[next.1]);
            }
            self.keys[number].with_bytes(|bytes| pushes.keys.push(bytes));
            pushes.addresses.push(address);
        }
        pushes
    }
}

/// Whether two of a few keys have the same hash.
fn has_twins(run: &[Gathered]) -> bool {
    run.iter().enumerate().any(|(index, item)| run[..index].iter().any(|before| before.0 == item.0))
}

/// Some neighbouring keys and their addresses, for the remote.
pub(crate) struct Pushes {
    keys: Keys,
    addresses: Vec<u64>,
}

impl Pushes {
    pub(crate) fn apply<R: Remote>(&self, remote: &mut R) -> Result<(), Failed<R::Error>> {
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
