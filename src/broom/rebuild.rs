//! Growing and merging: the two operations that read all keys from the remote and write them back.
//!
//! A fingerprint of a broom filter cannot simply be cut anew, as that of a plain quotient filter can: remainders
//! would lose a bit with every doubling, adaptivity bits would have to take its place, and the addresses in the
//! remote change anyhow. Merging two filters needs the keys for another reason: their fingerprints were made
//! free of prefixes each for itself, and the frontiers stand at different places. So both operations take the keys and build
//! a filter for them, under fresh hash functions; neither asks that the seeds or shapes of two filters agree.

use crate::{Adaptive, AdaptiveError, Change, Filter, FullError, KeyHasher, MemoryRemote, Remote};

use super::filter::BroomFilter;
use super::transaction::{List, Outcome};

impl<H: KeyHasher> BroomFilter<H> {
    /// Takes all keys of `other` in; a key that both have is stored once. `other` and its remote stay as they are.
    ///
    /// Reads all keys of both remotes and writes all keys to `remote`, as one group of changes. The hash functions
    /// start afresh, so earlier repairs are forgotten, as if every hash function had timed out.
    ///
    /// # Errors
    ///
    /// [`AdaptiveError::Full`] if the union does not fit even if the filter grows as far as it was built to;
    /// [`AdaptiveError::Inconsistent`] if a remote does not hold its filter's keys, and
    /// [`AdaptiveError::Remote`] if one fails. Nothing is changed then.
    pub fn merge<G: KeyHasher, R: Remote>(
        &mut self,
        remote: &mut R,
        other: &BroomFilter<G>,
        other_remote: &mut R,
    ) -> Result<(), AdaptiveError<R::Error>> {
        let mut keys = self.keys(remote)?;
        keys.append(&mut other.keys(other_remote)?);
        keys.sort_unstable();
        keys.dedup();
        let mut capacity = self.capacity;
        while capacity < keys.len() && capacity < self.max_capacity {
            capacity = capacity.saturating_mul(2).min(self.max_capacity);
        }
        if capacity < keys.len() {
            return Err(FullError { len: keys.len(), capacity }.into());
        }
        self.rebuild(&keys, capacity, remote)
    }

    /// Takes a key in that there is no room for, and doubles the capacity, or goes to its limit if that is less.
    pub(super) fn grow<R: Remote>(&mut self, key: &[u8], remote: &mut R) -> Outcome<(), R> {
        let mut keys = self.keys(remote)?;
        keys.push(key.to_vec());
        let capacity = self.capacity.saturating_mul(2).min(self.max_capacity);
        self.rebuild(&keys, capacity, remote)?;
        self.growths += 1;
        Ok(())
    }

    /// All stored keys.
    fn keys<R: Remote>(&self, remote: &mut R) -> Outcome<List, R> {
        let mut keys = Vec::with_capacity(self.len());
        for address in 0..self.local.shape.slots {
            if self.local.table().run(address).is_some() || self.local.is_hinted(address) {
                remote.read(address, &mut |key| keys.push(key.to_vec())).map_err(AdaptiveError::Remote)?;
            }
        }
        if keys.len() != self.len() {
            let (expected, found) = (self.len(), keys.len());
            return Err(AdaptiveError::Inconsistent { address: 0, expected, found });
        }
        Ok(keys)
    }

    /// Becomes a filter of this capacity for these keys, under hash functions that were never used.
    fn rebuild<R: Remote>(&mut self, keys: &List, capacity: usize, remote: &mut R) -> Outcome<(), R> {
        let (phase, _) = self.local.functions.position();
        let hasher = self.local.functions.hasher().clone();
        let rebuilt = Self::from_plan(self.plan, capacity, capacity, hasher, phase + 2);
        let mut rebuilt = rebuilt.map_err(|_| self.out_of_memory())?;
        let mut scratch = MemoryRemote::new();
        for key in keys {
            if rebuilt.insert(key, &mut scratch).is_err() {
                return Err(FullError { len: rebuilt.len(), capacity }.into());
            }
        }
        let pushes = scratch.iter().map(|(address, key)| Change::Push { address, key });
        let changes: Vec<Change<'_>> = std::iter::once(Change::Clear).chain(pushes).collect();
        remote.apply(&changes).map_err(AdaptiveError::Remote)?;
        self.local = rebuilt.local;
        self.capacity = capacity;
        Ok(())
    }
}
