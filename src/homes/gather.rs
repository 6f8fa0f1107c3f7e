//! Many keys at once: what filters with a remote do with them while a table is being filled.

use std::collections::HashSet;

use crate::filter::out_of_memory;
use crate::{AdaptiveError, BuildError, Change, Key, KeyHasher, Remote};

use super::keys::Keys;

/// A key that is being sorted: its hash, and its bytes if all keys have 8, or else its number.
pub(crate) type Gathered = (u64, [u8; 8]);

/// An error while a table is being filled.
pub(crate) struct Failed<E>(pub(crate) AdaptiveError<E>);

impl<E> From<BuildError> for Failed<E> {
    fn from(error: BuildError) -> Self {
        Self(out_of_memory(error))
    }
}

/// Keys that go to the remote in one group.
pub(crate) const GROUP: usize = 1024;

/// So many keys of one unit are compared with each other; more go through a set.
const FEW: usize = 16;

/// Keys lie anywhere in memory: this many are fetched ahead.
const AHEAD: usize = 16;

/// The keys that a table is filled with, and how many units it has, which they are sorted by.
#[derive(Debug)]
pub(crate) struct Gather<'k, K> {
    keys: &'k [K],
    units: u64,
    /// All keys have 8 bytes, as integers do: they are sorted themselves, and need not be fetched from wherever they
    /// lie.
    packed: bool,
}

impl<'k, K: Key> Gather<'k, K> {
    pub(crate) fn new(keys: &'k [K], units: u64) -> Self {
        let packed = keys.iter().all(|key| key.with_bytes(|bytes| bytes.len() == size_of::<u64>()));
        Self { keys, units, packed }
    }

    /// What is sorted of a key.
    #[inline(always)]
    pub(crate) fn item(&self, hasher: &impl KeyHasher, number: usize) -> Gathered {
        let key = &self.keys[number];
        let hash = hasher.digest_key(key).hi;
        if self.packed {
            // A key that shows other bytes every time breaks its promise, and is another key then.
            (hash, key.with_bytes(|bytes| bytes.try_into().unwrap_or_default()))
        } else {
            (hash, (number as u64).to_le_bytes())
        }
    }

    /// The key of an item that has a number.
    #[inline(always)]
    fn key(&self, item: Gathered) -> &K {
        &self.keys[u64::from_le_bytes(item.1) as usize]
    }

    #[inline(always)]
    fn unit(&self, item: Gathered) -> u64 {
        ((u128::from(item.0) * u128::from(self.units)) >> 64) as u64
    }

    /// Leaves the first of every key, and has what the remote is to be told. Items come by unit.
    pub(crate) fn settle(&self, items: &mut Vec<Gathered>) -> Copies {
        if self.may_have_twins(items) {
            self.drop_duplicates(items);
        }
        self.copies(items)
    }

    /// Calls `work` with the bytes of a key.
    pub(crate) fn with_key<T>(&self, item: Gathered, work: impl FnOnce(&[u8]) -> T) -> T {
        if self.packed { work(&item.1) } else { self.key(item).with_bytes(work) }
    }

    /// Whether a unit has two keys of one hash, or too many to say.
    fn may_have_twins(&self, items: &[Gathered]) -> bool {
        let (mut start, mut unit) = (0, None);
        items.iter().enumerate().any(|(index, &item)| {
            let own = Some(self.unit(item));
            if unit != own {
                (start, unit) = (index, own);
            }
            index - start >= FEW || items[start..index].iter().any(|before| before.0 == item.0)
        })
    }

    fn drop_duplicates(&self, items: &mut Vec<Gathered>) {
        let bytes = |item: Gathered| {
            if self.packed { item.1.to_vec() } else { self.key(item).with_bytes(<[u8]>::to_vec) }
        };
        let mut kept = Vec::with_capacity(items.len());
        for run in items.chunk_by(|&one, &two| self.unit(one) == self.unit(two)) {
            let mut seen = HashSet::new();
            kept.extend(run.iter().filter(|item| run.len() == 1 || seen.insert(bytes(**item))));
        }
        *items = kept;
    }

    /// What the remote is to be told of these items.
    pub(crate) fn copies(&self, items: &[Gathered]) -> Copies {
        if self.packed {
            return Copies(None);
        }
        let mut keys = Keys::with_capacity(items.len(), items.len() * size_of::<K>());
        for (index, &item) in items.iter().enumerate() {
            if let Some(&next) = items.get(index + AHEAD) {
                crate::bits::prefetch(std::ptr::from_ref(self.key(next)));
            }
            self.key(item).with_bytes(|bytes| keys.push(bytes));
        }
        Copies(Some(keys))
    }
}

/// The bytes of keys that have numbers, in the order of some items.
pub(crate) struct Copies(Option<Keys>);

impl Copies {
    /// Tells the remote of these items.
    pub(crate) fn tell<R: Remote>(&self, items: &[Gathered], remote: &mut R) -> Result<(), Failed<R::Error>> {
        let mut group = Vec::with_capacity(GROUP.min(items.len()));
        for (part, items) in items.chunks(GROUP).enumerate() {
            group.clear();
            group.extend(items.iter().enumerate().map(|(index, (address, bytes))| {
                let key = self.0.as_ref().map_or(&bytes[..], |keys| keys.get(part * GROUP + index));
                Change::Insert { address: *address, key }
            }));
            remote.apply(&group).map_err(|error| Failed(AdaptiveError::Remote(error)))?;
        }
        Ok(())
    }
}
