//! What changes a cascade: every operation reads what it needs, changes the remote, and then the levels.

use std::ops::ControlFlow;

use super::filter::Cascade;
use super::ledger::Tally;
use super::level::LevelFilter;
use super::levels::{Levels, NoRoom};
use super::list::List;
use crate::filter::out_of_memory;
use crate::{Adaptation, AdaptiveError, Change, Digest, Filter, FullError, KeyHasher, Remote};

type Outcome<T, R> = Result<T, AdaptiveError<<R as Remote>::Error>>;

impl<F: LevelFilter, H: KeyHasher> Cascade<F, H> {
    /// Rebuilds that one repair makes before it gives up. Each accepts the key again with probability ε only.
    const MAX_REBUILDS: u64 = 16;

    /// Reads the list that a key is in, or would be.
    fn read<R: Remote>(&self, digest: Digest, remote: &mut R) -> Outcome<List, R> {
        let list = self.read_unchecked(digest, remote)?;
        list.check(&self.ledger, &self.levels)?;
        Ok(list)
    }

    fn read_unchecked<R: Remote>(&self, digest: Digest, remote: &mut R) -> Outcome<List, R> {
        let mut list = List::new(self.ledger.address(digest));
        remote.read(list.address, &mut |key| list.push(key, &self.hasher)).map_err(AdaptiveError::Remote)?;
        Ok(list)
    }

    /// Whether the remote has a key that the levels accept. A remote that stores nothing at all may be inserted into: one
    /// key more is never one too few.
    fn is_listed<R: Remote>(&self, key: &[u8], digest: Digest, remote: &mut R) -> Outcome<bool, R> {
        let list = self.read_unchecked(digest, remote)?;
        if list.iter().next().is_some() {
            list.check(&self.ledger, &self.levels)?;
        }
        Ok(list.rank(key).is_some())
    }

    pub(super) fn full(&self) -> FullError {
        FullError { len: self.len(), capacity: self.capacity() }
    }

    /// Levels without keys, with the hash functions that follow so many rebuilds from now.
    pub(super) fn empty_levels<E>(&self, rebuilds: u64) -> Result<Levels<F>, AdaptiveError<E>> {
        Levels::new(&self.sizes, &self.hasher, self.rebuilds + rebuilds).map_err(out_of_memory)
    }

    /// Puts other levels in the place of those at present.
    pub(super) fn take(&mut self, levels: Levels<F>, rebuilds: u64) {
        self.levels = levels;
        self.rebuilds += rebuilds;
    }

    /// Levels with the hash functions that follow so many rebuilds from now, and all keys of the remote that are to be
    /// kept. They must be those that make up `expected`.
    pub(super) fn rebuilt<R: Remote>(
        &self,
        remote: &mut R,
        rebuilds: u64,
        expected: Tally,
        mut keep: impl FnMut(u64, &[u8]) -> bool,
    ) -> Outcome<Levels<F>, R> {
        let mut levels = self.empty_levels(rebuilds)?;
        let (mut found, mut at, mut good) = (Tally::default(), 0, true);
        let mut visit = |address, key: &[u8]| {
            at = address;
            if keep(address, key) {
                let digest = self.hasher.digest(key);
                found.add(digest);
                // All cells are alive, so the key goes to level 0 only, which has room for all.
                let fits = found.keys <= expected.keys && levels.insert(digest).is_ok();
                good = fits && self.ledger.address(digest) == address;
            }
            if good { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        remote.scan(&mut visit).map_err(AdaptiveError::Remote)?;
        if good && found == expected { Ok(levels) } else { Err(disagreement(at, expected, found)) }
    }

    pub(super) fn insert_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> Outcome<bool, R> {
        let digest = self.hasher.digest(key);
        if self.contains_digest(digest) && self.is_listed(key, digest, remote)? {
            return Ok(false);
        }
        if self.len() >= self.capacity() {
            return Err(self.full().into());
        }
        let push = [Change::Push { address: self.ledger.address(digest), key }];
        let rebuilt = match self.levels.reserve(digest) {
            Ok(()) => None,
            Err(NoRoom) => Some(self.rebuilt(remote, 1, self.ledger.tally(), |_, _| true)?),
        };
        remote.apply(&push).map_err(AdaptiveError::Remote)?;
        if let Some(levels) = rebuilt {
            self.take(levels, 1);
        }
        // Without memory the key is in the remote only, which the next look at its list will show.
        self.levels.insert(digest).map_err(|NoRoom| self.full())?;
        self.ledger.insert(digest);
        Ok(true)
    }

    pub(super) fn remove_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> Outcome<bool, R> {
        let digest = self.hasher.digest(key);
        if !self.contains_digest(digest) {
            return Ok(false);
        }
        let list = self.read(digest, remote)?;
        let Some(rank) = list.rank(key) else { return Ok(false) };
        let neighbours = list.neighbours(Some(rank));
        let change = [Change::Remove { address: list.address, rank, key }];
        let rebuilt = if !F::REMOVES && self.levels.reserve_rejection(digest, &neighbours) == Err(NoRoom) {
            let mut rest = self.ledger.tally();
            rest.take(digest);
            Some(self.rebuilt(remote, 1, rest, |_, stored| stored != key)?)
        } else {
            None
        };
        remote.apply(&change).map_err(AdaptiveError::Remote)?;
        if let Some(levels) = rebuilt {
            self.take(levels, 1);
        } else {
            self.levels.remove(digest);
            if !F::REMOVES {
                // What is left of the key is a false positive. Should memory be lacking to repair it, it stays one until
                // somebody asks.
                let _ = self.levels.reject(digest, &neighbours);
            }
        }
        self.ledger.remove(digest);
        Ok(true)
    }

    pub(super) fn adapt_bytes<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> Outcome<Adaptation, R> {
        let digest = self.hasher.digest(key);
        if !self.contains_digest(digest) {
            return Ok(Adaptation::NotFalsePositive);
        }
        let list = self.read(digest, remote)?;
        if list.rank(key).is_some() {
            return Ok(Adaptation::NotFalsePositive);
        }
        let (rejected, resets) = self.reject(digest, &list.neighbours(None), remote)?;
        let Some(slots) = rejected.ok().filter(|_| !self.contains_digest(digest)) else {
            return Ok(Adaptation::Unfixable);
        };
        self.adaptations += 1;
        Ok(if resets == 0 {
            Adaptation::Fixed { slots }
        } else {
            Adaptation::FixedAfterReset { slots, resets }
        })
    }

    /// Rejects a digest here or, without room for that, in levels that take the place of these. Nothing of the filter
    /// changes before the last access to the remote. Also returns how many rebuilds it took.
    fn reject<R: Remote>(
        &mut self,
        digest: Digest,
        neighbours: &[Digest],
        remote: &mut R,
    ) -> Outcome<(Result<usize, NoRoom>, usize), R> {
        if self.levels.reserve_rejection(digest, neighbours).is_ok() {
            return Ok((self.levels.reject(digest, neighbours), 0));
        }
        let mut rebuilds = 0;
        loop {
            rebuilds += 1;
            let mut levels = self.rebuilt(remote, rebuilds, self.ledger.tally(), |_, _| true)?;
            let rejected = levels.reject(digest, neighbours);
            if rejected.is_ok() || rebuilds == Self::MAX_REBUILDS {
                self.take(levels, rebuilds);
                return Ok((rejected, rebuilds as usize));
            }
        }
    }
}

/// Filter and remote do not hold the same keys; `address` is where that was noticed.
pub(super) fn disagreement<E>(address: u64, expected: Tally, found: Tally) -> AdaptiveError<E> {
    // Where the numbers agree and the keys do not, one key at least is lacking.
    let lacking = usize::from(found.keys == expected.keys);
    let found = found.keys - lacking.min(found.keys);
    AdaptiveError::Inconsistent { address, expected: expected.keys, found }
}
