//! What changes a cascade: every operation reads what it needs, changes the remote, and then the levels.

use super::filter::Cascade;
use super::ledger::{Ledger, ListSum};
use super::level::LevelFilter;
use super::levels::{Levels, NoRoom};
use crate::filter::out_of_memory;
use crate::homes::Seen;
use crate::{Adaptation, AdaptiveError, Change, Digest, Filter, FullError, KeyHasher, Remote, RemoteResult};

impl<F: LevelFilter, H: KeyHasher> Cascade<F, H> {
    /// Rebuilds that one repair makes before it gives up. Each accepts the key again with probability ε only.
    const MAX_REBUILDS: u64 = 16;

    /// Reads the list of a key.
    fn read<R: Remote>(&self, digest: Digest, key: &[u8], remote: &mut R) -> RemoteResult<Neighbours, R> {
        let (list, homes) = (self.ledger.list(digest), self.ledger.homes());
        let seen = Seen::read(homes.addresses(list), Some(key), &self.hasher, remote)?;
        let (sum, own) = (ListSum::of(seen.others.iter().copied()), self.ledger.sum(list));
        // The sum answers whether the key is the filter's: its row may be there although the filter has never heard of
        // it.
        let is_known = match (sum.with(digest) == own, sum == own) {
            (true, _) => true,
            // A remote that stores nothing at all may be inserted into: one key more is never one too few.
            (false, agrees) if agrees || seen.others.is_empty() && !seen.has_key => false,
            _ => return Err(self.inconsistent(list, seen.others.len() + usize::from(seen.has_key))),
        };
        if !seen.others.iter().all(|&other| self.contains_digest(other)) {
            return Err(self.inconsistent(list, seen.others.len() + usize::from(seen.has_key)));
        }
        Ok(Neighbours {
            others: seen.others,
            has_row: seen.has_key,
            is_known,
            agrees: sum == own || is_known,
        })
    }

    /// A list is not what it should be: a key at least is missing, or unknown.
    #[cold]
    fn inconsistent<E>(&self, list: u64, found: usize) -> AdaptiveError<E> {
        let address = *self.ledger.homes().addresses(list).start();
        AdaptiveError::Inconsistent { address, expected: found + 1, found }
    }

    pub(super) fn full(&self) -> FullError {
        FullError { len: self.len(), capacity: self.capacity() }
    }

    /// Levels without keys, with the hash functions that follow this many rebuilds from now.
    pub(super) fn empty_levels<E>(&self, rebuilds: u64) -> Result<Levels<F>, AdaptiveError<E>> {
        Levels::new(&self.sizes, &self.hasher, self.rebuilds + rebuilds).map_err(out_of_memory)
    }

    /// Puts other levels in the place of those at present.
    pub(super) fn take(&mut self, levels: Levels<F>, rebuilds: u64) {
        self.levels = levels;
        self.rebuilds += rebuilds;
    }

    /// Levels with the hash functions that follow this many rebuilds from now, and all keys of the remote that are to
    /// be kept. They must be those of `expected`.
    fn rebuilt<R: Remote>(
        &self,
        remote: &mut R,
        rebuilds: u64,
        expected: &Ledger,
        keep: impl Fn(&[u8]) -> bool,
    ) -> RemoteResult<Levels<F>, R> {
        let (levels, found) = self.scanned(remote, rebuilds, keep)?;
        if found == *expected { Ok(levels) } else { Err(expected.disagreement(&found)) }
    }

    pub(super) fn insert_key<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<bool, R> {
        let digest = self.hasher.digest(key);
        if self.contains_digest(digest) {
            let Neighbours { is_known, has_row, .. } = self.read(digest, key, remote)?;
            if is_known && !has_row {
                remote.apply(&[Change::Insert { address: digest.hi, key }]).map_err(AdaptiveError::Remote)?;
            }
            if is_known {
                return Ok(false);
            }
        }
        self.insert_new_key(key, remote)?;
        Ok(true)
    }

    /// Inserts a key that is not stored.
    pub(super) fn insert_new_key<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<(), R> {
        let digest = self.hasher.digest(key);
        if self.len() >= self.capacity() {
            return Err(self.full().into());
        }
        let rebuilt = match self.levels.reserve(digest) {
            Ok(()) => None,
            Err(NoRoom) => Some(self.rebuilt(remote, 1, &self.ledger, |stored| stored != key)?),
        };
        remote.apply(&[Change::Insert { address: digest.hi, key }]).map_err(AdaptiveError::Remote)?;
        if let Some(levels) = rebuilt {
            self.take(levels, 1);
        }
        // Without memory the key is in the remote only, which the next look at its list will show.
        self.levels.insert(digest).map_err(|NoRoom| self.full())?;
        self.ledger.insert(digest);
        Ok(())
    }

    pub(super) fn remove_key<R: Remote>(
        &mut self,
        key: &[u8],
        is_stored: bool,
        remote: &mut R,
    ) -> RemoteResult<bool, R> {
        let digest = self.hasher.digest(key);
        if !self.contains_digest(digest) {
            return Ok(false);
        }
        let Neighbours { others, has_row, is_known, .. } = self.read(digest, key, remote)?;
        let change = [Change::Remove { address: digest.hi, key }];
        if !is_known || !has_row && !is_stored {
            if has_row {
                remote.apply(&change).map_err(AdaptiveError::Remote)?;
            }
            return Ok(false);
        }
        let rebuilt = if !F::REMOVES && self.levels.reserve_rejection(digest, &others) == Err(NoRoom) {
            let mut rest = self.ledger.clone();
            rest.remove(digest);
            Some(self.rebuilt(remote, 1, &rest, |stored| stored != key)?)
        } else {
            None
        };
        remote.apply(&change).map_err(AdaptiveError::Remote)?;
        if let Some(levels) = rebuilt {
            self.take(levels, 1);
        } else {
            self.levels.remove(digest);
            if !F::REMOVES {
                // What is left of the key is a false positive. Should memory be lacking to repair it, it stays one
                // until somebody asks.
                let _ = self.levels.reject(digest, &others);
            }
        }
        self.ledger.remove(digest);
        Ok(true)
    }

    pub(super) fn adapt_key<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> RemoteResult<Adaptation, R> {
        let digest = self.hasher.digest(key);
        if !self.contains_digest(digest) {
            return Ok(Adaptation::NotFalsePositive);
        }
        let Neighbours { others, has_row, is_known, agrees } = self.read(digest, key, remote)?;
        if has_row {
            return Ok(Adaptation::NotFalsePositive);
        }
        if is_known || !agrees {
            // A key is missing, be it this one.
            return Err(self.inconsistent(self.ledger.list(digest), others.len()));
        }
        let (rejected, resets) = self.reject(digest, &others, remote)?;
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
    ) -> RemoteResult<(Result<usize, NoRoom>, usize), R> {
        if self.levels.reserve_rejection(digest, neighbours).is_ok() {
            return Ok((self.levels.reject(digest, neighbours), 0));
        }
        let mut rebuilds = 0;
        loop {
            rebuilds += 1;
            let mut levels = self.rebuilt(remote, rebuilds, &self.ledger, |_| true)?;
            let rejected = levels.reject(digest, neighbours);
            if rejected.is_ok() || rebuilds == Self::MAX_REBUILDS {
                self.take(levels, rebuilds);
                return Ok((rejected, rebuilds as usize));
            }
        }
    }
}

/// The keys of a list but the one that was looked for, and what there is of that.
struct Neighbours {
    others: Vec<Digest>,
    /// Whether the remote has it.
    has_row: bool,
    /// Whether the filter has it.
    is_known: bool,
    /// Whether the filter has the others.
    agrees: bool,
}
