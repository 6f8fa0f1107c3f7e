//! Growing and merging: the two operations that read all keys from the remote and write them anew.
//!
//! A fingerprint of a broom filter cannot simply be cut anew, as that of a plain quotient filter can: remainders
//! would lose a bit with every doubling, adaptivity bits would have to take its place, and ghosts have no remainder to
//! take one from. Merging two filters needs the keys for another reason: their fingerprints were made
//! free of prefixes each for itself, and the frontiers stand at different places. So both operations read the keys and
//! insert them into a second filter, under fresh hash functions; neither asks that the seeds of two filters agree.
//!
//! The pairs of the second filter are written to the other half of the [addresses](super::addresses). When all keys are
//! written the second filter takes the place of the first, and the half of the first is cleared. Whatever fails before
//! that moment leaves the filter and its pairs as they were, and whatever fails after it has no say. What a failure
//! leaves behind in the other half is read by nobody, and the next growth, `clear` or `rebuild` removes it.

use crate::filter::{Grouped, clear_range};
use crate::{AdaptiveError, Growable, KeyHasher, Remote, RemoteResult};

use super::addresses::HALF;
use super::core::Core;
use super::lists::Home;
use super::local::Local;
use super::table::BroomTable;

impl<G: BroomTable, H: KeyHasher> Core<G, H> {
    /// See [`BroomFilter::merge`](super::BroomFilter::merge).
    pub(super) fn merge<G2: BroomTable, H2: KeyHasher, R: Remote>(
        &mut self,
        other: &Core<G2, H2>,
        other_remote: &mut R,
        remote: &mut R,
    ) -> RemoteResult<(), R> {
        let mut capacity = self.capacity;
        loop {
            let merged = self.become_anew(capacity, remote, |fresh, remote| {
                other.local.each_key(other_remote, |key, _| fresh.insert_in_place(key, remote).map(drop))
            });
            match merged {
                // How many keys both have is not known before.
                Err(AdaptiveError::Full(full)) if self.growable => {
                    capacity = capacity.checked_mul(2).ok_or(full)?;
                }
                merged => return merged,
            }
        }
    }

    /// Becomes a filter of this capacity, under hash functions that were never used, for its own keys and those that
    /// `more` inserts.
    fn become_anew<R: Remote>(
        &mut self,
        capacity: usize,
        remote: &mut R,
        more: impl FnOnce(&mut Self, &mut Grouped<'_, R>) -> RemoteResult<(), R>,
    ) -> RemoteResult<(), R> {
        remote.begin_groups().map_err(AdaptiveError::Remote)?;
        let mut fresh = self.successor(capacity)?;
        clear_range(self.local.other_half(), remote)?;
        let mut grouped = Grouped::new(remote);
        self.local.each_key(&mut grouped, |key, remote| fresh.insert_in_place(key, remote).map(drop))?;
        more(&mut fresh, &mut grouped)?;
        grouped.flush().map_err(AdaptiveError::Remote)?;
        *self = fresh;
        // It is done. Old pairs that cannot be removed now are removed later.
        let _ = clear_range(self.local.other_half(), remote);
        Ok(())
    }

    /// An empty filter of this capacity.
    fn successor<E>(&self, capacity: usize) -> Result<Self, AdaptiveError<E>> {
        // A capacity that the hash has no bits for is refused like a key that there is no room for.
        G::columns(self.blueprint, capacity).map_err(|_| self.full())?;
        let mut fresh = self.anew(capacity).map_err(|_| self.local.out_of_memory())?;
        (fresh.adaptations, fresh.growths) = (self.adaptations, self.growths);
        fresh.local.half = self.local.half ^ HALF;
        Ok(fresh)
    }
}

impl<G: BroomTable, H: KeyHasher> Local<G, H> {
    /// Calls `visit` with every key, by address. Fails if a fingerprint has no key.
    fn each_key<R: Remote>(
        &self,
        remote: &mut R,
        mut visit: impl FnMut(&[u8], &mut R) -> RemoteResult<(), R>,
    ) -> RemoteResult<(), R> {
        for step in 0..self.quotients() {
            let quotient = self.functions.step(step).quotient;
            let expected = self.table.stored_at(quotient);
            if expected == 0 {
                continue;
            }
            let Home { stored, homeless } = self.home_of(quotient, None, remote)?;
            if stored.len() < expected {
                return Err(self.inconsistent(quotient, stored.len()));
            }
            let keys = stored.iter().map(|stored| &stored.key).chain(homeless.iter().map(|(key, _)| key));
            keys.into_iter().try_for_each(|key| visit(key, remote))?;
        }
        Ok(())
    }
}

impl<G: BroomTable, H: KeyHasher> Growable for Core<G, H> {
    fn grow<R: Remote>(&mut self, remote: &mut R) -> RemoteResult<(), R> {
        let capacity = self.capacity.checked_mul(2).ok_or_else(|| self.full())?;
        self.become_anew(capacity, remote, |_, _| Ok(()))?;
        self.growths += 1;
        Ok(())
    }
}
