//! A sorted set of (address, key) in memory.
//!
//! Pairs lie in *pages* of some neighbours, packed: the entries sorted, the bytes of their keys in one buffer, in the
//! order in which they came. A tree finds the page of an address. So no key has an allocation of its own, and an
//! insertion moves half a page of entries.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::RangeInclusive;

use super::{Change, Remote, Visit};

/// The most pairs of a page, unless all have one address; with one more it is cut in two.
const PAGE: usize = 128;

/// A [`Remote`] in memory.
///
/// ```
/// use besom::{Change, MemoryRemote, Remote};
///
/// let mut remote = MemoryRemote::new();
/// remote.apply(&[Change::Insert { address: 1, key: b"key" }])?;
/// assert_eq!(remote.iter().collect::<Vec<_>>(), [(1, &b"key"[..])]);
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryRemote {
    /// By the address at which each begins; the first one at 0. All pairs of an address are in one page.
    pages: BTreeMap<u64, Page>,
    len: usize,
}

/// Some neighbouring pairs.
#[derive(Debug, Clone, Default)]
struct Page {
    /// By address and key.
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// Bytes of keys that were removed.
    dead: usize,
}

/// A pair: its key is in the page's buffer.
#[derive(Debug, Clone, Copy)]
struct Entry {
    address: u64,
    start: usize,
    len: usize,
}

impl Page {
    fn key(&self, entry: Entry) -> &[u8] {
        &self.bytes[entry.start..entry.start + entry.len]
    }

    /// Where a pair is, or else where it belongs.
    fn find(&self, address: u64, key: &[u8]) -> Result<usize, usize> {
        let mut at = self.entries.partition_point(|entry| entry.address < address);
        while let Some(&entry) = self.entries.get(at).filter(|entry| entry.address == address) {
            match self.key(entry).cmp(key) {
                std::cmp::Ordering::Less => at += 1,
                std::cmp::Ordering::Equal => return Ok(at),
                std::cmp::Ordering::Greater => break,
            }
        }
        Err(at)
    }

    fn insert(&mut self, at: usize, address: u64, key: &[u8]) {
        self.entries.insert(at, Entry { address, start: self.bytes.len(), len: key.len() });
        self.bytes.extend_from_slice(key);
    }

    fn remove(&mut self, at: usize) {
        self.dead += self.entries.remove(at).len;
        if self.dead > self.bytes.len() / 2 {
            *self = self.copied(0..self.entries.len());
        }
    }

    /// Some of its pairs as a page of their own.
    fn copied(&self, entries: std::ops::Range<usize>) -> Self {
        let mut page = Self { entries: Vec::with_capacity(PAGE + 1), ..Self::default() };
        for &entry in &self.entries[entries] {
            page.insert(page.entries.len(), entry.address, self.key(entry));
        }
        page
    }

    /// Cuts it in two where the address changes, nearest to the middle; `None` if it does nowhere.
    fn cut(&mut self) -> Option<(u64, Self)> {
        let len = self.entries.len();
        let border = |at: &usize| self.entries[at - 1].address < self.entries[*at].address;
        let at = (1..len).filter(border).min_by_key(|at| at.abs_diff(len / 2))?;
        let right = self.copied(at..len);
        *self = self.copied(0..at);
        Some((right.entries[0].address, right))
    }

    fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.entries.iter().map(|&entry| (entry.address, self.key(entry)))
    }
}

impl MemoryRemote {
    /// An empty remote.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many pairs it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All pairs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.pages.values().flat_map(Page::iter)
    }

    /// The page of an address.
    fn page_mut(&mut self, address: u64) -> Option<&mut Page> {
        self.pages.range_mut(..=address).next_back().map(|(_, page)| page)
    }

    fn insert(&mut self, address: u64, key: &[u8]) {
        if self.pages.is_empty() {
            self.pages.insert(0, Page::default());
        }
        let Some(page) = self.page_mut(address) else { return };
        let Err(at) = page.find(address, key) else { return };
        page.insert(at, address, key);
        let cut = if page.entries.len() > PAGE { page.cut() } else { None };
        self.pages.extend(cut);
        self.len += 1;
    }

    fn remove(&mut self, address: u64, key: &[u8]) {
        let Some(page) = self.page_mut(address) else { return };
        let Ok(at) = page.find(address, key) else { return };
        page.remove(at);
        if page.entries.is_empty() {
            let first = self.pages.range(..=address).next_back().map_or(0, |(&first, _)| first);
            // The first page stays: every address has one.
            if first > 0 {
                self.pages.remove(&first);
            }
        }
        self.len -= 1;
    }
}

impl Remote for MemoryRemote {
    type Error = Infallible;

    fn range(&mut self, addresses: RangeInclusive<u64>, visit: &mut Visit<'_>) -> Result<(), Infallible> {
        let (start, end) = addresses.into_inner();
        if start > end {
            return Ok(());
        }
        let first = self.pages.range(..=start).next_back().map_or(0, |(&first, _)| first);
        let pairs = self.pages.range(first..=end).flat_map(|(_, page)| {
            let from = page.entries.partition_point(|entry| entry.address < start);
            page.entries[from..].iter().map(|&entry| (entry.address, page.key(entry)))
        });
        // The visitor's break ends it, and is no error.
        let _ = pairs
            .take_while(|&(address, _)| address <= end)
            .try_for_each(|(address, key)| visit(address, key));
        Ok(())
    }

    /// Cannot fail.
    fn apply(&mut self, changes: &[Change<'_>]) -> Result<(), Infallible> {
        for change in changes {
            match *change {
                Change::Insert { address, key } => self.insert(address, key),
                Change::Remove { address, key } => self.remove(address, key),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Catches: pairs that are lost, doubled or out of order where pages meet, memory that is never given back.
    use std::collections::BTreeSet;
    use std::ops::ControlFlow;

    use super::*;
    use crate::testing::Random;

    fn visited(remote: &mut MemoryRemote, addresses: RangeInclusive<u64>) -> Vec<(u64, Vec<u8>)> {
        let mut pairs = Vec::new();
        let visit = &mut |address: u64, key: &[u8]| {
            pairs.push((address, key.to_vec()));
            ControlFlow::Continue(())
        };
        remote.range(addresses, visit).unwrap();
        pairs
    }

    /// Few addresses (so that many pairs share one), dense ones, or any.
    fn address(kind: u64, random: &mut Random) -> u64 {
        match kind {
            0 => random.below(4) * 1_000_003,
            1 => random.below(3_000),
            _ => random.next() >> random.below(60),
        }
    }

    #[test]
    fn it_is_a_sorted_set() {
        for kind in 0..3 {
            let mut random = Random::new(kind);
            let (mut remote, mut model) = (MemoryRemote::new(), BTreeSet::new());
            for step in 0..20_000 {
                let long = random.one_in(20);
                let len = random.below(if long { 400 } else { 3 }) as usize;
                let (address, key) = (address(kind, &mut random), vec![random.below(8) as u8; len]);
                // Now filling, now emptying.
                if random.below(10) < if step / 5_000 % 2 == 0 { 7 } else { 2 } {
                    remote.apply(&[Change::Insert { address, key: &key }]).unwrap();
                    model.insert((address, key));
                } else {
                    let next = model.range((address, key.clone())..).next().cloned();
                    let gone = next.filter(|_| random.one_in(2)).unwrap_or((address, key));
                    remote.apply(&[Change::Remove { address: gone.0, key: &gone.1 }]).unwrap();
                    model.remove(&gone);
                }
                assert_eq!(remote.len(), model.len());
                let ends = [self::address(kind, &mut random), self::address(kind, &mut random)];
                let (start, end) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
                if step % 100 == 0 {
                    let expected: Vec<_> = model
                        .range((start, Vec::new())..)
                        .take_while(|pair| pair.0 <= end)
                        .cloned()
                        .collect();
                    assert_eq!(visited(&mut remote, start..=end), expected);
                    assert!(remote.iter().eq(model.iter().map(|(address, key)| (*address, &key[..]))));
                }
            }
            assert!(visited(&mut remote, 0..=u64::MAX).len() == model.len());
        }
    }

    #[test]
    fn a_visitor_that_breaks_sees_no_more() {
        let mut remote = MemoryRemote::new();
        for address in [1 << 60, 5, 1 << 30, 0, u64::MAX] {
            remote.apply(&[Change::Insert { address, key: b"key" }]).unwrap();
        }
        let mut seen = Vec::new();
        let visit = &mut |address: u64, _: &[u8]| {
            seen.push(address);
            if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        remote.range(1..=u64::MAX, visit).unwrap();
        assert_eq!(seen, [5, 1 << 30, 1 << 60]);
        assert!(visited(&mut remote, RangeInclusive::new(9, 3)).is_empty());
    }

    #[test]
    fn what_is_removed_takes_no_memory_for_long() {
        let mut remote = MemoryRemote::new();
        for round in 0..200_u8 {
            for address in 0..256 {
                remote.apply(&[Change::Insert { address, key: &[round; 20] }]).unwrap();
                let old = [round.wrapping_sub(1); 20];
                remote.apply(&[Change::Remove { address, key: &old }]).unwrap();
            }
        }
        let bytes: usize = remote.pages.values().map(|page| page.bytes.len()).sum();
        assert!(remote.len() == 256 && bytes <= 2 * 256 * 20 + 1_000, "{bytes} bytes");
    }
}
