//! Whether remote and filter hold the same keys, and the way back if they do not.

use std::ops::RangeInclusive;

use super::filter::Cascade;
use super::ledger::{Ledger, ListSum};
use super::level::LevelFilter;
use super::levels::{Levels, NoRoom};
use crate::filter::out_of_memory;
use crate::homes::visit_keys;
use crate::{AdaptiveError, Authority, Digest, Filter, KeyHasher, Remote, RemoteResult, Settled};

impl<F: LevelFilter, H: KeyHasher> Cascade<F, H> {
    /// One scan: every key accepted, and all of them those of the ledger.
    pub(super) fn verify_lists<R: Remote>(&self, remote: &mut R) -> RemoteResult<(), R> {
        let mut found = Ledger::new(self.sizes.lists).map_err(out_of_memory)?;
        visit_keys(0..=u64::MAX, &self.hasher, remote, &mut |digest, _| {
            if !self.contains_digest(digest) {
                return Err(AdaptiveError::Inconsistent { address: digest.hi, expected: 0, found: 1 });
            }
            found.insert(digest);
            Ok(())
        })?;
        if found == self.ledger { Ok(()) } else { Err(self.ledger.disagreement(&found)) }
    }

    /// Takes in the keys of a range that the filter rejects. If the sums are right then, the others are the filter's.
    /// If they are not, an accepted key is unknown, or one is missing, and nothing tells which: a read with authority
    /// has the filter made again from everything.
    pub(super) fn settle_lists<R: Remote>(
        &mut self,
        addresses: &RangeInclusive<u64>,
        authority: Authority,
        remote: &mut R,
    ) -> RemoteResult<Settled, R> {
        let homes = self.ledger.homes();
        let (first, last) = (homes.of(*addresses.start()), homes.of(*addresses.end()));
        let mut slots = 0;
        for list in first..=last {
            let mut keys = Vec::new();
            visit_keys(homes.addresses(list), &self.hasher, remote, &mut |digest, _| {
                keys.push(digest);
                Ok(())
            })?;
            let (known, unknown): (Vec<_>, Vec<_>) = keys.iter().partition(|&&key| self.contains_digest(key));
            let sum = ListSum::of(known);
            let agrees = sum == self.ledger.sum(list);
            if !agrees && authority == Authority::Authoritative {
                self.make_again(remote)?;
                return Ok(Settled::Agreed);
            }
            slots += usize::from(!agrees);
            self.adopt(&unknown, remote)?;
        }
        Ok(if slots == 0 { Settled::Agreed } else { Settled::InQuestion { slots } })
    }

    /// Takes in keys that the remote has and the filter rejects.
    fn adopt<R: Remote>(&mut self, keys: &[Digest], remote: &mut R) -> RemoteResult<(), R> {
        for &digest in keys {
            if self.len() >= self.capacity() {
                return Err(self.full().into());
            }
            if self.levels.reserve(digest) == Err(NoRoom) {
                // It comes along.
                return self.make_again(remote);
            }
            self.levels.insert(digest).map_err(|NoRoom| self.full())?;
            self.ledger.insert(digest);
        }
        Ok(())
    }

    /// Makes levels and ledger again from all keys of the remote.
    pub(super) fn make_again<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        let (levels, ledger) = self.scanned(remote, 1, |_| true)?;
        self.take(levels, 1);
        self.ledger = ledger;
        Ok(())
    }

    /// Levels with the hash functions that follow this many rebuilds from now, and the ledger, of all keys of the
    /// remote that are to be kept.
    pub(super) fn scanned<R: Remote>(
        &self,
        remote: &mut R,
        rebuilds: u64,
        keep: impl Fn(&[u8]) -> bool,
    ) -> RemoteResult<(Levels<F>, Ledger), R> {
        let mut levels = self.empty_levels(rebuilds)?;
        let mut ledger = Ledger::new(self.sizes.lists).map_err(out_of_memory)?;
        visit_keys(0..=u64::MAX, &self.hasher, remote, &mut |digest, key| {
            if keep(key) {
                ledger.insert(digest);
                // All cells are alive, so the key goes to level 0 only, which has room for all.
                let fits = ledger.len() <= self.capacity() && levels.insert(digest).is_ok();
                return if fits { Ok(()) } else { Err(self.full().into()) };
            }
            Ok(())
        })?;
        Ok((levels, ledger))
    }
}
