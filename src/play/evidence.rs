//! What is known of a remote: some ranges of addresses, and all pairs in them.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, RangeInclusive};

use crate::{Change, Remote, Visit};

/// A [`Change`] that owns its key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnedChange {
    /// Where.
    pub address: u64,
    /// The bytes of the key.
    pub key: Box<[u8]>,
    /// Whether the pair comes or goes.
    pub inserts: bool,
}

impl OwnedChange {
    /// The change, with a reference to the key.
    #[must_use]
    pub fn as_change(&self) -> Change<'_> {
        let (address, key) = (self.address, &*self.key);
        if self.inserts { Change::Insert { address, key } } else { Change::Remove { address, key } }
    }
}

impl From<&Change<'_>> for OwnedChange {
    fn from(change: &Change<'_>) -> Self {
        match *change {
            Change::Insert { address, key } => Self { address, key: key.into(), inserts: true },
            Change::Remove { address, key } => Self { address, key: key.into(), inserts: false },
        }
    }
}

/// Ranges of addresses that were read, and the pairs in them.
///
/// ```
/// use besom::play::Evidence;
///
/// let mut evidence = Evidence::default();
/// evidence.add(7, b"key");
/// evidence.know(0..=9);
/// assert!(evidence.knows(&(3..=9)) && !evidence.knows(&(3..=10)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Sorted, and apart by one address at least.
    known: Vec<RangeInclusive<u64>>,
    pairs: BTreeSet<(u64, Box<[u8]>)>,
}

impl Evidence {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.known.clear();
        self.pairs.clear();
    }

    /// Takes in a pair that was read.
    pub fn add(&mut self, address: u64, key: &[u8]) {
        self.pairs.insert((address, key.into()));
    }

    /// Says that all pairs of this range were read.
    pub fn know(&mut self, range: RangeInclusive<u64>) {
        let (mut first, mut last) = range.into_inner();
        self.known.retain(|other| {
            let apart = other.end().checked_add(1).is_some_and(|behind| behind < first)
                || last.checked_add(1).is_some_and(|behind| behind < *other.start());
            if !apart {
                (first, last) = (first.min(*other.start()), last.max(*other.end()));
            }
            apart
        });
        let at = self.known.partition_point(|other| *other.start() < first);
        self.known.insert(at, first..=last);
    }

    /// Whether all pairs of this range are known.
    #[must_use]
    pub fn knows(&self, range: &RangeInclusive<u64>) -> bool {
        range.is_empty()
            || self.known.iter().any(|known| known.contains(range.start()) && known.contains(range.end()))
    }

    /// Reads a range, but no more than `limit` pairs. Whether that was all; if not, nothing is known of the range.
    ///
    /// # Errors
    ///
    /// What the remote reports.
    pub fn read<R: Remote>(
        &mut self,
        range: RangeInclusive<u64>,
        limit: usize,
        remote: &mut R,
    ) -> Result<bool, R::Error> {
        let mut pairs = Vec::new();
        remote.range(range.clone(), &mut |address, key| {
            pairs.push((address, key.into()));
            if pairs.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let whole = pairs.len() <= limit;
        if whole {
            self.pairs.extend(pairs);
            self.know(range);
        }
        Ok(whole)
    }

    /// Calls `visit` with the pairs of a range, ascending. `false` if the range is not known.
    pub(super) fn visit(&self, range: RangeInclusive<u64>, visit: &mut Visit<'_>) -> bool {
        if !self.knows(&range) {
            return false;
        }
        let from = (*range.start(), Box::default());
        let pairs = self.pairs.range(from..).take_while(|(address, _)| address <= range.end());
        // The visitor's break ends the walk, and is no failure.
        let _ = { pairs }.try_for_each(|(address, key)| visit(*address, key));
        true
    }

    /// Makes a change. Whether it had an effect, as far as is known.
    pub(super) fn make(&mut self, change: &OwnedChange) -> bool {
        let pair = (change.address, change.key.clone());
        let effect = if change.inserts { self.pairs.insert(pair) } else { self.pairs.remove(&pair) };
        effect || !self.knows(&(change.address..=change.address))
    }

    /// Takes a change back that had an effect.
    pub(super) fn take_back(&mut self, change: &OwnedChange) {
        let pair = (change.address, change.key.clone());
        if change.inserts {
            self.pairs.remove(&pair);
        } else if self.knows(&(change.address..=change.address)) {
            self.pairs.insert(pair);
        }
    }
}
