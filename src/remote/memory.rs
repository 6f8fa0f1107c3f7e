//! The remote in memory: for tests, for benchmarks, and for those whose keys fit.

use thiserror::Error;

use crate::bits::NumberMap;

use super::{Change, Remote};

/// A change named a list entry that does not exist. The remote is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no entry of rank {rank} at address {address}, where the list has {len}")]
pub struct MissingEntry {
    /// The address of the change.
    pub address: u64,
    /// The rank that was asked for.
    pub rank: usize,
    /// The length of the list.
    pub len: usize,
}

/// A [`Remote`] that keeps its lists in memory.
///
/// Addresses are grouped in pages, so that dense addresses (quotients, slots) cost no hash table of their own
/// size; short lists lie inside their page. A page of 256 addresses takes 6 KiB, and one page exists for every
/// group in which something was ever stored.
///
/// ```
/// use besom::{Change, MemoryRemote, Remote};
///
/// let mut remote = MemoryRemote::new();
/// remote.apply(&[Change::Push { address: 1, key: b"key" }])?;
/// assert_eq!(remote.len(), 1);
/// # Ok::<(), besom::MissingEntry>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryRemote {
    pages: NumberMap<Box<Page>>,
    len: usize,
}

const PAGE: usize = 256;
type Page = [List; PAGE];

impl MemoryRemote {
    /// A remote without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many keys all lists have together.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all lists are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All entries as `(address, key)`: addresses in no order, the keys of one address in the order of its list.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.pages.iter().flat_map(|(&page, lists)| {
            let addresses = page * PAGE as u64..;
            addresses.zip(lists.iter()).flat_map(|(address, list)| list.iter().map(move |key| (address, key)))
        })
    }

    /// The memory that the lists take, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let heap = |list: &List| match list {
            List::Inline { .. } => 0,
            List::Heap(bytes) => size_of::<Vec<u8>>() + bytes.capacity(),
        };
        let pages = self.pages.values().map(|page| size_of::<Page>() + page.iter().map(heap).sum::<usize>());
        pages.sum::<usize>() + self.pages.capacity() * size_of::<(u64, Box<Page>)>()
    }

    fn list(&self, address: u64) -> Option<&List> {
        Some(&self.pages.get(&(address / PAGE as u64))?[address as usize % PAGE])
    }

    fn list_mut(&mut self, address: u64) -> &mut List {
        let page = self.pages.entry(address / PAGE as u64).or_insert_with(Page::boxed);
        &mut page[address as usize % PAGE]
    }

    /// Makes one change and returns the one that takes it back. [`Change::Clear`] is not for this function.
    fn step(&mut self, change: &Change<'_>) -> Result<Undo, MissingEntry> {
        match *change {
            Change::Push { address, key } => {
                let list = self.list_mut(address);
                list.push(key);
                let undo = Undo::Remove { address, rank: list.iter().count() - 1 };
                self.len += 1;
                Ok(undo)
            }
            Change::Remove { address, rank } => {
                let key = self.entry(address, rank)?.to_vec();
                self.list_mut(address).remove(rank);
                self.len -= 1;
                Ok(Undo::Insert { address, rank, key })
            }
            Change::Replace { address, rank, key } => {
                let old = self.entry(address, rank)?.to_vec();
                self.list_mut(address).replace(rank, key);
                Ok(Undo::Replace { address, rank, key: old })
            }
            Change::Clear => unreachable!("Clear is handled by apply"),
        }
    }

    fn entry(&self, address: u64, rank: usize) -> Result<&[u8], MissingEntry> {
        let list = self.list(address);
        list.and_then(|list| list.iter().nth(rank)).ok_or_else(|| {
            let len = list.map_or(0, |list| list.iter().count());
            MissingEntry { address, rank, len }
        })
    }

    fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Remove { address, rank } => {
                self.list_mut(address).remove(rank);
                self.len -= 1;
            }
            Undo::Insert { address, rank, key } => {
                self.list_mut(address).insert(rank, &key);
                self.len += 1;
            }
            Undo::Replace { address, rank, key } => self.list_mut(address).replace(rank, &key),
            Undo::Restore(before) => *self = before,
        }
    }
}

impl Remote for MemoryRemote {
    type Error = MissingEntry;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), MissingEntry> {
        if let Some(list) = self.list(address) {
            list.iter().for_each(visit);
        }
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), MissingEntry> {
        // A single push cannot fail, and is what nearly all insertions make.
        if let &[Change::Push { address, key }] = changes {
            self.list_mut(address).push(key);
            self.len += 1;
            return Ok(());
        }
        let mut done = Vec::with_capacity(changes.len());
        for change in changes {
            let step = match change {
                Change::Clear => Ok(Undo::Restore(std::mem::take(self))),
                change => self.step(change),
            };
            match step {
                Ok(undo) => done.push(undo),
                Err(error) => {
                    done.into_iter().rev().for_each(|undo| self.undo(undo));
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// What takes one change back.
enum Undo {
    Remove { address: u64, rank: usize },
    Insert { address: u64, rank: usize, key: Vec<u8> },
    Replace { address: u64, rank: usize, key: Vec<u8> },
    Restore(MemoryRemote),
}

/// A list of keys as one byte string: for each key its length (7 bits a byte, the top bit says that another
/// length byte follows), then its bytes. Two keys of 8 bytes fit inside the 24 bytes of the list itself.
#[derive(Debug, Clone)]
enum List {
    Inline { len: u8, bytes: [u8; INLINE] },
    Heap(Box<Vec<u8>>),
}

const INLINE: usize = 22;

impl List {
    const EMPTY: Self = Self::Inline { len: 0, bytes: [0; INLINE] };

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Heap(bytes) => bytes,
        }
    }

    fn iter(&self) -> Entries<'_> {
        Entries { rest: self.bytes() }
    }

    fn push(&mut self, key: &[u8]) {
        self.splice(self.bytes().len(), 0, Some(key));
    }

    fn insert(&mut self, rank: usize, key: &[u8]) {
        let (start, _) = self.span(rank);
        self.splice(start, 0, Some(key));
    }

    fn remove(&mut self, rank: usize) {
        let (start, len) = self.span(rank);
        self.splice(start, len, None);
    }

    fn replace(&mut self, rank: usize, key: &[u8]) {
        let (start, len) = self.span(rank);
        self.splice(start, len, Some(key));
    }

    /// Where the entry of this rank starts, and how long it is with its length bytes.
    fn span(&self, rank: usize) -> (usize, usize) {
        let mut entries = self.iter();
        let total = entries.rest.len();
        entries.by_ref().take(rank).for_each(drop);
        let start = total - entries.rest.len();
        entries.next();
        (start, total - entries.rest.len() - start)
    }

    /// Replaces `removed` bytes at `start` by the entry of `key`.
    fn splice(&mut self, start: usize, removed: usize, key: Option<&[u8]>) {
        let (prefix, prefix_len) = key.map_or(([0; 10], 0), |key| length_prefix(key.len()));
        let key = key.unwrap_or_default();
        let added = prefix_len + key.len();
        let old_len = self.bytes().len();
        let new_len = old_len - removed + added;
        if let Self::Inline { len, bytes } = self
            && new_len <= INLINE
        {
            bytes.copy_within(start + removed..old_len, start + added);
            bytes[start..start + prefix_len].copy_from_slice(&prefix[..prefix_len]);
            bytes[start + prefix_len..start + added].copy_from_slice(key);
            *len = new_len as u8;
            return;
        }
        let entry = prefix[..prefix_len].iter().chain(key).copied();
        match self {
            Self::Heap(bytes) => drop(bytes.splice(start..start + removed, entry)),
            Self::Inline { .. } => {
                let mut bytes = Vec::with_capacity(new_len);
                bytes.extend_from_slice(&self.bytes()[..start]);
                bytes.extend(entry);
                bytes.extend_from_slice(&self.bytes()[start + removed..]);
                *self = Self::Heap(Box::new(bytes));
            }
        }
        if new_len == 0 {
            *self = Self::EMPTY;
        }
    }
}

/// The entries of a [`List`] from some point on.
#[derive(Clone)]
struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (mut len, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            len |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (key, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(key)
    }
}

/// The length bytes of an entry and how many they are.
fn length_prefix(mut len: usize) -> ([u8; 10], usize) {
    let (mut prefix, mut count) = ([0; 10], 0);
    while len >= 0x80 {
        prefix[count] = len as u8 | 0x80;
        len >>= 7;
        count += 1;
    }
    prefix[count] = len as u8;
    (prefix, count + 1)
}

trait Boxed {
    fn boxed() -> Box<Self>;
}

impl Boxed for Page {
    fn boxed() -> Box<Self> {
        let lists: Box<[List]> = std::iter::repeat_n(List::EMPTY, PAGE).collect();
        lists.try_into().unwrap_or_else(|_| unreachable!("PAGE lists were collected"))
    }
}

#[cfg(test)]
mod tests {
    //! Catches: entries that run into each other, a list that forgets its order, a failed group that leaves
    //! traces.
    use std::collections::HashMap;

    use super::*;

    fn keys(remote: &mut MemoryRemote, address: u64) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        remote.read(address, &mut |key| keys.push(key.to_vec())).unwrap();
        keys
    }

    #[test]
    fn lists_behave_like_vectors_of_keys() {
        let mut random = crate::testing::Random::new(1);
        let mut remote = MemoryRemote::new();
        let mut model: HashMap<u64, Vec<Vec<u8>>> = HashMap::new();
        for _ in 0..20_000 {
            let address = random.below(4) * 1_000_003;
            let list = model.entry(address).or_default();
            let long = random.below(20) == 0;
            let key = vec![random.below(256) as u8; random.below(if long { 400 } else { 12 }) as usize];
            let rank = random.below(6) as usize;
            match random.below(4) {
                0 | 1 if list.len() < 12 => {
                    remote.apply(&[Change::Push { address, key: &key }]).unwrap();
                    list.push(key);
                }
                2 if rank < list.len() => {
                    remote.apply(&[Change::Replace { address, rank, key: &key }]).unwrap();
                    list[rank] = key;
                }
                _ if rank < list.len() => {
                    remote.apply(&[Change::Remove { address, rank }]).unwrap();
                    list.remove(rank);
                }
                _ => {
                    let len = list.len();
                    let error = MissingEntry { address, rank: len, len };
                    assert_eq!(remote.apply(&[Change::Remove { address, rank: len }]), Err(error));
                }
            }
            assert_eq!(keys(&mut remote, address), *list);
            assert_eq!(remote.len(), model.values().map(Vec::len).sum::<usize>());
        }
    }

    #[test]
    fn a_failed_group_changes_nothing() {
        let mut remote = MemoryRemote::new();
        remote
            .apply(&[Change::Push { address: 1, key: b"a" }, Change::Push { address: 1, key: b"b" }])
            .unwrap();
        let failing = [
            Change::Push { address: 1, key: b"c" },
            Change::Remove { address: 1, rank: 0 },
            Change::Replace { address: 1, rank: 0, key: b"z" },
            Change::Clear,
            Change::Push { address: 2, key: b"d" },
            Change::Remove { address: 2, rank: 1 },
        ];
        assert_eq!(remote.apply(&failing), Err(MissingEntry { address: 2, rank: 1, len: 1 }));
        assert_eq!(keys(&mut remote, 1), [b"a", b"b"]);
        assert!(keys(&mut remote, 2).is_empty());
        assert_eq!((remote.len(), remote.iter().count()), (2, 2));
    }
}
