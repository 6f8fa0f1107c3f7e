//! The remote in memory: for tests, for benchmarks, and for those whose keys fit.

use std::ops::{ControlFlow, RangeInclusive};

use thiserror::Error;

use super::page::{Entries, PAGE, Page};
use super::pages::Pages;
use super::{Change, Remote};

/// A change named a list entry that does not exist, or that holds another key. The remote is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the key named for rank {rank} is not there at address {address}, where the list has {len} entries")]
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
/// Addresses are grouped in pages of 256, so that dense addresses (quotients, slots) cost no hash table of their
/// own size. One page exists for every group in which something was ever stored; it takes 2 bytes an address and,
/// for each list, its keys and a few bytes more.
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
    pages: Pages,
    len: usize,
}

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

    /// All entries as `(address, key)`: addresses ascending, the keys of one address in the order of its list.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.range(0..=u64::MAX)
    }

    /// The entries of these addresses, in order.
    fn range(&self, range: RangeInclusive<u64>) -> impl Iterator<Item = (u64, &[u8])> {
        let numbers = range.start() / PAGE as u64..=range.end() / PAGE as u64;
        let pages = self.pages.sorted(numbers).into_iter().flat_map(|(number, page)| {
            (0..PAGE).map(move |index| (number * PAGE as u64 + index as u64, page, index))
        });
        let within = pages.filter(move |(address, ..)| range.contains(address));
        within.flat_map(|(address, page, index)| page.list(index).map(move |key| (address, key)))
    }

    /// The memory that the lists take, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.pages.memory()
    }

    fn list(&self, address: u64) -> Option<Entries<'_>> {
        Some(self.pages.get(address / PAGE as u64)?.list(address as usize % PAGE))
    }

    /// The page of an address, and the number of the address there.
    #[inline]
    fn page_mut(&mut self, address: u64) -> (&mut Page, usize) {
        (self.pages.get_or_insert(address / PAGE as u64), address as usize % PAGE)
    }

    #[inline]
    fn push(&mut self, address: u64, key: &[u8]) {
        let (page, index) = self.page_mut(address);
        page.push(index, key);
        self.len += 1;
    }

    fn remove(&mut self, address: u64, rank: usize) {
        let (page, index) = self.page_mut(address);
        page.remove(index, rank);
        self.len -= 1;
    }

    fn replace(&mut self, address: u64, rank: usize, key: &[u8]) {
        let (page, index) = self.page_mut(address);
        page.replace(index, rank, key);
    }

    /// Makes all changes, which name every address once: none of them can make another one fail, so they are
    /// checked first and then made.
    fn apply_apart(&mut self, changes: &[Change<'_>]) -> Result<(), MissingEntry> {
        for change in changes {
            if let Change::Remove { address, rank, key } | Change::Replace { address, rank, old: key, .. } =
                *change
            {
                self.entry(address, rank, key)?;
            }
        }
        for change in changes {
            match *change {
                Change::Push { address, key } => self.push(address, key),
                Change::Remove { address, rank, .. } => self.remove(address, rank),
                Change::Replace { address, rank, key, .. } => self.replace(address, rank, key),
                Change::Clear => unreachable!("a group with Clear is not made of changes apart"),
            }
        }
        Ok(())
    }

    /// Makes all changes one after the other, and takes them back if one fails.
    fn apply_in_order(&mut self, changes: &[Change<'_>]) -> Result<(), MissingEntry> {
        let mut done = Vec::with_capacity(changes.len());
        for change in changes {
            match self.step(change) {
                Ok(undo) => done.push(undo),
                Err(error) => {
                    done.into_iter().rev().for_each(|undo| self.undo(undo));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Makes one change and returns the one that takes it back.
    fn step(&mut self, change: &Change<'_>) -> Result<Undo, MissingEntry> {
        match *change {
            Change::Push { address, key } => {
                let rank = self.list(address).map_or(0, Iterator::count);
                self.push(address, key);
                Ok(Undo::Remove { address, rank })
            }
            Change::Remove { address, rank, key } => {
                let key = self.entry(address, rank, key)?.to_vec();
                self.remove(address, rank);
                Ok(Undo::Insert { address, rank, key })
            }
            Change::Replace { address, rank, old, key } => {
                let old = self.entry(address, rank, old)?.to_vec();
                self.replace(address, rank, key);
                Ok(Undo::Replace { address, rank, key: old })
            }
            Change::Clear => Ok(Undo::Restore(std::mem::take(self))),
        }
    }

    /// The entry of this rank, which must be `key`.
    fn entry(&self, address: u64, rank: usize, key: &[u8]) -> Result<&[u8], MissingEntry> {
        let list = self.list(address);
        let entry = list.clone().and_then(|mut list| list.nth(rank));
        entry.filter(|&entry| entry == key).ok_or_else(|| {
            let len = list.map_or(0, Iterator::count);
            MissingEntry { address, rank, len }
        })
    }

    fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Remove { address, rank } => self.remove(address, rank),
            Undo::Insert { address, rank, key } => {
                let (page, index) = self.page_mut(address);
                page.insert(index, rank, &key);
                self.len += 1;
            }
            Undo::Replace { address, rank, key } => self.replace(address, rank, &key),
            Undo::Restore(before) => *self = before,
        }
    }
}

/// Whether the changes name every address once, as far as that is cheap to see: few of them, or in order.
fn are_apart(changes: &[Change<'_>]) -> bool {
    let address = |change: &Change<'_>| match *change {
        Change::Push { address, .. } | Change::Remove { address, .. } | Change::Replace { address, .. } => {
            Some(address)
        }
        Change::Clear => None,
    };
    let in_order = || changes.is_sorted_by(|a, b| address(a) < address(b));
    let few_and_different = || {
        let tails = (1..changes.len()).map(|start| &changes[start..]);
        changes.len() <= 16
            && changes.iter().zip(tails).all(|(a, tail)| tail.iter().all(|b| address(a) != address(b)))
    };
    changes.iter().all(|change| address(change).is_some()) && (few_and_different() || in_order())
}

impl Remote for MemoryRemote {
    type Error = MissingEntry;

    fn read(&mut self, address: u64, visit: &mut dyn FnMut(&[u8])) -> Result<(), MissingEntry> {
        self.list(address).into_iter().flatten().for_each(visit);
        Ok(())
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), MissingEntry> {
        match changes {
            // A single push cannot fail, and is what nearly all insertions make.
            &[Change::Push { address, key }] => {
                self.push(address, key);
                Ok(())
            }
            // Nothing can fail in a rewriting of everything.
            [Change::Clear, pushes @ ..]
                if pushes.iter().all(|change| matches!(change, Change::Push { .. })) =>
            {
                *self = Self::new();
                self.apply_apart(pushes)
            }
            changes if are_apart(changes) => self.apply_apart(changes),
            changes => self.apply_in_order(changes),
        }
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<(), MissingEntry> {
        // The visitor's break ends the scan, and is no error.
        let _ = self.iter().try_for_each(|(address, key)| visit(address, key));
        Ok(())
    }

    fn scan_range(
        &mut self,
        range: RangeInclusive<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), MissingEntry> {
        let _ = self.range(range).try_for_each(|(address, key)| visit(address, key));
        Ok(())
    }

    fn prefetch(&self, address: u64) {
        if let Some(page) = self.pages.get(address / PAGE as u64) {
            page.prefetch(address as usize % PAGE);
        }
    }
}

/// What takes one change back.
enum Undo {
    Remove { address: u64, rank: usize },
    Insert { address: u64, rank: usize, key: Vec<u8> },
    Replace { address: u64, rank: usize, key: Vec<u8> },
    Restore(MemoryRemote),
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
                    let old = &list[rank];
                    remote.apply(&[Change::Replace { address, rank, old, key: &key }]).unwrap();
                    list[rank] = key;
                }
                _ if rank < list.len() => {
                    remote.apply(&[Change::Remove { address, rank, key: &list[rank] }]).unwrap();
                    list.remove(rank);
                }
                _ => {
                    let len = list.len();
                    let error = MissingEntry { address, rank: len, len };
                    assert_eq!(remote.apply(&[Change::Remove { address, rank: len, key: &key }]), Err(error));
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
            Change::Remove { address: 1, rank: 0, key: b"a" },
            Change::Replace { address: 1, rank: 0, old: b"b", key: b"z" },
            Change::Clear,
            Change::Push { address: 2, key: b"d" },
            Change::Remove { address: 2, rank: 1, key: b"d" },
        ];
        assert_eq!(remote.apply(&failing), Err(MissingEntry { address: 2, rank: 1, len: 1 }));
        assert_eq!(keys(&mut remote, 1), [b"a", b"b"]);
        assert!(keys(&mut remote, 2).is_empty());
        assert_eq!((remote.len(), remote.iter().count()), (2, 2));
    }

    #[test]
    fn a_failed_group_of_changes_apart_changes_nothing() {
        let mut remote = MemoryRemote::new();
        let push = |address| Change::Push { address, key: b"key" };
        remote.apply(&(0..100).map(push).collect::<Vec<_>>()).unwrap();
        let before: Vec<_> = remote.iter().map(|(address, key)| (address, key.to_vec())).collect();
        // Few and different, or many and in order: both are checked before anything is made.
        for addresses in [vec![5, 3, 200], (0..=100).collect::<Vec<_>>()] {
            let remove = |&address: &u64| Change::Remove { address, rank: 0, key: b"key" };
            let address = addresses[addresses.len() - 1];
            let missing = MissingEntry { address, rank: 0, len: 0 };
            assert_eq!(remote.apply(&addresses.iter().map(remove).collect::<Vec<_>>()), Err(missing));
            let after: Vec<_> = remote.iter().map(|(address, key)| (address, key.to_vec())).collect();
            assert_eq!(before, after);
        }
        let twice = [Change::Remove { address: 7, rank: 0, key: b"key" }; 2];
        assert_eq!(remote.apply(&twice), Err(MissingEntry { address: 7, rank: 0, len: 0 }));
        assert_eq!(remote.len(), 100);
    }

    #[test]
    fn what_is_removed_or_replaced_takes_no_memory_for_long() {
        let mut random = crate::testing::Random::new(4);
        let mut remote = MemoryRemote::new();
        for round in 0..200 {
            for address in 0..256 {
                let key = vec![7; random.below(20) as usize];
                let old = keys(&mut remote, address).pop().unwrap_or_default();
                let change = match round {
                    0 => Change::Push { address, key: &key },
                    _ => Change::Replace { address, rank: 0, old: &old, key: &key },
                };
                remote.apply(&[change]).unwrap();
            }
        }
        // 256 heads and lists of 22 bytes at most, of which half may be dead and half of the memory unused.
        assert!(remote.memory() < 256 * (4 + 4 * 22) + 1000, "{} bytes", remote.memory());
    }

    #[test]
    fn a_page_whose_lists_fill_its_log_keeps_them_apart() {
        let mut random = crate::testing::Random::new(5);
        let mut remote = MemoryRemote::new();
        let mut model: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 256];
        // As much as 256 lists can have in the log; then lists are written again, a little longer or shorter.
        for step in 0..30_000_u64 {
            let address = if step < 256 { step } else { random.below(256) };
            let list = &mut model[address as usize];
            let key = vec![random.next() as u8; 110 + random.below(8) as usize];
            if let [old, ..] = &list[..] {
                remote.apply(&[Change::Replace { address, rank: 0, old, key: &key }]).unwrap();
                list[0] = key;
            } else {
                remote.apply(&[Change::Push { address, key: &key }]).unwrap();
                list.push(key);
            }
            // A list that was emptied is pushed again: the other way into a log that is nearly full.
            if random.one_in(4) {
                let key = model[address as usize].remove(0);
                remote.apply(&[Change::Remove { address, rank: 0, key: &key }]).unwrap();
            }
            let (some, all) = (random.below(256), step.is_multiple_of(1_000));
            for address in if all { 0..256 } else { some..some + 1 } {
                assert_eq!(keys(&mut remote, address), model[address as usize], "step {step}");
            }
        }
    }

    #[test]
    fn a_list_that_is_long_and_empty_by_turns_takes_no_more_memory() {
        let mut remote = MemoryRemote::new();
        let (long, short) = (vec![1; 500], b"short");
        remote.apply(&[Change::Push { address: 3, key: short }]).unwrap();
        let round = |remote: &mut MemoryRemote| {
            remote.apply(&[Change::Push { address: 7, key: &long }]).unwrap();
            remote.apply(&[Change::Remove { address: 7, rank: 0, key: &long }]).unwrap();
        };
        round(&mut remote);
        let before = remote.memory();
        // More rounds than there are numbers for long lists.
        (0..40_000).for_each(|_| round(&mut remote));
        assert_eq!(remote.memory(), before);
        assert_eq!(keys(&mut remote, 3), [short]);
    }

    #[test]
    fn a_scan_is_in_the_order_of_addresses_and_stops_when_it_is_told() {
        let mut remote = MemoryRemote::new();
        for address in [1 << 60, 5, 1 << 30, 5, 0, 300] {
            remote.apply(&[Change::Push { address, key: &remote.len().to_le_bytes() }]).unwrap();
        }
        let mut seen = Vec::new();
        let visit = &mut |address: u64, key: &[u8]| {
            seen.push((address, key[0]));
            if seen.len() == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        remote.scan(visit).unwrap();
        assert_eq!(seen, [(0, 4), (5, 1), (5, 3), (300, 5), (1 << 30, 2)]);
    }

    #[test]
    fn a_change_that_expects_another_key_is_refused() {
        let mut remote = MemoryRemote::new();
        remote.apply(&[Change::Push { address: 1, key: b"a" }]).unwrap();
        let missing = Err(MissingEntry { address: 1, rank: 0, len: 1 });
        assert_eq!(remote.apply(&[Change::Remove { address: 1, rank: 0, key: b"b" }]), missing);
        assert_eq!(remote.apply(&[Change::Replace { address: 1, rank: 0, old: b"b", key: b"c" }]), missing);
        assert_eq!(keys(&mut remote, 1), [b"a"]);
    }
}
